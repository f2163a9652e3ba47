"""The objective numbers of a system as CSV, JSON and LaTeX. Full precision in CSV and JSON; claims for its own only.

A ZEBRA category is its letter in CSV; in JSON, whose values are numbers (0 to 6), the letter stands beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from evaluation.objective.values import BASES, Number, letter_of
from evaluation.selectors_objective import track_of
from portal.results.board_exports import latex_text
from portal.results.objective_pages import numbers_of
from portal.results.objective_tables import Cell, Table, TableMaker
from portal.results.shown import View, edition_of

COLUMNS = (
    "system", "version", "data_set", "gender", "metric", "estimator", "attack_model", "training", "enrolment", "speech",
    "unit", "better", "value", "spread", "low", "high", "n", "basis",
)  # fmt: skip
CLAIM_COLUMNS = ("claimed", "claimed_in", "agrees")
_AGREES = {True: "yes", False: "no", None: ""}


def objective_rows(view: View) -> Iterator[tuple[Any, ...]]:
    """A header, then every number with all that identifies it."""
    yield (*COLUMNS, *CLAIM_COLUMNS) if view.is_own else COLUMNS
    for number in numbers_of(view).numbers.values():
        claims = (number.claimed_text, number.claimed_in, _AGREES[number.agrees]) if view.is_own else ()
        yield (view.system.name, view.submission.version, *_cells(number, number.letter or number.value), *claims)


def _cells(number: Number, value: float | str) -> tuple[Any, ...]:
    identity, metric = number.identity, number.metric
    return (
        identity.data_set,
        str(identity.gender),
        identity.metric,
        identity.estimator,
        str(identity.attack_model or ""),
        str(identity.training or ""),
        str(identity.enrolment or ""),
        str(identity.speech),
        metric.unit,
        str(metric.direction),
        value,
        number.spread,
        number.low,
        number.high,
        number.n,
        BASES[number.basis],
    )


def objective_as_dict(view: View) -> dict[str, Any]:
    """The same for JSON; to its own also what is missing."""
    values = numbers_of(view)
    found: dict[str, Any] = {
        "system": view.system.name,
        "label": str(view.system),
        "edition": edition_of(view.system).name,
        "version": view.submission.version,
        "measured_at": values.measured_at.isoformat() if values.measured_at else None,
        "numbers": [number_as_dict(number, with_claims=view.is_own) for number in values.numbers.values()],
    }
    return found | {"missing": [asdict(one) for one in values.missing]} if view.is_own else found


def number_as_dict(number: Number, *, with_claims: bool) -> dict[str, Any]:
    """One number for JSON with all that identifies it."""
    names = COLUMNS[2:]
    found = dict(zip(names, _cells(number, number.value), strict=True))
    found |= {"category": number.letter, "is_recomputed": number.is_recomputed}
    claims = {
        "claimed": number.claimed,
        "claimed_category": letter_of(number.identity, number.claimed),
        "claimed_in": number.claimed_in,
        "agrees": number.agrees,
    }
    return found | claims if with_claims else found


def objective_as_latex(view: View) -> str:
    """A booktabs table of the averages and one of each kind of number; claims are left out."""
    edition = edition_of(view.system)
    maker = TableMaker(numbers_of(view), edition.recipe, track_of(edition), with_claims=False)
    title = f"{edition.title}, {view.system}, version {view.submission.version}"
    lines = [f"% {latex_text(title)}; needs \\usepackage{{booktabs}}"]
    for table in (maker.averages(), *maker.tables()):
        if table.groups:
            lines += ["", *_latex_table(table, title)]
    return "\n".join(lines) + "\n"


def _latex_table(table: Table, title: str) -> Iterator[str]:
    heads = [latex_text(head) for head in table.heads]
    yield r"\begin{table}"
    yield r"  \centering"
    yield f"  \\caption{{{latex_text(f'{title}: {table.title}. {table.caption}')}}}"
    yield f"  \\begin{{tabular}}{{ll{'r' * len(heads)}}}"
    yield r"    \toprule"
    yield f"    {' & '.join(['', '', *heads])} \\\\"
    for group in table.groups:
        yield r"    \midrule"
        for place, row in enumerate(group.rows):
            name = latex_text(group.title) if place == 0 else ""
            yield f"    {' & '.join([name, latex_text(row.title), *map(_latex_cell, row.cells)])} \\\\"
    yield r"    \bottomrule"
    yield r"  \end{tabular}"
    yield r"\end{table}"


def _latex_cell(cell: Cell) -> str:
    if not cell.text:
        return "--"
    interval = f" [{latex_text(cell.interval)}]" if cell.interval else ""
    return f"{latex_text(cell.text)}{interval}"
