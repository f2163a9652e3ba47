"""Files of the panels: what stands on a board beside its numbers, as CSV."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from listening.results.beside import CSV_COLUMNS
from listening.results.panels import chosen_scores, studies_on_board
from portal.accounts.access import open_page
from portal.core.exports import csv_response
from portal.results.board import board_for


@require_safe
@open_page
def board_csv(request: HttpRequest, edition: str) -> HttpResponse:
    """Objective and subjective numbers of the systems on a board: one row for each number."""
    board, scores = board_for(request.user, edition), chosen_scores(request)
    rows = [
        row
        for one in studies_on_board(request.user, board, scores)
        for row in one.beside.csv_rows(one.study.name, one.study.is_simulated)
    ]
    return csv_response(f"{edition}-listeners-{scores}.csv", [CSV_COLUMNS, *rows])
