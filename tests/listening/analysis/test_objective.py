import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from listening.analysis.reading.inputs import ORIGINAL, ObjectiveRows, Settings
from listening.analysis.scoring.objective import make_objective_tables
from tests.listening.analysis.made_ratings import columns_of, made_inputs
from tests.listening.analysis.rated import scored_of

SETTINGS = Settings(resamples=200)


def objective_of(rows):
    """From (system, utterance, errors, words, pitch correlation)."""
    columns = list(zip(*rows, strict=True))
    return ObjectiveRows(*(np.array(one) for one in columns[:2]), *(np.array(one, float) for one in columns[2:]))


def tables_of(ratings, objective, kind="raw", settings=SETTINGS):
    return make_objective_tables(scored_of(ratings, kind, settings), objective, settings)


def plain_join(inputs):
    """By dictionaries: mean ratings, 1 − WER and pitch correlation of each anonymised utterance."""
    ratings, objective = inputs.ratings, inputs.objective
    found = {}
    for row in range(len(ratings)):
        key = str(ratings.system[row]), str(ratings.utterance[row])
        found.setdefault(key, {}).setdefault(str(ratings.task[row]), []).append(ratings.rating[row])
    joined = {key: {task: np.mean(values) for task, values in tasks.items()} for key, tasks in found.items()}
    for row in range(len(objective)):
        key = str(objective.system[row]), str(objective.utterance[row])
        joined[key]["1 − WER"] = 1 - objective.errors[row] / objective.words[row]
        joined[key]["ρF0"] = objective.pitch_correlation[row]
    return joined


def test_utterances_are_joined():
    inputs = made_inputs()
    expected = plain_join(inputs)
    rows = tables_of(inputs.ratings, inputs.objective)[0].records()
    assert len(rows) == len(expected) == 4 * 12
    assert [row["system"] for row in rows] == sorted(
        (row["system"] for row in rows), key=lambda one: (one != ORIGINAL, one)
    )
    for row in rows:
        of_row = expected[row["system"], row["utterance"]]
        assert row["naturalness"] == pytest.approx(of_row["naturalness"])
        assert row["intelligibility"] == pytest.approx(of_row["intelligibility"])
        assert row["one_minus_wer"] == pytest.approx(of_row["1 − WER"])
        assert row["pitch_correlation"] == pytest.approx(of_row["ρF0"])
        assert row["n"] == 4
        assert row["speaker"] == f"p{int(row['utterance'][1:]) % 4}"


@pytest.mark.parametrize("kind", ["raw", "normalised"])
def test_correlations_are_those_of_scipy(kind):
    inputs = made_inputs()
    utterances, correlations, _ = tables_of(inputs.ratings, inputs.objective, kind)
    names = {"1 − WER": "one_minus_wer", "ρF0": "pitch_correlation"}
    rows = [row for row in utterances.records() if row["system"] != ORIGINAL]
    assert len(correlations.rows) == 6
    for row in correlations.records():
        first, second = ([one[names.get(row[side], row[side])] for one in rows] for side in ("first", "second"))
        assert row["pearson"] == pytest.approx(pearsonr(first, second)[0])
        # Rounded cells tie as the means do.
        assert row["spearman"] == pytest.approx(spearmanr(first, second)[0])
        assert row["utterances"] == len(rows) == 36
        if row["first"] in ("naturalness", "intelligibility"):
            assert row["listeners"] == 12
            assert row["pearson_low"] < row["pearson"] < row["pearson_high"]
            assert row["spearman_low"] < row["spearman"] < row["spearman_high"]
        else:
            assert (row["listeners"], row["pearson_low"]) == (None, None)
            assert "without listeners" in row["remark"]


def test_interval_is_that_of_resampled_listeners_with_their_ratings():
    inputs = made_inputs()
    ratings = inputs.ratings
    row = tables_of(ratings, inputs.objective)[1].records(first="naturalness", second="1 − WER")[0]
    joined = plain_join(inputs)
    names = sorted(set(ratings.listener.tolist()))
    draws = np.random.default_rng(SETTINGS.seed).multinomial(12, [1 / 12] * 12, size=200)
    found = []
    for draw in draws:
        times = dict(zip(names, draw, strict=True))
        drawn = {}
        for at in np.flatnonzero((ratings.task == "naturalness") & (ratings.system != ORIGINAL)):
            key = str(ratings.system[at]), str(ratings.utterance[at])
            drawn.setdefault(key, []).extend([ratings.rating[at]] * times[str(ratings.listener[at])])
        kept = {key: values for key, values in drawn.items() if values}
        weight = np.array([len(values) / 4 for values in kept.values()])
        means = np.array([np.mean(values) for values in kept.values()])
        recognised = np.array([joined[key]["1 − WER"] for key in kept])
        spread = np.cov(means, recognised, aweights=weight)
        found.append(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))
    expected = np.quantile(found, [0.025, 0.975]) - np.mean(found) + row["pearson"]
    assert (row["pearson_low"], row["pearson_high"]) == pytest.approx(tuple(expected), abs=1e-9)


def test_disagreements_by_hand():
    rows = [("u1", 1), ("u2", 9), ("u3", 4), ("u4", 10), ("u5", 6), ("u6", 10)]
    ratings = columns_of(
        [
            {"system": "T01", "utterance": name, "rating": float(rating), "task": task}
            for name, rating in rows
            for task in ("naturalness", "intelligibility")
        ]
        + [{"system": ORIGINAL, "utterance": "u1", "rating": 1.0}]
    )
    objective = objective_of([
        ("T01", "u1", 0, 10, 0.5), ("T01", "u2", 0, 10, 0.5), ("T01", "u3", 0, 10, 0.5), ("T01", "u4", 2, 10, 0.5),
        ("T01", "u5", 9, 10, 0.5), ("T01", "u6", 15, 10, 0.5), (ORIGINAL, "u1", 0, 10, 0.5),
    ])  # fmt: skip
    table = tables_of(ratings, objective)[2]
    for task in ("naturalness", "intelligibility"):
        badly, well = (table.records(task=task, kind=kind) for kind in ("heard-badly", "heard-well"))
        assert [row["utterance"] for row in badly] == ["u1", "u3", "u2"]
        # Shares of the scale 1, 5/9, 1 above 0.8, 0.1, and nothing (15 errors in 10 words): by 0.2, 0.46 and 1.
        assert [row["utterance"] for row in well] == ["u6", "u5", "u4"]
        assert [row["one_minus_wer"] for row in well] == pytest.approx([-0.5, 0.1, 0.8])
        assert [row["score"] for row in badly] == [1, 4, 9]
    assert "original" not in table.values("system")


def test_without_objective_measures_ratings_stand_alone():
    inputs = made_inputs()
    utterances, correlations, disagreements = tables_of(inputs.ratings, None)
    assert all(row["one_minus_wer"] is None for row in utterances.records())
    assert [(row["first"], row["second"]) for row in correlations.records()] == [("naturalness", "intelligibility")]
    assert disagreements.rows == ()


def test_unknown_measures_are_left_out_pair_by_pair():
    inputs = made_inputs()
    objective = inputs.objective
    objective.pitch_correlation[objective.system == "T01"] = np.nan
    objective.words[(objective.system == "T02") & (objective.utterance == "u1")] = 0
    objective.errors[(objective.system == "T03") & (objective.utterance == "u2")] = np.nan
    rows = {
        (row["first"], row["second"]): row["utterances"] for row in tables_of(inputs.ratings, objective)[1].records()
    }
    assert rows["naturalness", "ρF0"] == 24
    assert rows["naturalness", "1 − WER"] == 34
    assert rows["1 − WER", "ρF0"] == 22
