"""Tables as CSV files that a spreadsheet opens without taking a text for a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse

from evaluation.formats.csv_cells import harmless_cell


def csv_response(filename: str, rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """The rows as a download; a text that a spreadsheet would run gets an apostrophe before it."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    csv.writer(response).writerows([harmless_cell(cell) for cell in row] for row in rows)
    return response


def csv_lines(rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """The same, line by line: for tables that are too long to be held at once."""
    writer = csv.writer(_Echo())
    for row in rows:
        yield writer.writerow([harmless_cell(cell) for cell in row])


class _Echo:
    """What the writer hands over is what it gives back."""

    def write(self, line: str) -> str:
        return line
