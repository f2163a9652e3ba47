"""Answers of any kind against statsmodels, scipy and scikit-learn, against published numbers, and by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from common.errors import ProblemsError
from listening.analysis.analyse import analyse
from listening.analysis.answers.choices import (
    AVERAGE_RECALL,
    D_PRIME,
    GIVEN,
    RECALL,
    RIGHT,
    abx_d_prime,
    abx_share,
    confusion,
    estimate_choices,
    estimate_discrimination,
)
from listening.analysis.answers.estimates import estimate_means, estimate_share
from listening.analysis.answers.pairs import (
    FIRST_HEARD,
    MEAN_AGAINST_ALL,
    MEAN_RATING,
    STRENGTH,
    TIES,
    WINS,
    estimate_comparison,
    estimate_preference,
    fit_strengths,
    pair_up,
)
from listening.analysis.answers.scales import DIFFERENCE, MEAN, estimate_scale, screen_mushra
from listening.analysis.figures import list_figures
from listening.analysis.reading.inputs import Settings
from tests.listening.analysis.made_answers import all_kinds, compared, comparison, frame_of, rated

SETTINGS = Settings()
LIMITS = (-10.0, 10.0)


def of_measure(estimates, measure):
    return {(one.condition, one.against): one for one in estimates if one.measure == measure}


def plain_variance(score, listener, item):
    """V_L + V_I − V_LI of a mean, written out."""
    away = pd.Series(score - np.mean(score))
    parts = []
    for keys in ([listener], [item], [listener, item]):
        sums = away.groupby([pd.Series(key).to_numpy() for key in keys]).sum()
        parts.append(len(sums) / (len(sums) - 1) * (sums**2).sum() / len(score) ** 2)
    return parts[0], parts[0] + parts[1] - parts[2]


def test_interval_of_a_mean_is_the_two_way_sandwich():
    answers = rated(1, (0.0, 1.0))
    estimates, _ = estimate_means(answers, "condition", MEAN, SETTINGS, LIMITS)
    for one in estimates:
        own = answers[answers["condition"] == one.condition]
        by_listener, both = plain_variance(own["score"], own["listener"], own["item"])
        half = stats.t.ppf(0.975, 15) * np.sqrt(max(by_listener, both))
        assert (one.n, one.listeners, one.items) == (192, 24, 16)
        assert (one.value, one.low, one.high) == pytest.approx(
            (own["score"].mean(), own["score"].mean() - half, own["score"].mean() + half)
        )


def test_difference_of_two_conditions_is_the_contrast_of_their_means():
    answers = rated(2, (0.0, 0.4))
    [pair] = of_measure(estimate_scale(answers, SETTINGS, LIMITS), DIFFERENCE).values()
    sums = []
    for condition, sign in (("c0", 1), ("c1", -1)):
        own = answers[answers["condition"] == condition]
        sums.append(own.assign(moved=sign * (own["score"] - own["score"].mean()) / len(own)))
    moved = pd.concat(sums)
    parts = [moved.groupby(keys)["moved"].sum() for keys in (["listener"], ["item"])]
    # A listener rates an item of a condition once, so listener and item together leave single answers.
    single = moved.groupby(["listener", "item"])["moved"].sum()
    sizes = [24, 16, 192]
    by_listener, by_item, by_both = (
        size / (size - 1) * (one**2).sum() for size, one in zip(sizes, (*parts, single), strict=True)
    )
    half = stats.t.ppf(0.975, 15) * np.sqrt(max(by_listener, by_listener + by_item - by_both))
    assert (pair.condition, pair.against) == ("c0", "c1")
    assert (pair.high - pair.low) / 2 == pytest.approx(half, rel=1e-3)
    assert pair.p == pytest.approx(2 * stats.t.sf(abs(pair.value) / (half / stats.t.ppf(0.975, 15)), 15), rel=1e-2)
    assert pair.adjusted == pair.p


@pytest.mark.parametrize("hits", [0, 3, 12, 20])
def test_share_of_listeners_who_answered_once_has_the_exact_interval(hits):
    rows = [{"listener": f"l{n}", "item": f"i{n}", "condition": "c", "value": str(int(n < hits))} for n in range(20)]
    share = estimate_share(frame_of(rows), "share", SETTINGS, chance=0.5)
    exact = stats.binomtest(hits, 20)
    assert (share.low, share.high) == pytest.approx(tuple(exact.proportion_ci(method="exact")))
    assert share.p == pytest.approx(exact.pvalue)


def test_too_few_listeners_have_points_and_no_interval():
    for one in estimate_scale(rated(1, (0, 1), listeners=9), SETTINGS, LIMITS):
        assert (one.low, one.high, one.p, one.letters) == (None, None, None, "")
        assert one.remark == "No interval: 9 listeners, 10 are needed."


# Davidson (1970), example 2: six brands of chocolate pudding, i, j, wins of i, wins of j, ties.
PUDDING = [
    (1, 2, 19, 22, 16), (1, 3, 16, 19, 12), (2, 3, 19, 19, 10), (1, 4, 18, 23, 13), (2, 4, 23, 19, 9),
    (3, 4, 19, 20, 15), (1, 5, 13, 19, 18), (2, 5, 16, 20, 12), (3, 5, 16, 15, 17), (4, 5, 17, 14, 16),
    (1, 6, 18, 21, 12), (2, 6, 22, 20, 12), (3, 6, 13, 18, 10), (4, 6, 14, 19, 18), (5, 6, 11, 21, 12),
]  # fmt: skip
PUBLISHED = [0.1388, 0.1730, 0.1617, 0.1654, 0.1587, 0.2024]


def test_strengths_are_those_that_davidson_published():
    rows = [
        (i - 1, j - 1, outcome)
        for i, j, *counts in PUDDING
        for outcome, n in zip((1.0, 0.0, 0.5), counts, strict=True)
        for _ in range(n)
    ]
    first, second, outcome = map(np.array, zip(*rows, strict=True))
    fit = fit_strengths(first, second, outcome, 6)
    worth = np.exp(fit.theta)
    assert worth / worth.sum() == pytest.approx(PUBLISHED, abs=5e-5)
    assert fit.tie == pytest.approx(0.7468, abs=5e-5)


def test_strengths_without_ties_are_those_of_a_logistic_regression():
    pairs = pair_up(compared(3, (0, 0.4, 0.9), each=6))
    number = {"c0": 0, "c1": 1, "c2": 2}
    first, second = (pairs[side].map(number).to_numpy() for side in ("first", "second"))
    won = (pairs["value"] == np.where(pairs["is_swapped"], "B", "A")).to_numpy(float)
    fit = fit_strengths(first, second, won, 3)
    design = np.eye(3)[first] - np.eye(3)[second]
    groups = pairs.groupby("listener").ngroup().to_numpy()
    options = {"groups": groups, "use_correction": False}
    logit = sm.Logit(won, design[:, 1:]).fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds=options)
    assert fit.theta - fit.theta[0] == pytest.approx([0, *logit.params], abs=1e-6)
    by_listener = np.stack([np.bincount(groups, one) for one in (fit.influence - fit.influence[:, :1]).T])
    assert (by_listener @ by_listener.T)[1:, 1:] == pytest.approx(logit.cov_params(), rel=1e-5)
    assert fit.tie == 0


def test_no_strengths_where_a_condition_won_everything():
    rows = []
    for n in range(12):
        for a, b, value in (("c0", "c1", "A"), ("c1", "c2", "AB"[n % 2]), ("c0", "c2", "A")):
            rows += comparison(a, b, value, listener=f"l{n}", item=f"i{n}")
    found = estimate_preference(frame_of(rows), SETTINGS)
    assert all(one.value is None and "No strength" in one.remark for one in of_measure(found, STRENGTH).values())
    won = of_measure(found, WINS)["c0", "c1"]
    assert (won.value, won.high) == (1, 1)
    assert won.low == pytest.approx(0.025 ** (1 / 12))


def test_preference_counts_wins_of_the_first_whatever_its_slot():
    rows = [*comparison("x", "y", "A"), *comparison("y", "x", "B", item="i2"), *comparison("y", "x", "=", item="i3")]
    found = estimate_preference(frame_of(rows), SETTINGS)
    assert of_measure(found, WINS)["x", "y"].value == pytest.approx(2.5 / 3)
    assert of_measure(found, TIES)["", ""].value == pytest.approx(1 / 3)
    assert not of_measure(found, STRENGTH)


def test_conditions_compared_with_one_alone_have_these_pairs_and_no_others():
    rows = []
    for n in range(12):
        for name in ("a", "z"):
            sides = (name, "m") if n % 2 else ("m", name)
            rows += comparison(*sides, "2" if n % 2 else "-2", listener=f"l{n}", item=f"i{n}")
    found = estimate_comparison(frame_of(rows), SETTINGS)
    assert {(one.measure, one.condition, one.against, one.value) for one in found} == {
        (MEAN_RATING, "a", "m", -2),
        (MEAN_RATING, "z", "m", -2),
    }
    preferred = [row | {"value": "A" if row["value"] == "-2" else "B"} for row in rows]
    assert set(of_measure(estimate_preference(frame_of(preferred), SETTINGS), WINS)) == {("a", "m"), ("z", "m")}
    assert not of_measure(estimate_preference(frame_of(preferred), SETTINGS), STRENGTH)


def test_order_that_decides_is_told():
    rows = []
    for n in range(12):
        first = "AB"[n % 2]
        rows += comparison("x", "y", first, heard=first, listener=f"l{n}", item=f"i{n}")
    found = estimate_preference(frame_of(rows), SETTINGS)
    heard = of_measure(found, FIRST_HEARD)["", ""]
    assert (heard.value, of_measure(found, WINS)["x", "y"].value) == (1, 0.5)
    assert heard.p == pytest.approx(2 * 0.5**12)


def test_comparisons_that_cannot_be_told_apart_are_refused():
    inputs = all_kinds()
    answers = inputs.answers
    again = answers.rows(np.repeat(np.arange(len(answers)), np.where(answers.question == "preferred", 2, 1)))
    with pytest.raises(ProblemsError, match="“preferred”: expected one recording in each slot of a comparison"):
        analyse(replace(inputs, answers=again), SETTINGS)


def test_comparison_ratings_have_their_sign_set_right():
    """B is two points better than A: 2 for y where it is B, −2 where it is A."""
    rows = []
    for n in range(12):
        sides = ("x", "y") if n % 2 else ("y", "x")
        rows += comparison(*sides, "2" if n % 2 else "-2", listener=f"l{n}", item=f"i{n}")
    found = estimate_comparison(frame_of(rows), SETTINGS)
    pair = of_measure(found, MEAN_RATING)["x", "y"]
    assert (pair.value, pair.low, pair.high, pair.p) == (-2, -2, -2, 0)
    of_all = of_measure(found, MEAN_AGAINST_ALL)
    assert [of_all[name, ""].value for name in ("x", "y")] == [-2, 2]
    assert [of_all[name, ""].letters for name in ("x", "y")] == ["b", "a"]


@pytest.mark.parametrize("d_prime", [0.5, 1.0, 2.0])
def test_abx_share_is_that_of_listeners_who_take_the_smaller_difference(d_prime):
    numbers = np.random.default_rng(8)
    a, b, x = numbers.normal(0, 1, (3, 400_000))
    b += d_prime
    assert abx_share(d_prime) == pytest.approx((abs(a - x) < abs(b - x)).mean(), abs=0.003)
    assert abx_d_prime(abx_share(d_prime)) == pytest.approx(d_prime)


def test_abx_of_one_listener_has_the_exact_interval_of_the_trials():
    rows = [row for n in range(16) for row in comparison("a", "b", "AB"[n < 4], truth="A", position=n + 1)]
    found = estimate_discrimination(frame_of(rows), SETTINGS)
    share, d_prime = (of_measure(found, measure)["a", "b"] for measure in (RIGHT, D_PRIME))
    exact = stats.binomtest(12, 16)
    assert (share.low, share.high) == pytest.approx(tuple(exact.proportion_ci(method="exact")))
    assert (share.value, share.p) == (0.75, pytest.approx(exact.pvalue))
    assert "holds for these listeners" in share.remark
    assert d_prime.value == pytest.approx(abx_d_prime(0.75))
    assert d_prime.low == 0
    assert d_prime.high == pytest.approx(abx_d_prime(share.high))


def test_post_screening_names_who_missed_the_reference_in_more_than_15_percent_of_items():
    """Three of twenty items are 15 %, four are more; 90 is not below 90."""
    rows = []
    for listener, low, high in (("fine", 3, 3), ("deaf", 4, 0), ("generous", 0, 4)):
        for n in range(20):
            of = {"reference": 89 if n < low else 90, "anchor": 91 if n < high else 90}
            rows += [
                {"listener": listener, "item": f"i{n}", "condition": name, "value": str(value)}
                for name, value in of.items()
            ]
    found = screen_mushra(frame_of(rows), "reference", "anchor")
    caught = {(row["rule"], row["listener"]): row["value"] for row in found if row["is_caught"]}
    assert caught == {("reference-low", "deaf"): 0.2, ("anchor-high", "generous"): 0.2}
    assert len(found) == 2 * 3


def test_what_leaving_listeners_out_changes_is_told_for_rules_in_force_and_for_those_that_would_catch():
    inputs = all_kinds()
    answers = inputs.answers
    is_bad = (answers.question == "sliders") & (answers.listener == "l00") & (answers.condition == "c0")
    value = np.where(is_bad, "10", answers.value)
    excluded = np.where(answers.listener == "l01", "noise", "")
    results = analyse(replace(inputs, answers=replace(answers, value=value, excluded=excluded)), SETTINGS)
    frame = pd.DataFrame(
        {name: getattr(answers, name) for name in ("question", "listener", "condition")} | {"value": value}
    )
    own = frame[(frame["question"] == "sliders") & (frame["condition"] == "c0")]
    own = own.assign(value=own["value"].astype(float))

    def mean_without(*listeners):
        return pytest.approx(own.loc[~own["listener"].isin(listeners), "value"].mean())

    rows = results.records("common", "answers_effect", question="sliders", condition="c0")
    told = {row["rule"]: (row["mean_before"], row["mean_after"], row["listeners_after"]) for row in rows}
    assert told["standing"] == (mean_without(), mean_without("l01"), 11)
    low = (own["value"] < 90).groupby(own["listener"]).mean().drop("l01")
    caught = low[low > 0.15].index
    assert "l00" in caught
    after = mean_without("l01", *caught)
    assert told["reference-low"] == (mean_without("l01"), after, 11 - len(caught))


def test_choices_agree_with_scikit_learn():
    numbers = np.random.default_rng(2)
    labels = np.array(["angry", "glad", "sad"])
    truth = labels[numbers.choice(3, 300, p=[0.6, 0.3, 0.1])]
    value = np.where(numbers.random(300) < 0.6, truth, labels[numbers.choice(3, 300)])
    rows = [
        {"listener": f"l{n % 15}", "item": f"i{n % 20}", "condition": "c", "truth": truth[n], "value": value[n]}
        for n in range(300)
    ]
    found = estimate_choices(frame_of(rows), SETTINGS)
    recall = of_measure(found, AVERAGE_RECALL)["c", ""]
    assert recall.value == pytest.approx(balanced_accuracy_score(truth, value))
    assert recall.low < recall.value < recall.high
    table = {(row["truth"], row["answer"]): row["count"] for row in confusion(frame_of(rows))}
    expected = confusion_matrix(truth, value, labels=labels)
    assert [[table.get((a, b), 0) for b in labels] for a in labels] == expected.tolist()
    assert of_measure(found, RECALL)["c", "sad"].value == pytest.approx((value == truth)[truth == "sad"].mean())


def test_labels_without_a_truth_have_their_share_of_the_answers():
    rows = [
        {"listener": f"l{n % 15}", "item": f"i{n % 20}", "condition": "xy"[n % 2], "value": "glad" if n % 5 else "sad"}
        for n in range(60)
    ]
    found = of_measure(estimate_choices(frame_of(rows), SETTINGS), GIVEN)
    assert {names: one.value for names, one in found.items()} == {
        (condition, label): share for condition in "xy" for label, share in (("glad", 0.8), ("sad", 0.2))
    }
    assert all(one.low < one.value < one.high for one in found.values())


@pytest.mark.filterwarnings("error")
def test_figures_show_conditions_pairs_and_which_differ():
    figures = {one.name: one for one in list_figures(analyse(all_kinds(), SETTINGS))}
    assert set(figures) == {
        *("conditions-quality-mean", "compared-quality-difference", "matrix-quality-difference"),
        *("conditions-sliders-mean", "compared-sliders-difference", "matrix-sliders-difference"),
        *("conditions-preferred-strength", "compared-preferred-share-of-wins", "matrix-preferred-share-of-wins"),
        *(
            "conditions-better-mean-rating-against-all-others",
            "compared-better-mean-rating",
            "matrix-better-mean-rating",
        ),
        *("compared-which-share-right", "conditions-emotion-unweighted-average-recall"),
    }
    for name in ("conditions-sliders-mean", "compared-which-share-right", "matrix-better-mean-rating"):
        assert b"</svg>" in figures[name].draw(figures[name].files[:1]).popitem()[1]


def test_answers_of_another_kind_are_refused():
    inputs = all_kinds()
    inputs.study.design["questions"]["emotion"]["kind"] = "ccr"
    with pytest.raises(
        ProblemsError, match=r"“emotion”: expected a number from -3 to 3, found “(glad|sad)” of listener"
    ):
        analyse(inputs, SETTINGS)
