"""Tables and their data as files to download; `common.tables` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from django.http import HttpResponse, JsonResponse

from common.problems import Problem
from common.tables import csv_lines


def csv_response(filename: str, rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """Return the rows, names of columns first, as a download; what a spreadsheet would run gets an apostrophe before
    it."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.writelines(csv_lines(rows))
    return as_download(response, filename)


def problem_response(filename: str, problems: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Return every stored problem of a report as a download."""
    columns = [column.name for column in fields(Problem)]
    return csv_response(filename, [columns, *([problem.get(column) for column in columns] for problem in problems)])


def json_response(filename: str, data: Any) -> HttpResponse:
    """Return data as a download; all digits."""
    return as_download(JsonResponse(data), filename)


def latex_response(filename: str, text: str) -> HttpResponse:
    """Tables in LaTeX as a download."""
    return as_download(HttpResponse(text, content_type="application/x-tex; charset=utf-8"), filename)


def as_download(response: HttpResponse, filename: str) -> HttpResponse:
    """Return the response, to be kept under this name."""
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response
