"""A track of a recipe with several has its own data sets, languages and uncertain fields, and no others."""

from dataclasses import replace

from evaluation.protocols.published import is_as_shipped
from evaluation.protocols.recipes import load_recipe
from evaluation.protocols.tracks import narrow_to_track

RECIPE = load_recipe("2026")
ENGLISH, MULTILINGUAL = (narrow_to_track(RECIPE, name) for name in ("track1", "track2"))


def averaged(recipe, track):
    return {one for average in recipe.tracks[track].averages for split in average.weights.values() for one in split}


def test_track_has_what_it_averages_and_enrols_with():
    for recipe, track in ((ENGLISH, "track1"), (MULTILINGUAL, "track2")):
        assert averaged(recipe, track) <= set(recipe.data_sets)
        assert {one.enrolment for one in recipe.sets("trial")} == {one.name for one in recipe.sets("enrolment")}


def test_tracks_share_no_set_that_is_heard_or_measured():
    roles = ("enrolment", "trial", "recognition", "emotion")
    first, second = ({one.name for role in roles for one in recipe.sets(role)} for recipe in (ENGLISH, MULTILINGUAL))
    assert first
    assert second
    assert first & second == set()
    assert first | second == {one.name for role in roles for one in RECIPE.sets(role)}


def test_track_has_its_languages_alone_and_surprise_languages_are_measured_without_being_averaged():
    assert {one.language for one in ENGLISH.data_sets.values()} == {"en"}
    assert {one.language for one in MULTILINGUAL.data_sets.values()} == {"en", "es", "fr", "de", "cn", "ja"}
    assert not [one for one in averaged(MULTILINGUAL, "track2") if one.startswith(("cn", "ja"))]


def test_track_trains_on_its_own_sets():
    assert [one.name for one in ENGLISH.sets("training")] == ["train-clean-360"]
    assert [one.name for one in MULTILINGUAL.sets("training")] == [
        "train_english",
        "train_spanish",
        "train_french",
        "train_german",
    ]


def test_uncertain_fields_are_those_of_the_track():
    assert "tracks.track1.ranking" in ENGLISH.uncertain
    assert "data_sets.libri_test_enrolls" in ENGLISH.uncertain
    assert set(MULTILINGUAL.uncertain) == {"tracks.track2.ranking", "tracks.track2.averages"}


def test_recipe_of_one_track_and_one_without_a_name_stay_whole():
    assert narrow_to_track(RECIPE, "") is RECIPE
    known = load_recipe("2022")
    assert narrow_to_track(known, "main") is known


def test_part_of_a_shipped_recipe_compares_with_published_numbers():
    assert is_as_shipped(ENGLISH)
    assert is_as_shipped(MULTILINGUAL)
    lacking = {name: one for name, one in MULTILINGUAL.data_sets.items() if name != "es_test_asr"}
    assert not is_as_shipped(replace(MULTILINGUAL, data_sets=lacking))
