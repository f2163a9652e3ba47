"""What the attackers of this portal found, as tables: own and uploaded attackers side by side, and all other numbers.

A row is an attack model on one data set and gender, a column an attacker, so that no number stands without the name of
whoever reached it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.formats.claims import AttackModel, ClaimIdentity, Gender, Speech
from evaluation.metrics.catalogue import find_metric
from evaluation.metrics.linkability import FEW_TARGETS
from evaluation.models import ScoreSet
from evaluation.objective.values import ATTACKS, AVERAGE, Basis, Number
from evaluation.objective.voice_extras import CHANCE, GENDER, RECOVERY
from portal.core.wording import decimals
from portal.results.attack_ladder import ORDER, Ladder, Rung
from portal.results.objective_tables import FEW, INTERVAL_DIGITS, Cell, Group, Row, Table

GENDER_TEXTS = {Gender.FEMALE: "female", Gender.MALE: "male", Gender.MIXED: "mixed"}
UPLOADED = "Uploaded scores"
FURTHER = (
    ("eer", "kaldi"), ("eer", "rocch"), ("min_cllr", "pav"), ("cllr", ""), ("linkability", ""),
    ("zebra_population", ""), ("zebra_individual", ""),
)  # fmt: skip
VOICES = (("gain_of_voice_distinctiveness", "official"), ("de_identification", "official"))


@dataclass(frozen=True)
class Attacker:
    """Whoever attacked, with all that came of it.

    Attributes:
        title: its name, for people.
        numbers: by identity.
        is_own: whether this portal attacked; False for what the team uploaded.
        is_trained: whether it was trained on speech that the system anonymised.
        targets: target trials by data set and attack model, where their scores are kept.
        speakers: enrolled speakers by data set.
    """

    title: str
    numbers: Mapping[ClaimIdentity, Number]
    is_own: bool = True
    is_trained: bool = False
    targets: Mapping[tuple[str, str], int] | None = None
    speakers: Mapping[str, int] | None = None

    def number(self, place: Place, metric: str, estimator: str, attack: AttackModel | None = None) -> Number | None:
        """The number of a data set and gender; of verification that of an attack model, by the evaluator it names."""
        named = ClaimIdentity(place.data_set, place.gender, metric, estimator)
        found = [named]
        if attack is not None:
            _, enrolment, speech = ATTACKS[attack]
            tested = replace(named, enrolment=enrolment, speech=speech)
            found = [replace(tested, training=training) for training in _evaluators(attack)]
        return next((self.numbers[one] for one in found if one in self.numbers), None)


def targets_of(score_sets: Sequence[ScoreSet]) -> dict[tuple[str, str], int]:
    """Target trials by data set and attack model."""
    return {(one.data_set, one.attack_model): one.target_count for one in score_sets}


def _evaluators(attack: AttackModel) -> tuple[Speech, ...]:
    """On which speech the evaluator of an attack model may have been trained, the averaged one first."""
    first = ATTACKS[attack][0]
    return (first,) if attack in {AttackModel.LAZY_INFORMED, AttackModel.SEMI_INFORMED} else (first, _other(first))


def _other(speech: Speech) -> Speech:
    return Speech.ANONYMISED if speech is Speech.ORIGINAL else Speech.ORIGINAL


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A data set and the gender of its trials."""

    data_set: str
    gender: Gender

    @property
    def is_average(self) -> bool:
        return self.data_set.startswith(AVERAGE)

    @property
    def title(self) -> str:
        gender = GENDER_TEXTS.get(self.gender, "")
        is_said = not gender or self.data_set.endswith((f"_{self.gender}", f"_{self.gender}_common"))
        return self.data_set if is_said else f"{self.data_set}, {gender}"


def places_of(attackers: Sequence[Attacker], metric: str = "eer") -> list[Place]:
    """Data sets and genders with a number of this portal, by name, averages last."""
    found = {
        Place(identity.data_set, identity.gender)
        for attacker in attackers
        if attacker.is_own
        for identity in attacker.numbers
        if identity.metric == metric
    }
    return sorted(found, key=lambda place: (place.is_average, place.data_set, place.gender))


def eer_table(attackers: Sequence[Attacker], estimator: str) -> Table:
    """EERs side by side: a row for each attack model, a column for each attacker."""
    heads = tuple(attacker.title for attacker in attackers)
    groups = []
    for place in places_of(attackers):
        rows = []
        for attack in AttackModel:
            numbers = [attacker.number(place, "eer", estimator, attack) for attacker in attackers]
            if any(numbers):
                n = max(number.n for number in numbers if number)
                rows.append(Row(str(attack), heads, tuple(cell_of(number) for number in numbers), n))
        if rows:
            groups.append(Group(_title_of(place), tuple(rows)))
    metric = find_metric("eer", estimator)
    caption = (
        f"{metric.label}, {metric.unit}, by trial set and attack model; a higher one is better, {50:g} % is a guess. n "
        "counts trials, of an average data sets. Small figures: 95 % interval over speakers."
    )
    return Table("own-attackers", "Equal error rates", caption, heads, tuple(groups))


def further_table(attackers: Sequence[Attacker], estimator: str) -> Table:
    """All other numbers of speaker verification of the own attackers: a row for each attack model and attacker."""
    columns = [
        (metric, by) for metric, by in FURTHER if not (metric == "eer" and by == estimator)
    ]  # fmt: skip
    heads = tuple(_head(metric, by) for metric, by in columns)
    groups = []
    for place in places_of(attackers):
        rows = []
        for attack, attacker in _tests(attackers):
            numbers = [attacker.number(place, metric, by, attack) for metric, by in columns]
            if any(numbers):
                cells = tuple(_with_few(cell_of(number), number, attacker, place, attack) for number in numbers)
                n = max(number.n for number in numbers if number)
                rows.append(Row(f"{attack}, {attacker.title}", heads, cells, n))
        if rows:
            groups.append(Group(_title_of(place), tuple(rows)))
    return Table("further", "Further measures", "By trial set, attack model and attacker.", heads, tuple(groups))


def voices_table(attackers: Sequence[Attacker]) -> Table:
    """Voice distinctiveness and de-identification by the vectors of each attacker."""
    columns = [(metric, by, attacker) for metric, by in VOICES for attacker in attackers]
    known = [
        (metric, by, attacker)
        for metric, by, attacker in columns
        if any((one.metric, one.estimator) == (metric, by) for one in attacker.numbers)
    ]
    heads = tuple(f"{_head(metric, by)}: {attacker.title}" for metric, by, attacker in known)
    rows = []
    for place in places_of(attackers, VOICES[0][0]):
        numbers = [attacker.number(place, metric, by) for metric, by, attacker in known]
        if any(numbers):
            n = max(number.n for number in numbers if number)
            of = "data sets" if place.is_average else "speakers"
            rows.append(Group(_title_of(place), (Row(of, heads, tuple(map(cell_of, numbers)), n),)))
    caption = (
        "By trial set; n counts speakers, of an average data sets. G_VD is 0 dB where anonymised voices are as "
        "distinct as the original ones, below where they lose distinctiveness; de-identification is 1 where no voice "
        "leads back to its speaker."
    )
    return Table("own-voices", "Voices", caption, heads, tuple(rows))


def extras_table(attackers: Sequence[Attacker]) -> Table:
    """Gender preservation and the inversion attack, each beside what bounds it: a row for each attacker."""
    columns = ((GENDER, Speech.ANONYMISED), (GENDER, Speech.ORIGINAL), (RECOVERY, Speech.ANONYMISED),
               (CHANCE, Speech.ANONYMISED))  # fmt: skip
    heads = ("Gender preservation, %", "Same of the originals, %", "Inversion attack, %", "Same by chance, %")
    groups: dict[str, list[Row]] = {}
    for attacker in attackers:
        by_set: dict[str, dict[tuple[str, Speech], Number]] = {}
        for identity, number in attacker.numbers.items():
            if attacker.is_own and identity.gender is Gender.ALL and identity.metric in (GENDER, RECOVERY, CHANCE):
                by_set.setdefault(identity.data_set, {})[identity.metric, identity.speech] = number
        for data_set, numbers in by_set.items():
            cells = tuple(cell_of(numbers.get(column)) for column in columns)
            n = max(number.n for number in numbers.values())
            groups.setdefault(data_set, []).append(Row(attacker.title, heads, cells, n))
    caption = (
        "By enrolment set, pooled with the trial sets attacked with it; n counts utterances. Gender preservation can "
        "reach what the originals reach; of the inversion attack a lower rate is better, down to chance."
    )
    found = tuple(Group(data_set, tuple(groups[data_set])) for data_set in sorted(groups))
    return Table("own-extras", "Gender preservation and inversion attack", caption, heads, found)


def ladders_of(attackers: Sequence[Attacker], estimator: str, *, drawn_apart: bool = False) -> list[Ladder]:
    """The ladder of each own attacker on each data set; its semi-informed rung is the best of those trained here."""
    own = [attacker for attacker in attackers if attacker.is_own]
    frozen = [attacker for attacker in own if not attacker.is_trained] or own
    return [
        ladder
        for place in places_of(attackers)
        if not place.is_average
        for attacker in frozen
        if (ladder := _ladder(attacker, own, place, estimator, drawn_apart=drawn_apart)).rungs
    ]


def _ladder(
    attacker: Attacker, own: Sequence[Attacker], place: Place, estimator: str, *, drawn_apart: bool
) -> Ladder:  # fmt: skip
    rungs = [rung for attack in ORDER if (rung := _rung(attacker, place, estimator, attack))]
    semi = AttackModel.SEMI_INFORMED
    trained = (one for one in own if one.is_trained and one is not attacker)
    if best := [rung for one in trained if (rung := _rung(one, place, estimator, semi))]:
        rungs = [*(rung for rung in rungs if rung.attack is not semi), min(best, key=lambda rung: rung.eer)]
    return Ladder(
        title=place.title,
        attacker=attacker.title,
        rungs=tuple(rungs),
        unprotected=_rung(attacker, place, estimator, AttackModel.UNPROTECTED),
        speakers=(attacker.speakers or {}).get(place.data_set, 0),
        drawn_apart=drawn_apart,
    )


def _rung(attacker: Attacker, place: Place, estimator: str, attack: AttackModel) -> Rung | None:
    number = attacker.number(place, "eer", estimator, attack)
    if number is None:
        return None
    return Rung(attack, attacker.title, number.value, number.low, number.high, attacker.is_trained)


def _tests(attackers: Sequence[Attacker]) -> Iterator[tuple[AttackModel, Attacker]]:
    for attack in AttackModel:
        for attacker in attackers:
            if attacker.is_own:
                yield attack, attacker


def _title_of(place: Place) -> str:
    if place.is_average:
        return f"Weighted average, {place.data_set.removeprefix(AVERAGE)}"
    return place.title


def _head(metric: str, estimator: str) -> str:
    described = find_metric(metric, estimator)
    return f"{described.label}, {described.unit}" if described.unit else described.label


def cell_of(number: Number | None) -> Cell:
    """A number as it is read; one that is nothing but a claim says so."""
    if number is None:
        return Cell()
    digits = number.metric.decimals
    interval = ""
    if number.low is not None and number.high is not None:
        few = min(digits, INTERVAL_DIGITS)
        interval = f"{decimals(number.low, few)} to {decimals(number.high, few)}"
    note = ("from claims" if number.is_average else "claimed") if number.basis is Basis.CLAIM else ""
    return Cell(number.letter or decimals(number.value, digits), interval, note)


def _with_few(cell: Cell, number: Number | None, attacker: Attacker, place: Place, attack: AttackModel) -> Cell:
    """Linkability with a note where few target trials make it unreliable."""
    if number is None or number.identity.metric != "linkability":
        return cell
    targets = (attacker.targets or {}).get((place.data_set, str(attack)))
    if targets is None or targets >= FEW_TARGETS:
        return cell
    return Cell(cell.text, cell.interval, f"{FEW}: {targets} target trials")
