"""The objective numbers of a system as tables: texts ready to be read, with intervals and reported numbers beside them.

A reported number is shown to the team and the organizers only; that a number is only reported is said to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse

from common.rounding import few_digits
from common.tables import Cell, Column, Group, Row, Table
from evaluation.formats.results import AVERAGE_DECIMALS, AttackModel, Speech
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.metrics.linkability import FEW, FEW_TARGETS_EXPLANATION
from evaluation.objective_results.attack_strength import Reliability
from evaluation.objective_results.results.checks import is_unlike as differs_from_published
from evaluation.objective_results.results.checks import published_values
from evaluation.objective_results.values import (
    AVERAGE,
    BEYOND,
    DETECTION,
    NO_INTERVALS,
    PREDICTED,
    SATURATED,
    Basis,
    Number,
    ObjectiveValues,
    averaged_attacks,
    number_words,
)
from evaluation.protocols.ranking.policy import LeaderboardPolicy
from evaluation.protocols.ranking.ranking import CHANCE_EER, Condition, GateResult, conditions
from evaluation.protocols.ranking.ranking import check_gate as hold_gate
from evaluation.protocols.recipes import Average, DataSet, Gate, Recipe, Track
from portal.core.labels import decimals
from speech.predictors.dnsmos import WORTH

SPEECHES = {Speech.ORIGINAL: "original speech", Speech.ANONYMISED: "anonymised speech"}
RATES = frozenset({"eer", "wer"})
VOICES = (
    ("pitch_correlation", "praat"),
    ("pitch_correlation_realigned", "praat"),
    ("pitch_correlation_unrelated", "praat"),
    ("gain_of_voice_distinctiveness", "official"),
    ("de_identification", "official"),
)
CATEGORY = ("zebra_category", "")
CHANCE_RANKS = "rank_disclosure_shuffled"
SHARES = ("speakers_below_5", "speakers_below_10", "speakers_below_20")
BEYOND_SHOWN = tuple(key for key in BEYOND if key not in (CHANCE_RANKS, *SHARES))


# Parts of every table of numbers -------------------------------------------------------------------


def number_table(
    name: str,
    title: str,
    caption: str,
    heads: Sequence[str],
    groups: Iterable[Group],
    *,
    is_counted: bool = True,
    note: str = "",
) -> Table:
    """Return a table of numbers by data set; without counts by metric.

    Args:
        heads: of the columns of numbers.
        groups: of `number_group`.
        is_counted: whether its rows have an n.
        note: how to read it, where the caption has no room for it.
    """
    columns = [Column("set", "Data set" if is_counted else "Metric"), Column("of", "Speech or attack", kind="brief")]
    columns += [Column("n", "n", kind="brief num")] if is_counted else []
    columns += [Column(head, head, kind="num") for head in heads]
    return Table(
        tuple(columns),
        tuple(groups),
        title,
        caption,
        name=name,
        label=f"Table of {title.lower()}",
        styles="stack sets",
        missing="–",
        note=note,
    )


def number_group(title: str, rows: Iterable[Row], link: str = "") -> Group:
    """Return the rows of one data set or metric. `link`: where that is explained."""
    return Group(tuple(rows), head=Cell(title, link=link))


def number_row(of: str, cells: Iterable[Cell], n: int | None = None) -> Row:
    """Return a line of numbers. `of`: what they are of. `n`: how many they rest on, None in a table without counts."""
    counted = () if n is None else (Cell(f"{n:,}" if n else "", value=n),)
    return Row((Cell(of), *counted, *cells))


def number_cell(number: Number | None, digits: int | None = None, note: str = "", *, is_unlike: bool = False) -> Cell:
    """Return a number as it is read, its interval beneath it, with what limits it."""
    if number is None:
        return Cell()
    note = "; ".join(filter(None, [note, number.note]))
    wanted = number.metric.decimals if digits is None else digits
    if number.letter:
        return Cell(number.letter, "", note, is_unlike, value=number.letter)
    if number.is_saturated:
        note = "; ".join(filter(None, [note, SATURATED]))
    exact = decimals(number.value, wanted)
    text, interval = number.rounded(wanted)
    # What disagrees is read digit by digit.
    return Cell(exact if is_unlike else text, interval, note, is_unlike, value=number.value, title=exact)


def add_note(cell: Cell, note: str, *, is_unlike: bool = False) -> Cell:
    """Return the cell with one more note."""
    joined = "; ".join(filter(None, [cell.note, note]))
    return replace(cell, note=joined, is_unlike=cell.is_unlike or is_unlike)


def metric_label(metric: str, estimator: str) -> str:
    """Return what a metric is called above a column, with its unit."""
    described = find_metric(metric, estimator)
    return f"{described.label}, {described.unit}" if described.unit else described.label


# Tables of a submission ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TableMaker:
    """Makes the tables of a submission.

    Attributes:
        with_reported: whether the reader may see what the team reported.
    """

    values: ObjectiveValues
    recipe: Recipe
    track: Track
    with_reported: bool

    def tables(self) -> list[Table]:
        """Return all tables of single data sets that have a number."""
        made = (self._verification(), self._recognition(), self._voices(), self._naturalness(), self._emotions())
        return [table for table in made if table.groups]

    def averages(self, *, of_privacy: bool | None = None) -> Table:
        """Return the weighted averages, a column for each split; all, those of privacy, or those of utility."""
        splits = tuple(dict.fromkeys(split for average in self.track.averages for split in average.weights))
        groups = [
            number_group(
                metric_label(average.metric, average.estimator),
                rows,
                f"{reverse('docs:page', args=['metrics'])}#{find_metric(average.metric, average.estimator).key}",
            )
            for average in self.track.averages
            if of_privacy in (None, average.metric in DETECTION) and (rows := list(self._average_rows(average, splits)))
        ]
        words = "By the weights of the edition’s recipe, as the ranking takes them."
        caption = f"{words}{self._intervals(of_averages=True)}"
        of = "" if of_privacy is None else " of privacy" if of_privacy else " of utility"
        return number_table("averages", f"Weighted averages{of}", caption, splits, groups, is_counted=False)

    def _intervals(self, *, of_averages: bool) -> str:
        """Which rates of ours have an interval, for a caption; empty where each has one."""
        rates = [
            one.has_interval
            for one in self.values.numbers.values()
            if one.identity.metric in RATES and one.is_recomputed and one.is_average is of_averages
        ]
        if any(rates):
            return "" if all(rates) else " Intervals where they can be estimated."
        return f" {NO_INTERVALS}" if rates else ""

    def _cell(self, number: Number | None, digits: int | None = None) -> Cell:
        if number is None:
            return Cell()
        notes, is_unlike = self._notes(number)
        cell = number_cell(number, digits, "; ".join(notes), is_unlike=is_unlike)
        identity = number.identity
        if identity.metric != "eer":
            return cell
        turned = self.values.number("better_sign_eer", data_set=identity.data_set, attack_model=identity.attack_model)
        cell = mark_turned(cell, number, turned)
        if identity.attack_model is not AttackModel.SEMI_INFORMED:
            return cell
        if not number.is_average:
            return mark_weak(cell, self.values.judge_attack("eer", identity.estimator, identity.data_set))
        split = identity.data_set.removeprefix(AVERAGE)
        return mark_weak(cell, self.values.judge_average("eer", identity.estimator, split, self.track))

    def _notes(self, number: Number) -> tuple[list[str], bool]:
        notes, differs = [], False
        if number.basis is Basis.REPORTED:
            notes.append("from reported numbers" if number.is_average else "reported")
        if self.with_reported and number.agrees is False:
            notes.append(f"disagrees: reported {number.reported_text}")
            differs = True
        elif self.with_reported and number.agrees and number.basis is not Basis.REPORTED:
            notes.append("as reported")
        elif self.with_reported and number.reported is not None and number.basis is not Basis.REPORTED:
            notes.append(f"team reports {number.reported_text}")
        published = published_values(self.recipe, number.identity)
        if self.with_reported and differs_from_published(number.value, published):
            notes.append(f"differs: {published[0]:g} is published")
            differs = True
        return notes, differs

    def _average_rows(self, average: Average, splits: Sequence[str]) -> Iterator[Row]:
        tests: dict[str, dict[str, Any]] = {title: {"speech": speech} for speech, title in SPEECHES.items()}
        if average.metric in DETECTION:
            tests = {str(attack): {"attack_model": attack} for attack in averaged_attacks(self.recipe)}
        for title, test in tests.items():
            cells = [self._average_cell(average, split, test) for split in splits]
            if any(cell.text or cell.note for cell in cells):
                yield number_row(title, cells)

    def _average_cell(self, average: Average, split: str, test: Mapping[str, Any]) -> Cell:
        """Return an average; without it, of which of its data sets there is no number where there are some."""
        found = self.values.average(average.metric, average.estimator, split=split, **test)
        if found:
            return self._cell(found, AVERAGE_DECIMALS)
        sets = average.weights.get(split, {})
        known = {name for name in sets if self.values.number(average.metric, average.estimator, data_set=name, **test)}
        absent = [name for name in sets if name not in known]
        return Cell("–", note=f"no number of {', '.join(absent)}") if known and absent else Cell()

    # Data sets -------------------------------------------------------------------------------------

    def _verification(self) -> Table:
        rules = [(rule.key, rule.estimator) for rule in self.recipe.metrics if rule.key in DETECTION]
        groups = []
        for data_set in self.recipe.sets("trial"):
            rows = [self._attack_row(data_set, attack, rules) for attack in averaged_attacks(self.recipe)]
            if kept := [row for row in rows if row]:
                groups.append(number_group(data_set.name, kept))
        words = "By trial set and attack model; n counts trials. Higher EERs are better, up to 50 %."
        caption = f"{words}{self._intervals(of_averages=False)}"
        is_marked = any(FEW in cell.note for group in groups for row in group.rows for cell in row.cells)
        note = FEW_TARGETS_EXPLANATION if is_marked else ""
        heads = [metric_label(*rule) for rule in rules]
        return number_table("verification", "Privacy: speaker verification", caption, heads, groups, note=note)

    def beyond(self) -> Table:
        """Return privacy beyond the EER, a column for each of `BEYOND_SHOWN` that a set has, and one for `SHARES`.

        It has no rows where no run has measured them.
        """
        measured = {one.metric for one in self.values.numbers}
        shown = [key for key in BEYOND_SHOWN if key in measured]
        groups = []
        for data_set in self.recipe.sets("trial"):
            rows = []
            for attack in averaged_attacks(self.recipe):
                found = {
                    key: self.values.number(key, data_set=data_set.name, attack_model=attack)
                    for key in (*shown, CHANCE_RANKS, *SHARES)
                }
                if any(found.values()):
                    cells = [self._cell(found[key]) for key in shown]
                    if "rank_disclosure" in shown:
                        place = shown.index("rank_disclosure")
                        cells[place] = add_chance(cells[place], found[CHANCE_RANKS])
                    shares = [decimals(one.value, 0) for key in SHARES if (one := found[key])]
                    cells.append(Cell(", ".join(shares)))
                    sign = found.get("better_sign_eer")
                    rows.append(number_row(str(attack), cells, sign.n if sign else 0))
            if rows:
                groups.append(number_group(data_set.name, rows))
        heads = [*(metric_label(key, "") for key in shown), "Speakers under 5, 10, 20 %, %"]
        caption = (
            "By trial set and attack model; n counts trials. Disclosure matters where it exceeds its value by chance."
        )
        return number_table("beyond", "Privacy beyond the EER", caption, heads, groups)

    def _attack_row(self, data_set: DataSet, attack: AttackModel, rules: Sequence[tuple[str, str]]) -> Row | None:
        cells, n = [], 0
        for key, estimator in rules:
            number = self.values.number(key, estimator, data_set=data_set.name, attack_model=attack)
            cell = self._cell(number)
            if number is not None:
                n = max(n, number.n)
                if key == "zebra_individual":
                    cell = self._with_category(cell, data_set, attack)
            cells.append(cell)
        return number_row(str(attack), cells, n) if any(cell.text for cell in cells) else None

    def _with_category(self, cell: Cell, data_set: DataSet, attack: AttackModel) -> Cell:
        category = self.values.number(*CATEGORY, data_set=data_set.name, attack_model=attack)
        if category is None:
            return cell
        notes, is_unlike = self._notes(category)
        said = "; ".join(f"category {one}" for one in notes if is_unlike)
        return add_note(replace(cell, text=f"{cell.text} ({category.letter})"), said, is_unlike=is_unlike)

    def _recognition(self) -> Table:
        rules = dict.fromkeys(("wer", one.estimator) for one in self.track.averages if one.metric == "wer")
        caption = "By recognition set; n counts words. A lower rate keeps more of the words."
        groups = self._by_speech(self.recipe.sets("recognition"), list(rules))
        heads = [metric_label(*rule) for rule in rules]
        return number_table("recognition", "Utility: speech recognition", caption, heads, groups)

    def _naturalness(self) -> Table:
        caption = "By trial set; n counts the sampled utterances. A network’s prediction from 1 to 5, no rating."
        groups = self._by_speech(self.recipe.sets("trial"), [PREDICTED])
        heads = [metric_label(*PREDICTED)]
        return number_table("naturalness", "Utility: predicted naturalness", caption, heads, groups, note=WORTH)

    def _emotions(self) -> Table:
        caption = "By emotion set. A higher recall keeps more of the emotion."
        groups = self._by_speech(self.recipe.sets("emotion"), [("uar", "")])
        return number_table("emotions", "Utility: emotion recognition", caption, [metric_label("uar", "")], groups)

    def _by_speech(self, sets: Iterable[DataSet], rules: Sequence[tuple[str, str]]) -> list[Group]:
        groups = []
        for data_set in sets:
            rows = []
            for speech, title in SPEECHES.items():
                numbers = [self.values.number(*rule, data_set=data_set.name, speech=speech) for rule in rules]
                if any(numbers):
                    n = max(number.n for number in numbers if number)
                    rows.append(number_row(title, map(self._cell, numbers), n))
            if rows:
                groups.append(number_group(data_set.name, rows))
        return groups

    def _voices(self) -> Table:
        found = {
            data_set.name: [self.values.number(*rule, data_set=data_set.name) for rule in VOICES]
            for data_set in self.recipe.sets("trial")
        }
        used = [place for place in range(len(VOICES)) if any(numbers[place] for numbers in found.values())]
        groups = []
        for name, numbers in found.items():
            if any(numbers):
                cells = [self._cell(numbers[place]) for place in used]
                n = numbers[0].n if numbers[0] else 0
                groups.append(number_group(name, [number_row("anonymised speech", cells, n)]))
        caption = "By trial set; n counts utterances with a pitch correlation. Unrelated: what warping gives by chance."
        heads = [metric_label(*VOICES[place]) for place in used]
        return number_table("voices", "Utility: intonation and voices", caption, heads, groups)


def add_chance(cell: Cell, by_chance: Number | None) -> Cell:
    """Return a disclosure of ranks with the one that shuffled identities have."""
    if by_chance is None:
        return cell
    return add_note(cell, f"{decimals(by_chance.value, by_chance.metric.decimals)} by chance")


def mark_turned(cell: Cell, number: Number | None, turned: Number | None) -> Cell:
    """Return an EER above 50 % with what an attacker reaches who reverses the sign where that helps."""
    if number is None or turned is None or number.value <= CHANCE_EER or turned.value >= number.value:
        return cell
    how = "the better sign of each set" if number.is_average else "reversed sign"
    return add_note(cell, f"{decimals(turned.value, 1)} with {how}")


def mark_weak(cell: Cell, verdict: Reliability | None) -> Cell:
    """Return an EER with the word for a trained attacker that is not strong enough."""
    if verdict is None or verdict.is_reliable or not cell.text:
        return cell
    return add_note(cell, verdict.word, is_unlike=True)


# Reported otherwise --------------------------------------------------------------------------------


def list_mismatches(values: ObjectiveValues) -> list[dict[str, str]]:
    """Return every number that is reported otherwise, averages first, in words for the system's own people."""
    return [
        {
            "what": number_words(one.identity),
            "reported": one.reported_text,
            "recomputed": one.letter or decimals(one.value, max(AVERAGE_DECIMALS, one.metric.decimals)),
            "where": one.reported_in,
        }
        for one in sorted(values.disagreements, key=lambda one: not one.is_average)
    ]


# Conditions ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """What a system may compete in.

    Attributes:
        average: the EER that decides; None where it is missing.
        reasons: why the system can be ranked in no condition, as the leaderboard says it.
        met: how many conditions are.
        conditions: each with whether it is met; empty where there is none.
        gates: of each its metric, its groups held against the minimum, and data sets without a value.
    """

    privacy: Metric
    policy: LeaderboardPolicy
    average: Number | None
    reasons: tuple[str, ...]
    met: int
    conditions: Table
    gates: tuple[tuple[str, Table, list[str]], ...]

    @property
    def average_text(self) -> str:
        """Return the average as it is read."""
        return self.average.rounded()[0] if self.average else ""


def find_standing(values: ObjectiveValues, policy: LeaderboardPolicy, reasons: Sequence[str]) -> Standing:
    """Return the conditions and gates of a policy, each met or missed and by how much.

    Args:
        reasons: why the leaderboard does not rank it.
    """
    decides, attack = policy.privacy, AttackModel(policy.attack_model)
    average = values.average(decides.metric, decides.estimator, split=policy.split, attack_model=attack)
    found: tuple[Condition, ...] = ()
    if average is not None and 0 <= average.value <= 100:
        found = conditions(
            average.value,
            policy.minimum_eers,
            policy=policy.policy,
            inclusive=policy.inclusive,
            note_within=policy.note_within,
        )
    columns = (Column("condition", "Condition"), Column("met", "Met?"), Column("distance", "By how much"))
    rows = tuple(_condition_row(average.value, one) for one in found) if average else ()
    groups = (Group(rows),) if rows else ()
    table = Table(columns, groups, "Each condition", "Conditions of the edition", is_caption_hidden=True)
    gates = tuple(_held_gate(values, check_gate, attack) for check_gate in policy.gates)
    privacy = find_metric(decides.metric, decides.estimator)
    return Standing(privacy, policy, average, tuple(reasons), sum(one.met for one in found), table, gates)


def _verdict(holds: bool, yes: str, no: str) -> Cell:
    return Cell(yes, badge="succeeded") if holds else Cell(no, badge="failed")


def _condition_row(average: float, condition: Condition) -> Row:
    title = f"EER of {condition.minimum:g} % or more"
    if condition.upper is not None:
        title = f"EER of {condition.minimum:g} % to below {condition.upper:g} %"
    beyond = condition.upper is not None and average >= condition.upper
    limit = condition.upper if beyond and condition.upper is not None else condition.minimum
    way = "above" if average >= limit else "below"
    aside = "so near a limit that rounding could decide" if condition.near_limit else ""
    away = abs(average - limit)
    distance = Cell(f"{decimals(away, few_digits(away, '%', AVERAGE_DECIMALS))} points {way}", aside=aside)
    return Row((Cell(title), _verdict(condition.met, "met", "missed"), distance))


def _held_gate(values: ObjectiveValues, check_gate: Gate, attack: AttackModel) -> tuple[str, Table, list[str]]:
    """Return label of the metric, its groups, and the data sets that lack a value."""
    metric = find_metric(check_gate.metric, check_gate.estimator)
    known = values.gate_values(check_gate, attack)
    lacking = [name for group in check_gate.groups for name in group if name not in known]
    whole = [group for group in check_gate.groups if not {*group} & {*lacking}]
    rows = tuple(
        _gate_row(one, metric) for one in hold_gate(known, whole, check_gate.minimum, inclusive=check_gate.inclusive)
    )
    columns = (
        Column("sets", "Data sets, averaged"),
        *(Column(name.lower(), name, kind="num") for name in ("Value", "Minimum")),
        Column("passed", "Passed?"),
        Column("distance", "By how much"),
    )
    reach = "reach" if check_gate.inclusive else "be above"
    caption = f": to be ranked, the mean over the data sets of each line must {reach} the minimum."
    groups = (Group(rows),) if rows else ()
    return metric.label, Table(columns, groups, f"Minimum of {metric.label}", caption, metric.label), lacking


def _gate_row(held: GateResult, metric: Metric) -> Row:
    distance = held.value - held.minimum
    digits = few_digits(distance, metric.unit, metric.decimals)
    said = f"{decimals(abs(distance), digits)} {'above' if distance >= 0 else 'below'}"
    numbers = (Cell(decimals(held.value, digits)), Cell(f"{held.minimum:g}"))
    return Row((Cell(" and ".join(held.group)), *numbers, _verdict(held.passed, "passed", "not passed"), Cell(said)))
