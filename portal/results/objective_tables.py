"""The objective numbers of a system as tables: texts ready to be read, with intervals and claims beside them.

A claim is told to the team and the organizers only; that a number is nothing but a claim is told to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.formats.claims import AttackModel, Speech
from evaluation.formats.result_checks import BASELINE_TOLERANCE
from evaluation.metrics.averages import Condition, GateResult, conditions
from evaluation.metrics.averages import gate as hold_gate
from evaluation.metrics.catalogue import Metric, find_metric
from evaluation.metrics.linkability import FEW_TARGETS, TARGETS_PER_BIN
from evaluation.objective.values import (
    DETECTION,
    Basis,
    Number,
    ObjectiveValues,
    averaged_attacks,
    published_value,
)
from evaluation.protocols.board_policy import BoardPolicy
from evaluation.protocols.recipes import Average, DataSet, Gate, Recipe, Track
from portal.core.wording import decimals

SPEECHES = {Speech.ORIGINAL: "original speech", Speech.ANONYMISED: "anonymised speech"}
AVERAGE_DIGITS = 3
INTERVAL_DIGITS = 2
VOICES = (
    ("pitch_correlation", "praat"), ("gain_of_voice_distinctiveness", "official"), ("de_identification", "official"),
)  # fmt: skip
CATEGORY = ("zebra_category", "")
FEW = "unreliable"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table.

    Attributes:
        interval: its limits in words, empty without.
        note: what is to be said about claim and publication.
        is_unlike: whether the note tells a disagreement.
    """

    text: str = ""
    interval: str = ""
    note: str = ""
    is_unlike: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A metric as the head of a column."""

    metric: Metric
    estimator: str

    @property
    def title(self) -> str:
        return f"{self.metric.label}, {self.metric.unit}" if self.metric.unit else self.metric.label


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: what it is of, and a cell for each of the columns that `heads` names."""

    title: str
    heads: tuple[str, ...]
    cells: tuple[Cell, ...]
    n: int = 0

    @property
    def labelled(self) -> Iterator[tuple[str, Cell]]:
        return zip(self.heads, self.cells, strict=True)


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one data set or metric."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`name` begins the addresses of its parts; `heads` are the texts of its columns."""

    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class TableMaker:
    """Makes the tables of a submission.

    Attributes:
        with_claims: whether the reader may see what the team claimed.
        targets: target trials by data set and attack model, where their scores were measured.
    """

    values: ObjectiveValues
    recipe: Recipe
    track: Track
    with_claims: bool
    targets: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def tables(self) -> list[Table]:
        """All tables of single data sets that have a number."""
        made = (self._verification(), self._recognition(), self._voices(), self._emotions())
        return [table for table in made if table.groups]

    def averages(self) -> Table:
        """The weighted averages, a column for each split."""
        splits = tuple(dict.fromkeys(split for average in self.track.averages for split in average.weights))
        groups = []
        for average in self.track.averages:
            rows = tuple(row for row in self._average_rows(average, splits) if any(cell.text for cell in row.cells))
            if rows:
                metric = find_metric(average.metric, average.estimator)
                groups.append(Group(Column(metric, average.estimator).title, rows))
        caption = "By the weights of the edition’s recipe, as the ranking takes them."
        return Table("averages", "Weighted averages", caption, splits, tuple(groups))

    def cell(self, number: Number | None, digits: int | None = None) -> Cell:
        """A number as it is read."""
        if number is None:
            return Cell()
        metric = number.metric
        wanted = metric.decimals if digits is None else digits
        interval = ""
        if number.low is not None and number.high is not None:
            few = min(wanted, INTERVAL_DIGITS)
            interval = f"{decimals(number.low, few)} to {decimals(number.high, few)}"
        notes, is_unlike = self._notes(number)
        return Cell(number.letter or decimals(number.value, wanted), interval, "; ".join(notes), is_unlike)

    def _notes(self, number: Number) -> tuple[list[str], bool]:
        notes, is_unlike = [], False
        if number.basis is Basis.CLAIM:
            notes.append("from claims" if number.is_average else "claimed")
        if self.with_claims and number.agrees is False:
            notes.append(f"disagrees: claimed {number.claimed_text}")
            is_unlike = True
        elif self.with_claims and number.agrees and number.basis is not Basis.CLAIM:
            notes.append("as claimed")
        published = published_value(self.recipe, number)
        if self.with_claims and published is not None and abs(number.value - published) > BASELINE_TOLERANCE + 1e-9:
            notes.append(f"differs: {published:g} is published")
            is_unlike = True
        return notes, is_unlike

    def _average_rows(self, average: Average, splits: Sequence[str]) -> Iterator[Row]:
        digits = AVERAGE_DIGITS
        if average.metric in DETECTION:
            for attack in averaged_attacks(self.recipe):
                found = (self._average(average, split, attack_model=attack) for split in splits)
                yield Row(str(attack), tuple(splits), tuple(self.cell(one, digits) for one in found))
            return
        for speech, title in SPEECHES.items():
            found = (self._average(average, split, speech=speech) for split in splits)
            yield Row(title, tuple(splits), tuple(self.cell(one, digits) for one in found))

    def _average(
        self, average: Average, split: str, attack_model: AttackModel | None = None, speech: Speech | None = None
    ) -> Number | None:
        return self.values.average(
            average.metric, average.estimator, split=split, attack_model=attack_model, speech=speech
        )

    # Data sets -------------------------------------------------------------------------------------

    def _verification(self) -> Table:
        rules = [rule for rule in self.recipe.metrics if rule.key in DETECTION]
        columns = [Column(find_metric(rule.key, rule.estimator), rule.estimator) for rule in rules]
        groups = []
        for data_set in self.recipe.sets("trial"):
            rows = [self._attack_row(data_set, attack, columns) for attack in averaged_attacks(self.recipe)]
            if kept := tuple(row for row in rows if any(cell.text for cell in row.cells)):
                groups.append(Group(data_set.name, kept))
        caption = "By trial set, of one gender or both, and attack model; n counts trials. A higher EER is better."
        if any(FEW in cell.note for group in groups for row in group.rows for cell in row.cells):
            caption += (
                f" Linkability sorts scores into a bin for each {TARGETS_PER_BIN} target trials; with fewer than "
                f"{FEW_TARGETS} it is too coarse to rely on: scores that tell every speaker apart stay below 1, and "
                "fewer than 20 give 0 whatever the scores."
            )
        return Table("verification", "Privacy: speaker verification", caption, heads_of(columns), tuple(groups))

    def _attack_row(self, data_set: DataSet, attack: AttackModel, columns: Sequence[Column]) -> Row:
        cells, n = [], 0
        for column in columns:
            key = _key_of(column)
            number = self.values.number(key, column.estimator, data_set=data_set.name, attack_model=attack)
            cell = self.cell(number)
            if number is not None:
                n = max(n, number.n)
                if key == "zebra_individual":
                    cell = self._with_category(cell, data_set, attack)
                elif key == "linkability" and number.is_recomputed:
                    cell = self._with_few(cell, data_set, attack)
            cells.append(cell)
        return Row(str(attack), heads_of(columns), tuple(cells), n)

    def _with_category(self, cell: Cell, data_set: DataSet, attack: AttackModel) -> Cell:
        category = self.values.number(*CATEGORY, data_set=data_set.name, attack_model=attack)
        if category is None:
            return cell
        notes, is_unlike = self._notes(category)
        note = "; ".join([*filter(None, [cell.note]), *(f"category {one}" for one in notes if is_unlike)])
        return Cell(f"{cell.text} ({category.letter})", cell.interval, note, cell.is_unlike or is_unlike)

    def _with_few(self, cell: Cell, data_set: DataSet, attack: AttackModel) -> Cell:
        """With a note where few target trials make it unreliable."""
        targets = self.targets.get((data_set.name, str(attack))) or data_set.targets
        if targets is None or targets >= FEW_TARGETS:
            return cell
        few = f"{FEW}: {targets} target trials"
        return Cell(cell.text, cell.interval, "; ".join(filter(None, [cell.note, few])), cell.is_unlike)

    def _recognition(self) -> Table:
        estimators = dict.fromkeys(one.estimator for one in self.track.averages if one.metric == "wer")
        columns = [Column(find_metric("wer", estimator), estimator) for estimator in estimators]
        caption = "By recognition set; n counts words. A lower rate keeps more of what was said."
        groups = self._by_speech(self.recipe.sets("recognition"), columns)
        return Table("recognition", "Utility: speech recognition", caption, heads_of(columns), groups)

    def _emotions(self) -> Table:
        columns = [Column(find_metric("uar"), "")]
        caption = "By emotion set. A higher recall keeps more of how it was said."
        groups = self._by_speech(self.recipe.sets("emotion"), columns)
        return Table("emotions", "Utility: emotion recognition", caption, (columns[0].title,), groups)

    def _by_speech(self, sets: Iterable[DataSet], columns: Sequence[Column]) -> tuple[Group, ...]:
        groups = []
        for data_set in sets:
            rows = []
            for speech, title in SPEECHES.items():
                numbers = [
                    self.values.number(_key_of(column), column.estimator, data_set=data_set.name, speech=speech)
                    for column in columns
                ]
                if any(numbers):
                    n = max(number.n for number in numbers if number)
                    rows.append(Row(title, heads_of(columns), tuple(self.cell(number) for number in numbers), n))
            if rows:
                groups.append(Group(data_set.name, tuple(rows)))
        return tuple(groups)

    def _voices(self) -> Table:
        columns = [Column(find_metric(key, estimator), estimator) for key, estimator in VOICES]
        rows, used = [], set()
        for data_set in self.recipe.sets("trial"):
            numbers = [
                self.values.number(key, estimator, data_set=data_set.name) for key, estimator in VOICES
            ]  # fmt: skip
            used |= {place for place, number in enumerate(numbers) if number}
            if any(numbers):
                n = max((number.n for number in numbers[:1] if number), default=0)
                rows.append((data_set.name, numbers, n))
        heads = heads_of([columns[place] for place in sorted(used)])
        groups = []
        for name, numbers, n in rows:
            cells = tuple(self.cell(numbers[place]) for place in sorted(used))
            groups.append(Group(name, (Row("anonymised speech", heads, cells, n),)))
        caption = "By trial set; n counts utterances with a pitch correlation."
        return Table("voices", "Utility: intonation and voices", caption, heads, tuple(groups))


def heads_of(columns: Iterable[Column]) -> tuple[str, ...]:
    """The heads of these columns."""
    return tuple(column.title for column in columns)


def _key_of(column: Column) -> str:
    """The metric as claims name it: the description of an EER is that of its estimator."""
    key = column.metric.key
    return "eer" if key == f"{column.estimator}_eer" else key


# Conditions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One condition, whether it is met, and how far the average is from it."""

    title: str
    condition: Condition
    distance: str


@dataclass(frozen=True, slots=True)
class GateRow:
    """One group of a gate, held against its minimum."""

    title: str
    value: str
    minimum: str
    passed: bool
    distance: str


@dataclass(frozen=True)
class Standing:
    """What a system may compete in.

    Attributes:
        average: the EER that decides; None where it is missing.
        lacking: data sets without a value, of gates that could not be held.
    """

    privacy: Metric
    split: str
    attack_model: str
    average: Number | None
    conditions: tuple[ConditionRow, ...]
    gates: tuple[tuple[str, tuple[GateRow, ...], tuple[str, ...]], ...]

    @property
    def met(self) -> int:
        return sum(row.condition.met for row in self.conditions)


def standing_of(values: ObjectiveValues, policy: BoardPolicy) -> Standing:
    """The conditions and gates of a policy, each met or missed and by how much."""
    privacy = find_metric(policy.privacy.metric, policy.privacy.estimator)
    average = values.average(
        policy.privacy.metric, policy.privacy.estimator, split=policy.split,
        attack_model=AttackModel(policy.attack_model),
    )  # fmt: skip
    found: tuple[Condition, ...] = ()
    if average is not None and 0 <= average.value <= 100:
        found = conditions(
            average.value, policy.minimum_eers, policy=policy.policy, inclusive=policy.inclusive,
            note_within=policy.note_within,
        )  # fmt: skip
    rows = tuple(_condition_row(average.value, one) for one in found) if average else ()
    gates = tuple(_gate_rows(values, gate) for gate in policy.gates)
    return Standing(privacy, policy.split, policy.attack_model, average, rows, gates)


def _condition_row(average: float, condition: Condition) -> ConditionRow:
    title = f"EER of {condition.minimum:g} % or more"
    if condition.upper is not None:
        title = f"EER of {condition.minimum:g} % to below {condition.upper:g} %"
    beyond = condition.upper is not None and average >= condition.upper
    limit = condition.upper if beyond and condition.upper is not None else condition.minimum
    way = "above" if average >= limit else "below"
    return ConditionRow(title, condition, f"{decimals(abs(average - limit), AVERAGE_DIGITS)} points {way}")


def _gate_rows(values: ObjectiveValues, gate: Gate) -> tuple[str, tuple[GateRow, ...], tuple[str, ...]]:
    """Label of the metric, its rows, and the data sets that lack a value."""
    metric = find_metric(gate.metric, gate.estimator)
    known = values.gate_values(gate)
    rows, lacking = [], []
    for group in gate.groups:
        absent = [name for name in group if name not in known]
        lacking += absent
        if not absent:
            [held] = hold_gate(known, [group], gate.minimum, inclusive=gate.inclusive)
            rows.append(_gate_row(held, metric))
    return metric.label, tuple(rows), tuple(lacking)


def _gate_row(held: GateResult, metric: Metric) -> GateRow:
    distance = held.value - held.minimum
    return GateRow(
        title=" and ".join(held.group),
        value=decimals(held.value, metric.decimals),
        minimum=f"{held.minimum:g}",
        passed=held.passed,
        distance=f"{decimals(abs(distance), metric.decimals)} {'above' if distance >= 0 else 'below'}",
    )
