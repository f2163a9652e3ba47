"""What papers and challenges print, as a page, files and a figure."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from common.latex import latex_document
from common.tables import DataTable
from portal.accounts.access import open_read
from portal.core.downloads import csv_response, json_response, latex_response
from portal.leaderboard.figures import draw_file
from portal.leaderboard.published_results import pages
from portal.leaderboard.views import answer_figure


@open_read
def published_results(request: HttpRequest) -> HttpResponse:
    page = pages.published_page(pages.read_choice(request.GET))
    return render(request, "leaderboard/published_results/results.html", page)


@open_read
def published_csv(request: HttpRequest) -> HttpResponse:
    return csv_response("published.csv", pages.published_rows(pages.read_choice(request.GET)))


@open_read
def published_json(request: HttpRequest) -> HttpResponse:
    head, *rows = pages.published_rows(pages.read_choice(request.GET))
    return json_response("published.json", {"numbers": DataTable(head, rows).records()})


@open_read
def published_latex(request: HttpRequest) -> HttpResponse:
    choice = pages.read_choice(request.GET)
    chosen = ", ".join(filter(None, [choice.task.title, choice.split, choice.data_set, choice.attack]))
    caption = f"Results of papers, VoicePrivacy {chosen}."
    table = pages.make_table(choice, is_file=True)
    return latex_response("published.tex", latex_document(caption, [(table, caption, "tab:published")]))


@open_read
def published_figure(request: HttpRequest, extension: str) -> HttpResponse:
    """Draw the figure of the published results, as asked for in the address."""
    drawing = pages.draw_plane(pages.read_choice(request.GET))
    return answer_figure(request, partial(draw_file, drawing, extension), f"published.{extension}")
