"""The one table of a leaderboard: every system once, placed by the condition and the utility that a reader chose.

What was chosen stands in the address (`LeaderboardChoice`): each view can be linked to, and sorts without script.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlencode

from django.urls import reverse

from common.rounding import few_digits, fixed, has_width, interval_digits, round_to_interval
from common.tables import ARIA_SORT, Cell, Column, Group, Order, Row, Table
from evaluation.formats.results import ATTACKS_EXPLAINED, AttackModel, explain_attack
from evaluation.metrics.catalogue import Direction, find_metric
from evaluation.objective_results.attack_strength import NOT_RELIABLE
from evaluation.objective_results.leaderboard_entries import ShownAverage
from evaluation.objective_results.values import NO_INTERVALS
from evaluation.protocols.published import PublishedSystem
from evaluation.protocols.ranking.entries import LeaderboardEntry, MeasuredValue, Miss, Place, RankingRow, RankingTable
from evaluation.protocols.ranking.policy import LeaderboardPolicy, condition_in_words
from evaluation.protocols.ranking.ranking import (
    CHANCE_EER,
    find_missed_by_lower,
    is_above_chance,
    missed_limit_notes,
    reaches,
)
from portal.core.labels import decimals
from portal.leaderboard.figures import link_of
from portal.leaderboard.selectors import Leaderboard

DIGITS = 3  # of reported averages, as the official scripts print them, and the most of any
ANCHOR = "ranking"
HIDE, ALL, LISTENERS = "hide", "all", "listeners"
PUBLISHED = "published, not measured here"
# By parameter of the address: label, the parameter again, what without and with it is shown.
SWITCHES = {
    "languages": ("Languages", "languages", ("Averages", "Each")),
    "privacy": ("Privacy", "privacy", ("EER", "Beyond the EER")),
    "words": ("Words", "words", ("As ranked", "Retrained recogniser")),
    "naturalness": ("Naturalness", "naturalness", ("None", "Predicted")),
}
REFERENCES = {"baseline": "baseline", "original": "original"}


@dataclass(frozen=True)
class LeaderboardChoice:
    """What a reader asked for.

    Attributes:
        ranking: the condition and utility that ranks; None where nothing is ranked.
        sort, order: the column by which the table stands, and which way.
        shows_published: whether systems of papers stand among the others.
        query: what of the address differs from the page's own, but for the order.
    """

    ranking: RankingTable | None
    sort: str
    order: Order
    shows_published: bool = True
    query: Mapping[str, str] = field(default_factory=dict)

    def address(self, **changes: str | None) -> str:
        """Return the end of the address with changes; None leaves one out."""
        changed = {key: value for key, value in {**self.query, **changes}.items() if value is not None}
        return f"?{urlencode(changed)}"


@dataclass(frozen=True)
class LeaderboardLine:
    """A row of the table, whatever it is of: a system of this leaderboard, or one of a paper.

    Attributes:
        rank: in the chosen condition; `place_text` says why there is none.
        place: how it looks: ``ranked``, ``unranked``, ``reference``, ``outside`` or ``published``.
        doubts: what a reader must know of its EER, in some words each.
        reasons: why it has no rank, and what else a reader should know.
        description: the address of what its team wrote of it.
    """

    label: str
    place_text: str
    place: str
    numbers: Mapping[str, MeasuredValue]
    rank: int | None = None
    link: str = ""
    description: str = ""
    team: str = ""
    marks: tuple[str, ...] = ()
    group: str = ""
    met: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def read_choice(leaderboard: Leaderboard, given: Mapping[str, str]) -> LeaderboardChoice:
    """Return what an address asks for; whatever it names that is not there is as if it were not named.

    Args:
        given: ``condition`` (its minimum EER), ``by`` (the utility), ``published`` (``hide``), ``privacy``,
            ``words``, ``naturalness`` and ``languages`` (``all``), ``set`` (of the DET curves, or ``listeners``),
            ``sort`` and ``order``.
    """
    tables, utilities = leaderboard.table.tables, [one.metric for one in leaderboard.policy.utilities]
    minima = list(dict.fromkeys(f"{table.minimum:g}" for table in tables))
    query = {}
    if given.get("condition") in minima[1:]:
        query["condition"] = given["condition"]
    if given.get("by") in utilities[1:]:
        query["by"] = given["by"]
    if given.get("published") == HIDE:
        query["published"] = HIDE
    if given.get("set") in (*list_sets(leaderboard), LISTENERS):
        query["set"] = given["set"]
    query |= {one.switch: ALL for one in leaderboard.columns if one.switch and given.get(one.switch) == ALL}
    minimum, utility = query.get("condition", minima[0] if minima else ""), query.get("by", "".join(utilities[:1]))
    asked = (one for one in tables if f"{one.minimum:g}" == minimum and one.utility.metric == utility)
    sort, order = given.get("sort", ""), given.get("order", "")
    columns = _columns(leaderboard, query)
    sort = sort if sort in {"rank", "system", *(one.key for one in columns)} else "rank"
    chosen = cast("Order", order) if order in ARIA_SORT else _natural_order(leaderboard, sort)
    return LeaderboardChoice(next(asked, None), sort, chosen, "published" not in query, query)


def switches(leaderboard: Leaderboard, choice: LeaderboardChoice, *, has_published: bool) -> list[dict[str, Any]]:
    """Return the conditions, the utilities where there are several, and the systems of papers, as links to their
    views."""
    order = {"sort": choice.sort, "order": choice.order} if choice.sort != "rank" else {}
    found = _ranking_switches(leaderboard, choice, order)
    choices = [("Published systems", "published", ("Show", "Hide"), HIDE)] if has_published else []
    switched = {one.switch for one in leaderboard.columns}
    choices += [(*words, ALL) for one, words in SWITCHES.items() if one in switched]
    for label, parameter, texts, value in choices:
        is_on = parameter in choice.query
        links = [
            {"text": text, "address": choice.address(**{parameter: one}, **order), "is_current": is_current}
            for text, one, is_current in ((texts[0], None, not is_on), (texts[1], value, is_on))
        ]
        found.append({"label": label, "links": links})
    return found


def list_sets(leaderboard: Leaderboard) -> list[str]:
    """Return the data sets behind the EERs that decide."""
    return list(dict.fromkeys(name for entry in leaderboard.entries for name in entry.tests))


def _ranking_switches(
    leaderboard: Leaderboard, choice: LeaderboardChoice, order: Mapping[str, str]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]]
    tables, chosen = leaderboard.table.tables, choice.ranking
    if chosen is None:
        return []
    conditions = [
        {
            "text": limit_in_words(table, leaderboard.policy),
            "title": condition_in_words(table.minimum, table.upper, leaderboard.policy),
            "address": choice.address(condition=f"{table.minimum:g}" if number else None, **order),
            "is_current": table.minimum == chosen.minimum,
            "count": len(table.ranked),
        }
        for number, table in enumerate(one for one in tables if one.utility.metric == chosen.utility.metric)
    ]
    limit, attack = f"{chosen.minimum:g} %", leaderboard.policy.attack_model
    note = f"Conditions use the {attack} EER before it is rounded: one shown as {limit} may be just below it."
    found = [{"label": "Condition", "links": conditions, "note": note}]
    names = {one.key: one for one in leaderboard.averages}
    if len(leaderboard.policy.utilities) > 1:
        utilities = [
            {
                "text": names[one.metric].metric.label,
                "title": f"Ranked by {names[one.metric].metric.label}",
                "address": choice.address(by=one.metric if number else None, **order),
                "is_current": one.metric == chosen.utility.metric,
            }
            for number, one in enumerate(leaderboard.policy.utilities)
        ]
        found.append({"label": "Ranked by", "links": utilities})
    return found


def list_lines(
    leaderboard: Leaderboard,
    ranking: RankingTable | None,
    private: Mapping[str, tuple[str, ...]],
    published: Sequence[PublishedSystem] = (),
    described: Mapping[str, int] = MappingProxyType({}),
    heard: Container[str] = (),
    own_teams: Container[str] = (),
) -> list[LeaderboardLine]:
    """Return every entry once: those of the condition in the order of their utility, then the others.

    Args:
        private: notes on systems that only this reader sees.
        published: systems of papers; those that meet the condition stand where their utility places them.
        described: systems whose descriptions everybody may read, by name, with the version on the leaderboard.
        heard: systems of which everybody may hear samples, by name.
        own_teams: those of the reader, as entries name them.
    """
    met, rows = _find_met(leaderboard, ranking), ranking.rows if ranking else ()
    has_intervals = any(row.utility.interval for row in rows)
    unrankable = {one.entry.key: [reason.text for reason in one.reasons] for one in leaderboard.table.unrankable}

    def line(
        entry: LeaderboardEntry, place_text: str, place: str, reasons: Iterable[str], **of_row: Any
    ) -> LeaderboardLine:
        weak = [f"Its {leaderboard.policy.attack_model} attack is {NOT_RELIABLE}.", *entry.weak_attack]
        address = ""
        if entry.key in described:
            address = f"{reverse('systems:description', args=[entry.key])}?version={described[entry.key]}"
        marks = {
            "late": entry.is_late and place_text != "late",
            "samples": entry.key in heard,
            "your team": entry.team in own_teams,
        }
        return LeaderboardLine(
            label=entry.label,
            place_text=place_text,
            place=place,
            numbers={one.key: found for one in leaderboard.columns if (found := measured_of(entry, one)) is not None},
            link=link_of(entry),
            description=address,
            team=entry.team_name,
            marks=tuple(mark for mark, is_so in marks.items() if is_so),
            met=met.get(entry.key, ()),
            reasons=(*reasons, *(weak if entry.weak_attack else ()), *private.get(entry.key, ())),
            doubts=list_doubts(leaderboard, entry),
            **of_row,
        )

    lines = []
    for row in rows:
        reasons = [one.text for one in (*row.reasons, *row.notes)]
        if row.place is Place.RANKED and has_intervals and row.utility.interval is None:
            reasons.append("Its utility has no interval, so it belongs to no group.")
        of_row = {"rank": row.rank, "group": letters_of(row.groups)}
        lines.append(line(row.entry, place_in_words(row), row.place.value, reasons, **of_row))
    far = []
    for system in published:
        made, eer = _published_line(system), system.averages[leaderboard.policy.privacy.metric]
        has_utility = ranking is not None and ranking.utility.metric in system.averages
        if ranking and has_utility and _meets(eer, ranking, leaderboard.policy):
            lines.insert(_place_among(lines, made, ranking), made)
        else:
            far.append(made)
    held = {row.entry.key for row in rows}
    outside = [entry for entry in leaderboard.entries if entry.key not in held]
    outside.sort(key=lambda entry: (entry.key in unrankable, -(entry.privacy.value if entry.privacy else -1.0)))
    for entry in outside:
        none = _why_outside(leaderboard, ranking, is_anywhere=bool(met.get(entry.key)))
        reasons = unrankable.get(entry.key, [] if entry.kind == "original" else [none])
        if entry.key not in unrankable:
            reasons = [*reasons, *(one.text for one in missed_limit_notes(entry, leaderboard.policy))]
        words = "not ranked" if entry.key in unrankable or ranking is None else "not met"
        place_text = REFERENCES.get(entry.kind, words)
        if entry.kind == "baseline" and words == "not met":
            place_text = f"{place_text}, {words}"
        lines.append(line(entry, place_text, "outside" if entry.kind == "system" else "reference", reasons))
    return lines + far


def leaderboard_table(leaderboard: Leaderboard, choice: LeaderboardChoice, lines: Sequence[LeaderboardLine]) -> Table:
    """Return the lines in the order asked for."""
    decides = choice.ranking.utility.metric if choice.ranking else ""
    columns = [Column("rank", "Rank", kind="rank"), Column("system", "System")]
    columns += [
        Column(one.key, one.metric.label, kind="num best" if one.key == decides else "num", unit=one.metric.unit)
        for one in _columns(leaderboard, choice.query)
    ]
    columns = [
        column.sortable(_natural_order(leaderboard, column.key), choice.sort, choice.order, choice.query)
        for column in columns
    ]
    columns += [Column("met", "Conditions met (rank)", kind="met")] if any(line.met for line in lines) else []
    columns += [Column("group", "Group", kind="letters")] if any(line.group for line in lines) else []
    columns += [Column("description", "Paper", kind="paper")] if any(line.description for line in lines) else []
    rows = (_table_row(leaderboard, line, columns) for line in _sorted(lines, choice))
    return Table(
        columns=tuple(columns),
        groups=(Group(tuple(rows)),),
        title="Systems of this leaderboard",
        caption=_caption(lines),
        styles="leaderboard",
        header=1,
        anchor=ANCHOR,
    )


# Words ---------------------------------------------------------------------------------------------


def limit_in_words(table: RankingTable, policy: LeaderboardPolicy) -> str:
    """Return the condition in short: ``≥ 15 %``, ``> 15 %`` or ``15–20 %``."""
    if table.upper is not None:
        return f"{table.minimum:g}–{table.upper:g} %"
    return f"{'≥' if policy.inclusive else '>'} {table.minimum:g} %"


def summarize_ranking(leaderboard: Leaderboard, ranking: RankingTable | None) -> dict[str, Any]:
    """Return what ``leaderboard/_answer.html`` says: who leads, what speaks against it, who just missed."""
    if ranking is None:
        return {}
    policy, ranked = leaderboard.policy, ranking.ranked
    utility = find_metric(ranking.utility.metric, ranking.utility.estimator)
    leaders = [row for row in ranked if row.rank == 1]
    groups = {group for row in leaders[:1] for group in row.groups}
    alike = [row.entry.label for row in ranked if row.rank != 1 and groups & set(row.groups)]
    nearest, attack = ranking.nearest, AttackModel(policy.attack_model)
    others = dict.fromkeys(entry.lower_attack[0] for entry in leaderboard.entries if entry.lower_attack)
    return {
        "ranking": ranking,
        "note_within": policy.note_within,
        "utility": utility.label,
        "leaders": [_describe_leader(row, ranking) for row in leaders],
        "reached": write_number(leaders[0].utility, utility.unit) if leaders else "",
        "alike": alike[:3],
        "more_alike": len(alike[3:]),
        "most_private": _find_most_private(ranked),
        "has_systems": any(entry.kind == "system" for entry in leaderboard.entries),
        "as_of": leaderboard.as_of,
        "nearest": _describe_miss(nearest) if nearest else None,
        "missed": [_describe_miss(miss) for miss in ranking.just_missed],
        "attack": attack,
        "explained": ATTACKS_EXPLAINED[attack],
        "is_strongest": attack is AttackModel.SEMI_INFORMED,
        "other_attacks": [explain_attack(other) for other in others],
    }


def _describe_leader(row: RankingRow, ranking: RankingTable) -> dict[str, Any]:
    lower = row.entry.lower_attack
    return {
        "entry": row.entry,
        "lower_attack": lower[0] if lower else "",
        "lowest": write_number(lower[1], "%") if lower else "",
        "misses": lower is not None and lower[1].value < ranking.minimum,
        "above_chance": write_number(row.privacy, "%")
        if is_above_chance(row.privacy.value, row.privacy.interval)
        else "",
    }


def _find_most_private(ranked: Sequence[RankingRow]) -> dict[str, Any] | None:
    """Return whose lowest EER of all attacks is the highest; None where all are alike, or it is above chance."""
    lowest = {row.entry.label: row.entry.lower_attack[1] if row.entry.lower_attack else row.privacy for row in ranked}
    highest = max((measured.value for measured in lowest.values()), default=0.0)
    names = [label for label, measured in lowest.items() if measured.value == highest]
    if len(names) == len(ranked) or highest > CHANCE_EER:
        return None
    return {"names": names, "eer": write_number(lowest[names[0]], "%")}


def _describe_miss(miss: Miss) -> dict[str, Any]:
    """Return EER and distance in as many decimals as it takes to see that the condition is missed."""
    digits = few_digits(miss.distance, "%", DIGITS)
    eer = decimals(miss.entry.privacy.value if miss.entry.privacy else None, digits)
    return {"entry": miss.entry, "eer": eer, "distance": fixed(miss.distance, digits)}


def write_number(measured: MeasuredValue, unit: str) -> str:
    """Return a number with its unit and interval, such as ``7.8 % (7.4 to 8.2)``."""
    text, around = round_average(measured, unit)
    return f"{text}{f' {unit}' if unit else ''}{f' ({around})' if around else ''}"


def letters_of(groups: Iterable[int]) -> str:
    """``ab`` for the first and the second group; numbers where the alphabet ends."""
    return "".join(ascii_lowercase[number - 1] if number <= 26 else f" {number}" for number in groups)


def place_in_words(row: RankingRow) -> str:
    """Rank, or why there is none, in a word."""
    if row.place is Place.RANKED:
        return str(row.rank)
    if row.place is Place.REFERENCE:
        return REFERENCES[row.entry.kind]
    return "late" if any(reason.code == "late" for reason in row.reasons) else "not ranked"


def measured_of(entry: LeaderboardEntry, column: ShownAverage) -> MeasuredValue | None:
    """Return the average of an entry that a column shows."""
    if column.is_privacy:
        return entry.privacy
    return (entry.utilities if column.is_utility else entry.averages).get(column.key)


def list_doubts(leaderboard: Leaderboard, entry: LeaderboardEntry) -> tuple[str, ...]:
    """Return what stands beside an EER: a weak attacker, one that is misled, a lower attack that misses a limit."""
    doubts = [NOT_RELIABLE] if entry.weak_attack else []
    turned = entry.averages.get("better_sign_eer")
    if entry.privacy and turned and entry.privacy.value > max(CHANCE_EER, turned.value):
        doubts.append(f"{round_average(turned, '%')[0]} % with the better sign of each set")
    if found := find_missed_by_lower(entry, leaderboard.policy):
        doubts.append(f"{found[0]} attack: {found[1]} %")
    return tuple(doubts)


def average_cell(measured: MeasuredValue | None, unit: str, most: int = DIGITS) -> Cell:
    """Return an average with its interval, in the digits that this allows; all of them in its tooltip.

    Args:
        most: decimals of one without an interval, which is not to look surer than those that have one.
    """
    if measured is None:
        return Cell()
    text, around = round_average(measured, unit)
    if not around and not measured.is_reported and float(fixed(measured.value, most).replace("\u2212", "-")):
        text = min(text, fixed(measured.value, most), key=len)
    exact = decimals(measured.value, DIGITS)
    title = exact if not around else f"{exact}, from {measured.low:.3f} to {measured.high:.3f}"
    marks = ("reported",) if measured.is_reported else ()
    return Cell(text, around, value=measured.value, marks=marks, title=title)


def _most_digits(leaderboard: Leaderboard, column: ShownAverage) -> int:
    """Return the most decimals in a column that an interval leaves meaning to."""
    found = [one for entry in leaderboard.entries if (one := measured_of(entry, column))]
    ends = [one.interval for one in found if one.interval and has_width(*one.interval)]
    known = [interval_digits(low, high, DIGITS) for low, high in ends]
    return max(known, default=DIGITS)


def round_average(measured: MeasuredValue, unit: str) -> tuple[str, str]:
    """Return number and interval; what is reported keeps its digits."""
    return round_to_interval(
        measured.value, measured.low, measured.high, DIGITS, None if measured.is_reported else unit
    )


def _why_outside(leaderboard: Leaderboard, ranking: RankingTable | None, *, is_anywhere: bool) -> str:
    limits = leaderboard.policy.minimum_eers
    if ranking is None or not limits:
        return "Nothing is ranked."
    if not is_anywhere:
        return f"Reaches no condition: the lowest asks for {limits[0]:g} %."
    return f"Its EER does not meet this condition: {limit_in_words(ranking, leaderboard.policy)}."


def _caption(lines: Sequence[LeaderboardLine]) -> str:
    """Return how to read the table, in at most 20 words."""
    ours = [one for line in lines if line.place != "published" for one in line.numbers.values() if not one.is_reported]
    has_intervals = [one.interval is not None and has_width(*one.interval) for one in ours]
    words = "Beneath each number: its 95 % interval." if any(has_intervals) else ""
    if words and not all(has_intervals):
        words = "Beneath each number: its 95 % interval, where it can be estimated."
    elif ours and not words:
        words = NO_INTERVALS
    shared = " Under Group, a shared letter: overlapping intervals." if any(line.group for line in lines) else ""
    return words + shared


# Rows ----------------------------------------------------------------------------------------------


def _find_met(leaderboard: Leaderboard, ranking: RankingTable | None) -> dict[str, tuple[str, ...]]:
    """Return the conditions that each system meets, with its rank there, by its key."""
    found: dict[str, tuple[str, ...]] = {}
    for table in leaderboard.table.tables:
        if ranking is None or table.utility.metric != ranking.utility.metric:
            continue
        for row in table.rows:
            if row.entry.kind != "original":
                rank = f" ({row.rank})" if row.rank else ""
                badge = f"{limit_in_words(table, leaderboard.policy).lstrip('≥> ')}{rank}"
                found[row.entry.key] = (*found.get(row.entry.key, ()), badge)
    return found


def _published_line(system: PublishedSystem) -> LeaderboardLine:
    numbers = {metric: MeasuredValue(value) for metric, value in system.averages.items()}
    labels = ", ".join(find_metric(metric).label for metric in system.missing)
    reasons = (f"{labels}: not printed.",) if labels else ()
    return LeaderboardLine(
        system.name, "published", "published", numbers, link="#papers", team=PUBLISHED, reasons=reasons
    )


def _meets(eer: float, ranking: RankingTable, policy: LeaderboardPolicy) -> bool:
    is_past = ranking.upper is not None and reaches(eer, ranking.upper, inclusive=policy.inclusive)
    return reaches(eer, ranking.minimum, inclusive=policy.inclusive) and not is_past


def _place_among(lines: Sequence[LeaderboardLine], line: LeaderboardLine, ranking: RankingTable) -> int:
    """Before the first of them whose utility is worse."""
    metric, sign = ranking.utility.metric, 1 if ranking.utility.better == Direction.LOWER else -1
    own = line.numbers[metric].value * sign
    worse = (
        place for place, one in enumerate(lines) if metric in one.numbers and one.numbers[metric].value * sign > own
    )
    return next(worse, len(lines))


def _table_row(leaderboard: Leaderboard, line: LeaderboardLine, columns: Sequence[Column]) -> Row:
    known = {
        "rank": Cell(line.place_text, value=line.rank),
        "system": Cell(line.label, value=line.label, link=line.link, marks=line.marks, note=line.team),
        "group": Cell(line.group),
        "met": Cell(marks=line.met),
        "description": Cell("PDF" if line.description else "", link=line.description, title=f"Paper on {line.label}"),
    } | {
        one.key: average_cell(line.numbers.get(one.key), one.metric.unit, _most_digits(leaderboard, one))
        for one in leaderboard.columns
    }
    if line.place == "published":
        unknown = Cell("–", note="not printed")
        known |= {one.key: unknown for one in leaderboard.columns if one.is_utility and one.key not in line.numbers}
    key = leaderboard.policy.privacy.metric
    doubts = (one.replace(" %", "\u00a0%") for one in line.doubts)
    known[key] = replace(known[key], marks=(*known[key].marks, *doubts))
    return Row(tuple(known[column.key] for column in columns), line.place)


def _sorted(lines: Sequence[LeaderboardLine], choice: LeaderboardChoice) -> list[LeaderboardLine]:
    """Return lines by a column; those without a value last, whatever the order."""

    def value(line: LeaderboardLine) -> Any:
        if choice.sort == "rank":
            return line.rank
        if choice.sort == "system":
            return line.label.lower()
        measured = line.numbers.get(choice.sort)
        return measured.value if measured else None

    if choice.sort == "rank" and choice.order == "asc":
        return list(lines)  # unranked ones in their place
    known = [line for line in lines if value(line) is not None]
    return sorted(known, key=value, reverse=choice.order == "desc") + [line for line in lines if value(line) is None]


def _columns(leaderboard: Leaderboard, query: Mapping[str, str]) -> list[ShownAverage]:
    """Return the columns of numbers: what decides, and what the address asks for."""
    return [one for one in leaderboard.columns if one.is_privacy or one.is_utility or one.switch in query]


def _natural_order(leaderboard: Leaderboard, sort: str) -> Order:
    """Return the best first: what a heading does when first chosen."""
    average = next((one for one in leaderboard.columns if one.key == sort), None)
    return "desc" if average and average.metric.direction == "higher" else "asc"
