"""How far a number would move with other speakers: bootstrap over speakers, paired across systems.

**Speakers are drawn, not trials**, as trials of one speaker are alike. `draw_speakers` says how often each speaker
occurs in a resample, and every measure of every system takes the same draws. Two measures with the same draws may be
subtracted, as `weighted_sum` does; what the difference varies by is then the systems alone.

**Similarity matrices** (G_VD and De-Identification) stay as they were measured on all speakers, calibration included; a
resample takes the rows and columns of its speakers. A speaker who is drawn twice is two speakers, whose pair with each
other is left out.

Conventions: names of speakers are text, or ASCII bytes; rates are shares, G_VD is in dB; a measure of resamples is NaN
where it is not defined (no target trial drawn, say); matrices are speakers × speakers, and a higher similarity says
"same speaker".

Sources: Bisani & Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation", ICASSP 2004 (word
errors, paired differences); Bolle, Ratha & Pankanti, "Error analysis of pattern recognition systems: the subsets
bootstrap", Computer Vision and Image Understanding 93 (2004) (verification, by subject); Efron & Tibshirani, "An
Introduction to the Bootstrap" (1993), chapters 13 and 14 (intervals); Hesterberg, "What teachers should know about the
bootstrap", The American Statistician 69 (2015), section 5.3.1 (expanded percentile interval); Owen, "The pigeonhole
bootstrap", The Annals of Applied Statistics 1 (2007) (resamples of two crossed factors count what their pairs vary by
three times); Efron & Stein, "The jackknife estimate of variance", The Annals of Statistics 9 (1981) (twice); Noé et
al., "Speech pseudonymisation assessment using voice similarity matrices", Interspeech 2020, and the VoicePrivacy 2022
evaluation plan (measures of matrices).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Flags, Floats, real_numbers
from common.errors import InputError
from evaluation.metrics import calibration
from evaluation.metrics.detection import compute_kaldi_eer, compute_speechbrain_eer

Counts = NDArray[np.int64]
Method = Literal["expanded", "percentile", "basic", "bca", "logit"]
# A measure at its bound has no logit; it counts as this share of a speaker away from it.
_FROM_BOUND = 1 / 8
PAIR_DRAWS = 100
Drawing = Literal["models and speakers", "trial speakers"]

DETECTION_MEASURES: Mapping[str, Callable[[calibration.SortedScores], float]] = {
    "kaldi_eer": lambda scores: compute_kaldi_eer(scores).rate,
    "rocch_eer": lambda scores: calibration.compute_rocch_eer(calibration.pool_adjacent_violators(scores.is_target)),
    "speechbrain_eer": lambda scores: compute_speechbrain_eer(scores).rate,
    "cllr": lambda scores: calibration.cllr(scores.targets, scores.nontargets),
    "min_cllr": lambda scores: calibration.compute_min_cllr(
        calibration.pool_adjacent_violators(scores.is_target), scores.is_target
    ),
}
EQUAL_ERROR_RATES = frozenset({"kaldi_eer", "rocch_eer", "speechbrain_eer"})


@dataclass(frozen=True, slots=True)
class Interval:
    """A measure with the interval that covers it.

    Attributes:
        estimate: the measure of all speakers, each once.
        lower, upper: limits, in the unit of the measure.
        level: nominal coverage, in (0, 1).
        method: ``expanded``, ``percentile``, ``basic``, ``bca`` or ``logit``.
        n_resamples: resamples in which the measure is defined.
        n_undefined: resamples in which it is not; they are left out.
    """

    estimate: float
    lower: float
    upper: float
    level: float
    method: Method
    n_resamples: int
    n_undefined: int


@dataclass(frozen=True, slots=True, eq=False)
class SpeakerDraws:
    """Which speakers each resample holds.

    Attributes:
        speakers: names in ascending order.
        counts: shape (resamples, speakers), how often each was drawn; each row sums to the number of speakers.
    """

    speakers: tuple[str, ...]
    counts: Counts

    def draw_pairs(self) -> Iterator[Counts]:
        """Yield how often each pair of speakers occurs where pairs alone vary: symmetric, 0 or 2 times, a speaker's own
        once.

        The same for each measure of these draws, `PAIR_DRAWS` times.
        """
        random, n = np.random.default_rng(self.counts[0]), len(self.speakers)
        for _ in range(PAIR_DRAWS):
            upper = np.triu(random.integers(0, 2, (n, n), dtype=np.int64), 1)
            yield 2 * (upper + upper.T) + np.eye(n, dtype=np.int64)

    def positions(self, names: ArrayLike) -> NDArray[np.intp]:
        """Return where the speakers stand in a row of `counts`.

        Raises:
            InputError: a speaker that was not among those drawn from.
        """
        found, inverse = np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)
        index = {speaker: position for position, speaker in enumerate(self.speakers)}
        strangers = [str(name) for name in found if str(name) not in index]
        if strangers:
            raise InputError(
                f"Expected speakers that were drawn from, found {len(strangers)} others, such as {strangers[0]!r}. "
                "Draw from the speakers of all trials and models together."
            )
        return np.array([index[str(name)] for name in found], dtype=np.intp)[inverse]


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """A measure of a set, of each of its resamples, and without each of its speakers.

    Attributes:
        estimate: the measure of all speakers, each once.
        resampled: shape (resamples,), NaN where the measure is not defined.
        draws: what was drawn; more than one where measures of several sets are combined. Measures are paired if they
            hold these very objects.
        left_out: for each of `draws`, shape (speakers,), the measure without that speaker; ``bca`` and ``logit`` need
            it.
        bounds: the range of a measure that few speakers make lopsided, such as an EER; it has the interval ``logit``.
            None of all others.
        crossed: shape (values,), the measure where only that varies which two speakers have in common, such as the
            trials of one against the model of the other; empty of a measure of single speakers. Resamples count the
            variance of these three times, the jackknife twice; ``expanded`` and ``logit`` count it once.
    """

    estimate: float
    resampled: Floats
    draws: tuple[SpeakerDraws, ...]
    left_out: tuple[Floats, ...]
    bounds: tuple[float, float] | None = None
    crossed: Floats = field(default_factory=lambda: np.empty(0))

    def interval(self, level: float = 0.95, method: Method = "expanded") -> Interval:
        """Return the interval that covers the measure.

        ``percentile`` takes quantiles of the resamples (Bisani & Ney 2004); ``basic`` mirrors them at the estimate and
        may leave the range of the measure; ``bca`` corrects them for bias and skewness (Efron 1987). With few speakers
        all of them are too short: resamples of n speakers vary by (n − 1) / n of the variance, and n speakers show
        that variance only roughly. ``expanded`` takes quantiles further out by both (Hesterberg 2015), and brings them
        nearer to the estimate by what pairs of speakers are counted too often (`crossed`). ``logit`` is Student's
        interval of the logit of the measure's place between its bounds, with the larger one of the standard errors of
        jackknife and resamples, each without what pairs are counted too often: it never leaves the bounds, and is wider
        towards the far one.

        Raises:
            InputError: a level outside of (0, 1), an unknown method, ``logit`` of a measure without bounds, an
                estimate that is not defined, or fewer than two resamples in which the measure is.
        """
        defined = self._defined()
        if not 0 < level < 1:
            raise InputError(f"Expected a level between 0 and 1, found {level}.")
        tails = (1 - level) / 2, (1 + level) / 2
        undefined = int(self.resampled.size - defined.size)
        if method == "logit":
            lower, upper = self._logit_limits(tails[1], defined)
            return Interval(self.estimate, lower, upper, level, method, int(defined.size), undefined)
        if method == "expanded":
            tail = self._expanded(tails[0])
            tails = tail, 1 - tail
        elif method == "bca":
            tails = self._corrected(tails[0], defined), self._corrected(tails[1], defined)
        elif method not in ("percentile", "basic"):
            raise InputError(f"Expected the method expanded, percentile, basic, bca or logit, found {method!r}.")
        lower, upper = (float(limit) for limit in np.quantile(defined, tails))
        if method == "expanded":
            scale = self._scale(defined)
            lower, upper = (self.estimate + scale * (limit - self.estimate) for limit in (lower, upper))
        if method == "basic":
            lower, upper = 2 * self.estimate - upper, 2 * self.estimate - lower
        return Interval(self.estimate, lower, upper, level, method, int(defined.size), undefined)

    def find_interval(self, level: float = 0.95) -> Interval | None:
        """Return the expanded interval, of a measure with bounds that of its logit; None where it cannot be estimated.

        That is where the measure is defined in fewer than two resamples, or where all that counts of them is one value:
        with two speakers, say, of whom every defined resample of an EER holds both, or without any error.
        """
        if not np.isfinite(self.estimate) or np.count_nonzero(np.isfinite(self.resampled)) < 2:
            return None
        found = self.interval(level, "expanded" if self.bounds is None else "logit")
        return None if math.isclose(found.lower, found.upper, rel_tol=1e-9, abs_tol=1e-12) else found

    def _defined(self) -> Floats:
        defined = self.resampled[np.isfinite(self.resampled)]
        if not np.isfinite(self.estimate) or defined.size < 2:
            raise InputError(
                f"Expected a measure that is defined for the set and for at least 2 resamples, found {self.estimate} "
                f"for the set and {defined.size} defined resamples."
            )
        return defined

    def _crossed_variance(self) -> float:
        known = self.crossed[np.isfinite(self.crossed)]
        return float(np.var(known)) if known.size > 1 else 0.0

    def _scale(self, defined: Floats) -> float:
        """By how much the interval is narrower once what pairs vary by counts once, and not three times."""
        widening, _ = self._student(0.5)
        whole, crossed = widening**2 * float(np.var(defined)), self._crossed_variance()
        return math.sqrt(min(max(whole - 2 * crossed, crossed) / whole, 1.0)) if whole > 0 else 1.0

    def _expanded(self, tail: float) -> float:
        """Return the tail of the resamples to take instead: Φ(√(n / (n − 1)) t), t Student's quantile."""
        widening, quantile = self._student(tail)
        return NormalDist().cdf(widening * quantile)

    def _student(self, tail: float) -> tuple[float, float]:
        """√(n / (n − 1)), and the quantile of Student's distribution for n − 1 degrees of freedom.

        Measures of several sets have the degrees of freedom of Welch and Satterthwaite, their variances by jackknife.
        """
        from scipy.special import stdtrit

        sizes = np.array([len(draws.speakers) for draws in self.draws], np.float64)
        spreads = np.array([_jackknife_variance(part) for part in self.left_out])
        shares = spreads / spreads.sum() if spreads.sum() > 0 else sizes / sizes.sum()
        freedom = 1 / float(np.sum(shares**2 / (sizes - 1)))
        widening = math.sqrt(float(np.sum(shares * sizes / (sizes - 1))))
        return widening, float(stdtrit(freedom, tail))

    def _logit_limits(self, tail: float, defined: Floats) -> tuple[float, float]:
        """Return limits by the delta method: the standard error of a logit is that of the share p divided by p (1 −
        p)."""
        from scipy.special import expit, logit

        if self.bounds is None:
            raise InputError("Expected a measure with bounds for the interval of its logit, found one without.")
        lowest, highest = self.bounds
        widening, quantile = self._student(tail)
        jackknife = sum(_jackknife_variance(part) for part in self.left_out)
        resamples, crossed = widening**2 * float(np.var(defined)), self._crossed_variance()
        error = math.sqrt(max(jackknife - crossed, resamples - 2 * crossed, crossed)) / (highest - lowest)
        if error == 0:  # without an error, say, nothing tells how many there could be
            return self.estimate, self.estimate
        nearest = _FROM_BOUND / sum(len(draws.speakers) for draws in self.draws)
        found = (self.estimate - lowest) / (highest - lowest)
        share = min(max(found, nearest), 1 - nearest)
        reach = quantile * error / (share * (1 - share))
        lower, upper = (lowest + (highest - lowest) * float(expit(logit(share) + way * reach)) for way in (-1, 1))
        return lowest if found < nearest else lower, highest if found > 1 - nearest else upper

    def _corrected(self, tail: float, defined: Floats) -> float:
        """Where BCa looks instead of at a tail (Efron & Tibshirani 1993, equations 14.9 to 14.15)."""
        normal = NormalDist()
        furthest = 0.5 / defined.size  # keeps the bias finite where no resample lies beyond the estimate
        share = float(np.mean(defined < self.estimate) + np.mean(defined == self.estimate) / 2)
        bias = normal.inv_cdf(min(max(share, furthest), 1 - furthest))
        influence = np.concatenate([np.nanmean(part) - part[np.isfinite(part)] for part in self.left_out])
        spread = float(influence @ influence) ** 1.5
        acceleration = float(np.sum(influence**3)) / (6 * spread) if spread > 0 else 0.0
        shifted = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + shifted / (1 - acceleration * shifted))


def _jackknife_variance(left_out: Floats) -> float:
    known = left_out[np.isfinite(left_out)]
    return (known.size - 1) * float(np.var(known)) if known.size > 1 else 0.0


def draw_speakers(speakers: ArrayLike, resamples: int, random: np.random.Generator | None = None) -> SpeakerDraws:
    """Draw as many speakers as there are, with replacement, for each resample.

    Draw once for all systems and measures of a set, and for all sets of the same speakers (VCTK common and different);
    sets of other speakers get draws of their own.

    Args:
        speakers: those of all trials and models; repeated names count once, the order does not matter.
        resamples: how many, 1,000 as a rule.
        random: the same state gives the same draws. Without it the names of the speakers are the seed, so that a number
            has the same interval wherever it is computed.

    Raises:
        InputError: fewer than two speakers, or fewer than one resample.
    """
    names = tuple(np.unique(np.asarray(speakers, dtype=np.str_)).tolist())
    if len(names) < 2:
        raise InputError(f"Expected at least 2 speakers to draw from, found {len(names)}.")
    if resamples < 1:
        raise InputError(f"Expected at least 1 resample, found {resamples}.")
    random = random or np.random.default_rng([ord(letter) for letter in " ".join(names)])
    counts = random.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    return SpeakerDraws(names, counts.astype(np.int64))


def bootstrap_detection(
    scores: ArrayLike,
    is_target: ArrayLike,
    models: ArrayLike,
    trial_speakers: ArrayLike,
    draws: SpeakerDraws,
    *,
    measures: Collection[str] = ("kaldi_eer", "min_cllr"),
    drawing: Drawing = "models and speakers",
) -> dict[str, Replicates]:
    """Detection measures of the resamples of one test, from one sort.

    A speaker who is drawn twice is two speakers. So a target trial occurs as often as its speaker; a nontarget trial
    as often as its model times its trial speaker, because it varies with both (``models and speakers``). Pairs of two
    copies of one speaker are no trials. ``trial speakers`` repeats every trial with its trial speaker alone, as in the
    subsets bootstrap of Bolle et al. 2004, as if all models were fixed.

    Args:
        scores: shape (trials,).
        is_target: shape (trials,), bool.
        models: shape (trials,), speaker that the model was enrolled from.
        trial_speakers: shape (trials,), speaker of the trial utterance.
        draws: from the speakers of both.
        measures: keys of `DETECTION_MEASURES`; rates are shares.

    Raises:
        InputError: columns of different lengths, an unknown measure, drawing or speaker, a test without targets
            or without nontargets, or scores that are not finite.
    """
    unknown = sorted(set(measures) - set(DETECTION_MEASURES))
    if unknown:
        raise InputError(f"Expected measures among {', '.join(DETECTION_MEASURES)}, found {unknown[0]!r}.")
    if drawing not in ("models and speakers", "trial speakers"):
        raise InputError(f"Expected drawing by models and speakers or by trial speakers, found {drawing!r}.")
    all_scores, targets = calibration.validate_scores(scores, "trial"), _validate_targets(is_target)
    _validate_lengths(all_scores.size, targets.size, np.size(models), np.size(trial_speakers))
    order = np.lexsort((targets, all_scores))  # nontargets first among equal scores
    trials = calibration.SortedScores(all_scores[order], targets[order])
    speaker, model = draws.positions(trial_speakers)[order], draws.positions(models)[order]
    model[trials.is_target | (drawing == "trial speakers")] = -1  # times 1: these follow their speaker alone

    def measure(times: Counts) -> list[float]:
        drawn = trials.repeat(times)
        if not 0 < drawn.n_target < drawn.values.size:
            return [np.nan] * len(measures)
        return [DETECTION_MEASURES[name](drawn) for name in measures]

    columns = np.array([measure(counts[speaker] * np.append(counts, 1)[model]) for counts in count_rows(draws)]).T
    crossed = np.empty((len(measures), 0))
    if drawing == "models and speakers":
        crossed = np.array([measure(np.where(model < 0, 1, pairs[speaker, model])) for pairs in draws.draw_pairs()]).T
    return {
        name: replace(make_replicates(column, draws, pairs), bounds=(0.0, 1.0) if name in EQUAL_ERROR_RATES else None)
        for name, column, pairs in zip(measures, columns, crossed, strict=True)
    }


def bootstrap_ratio(
    numerators: ArrayLike, denominators: ArrayLike, speakers: ArrayLike, draws: SpeakerDraws
) -> Replicates:
    """Sum of numerators over sum of denominators of the resamples.

    Word errors over reference words give the WER, pooled as the challenge pools it (a share, lower is better).

    Args:
        numerators, denominators: shape (utterances,), finite; denominators not negative.
        speakers: shape (utterances,).

    Raises:
        InputError: columns of different lengths, an unknown speaker, or values out of range.
    """
    above, below = real_numbers(numerators, "numerators"), real_numbers(denominators, "denominators")
    _validate_lengths(above.size, below.size, np.size(speakers))
    if not (np.isfinite(above).all() and np.isfinite(below).all() and (below >= 0).all()):
        raise InputError("Expected finite values and denominators of 0 or above, found others.")
    positions, n = draws.positions(speakers), len(draws.speakers)
    rows = count_rows(draws)
    totals = rows @ np.bincount(positions, weights=above, minlength=n)
    sizes = rows @ np.bincount(positions, weights=below, minlength=n)
    return make_replicates(np.divide(totals, sizes, out=np.full(totals.size, np.nan), where=sizes > 0), draws)


def bootstrap_mean(values: ArrayLike, speakers: ArrayLike, draws: SpeakerDraws) -> Replicates:
    """Return mean over all utterances of the resamples, such as that of ρF0.

    Args:
        values: shape (utterances,), finite.
        speakers: shape (utterances,).

    Raises:
        InputError: columns of different lengths, an unknown speaker, or values that are not finite.
    """
    array = real_numbers(values, "values")
    return bootstrap_ratio(array, np.ones(array.size), speakers, draws)


def weighted_sum(parts: Sequence[tuple[float, Replicates]]) -> Replicates:
    """Return the sum of weight times measure: an average over sets, a difference of systems, a change of unit.

    Parts that share draws vary together; parts with draws of their own vary independently.

    Raises:
        InputError: no part, or different numbers of resamples.
    """
    sizes = {part.resampled.size for _, part in parts}
    if len(sizes) != 1:
        raise InputError(f"Expected parts with one number of resamples, found {sorted(sizes)}.")
    estimate = sum(weight * part.estimate for weight, part in parts)
    all_draws = {id(draws): draws for _, part in parts for draws in part.draws}
    left_out = {key: np.full(len(draws.speakers), estimate) for key, draws in all_draws.items()}
    for weight, part in parts:
        for draws, without in zip(part.draws, part.left_out, strict=True):
            left_out[id(draws)] += weight * (without - part.estimate)
    resampled = np.sum([weight * part.resampled for weight, part in parts], axis=0)
    varied = [weight * (part.crossed - part.estimate) for weight, part in parts if part.crossed.size]
    if len({one.size for one in varied}) > 1:
        raise InputError("Expected parts with one number of draws of pairs, found several.")
    crossed = estimate + np.sum(varied, axis=0) if varied else np.empty(0)
    bounds = None
    ranges = [(weight, part.bounds) for weight, part in parts if part.bounds is not None and weight > 0]
    if len(ranges) == len(parts):
        bounds = sum(weight * low for weight, (low, _) in ranges), sum(weight * high for weight, (_, high) in ranges)
    return Replicates(estimate, resampled, tuple(all_draws.values()), tuple(left_out.values()), bounds, crossed)


def difference(first: Replicates, second: Replicates) -> Replicates:
    """Return the first measure less the second on the same resamples.

    Raises:
        InputError: they come from different draws, so that their difference would not be paired.
    """
    if {id(draws) for draws in first.draws} != {id(draws) for draws in second.draws}:
        raise InputError(
            "Expected two measures of the same draws, found different ones. Draw once and use these draws for both."
        )
    return weighted_sum([(1.0, first), (-1.0, second)])


def count_rows(draws: SpeakerDraws) -> Counts:
    """Return all speakers once, then all but one, then the resamples."""
    n = len(draws.speakers)
    everyone = np.ones((1, n), dtype=np.int64)
    return np.concatenate([everyone, everyone - np.eye(n, dtype=np.int64), draws.counts])


def make_replicates(values: Floats, draws: SpeakerDraws, crossed: Floats | None = None) -> Replicates:
    """Return values in the order of `count_rows`, and those where pairs alone vary."""
    resamples = 1 + len(draws.speakers)
    values = np.where(np.isfinite(values), values, np.nan)
    pairs = np.empty(0) if crossed is None else np.where(np.isfinite(crossed), crossed, np.nan)
    return Replicates(float(values[0]), values[resamples:], (draws,), (values[1:resamples],), crossed=pairs)


def _validate_targets(is_target: ArrayLike) -> Flags:
    targets = np.asarray(is_target)
    if targets.dtype != np.bool_ or targets.ndim != 1:
        raise InputError(
            f"Expected True for targets and False for nontargets in one dimension, found {targets.dtype} of shape "
            f"{targets.shape}."
        )
    if targets.all() or not targets.any():
        raise InputError(
            f"Expected targets and nontargets, found {np.count_nonzero(targets)} targets of {targets.size} trials."
        )
    return targets


def _validate_lengths(*lengths: int) -> None:
    if len(set(lengths)) != 1 or lengths[0] == 0:
        raise InputError(f"Expected columns of one length, at least one entry, found {lengths}.")


def bootstrap_gain_of_distinctiveness(
    original: ArrayLike, anonymised: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws
) -> Replicates:
    """G_VD of the resamples, in dB: 10 log10 of the diagonal dominance of M_pp over that of M_oo.

    Args:
        original, anonymised: shape (speakers, speakers), M_oo and M_pp; NaN on the diagonal is left out.
        speakers: names of the rows.

    Raises:
        InputError: matrices of another shape, a similarity between two speakers that is not finite, or an unknown
            speaker.
    """
    before, after = (_dominances(matrix, speakers, draws) for matrix in (original, anonymised))
    with np.errstate(divide="ignore", invalid="ignore"):
        return make_replicates(10 * np.log10(after / before), draws)


def bootstrap_de_identification(
    original: ArrayLike, mixed: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws
) -> Replicates:
    """Return De-Identification of the resamples: 1 less the diagonal dominance of M_op over that of M_oo.

    Arguments and errors: as `bootstrap_gain_of_distinctiveness`, with M_oo and M_op.
    """
    before, between = (_dominances(matrix, speakers, draws) for matrix in (original, mixed))
    with np.errstate(divide="ignore", invalid="ignore"):
        return make_replicates(1 - between / before, draws)


def _dominances(similarity: ArrayLike, speakers: Sequence[str], draws: SpeakerDraws) -> Floats:
    """|mean of the diagonal - mean of the rest| of a similarity matrix for each of `count_rows`."""
    matrix = real_numbers(similarity, "similarities")
    if matrix.shape != (len(speakers), len(speakers)):
        raise InputError(
            f"Expected a similarity for each pair of {len(speakers)} speakers, found shape {matrix.shape}."
        )
    own = np.diagonal(matrix)
    others = np.where(np.eye(len(speakers), dtype=np.bool_), 0.0, matrix)
    if not np.isfinite(others).all():
        raise InputError("Expected finite similarities of different speakers, found some that are not.")
    rows = count_rows(draws)[:, draws.positions(speakers)].astype(np.float64)
    known = np.isfinite(own)
    with np.errstate(invalid="ignore"):
        own_mean = rows[:, known] @ own[known] / rows[:, known].sum(axis=1)
        pairs = rows.sum(axis=1) ** 2 - (rows**2).sum(axis=1)
        other_mean = ((rows @ others) * rows).sum(axis=1) / pairs
    return np.asarray(np.abs(own_mean - other_mean))
