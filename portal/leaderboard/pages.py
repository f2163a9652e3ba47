"""What the page of a leaderboard shows: rankings as tables, sorted as asked for, its figures, its method in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html

from common.tables import ARIA_SORT, Cell, Column, Group, Order, Table, number_table, plain_table
from common.tables import Row as TableRow
from evaluation.app.runs.context import track_of
from evaluation.metrics.catalogue import Direction, find_metric
from evaluation.protocols.ranking.policy import LeaderboardPolicy, policy_in_words
from evaluation.protocols.ranking.ranking import ConditionMoves, Move, moves
from evaluation.protocols.ranking.rankings import Entry, Measured, Miss, Place, RankingTable, Row
from portal.challenges.models import Edition
from portal.core.labels import decimals
from portal.leaderboard.figures import NARROW, Drawing, figure_key, list_drawings
from portal.leaderboard.selectors import (
    Leaderboard,
    ShownAverage,
    build_leaderboard,
    load_entries,
    policy_by,
    rank_leaderboard,
)

DIGITS = 3  # of averages, as the official scripts print them
NAMES = (("rank", "Rank", "rank"), ("system", "System", ""), ("team", "Team", "team"))  # key, heading, kind
REFERENCES = {"baseline": "baseline", "original": "original"}


@dataclass(frozen=True)
class RankingSection:
    """One ranking: its condition in words, its table, and what to say where there is none."""

    ranking: RankingTable
    anchor: str
    title: str
    utility: ShownAverage
    table: Table | None
    verdict: str
    missed: tuple[str, ...]

    @property
    def n_ranked(self) -> int:
        return len(self.ranking.ranked)

    @property
    def leaders(self) -> list[Row]:
        """Whoever is first; several where they are equal."""
        return [row for row in self.ranking.ranked if row.rank == 1]

    @property
    def best(self) -> str:
        """The utility of whoever is first."""
        return decimals(self.leaders[0].utility.value if self.leaders else None, DIGITS)


def leaderboard_page(
    leaderboard: Leaderboard, sort: str = "", order: str = "", unlike: Mapping[str, int] = MappingProxyType({})
) -> dict[str, Any]:
    """Everything on the page. An unknown `sort` or `order` is as none.

    Args:
        unlike: for organizers, how many reported numbers of a system differ from the recomputed ones.
    """
    private = {key: (_unlike(count),) for key, count in unlike.items()}
    tables = _Tables(leaderboard, *_chosen_order(leaderboard, sort, order), private)
    drawings = list(list_drawings(leaderboard).values())
    return {
        "leaderboard": leaderboard,
        "edition": leaderboard.edition,
        "sections": [tables.section(ranking) for ranking in leaderboard.table.tables],
        "unranked": tables.unranked(),
        "figures": [_figure(leaderboard, one, number) for number, one in enumerate(drawings, start=1)],
        "has_bars": any(one.bars for one in drawings),
        "rules": policy_in_words(leaderboard.policy),
        "weights": _weights(leaderboard),
        "has_reported": any(entry.is_reported for entry in leaderboard.entries),
        "n_systems": sum(entry.kind == "system" for entry in leaderboard.entries),
        "n_teams": len({entry.team for entry in leaderboard.entries if entry.kind == "system"}),
    }


def condition_in_words(minimum: float, upper: float | None, policy: LeaderboardPolicy) -> str:
    """Such as ``EER of at least 15 %`` or ``EER from 15 % to below 20 %``."""
    if policy.inclusive:
        return f"EER of at least {minimum:g} %" if upper is None else f"EER from {minimum:g} % to below {upper:g} %"
    return f"EER above {minimum:g} %" if upper is None else f"EER above {minimum:g} % and up to {upper:g} %"


def anchor_of(table: RankingTable) -> str:
    """Where a ranking stands on the page."""
    return f"eer-{table.minimum:g}-{table.utility.metric}".replace(".", "-")


@dataclass(frozen=True)
class _Tables:
    """Makes the tables of a page.

    Attributes:
        sort, order: the column by which rankings stand, and which way.
        private: notes on systems that only this reader sees.
    """

    leaderboard: Leaderboard
    sort: str
    order: Order
    private: Mapping[str, tuple[str, ...]]

    def section(self, ranking: RankingTable) -> RankingSection:
        """A ranking for the page; without competitors it has no table but a sentence."""
        key = ranking.utility.metric
        utility = next(one for one in self.leaderboard.averages if one.key == key and one.is_utility)
        title = condition_in_words(ranking.minimum, ranking.upper, self.leaderboard.policy)
        return RankingSection(
            ranking=ranking,
            anchor=anchor_of(ranking),
            title=title,
            utility=utility,
            table=self._ranking(ranking, utility, title) if ranking.competitors else None,
            verdict=_verdict(ranking),
            missed=tuple(_missed(self.leaderboard, miss) for miss in ranking.just_missed),
        )

    def _ranking(self, ranking: RankingTable, utility: ShownAverage, title: str) -> Table:
        has_intervals = any(row.utility.interval for row in ranking.rows)
        rows = self._sorted(ranking.rows)
        notes = {
            row.entry.key: _notes(row, utility, has_intervals) + self.private.get(row.entry.key, ()) for row in rows
        }
        columns = [Column(key, heading, kind=kind) for key, heading, kind in NAMES]
        columns += [
            Column(one.key, one.heading, kind="num best" if one is utility else "num")
            for one in self.leaderboard.averages
        ]
        columns = [
            column.sortable(_natural_order(self.leaderboard, column.key), self.sort, self.order) for column in columns
        ]
        columns += [Column("group", "Group", kind="letters")] if ranking.groups else []
        columns += [Column("notes", "Notes", kind="text notes")] if any(notes.values()) else []
        n_ranked = len(ranking.ranked)
        caption = f" by average {utility.metric.label}, {utility.metric.direction} is better." if n_ranked else ""
        caption += " Beneath each number its 95 % interval." if has_intervals else ""
        caption += " Systems that share a letter cannot be told apart." if ranking.groups else ""
        return Table(
            columns=tuple(columns),
            groups=(Group(tuple(self._row(row, columns, notes[row.entry.key]) for row in rows)),),
            title=f"Ranking: {title}",
            lead=f"{n_ranked} system{'' if n_ranked == 1 else 's'} ranked" if n_ranked else "Nobody is ranked.",
            caption=caption,
            styles="leaderboard",
            header=1,
            anchor=anchor_of(ranking),
        )

    def _row(self, row: Row, columns: Sequence[Column], notes: Sequence[str]) -> TableRow:
        entry = row.entry
        known = {
            "rank": Cell(place_in_words(row), value=row.rank),
            "system": system_cell(entry, ("late",) if entry.is_late and row.rank else ()),
            "team": Cell(entry.team_name, value=entry.team_name),
            "group": Cell(letters_of(row)),
            "notes": Cell(" ".join(notes)),
        } | {average.key: average_cell(measured_of(entry, average)) for average in self.leaderboard.averages}
        return TableRow(tuple(known[column.key] for column in columns), row.place)

    def _sorted(self, rows: Sequence[Row]) -> list[Row]:
        """Rows by a column; those without a value last, whatever the order."""
        average = _average(self.leaderboard, self.sort)

        def value(row: Row) -> Any:
            if self.sort == "rank":
                return row.rank
            if self.sort == "system":
                return row.entry.label.lower()
            if self.sort == "team":
                return row.entry.team_name.lower() or None
            measured = measured_of(row.entry, average) if average else None
            return measured.value if measured else None

        if self.sort == "rank" and self.order == "asc":
            return list(rows)  # unranked ones in their place
        known = [row for row in rows if value(row) is not None]
        return sorted(known, key=value, reverse=self.order == "desc") + [row for row in rows if value(row) is None]

    def unranked(self) -> Table | None:
        """Systems and baselines that stand in no ranking, with the reasons."""
        shown = self.leaderboard
        limits = shown.policy.minimum_eers
        none = f"Reaches no condition: the lowest asks for {limits[0]:g} %." if limits else "Nothing is ranked."
        found = [(one.entry, [reason.text for reason in one.reasons]) for one in shown.table.unrankable]
        found += [(entry, [none]) for entry in shown.table.outside if entry.kind != "original"]
        if not any(ranking.competitors for ranking in shown.table.tables):
            found += [(entry, ["It does not compete."]) for entry in shown.entries if entry.kind == "original"]
        rows = []
        for entry, reasons in found:
            kind = REFERENCES.get(entry.kind, "")
            marks = tuple(mark for mark in ("late" if entry.is_late else "", kind) if mark)
            numbers = (average_cell(measured_of(entry, average)) for average in shown.averages)
            why = Cell(" ".join([*reasons, *self.private.get(entry.key, ())]))
            cells = (system_cell(entry, marks), Cell(entry.team_name), *numbers, why)
            rows.append(TableRow(cells, "reference" if kind else ""))
        if not rows:
            return None
        averages = (Column(average.key, average.heading, kind="num") for average in shown.averages)
        names = (Column("system", "System"), Column("team", "Team", kind="team"))
        return Table(
            columns=(*names, *averages, Column("why", "Why", kind="text notes")),
            groups=(Group(tuple(rows)),),
            title="Systems that are not ranked",
            lead="Systems and baselines that are not ranked",
            caption=", with the reason.",
            styles="leaderboard",
        )


def system_cell(entry: Entry, marks: tuple[str, ...]) -> Cell:
    """The name of a system, leading to its page."""
    link = "" if entry.kind == "original" else reverse("systems:detail", args=[entry.key])
    return Cell(entry.label, value=entry.label, link=link, marks=marks)


def average_cell(measured: Measured | None) -> Cell:
    """An average with its interval."""
    if measured is None:
        return Cell()
    interval = measured.interval
    span = f"{decimals(interval[0], DIGITS - 1)} to {decimals(interval[1], DIGITS - 1)}" if interval else ""
    marks = ("reported",) if measured.is_reported else ()
    return Cell(decimals(measured.value, DIGITS), span, value=measured.value, marks=marks)


def measured_of(entry: Entry, column: ShownAverage) -> Measured | None:
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


# Rows ----------------------------------------------------------------------------------------------


def _notes(row: Row, utility: ShownAverage, has_intervals: bool) -> tuple[str, ...]:
    notes = [reason.text for reason in (*row.reasons, *row.notes)]
    if row.place is Place.RANKED and has_intervals and row.utility.interval is None:
        notes.append(f"Its {utility.metric.label} has no interval, so it belongs to no group.")
    return tuple(notes)


def _average(leaderboard: Leaderboard, key: str) -> ShownAverage | None:
    return next((one for one in leaderboard.averages if one.key == key), None)


def _natural_order(leaderboard: Leaderboard, sort: str) -> Order:
    """The best first: what a heading does when first chosen."""
    average = _average(leaderboard, sort)
    return "desc" if average and average.metric.direction == "higher" else "asc"


def _chosen_order(leaderboard: Leaderboard, sort: str, order: str) -> tuple[str, Order]:
    """The column and the order asked for; an unknown one is as none."""
    keys = {*(key for key, _, _ in NAMES), *(average.key for average in leaderboard.averages)}
    sort = sort if sort in keys else "rank"
    return sort, cast("Order", order) if order in ARIA_SORT else _natural_order(leaderboard, sort)


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
    """For organizers: how many reported numbers differ."""
    return f"{count:,} reported number{' differs' if count == 1 else 's differ'} from ours (seen by organizers only)."


def _missed(leaderboard: Leaderboard, miss: Miss) -> str:
    eer = miss.entry.privacy.value if miss.entry.privacy else None
    return (
        f"{miss.entry.label} misses this condition by {miss.distance:g} percentage points (EER {eer:g} %), which is "
        f"within {leaderboard.policy.note_within:g} of its limit."
    )


def _weights(leaderboard: Leaderboard) -> list[tuple[ShownAverage, list[tuple[str, str]]]]:
    """How much each data set counts in each average."""
    track, found = track_of(leaderboard.edition), []
    for shown in leaderboard.averages:
        average = next((one for one in track.averages if one.metric == shown.key), None)
        weights = average.weights.get(leaderboard.policy.split, {}) if average else {}
        if weights:
            found.append((shown, [(name, f"{weight:g}") for name, weight in weights.items()]))
    return found


def _figure(leaderboard: Leaderboard, drawing: Drawing, number: int) -> dict[str, Any]:
    """A figure as `components/figure.html` takes it. Its address changes with what it shows."""
    mark = figure_key(drawing.description(), "svg").rpartition("/")[2][:12]

    def address(extension: str, **form: str) -> str:
        where = reverse("leaderboard:figure", args=[leaderboard.edition.name, drawing.slug, extension])
        return f"{where}?{urlencode({'v': mark} | form)}"

    words = _tradeoff(leaderboard, drawing) if drawing.points else _bars(drawing)
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


def _tradeoff(leaderboard: Leaderboard, drawing: Drawing) -> dict[str, Any]:
    points, label = drawing.points, drawing.column.metric.label
    return {
        "title": "Privacy against utility",
        "is_tradeoff": True,
        "caption": _tradeoff_caption(leaderboard, drawing.column),
        "alt": f"EER against {label} of {len(points)} points, one for each system; the numbers follow as a table.",
        "numbers": number_table(
            "Privacy and utility of each system",
            ["System", "EER, %", drawing.column.heading],
            ((one.name, decimals(one.eer, DIGITS), decimals(one.utility, DIGITS)) for one in points),
            styles="",
        ),
    }


def _bars(drawing: Drawing) -> dict[str, Any]:
    is_gated = drawing.minimum is not None
    diamond = " The diamond is the lowest data set, which must be beyond the dashed line." if is_gated else ""
    return {
        "title": drawing.column.metric.label,
        "caption": "Average of each system, baselines hatched; lines are 95 % intervals where there are any." + diamond,
        "alt": f"A bar for each of {len(drawing.bars)} systems; the numbers follow as a table.",
        "numbers": number_table(
            f"{drawing.column.metric.label} of each system",
            ["System", drawing.column.heading, *["Lowest data set"] * is_gated],
            (
                (bar.name, decimals(bar.value, DIGITS), *[decimals(bar.least, DIGITS)] * is_gated)
                for bar in drawing.bars
            ),
            styles="",
        ),
    }


def _tradeoff_caption(leaderboard: Leaderboard, column: ShownAverage) -> str:
    lines = "; dashed lines are the minimum EERs of the conditions" if leaderboard.policy.minimum_eers else ""
    side = "down" if column.metric.direction == Direction.LOWER else "up"
    return (
        f"Average EER of the attacker and average {column.metric.label} of each system: further right is more private, "
        f"further {side} more useful. Systems of one team share colour and shape, baselines are grey, original speech "
        f"is dark{lines}. Thin lines are 95 % intervals where there are any."
    )


ABSENT = "not in this condition"


def edited_policy(edition: Edition) -> LeaderboardPolicy:
    """What the form starts from: the draft, or the live policy where there is none."""
    return policy_by(edition, edition.draft_policy or edition.leaderboard_policy)


def policy_page(edition: Edition) -> dict[str, Any]:
    """The live policy in words, and what a draft would change."""
    entries, measured_at = load_entries(edition)
    live = rank_leaderboard(edition, entries, measured_at, edition.leaderboard_policy)
    page: dict[str, Any] = {"edition": edition, "live": live, "live_words": policy_in_words(live.policy)}
    if not edition.draft_policy:
        return page
    draft = rank_leaderboard(edition, entries, measured_at, edition.draft_policy)
    before, after = page["live_words"], policy_in_words(draft.policy)
    changes = [_changes(found, live.policy, draft.policy) for found in moves(live.table, draft.table)]
    return page | {
        "draft": draft,
        "dropped_words": [words for words in before if words not in after],
        "new_words": [words for words in after if words not in before],
        "changes": changes,
        "n_moves": sum(len(one["moves"]) for one in changes),
    }


def publish_page(edition: Edition) -> dict[str, Any]:
    """Who stands on the leaderboard, for the question whether to publish or freeze it."""
    leaderboard = build_leaderboard(edition)
    systems = [entry for entry in leaderboard.entries if entry.kind == "system"]
    return {
        "edition": edition,
        "leaderboard": leaderboard,
        "n_systems": len(systems),
        "teams": sorted({entry.team_name for entry in systems}),
        "n_ranked": len({row.entry.key for table in leaderboard.table.tables for row in table.ranked}),
    }


def freeze_page(edition: Edition, at: datetime | None) -> dict[str, Any]:
    """Who stands on the leaderboard, and once a time is chosen, what it would hold as of then."""
    page = publish_page(edition)
    if at is None:
        return page
    known = edition.frozen_at
    edition.frozen_at = at  # of the object at hand only
    preview = publish_page(edition)
    edition.frozen_at = known
    leaderboard = preview["leaderboard"]
    preview["tables"] = [
        {"title": condition_in_words(one.minimum, one.upper, leaderboard.policy), "rows": one.ranked}
        for one in leaderboard.table.tables
    ]
    standing = {entry.key for entry in preview["leaderboard"].entries if entry.kind == "system"}
    gone = [entry for entry in page["leaderboard"].entries if entry.kind == "system" and entry.key not in standing]
    return page | {"at": at, "preview": preview, "gone": gone}


def _changes(found: ConditionMoves, live: LeaderboardPolicy, draft: LeaderboardPolicy) -> dict[str, Any]:
    table, policy = (found.after, draft) if found.after else (found.before, live)
    upper = table.upper if table else None
    title = condition_in_words(found.minimum, upper, policy)
    utility = find_metric(table.utility.metric, table.utility.estimator).label if table else found.utility
    listed = [_move(one) for one in found.moves]
    return {
        "title": title,
        "utility": utility,
        "is_new": found.before is None,
        "is_gone": found.after is None,
        "moves": listed,
        "table": _moves_table(f"Who moves: {title}, by {utility}", listed),
        "unmoved": found.unmoved,
    }


def _moves_table(title: str, listed: list[dict[str, Any]]) -> Table | None:
    if not listed:
        return None
    heads = ("System", "Team", "Live", "Draft")
    rows = ([move["entry"].label, move["entry"].team_name, move["before"], _draft_cell(move)] for move in listed)
    return plain_table(title, (Column(head, head) for head in heads), rows, styles="strip")


def _draft_cell(move: dict[str, Any]) -> Cell:
    drawn = format_html('<span class="move" data-direction="{}">{}</span>', move["direction"], move["after"])
    return Cell(move["after"], drawing=drawn)


def _move(move: Move) -> dict[str, Any]:
    before, after = _place(move.before), _place(move.after)
    ranks = (move.before.rank if move.before else None, move.after.rank if move.after else None)
    direction = "up" if _height(ranks[1]) > _height(ranks[0]) else "down" if ranks[0] != ranks[1] else "same"
    return {"entry": move.entry, "before": before, "after": after, "direction": direction}


def _place(row: Row | None) -> str:
    return ABSENT if row is None else place_in_words(row)


def _height(rank: int | None) -> float:
    return float("-inf") if rank is None else -rank
