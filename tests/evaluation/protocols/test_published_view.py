"""Lines of published results, against the rows of the files taken one by one."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from evaluation.protocols import published
from evaluation.protocols.published_view import (
    AVERAGE,
    SPLITS,
    is_further,
    list_measures,
    list_tasks,
    list_trial_sets,
    read_lines,
    select_numbers,
)

FOLDER = Path(published.__file__).with_name("published")
TASKS = {one.key: one for one in list_tasks()}


def rows_of(edition: str) -> list[dict[str, str]]:
    with (FOLDER / f"{edition}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tasks_are_those_of_every_edition_with_results():
    assert list(TASKS) == ["2020", "2022", "2024", "2026-track1", "2026-track2"]


@pytest.mark.parametrize("key", TASKS)
@pytest.mark.parametrize("split", SPLITS)
def test_lines_of_a_set_hold_its_first_printed_number_of_each_measure(key, split):
    task, rows = TASKS[key], rows_of(key[:4])
    for data_set in list_trial_sets(task, split):
        found = {line.system: line.values for line in read_lines(task, split, data_set)}
        corpus = data_set.split("_trials")[0]
        for system in {row["system"] for row in rows}:
            for metric, estimator in list_measures(task):
                wanted = f"{corpus}_asr" if metric == "wer" else data_set
                texts = [
                    row["value"]
                    for row in rows
                    if (row["system"], row["data_set"], row["metric"], row["estimator"])
                    == (system, wanted, metric, estimator)
                    and (row["system"] == "Original" or row["attack_model"] in ("", task.strongest))
                ]
                value = found.get(system, {}).get((metric, estimator))
                assert (value.text if value else None) == (texts[0] if texts else None)


def test_averages_of_2022_are_those_that_the_challenge_printed():
    lines = {line.system: line.values for line in read_lines(TASKS["2022"], "test", AVERAGE)}
    printed = {"B1.a": ("11.809", "8.285"), "B1.b": ("9.183", "7.560"), "B2": ("7.769", "9.030")}
    for system, (eer, wer) in printed.items():
        assert f"{lines[system]['eer', 'kaldi'].value:.3f}" == eer
        assert f"{lines[system]['wer', 'tglarge'].value:.3f}" == wer
        assert lines[system]["eer", "kaldi"].is_average
    found = lines["Original"]["wer", "tglarge"].note
    assert found == "On vctk_test_asr the sources differ: 12.80, 12.81 and 12.82."
    # Participants have printed averages only, here of pitch correlation; where sources differ it says so.
    assert lines["T32-p1"].keys() == {("pitch_correlation", "praat"), ("pitch_correlation_realigned", "praat")}
    assert lines["T32-p1"]["pitch_correlation", "praat"].text == "0.81"
    assert lines["T18-p1"]["pitch_correlation", "praat"].note == "The sources differ: 0.70 and 0.81."


def test_an_average_is_not_made_of_some_of_its_sets():
    dev = {line.system: line.values for line in read_lines(TASKS["2022"], "dev", AVERAGE)}
    assert "T32-p1" not in dev
    track = {line.system: line.values for line in read_lines(TASKS["2026-track1"], "test", AVERAGE)}
    assert ("eer", "speechbrain") not in track["Original"]


def test_numbers_behind_a_view_are_its_rows():
    task, rows = TASKS["2024"], rows_of("2024")
    found = select_numbers(task, ["B3", "B5"], "test", AVERAGE)
    wanted = [row for row in rows if row["system"] in ("B3", "B5") and "_test" in row["data_set"]]
    assert len(wanted) == 2 * 8
    assert [(one.system, one.data_set, one.value) for one in found] == [
        (row["system"], row["data_set"], row["value"]) for row in wanted
    ]


def test_attack_model_chooses_numbers_of_attackers_only():
    task = TASKS["2022"]
    assert task.attacks == ("unprotected", "ignorant", "lazy-informed", "semi-informed")
    by_attack = {attack: read_lines(task, "test", "libri_test_trials_f", attack) for attack in task.attacks}
    assert [line.system for line in by_attack["unprotected"]] == ["Original"]
    found = {
        attack: next(line.values for line in lines if line.system == "B2")
        for attack, lines in by_attack.items()
        if attack != "unprotected"
    }
    assert {attack: one["eer", "kaldi"].text for attack, one in found.items()} == {
        "ignorant": "38.32",
        "lazy-informed": "39.78",
        "semi-informed": "7.117",
    }
    assert found["ignorant"]["zebra_individual", ""].text == "1.668"
    assert {one["pitch_correlation", "praat"].text for one in found.values()} == {"0.6089"}
    originals = {line.values["eer", "kaldi"].text for lines in by_attack.values() for line in lines[:1]}
    assert originals == {"7.664"}


def test_measures_that_no_recipe_averages_have_the_weights_of_another():
    """Numbers of the tables averaged by hand, with the weights of the plan of 2022."""
    weights = {"libri_test_trials": 0.25, "vctk_test_trials": 0.2, "vctk_test_trials_common": 0.05}
    rows = [row for row in rows_of("2022") if (row["system"], row["metric"]) == ("B2", "min_cllr")]
    rows = [row for row in rows if row["attack_model"] == "ignorant" and "_test_" in row["data_set"]]
    wanted = sum(weights[re.sub("_[fm](?=_|$)", "", row["data_set"])] * float(row["value"]) for row in rows)
    lines = {line.system: line.values for line in read_lines(TASKS["2022"], "test", AVERAGE, "ignorant")}
    assert len(rows) == 6
    assert lines["B2"]["min_cllr", "pav"].value == pytest.approx(wanted)
    emotions = {line.system: line.values for line in read_lines(TASKS["2024"], "test", AVERAGE)}
    assert emotions["B2"]["accuracy_sad", ""].value == 32.7760
    assert not is_further("eer")
    assert is_further("accuracy_sad")
