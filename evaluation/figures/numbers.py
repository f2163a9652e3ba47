"""The numbers beside a figure: a small table with every digit, as rows and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from evaluation.formats.csv_cells import harmless_cell

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class NumberTable:
    """What a figure shows.

    Attributes:
        columns: names, with their unit.
        rows: one cell for each column; None where there is no value.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """Comma-separated lines; numbers in the shortest form that reads back the same, no value empty, no formula."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([harmless_cell(cell) for cell in row] for row in (self.columns, *self.rows))
        return text.getvalue()
