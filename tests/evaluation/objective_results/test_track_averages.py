"""Averages of another version of a recipe over numbers at hand."""

from dataclasses import replace

import pytest

from evaluation.objective_results.track_averages import correct_averages, list_averages, list_identities, member_of
from evaluation.objective_results.values import Basis, Number
from evaluation.protocols.recipes import load_recipe

RECIPE = load_recipe("2022")


@pytest.fixture
def case():
    """Numbers of the data sets of an average, and that average as it was stored, with an interval."""
    average = next(one for one in list_averages(RECIPE.track) if one.metric == "eer")
    identity = list_identities(RECIPE, average, "test")[0]
    weights = average.weights["test"]
    members = [member_of(RECIPE, identity, name) for name in weights]
    numbers = {one: Number(one, 10.0 * place, Basis.AUDIO, 100) for place, one in enumerate(members, 1)}
    value = sum(weight * numbers[one].value for weight, one in zip(weights.values(), members, strict=True))
    return identity, numbers, value / sum(weights.values())


def test_average_by_other_weights_is_made_again_without_its_interval(case):
    identity, numbers, value = case
    stored = Number(identity, value + 5, Basis.VALUES, len(numbers), low=1.0, high=90.0)
    found = correct_averages(numbers | {identity: stored}, RECIPE, RECIPE.track)
    assert found[identity].value == pytest.approx(value)
    assert (found[identity].low, found[identity].high) == (None, None)
    assert {one: found[one] for one in numbers} == numbers


def test_average_by_the_same_weights_keeps_its_interval_and_one_that_lacks_a_set_stays(case):
    identity, numbers, value = case
    stored = Number(identity, value, Basis.VALUES, len(numbers), low=1.0, high=90.0)
    assert correct_averages(numbers | {identity: stored}, RECIPE, RECIPE.track)[identity] == stored
    lacking = dict(list(numbers.items())[1:]) | {identity: replace(stored, value=value + 5)}
    assert correct_averages(lacking, RECIPE, RECIPE.track) == lacking
