"""Objective numbers of result files alone, for each edition that the challenge has run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluation.formats.results import AttackModel, Gender, NumberIdentity, ReportedNumber, Speech, WordCounts
from evaluation.objective_results.compute import compute_objective
from evaluation.objective_results.results.checks import published_values
from evaluation.objective_results.results.folders import SystemResults, read_results
from evaluation.objective_results.sources import Sources
from evaluation.objective_results.values import (
    NOT_COMPUTED,
    Basis,
    MissingNumber,
    Number,
    ObjectiveValues,
    number_words,
    required_numbers,
    select_complete,
    with_speech,
)
from evaluation.protocols.recipes import load_recipe
from tests.official import PUBLISHED


def values_of(path, edition, track="main"):
    recipe = load_recipe(edition)
    [system] = read_results(path, recipe=recipe)
    objective = compute_objective(path.parent, system, Sources(recipe, recipe.tracks[track]))
    return ObjectiveValues(1, 1, None, objective.numbers, objective.missing)


@pytest.mark.parametrize(
    ("edition", "track", "file", "numbers"),
    [
        ("2024", "main", "result_for_rank_mcadams", ("4.520", "9.954", "53.491")),
        ("2024", "main", "result_for_rank_b1b", ("6.074", "2.911", "42.779")),
        ("2026", "track1", "track1/result_for_rank_sttts", ("16.850", "4.312", "35.235")),
        ("2026", "track2", "track2/result_for_rank_BM1", ("2.486", "8.514", "42.630")),
    ],
)
def test_published_rank_files_give_everything_that_ranks(edition, track, file, numbers):
    """The numbers stand in the files: EER, WER and UAR of the test split, for track 2 as means of four languages."""
    values = values_of(PUBLISHED / f"vpc{edition}" / "results" / file, edition, track)
    assert values.is_complete
    ranking = load_recipe(edition).tracks[track].ranking
    deciding, split = (ranking.privacy, *ranking.utilities), ranking.split
    found = [values.average(one.metric, one.estimator, split=split) for one in deciding]
    assert tuple(f"{number.value:.3f}" for number in found) == numbers
    assert {number.basis for number in found} == {Basis.REPORTED}


def test_rank_file_of_another_track_leaves_all_of_this_one_missing():
    values = values_of(PUBLISHED / "vpc2026" / "results" / "track2" / "result_for_rank_BM1", "2026", "track1")
    assert [one.what for one in values.unrankable] == [
        "EER (SpeechBrain) of libri_test_trials_mixed, semi-informed",
        "WER of libri_test_asr",
        "UAR of IEMOCAP_test",
    ]


def test_claims_that_are_no_numbers_are_missing(tmp_path):
    test = "ASV-libri_test_enrolls_anon-libri_test_trials_f_anon"
    folder = tmp_path / "results-2022-01-02-03-04-05" / test
    folder.mkdir(parents=True)
    (folder / "EER").write_text("EER: nan%\n")
    recipe = load_recipe("2022")
    [system] = read_results(tmp_path, recipe=recipe)
    objective = compute_objective(tmp_path, system, Sources(recipe, recipe.track))
    reasons = {one.what: one.reason for one in objective.missing}
    assert reasons["EER (Kaldi) of libri_test_trials_f, semi-informed"] == (
        f"“nan” in results-2022-01-02-03-04-05/{test}/EER, line 1 is no number"
    )


def test_number_claimed_in_several_places_is_one_disagreement(tmp_path):
    recipe = load_recipe("2022")
    wer = with_speech(recipe, NumberIdentity("libri_test_asr", Gender.ALL, "wer", "tglarge"))
    counts = WordCounts(errors=3504, words=35042, insertions=2, deletions=3, substitutions=3499)
    reported_numbers = [
        ReportedNumber(wer, 5.0, "%", "5.00", file, 1, counts) for file in ("results.txt", "results_summary.txt", "WER")
    ]
    system = SystemResults("T01", "2022", (), tuple(reported_numbers[:1]), tuple(reported_numbers[1:]), (), ())
    objective = compute_objective(tmp_path, system, Sources(recipe, recipe.track))
    assert objective.disagreements == 1
    assert [one.file for one in objective.problems if one.code == "unlike-counts"] == ["results.txt"]


def test_what_ranks_is_told_from_what_is_only_averaged():
    recipe = load_recipe("2022")
    required = dict(required_numbers(recipe, recipe.track))
    eer = NumberIdentity("libri_test_trials_f", Gender.FEMALE, "eer", "kaldi", *[Speech.ANONYMISED] * 3)
    pitch = NumberIdentity("libri_dev_trials_f", Gender.FEMALE, "pitch_correlation", "praat")
    gain = NumberIdentity("libri_test_trials_f", Gender.FEMALE, "gain_of_voice_distinctiveness", "official")
    assert (required[eer], required[pitch], required[gain]) == (True, True, False)
    assert len(required) == 40


@pytest.mark.parametrize(
    ("edition", "metric", "speech", "training"),
    [
        ("2020", "wer", Speech.ANONYMISED, Speech.ORIGINAL),
        ("2022", "wer", Speech.ANONYMISED, Speech.ANONYMISED),
        ("2024", "uar", Speech.ANONYMISED, Speech.ORIGINAL),
    ],
)
def test_editions_differ_in_what_the_evaluator_was_trained_on(edition, metric, speech, training):
    identity = with_speech(load_recipe(edition), NumberIdentity("a", Gender.ALL, metric), speech=speech)
    assert (identity.training, identity.speech) == (training, speech)


def test_published_value_is_that_of_original_speech_with_the_original_model():
    values = values_of(PUBLISHED / "vpc2022" / "results" / "RESULTS_summary_mcadams", "2022")
    recipe = load_recipe("2022")
    number = values.number("eer", "kaldi", data_set="libri_test_trials_f", attack_model=AttackModel.UNPROTECTED)
    assert (published_values(recipe, number.identity)[0], number.value) == (7.664, 7.664)
    ranked = values.number("eer", "kaldi", data_set="libri_test_trials_f")
    assert published_values(recipe, ranked.identity) == ()
    rate = values.number("wer", "tglarge", data_set="vctk_test_asr", speech=Speech.ORIGINAL)
    assert published_values(recipe, rate.identity)[0] == 12.82


@pytest.mark.parametrize(("reason", "is_kept"), [(NOT_COMPUTED, True), ("3 trials without a score", False)])
def test_number_that_nobody_gave_takes_no_other_of_its_test_along(reason, is_kept):
    recipe = load_recipe("2022")
    track = recipe.tracks["main"]
    eer = next(one for one, _ in required_numbers(recipe, track) if one.metric == "eer")
    cllr = replace(eer, metric="cllr", estimator="")
    numbers = {cllr: Number(cllr, 0.5, Basis.REPORTED, 0)}
    assert (
        cllr in select_complete(numbers, [MissingNumber(number_words(eer), reason, True)], recipe, track)
    ) is is_kept
