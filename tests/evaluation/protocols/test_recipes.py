"""Recipes: what the shipped ones say, what they agree with, and the sentence of each problem of a file."""

from __future__ import annotations

import pytest

from common.errors import ProblemsError
from evaluation.formats.kaldi import read_trials, read_utt2spk
from evaluation.protocols import recipes
from evaluation.protocols.recipes import list_hash, load_recipe, parse_recipe, read_recipe, shipped_editions

SETS_2022 = 12


def test_four_editions_are_shipped():
    assert shipped_editions() == ("2020", "2022", "2024", "2026")
    assert [load_recipe(edition).edition for edition in shipped_editions()] == list(shipped_editions())


def test_unknown_edition_is_refused():
    with pytest.raises(ProblemsError, match="one of the editions 2020, 2022, 2024, 2026, found “2023”"):
        load_recipe("2023")


def test_2022_holds_the_sets_of_the_protocol():
    recipe = load_recipe("2022")
    assert [one.name for one in recipe.sets("trial", "test")] == [
        "libri_test_trials_f",
        "libri_test_trials_m",
        "vctk_test_trials_f",
        "vctk_test_trials_m",
        "vctk_test_trials_f_common",
        "vctk_test_trials_m_common",
    ]
    # columns of protocol 1.1: every count and every hash is there, and trials add up
    assert len(recipe.sets("trial")) == SETS_2022
    assert sum(one.trials or 0 for one in recipe.sets("trial")) == 131266
    assert sum(one.utterances or 0 for one in recipe.sets("enrolment")) == 343 + 438 + 600 + 600
    assert all(len(one.id_hash) == 16 for one in (*recipe.sets("trial"), *recipe.sets("enrolment")))
    assert {one.name: one.words for one in recipe.sets("recognition")} == {
        "libri_dev_asr": 39783,
        "libri_test_asr": 35042,
        "vctk_dev_asr": 86627,
        "vctk_test_asr": 86642,
    }
    # what is anonymised together is what is tried, different and common; what is recognised is all of it
    joint = {one.name: one.utterances for one in recipe.sets("joint")}
    for one in recipe.sets("trial"):
        if one.name.startswith("vctk") and not one.name.endswith("common"):
            common = recipe.data_sets[f"{one.name}_common"].utterances
            assert one.utterances + common == joint[f"{one.name}_all"]
    files = sum(joint.values()) + sum(one.utterances for one in recipe.sets("enrolment"))
    libri = sum(one.utterances for one in recipe.sets("trial") if one.name.startswith("libri"))
    assert files + libri == 28275
    assert recipe.data_sets["vctk_dev_asr"].utterances == 5766 + 5606


def test_2022_ranks_as_its_plan_says():
    track = load_recipe("2022").track
    assert track.ranking.minimum_eers == (15, 20, 25, 30)
    assert (track.ranking.policy, track.ranking.inclusive, track.ranking.note_within) == ("cumulative", True, 0.05)
    (one,) = track.ranking.gates
    assert (one.metric, one.minimum, one.inclusive, len(one.groups)) == ("pitch_correlation", 0.3, False, 6)
    assert track.average("eer").weights["test"]["vctk_test_trials_m_common"] == 0.05
    assert track.average("wer").weights["dev"] == {"libri_dev_asr": 0.5, "vctk_dev_asr": 0.5}
    with pytest.raises(ProblemsError, match="no average of “uar”"):
        track.average("uar")


def test_2020_has_the_sets_of_2022_and_no_ranking():
    old, new = load_recipe("2020"), load_recipe("2022")
    for one in (*old.sets("trial"), *old.sets("enrolment")):
        other = new.data_sets[one.name]
        assert (one.targets, one.nontargets, one.id_hash) == (other.targets, other.nontargets, other.id_hash)
    assert old.track.ranking is None


def test_uncertain_fields_are_marked():
    assert load_recipe("2022").uncertain == ()
    recipe = load_recipe("2024")
    assert recipe.is_uncertain("tracks.main.ranking.minimum_eers")
    assert not recipe.is_uncertain("tracks.main.averages")
    later = load_recipe("2026")
    assert later.is_uncertain("tracks.track1.ranking.minimum_eers")
    assert later.tracks["track1"].ranking.minimum_eers == ()
    for edition in shipped_editions():
        text = (recipes.FOLDER / f"{edition}.toml").read_text().lower()
        assert bool(load_recipe(edition).uncertain) is ("from memory" in text or "not found" in text)


def test_2026_has_two_tracks_and_their_languages():
    recipe = load_recipe("2026")
    assert recipe.tracks["track1"].languages == ("en",)
    assert recipe.tracks["track2"].languages == ("en", "es", "fr", "de")
    assert recipe.tracks["track2"].surprise_languages == ("cn", "ja")
    assert {one.gender for one in recipe.sets("trial")} == {"mixed"}
    assert recipe.data_sets["emodata_dev"].directory == "emodata_track2_dev"
    with pytest.raises(ProblemsError, match="tracks track1, track2"):
        _ = recipe.track


@pytest.mark.parametrize("edition", ["2022", "2024"])
def test_official_data_directories_match_their_recipe(librispeech, edition):
    recipe = load_recipe(edition)
    folders = sorted((librispeech / "data").iterdir())
    assert len(folders) == 6
    for folder in folders:
        one, speakers = recipe.data_sets[folder.name], read_utt2spk(folder / "utt2spk").content
        assert (one.utterances, one.speakers, one.id_hash) == (
            len(speakers),
            len(set(speakers.values())),
            list_hash(speakers),
        )
        if one.role == "trial":
            trials = read_trials(folder / "trials").content
            targets, models = sum(trial.target for trial in trials), {trial.model for trial in trials}
            assert (one.targets, one.nontargets, one.models) == (targets, len(trials) - targets, len(models))
            assert {trial.utterance for trial in trials} <= speakers.keys()
            lines = (f"{one.model} {one.utterance} {'' if one.target else 'non'}target" for one in trials)
            assert one.trials_hash in ("", list_hash(lines))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("edition = ", "edition == "), "readable TOML file"),
        (('edition = "2022"', "edition = 2022"), "recipe.edition: expected a text in quotation marks, found “2022”"),
        (("vctk_test_trials_m = 0.20", "vctk_test_trials_m = 0.25"), "add up to 1, found 1.05"),
        (("[15, 20, 25, 30]", "[15, 15, 25, 30]"), "expected ascending limits"),
        (('enrolment = "libri_dev_enrolls"', 'enrolment = "nobody"'), "expected a data set, found “nobody”"),
    ],
)
def test_problem_of_a_recipe_is_named(tmp_path, change, sentence):
    text = (recipes.FOLDER / "2022.toml").read_text()
    assert change[0] in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(*change))
    with pytest.raises(ProblemsError, match=sentence) as caught:
        read_recipe(path)
    assert str(caught.value).startswith("mine.toml: ")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('"VoicePrivacy 2022"', r'"a\u202egnp"'), "title: expected a line without control characters and signs of"),
        (('"VoicePrivacy 2022"', f'"{200_000 * "x"}"'), "title: expected at most 200 characters, found 200,000."),
        (('"Average WER"', '"""Average\nWER"""'), "recipe.tracks.main.averages[1].label: expected a line without"),
        (("[tracks.main]", r'[tracks."\u202e"]'), "a name in recipe.tracks: expected a line without"),
    ],
)
def test_text_that_no_page_can_print_is_refused(change, sentence):
    """Such text reads as other text, is taken by no PostgreSQL, or fills every page that names it."""
    text = (recipes.FOLDER / "2022.toml").read_text()
    assert change[0] in text
    with pytest.raises(ProblemsError) as caught:
        parse_recipe(text.replace(*change), file="mine.toml")
    assert any(sentence in problem for problem in caught.value.problems)
    assert all(problem.isprintable() and len(problem) < 400 for problem in caught.value.problems)


def test_missing_recipe_is_refused(tmp_path):
    with pytest.raises(ProblemsError, match="expected a readable TOML file"):
        read_recipe(tmp_path / "mine.toml")
