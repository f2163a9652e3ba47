"""Numbers of papers: each has a source, a data set of its recipe and a metric that is known."""

from pathlib import Path

import pytest

from evaluation.metrics.catalogue import find_metric
from evaluation.protocols import recipes
from evaluation.protocols.published import (
    AVERAGE_TEST,
    ORIGINAL,
    is_as_shipped,
    load_published,
    published_systems,
)
from evaluation.protocols.recipes import load_recipe, parse_recipe, shipped_editions


@pytest.mark.parametrize("edition", shipped_editions())
def test_every_number_has_a_source_and_belongs_to_its_recipe(edition):
    sets = {*load_recipe(edition).data_sets, AVERAGE_TEST}
    numbers = load_published(edition)
    assert len(numbers) > 50
    for one in numbers:
        assert one.data_set in sets
        assert find_metric(one.metric, one.estimator).label
        assert float(one.value) == float(one.value)
        assert one.source
        assert one.table


@pytest.mark.parametrize("edition", shipped_editions())
def test_every_error_rate_of_speakers_has_the_attack_model_of_its_source(edition):
    """2020 printed attacks of the original evaluator; files for ranking are of one trained on anonymised speech."""
    attack = "lazy-informed" if edition == "2020" else "semi-informed"
    for one in load_published(edition):
        of_system = "unprotected" if one.system == ORIGINAL else attack
        assert one.attack_model == (of_system if one.metric == "eer" else ""), one


@pytest.mark.parametrize("edition", shipped_editions())
def test_numbers_that_sources_print_otherwise_stay_and_say_so(edition):
    by_what = {}
    for one in load_published(edition):
        by_what.setdefault((one.system, one.data_set, one.gender, one.metric, one.estimator), []).append(one)
    several = [found for found in by_what.values() if len({float(one.value) for one in found}) > 1]
    assert several
    assert all(one.note.startswith("The sources differ: ") for found in several for one in found)
    assert all(not one.note for found in by_what.values() if found not in several for one in found)


def systems(edition, track=""):
    recipe = load_recipe(edition)
    averages = (recipe.tracks[track] if track else recipe.track).averages
    ranking = [one for one in averages if one.metric in ("eer", "wer", "uar")]
    return {one.name: one.averages for one in published_systems(edition, ranking, "test")}


def test_averages_of_2022_are_those_of_the_plan():
    rounded = {name: (round(one["eer"], 3), round(one["wer"], 3)) for name, one in systems("2022").items()}
    assert rounded == {"B1.a": (11.809, 8.285), "B1.b": (9.183, 7.56), "B2": (7.769, 9.03)}


def test_systems_of_every_edition_that_averages():
    assert list(systems("2024")) == ["B1", "B2", "B3", "B4", "B5", "B6"]
    assert list(systems("2026", "track1")) == ["B2", "B3", "B5"]
    assert list(systems("2026", "track2")) == ["BM1", "BM3"]
    assert round(systems("2024")["B5"]["eer"], 4) == round((33.946 + 34.729) / 2, 4)


def test_changed_recipe_is_no_longer_as_shipped():
    text = Path(recipes.__file__).with_name("2022.toml").read_text(encoding="utf-8")
    assert is_as_shipped(parse_recipe(text, file="2022.toml"))
    changed = text.replace("original_value = 8.665", "original_value = 9.665")
    assert not is_as_shipped(parse_recipe(changed, file="2022.toml"))
