"""What the page of the attackers of the portal evaluation shows, and what the page of a system says of them.

Its numbers are listed next to those of the uploaded scores and never replace them: a row is an attack model on one data
set and gender, a column an attacker, so that no number is without the name of its attacker. They are public when
the other numbers of the system are; score files, which name speakers and utterances, are its own people's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from typing import Any

from django.http import Http404, HttpRequest

from anonymization.app.models import AnonymizationRun
from common.tables import Cell, Column, Row, Table, plain_table
from evaluation.app.attacks.selectors import AttackValues, VoiceFigures, list_attacks, read_attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import judge_attacks
from evaluation.app.runs.kinds import ATTACK, RECOGNITION, RETRAINED
from evaluation.app.runs.selectors import (
    NumbersOfRuns,
    group_unfinished,
    pick_newest_finished,
    read_numbers,
)
from evaluation.formats.results import AttackModel, Gender, NumberIdentity, Speech
from evaluation.metrics.catalogue import find_metric
from evaluation.objective_results.attack_strength import Reliability
from evaluation.objective_results.track_averages import estimator_of
from evaluation.objective_results.values import ATTACKS, AVERAGE, NO_INTERVALS, Basis, Number, ObjectiveValues
from evaluation.objective_results.voice_extras import CHANCE, GENDER, RECOVERY, WORTH
from portal.systems.attacks.ladder import ORDER, Ladder, LadderReading, Note, Rung, read_ladders
from portal.systems.engines.forms import list_unfinished
from portal.systems.objective_results import tables
from portal.systems.objective_results.pages import beyond_figures, det_figures, load_numbers
from portal.systems.objective_results.tables import metric_label, number_cell, number_group, number_row, number_table
from portal.systems.pages import Figure, sign_figure
from portal.systems.recognition.pages import recognised, retrained
from portal.systems.selectors import View

USUAL_ESTIMATOR = "kaldi"
GENDER_TEXTS = {Gender.FEMALE: "female", Gender.MALE: "male", Gender.MIXED: "mixed"}
UPLOADED = "Uploaded scores"
FURTHER = (
    ("eer", "kaldi"),
    ("eer", "rocch"),
    ("min_cllr", "pav"),
    ("cllr", ""),
    ("linkability", ""),
    ("zebra_population", ""),
    ("zebra_individual", ""),
)
RANKS = "rank_disclosure"
# What a reader of attacks needs of privacy beyond the EER; the page of the system and the downloads have the rest, and
# beside an EER above 50 % stands the reversed sign.
BEYOND_READ = ("accepted_at_1_percent", "accepted_at_01_percent", RANKS, "worst_speaker_eer", "mean_speaker_eer")
BEYOND_CAPTIONS = {
    True: "By attack model and attacker; each trial set, and unprotected speech, in the folds below.",
    False: "By attack model and attacker.",
}
VOICES = (("gain_of_voice_distinctiveness", "official"), ("de_identification", "official"))


def attack_page(request: HttpRequest, view: View) -> dict[str, Any]:
    """Return everything about the attacks on a submission; those who may not see its jobs get numbers only."""
    found = list_attacks(view.submission, as_of=view.as_of)
    runs = list_unfinished(view, ATTACK)
    if not found and not view.is_own:
        raise Http404
    uploaded = load_numbers(view) if view.system.edition and not _is_by_portal(view) else None
    estimator = estimator_for(view)
    attackers = list_attackers(found, uploaded, estimator)
    beyond = beyond_tables(attackers)
    further, voices, extras = further_table(attackers, estimator), voices_table(attackers), extras_table(attackers)
    return view.context | {
        "runs": runs,
        "attacks": found,
        "table": eer_table(attackers, estimator) if found else None,
        "reading": _reading(view, attackers, estimator),
        "has_uploaded": any(not attacker.is_own for attacker in attackers),
        "further": further if further.groups else None,
        "beyond": beyond[0] if beyond else None,
        "beyond_sets": beyond[1:],
        "beyond_figures": [
            figure
            for one in found
            for figure in beyond_figures(request, one.values, estimator, one.score_sets, one.engine.title)
        ],
        "voices": voices if voices.groups else None,
        "extras": extras if extras.groups else None,
        "extras_worth": [(find_metric(metric).label, sentence) for metric, sentence in WORTH.items()],
        "det_figures": [
            figure
            for one in found
            for figure in det_figures(request, one.values, estimator, one.score_sets, one.engine.title)
        ],
        "voice_figures": [
            _voice_figure(request, one, voice)
            for one in found
            for voice in sorted(one.voices, key=lambda voice: voice.data_set)
        ],
    }


def training_attacks(view: View, training: EvaluationRun) -> dict[str, Any]:
    """Return what the page of a training shows of the attacks with its attackers: EERs by each seed and way of
    comparing."""
    found = list_attacks(view.submission, as_of=view.as_of)
    estimator = estimator_for(view)
    every = list_attackers(found, None, estimator)
    own = [one for one, of in zip(every, found, strict=True) if of.run.parameters.get("trained") == training.pk]
    table = eer_table(own, estimator) if own else None
    return {"attacks": table, "strength": strength_table(own) if any(one.verdicts for one in own) else None}


def strength_table(attackers: Sequence[AttackerResults]) -> Table:
    """Return whether each trained attacker is strong enough, by trial set: a word, what speaks against it, what is
    unknown."""
    columns = [Column("attacker", "Attacker", kind="text"), Column("set", "Data set"), Column("verdict", "Verdict")]
    columns += [Column("why", "Why", kind="text"), Column("unknown", "Not checked", kind="text")]
    rows = (
        (
            attacker.title,
            data_set,
            Cell(verdict.word, badge="succeeded" if verdict.is_reliable else "failed"),
            " ".join(verdict.reasons) or "Nothing found against it.",
            "; ".join(verdict.unknown),
        )
        for attacker in attackers
        for data_set, verdict in attacker.verdicts.items()
    )
    return plain_table("Is the attack strong enough?", columns, rows, name="strength", styles="stack")


def portal_evaluation_sections(view: View, uploaded: ObjectiveValues | None) -> dict[str, Any]:
    """Return what the page of a system says of the portal evaluation (systems/_attacked.html and _recognised.html).

    A section is left out where there is nothing to say to this reader.

    Args:
        uploaded: the numbers of the submission's own files, where it belongs to an edition.
    """
    every = view.evaluation_runs
    found = {ATTACK: partial(_attacked, view, uploaded), RECOGNITION: partial(recognised, view)}
    finished = {kind: pick_newest_finished(kind, every, view.as_of) for kind in (*found, RETRAINED)}
    numbers = read_numbers(chain(*finished.values()))
    sections: dict[str, Any] = {}
    for name, kind in (("attack_section", ATTACK), ("recognition_section", RECOGNITION)):
        of_kind = [run for run in every if run.kind == kind.kind]
        shown = found[kind](finished[kind], numbers)
        if kind is RECOGNITION and shown:
            shown["is_above"] = _is_by_portal(view) and len(shown["tables"]) == 1 and _has_numbers(uploaded)
        runs = group_unfinished(of_kind) if of_kind and view.is_own else None
        if shown or runs is not None or view.is_organizer:
            sections[name] = shown | {"runs": runs, "is_organizer": view.is_organizer}
    if again := retrained(finished[RETRAINED], numbers):
        sections["retrained_section"] = again
    return sections


def _attacked(
    view: View, uploaded: ObjectiveValues | None, runs: list[EvaluationRun], numbers: NumbersOfRuns
) -> dict[str, Any]:
    """Return the short form for the page of a system."""
    found = read_attacks(view.submission, runs, numbers)
    if not found:
        return {}
    estimator = estimator_for(view)
    by_portal = _is_by_portal(view)
    attackers = list_attackers(found, None if by_portal else uploaded, estimator)
    shown = {"table": eer_table(attackers, estimator), "reading": _reading(view, attackers, estimator)}
    return shown | {"is_above": by_portal and len(attackers) == 1 and _has_numbers(uploaded)}


def _has_numbers(values: ObjectiveValues | None) -> bool:
    """Return whether the tables of data sets of the page hold them."""
    return values is not None and values.run is not None


def _is_by_portal(view: View) -> bool:
    """Return whether the numbers of the edition are those of the portal's own attacks."""
    return view.system.edition is not None and view.system.edition.recipe.evaluation.by_portal


def _reading(view: View, attackers: list[AttackerResults], estimator: str) -> LadderReading:
    """Return what the order of the attack models says. Of a method run here it is known who shares a voice."""
    own = [attacker for attacker in attackers if attacker.is_own]
    by_speaker = view.submission.anonymization_runs.filter(level=AnonymizationRun.Level.SPEAKER)
    apart = bool(own) and view.system.is_baseline and by_speaker.exists()
    reading = read_ladders(make_ladders(own, estimator, drawn_apart=apart))
    weak = [
        Note(data_set, f"{attacker.title} is {verdict.word}. {' '.join(verdict.reasons)}", is_unlike=True)
        for attacker in own
        for data_set, verdict in attacker.verdicts.items()
        if not verdict.is_reliable
    ]
    return replace(reading, notes=(*reading.notes, *weak))


def list_attackers(
    found: list[AttackValues], uploaded: ObjectiveValues | None, estimator: str = USUAL_ESTIMATOR
) -> list[AttackerResults]:
    """Return the portal's attackers, and first the one whose scores the team uploaded, if it did so for what they
    measured."""
    verdicts = judge_attacks({one.run: one.numbers for one in found}, estimator)
    own = [
        AttackerResults(
            title=one.engine.title,
            numbers=one.numbers,
            is_trained=one.engine.training is Speech.ANONYMISED,
            speakers=one.speakers,
            verdicts=verdicts.get(one.run.pk, {}),
        )
        for one in found
    ]
    sets = {identity.data_set for attacker in own for identity in attacker.numbers}
    metrics = {metric for metric, _ in VOICES}
    numbers = {
        identity: number
        for identity, number in (uploaded.numbers.items() if uploaded else ())
        if identity.data_set in sets and (identity.attack_model is not None or number.metric.key in metrics)
    }
    return [AttackerResults(UPLOADED, numbers, is_own=False), *own] if numbers else own


def estimator_for(view: View) -> str:
    """Return whose equal error rate is shown: that of the edition."""
    edition = view.system.edition
    return estimator_of(edition.recipe if edition else None)


def _voice_figure(request: HttpRequest, one: AttackValues, voice: VoiceFigures) -> Figure:
    engine = one.engine.title
    alt = f"Voice similarity matrices of {voice.data_set} by {engine}. {voice.alt}"
    return sign_figure(request, voice.figure_key, title=voice.data_set, alt=alt, engine=engine)


# Numbers of attackers as tables ----------------------------------------------------------------------


@dataclass(frozen=True)
class AttackerResults:
    """An attacker, with all its results.

    Attributes:
        title: its name, for people.
        numbers: by identity.
        is_own: whether this portal attacked; False for what the team uploaded.
        is_trained: whether it was trained on speech that the system anonymised.
        speakers: enrolled speakers by data set.
        verdicts: of a trained attacker, whether it is strong enough, by data set.
    """

    title: str
    numbers: Mapping[NumberIdentity, Number]
    is_own: bool = True
    is_trained: bool = False
    speakers: Mapping[str, int] | None = None
    verdicts: Mapping[str, Reliability] = field(default_factory=dict)

    def number(
        self, place: AttackedSet, metric: str, estimator: str, attack: AttackModel | None = None
    ) -> Number | None:
        """Return the number of a data set and gender; of verification that of an attack model, by the evaluator it
        names."""
        named = NumberIdentity(place.data_set, place.gender, metric, estimator)
        found = [named]
        if attack is not None:
            _, enrolment, speech = ATTACKS[attack]
            tested = replace(named, enrolment=enrolment, speech=speech)
            found = [replace(tested, training=training) for training in _evaluators(attack)]
        return next((self.numbers[one] for one in found if one in self.numbers), None)


def _evaluators(attack: AttackModel) -> tuple[Speech, ...]:
    """On which speech the evaluator of an attack model may have been trained, the averaged one first."""
    first = ATTACKS[attack][0]
    if attack in {AttackModel.LAZY_INFORMED, AttackModel.SEMI_INFORMED}:
        return (first,)
    return (first, *(speech for speech in Speech if speech is not first))


@dataclass(frozen=True, slots=True, order=True)
class AttackedSet:
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


def list_places(attackers: Sequence[AttackerResults], metric: str = "eer") -> list[AttackedSet]:
    """Return data sets and genders with a number of this portal, by name, averages last."""
    found = {
        AttackedSet(identity.data_set, identity.gender)
        for attacker in attackers
        if attacker.is_own
        for identity in attacker.numbers
        if identity.metric == metric
    }
    return sorted(found, key=lambda place: (place.is_average, place.data_set, place.gender))


def eer_table(attackers: Sequence[AttackerResults], estimator: str) -> Table:
    """Return EERs side by side: a row for each attack model, a column for each attacker."""
    groups = []
    for place in list_places(attackers):
        rows = []
        for attack in AttackModel:
            numbers = [attacker.number(place, "eer", estimator, attack) for attacker in attackers]
            if any(numbers):
                cells = [
                    _judged(_cell(number), number, attacker, place, attack)
                    for number, attacker in zip(numbers, attackers, strict=True)
                ]
                rows.append(number_row(str(attack), cells, _count(numbers, place)))
        if rows:
            groups.append(number_group(_title_of(place), rows))
    metric = find_metric("eer", estimator)
    caption = f"{metric.label}, {metric.unit}; 50 % is a guess. n counts trials. Small figures: 95 % interval."
    heads = [attacker.title for attacker in attackers]
    return number_table("portal-attacks", "Equal error rates", caption, heads, groups)


def further_table(attackers: Sequence[AttackerResults], estimator: str) -> Table:
    """Return all other numbers of speaker verification of the portal's attackers: a row for each attack model and
    attacker."""
    columns = [(metric, by) for metric, by in FURTHER if (metric, by) != ("eer", estimator)]
    return _attackers_table(attackers, columns, "further", "Further measures")


def beyond_tables(attackers: Sequence[AttackerResults]) -> list[Table]:
    """Return privacy beyond the EER by the portal's attackers, rows as in `further_table`: averages, then each trial
    set.

    Of one trial set only that set; averages without unprotected speech, which each set has; `BEYOND_READ` alone, for
    downloads have every measure.
    """
    own = [one for one in attackers if one.is_own]
    places = list_places(attackers)
    averages, sets = ([one for one in places if one.is_average is kind] for kind in (True, False))
    parts = [averages, *([one] for one in sets)] if averages and len(sets) > 1 else [[one] for one in sets]
    found = []
    for number, part in enumerate(parts):
        of_part = {one.data_set for one in part}
        measured = {identity.metric for one in own for identity in one.numbers if identity.data_set in of_part}
        columns = [(metric, "") for metric in BEYOND_READ if metric in measured]
        titles = ", ".join(_title_of(one) for one in part)
        attacks = [one for one in AttackModel if not part[0].is_average or one is not AttackModel.UNPROTECTED]
        table = _attackers_table(attackers, columns, f"beyond-{number}", titles, part, attacks)
        if table.groups:
            found.append(replace(table, caption="" if number else BEYOND_CAPTIONS[part[0].is_average]))
    return found


def _attackers_table(
    attackers: Sequence[AttackerResults],
    columns: Sequence[tuple[str, str]],
    name: str,
    title: str,
    places: Iterable[AttackedSet] | None = None,
    attacks: Iterable[AttackModel] = AttackModel,
) -> Table:
    own = [attacker for attacker in attackers if attacker.is_own]
    groups = []
    for place in list_places(attackers) if places is None else places:
        rows = []
        for attack, attacker in product(attacks, own):
            numbers = [attacker.number(place, metric, by, attack) for metric, by in columns]
            if any(numbers):
                cells = (_with_chance(number, attacker, place, attack) for number in numbers)
                rows.append(number_row(f"{attack}, {attacker.title}", cells, _count(numbers, place)))
        if rows:
            groups.append(number_group(_title_of(place), rows))
    caption = "By trial set, attack model and attacker."
    table = number_table(name, title, caption, [metric_label(*one) for one in columns], groups)
    return replace(table, styles=f"{table.styles} sparse")


def voices_table(attackers: Sequence[AttackerResults]) -> Table:
    """Return voice distinctiveness and de-identification by the vectors of each attacker."""
    known = [
        (metric, by, attacker)
        for metric, by in VOICES
        for attacker in attackers
        if any((one.metric, one.estimator) == (metric, by) for one in attacker.numbers)
    ]
    groups = []
    for place in list_places(attackers, VOICES[0][0]):
        numbers = [attacker.number(place, metric, by) for metric, by, attacker in known]
        if any(numbers):
            of = "all data sets" if place.is_average else "speakers"
            row = number_row(of, map(_cell, numbers), _count(numbers, place))
            groups.append(number_group(_title_of(place), [row]))
    of_sets = (number for one in attackers if one.is_own for number in one.numbers.values() if not number.is_average)
    lacks = any((one.metric.key, one.identity.estimator) in VOICES and not one.has_interval for one in of_sets)
    caption = "By trial set; n counts speakers." + f" {NO_INTERVALS}" * lacks
    note = (
        "G_VD is 0 dB where anonymised voices are as distinct as the original ones, and negative where they are less "
        "distinct. De-identification is 1 where anonymised voices resemble their own originals no more than others."
    )
    heads = [f"{metric_label(metric, by)}: {attacker.title}" for metric, by, attacker in known]
    return number_table("own-voices", "Voices", caption, heads, groups, note=note)


def extras_table(attackers: Sequence[AttackerResults]) -> Table:
    """Return gender preservation and the inversion attack, each beside what bounds it: a row for each attacker."""
    columns = {
        (GENDER, Speech.ANONYMISED): "Gender preservation, %",
        (GENDER, Speech.ORIGINAL): "Same of the originals, %",
        (RECOVERY, Speech.ANONYMISED): "Inversion attack, %",
        (CHANCE, Speech.ANONYMISED): "Same by chance, %",
    }
    rows: dict[str, list[Row]] = {}
    for attacker in attackers:
        by_set: dict[str, dict[tuple[str, Speech], Number]] = {}
        for identity, number in attacker.numbers.items():
            if attacker.is_own and identity.gender is Gender.ALL and identity.metric in (GENDER, RECOVERY, CHANCE):
                by_set.setdefault(identity.data_set, {})[identity.metric, identity.speech] = number
        for data_set, numbers in by_set.items():
            row = number_row(attacker.title, (_cell(numbers.get(one)) for one in columns), _count(numbers.values()))
            rows.setdefault(data_set, []).append(row)
    caption = "By enrolment set, pooled with the trial sets attacked with it; n counts utterances."
    note = (
        "Gender preservation can reach the value of the originals. Of the inversion attack a lower rate is better, "
        "down to chance."
    )
    groups = [number_group(data_set, rows[data_set]) for data_set in sorted(rows)]
    heads = list(columns.values())
    return number_table("own-extras", "Gender preservation and inversion attack", caption, heads, groups, note=note)


def make_ladders(attackers: Sequence[AttackerResults], estimator: str, *, drawn_apart: bool = False) -> list[Ladder]:
    """Return the ladder of each own attacker on each data set; its semi-informed rung is the best of those trained
    here."""
    own = [attacker for attacker in attackers if attacker.is_own]
    frozen = [attacker for attacker in own if not attacker.is_trained] or own
    return [
        ladder
        for place in list_places(attackers)
        if not place.is_average
        for attacker in frozen
        if (ladder := _ladder(attacker, own, place, estimator, drawn_apart=drawn_apart)).rungs
    ]


def _ladder(
    attacker: AttackerResults, own: Sequence[AttackerResults], place: AttackedSet, estimator: str, *, drawn_apart: bool
) -> Ladder:
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


def _rung(attacker: AttackerResults, place: AttackedSet, estimator: str, attack: AttackModel) -> Rung | None:
    number = attacker.number(place, "eer", estimator, attack)
    if number is None:
        return None
    return Rung(attack, attacker.title, number.value, number.low, number.high, attacker.is_trained)


def _count(numbers: Iterable[Number | None], place: AttackedSet | None = None) -> int:
    """Return what numbers rest on; 0, which is not shown, of averages, whose data sets stand above them."""
    return 0 if place and place.is_average else max(number.n for number in numbers if number)


def _title_of(place: AttackedSet) -> str:
    if place.is_average:
        return f"Weighted average, {place.data_set.removeprefix(AVERAGE)}"
    return place.title


def _cell(number: Number | None) -> Cell:
    """Return a number as it is read; one that is nothing but a reported number says so."""
    if number is None or number.basis is not Basis.REPORTED:
        return number_cell(number)
    return number_cell(number, note="from reported numbers" if number.is_average else "reported")


def _judged(
    cell: Cell, number: Number | None, attacker: AttackerResults, place: AttackedSet, attack: AttackModel
) -> Cell:
    """Return an EER with what the reversed sign reaches, and the word for a trained attacker that is not strong
    enough."""
    turned = attacker.number(place, "better_sign_eer", "", attack)
    return tables.mark_weak(tables.mark_turned(cell, number, turned), attacker.verdicts.get(place.data_set))


def _with_chance(number: Number | None, attacker: AttackerResults, place: AttackedSet, attack: AttackModel) -> Cell:
    """Return a number; the disclosure of ranks with what shuffled identities have."""
    cell = _cell(number)
    if number is None or number.identity.metric != RANKS:
        return cell
    return tables.add_chance(cell, attacker.number(place, tables.CHANCE_RANKS, "", attack))
