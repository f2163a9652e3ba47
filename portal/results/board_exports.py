"""A board as data: a dictionary for JSON and the API, rows for CSV, tables for LaTeX; all digits but in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.board_policy import policy_as_dict
from evaluation.protocols.entries import Entry, Measured
from evaluation.protocols.ranking_tables import RankingTable, Row
from portal.results.board import Board
from portal.results.board_pages import DIGITS, condition_in_words, letters_of, measured_of, place_in_words

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "ρ": r"$\rho$",
    "–": "--", "−": "$-$", "’": "'", "“": "``", "”": "''",
}  # fmt: skip
_SPECIAL = re.compile("|".join(map(re.escape, _LATEX)))


def board_as_dict(board: Board) -> dict[str, Any]:
    """All of a board: its times, policy, rankings, and whoever is in none of them."""
    edition = board.edition
    return {
        "edition": edition.name,
        "title": edition.title,
        "protocol": edition.recipe.edition,
        "published_at": _time(edition.published_at),
        "as_of": _time(board.as_of),
        "measured_at": _time(board.measured_at),
        "policy": policy_as_dict(board.policy),
        "averages": [
            {
                "metric": column.key,
                "estimator": column.estimator,
                "label": column.metric.label,
                "unit": column.metric.unit,
                "better": str(column.metric.direction),
            }
            for column in board.columns
        ],
        "rankings": [_table_as_dict(board, table) for table in board.table.tables],
        "unrankable": [
            _entry_as_dict(board, one.entry)
            | {"reasons": [{"code": reason.code, "text": reason.text} for reason in one.reasons]}
            for one in board.table.unrankable
        ],
        "outside": [_entry_as_dict(board, entry) for entry in board.table.outside],
    }


def board_rows(board: Board) -> Iterator[tuple[Any, ...]]:
    """A header, then each system in each ranking, then those that are in none."""
    numbers = [name for column in board.columns for name in (column.key, f"{column.key}_low", f"{column.key}_high")]
    yield (
        "minimum_eer", "below_eer", "ranked_by", "place", "rank", "group", "system", "label", "team", "kind", "late",
        "claimed", *numbers, "reasons",
    )  # fmt: skip
    for table in board.table.tables:
        for row in table.rows:
            reasons = " ".join(one.text for one in (*row.reasons, *row.notes))
            start = (table.minimum, table.upper, table.utility.metric, row.place.value, row.rank, letters_of(row))
            yield (*start, *_entry_cells(board, row.entry), reasons)
    for one in board.table.unrankable:
        reasons = " ".join(reason.text for reason in one.reasons)
        yield (None, None, "", "unrankable", None, "", *_entry_cells(board, one.entry), reasons)
    for entry in board.table.outside:
        if entry.kind != "original":
            yield (None, None, "", "outside", None, "", *_entry_cells(board, entry), "")


def board_as_latex(board: Board) -> str:
    """A booktabs table for each ranking that has a competitor."""
    edition = board.edition
    lines = [f"% {_one_line(edition.title)}: board, needs \\usepackage{{booktabs}}"]
    for table in board.table.tables:
        if table.competitors:
            lines += ["", *_latex_table(board, table)]
    if len(lines) == 1:
        lines.append("% No condition has a system.")
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _latex_table(board: Board, table: RankingTable) -> list[str]:
    heads = [latex_text(column.heading) for column in board.columns]
    title = condition_in_words(table.minimum, table.upper, board.policy)
    utility = find_metric(table.utility.metric, table.utility.estimator).label
    columns = "rl" + "r" * len(heads)
    return [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(f'{board.edition.title}: {title}, by {utility}')}}}",
        f"  \\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {' & '.join(['Rank', 'System', *heads])} \\\\",
        r"    \midrule",
        *(f"    {_latex_row(board, row)} \\\\" for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]


def _latex_row(board: Board, row: Row) -> str:
    name = latex_text(row.entry.label) + (" (late)" if row.entry.is_late else "")
    values = [_latex_number(measured_of(row.entry, column)) for column in board.columns]
    return " & ".join([latex_text(place_in_words(row)), name, *values])


def _latex_number(measured: Measured | None) -> str:
    if measured is None:
        return "--"
    number = f"{measured.value:.{DIGITS}f}"
    text = f"${number}$" if number.startswith("-") else number
    if measured.interval is None:
        return text
    low, high = measured.interval
    return f"{text} [{low:.{DIGITS - 1}f}, {high:.{DIGITS - 1}f}]"


def _table_as_dict(board: Board, table: RankingTable) -> dict[str, Any]:
    nearest = table.nearest
    return {
        "condition": {
            "number": table.number,
            "minimum_eer": table.minimum,
            "below_eer": table.upper,
            "text": condition_in_words(table.minimum, table.upper, board.policy),
        },
        "ranked_by": {
            "metric": table.utility.metric,
            "estimator": table.utility.estimator,
            "better": table.utility.better,
        },
        "rows": [_row_as_dict(board, row) for row in table.rows],
        "groups": [list(keys) for keys in table.groups],
        "nearest": {"system": nearest.entry.key, "distance": nearest.distance} if nearest else None,
        "just_missed": [{"system": miss.entry.key, "distance": miss.distance} for miss in table.just_missed],
    }


def _row_as_dict(board: Board, row: Row) -> dict[str, Any]:
    return {
        "place": row.place.value,
        "rank": row.rank,
        **_entry_as_dict(board, row.entry),
        "groups": list(row.groups),
        "reasons": [{"code": one.code, "text": one.text} for one in row.reasons],
        "notes": [{"code": one.code, "text": one.text} for one in row.notes],
    }


def _entry_as_dict(board: Board, entry: Entry) -> dict[str, Any]:
    return {
        "system": entry.key,
        "label": entry.label,
        "title": entry.title,
        "team": entry.team_name,
        "kind": entry.kind,
        "is_late": entry.is_late,
        "is_claimed": entry.is_claimed,
        "averages": {
            column.key: {
                "value": measured.value,
                "low": measured.low,
                "high": measured.high,
                "is_claimed": measured.is_claimed,
            }
            for column in board.columns
            if (measured := measured_of(entry, column))
        },
    }


def _entry_cells(board: Board, entry: Entry) -> tuple[Any, ...]:
    numbers: list[float | None] = []
    for column in board.columns:
        found = measured_of(entry, column)
        numbers += (found.value, found.low, found.high) if found else (None, None, None)
    name = (entry.key, entry.label, entry.team_name, entry.kind)
    return (*name, "yes" if entry.is_late else "no", "yes" if entry.is_claimed else "no", *numbers)


def _time(at: Any) -> str | None:
    return at.isoformat() if at else None
