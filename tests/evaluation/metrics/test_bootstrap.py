"""Resampling of speakers: what a resample is, that it is the metric of those trials, pairing, and intervals by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from evaluation.metrics.bootstrap import (
    DETECTION_MEASURES,
    PAIR_DRAWS,
    Replicates,
    SpeakerDraws,
    bootstrap_de_identification,
    bootstrap_detection,
    bootstrap_gain_of_distinctiveness,
    bootstrap_mean,
    bootstrap_ratio,
    difference,
    draw_speakers,
    weighted_sum,
)
from evaluation.metrics.calibration import sort_order, sort_scores
from evaluation.metrics.detection import detection_metrics
from tests.evaluation.score_sets import score_lists
from tests.official import load_json

SPEAKERS = ("a", "b", "c", "d")


def draws_of(*counts: tuple[int, ...], speakers: tuple[str, ...] = SPEAKERS) -> SpeakerDraws:
    return SpeakerDraws(speakers, np.array(counts, dtype=np.int64))


def trials(seed: int, speakers: tuple[str, ...] = SPEAKERS, utterances: int = 5):
    """Every model against every utterance of every speaker: scores, is_target, models, trial speakers."""
    random = np.random.default_rng(seed)
    models = np.repeat(speakers, len(speakers) * utterances)
    owners = np.tile(np.repeat(speakers, utterances), len(speakers))
    is_target = models == owners
    return random.normal(1.0 * is_target).round(1), is_target, models.tolist(), owners.tolist()


def replicates(*resampled: float, estimate: float = 0.0, left_out: tuple[float, ...] = (0.0,)) -> Replicates:
    return Replicates(estimate, np.array(resampled), (draws_of((1, 1, 1, 1)),), (np.array(left_out),))


@given(score_lists(20), score_lists(20), st.data())
def test_repeated_trials_give_the_metrics_of_a_set_that_holds_them_so_often(target, nontarget, data):
    times = [data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for n in (len(nontarget), len(target))]
    several_nontargets, several_targets = (
        np.repeat(scores, count) for scores, count in zip((nontarget, target), times, strict=True)
    )
    if several_nontargets.size and several_targets.size:
        order = sort_order(np.array(target), np.array(nontarget))
        repeated = sort_scores(target, nontarget).repeat(np.array(times[0] + times[1])[order])
        expected = detection_metrics(several_targets, several_nontargets)
        for name in ("kaldi_eer", "rocch_eer", "speechbrain_eer", "min_cllr"):
            assert DETECTION_MEASURES[name](repeated) == getattr(expected, name)
        assert DETECTION_MEASURES["cllr"](repeated) == pytest.approx(expected.cllr, abs=1e-12)


def test_draws_hold_as_many_speakers_as_there_are():
    draws = draw_speakers(["b", "a", "c", "a"], 500, np.random.default_rng(1))
    assert draws.speakers == ("a", "b", "c")
    assert draws.counts.shape == (500, 3)
    assert set(draws.counts.sum(axis=1)) == {3}
    assert draws.counts.mean(axis=0) == pytest.approx([1.0, 1.0, 1.0], abs=0.15)


def test_same_seed_gives_the_same_draws_in_any_order_of_speakers():
    first, again, other = (
        draw_speakers(list(names), 20, np.random.default_rng(seed)).counts.tolist()
        for names, seed in (("abcd", 7), ("dcba", 7), ("abcd", 8))
    )
    assert first == again
    assert first != other


def expected_of_weights(scores, is_target, weights) -> float:
    return detection_metrics(
        np.repeat(scores[is_target], weights[is_target]), np.repeat(scores[~is_target], weights[~is_target])
    ).min_cllr


@pytest.mark.parametrize("drawing", ["models and speakers", "trial speakers"])
def test_detection_resample_repeats_trials_by_their_speakers(drawing):
    scores, is_target, models, owners = trials(2)
    counts = dict(zip(SPEAKERS, (2, 0, 1, 1), strict=True))
    weights = np.array([counts[owner] for owner in owners])
    if drawing == "models and speakers":
        weights = np.where(is_target, weights, weights * [counts[model] for model in models])
    found = bootstrap_detection(
        scores, is_target, models, owners, draws_of((2, 0, 1, 1)), measures=["min_cllr"], drawing=drawing
    )["min_cllr"]
    assert found.resampled.tolist() == [expected_of_weights(scores, is_target, weights)]


def test_detection_left_out_speaker_is_neither_model_nor_trial():
    scores, is_target, models, owners = trials(3)
    found = bootstrap_detection(scores, is_target, models, owners, draws_of((1, 1, 1, 1)), measures=["min_cllr"])
    without_b = np.array([int("b" not in pair) for pair in zip(models, owners, strict=True)])
    assert found["min_cllr"].left_out[0][1] == expected_of_weights(scores, is_target, without_b)


def test_detection_resample_without_targets_is_undefined():
    scores, is_target, models, owners = trials(4, speakers=("a", "b"))
    keep = ~(is_target & (np.array(owners) == "b"))
    draws = draws_of((0, 2), (1, 1), (2, 0), (1, 1), speakers=("a", "b"))
    arguments = scores[keep], is_target[keep], np.array(models)[keep].tolist(), np.array(owners)[keep].tolist(), draws
    found = bootstrap_detection(*arguments, measures=["kaldi_eer"])["kaldi_eer"]
    # Twice b: no target. Twice a: no pair of two speakers, so no nontarget.
    assert np.isnan(found.resampled).tolist() == [True, False, True, False]
    interval = found.interval()
    assert (interval.n_resamples, interval.n_undefined) == (2, 2)
    assert interval.lower == interval.upper == interval.estimate


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"models": ["a"]}, "columns of one length"),
        ({"trial_speakers": ["x"] * 80}, "found 1 others, such as 'x'"),
        ({"is_target": np.zeros(80, dtype=bool)}, "found 0 targets of 80"),
        ({"scores": np.full(80, np.nan)}, "finite trial scores, found 80 of 80"),
    ],
)
def test_detection_refuses_senseless_columns(change, sentence):
    names = ("scores", "is_target", "models", "trial_speakers")
    arguments = dict(zip(names, trials(5), strict=True)) | {"draws": draws_of((1, 1, 1, 1))} | change
    with pytest.raises(InputError, match=sentence):
        bootstrap_detection(**arguments)


def test_ratio_pools_word_errors_of_the_drawn_speakers():
    errors, words, speakers = [1, 2, 3, 4], [10, 10, 20, 40], ["a", "a", "b", "c"]
    draws = draws_of((0, 2, 0, 2), (1, 0, 3, 0), (0, 0, 0, 4))
    found = bootstrap_ratio(errors, words, speakers, draws)
    assert found.estimate == 10 / 80
    assert found.resampled.tolist()[:2] == [6 / 40, 15 / 140]
    assert np.isnan(found.resampled[2])  # d has no utterance
    assert found.left_out[0].tolist() == [7 / 60, 7 / 60, 6 / 40, 10 / 80]


def test_mean_is_that_of_all_utterances_of_the_drawn_speakers():
    found = bootstrap_mean([0.5, 0.7, 0.9], ["a", "b", "b"], draws_of((1, 0, 0, 3), (0, 1, 0, 3), (2, 1, 0, 1)))
    assert found.resampled.tolist() == pytest.approx([0.5, 0.8, 2.6 / 4])


def test_similarity_estimates_equal_official():
    case = load_json("voice_distinctiveness.json")["8spk_uneven"]
    oo, op, pp = (np.array(case[f"matrix_{which}"]) for which in ("osp_osp", "osp_psp", "psp_psp"))
    speakers = [f"s{i}" for i in range(len(oo))]
    draws = draw_speakers(speakers, 10, np.random.default_rng(1))
    gain = bootstrap_gain_of_distinctiveness(oo, pp, speakers, draws)
    assert gain.estimate == pytest.approx(case["gain_of_voice_distinctiveness"], abs=1e-12)
    hidden = bootstrap_de_identification(oo, op, speakers, draws)
    assert hidden.estimate == pytest.approx(case["de_identification"], abs=1e-12)


def test_gain_of_a_resample_takes_the_blocks_of_its_speakers():
    random = np.random.default_rng(2)
    oo, pp = (np.eye(4) * 0.5 + random.random((4, 4)) * 0.3 for _ in range(2))

    def dominance(matrix: np.ndarray, chosen: list[int]) -> float:
        own = [matrix[i, i] for i in chosen]
        others = [matrix[i, j] for i in chosen for j in chosen if i != j]
        return abs(np.mean(own) - np.mean(others))

    found = bootstrap_gain_of_distinctiveness(oo, pp, SPEAKERS, draws_of((2, 1, 0, 1), (4, 0, 0, 0)))
    chosen = [0, 0, 1, 3]
    assert found.resampled[0] == pytest.approx(10 * np.log10(dominance(pp, chosen) / dominance(oo, chosen)))
    assert np.isnan(found.resampled[1])


def test_gain_leaves_out_a_speaker_without_a_pair_of_their_own():
    oo = np.full((4, 4), 0.2) + 0.6 * np.eye(4)
    oo[3, 3] = np.nan
    found = bootstrap_de_identification(oo, oo, SPEAKERS, draws_of((1, 1, 1, 1)))
    assert found.estimate == 0.0
    with pytest.raises(InputError, match="finite similarities of different speakers"):
        bootstrap_de_identification(oo, np.full((4, 4), np.nan), SPEAKERS, draws_of((1, 1, 1, 1)))
    with pytest.raises(InputError, match=r"each pair of 4 speakers, found shape \(3, 3\)"):
        bootstrap_de_identification(oo, oo[:3, :3], SPEAKERS, draws_of((1, 1, 1, 1)))


def test_percentile_and_basic_intervals_by_hand():
    measure = replicates(*range(101), estimate=40.0)
    percentile = measure.interval(level=0.9, method="percentile")
    assert (percentile.lower, percentile.upper) == pytest.approx((5.0, 95.0))
    basic = measure.interval(level=0.9, method="basic")
    assert (basic.lower, basic.upper) == pytest.approx((-15.0, 75.0))
    assert (basic.estimate, basic.level, basic.method, basic.n_resamples) == (40.0, 0.9, "basic", 101)


def test_bca_equals_scipy():
    from scipy.stats import bootstrap

    values = np.random.default_rng(3).exponential(size=25)
    reference = bootstrap((values,), np.mean, n_resamples=4000, method="BCa", rng=np.random.default_rng(4))
    speakers = [f"s{i:02}" for i in range(25)]
    draws = draw_speakers(speakers, 4000, np.random.default_rng(5))
    interval = bootstrap_mean(values, speakers, draws).interval(method="bca")
    limits = reference.confidence_interval
    assert (interval.lower, interval.upper) == pytest.approx((limits.low, limits.high), abs=0.05)


def expanded_tail(widening: float, freedom: float, tail: float = 0.025) -> float:
    from scipy.stats import norm, t

    return float(norm.cdf(widening * t.ppf(tail, freedom)))


def test_expanded_interval_takes_the_quantiles_of_student_with_the_whole_variance():
    values = np.random.default_rng(21).exponential(size=9)
    speakers = [f"s{i}" for i in range(9)]
    measure = bootstrap_mean(values, speakers, draw_speakers(speakers, 4000, np.random.default_rng(22)))
    tail = expanded_tail(math.sqrt(9 / 8), 8)
    assert tail < 0.01
    limits = np.quantile(measure.resampled, [tail, 1 - tail])
    found = measure.interval()
    assert (found.lower, found.upper) == pytest.approx(tuple(limits))
    assert found.method == "expanded"


def test_expanded_interval_of_several_sets_has_the_degrees_of_freedom_of_welch():
    parts, variances, sizes = [], [], (6, 25)
    for seed, size in enumerate(sizes):
        values, speakers = np.random.default_rng(seed).normal(size=size), [f"s{i:02}" for i in range(size)]
        parts.append(bootstrap_mean(values, speakers, draw_speakers(speakers, 2000, np.random.default_rng(seed))))
        variances.append(values.var(ddof=1) / size / 4)
    total = weighted_sum([(0.5, part) for part in parts])
    freedom = sum(variances) ** 2 / sum(v**2 / (n - 1) for v, n in zip(variances, sizes, strict=True))
    widened = sum(v * n / (n - 1) for v, n in zip(variances, sizes, strict=True)) / sum(variances)
    tail = expanded_tail(math.sqrt(widened), freedom)
    found = total.interval()
    assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(total.resampled, [tail, 1 - tail])))


@pytest.mark.parametrize(
    ("measure", "options", "sentence"),
    [
        (replicates(0.1, 0.2), {"method": "normal"}, "found 'normal'"),
        (replicates(0.1, np.nan), {}, "1 defined resamples"),
    ],
)
def test_interval_refuses_what_it_cannot_say(measure, options, sentence):
    with pytest.raises(InputError, match=sentence):
        measure.interval(**options)


def test_difference_is_paired():
    speakers = [f"s{i:02}" for i in range(12)]
    draws = draw_speakers(speakers, 400, np.random.default_rng(7))
    hard = np.random.default_rng(8).uniform(0, 50, size=12)  # speakers differ much more than the systems do
    first, second = (bootstrap_ratio(hard + extra, np.full(12, 100), speakers, draws) for extra in (2.0, 1.0))
    gap = difference(first, second).interval()
    assert (gap.lower, gap.estimate, gap.upper) == pytest.approx((0.01, 0.01, 0.01))
    assert first.interval().lower < second.interval().upper


def test_difference_of_other_draws_is_refused():
    draws = [draw_speakers(SPEAKERS, 5, np.random.default_rng(9)) for _ in range(2)]
    first, second = (bootstrap_mean([1, 2, 3, 4], SPEAKERS, each) for each in draws)
    with pytest.raises(InputError, match="the same draws, found different ones"):
        difference(first, second)


def test_weighted_sum_of_shared_draws_is_the_measure_of_the_sum():
    draws = draw_speakers(SPEAKERS, 50, np.random.default_rng(11))
    first, second = (bootstrap_mean(values, SPEAKERS, draws) for values in ([1.0, 2, 3, 4], [4.0, 1, 0, 2]))
    both = bootstrap_mean([0.25 + 3, 0.5 + 0.75, 0.75, 1 + 1.5], SPEAKERS, draws)
    total = weighted_sum([(0.25, first), (0.75, second)])
    assert total.resampled.tolist() == pytest.approx(both.resampled.tolist())
    assert len(total.draws) == 1
    assert total.left_out[0].tolist() == pytest.approx(both.left_out[0].tolist())


def test_interval_of_the_logit_is_students_with_the_larger_standard_error():
    draws = draw_speakers([f"s{number}" for number in range(10)], 50, np.random.default_rng(1))
    left_out, resampled = np.linspace(0.8, 1.2, 10), np.linspace(0.9, 1.1, 50)
    found = Replicates(1.0, resampled, (draws,), (left_out,), bounds=(0.0, 4.0)).find_interval()
    from scipy.stats import t as student

    error = math.sqrt(9 / 10 * sum((one - 1.0) ** 2 for one in left_out)) / 4  # of the jackknife; resamples have less
    reach = student.ppf(0.975, 9) * error / (0.25 * 0.75)
    wanted = [4 / (1 + math.exp(-(math.log(0.25 / 0.75) + way * reach))) for way in (-1, 1)]
    assert found.method == "logit"
    assert [found.lower, found.upper] == pytest.approx(wanted)


def test_interval_of_the_logit_holds_the_measure_and_stays_in_its_bounds():
    estimate = 3.99
    draws = draw_speakers(list("abcde"), 20, np.random.default_rng(2))
    spread = np.linspace(-0.3, 0.3, 20)
    left_out = (np.full(5, estimate),)
    found = Replicates(estimate, np.clip(estimate + spread, 0, 4), (draws,), left_out, bounds=(0.0, 4.0)).interval(
        method="logit"
    )
    assert 0 <= found.lower <= estimate <= found.upper <= 4
    assert found.upper - found.lower > 0.1


def test_measure_at_its_bound_in_every_resample_has_no_interval():
    draws = draw_speakers(list("abcde"), 20, np.random.default_rng(2))
    without_error = Replicates(0.0, np.zeros(20), (draws,), (np.zeros(5),), bounds=(0.0, 1.0))
    assert without_error.find_interval() is None


def test_interval_of_the_logit_nearer_to_a_bound_than_speakers_tell_begins_at_the_bound():
    draws = draw_speakers(list("abcde"), 20, np.random.default_rng(2))
    left_out, resampled = np.array([0.0, 0.01, 0.01, 0.01, 0.01]), np.linspace(0, 0.02, 20)
    found = Replicates(0.008, resampled, (draws,), (left_out,), bounds=(0.0, 1.0)).find_interval()
    assert found.lower == 0.0 < found.estimate < found.upper


def test_interval_of_the_logit_needs_bounds_and_a_sum_of_bounded_measures_has_them():
    draws = draw_speakers(list("abc"), 9, np.random.default_rng(3))
    free = Replicates(1.0, np.ones(9), (draws,), (np.ones(3),))
    bounded = replace(free, bounds=(0.0, 2.0))
    with pytest.raises(InputError, match="found one without"):
        free.interval(method="logit")
    assert weighted_sum([(0.25, bounded), (0.75, replace(bounded, bounds=(0.0, 4.0)))]).bounds == (0.0, 3.5)
    assert weighted_sum([(0.5, bounded), (0.5, free)]).bounds is None
    assert weighted_sum([(1.0, bounded), (-1.0, bounded)]).bounds is None


# Pairs of speakers ---------------------------------------------------------------------------------


def test_pairs_occur_both_ways_alike_and_are_drawn_again_the_same():
    draws = draw_speakers(SPEAKERS, 5, np.random.default_rng(4))
    found, again = (np.array(list(draws.draw_pairs())) for _ in range(2))
    assert found.shape == (PAIR_DRAWS, 4, 4)
    assert (found == again).all()
    assert (found == found.transpose(0, 2, 1)).all()
    assert (np.diagonal(found, axis1=1, axis2=2) == 1).all()
    assert set(np.unique(found).tolist()) == {0, 1, 2}
    assert found[:, 0, 1].mean() == pytest.approx(1, abs=0.4)


def test_measures_of_single_speakers_have_no_pairs_and_sums_have_those_of_their_parts():
    draws = draw_speakers(SPEAKERS, 6, np.random.default_rng(2))
    scores, is_target = np.array([3.0, 1.0, 2.0, 0.5, 1.5, 0.0]), np.array([True, False] * 3)
    models, said = ["a", "b", "b", "c", "c", "a"], ["a", "a", "b", "b", "c", "c"]
    [eer] = bootstrap_detection(scores, is_target, models, said, draws, measures=["kaldi_eer"]).values()
    words = bootstrap_mean([1.0, 0.0, 0.5, 0.25], SPEAKERS, draws)
    assert (eer.crossed.size, words.crossed.size) == (PAIR_DRAWS, 0)
    both = weighted_sum([(100.0, eer), (1.0, words)])
    assert both.crossed == pytest.approx(100 * eer.crossed + words.estimate, nan_ok=True)
    fixed = bootstrap_detection(
        scores, is_target, models, said, draws, measures=["kaldi_eer"], drawing="trial speakers"
    )
    assert fixed["kaldi_eer"].crossed.size == 0
    with pytest.raises(InputError, match="one number of draws of pairs"):
        weighted_sum([(1.0, eer), (1.0, replace(eer, crossed=eer.crossed[:3]))])


def test_interval_of_the_logit_counts_pairs_once_and_never_less_than_that():
    from scipy.special import stdtrit

    draws = draw_speakers([f"s{number}" for number in range(10)], 50, np.random.default_rng(1))
    left_out, resampled = np.linspace(0.9, 1.1, 10), np.linspace(0.4, 1.6, 50)
    found = Replicates(1.0, resampled, (draws,), (left_out,), bounds=(0.0, 4.0))
    whole = 10 / 9 * np.var(resampled)
    for crossed, variance in ((whole / 4, whole / 2), (whole, whole)):
        values = np.array([1.0 - math.sqrt(crossed), 1.0 + math.sqrt(crossed)])
        interval = replace(found, crossed=values).interval(method="logit")
        reach = float(stdtrit(9, 0.975)) * math.sqrt(variance) / 4 / (0.25 * 0.75)
        assert interval.upper == pytest.approx(4 / (1 + math.exp(math.log(3) - reach)))
