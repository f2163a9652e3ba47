"""What the page of a board shows: rankings as rows of text, sorted as asked for, its figures, its method in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse

from evaluation.metrics.catalogue import Direction
from evaluation.protocols.board_policy import BoardPolicy, policy_in_words
from evaluation.protocols.entries import Entry, Measured
from evaluation.protocols.ranking_tables import Miss, Place, RankingTable, Row
from portal.core.wording import decimals
from portal.results.board import Board, Column
from portal.results.board_figures import NARROW, Drawing, drawings_of, figure_key

DIGITS = 3  # of averages, as the official scripts print them
ORDERS = {"asc": "ascending", "desc": "descending"}
WORDS = {"rank": "Rank", "system": "System", "team": "Team"}
REFERENCES = {"baseline": "baseline", "original": "original"}


@dataclass(frozen=True)
class Cell:
    """An average in a row. `sort`: the bare number."""

    column: Column
    text: str
    interval: str
    is_claimed: bool
    sort: float | None

    @property
    def bare(self) -> str:
        """With every digit, for scripts; empty where there is none."""
        return "" if self.sort is None else repr(self.sort)


@dataclass(frozen=True)
class PageRow:
    """A system in a ranking, in words. `letters`: of the groups whose members cannot be told apart.

    `numbers`: the cells as HTML, which every ranking of the page shares.
    """

    row: Row
    rank: str
    numbers: str
    letters: str
    remarks: tuple[str, ...]

    @property
    def entry(self) -> Entry:
        return self.row.entry


@dataclass(frozen=True)
class PageTable:
    """One ranking: its condition in words, its rows, and what to say where there are none."""

    table: RankingTable
    anchor: str
    title: str
    utility: Column
    rows: tuple[PageRow, ...]
    verdict: str
    missed: tuple[str, ...]
    has_intervals: bool
    has_groups: bool
    n_ranked: int

    @property
    def has_remarks(self) -> bool:
        return any(row.remarks for row in self.rows)

    @property
    def leaders(self) -> list[Row]:
        """Whoever is first; several where they are equal."""
        return [row for row in self.table.ranked if row.rank == 1]

    @property
    def best(self) -> str:
        """The utility of whoever is first."""
        return decimals(self.leaders[0].utility.value if self.leaders else None, DIGITS)


@dataclass(frozen=True)
class Heading:
    """The heading of a column, which sorts by it.

    `natural`: the order when first chosen; `sorted`: for aria-sort; `query`: of the address that sorts.
    """

    key: str
    label: str
    is_number: bool
    natural: str
    sorted: str
    query: str


def board_page(
    board: Board, sort: str = "", order: str = "", unlike: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Any]:  # fmt: skip
    """Everything on the page. An unknown `sort` or `order` is as none.

    Args:
        unlike: for organizers, how many numbers a system claims otherwise than its files give.
    """
    keys = [*WORDS, *(column.key for column in board.columns)]
    sort = sort if sort in keys else "rank"
    order = order if order in ORDERS else _natural_order(board, sort)
    numbers = {entry.key: _numbers(board, entry) for entry in board.entries}
    private = {key: (_unlike(count),) for key, count in unlike.items()}
    tables = [page_table(board, table, numbers, sort, order, private) for table in board.table.tables]
    drawings = list(drawings_of(board).values())
    return {
        "board": board,
        "edition": board.edition,
        "tables": tables,
        "headings": [_heading(board, key, sort, order) for key in keys],
        "unranked": unranked_rows(board, numbers, private),
        "figures": [_figure(board, one, number) for number, one in enumerate(drawings, start=1)],
        "has_bars": any(one.bars for one in drawings),
        "rules": policy_in_words(board.policy),
        "weights": _weights(board),
        "has_claims": any(entry.is_claimed for entry in board.entries),
        "n_systems": sum(entry.kind == "system" for entry in board.entries),
        "n_teams": len({entry.team for entry in board.entries if entry.kind == "system"}),
    }


def condition_in_words(minimum: float, upper: float | None, policy: BoardPolicy) -> str:
    """Such as ``EER of at least 15 %`` or ``EER from 15 % to below 20 %``."""
    if policy.inclusive:
        return f"EER of at least {minimum:g} %" if upper is None else f"EER from {minimum:g} % to below {upper:g} %"
    return f"EER above {minimum:g} %" if upper is None else f"EER above {minimum:g} % and up to {upper:g} %"


def anchor_of(table: RankingTable) -> str:
    """Where a ranking stands on the page."""
    return f"eer-{table.minimum:g}-{table.utility.metric}".replace(".", "-")


def page_table(
    board: Board, table: RankingTable, numbers: Mapping[str, str], sort: str, order: str,
    private: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> PageTable:  # fmt: skip
    """A ranking for the page; without competitors it has no rows but a sentence.

    Args:
        private: remarks on systems that only this reader sees.
    """
    utility = next(column for column in board.columns if column.key == table.utility.metric and column.is_utility)
    shown = table.rows if table.competitors else ()
    has_intervals = any(row.utility.interval for row in shown)
    rows = [_row(row, numbers[row.entry.key], utility, has_intervals, private.get(row.entry.key, ())) for row in shown]
    return PageTable(
        table=table,
        anchor=anchor_of(table),
        title=condition_in_words(table.minimum, table.upper, board.policy),
        utility=utility,
        rows=tuple(_sorted(board, rows, sort, order)),
        verdict=_verdict(table),
        missed=tuple(_missed(board, miss) for miss in table.just_missed),
        has_intervals=has_intervals,
        has_groups=bool(table.groups),
        n_ranked=len(table.ranked),
    )


def cell_of(column: Column, measured: Measured | None) -> Cell:
    """An average with its interval, as text."""
    if measured is None:
        return Cell(column, "", "", False, None)
    interval = measured.interval
    span = f"{decimals(interval[0], DIGITS - 1)} to {decimals(interval[1], DIGITS - 1)}" if interval else ""
    return Cell(column, decimals(measured.value, DIGITS), span, measured.is_claimed, measured.value)


def measured_of(entry: Entry, column: Column) -> Measured | None:
    """The average of an entry that a column shows."""
    if column.is_privacy:
        return entry.privacy
    return (entry.utilities if column.is_utility else entry.averages).get(column.key)


def letters_of(row: Row) -> str:
    """``ab`` for the first and the second group; numbers where the alphabet ends."""
    return "".join(ascii_lowercase[number - 1] if number <= 26 else f" {number}" for number in row.groups)


def place_in_words(row: Row) -> str:
    """Rank, or why there is none, in a word."""
    if row.place is Place.RANKED:
        return str(row.rank)
    if row.place is Place.REFERENCE:
        return REFERENCES[row.entry.kind]
    return "late" if any(reason.code == "late" for reason in row.reasons) else "not ranked"


def unranked_rows(
    board: Board, numbers: Mapping[str, str], private: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[dict[str, Any]]:  # fmt: skip
    """Systems and baselines that stand in no ranking, with the reasons."""
    limits = board.policy.minimum_eers
    none = f"Reaches no condition: the lowest asks for {limits[0]:g} %." if limits else "Nothing is ranked."
    found = [(one.entry, [reason.text for reason in one.reasons]) for one in board.table.unrankable]
    found += [(entry, [none]) for entry in board.table.outside if entry.kind != "original"]
    return [
        {
            "entry": entry,
            "numbers": numbers[entry.key],
            "reasons": [*reasons, *private.get(entry.key, ())],
            "kind": REFERENCES.get(entry.kind, ""),
        }
        for entry, reasons in found
    ]


# Rows ----------------------------------------------------------------------------------------------


def _numbers(board: Board, entry: Entry) -> str:
    """Every average of an entry as the cells of a row."""
    cells = [cell_of(column, measured_of(entry, column)) for column in board.columns]
    return render_to_string("boards/_cells.html", {"cells": cells})


def _row(row: Row, numbers: str, utility: Column, has_intervals: bool, private: Sequence[str]) -> PageRow:
    remarks = [reason.text for reason in (*row.reasons, *row.notes)]
    if row.place is Place.RANKED and has_intervals and row.utility.interval is None:
        remarks.append(f"Its {utility.metric.label} has no interval, so it belongs to no group.")
    return PageRow(row, place_in_words(row), numbers, letters_of(row), (*remarks, *private))


def _sorted(board: Board, rows: Sequence[PageRow], sort: str, order: str) -> list[PageRow]:
    """Rows by a column; those without a value last, whatever the order."""
    column = next((one for one in board.columns if one.key == sort), None)

    def value(row: PageRow) -> Any:
        if sort == "rank":
            return row.row.rank
        if sort == "system":
            return row.entry.label.lower()
        if sort == "team":
            return row.entry.team_name.lower() or None
        measured = measured_of(row.entry, column) if column else None
        return measured.value if measured else None

    if sort == "rank" and order == "asc":
        return list(rows)  # unranked ones in their place
    known = [row for row in rows if value(row) is not None]
    return sorted(known, key=value, reverse=order == "desc") + [row for row in rows if value(row) is None]


def _natural_order(board: Board, sort: str) -> str:
    """The best first: what a heading does when first chosen."""
    column = next((one for one in board.columns if one.key == sort), None)
    return "desc" if column and column.metric.direction == "higher" else "asc"


def _heading(board: Board, key: str, sort: str, order: str) -> Heading:
    column = next((one for one in board.columns if one.key == key), None)
    natural = _natural_order(board, key)
    opposite = "asc" if natural == "desc" else "desc"
    following = opposite if key == sort and order == natural else natural
    return Heading(
        key=key,
        label=column.heading if column else WORDS[key],
        is_number=column is not None,
        natural=natural,
        sorted=ORDERS[order] if key == sort else "",
        query=urlencode({"sort": key, "order": following}),
    )


# Words ---------------------------------------------------------------------------------------------


def _verdict(table: RankingTable) -> str:
    """What to say of a condition in which nobody is ranked; empty where somebody is."""
    if table.ranked:
        return ""
    if table.competitors:
        return "No system is ranked here: each that reached the condition is listed with the reason."
    limit = f"{table.minimum:g} %"
    if table.upper is None:
        nobody = f"No system reached {limit}."
    else:
        nobody = f"No system lies from {limit} to {table.upper:g} %."
    if table.nearest is None:
        return nobody
    entry = table.nearest.entry
    kind = "The baseline " if entry.kind == "baseline" else ""
    eer = decimals(entry.privacy.value if entry.privacy else None, DIGITS)
    return f"{nobody} {kind}{entry.label} came nearest with {eer} %, {decimals(table.nearest.distance, DIGITS)} away."


def _unlike(count: int) -> str:
    """For organizers: how many claims differ."""
    return f"{count:,} of its claims {'differs' if count == 1 else 'differ'} (only organizers see this remark)."


def _missed(board: Board, miss: Miss) -> str:
    eer = miss.entry.privacy.value if miss.entry.privacy else None
    return (
        f"{miss.entry.label} misses this condition by {miss.distance:g} percentage points (EER {eer:g} %), which is "
        f"within {board.policy.note_within:g} of its limit."
    )


def _weights(board: Board) -> list[tuple[Column, list[tuple[str, str]]]]:
    """How much each data set counts in each average."""
    edition, found = board.edition, []
    recipe = edition.recipe
    track = recipe.tracks[edition.track] if edition.track else recipe.track
    for column in board.columns:
        average = next((one for one in track.averages if one.metric == column.key), None)
        weights = average.weights.get(board.policy.split, {}) if average else {}
        if weights:
            found.append((column, [(name, f"{weight:g}") for name, weight in weights.items()]))
    return found


def _figure(board: Board, drawing: Drawing, number: int) -> dict[str, Any]:
    """A figure as `components/figure.html` takes it. Its address changes with what it shows."""
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        where = reverse("boards:figure", args=[board.edition.name, drawing.slug, extension])
        return f"{where}?{urlencode({'v': mark} | form)}"

    words = _tradeoff(board, drawing) if drawing.points else _bars(drawing)
    if drawing.points:
        words["narrow"] = {
            "size": drawing.size(narrow=True),
            "image": address("svg", shape=NARROW),
            "dark": address("svg", shape=NARROW, theme="dark"),
        }
    return words | {
        "number": number,
        "slug": drawing.slug,
        "size": drawing.size(),
        "image": address("svg"),
        "dark": address("svg", theme="dark"),
        "downloads": [{"url": address(one), "label": one.upper()} for one in ("svg", "pdf", "png")],
    }


def _tradeoff(board: Board, drawing: Drawing) -> dict[str, Any]:
    points, label = drawing.points, drawing.column.metric.label
    return {
        "title": "Privacy against utility",
        "is_tradeoff": True,
        "caption": _tradeoff_caption(board, drawing.column),
        "alt": f"EER against {label} of {len(points)} points, one for each system; the numbers follow as a table.",
        "columns": ("System", "EER, %", drawing.column.heading),
        "rows": [(one.name, decimals(one.eer, DIGITS), decimals(one.utility, DIGITS)) for one in points],
    }


def _bars(drawing: Drawing) -> dict[str, Any]:
    is_gated = drawing.minimum is not None
    return {
        "title": drawing.column.metric.label,
        "caption": _bars_caption(is_gated),
        "alt": f"A bar for each of {len(drawing.bars)} systems; the numbers follow as a table.",
        "columns": ("System", drawing.column.heading, *(("Lowest data set",) * is_gated)),
        "rows": [
            (bar.name, decimals(bar.value, DIGITS), *((decimals(bar.least, DIGITS),) * is_gated))
            for bar in drawing.bars
        ],
    }


def _tradeoff_caption(board: Board, column: Column) -> str:
    lines = "; dashed lines are the minimum EERs of the conditions" if board.policy.minimum_eers else ""
    side = "down" if column.metric.direction == Direction.LOWER else "up"
    return (
        f"Average EER of the attacker and average {column.metric.label} of each system: further right is more private, "
        f"further {side} more useful. Systems of one team share colour and shape, baselines are grey, original speech "
        f"is dark{lines}. Thin lines are 95 % intervals where there are any."
    )


def _bars_caption(gated: bool) -> str:
    diamond = " The diamond is the lowest data set, which must be beyond the dashed line." if gated else ""
    return f"Average of each system, baselines hatched; lines are 95 % intervals where there are any.{diamond}"
