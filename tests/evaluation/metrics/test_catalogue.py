"""Every number that anybody writes has one description."""

from __future__ import annotations

import pytest

from evaluation.formats.results import KINDS
from evaluation.metrics.bootstrap import DETECTION_MEASURES
from evaluation.metrics.catalogue import ALL_METRICS, find_metric
from evaluation.metrics.detection import detection_metrics
from evaluation.objective_results.results.expected import ResultKind, expected_lines
from evaluation.objective_results.results.folders import read_results
from evaluation.protocols.recipes import load_recipe, shipped_editions
from tests.official import PUBLISHED


def test_find_metric_keeps_the_eers_apart_and_other_estimators_together():
    assert find_metric("eer", "kaldi").key == "kaldi_eer"
    assert find_metric("eer", "rocch").key == "rocch_eer"
    assert find_metric("eer", "speechbrain").key == "speechbrain_eer"
    assert find_metric("wer", "tglarge") == find_metric("wer", "tgsmall") == find_metric("wer") == ALL_METRICS["wer"]
    assert find_metric("min_cllr", "pav").key == "min_cllr"
    assert find_metric("kaldi_eer") == find_metric("eer", "kaldi")
    assert find_metric("accuracy_sad").label == "Recall of sad"


@pytest.mark.parametrize(("metric", "estimator"), [("eer", "praat"), ("nonsense", "x")])
def test_find_metric_refuses_what_has_no_description(metric, estimator):
    with pytest.raises(LookupError, match=f"Found “{metric}”"):
        find_metric(metric, estimator)


def test_each_detection_metric_and_each_bootstrap_measure_is_described():
    measured = detection_metrics([1.0, 3.0], [0.0, 2.0]).values()
    assert measured.keys() <= ALL_METRICS.keys()
    assert DETECTION_MEASURES.keys() <= measured.keys()


def test_each_number_of_a_result_line_is_described_with_its_unit():
    for kind in KINDS.values():
        for number in kind.numbers:
            assert find_metric(number.metric, number.estimator).unit == number.unit


@pytest.mark.parametrize("edition", shipped_editions())
def test_each_metric_of_a_recipe_is_described(edition):
    recipe = load_recipe(edition)
    named = [(rule.key, rule.estimator) for rule in recipe.metrics]
    for track in recipe.tracks.values():
        named += [(average.metric, average.estimator) for average in track.averages]
        if ranking := track.ranking:
            named.append((ranking.privacy.metric, ranking.privacy.estimator))
            named += [(gate.metric, gate.estimator) for gate in ranking.gates]
            for utility in ranking.utilities:
                assert find_metric(utility.metric, utility.estimator).direction == utility.better
    if recipe.results:
        for kind in ResultKind if recipe.results.trial_set else [ResultKind.ORIGINAL]:
            lines = expected_lines(recipe, kind)
            named += [(one.metric, one.estimator) for line in lines for one in line.identities]
    assert {find_metric(*one).key for one in named} <= ALL_METRICS.keys()


def test_each_published_number_is_described_with_its_unit():
    reported_numbers = [
        reported
        for year in (2022, 2024, 2026)
        for system in read_results(PUBLISHED / f"vpc{year}" / "results")
        for reported in system.reported_numbers
    ]
    assert len(reported_numbers) > 2000
    for reported in reported_numbers:
        assert find_metric(reported.identity.metric, reported.identity.estimator).unit == reported.unit
