"""What the EER hides, against the words of the definitions taken trial by trial, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.bootstrap import draw_speakers
from evaluation.metrics.catalogue import EXPOSURE_METRICS
from evaluation.metrics.detection import kaldi_eer
from evaluation.metrics.exposure import (
    EXPOSED_BELOW,
    FALSE_ALARM_RATES,
    Trials,
    bootstrap_exposure,
    fit_beta_binomial,
    make_trials,
    measure_exposure,
)

Row = tuple[float, bool, str, str]


def draw_rows(random: np.random.Generator) -> list[Row]:
    """A small test: some utterances of each speaker on some or all models, often with ties."""
    speakers = [f"s{number}" for number in range(random.integers(1, 6))]
    steps, complete, signal = random.integers(1, 12), random.random() < 0.7, random.normal(0, 2)
    rows: list[Row] = []
    for speaker in [*speakers, "stranger"]:
        for number in range(random.integers(0, 5)):
            for model in speakers:
                if complete or random.random() < 0.6:
                    score = random.normal() + signal * (model == speaker)
                    rows.append((float(round(score * steps) / steps), model == speaker, model, f"{speaker}-{number}"))
    random.shuffle(rows)
    return rows


def trials_of(rows: list[Row]) -> Trials:
    scores, targets, models, utterances = zip(*rows, strict=True) if rows else ((), (), (), ())
    return make_trials(np.array(scores, float), np.array(targets, bool), models, utterances)


def plain_values(rows: list[Row]) -> dict[str, float]:
    """Every measure that does not depend on a draw, in the units of the catalogue."""
    target = [score for score, own, _, _ in rows if own]
    nontarget = [score for score, own, _, _ in rows if not own]
    found = {}
    for key, rate in FALSE_ALARM_RATES.items():
        fitting = [
            t for t in [*target, *nontarget, math.inf] if sum(n >= t for n in nontarget) <= rate * len(nontarget)
        ]
        if rate * len(nontarget) >= 1:
            found[key] = 100 * sum(score >= min(fitting) for score in target) / len(target)
    eers = []
    for name in {model for _, _, model, _ in rows}:
        own, others = (
            [s for s, is_own, model, _ in rows if model == name and is_own is kind] for kind in (True, False)
        )
        if own and others:
            eers.append(kaldi_eer(own, others))
    if eers:
        found["worst_speaker_eer"] = 100 * min(eers)
        found["mean_speaker_eer"] = 100 * float(np.mean([min(eer, 0.5) for eer in eers]))
        found |= {key: 100 * float(np.mean([eer < limit for eer in eers])) for key, limit in EXPOSED_BELOW.items()}
    turned = kaldi_eer([-score for score in target], [-score for score in nontarget])
    found["better_sign_eer"] = 100 * min(kaldi_eer(target, nontarget), turned)
    middle = np.median(nontarget)
    found["inverted_targets"] = 100 * float(np.mean([(s < middle) + (s == middle) / 2 for s in target]))
    return found


def plain_ranks(rows: list[Row]) -> list[float] | None:
    """Mid ranks from 1 of the utterances that have all models and their own."""
    models = {model for _, _, model, _ in rows}
    ranks = []
    for utterance in {utterance for *_, utterance in rows}:
        scores = {model: (score, own) for score, own, model, name in rows if name == utterance}
        own = [score for score, is_own in scores.values() if is_own]
        if len(scores) == len(models) and own:
            above = sum(score > own[0] for score, _ in scores.values())
            ranks.append(1 + above + (sum(score == own[0] for score, _ in scores.values()) - 1) / 2)
    return sorted(ranks) if ranks and len(models) > 1 else None


def test_measures_are_those_of_the_definitions():
    random = np.random.default_rng(17)
    measured = 0
    for _ in range(60):
        rows = draw_rows(random)
        if len({own for _, own, _, _ in rows}) < 2:
            with pytest.raises(InputError):
                trials_of(rows)
            continue
        measured += 1
        found, expected = measure_exposure(trials_of(rows)), plain_values(rows)
        values = dict(found.values())
        in_ranks = {key: values.pop(key) for key in list(values) if key.startswith("rank_")}
        assert values == pytest.approx(expected, abs=1e-9)
        assert set(EXPOSURE_METRICS) == {*expected, *in_ranks} | {
            key for key in EXPOSURE_METRICS for reason in found.reasons if key.startswith(reason) or key in reason
        } | ({*EXPOSED_BELOW, "mean_speaker_eer"} if "worst_speaker_eer" in found.reasons else set())
        ranks = plain_ranks(rows)
        assert (found.ranks is None) is (ranks is None)
        if found.ranks is not None and ranks is not None:
            mine = np.repeat(np.arange(1, found.ranks.counts.size + 1), found.ranks.counts)
            # Rounding halves by a draw moves each rank by a half at most.
            assert mine.size == len(ranks)
            assert abs(mine.sum() - sum(ranks)) <= sum(rank % 1 for rank in ranks)
            size = found.ranks.counts.size
            chances = found.ranks.chances
            assert found.ranks.mean_bit == pytest.approx(
                sum(p * math.log2(size * p) for p in chances if p > 0), abs=1e-9
            )
            assert found.ranks.worst_bit == pytest.approx(math.log2(size * chances.max()))
            assert -1e-9 <= found.ranks.mean_bit <= math.log2(size) + 1e-9
    assert measured > 30


def square(random: np.random.Generator, speakers: int, utterances: int, signal: float) -> Trials:
    """Every utterance on every model."""
    own = np.repeat(np.arange(speakers), utterances)
    table = random.normal(size=(own.size, speakers)) + signal * (own[:, None] == np.arange(speakers))
    models = [f"s{number}" for number in range(speakers)] * own.size
    said = np.repeat([f"u{number}" for number in range(own.size)], speakers)
    return make_trials(table.ravel(), (own[:, None] == np.arange(speakers)).ravel(), models, said.tolist())


@pytest.mark.parametrize("utterances", [4, 40])  # fitted, and by the histogram
def test_ranks_of_random_scores_disclose_what_exchanged_identities_do_and_perfect_ones_all(utterances):
    random = np.random.default_rng(3)
    chance = measure_exposure(square(random, 16, utterances, 0)).ranks
    assert chance is not None
    assert chance.is_fitted is (utterances < 10)
    assert chance.mean_bit == pytest.approx(chance.shuffled_bit, abs=0.06)
    perfect = measure_exposure(square(random, 16, utterances, 100)).ranks
    assert perfect is not None
    assert perfect.mean_bit == pytest.approx(4, abs=1e-3)


def test_beta_binomial_is_the_most_likely_one():
    from scipy.optimize import minimize
    from scipy.special import betaln, gammaln

    random = np.random.default_rng(5)
    table = np.array(
        [
            np.bincount(random.binomial(9, random.beta(a, b, 60)), minlength=10)
            for a, b in [(1, 1), (0.3, 4), (6, 2), (0.2, 0.2), (30, 30)]
        ]
    )
    ways = gammaln(10) - gammaln(np.arange(1, 11)) - gammaln(np.arange(10, 0, -1))
    for row, chances in zip(table, fit_beta_binomial(table), strict=True):

        def cost(at, row=row):
            a, b = np.exp(at)
            return -float(row @ (ways + betaln(np.arange(10) + a, 9 - np.arange(10) + b) - betaln(a, b)))

        best = min(minimize(cost, start, method="Nelder-Mead").fun for start in ([0, 0], [2, 2], [-1, 1]))
        assert -float(row @ np.log(chances)) == pytest.approx(best, abs=1e-3)


def test_resamples_without_a_change_are_the_measures_and_others_those_of_repeated_trials():
    random = np.random.default_rng(8)
    trials = square(random, 6, 30, 1.5)
    trials = make_trials(
        np.round(trials.scores * 4) / 4,
        trials.is_target,
        [trials.models[at] for at in trials.model],
        [trials.utterances[at] for at in trials.utterance],
    )
    speakers = [f"s{int(trials.utterances[at][1:]) // 30}" for at in trials.utterance]
    exposure = measure_exposure(trials)
    draws = draw_speakers(speakers, 20, random)
    found = bootstrap_exposure(trials, speakers, draws, exposure)
    assert {key: one.estimate for key, one in found.items() if key != "rank_disclosure"} == pytest.approx(
        {key: value for key, value in exposure.values().items() if key in found and key != "rank_disclosure"}
    )
    counts = dict(zip(draws.speakers, draws.counts[0], strict=True))
    names = [trials.models[at] for at in trials.model]
    times = [
        counts[who] * (1 if own else counts[model])
        for who, model, own in zip(speakers, names, trials.is_target, strict=True)
    ]
    drawn, own = np.repeat(trials.scores, times), np.repeat(trials.is_target, times)
    assert found["rank_disclosure"].find_interval().method == "logit"
    assert found["rank_disclosure"].bounds == (0.0, math.log2(6))
    limit = min(t for t in [*drawn, np.inf] if np.mean(drawn[~own] >= t) <= 0.01)
    assert found["accepted_at_1_percent"].resampled[0] == pytest.approx(100 * np.mean(drawn[own] >= limit))


@pytest.mark.parametrize(
    ("scores", "targets", "models", "sentence"),
    [
        ([1.0, np.nan], [True, False], "ab", "NaN or infinite"),
        ([1.0, 2.0], [True, True], "ab", "found 2 targets of 2"),
        ([1.0, 2.0], [True, False], "a", "found columns of 2, 2, 1 and 2"),
    ],
)
def test_trials_that_have_no_measure_are_refused(scores, targets, models, sentence):
    with pytest.raises(InputError, match=sentence):
        make_trials(scores, np.array(targets), models, "uu")


def test_one_speaker_has_no_ranks_and_few_nontargets_no_low_rates():
    trials = make_trials([2.0, 1.0, 0.0], np.array([True, False, False]), "aaa", "uvw")
    found = measure_exposure(trials)
    assert found.ranks is None
    assert found.accepted == {}
    assert found.reasons["accepted_at_1_percent"] == "2 nontarget trials cannot show a false-alarm rate of 1 %"
    assert "rank_disclosure" in found.reasons


def test_repeated_pairs_are_refused_in_full_and_in_sparse_tests():
    for models in (["a", "a"], ["a", "a", *(f"m{number}" for number in range(90))]):
        utterances = ["u", "u", *(f"u{number}" for number in range(len(models) - 2))]
        targets = np.arange(len(models)) == 0
        with pytest.raises(InputError, match="each pair of model and utterance once"):
            make_trials(np.arange(len(models), dtype=float), targets, models, utterances)
