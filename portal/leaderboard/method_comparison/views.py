"""The anonymisers that come with the portal, compared: as a page, files and figures."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from anonymization.methods.measured import read_measurements
from common.tables import DataTable, latex_table
from portal.accounts.access import open_read
from portal.core.downloads import csv_response, json_response, latex_response
from portal.leaderboard.figures import draw_file
from portal.leaderboard.method_comparison import pages
from portal.leaderboard.views import answer_figure


@open_read
def method_comparison(request: HttpRequest) -> HttpResponse:
    return render(request, "leaderboard/method_comparison/comparison.html", pages.methods_page())


@open_read
def methods_csv(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    return csv_response("anonymizers.csv", pages.method_rows())


@open_read
def methods_json(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    head, *rows = pages.method_rows()
    return json_response("anonymizers.json", {"methods": DataTable(tuple(head), rows).records()})


@open_read
def methods_latex(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    table = pages.numbers_table(read_measurements())
    return latex_response("anonymizers.tex", "\n".join([*latex_table(table, table.title), ""]))


@open_read
def method_figure(request: HttpRequest, figure: str, extension: str) -> HttpResponse:
    drawing = pages.list_method_drawings().get(figure)
    return answer_figure(request, partial(draw_file, drawing, extension), f"anonymizers-{figure}.{extension}")
