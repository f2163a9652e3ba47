"""Whom an average hides: speakers that are found with certainty, ranks that give identities away, misled attackers.

`measure_exposure` computes everything from the trials of one test, in two sorts of all trials; `bootstrap_exposure`
the intervals over speakers.

Conventions: a higher score says "same speaker"; rates are shares, disclosures bits; a model is the enrolled speaker; a
lower value protects better, but of equal error rates.
Sources: share of targets found at few false alarms: VoxGuard, arXiv 2509.18413; similarity rank disclosure: arXiv
2508.05250, for voices arXiv 2605.07291; speakers alone: their equal error rates as in `detection`, linkability as in
`linkability`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from common.arrays import Flags, Floats
from common.errors import InputError
from evaluation.metrics.bootstrap import (
    Replicates,
    SpeakerDraws,
    bootstrap_mean,
    count_rows,
    make_replicates,
)
from evaluation.metrics.calibration import SortedScores, validate_scores
from evaluation.metrics.detection import compute_kaldi_eer
from evaluation.metrics.linkability import compute_linkability

Codes = NDArray[np.int64]

# Share of false alarms at which targets are counted, by key in the catalogue.
FALSE_ALARM_RATES: Mapping[str, float] = {
    "accepted_at_1_percent": 0.01,
    "accepted_at_01_percent": 0.001,
    "accepted_at_001_percent": 0.0001,
}
# A speaker counts as exposed below these equal error rates.
EXPOSED_BELOW: Mapping[str, float] = {
    "speakers_below_5": 0.05,
    "speakers_below_10": 0.1,
    "speakers_below_20": 0.2,
}
CHANCE = 0.5
TRIALS_PER_RANK = 10  # of a histogram; with fewer a beta-binomial is fitted
SHUFFLES = 30
_LARGEST_LOG = 12.0  # of the parameters of a beta-binomial: beyond e^12 it does not change in bits that anybody reads
_ITERATIONS, _LARGEST_STEP, _GAIN = 50, 2.0, 1e-6
_SLACK = 1e-9  # of a rate times a number of trials that should be whole


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """The scored trials of one test; names as codes.

    Attributes:
        scores: shape (trials,), finite.
        is_target: shape (trials,).
        model, utterance: shape (trials,), places in the lists of names.
        models, utterances: names in order of appearance.
    """

    scores: Floats
    is_target: Flags
    model: Codes
    utterance: Codes
    models: tuple[str, ...]
    utterances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SpeakerExposure:
    """One enrolled speaker against all others: own trials as targets, those of others on the same model as nontargets.

    Attributes:
        kaldi_eer: share in [0, 1].
        linkability: D_sys; 0 of fewer than 20 targets.
    """

    name: str
    n_target: int
    n_nontarget: int
    kaldi_eer: float
    linkability: float


@dataclass(frozen=True, slots=True, eq=False)
class RankDisclosure:
    """What the rank of the true speaker among all that are enrolled gives away.

    Attributes:
        counts: shape (speakers,), trial utterances at each rank, the most similar first.
        chances: shape (speakers,), chance of each rank, from the counts or fitted to them.
        is_fitted: whether by a beta-binomial, because there are fewer than 10 utterances for each rank.
        mean_bit: divergence of the ranks from even ones, 0 to log2 of the speakers.
        worst_bit: disclosure of the rank that says most.
        shuffled: shape (`SHUFFLES`,), disclosures where identities are exchanged; `shuffled_bit` is their mean, the
            bias of a sample of this size.
        n_left_out: utterances of enrolled speakers that were not compared with every model, and so have no rank.
    """

    counts: Codes
    chances: Floats
    is_fitted: bool
    mean_bit: float
    worst_bit: float
    shuffled: Floats
    n_left_out: int

    @property
    def shuffled_bit(self) -> float:
        return float(self.shuffled.mean())


@dataclass(frozen=True, slots=True)
class Exposure:
    """What the equal error rate of a test hides.

    Attributes:
        accepted: share of targets found at each of `FALSE_ALARM_RATES`, by its key; those that the test can tell.
        kaldi_eer, turned_eer: equal error rates of the scores, and of the scores with their sign turned.
        inverted_targets: share of targets below the median nontarget, equal ones half.
        speakers: the most exposed first.
        ranks: None where no utterance was compared with every model.
        reasons: why a number is not given, by its key in the catalogue.
    """

    n_target: int
    n_nontarget: int
    accepted: Mapping[str, float]
    kaldi_eer: float
    turned_eer: float
    inverted_targets: float
    speakers: tuple[SpeakerExposure, ...]
    ranks: RankDisclosure | None = field(compare=False)
    reasons: Mapping[str, str]

    def values(self) -> Mapping[str, float]:
        """Return the numbers that there are, by their key in the catalogue and in its units: shares in percent."""
        found = {key: 100 * share for key, share in self.accepted.items()}
        if self.ranks is not None:
            found["rank_disclosure"] = self.ranks.mean_bit
            found["rank_disclosure_shuffled"] = self.ranks.shuffled_bit
            found["rank_disclosure_worst"] = self.ranks.worst_bit
        if self.speakers:
            eers = np.array([one.kaldi_eer for one in self.speakers])
            found["worst_speaker_eer"] = 100 * float(eers[0])
            found["mean_speaker_eer"] = 100 * float(np.minimum(eers, CHANCE).mean())
            found |= {key: 100 * float((eers < limit).mean()) for key, limit in EXPOSED_BELOW.items()}
        found["better_sign_eer"] = 100 * min(self.kaldi_eer, self.turned_eer)
        found["inverted_targets"] = 100 * self.inverted_targets
        return found


def make_trials(scores: ArrayLike, is_target: ArrayLike, models: Sequence[str], utterances: Sequence[str]) -> Trials:
    """Return the trials of a test, checked.

    Args:
        scores: shape (trials,).
        is_target: shape (trials,), bool.
        models: shape (trials,), enrolled speaker of each trial.
        utterances: shape (trials,), trial utterance of each trial.

    Raises:
        InputError: columns of different lengths, scores that are not finite, only targets or only nontargets, or
            a pair of model and utterance twice.
    """
    values, targets = validate_scores(scores, "trial"), np.asarray(is_target)
    if targets.dtype != np.bool_ or not targets.shape == values.shape == (len(models),) == (len(utterances),):
        raise InputError(
            "Expected a score, True or False, a model and an utterance of each trial, found columns of "
            f"{values.size}, {targets.size}, {len(models)} and {len(utterances)}."
        )
    if targets.all() or not targets.any():
        raise InputError(
            f"Expected targets and nontargets, found {np.count_nonzero(targets)} targets of {targets.size} trials."
        )
    model, names = _encode(models)
    utterance, said = _encode(utterances)
    if _are_repeated(utterance * len(names) + model, len(names) * len(said)):
        raise InputError("Expected each pair of model and utterance once, found some of them repeated.")
    return Trials(values, targets, model, utterance, names, said)


def measure_exposure(trials: Trials, *, seed: int = 0) -> Exposure:
    """Return everything that an equal error rate hides, of one test.

    Args:
        seed: of the draws that round mid ranks and exchange identities.

    Example:
        >>> trials = make_trials([3.0, 1.0, 0.0, 2.0], np.array([True, False, False, True]), list("abab"), list("uuvv"))
        >>> measure_exposure(trials).ranks.mean_bit
        1.0
    """
    order = _sort(trials)
    scores = SortedScores(trials.scores[order], trials.is_target[order])
    accepted = {key: _accepted(scores, rate) for key, rate in FALSE_ALARM_RATES.items()}
    reasons = {
        key: f"{scores.n_nontarget:,} nontarget trials cannot show a false-alarm rate of {100 * rate:g} %"
        for key, rate in FALSE_ALARM_RATES.items()
        if accepted[key] is None
    }
    speakers = _measure_speakers(trials, order)
    if not speakers:
        reasons["worst_speaker_eer"] = "no model has both target and nontarget trials"
    ranks = measure_ranks(trials, np.random.default_rng(seed))
    if ranks is None:
        reasons["rank_disclosure"] = (
            "no utterance of an enrolled speaker is compared with every model, or there is only one"
        )
    return Exposure(
        scores.n_target,
        scores.n_nontarget,
        {key: share for key, share in accepted.items() if share is not None},
        compute_kaldi_eer(scores).rate,
        compute_turned_eer(scores),
        _share_below(scores),
        speakers,
        ranks,
        reasons,
    )


def compute_turned_eer(scores: SortedScores) -> float:
    """Return Kaldi's equal error rate of an attacker who turns the sign of every score."""
    return compute_kaldi_eer(SortedScores(-scores.values[::-1], scores.is_target[::-1])).rate


def measure_ranks(trials: Trials, random: np.random.Generator) -> RankDisclosure | None:
    """Disclosure by the rank of the true speaker, of the utterances that were compared with every model.

    The rank of the true one is 1 more than the models that score above, and half of those that tie, rounded by a draw.
    Identities are exchanged by speaker, as a whole: whose utterances are alike stays together.

    Args:
        random: for ties and for exchanged identities.

    Returns:
        None where there are fewer than two models or no utterance that has a rank.
    """
    table, true, left_out = _score_table(trials)
    if len(trials.models) < 2 or not len(true):
        return None
    size = len(trials.models)
    counts = np.bincount(_ranks(table, true, random), minlength=size)
    is_fitted = len(true) < TRIALS_PER_RANK * size
    exchanged = (
        np.bincount(_ranks(table, random.permutation(size)[true], random), minlength=size) for _ in range(SHUFFLES)
    )
    shuffled = _disclosures(np.array(list(exchanged), np.float64), is_fitted)[1]
    chances, mean = _disclosures(counts[None, :].astype(np.float64), is_fitted)
    worst = float(np.log2(size * chances.max()))
    return RankDisclosure(counts, chances[0], is_fitted, float(mean[0]), worst, shuffled, left_out)


def fit_beta_binomial(counts: ArrayLike) -> Floats:
    """Return the chances of ranks by the beta-binomial that is most likely, for many samples at once.

    Both parameters lie between e^-12 and e^12, found by Newton's method in their logarithms.

    Args:
        counts: shape (samples, ranks), how often each rank occurs.

    Returns:
        Shape (samples, ranks), each row adds up to 1.
    """
    table = np.asarray(counts, np.float64)
    logs = np.log(_start(table))
    best = _likelihood(table, logs)
    going = np.arange(len(table))
    for _ in range(_ITERATIONS):
        rows, at, before = table[going], logs[going], best[going]
        moved, reached = _improve(rows, at, before, _newton_step(rows, at))
        logs[going], best[going] = moved, reached
        going = going[reached - before > _GAIN * (1 + np.abs(reached))]
        if not going.size:
            break
    return _beta_binomial(np.exp(logs), table.shape[1] - 1)


def bootstrap_exposure(
    trials: Trials, trial_speakers: Sequence[str], draws: SpeakerDraws, exposure: Exposure
) -> dict[str, Replicates]:
    """Return the measures of the resamples, by their key in the catalogue and in its units.

    Trials are drawn as in `bootstrap_detection`: a target as often as its speaker, a nontarget as often as its model
    times its speaker. Ranks stay those among all models, drawn with their speaker. Of the worst speaker, of the worst
    rank and of what follows from the sign there is no interval: with other speakers another one is the worst. Nor of
    shares of exposed speakers: where none is exposed, no resample holds one, although other speakers may be.

    Args:
        trial_speakers: shape (trials,), speaker of each trial utterance.
        draws: from the speakers of models and trial utterances.
        exposure: of these trials.

    Raises:
        InputError: columns of different lengths, or an unknown speaker.
    """
    if len(trial_speakers) != trials.scores.size:
        raise InputError(f"Expected the speaker of {trials.scores.size} trials, found {len(trial_speakers)}.")
    order = _sort(trials)
    model = draws.positions(trials.models)[trials.model[order]]
    found = _resampled_acceptance(trials, order, model, draws.positions(trial_speakers)[order], draws, exposure)
    if exposure.ranks is not None:
        found["rank_disclosure"] = _resampled_ranks(trials, draws, exposure.ranks)
    if exposure.speakers:
        eers = np.array([one.kaldi_eer for one in exposure.speakers])
        names = [one.name for one in exposure.speakers]
        found["mean_speaker_eer"] = bootstrap_mean(100 * np.minimum(eers, CHANCE), names, draws)
    return found


# Trials --------------------------------------------------------------------------------------------


def _encode(names: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """Return places of names in the list of them, in order of appearance; no sort."""
    places: dict[str, int] = {}
    codes = [places.setdefault(name, len(places)) for name in names]
    return np.array(codes, np.int64), tuple(places)


def _are_repeated(pairs: Codes, possible: int) -> bool:
    """Return whether a pair occurs twice; counted where most of the possible ones occur, else sorted."""
    if possible <= 16 * pairs.size:
        return bool(np.bincount(pairs, minlength=possible).max() > 1)
    return bool(np.unique(pairs).size < pairs.size)


def _sort(trials: Trials) -> Codes:
    """Return trials in ascending order of their scores, nontargets first among equal ones."""
    sides = np.concatenate([np.flatnonzero(~trials.is_target), np.flatnonzero(trials.is_target)])
    return np.asarray(sides[np.argsort(trials.scores[sides], kind="stable")])


def _share_below(scores: SortedScores) -> float:
    nontargets = scores.nontargets
    middle = float(nontargets[(nontargets.size - 1) // 2 : nontargets.size // 2 + 1].mean())  # sorted already
    below, equal = (np.searchsorted(scores.targets, middle, side) for side in ("left", "right"))
    return float(below + equal) / (2 * scores.n_target)


def _accepted(scores: SortedScores, rate: float) -> float | None:
    """Share of targets above the lowest threshold that at most this share of nontargets reaches."""
    allowed = int(rate * scores.n_nontarget + _SLACK)
    if not allowed:
        return None
    refused = scores.nontargets[-allowed - 1]
    return float(scores.n_target - np.searchsorted(scores.targets, refused, "right")) / scores.n_target


def _measure_speakers(trials: Trials, order: Codes) -> tuple[SpeakerExposure, ...]:
    model = trials.model[order]
    by_model = order[np.argsort(model, kind="stable")]
    bounds = np.concatenate([[0], np.bincount(model, minlength=len(trials.models)).cumsum()])
    found = []
    for place, name in enumerate(trials.models):
        own = by_model[bounds[place] : bounds[place + 1]]
        scores = SortedScores(trials.scores[own], trials.is_target[own])
        if scores.n_target and scores.n_nontarget:
            rate, linked = compute_kaldi_eer(scores).rate, compute_linkability(scores)
            found.append(SpeakerExposure(name, scores.n_target, scores.n_nontarget, rate, linked))
    return tuple(sorted(found, key=lambda one: (one.kaldi_eer, -one.linkability, one.name)))


# Ranks ---------------------------------------------------------------------------------------------


def _score_table(trials: Trials) -> tuple[Floats, Codes, int]:
    """Return scores of the utterances that have a rank, shape (utterances, models), their models, and how many lack
    one."""
    shape = len(trials.utterances), len(trials.models)
    full = np.bincount(trials.utterance, minlength=shape[0]) == shape[1]
    own = np.bincount(trials.utterance[trials.is_target], minlength=shape[0])
    ranked = full & (own == 1)
    row = np.cumsum(ranked) - 1
    kept = ranked[trials.utterance]
    table = np.empty((int(ranked.sum()), shape[1]))
    table[row[trials.utterance[kept]], trials.model[kept]] = trials.scores[kept]
    true = np.empty(len(table), np.int64)
    targets = kept & trials.is_target
    true[row[trials.utterance[targets]]] = trials.model[targets]
    return table, true, int(np.count_nonzero(own)) - len(table)


def _ranks(table: Floats, true: Codes, random: np.random.Generator) -> Codes:
    """Rank of the true model of each utterance, from 0; half of those that tie count, halves are rounded by a draw."""
    own = table[np.arange(len(true)), true][:, None]
    above, tied = (table > own).sum(axis=1), (table == own).sum(axis=1) - 1
    return np.asarray(above + (tied + (random.random(len(true)) < 0.5)) // 2)


def _disclosures(counts: Floats, is_fitted: bool) -> tuple[Floats, Floats]:
    """Return chances of the ranks, shape (samples, ranks), and the mean disclosure, shape (samples,), bits."""
    size = counts.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        chances = fit_beta_binomial(counts) if is_fitted else counts / counts.sum(axis=1, keepdims=True)
        logs = np.where(chances > 0, np.log2(size * chances), 0.0)
    return chances, np.asarray((chances * logs).sum(axis=1))


def _start(counts: Floats) -> Floats:
    """Parameters by the method of moments where they can be had, shape (samples, 2)."""
    draws = counts.shape[1] - 1
    places = np.arange(draws + 1)
    total = np.maximum(counts.sum(axis=1), 1)
    share = np.clip((counts @ places) / total / draws, 1e-3, 1 - 1e-3)
    spread = (counts @ places**2) / total - (share * draws) ** 2
    # How alike the draws of one utterance are, between 0 (binomial) and 1 (all or nothing).
    alike = np.clip((spread / (share * (1 - share) * draws) - 1) / max(draws - 1, 1), 0.01, 0.95)
    strength = 1 / alike - 1
    return np.stack([share * strength, (1 - share) * strength], axis=1)


def _tails(counts: Floats) -> tuple[Floats, Floats, Floats, Codes]:
    """Return how many utterances each sample has, how many beyond each step from the first and from the last rank; the
    steps.

    With them the likelihood of a beta-binomial is a sum over steps: no gamma functions.
    """
    below = np.cumsum(counts, axis=1)
    total = below[:, -1:]
    return total, total - below[:, :-1], below[:, -2::-1], np.arange(counts.shape[1] - 1)


def _likelihood(counts: Floats, logs: Floats) -> Floats:
    """Return Log-likelihood of each sample, less what does not depend on the parameters; `logs` has shape (samples,
    2)."""
    total, beyond, short, steps = _tails(counts)
    first, second = np.exp(logs[:, :1]), np.exp(logs[:, 1:])
    parts = beyond * np.log(first + steps) + short * np.log(second + steps) - total * np.log(first + second + steps)
    return np.asarray(parts.sum(axis=1))


def _newton_step(counts: Floats, logs: Floats) -> Floats:
    """Newton's step where the likelihood is curved downwards, else one along the slope; at most e² of a parameter."""
    total, beyond, short, steps = _tails(counts)
    sides = np.exp(logs)
    first, second = sides[:, :1] + steps, sides[:, 1:] + steps
    both = first + second - steps
    shared, curve = (total / both).sum(axis=1), (total / both**2).sum(axis=1)
    slope = sides * np.stack([(beyond / first).sum(axis=1) - shared, (short / second).sum(axis=1) - shared], axis=1)
    aa = sides[:, 0] ** 2 * (curve - (beyond / first**2).sum(axis=1)) + slope[:, 0]
    bb = sides[:, 1] ** 2 * (curve - (short / second**2).sum(axis=1)) + slope[:, 1]
    ab = sides[:, 0] * sides[:, 1] * curve
    # Shifted until both eigenvalues are negative.
    middle, half = (aa + bb) / 2, np.hypot((aa - bb) / 2, ab)
    shift = np.maximum(middle + half + 1e-3 * (np.abs(middle) + half), 0.0)
    aa, bb = aa - shift, bb - shift
    with np.errstate(invalid="ignore", divide="ignore"):
        turned = np.stack([ab * slope[:, 1] - bb * slope[:, 0], ab * slope[:, 0] - aa * slope[:, 1]], axis=1)
        step = np.nan_to_num(turned / (aa * bb - ab**2)[:, None])
    longest = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step * (_LARGEST_STEP / np.maximum(longest, _LARGEST_STEP)))


def _improve(counts: Floats, logs: Floats, best: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Return the parameters after a step that is halved until it makes the sample likelier, and that likelihood."""
    moved, reached = logs.copy(), best.copy()
    left = np.arange(len(logs))
    for halving in range(10):
        tried = np.clip(logs[left] + step[left] / 2**halving, -_LARGEST_LOG, _LARGEST_LOG)
        value = _likelihood(counts[left], tried)
        better = value > best[left]
        moved[left[better]], reached[left[better]] = tried[better], value[better]
        left = left[~better]
        if not left.size:
            break
    return moved, reached


def _beta_binomial(parameters: Floats, draws: int) -> Floats:
    """Return chances of 0 to `draws`, shape (samples, draws + 1)."""
    steps = np.arange(draws)
    first, second = parameters[:, :1], parameters[:, 1:]
    # The chance of each follows from that of the one before.
    ratios = np.log(draws - steps) - np.log(steps + 1) + np.log(first + steps) - np.log(second + draws - 1 - steps)
    logs = np.concatenate([np.zeros((len(first), 1)), np.cumsum(ratios, axis=1)], axis=1)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


# Resamples -----------------------------------------------------------------------------------------


def _resampled_acceptance(
    trials: Trials, order: Codes, model: Codes, speaker: Codes, draws: SpeakerDraws, exposure: Exposure
) -> dict[str, Replicates]:
    """Return shares of targets found at each rate, from the highest nontargets of each resample."""
    is_target = trials.is_target[order][::-1]
    model, speaker = model[::-1], speaker[::-1]
    own = speaker[is_target]
    others = np.flatnonzero(~is_target)
    above = others - np.arange(others.size)  # targets that score above each nontarget
    # Ties: targets as high as a nontarget are refused with it; they stand before it in this order.
    values = trials.scores[order][::-1]
    targets = -values[is_target]
    above = np.minimum(above, np.searchsorted(targets, -values[others], "left"))
    first, second = model[others], speaker[others]
    keys, tail = tuple(exposure.accepted), slice(min(others.size, int(0.05 * others.size) + 1000))
    if not keys:
        return {}

    def measure(targets: Codes, count: Callable[[slice], Codes], total: float) -> list[float]:
        """Return the shares at each rate. `targets`, `count`: how often each target and each nontarget of a slice
        occurs."""
        found = np.concatenate([[0], np.cumsum(targets)])
        if not total or not found[-1]:
            return [np.nan] * len(keys)
        alarms = np.cumsum(count(tail))
        if alarms[-1] <= max(FALSE_ALARM_RATES.values()) * total + _SLACK:
            alarms = np.cumsum(count(slice(None)))
        limits = (FALSE_ALARM_RATES[key] * total + _SLACK for key in keys)
        return [100 * found[above[np.searchsorted(alarms, limit, "right")]] / found[-1] for limit in limits]

    occurring = np.zeros((len(draws.speakers),) * 2)
    np.add.at(occurring, (first, second), 1)
    rows = count_rows(draws)
    totals = ((rows @ occurring) * rows).sum(axis=1)

    def count_speakers(counts: Codes, part: slice) -> Codes:
        return counts[first[part]] * counts[second[part]]

    def count_pairs(counts: Codes, part: slice) -> Codes:
        return counts[first[part], second[part]]

    resampled = [
        measure(counts[own], partial(count_speakers, counts), total) for counts, total in zip(rows, totals, strict=True)
    ]
    everyone = np.ones(own.size, np.int64)
    crossed = [
        measure(everyone, partial(count_pairs, pairs), float((pairs * occurring).sum())) for pairs in draws.draw_pairs()
    ]
    columns = zip(keys, np.array(resampled).T, np.array(crossed).T, strict=True)
    return {key: make_replicates(shares, draws, varied) for key, shares, varied in columns}


def _resampled_ranks(trials: Trials, draws: SpeakerDraws, ranks: RankDisclosure) -> Replicates:
    """Return mean disclosures around the one that was measured.

    Drawn speakers make ranks uneven by chance: the resamples lie above the measure on average, and are moved down by
    as much. Their quantiles would be too narrow where most speakers are found: few that are not decide the measure.
    A disclosure is about a sum of squares: what it varies by where identities are exchanged is counted three times.
    """
    table, true, _ = _score_table(trials)
    size = len(trials.models)
    by_speaker = np.zeros((len(draws.speakers), size))
    places = _ranks(table, true, np.random.default_rng(0))
    np.add.at(by_speaker, (draws.positions(trials.models)[true], places), 1)
    rows = count_rows(draws) @ by_speaker
    mean = np.where(rows.sum(axis=1) > 0, _disclosures(rows, ranks.is_fitted)[1], np.nan)
    found = make_replicates(mean, draws)
    bias = np.nanmean(found.resampled) - found.estimate if np.isfinite(found.resampled).any() else 0.0
    resampled, bounds = np.maximum(found.resampled - bias, 0.0), (0.0, math.log2(size))
    return replace(found, estimate=ranks.mean_bit, resampled=resampled, bounds=bounds, crossed=ranks.shuffled)
