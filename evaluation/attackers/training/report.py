"""What the trainings of an attack found, over seeds, in the form of table 1 and figures 3 and 4 of Franzreb et al.

A row is one anonymiser with one selection of targets, attacked by one variant of the recogniser with several seeds. The
deviation over seeds is that of a sample; the interval over speakers stands beside it, because few speakers make an EER
more uncertain than seeds do. Conventions: rates are shares, the EER is Kaldi's; lower EER and source error are better
for the attacker, a higher target error means that less of the target is heard, as far as the classifier can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.attackers.training.values import EpochRecord, FinalValues, ProbeResult
from evaluation.metrics.bootstrap import Interval, bootstrap_detection, draw_speakers
from evaluation.metrics.detection import kaldi_eer
from evaluation.metrics.errors import MetricInputError

RESAMPLES = 1000
NONE = "–"
# Key of a value of `ReportRow`, heading in the table.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("eer", "EER, %"),
    ("same_gender_eer", "EER same gender, %"),
    ("source_error", "VER_S, %"),
    ("source_chance", "chance, %"),
    ("target_error", "VER_T, %"),
    ("target_chance", "chance, %"),
    ("target_probe", "fresh probe on target, %"),
    ("target_probe_other_sources", "probe, other sources, %"),
    ("source_probe", "fresh probe on source, %"),
)


@dataclass(frozen=True, eq=False)
class AttackTrials:
    """Scored trials of an attack.

    Attributes:
        scores: shape (n,), higher is more alike.
        models: shape (n,), the speaker that each model was enrolled from.
        speakers: shape (n,), the speaker of each trial utterance.
        genders: of speakers, ``f`` or ``m``; those that are missing have no part in same-gender trials.
    """

    scores: npt.NDArray[np.float64]
    models: npt.NDArray[np.str_]
    speakers: npt.NDArray[np.str_]
    genders: Mapping[str, str]


@dataclass(frozen=True)
class AttackMeasures:
    """What an attack reached.

    Attributes:
        eer: of all trials.
        eer_interval: 95 %, over speakers; None with fewer than two resamples asked for.
        same_gender_eer, same_gender_interval: of the trials within a gender; None where genders are unknown or such
            trials are missing.
        n_target, n_nontarget: trials in all.
    """

    eer: float
    eer_interval: Interval | None
    same_gender_eer: float | None
    same_gender_interval: Interval | None
    n_target: int
    n_nontarget: int


@dataclass(frozen=True)
class SeedResult:
    """One training and its attack; None where it was not scored."""

    seed: int
    training: FinalValues
    attack: AttackMeasures | None


@dataclass(frozen=True)
class Spread:
    """A value over seeds.

    Attributes:
        mean: of the values.
        deviation: sample standard deviation; None for a single value.
        values: one for each seed that has it.
    """

    mean: float
    deviation: float | None
    values: tuple[float, ...]

    def __str__(self) -> str:
        """In per cent, as the table has it."""
        if self.deviation is None:
            return f"{100 * self.mean:.1f}"
        return f"{100 * self.mean:.1f} ± {100 * self.deviation:.1f}"


@dataclass(frozen=True)
class ReportRow:
    """A row of the table.

    Attributes:
        anonymizer, selection, variant: what was attacked, how its targets were chosen, and by what; for people.
        seeds: results.
    """

    anonymizer: str
    selection: str
    variant: str
    seeds: tuple[SeedResult, ...]

    @property
    def eer(self) -> Spread | None:
        return spread([one.attack.eer if one.attack else None for one in self.seeds])

    @property
    def same_gender_eer(self) -> Spread | None:
        return spread([one.attack.same_gender_eer if one.attack else None for one in self.seeds])

    @property
    def source_error(self) -> Spread | None:
        return self._of(lambda one: one.source_error)

    @property
    def target_error(self) -> Spread | None:
        return self._of(lambda one: one.target_error)

    @property
    def source_chance(self) -> Spread | None:
        return self._of(lambda one: one.source_chance)

    @property
    def target_chance(self) -> Spread | None:
        return self._of(lambda one: one.target_chance)

    @property
    def target_probe(self) -> Spread | None:
        return self._of(lambda one: _error(one.target_probe))

    @property
    def target_probe_other_sources(self) -> Spread | None:
        return self._of(lambda one: _error(one.target_probe_other_sources))

    @property
    def source_probe(self) -> Spread | None:
        return self._of(lambda one: _error(one.source_probe))

    def _of(self, value: Callable[[FinalValues], float | None]) -> Spread | None:
        return spread([value(one.training) for one in self.seeds])


@dataclass(frozen=True)
class CurvePoint:
    """A measure after an epoch, over seeds."""

    epoch: int
    spread: Spread


@dataclass(frozen=True)
class SweepPoint:
    """A measure at the end, by the epochs before the target classifier acts."""

    zero_epochs: int
    spread: Spread


def attack_measures(
    trials: AttackTrials, *, random: np.random.Generator, resamples: int = RESAMPLES, level: float = 0.95
) -> AttackMeasures:
    """EER of all trials and of those within a gender, with intervals over speakers.

    Args:
        random: of the resamples.
        resamples: fewer than 2 for no intervals.

    Raises:
        MetricInputError: columns of different lengths, no target or no nontarget trial, scores that are not finite.
    """
    if not trials.scores.size == trials.models.size == trials.speakers.size:
        raise MetricInputError(
            f"Expected a model and a speaker for each score, found {trials.scores.size} scores, {trials.models.size} "
            f"models and {trials.speakers.size} speakers."
        )
    is_target = trials.models == trials.speakers
    everything = np.ones(is_target.size, dtype=np.bool_)
    eer, interval = _measured(trials, everything, random, resamples, level)
    sides = [np.array([trials.genders.get(str(one), "") for one in side]) for side in (trials.models, trials.speakers)]
    within = (sides[0] == sides[1]) & (sides[0] != "")
    has_both = (within & is_target).any() and (within & ~is_target).any()
    same = _measured(trials, within, random, resamples, level) if has_both else (None, None)
    n_target = int(is_target.sum())
    return AttackMeasures(eer, interval, same[0], same[1], n_target, is_target.size - n_target)


def _measured(
    trials: AttackTrials, chosen: npt.NDArray[np.bool_], random: np.random.Generator, resamples: int, level: float
) -> tuple[float, Interval | None]:
    scores, models, speakers = trials.scores[chosen], trials.models[chosen], trials.speakers[chosen]
    is_target = models == speakers
    eer = kaldi_eer(scores[is_target], scores[~is_target])
    if resamples < 2:
        return eer, None
    draws = draw_speakers(np.concatenate([models, speakers]), resamples, random)
    replicates = bootstrap_detection(scores, is_target, models, speakers, draws, measures=("kaldi_eer",))
    return eer, replicates["kaldi_eer"].interval(level)


def spread(values: Sequence[float | None]) -> Spread | None:
    """Mean and sample deviation of the values that exist; None where none does."""
    known = tuple(value for value in values if value is not None)
    if not known:
        return None
    deviation = float(np.std(known, ddof=1)) if len(known) > 1 else None
    return Spread(float(np.mean(known)), deviation, known)


def table_cells(row: ReportRow) -> dict[str, str]:
    """A row in words: by the keys in `COLUMNS`, per cent with one decimal, ``±`` the sample deviation."""
    return {key: NONE if (value := getattr(row, key)) is None else str(value) for key, _ in COLUMNS}


def curves(seeds: Mapping[int, Sequence[EpochRecord]], measure: str) -> tuple[CurvePoint, ...]:
    """A measure of the epochs over seeds, as figure 3 shows it; epochs without it are left out.

    Args:
        seeds: the epochs of each.
        measure: a name in `values.MEASURES`.
    """
    by_epoch: dict[int, list[float | None]] = {}
    for records in seeds.values():
        for one in records:
            by_epoch.setdefault(one.epoch, []).append(one.values.get(measure))
    found = ((epoch, spread(values)) for epoch, values in sorted(by_epoch.items()))
    return tuple(CurvePoint(epoch, one) for epoch, one in found if one is not None)


def sweep(rows: Mapping[int, ReportRow], measure: str = "source_error") -> tuple[SweepPoint, ...]:
    """A value of the table by the epochs before the target classifier acts, as figure 4 shows it.

    Args:
        rows: by E; as many epochs as the training has is the baseline.
        measure: a key in `COLUMNS`.
    """
    found = ((zero_epochs, getattr(row, measure)) for zero_epochs, row in sorted(rows.items()))
    return tuple(SweepPoint(zero_epochs, value) for zero_epochs, value in found if value is not None)


def _error(probe: ProbeResult | None) -> float | None:
    return None if probe is None else probe.error
