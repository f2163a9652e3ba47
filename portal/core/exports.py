"""Tables as CSV files that a spreadsheet opens without taking a text for a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any

from django.http import HttpResponse

from evaluation.formats.csv_cells import harmless_cell


def csv_response(filename: str, rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """The rows as a download; a text that a spreadsheet would run gets an apostrophe before it."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    csv.writer(response).writerows([harmless_cell(cell) for cell in row] for row in rows)
    return response
