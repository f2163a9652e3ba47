"""What the pages of the versions of a recipe show: the versions, what one changes, and who moves by it.

Systems are compared by their stored numbers: both recipes average and rank the same numbers of data sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.http import Http404
from django.urls import reverse

from common.tables import Cell, Column, Table, plain_table
from evaluation.app.objective_results.selectors import list_version_runs
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, Place, RankingRow, RankingTable
from evaluation.protocols.ranking.policy import condition_in_words
from evaluation.protocols.ranking.ranking import ConditionMoves, moves
from evaluation.protocols.recipes import Utility
from evaluation.protocols.versions import Change
from portal.challenges.models import Edition, RecipeVersion
from portal.challenges.selectors import export_version, list_versions
from portal.core.labels import MISSING, moment_cell
from portal.core.models import AuditEvent
from portal.jobs.models import JobState
from portal.leaderboard.changes import list_version_changes
from portal.leaderboard.policy.pages import ABSENT
from portal.leaderboard.selectors import Leaderboard, VersionView, load_entries, rank_leaderboard
from portal.leaderboard.services import FROZEN_RECIPE
from portal.leaderboard.tables import place_in_words, round_average

DIGITS = 3
MOST_NAMED = 3  # systems in one sentence
PUBLICATIONS = {
    "board.published": "published",
    "board.published_again": "published again",
    "board.unpublished": "taken back",
}
COLUMNS = (
    *("minimum_eer", "below_eer", "ranked_by", "estimator", "system", "label", "team"),
    *("place_before", "place_after", "rank_before", "rank_after", "eer_before", "eer_after", "eer_difference"),
    *("value_before", "value_after", "difference"),
)


@dataclass(frozen=True)
class ComparedSystem:
    """A system of a team in one ranking by two versions; None where it stands in this ranking by one of them only.

    Attributes:
        utilities: the metric that ranks, by each version.
    """

    entry: LeaderboardEntry
    before: RankingRow | None
    after: RankingRow | None
    utilities: tuple[Utility | None, Utility | None]

    @property
    def ranks(self) -> tuple[int | None, int | None]:
        return self.before.rank if self.before else None, self.after.rank if self.after else None

    @property
    def moves(self) -> bool:
        """Whether its rank differs, or it enters or leaves the ranking."""
        return self.ranks[0] != self.ranks[1] or (self.before is None) != (self.after is None)

    @property
    def distance(self) -> float:
        """How far it moves; who gets or loses a rank moves further than who keeps one."""
        old, new = self.ranks
        return abs(old - new) if old and new else 0 if old == new else float("inf")

    @property
    def privacy(self) -> tuple[float | None, float | None]:
        """The average EER by each version."""
        return (self.before.privacy.value if self.before else None, self.after.privacy.value if self.after else None)

    @property
    def differs(self) -> tuple[bool, bool]:
        """Whether its EER and the average that ranks it differ in what is shown."""
        first, second = (_signed(_difference(pair)) not in ("0", MISSING) for pair in (self.privacy, self.values))
        return first, second

    @property
    def values(self) -> tuple[float | None, float | None]:
        """The average that ranks, by each version."""
        return (self.before.utility.value if self.before else None, self.after.utility.value if self.after else None)


@dataclass(frozen=True)
class ComparedRanking:
    """One condition by one utility, by two versions. `systems`: those that move first."""

    title: str
    utility: str
    minimum: float
    upper: float | None
    is_new: bool
    is_gone: bool
    systems: tuple[ComparedSystem, ...]


@dataclass(frozen=True)
class Comparison:
    """Two leaderboards of the same systems, by two versions of a recipe."""

    before: Leaderboard
    after: Leaderboard
    rankings: tuple[ComparedRanking, ...]

    @property
    def lasting(self) -> tuple[ComparedRanking, ...]:
        """Those of conditions that both versions have."""
        return tuple(one for one in self.rankings if not (one.is_new or one.is_gone))

    @property
    def moved(self) -> set[str]:
        """The systems that move in any ranking of a condition that both versions have."""
        return {one.entry.key for ranking in self.lasting for one in ranking.systems if one.moves}

    @property
    def n_systems(self) -> int:
        return sum(one.kind == "system" for one in self.after.entries)

    @property
    def sentences(self) -> list[str]:
        """Which conditions go and come, how many move in the others, who moves furthest, and who is in none."""
        changed = [
            f"{words}: {', '.join(titles)}."
            for words, titles in (
                ("Conditions that go", dict.fromkeys(one.title for one in self.rankings if one.is_gone)),
                ("New conditions", dict.fromkeys(one.title for one in self.rankings if one.is_new)),
            )
            if titles
        ]
        where = " in conditions that both versions have" if changed else ""
        if not self.moved:
            return [*changed, f"No rank changes{where}; {_count(self.n_systems)} on the leaderboard.", *self.left_out]
        n, many = len(self.moved), f"{len(self.moved)} of {_count(self.n_systems)}"
        found = [(one.distance, ranking, one) for ranking in self.lasting for one in ranking.systems if one.moves]
        _, ranking, one = max(found, key=lambda each: each[0])
        return [
            *changed,
            f"{many} move{'s' if n == 1 else ''}{where}.",
            f"{self.move_in_words(one, ranking)}.",
            *self.left_out,
        ]

    @property
    def left_out(self) -> list[str]:
        """Systems that compete in a condition by the earlier version and in none by the later one, with their EER."""
        competing = {
            one.entry.key: one.entry.label for ranking in self.rankings for one in ranking.systems if one.before
        }
        staying = {one.entry.key for ranking in self.rankings for one in ranking.systems if one.after}
        limits = [one.minimum for one in self.rankings if not one.is_gone]
        lowest = f"; the lowest limit is {min(limits):g} %" if limits else ""
        out = [f"{label} ({self._eer_after(key)})" for key, label in competing.items() if key not in staying]
        if not out:
            return []
        shown = ", ".join(out[:MOST_NAMED]) + (f" and {len(out) - MOST_NAMED} more" if len(out) > MOST_NAMED else "")
        return [f"In no condition any more: {shown}{lowest}."]

    def move_in_words(self, one: ComparedSystem, ranking: ComparedRanking) -> str:
        """Such as ``T04-p1 rises from 4 to 1 in the condition …`` or ``T04-p1 leaves the condition …: EER 27 %``."""
        (old, new), label = one.ranks, one.entry.label
        if one.after is None:
            return f"{label} leaves the condition {ranking.title}: {self._eer_after(one.entry.key)}"
        if one.before is None:
            rank = f", rank {new}" if new else ", without a rank"
            return f"{label} enters the condition {ranking.title}: {self._eer_after(one.entry.key)}{rank}"
        if old and new:
            moved = f"{'rises' if new < old else 'falls'} from {old} to {new}"
        else:
            moved = f"gets rank {new}" if new else f"loses rank {old}"
        return f"{label} {moved} in the condition {ranking.title}"

    def _eer_after(self, key: str) -> str:
        """Such as ``EER 27.4 %``, by the later version."""
        found = next((one.privacy for one in self.after.entries if one.key == key and one.privacy), None)
        return f"EER {round_average(found, '%')[0]} %" if found else "no EER"

    @property
    def lacking(self) -> list[tuple[str, str]]:
        """Systems without a number that the later version ranks by, and which."""
        known = {one.entry.key for one in self.before.table.unrankable}
        return [
            (one.entry.label, " ".join(reason.text for reason in one.reasons))
            for one in self.after.table.unrankable
            if one.entry.key not in known and one.entry.kind == "system"
        ]


def compare_versions(edition: Edition, before: RecipeVersion, after: RecipeVersion) -> Comparison:
    """Return the leaderboard of an edition by two versions of its recipe, each with its policy."""
    old, new = (_leaderboard(edition.by_version(one)) for one in (before, after))
    rankings = tuple(_compared(one, old, new) for one in moves(old.table, new.table))
    return Comparison(old, new, rankings)


def comparison_of(view: VersionView) -> Comparison:
    """Who moves by a version, or "not found" for those who may not see it."""
    if view.before is None or not view.may_compare:
        raise Http404
    return compare_versions(view.edition, view.before, view.version)


def _leaderboard(edition: Edition) -> Leaderboard:
    entries, measured_at = load_entries(edition)
    return rank_leaderboard(edition, entries, measured_at, edition.leaderboard_policy)


def _compared(found: ConditionMoves, old: Leaderboard, new: Leaderboard) -> ComparedRanking:
    table, policy = (found.after, new.policy) if found.after else (found.before, old.policy)
    upper = table.upper if table else None
    rows = [{row.entry.key: row for row in _competitors(one)} for one in (found.before, found.after)]
    utilities = (
        found.before.utility if found.before else None,
        found.after.utility if found.after else None,
    )
    names = dict.fromkeys([*rows[1], *rows[0]])
    systems = (
        ComparedSystem((rows[1].get(one) or rows[0][one]).entry, rows[0].get(one), rows[1].get(one), utilities)
        for one in names
    )
    return ComparedRanking(
        title=condition_in_words(found.minimum, upper, policy),
        utility=next((_metric(one).label for one in reversed(utilities) if one), found.utility),
        minimum=found.minimum,
        upper=upper,
        is_new=found.before is None,
        is_gone=found.after is None,
        systems=tuple(sorted(systems, key=lambda one: not one.moves)),
    )


def _competitors(table: RankingTable | None) -> Iterator[RankingRow]:
    return (row for row in (table.rows if table else ()) if row.place is not Place.REFERENCE)


def _metric(utility: Utility) -> Metric:
    return find_metric(utility.metric, utility.estimator)


def _count(number: int) -> str:
    return f"{number} system{'' if number == 1 else 's'}"


# Pages ---------------------------------------------------------------------------------------------


def versions_page(edition: Edition, versions: list[RecipeVersion], *, manages: bool) -> dict[str, Any]:
    """The versions of a recipe, the newest first."""
    draft = next((one for one in versions if one.is_draft), None)
    rows: Iterable[list[Cell | str]] = (
        [
            Cell(f"Version {one.number}", link=_address("version", edition, one.number)),
            Cell(one.state, marks=tuple(_marks(edition, one))),
            moment_cell(one.adopted_at or one.withdrawn_at or one.created_at),
            one.note or ("What the edition began with." if one.number == 1 else MISSING),
        ]
        for one in reversed(versions)
    )
    heads = [Column("version", "Version"), Column("state", "State"), Column("since", "Since (UTC)")]
    table = plain_table("Versions of the recipe", [*heads, Column("why", "Why", kind="text")], rows)
    publications = list_publications(edition)
    return {"edition": edition, "manages": manages, "table": table, "draft": draft, "publications": publications}


def list_publications(edition: Edition) -> Table | None:
    """When the leaderboard was published and taken back, by which version, the newest first; from the audit log."""
    of = {"subject_type": edition._meta.label_lower, "subject_id": str(edition.pk)}
    events = AuditEvent.objects.filter(**of, action__in=PUBLICATIONS).order_by("-pk")
    rows: list[list[Cell | str]] = [
        [moment_cell(one.at), PUBLICATIONS[one.action], f"Version {one.data.get('recipe_version', 1)}"]
        for one in events
    ]
    columns = [Column("at", "Date (UTC)"), Column("what", "Leaderboard"), Column("version", "Recipe")]
    return plain_table("Publications", columns, rows) if rows else None


def is_published_version(edition: Edition, version: RecipeVersion) -> bool:
    """Whether the published leaderboard is by this version."""
    shown = edition.published_number or edition.recipe_number
    return edition.published_at is not None and version.number == shown


def _marks(edition: Edition, version: RecipeVersion) -> Iterator[str]:
    if version.number == edition.recipe_number:
        yield "in use"
    if is_published_version(edition, version):
        yield "published"


def version_page(view: VersionView) -> dict[str, Any]:
    """One version: its text, what it changes, and to those who may see it who moves."""
    edition, version, before = view.edition, view.version, view.before
    page: dict[str, Any] = {
        "edition": edition,
        "manages": view.manages,
        "version": version,
        "before": before,
        "text": export_version(version),
        "marks": list(_marks(edition, version)),
        "problem": FROZEN_RECIPE if edition.frozen_at and not edition.published_at else "",
    }
    if before is None:
        return page
    page["changes"] = _changes_table(list_version_changes(edition, before, version))
    if view.may_compare:
        page |= comparison_page(edition, before, version)
    if view.manages:
        page["work"] = _describe_work(edition, version)
    return page


def _describe_work(edition: Edition, version: RecipeVersion) -> str:
    """How far the submissions are computed again by a version; empty where none has to be, or all are."""
    states = Counter(run.job.state for run in list_version_runs(edition, version.number) if run.job)
    done, n_all = states[JobState.SUCCEEDED], states.total()
    if done == n_all:
        return ""
    stopped = states[JobState.FAILED] + states[JobState.CANCELLED]
    failed = f" {stopped} stopped: see the list of jobs." if stopped else ""
    return (
        f"{done} of {n_all} submissions are computed again by this version. The averages of the others follow from the "
        f"stored numbers of their data sets and have no interval yet.{failed}"
    )


def comparison_page(edition: Edition, before: RecipeVersion, after: RecipeVersion) -> dict[str, Any]:
    """Who moves from one version to another, as a table for each ranking."""
    found = compare_versions(edition, before, after)
    address = _address("version-csv", edition, after.number)
    tables = [(one, *_ranking_tables(one, before, after)) for one in found.rankings]
    return {"comparison": found, "rankings": tables, "csv": address}


def again_page(edition: Edition) -> dict[str, Any]:
    """What publishing again, by the adopted version, would change."""
    page: dict[str, Any] = {"edition": edition, "is_later": edition.published_number is not None}
    if edition.published_at is not None and edition.published_number is not None:
        versions = {one.number: one for one in list_versions(edition)}
        before, after = versions[edition.published_number], versions[edition.recipe_number]
        changes = _changes_table(list_version_changes(edition, before, after))
        page |= {"before": before, "version": after, "changes": changes}
        page |= comparison_page(edition, before, after) | {"csv": ""}
    return page


def comparison_rows(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    """A header, then each system in each ranking, with every digit."""
    yield COLUMNS
    for ranking in comparison.rankings:
        for one in ranking.systems:
            utility = one.utilities[1] or one.utilities[0]
            keys = (utility.metric, utility.estimator) if utility else ("", "")
            places = tuple(row.place.value if row else "" for row in (one.before, one.after))
            differences = (*one.privacy, _difference(one.privacy)), (*one.values, _difference(one.values))
            start = (ranking.minimum, ranking.upper, *keys, one.entry.key, one.entry.label, one.entry.team_name)
            yield (*start, *places, *one.ranks, *differences[0], *differences[1])


def _changes_table(changes: Iterable[Change]) -> Table:
    columns = [Column("key", "Field"), Column("before", "Before"), Column("after", "After")]
    rows = ([one.key, one.before or MISSING, one.after or MISSING] for one in changes)
    return plain_table("What changes in the recipe", columns, rows, styles="stack")


def _ranking_tables(
    ranking: ComparedRanking, before: RecipeVersion, after: RecipeVersion
) -> tuple[Table | None, Table | None]:
    """Those that move, and the others; a number that no system has changed stands there once."""
    versions = tuple(f"v{one.number}" for one in (before, after))
    unit = next((f", {_metric(one).unit}" for one in _utilities(ranking) if one and _metric(one).unit), "")
    numbers = [("eer", "EER", ", %", _privacy_cells), ("value", ranking.utility, unit, _value_cells)]
    differ = [any(one.differs[place] for one in ranking.systems) for place in range(2)]
    columns = [Column("system", "System"), Column("team", "Team")]
    columns += [Column(f"rank_{one}", f"Rank, {one}", kind="rank") for one in versions]
    for (key, label, end, _), has_both in zip(numbers, differ, strict=True):
        if has_both:
            columns += [Column(f"{key}_{one}", f"{label}, {one}{end}", kind="num") for one in versions]
            columns.append(Column(f"{key}_difference", "Difference", kind="num"))
        else:
            columns.append(Column(key, f"{label}{end}", kind="num"))

    def cells(one: ComparedSystem) -> Iterator[Cell | str]:
        yield one.entry.label
        yield one.entry.team_name
        for row in (one.before, one.after):
            yield place_in_words(row) if row else ABSENT
        for (*_, make), has_both in zip(numbers, differ, strict=True):
            old, new, difference = make(one)
            yield from (old, new, difference) if has_both else (new if one.after else old,)

    def table(title: str, systems: list[ComparedSystem]) -> Table | None:
        named = f"{title}: {ranking.title}, by {ranking.utility}"
        rows = map(cells, systems)
        return plain_table(named, columns, rows, is_caption_hidden=True, caption=named) if systems else None

    moved, others = ([one for one in ranking.systems if one.moves is is_moved] for is_moved in (True, False))
    return table("Who moves", moved), table("Who keeps the rank", others)


def _utilities(ranking: ComparedRanking) -> Iterator[Utility | None]:
    return (utility for one in ranking.systems for utility in reversed(one.utilities))


def _privacy_cells(one: ComparedSystem) -> tuple[Cell | str, ...]:
    numbers = (_number(row.privacy, "%") if row else MISSING for row in (one.before, one.after))
    return (*numbers, _signed(_difference(one.privacy)))


def _value_cells(one: ComparedSystem) -> tuple[Cell | str, ...]:
    units = (_metric(utility).unit if utility else "" for utility in one.utilities)
    pairs = zip((one.before, one.after), units, strict=True)
    numbers = (_number(row.utility, unit) if row else MISSING for row, unit in pairs)
    return (*numbers, _signed(_difference(one.values)))


def _number(measured: MeasuredValue, unit: str) -> Cell:
    text, around = round_average(measured, unit)
    return Cell(text, around)


def _difference(pair: tuple[float | None, float | None]) -> float | None:
    old, new = pair
    return None if old is None or new is None else new - old


def _signed(difference: float | None) -> str:
    if difference is None:
        return MISSING
    return "0" if abs(difference) < 0.5 * 10**-DIGITS else f"{difference:+.{DIGITS}f}".replace("-", "−")


def _address(name: str, edition: Edition, number: int) -> str:
    return reverse(f"leaderboard:{name}", args=[edition.name, number])
