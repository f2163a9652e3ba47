"""The objective numbers of one submission, as pages, leaderboard and API read them; nothing here can be changed.

A number has one identity (`NumberIdentity`: data set, gender, metric, estimator, and the speech that the evaluator was
trained on, enrolled with and tested on); its average over a split has the data set ``average_test`` and so on.
Conventions: EERs and WERs in per cent, as the recipe has them; `low` and `high` are 95 % intervals over speakers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from common.rounding import has_width, round_to_interval
from evaluation.formats.results import AVERAGE_DECIMALS, CATEGORIES, AttackModel, Gender, NumberIdentity, Speech
from evaluation.metrics.catalogue import EXPOSURE_METRICS, Metric, find_metric
from evaluation.metrics.linkability import note_few_targets
from evaluation.objective_results.attack_strength import AttackStrength, Reliability, judge_attack
from evaluation.protocols.ranking.entries import MeasuredValue
from evaluation.protocols.recipes import Average, Gate, Recipe, Track

# Which speech trains the evaluator, enrols its speakers and is tested; the first of each is the one that is averaged.
ATTACKS: Mapping[AttackModel, tuple[Speech, Speech, Speech]] = {
    AttackModel.UNPROTECTED: (Speech.ORIGINAL, Speech.ORIGINAL, Speech.ORIGINAL),
    AttackModel.IGNORANT: (Speech.ORIGINAL, Speech.ORIGINAL, Speech.ANONYMISED),
    AttackModel.LAZY_INFORMED: (Speech.ORIGINAL, Speech.ANONYMISED, Speech.ANONYMISED),
    AttackModel.SEMI_INFORMED: (Speech.ANONYMISED, Speech.ANONYMISED, Speech.ANONYMISED),
}
# Of speaker verification, metric and estimator as reported numbers and recipes name them.
MEASURES = (
    ("eer", "kaldi"),
    ("eer", "rocch"),
    ("min_cllr", "pav"),
    ("eer", "speechbrain"),
    ("cllr", ""),
    ("linkability", ""),
    ("zebra_population", ""),
    ("zebra_individual", ""),
    ("zebra_category", ""),
    ("auc", ""),
    ("min_dcf_01", ""),
    ("min_dcf_001", ""),
)
# Privacy beyond the EER: what needs the names of models and utterances as well.
BEYOND = tuple(EXPOSURE_METRICS)
# Those that are averaged by the weights of the edition's EER, beside it.
PREDICTED = ("predicted_naturalness", "dnsmos-p808")  # metric and estimator
AVERAGED_BEYOND = (
    "accepted_at_1_percent",
    "accepted_at_01_percent",
    "rank_disclosure",
    "mean_speaker_eer",
    "better_sign_eer",
    "inverted_targets",
)
DETECTION = frozenset([*(metric for metric, _ in MEASURES), *BEYOND])
NO_INTERVALS = "No intervals: too few or unknown speakers, or one value in every resample of them."
NO_GAIN = 1e-9  # dB: of a gain that is 0 but for rounding
SATURATED = "0 dB: scores are saturated, or voices unchanged"
AVERAGE = "average_"


class Basis(StrEnum):
    """What the value of a number rests on."""

    AUDIO = "audio"
    SCORES = "scores"
    COUNTS = "counts"
    TRANSCRIPTS = "transcripts"
    SIMILARITY = "similarity"
    VALUES = "values"
    REPORTED = "claim"


BASES = {
    Basis.AUDIO: "from the audio",
    Basis.SCORES: "from the scores",
    Basis.COUNTS: "from word counts",
    Basis.TRANSCRIPTS: "from the transcripts",
    Basis.SIMILARITY: "from the similarity matrices",
    Basis.VALUES: "from the values of its data sets",
    Basis.REPORTED: "reported, not recomputed",
}


def is_saturated(metric: str, value: float) -> bool:
    """Return whether a computed value is a G_VD of 0 dB (`SATURATED`)."""
    return metric == "gain_of_voice_distinctiveness" and abs(value) < NO_GAIN


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a submission.

    Attributes:
        value: recomputed, or the reported number where nothing could be (`Basis.REPORTED`).
        spread: population standard deviation over utterances.
        low, high: limits of its interval over speakers; None where there is none.
        n: trials, words or utterances that it rests on; data sets of an average.
        reported: what the team's files state, as `reported_text` writes it, found at `reported_in`.
        agrees: whether the reported number is this value in print; None where one of both is missing.
        note: what limits it, to be read wherever it stands; set where numbers are read (`add_notes`).
    """

    identity: NumberIdentity
    value: float
    basis: Basis
    n: int
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    reported: float | None = None
    reported_text: str = ""
    reported_in: str = ""
    agrees: bool | None = None
    note: str = ""

    @property
    def metric(self) -> Metric:
        """Return what the number is called, its unit and which way is better."""
        return find_metric(self.identity.metric, self.identity.estimator)

    @property
    def letter(self) -> str:
        """Of a ZEBRA category, which counts 0 for “0” and 1 to 6 for A to F; empty of any other number."""
        return letter_of(self.identity, self.value)

    @property
    def is_recomputed(self) -> bool:
        """Return whether the portal computed it; False for what only the team's files state."""
        return self.basis is not Basis.REPORTED

    @property
    def measured(self) -> MeasuredValue:
        """Return its value as a leaderboard holds it."""
        return MeasuredValue(self.value, self.low, self.high, is_reported=not self.is_recomputed)

    @property
    def is_saturated(self) -> bool:
        """Return whether it is a computed G_VD of 0 dB: scores part all voices completely, or anonymisation changed
        none."""
        return self.is_recomputed and is_saturated(self.identity.metric, self.value)

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None and has_width(self.low, self.high)

    def rounded(self, most: int = AVERAGE_DECIMALS) -> tuple[str, str]:
        """Return the number and its interval as they are read; one that is reported keeps the digits of its print."""
        unit = self.metric.unit if self.is_recomputed else None
        return round_to_interval(self.value, self.low, self.high, most, unit)

    @property
    def is_average(self) -> bool:
        return self.identity.data_set.startswith(AVERAGE)


# Reasons why a number is missing that say nothing of how much of its set is covered.
NOT_COMPUTED = "nothing that was submitted gives it"  # stored with each run, and compared
NOT_RECOMPUTED = "it is reported, but there are no scores or no official trials to recompute it from"
NOT_MEASURED = "it is reported, but the audio to recompute it from was not measured"
# Of a reason what names no file of the team: how the last part of each is written, those of earlier runs included.
_CAUSES = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r".*does not cover the organizer's (?:trials|utterances|words): (.+)",
        r".*: (equal scores leave the EER anywhere from [\d.]+ to [\d.]+ %)",
        r"(\d+ utterances have no hypothesis)(?: in .*)?",
        r"(some utterances have no hypothesis and were left out of the count)",
        r"(only \d+ of \d+ utterances) of .* have a pitch correlation",
        r"(\d+ utterances) of .* have no vector of both forms",
    )
)


@dataclass(frozen=True, slots=True)
class MissingNumber:
    """A number that the recipe asks for and the submission lacks, with the reason in words.

    Attributes:
        is_ranked: whether the ranking needs it, so that without it the submission cannot be ranked.
    """

    what: str
    reason: str
    is_ranked: bool

    @property
    def cause(self) -> str:
        """Return what of the reason everybody may read: how much of a set is not covered, without names of files."""
        return next((found[1] for pattern in _CAUSES if (found := pattern.fullmatch(self.reason))), "")


def read_missing(stored: Iterable[Mapping[str, Any]]) -> tuple[MissingNumber, ...]:
    """Return what the result of a run's job says to be missing."""
    return tuple(MissingNumber(one["what"], one["reason"], one["is_ranked"]) for one in stored)


@dataclass(frozen=True)
class ObjectiveValues:
    """Every objective number of a submission, from its newest finished run.

    Attributes:
        submission: its primary key.
        run: primary key of the evaluation run; None where none has finished.
        measured_at: when that run finished.
        numbers: by identity. Of values that were asked for the ranking only, those that it needs.
        missing: what the recipe asks for and is not there.
        computed_by: the portal's engines behind them with their versions, in words; empty where the team computed.
        rests_on: the portal's own runs behind them, by primary key.
        verdicts: by data set on the portal's own semi-informed attack, where one of these is such an attack.
        score_sets: the tests of verification whose scores are kept, as stored; read with all numbers only.
        retrained: averages of recognisers that were trained again, by row (`track_averages.ROW_OF`).
    """

    submission: int
    run: int | None
    measured_at: datetime | None
    numbers: Mapping[NumberIdentity, Number] = field(default_factory=dict)
    missing: tuple[MissingNumber, ...] = ()
    computed_by: str = ""
    rests_on: tuple[int, ...] = ()
    verdicts: Mapping[str, Reliability] = field(default_factory=dict)
    score_sets: tuple[Any, ...] = ()
    retrained: Mapping[str, Number] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Return whether nothing of the recipe is missing."""
        return self.run is not None and not self.missing

    @property
    def unrankable(self) -> tuple[MissingNumber, ...]:
        """Return what keeps the submission from being ranked."""
        return tuple(one for one in self.missing if one.is_ranked)

    @property
    def disagreements(self) -> tuple[Number, ...]:
        """Return numbers whose reported number is not what follows from the files."""
        return tuple(one for one in self.numbers.values() if one.agrees is False)

    @cached_property
    def _by_test(self) -> Mapping[tuple[str, str, str], list[Number]]:
        found: dict[tuple[str, str, str], list[Number]] = {}
        for number in self.numbers.values():
            identity = number.identity
            found.setdefault((identity.data_set, identity.metric, identity.estimator), []).append(number)
        return found

    def number(
        self,
        metric: str,
        estimator: str = "",
        *,
        data_set: str,
        attack_model: AttackModel | None = None,
        training: Speech | None = None,
        speech: Speech | None = None,
    ) -> Number | None:
        """Return the number of a data set, or of ``average_<split>``; None where there is none.

        Args:
            attack_model: of metrics of speaker verification; semi-informed where nothing is said.
            training: the speech that the evaluator was trained on. Without it, of two the one that is averaged: of the
                original evaluator for unprotected and ignorant tests, else of the retrained one, where there is one.
            speech: the speech under test of other metrics; anonymised where nothing is said.
        """
        found = self._by_test.get((data_set, metric, estimator), [])
        if metric in DETECTION:
            wanted = attack_model or AttackModel.SEMI_INFORMED
            found = [one for one in found if one.identity.attack_model is wanted]
            preferred = ATTACKS[wanted][0]
        else:
            found = [one for one in found if one.identity.speech is (speech or Speech.ANONYMISED)]
            preferred = Speech.ANONYMISED if speech is not Speech.ORIGINAL else Speech.ORIGINAL
        if training is not None:
            found = [one for one in found if one.identity.training is training]
        found = sorted(found, key=lambda one: one.identity.training is not preferred)
        return found[0] if found else None

    def average(self, metric: str, estimator: str = "", *, split: str, **test: Any) -> Number | None:
        """Return the weighted average of a split by the recipe; arguments as in `number`."""
        return self.number(metric, estimator, data_set=f"{AVERAGE}{split}", **test)

    def judge_attack(self, metric: str, estimator: str, data_set: str) -> Reliability:
        """Return the verdict on the semi-informed attack behind an EER of a data set or of an average.

        It is the one on the portal's own attack; of other attacks it follows from the other numbers of the same data
        set. Nothing speaks against an attack that was not made.
        """
        if data_set in self.verdicts:
            return self.verdicts[data_set]

        def read(name: str, by: str, attack: AttackModel) -> float | None:
            found = self.number(name, by, data_set=data_set, attack_model=attack)
            return found.value if found else None

        eer = read(metric, estimator, AttackModel.SEMI_INFORMED)
        if eer is None:
            return Reliability((), ())
        weaker = (read(metric, estimator, of) for of in (AttackModel.IGNORANT, AttackModel.LAZY_INFORMED))
        frozen = min((one for one in weaker if one is not None), default=None)
        inverted = read("inverted_targets", "", AttackModel.SEMI_INFORMED)
        return judge_attack(AttackStrength(eer, frozen, inverted_targets=inverted))

    def judge_average(self, metric: str, estimator: str, split: str, track: Track) -> Reliability:
        """Return the verdict on the semi-informed attacks behind an average EER: on the average, and on each set that
        enters.

        One set with an unreliable attack makes the average unreliable; its reasons begin with the name of the set.
        """
        whole = self.judge_attack(metric, estimator, f"{AVERAGE}{split}")
        sets = list_averaged_sets(track, metric, split)
        parts = {name: self.judge_attack(metric, estimator, name) for name in sets}
        reasons = [f"{name}: {reason}" for name, verdict in parts.items() for reason in verdict.reasons]
        return Reliability((*whole.reasons, *reasons), whole.unknown)

    def gate_numbers(self, gate: Gate, attack_model: AttackModel) -> dict[str, Number]:
        """Return the number of each data set of a gate that there is, such as the 12 of ρF0.

        Args:
            attack_model: that decides, of metrics of speaker verification.
        """
        names = dict.fromkeys(name for group in gate.groups for name in group)
        found = {
            name: self.number(gate.metric, gate.estimator, data_set=name, attack_model=attack_model) for name in names
        }
        return {name: one for name, one in found.items() if one and math.isfinite(one.value)}

    def gate_values(self, gate: Gate, attack_model: AttackModel) -> dict[str, float]:
        """Return the values of `gate_numbers`."""
        return {name: one.value for name, one in self.gate_numbers(gate, attack_model).items()}


# What a recipe averages ----------------------------------------------------------------------------


def average_identity(recipe: Recipe, average: Average, split: str, **test: Any) -> NumberIdentity:
    """Identity of an average; `test` as in `with_speech`."""
    named = NumberIdentity(f"{AVERAGE}{split}", Gender.ALL, average.metric, average.estimator)
    return with_speech(recipe, named, **test)


def with_speech(
    recipe: Recipe,
    identity: NumberIdentity,
    *,
    attack_model: AttackModel = AttackModel.SEMI_INFORMED,
    speech: Speech = Speech.ANONYMISED,
) -> NumberIdentity:
    """Return the same number with the speech that the edition trains, enrols and tests with.

    Word error rates and emotions are those of the evaluator retrained on anonymised speech where an edition retrains
    it (2022), else of the original one (2020 has no retrained evaluator, 2024 and 2026 keep it, and the portal's own
    recognisers are never retrained).
    """
    training: Speech | None
    enrolment: Speech | None = None
    if identity.metric in DETECTION:
        training, enrolment, speech = ATTACKS[attack_model]
    elif identity.metric in ("wer", "uar") or identity.metric.startswith("accuracy"):
        is_retrained = recipe.results is not None and recipe.results.trial_set and not recipe.evaluation.by_portal
        training = speech if is_retrained else Speech.ORIGINAL
    else:
        training = None
    return replace(identity, training=training, enrolment=enrolment, speech=speech)


def list_averaged_sets(track: Track, metric: str, split: str) -> list[str]:
    """Return the data sets that enter the average of a metric over a split."""
    return [name for one in track.averages if one.metric == metric for name in one.weights.get(split, {})]


def averaged_attacks(recipe: Recipe) -> tuple[AttackModel, ...]:
    """Return the attack models of an edition, the strongest last."""
    return tuple(AttackModel(name) for name in recipe.attack_models)


def required_numbers(recipe: Recipe, track: Track) -> Iterator[tuple[NumberIdentity, bool]]:
    """Yield every number that the averages and gates of a track rest on, and whether the ranking needs it.

    Of speaker verification the ranked attack model, of anything else the anonymised speech.
    """
    ranking = track.ranking
    attack = AttackModel(ranking.attack_model) if ranking else averaged_attacks(recipe)[-1]
    ranked_by = {(one.metric, one.estimator) for one in ranking.utilities} if ranking else set()
    ranked_by |= {(ranking.privacy.metric, ranking.privacy.estimator)} if ranking else set()
    gates = ranking.gates if ranking else ()
    gated = [(gate.metric, gate.estimator, name) for gate in gates for group in gate.groups for name in group]
    asked: dict[tuple[str, str, str], bool] = {}
    for average in track.averages:
        for split, weights in average.weights.items():
            ranks = (average.metric, average.estimator) in ranked_by and ranking is not None and split == ranking.split
            for name in weights:
                key = average.metric, average.estimator, name
                asked[key] = ranks or asked.get(key, False)
    for (metric, estimator, name), is_ranked in (asked | dict.fromkeys(gated, True)).items():
        one = recipe.data_sets[name]
        gender = Gender(one.gender) if one.role == "trial" else Gender.ALL
        identity = NumberIdentity(name, gender, metric, estimator)
        yield with_speech(recipe, identity, attack_model=attack), is_ranked


def select_complete(
    numbers: Mapping[NumberIdentity, Number], missing: Collection[MissingNumber], recipe: Recipe, track: Track
) -> dict[NumberIdentity, Number]:
    """Return the numbers without those of sets that are not covered, and without the averages that these enter.

    A number that is said to be missing although it is there rests on a part of its set, such as the trials that have a
    score: leaving trials out changes it. Earlier runs kept such numbers.
    """
    named = {one.what for one in missing if one.reason not in (NOT_COMPUTED, NOT_RECOMPUTED, NOT_MEASURED)}
    lost = {_test(one) for one, _ in required_numbers(recipe, track) if number_words(one) in named} if named else set()
    if not lost:
        return dict(numbers)
    members = {
        (metric, f"{AVERAGE}{split}"): tuple(weights)
        for average in track.averages
        for metric in (average.metric, *(AVERAGED_BEYOND if average.metric == "eer" else ()))
        for split, weights in average.weights.items()
    }
    return {
        identity: number
        for identity, number in numbers.items()
        if not any(
            _test(replace(identity, data_set=name)) in lost
            for name in members.get((identity.metric, identity.data_set), (identity.data_set,))
        )
    }


def add_notes(
    numbers: Mapping[NumberIdentity, Number],
    recipe: Recipe,
    missing: Iterable[MissingNumber] = (),
    targets: Mapping[tuple[str, str], int] | None = None,
) -> dict[NumberIdentity, Number]:
    """Return the numbers, each with what limits it: few target trials for linkability, trials without a score.

    Args:
        missing: of attacks that are measured as far as their scores go, what they lack.
        targets: target trials by data set and attack model, where they are others than those of the recipe.
    """
    causes = {one.what: one.cause for one in missing}
    in_part = {
        _test(identity): cause
        for identity in numbers
        if (identity.metric, identity.estimator) == MEASURES[0] and (cause := causes.get(number_words(identity)))
    }
    averaged = {
        f"{AVERAGE}{split}": names
        for track in recipe.tracks.values()
        for average in track.averages
        for split, names in average.weights.items()
        if average.metric == "eer"
    }
    found = {}
    for identity, number in numbers.items():
        sets = averaged.get(identity.data_set, (identity.data_set,)) if identity.metric in DETECTION else ()
        notes = [
            f"in part: {in_part[test]}" for one in sets if (test := _test(replace(identity, data_set=one))) in in_part
        ]
        if identity.metric == "linkability" and number.is_recomputed and identity.data_set in recipe.data_sets:
            count = (targets or {}).get((identity.data_set, str(identity.attack_model)))
            count = recipe.data_sets[identity.data_set].targets if count is None else count
            notes.append("" if count is None else note_few_targets(count))
        found[identity] = replace(number, note="; ".join(filter(None, notes)))
    return found


def _test(identity: NumberIdentity) -> tuple[object, ...]:
    """Return what tells one test from another, whatever is measured of it."""
    metric = "" if identity.metric in DETECTION else identity.metric
    return identity.data_set, metric, identity.training, identity.enrolment, identity.speech


def number_words(identity: NumberIdentity) -> str:
    """Return a number in words, such as ``EER (Kaldi) of libri_test_trials_f, semi-informed``."""
    metric = find_metric(identity.metric, identity.estimator)
    attack = f", {identity.attack_model}" if identity.attack_model else ""
    speech = ", original speech" if identity.speech is Speech.ORIGINAL and not attack else ""
    return f"{metric.label} of {identity.data_set}{attack}{speech}"


def letter_of(identity: NumberIdentity, value: float | None) -> str:
    """Return a ZEBRA category as it is read; empty of any other number."""
    return CATEGORIES[round(value)] if identity.metric == "zebra_category" and value is not None else ""
