"""Result files under any name: known by their content, and held against what is published of original speech."""

from __future__ import annotations

import io

import pytest

from evaluation.objective_results.results.folders import read_results
from evaluation.objective_results.results.forms import ResultForm, find_form
from evaluation.objective_results.results.rank_files import read_rank_file
from evaluation.objective_results.results.results_2022 import read_result_file
from evaluation.protocols.published import ORIGINAL, load_published
from evaluation.protocols.recipes import load_recipe

ORIGINALS = """\
---- SER results ----
   dataset split       ser      UAR
                               mean
0  IEMOCAP   dev      anon  41.9000
1  IEMOCAP   dev  original  69.0796
2  IEMOCAP  test      anon  42.7500
3  IEMOCAP  test  original  71.0618

---- ASV_eval results ----
  dataset split gender enrollment     trial     EER
0   libri   dev      f   original  original  10.511
3   libri   dev      m   original  original   0.931
6   libri  test      f   original  original   8.761
9   libri  test      m   original  original   0.418

---- ASR results ----
  dataset split       asr    WER
0   libri   dev  original  1.805
4   libri   dev      anon  6.100
1   libri  test  original  1.846
5   libri  test      anon  5.900
"""
ANONYMISED = """
---- ASV_eval^anon results ----
   dataset split gender enrollment trial     EER
2    libri   dev      f       anon  anon  34.100
5    libri   dev      m       anon  anon  31.200
8    libri  test      f       anon  anon  29.300
11   libri  test      m       anon  anon  31.400
"""
RANK = ORIGINALS + ANONYMISED
LINES_2022 = "ASV-libri_dev_enrolls-libri_dev_trials_f EER: 8.665%\n"


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (RANK.encode(), ResultForm.SECTIONS),
        (RANK.replace("\n", "\r\n").encode("utf-8-sig"), ResultForm.SECTIONS),
        (RANK.encode("utf-16"), ResultForm.SECTIONS),
        (LINES_2022.encode(), ResultForm.LINES),
        (b"spk-1 utt-1 -0.25\nspk-1 utt-2 1e-3\n", ResultForm.SCORES),
        (b"---- Notes ----\nnothing\n", None),
        (b"", None),
        (b"\x00\xff\xfe" * 9, None),
    ],
)
def test_form_is_told_by_the_lines(content, form):
    assert find_form(content) is form


@pytest.mark.parametrize("name", ["B9.log", "RESULTS_summary_B9"])
def test_result_file_is_read_by_its_content_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_text(RANK)
    (system,) = read_results(tmp_path / name)
    assert (system.edition, len(system.reported_numbers), system.problems) == ("2024", 16, ())
    (again,) = read_results(tmp_path / name, edition="2024")
    assert again.reported_numbers == system.reported_numbers


def test_folder_is_sorted_by_systems_that_names_tell(tmp_path):
    files = {"results_B9.txt": RANK, "T1/results_orig.txt": ORIGINALS, "T1/results_anon.txt": ANONYMISED}
    for name, content in (files | {"T1/._results_anon.txt": RANK, "notes.txt": "nothing"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    found = {system.system: system for system in read_results(tmp_path)}
    assert {name: [file.name for file in system.files] for name, system in found.items()} == {
        "B9": ["results_B9.txt"],
        "T1/T1": ["T1/results_anon.txt", "T1/results_orig.txt"],
    }
    assert {len(system.reported_numbers) for system in found.values()} == {16}
    assert [system.problems for system in found.values()] == [(), ()]


def test_results_directories_are_found_at_any_depth(tmp_path):
    folder = tmp_path / "team" / "exp" / "results-2020"
    folder.mkdir(parents=True)
    (folder / "results.txt").write_text("ASV-libri_dev_enrolls-libri_dev_trials_f\n  EER: 8.665%\n")
    (system,) = read_results(tmp_path, edition="2020")
    assert [reported.value for reported in system.reported_numbers] == [8.665]


def test_missing_file_names_one_that_differs_in_capitals_only(tmp_path):
    folder = tmp_path / "results-2022-01-01-10-00-00.orig"
    (folder / "ASV-x").mkdir(parents=True)
    (folder / "Results.txt").touch()
    (system,) = read_results(tmp_path, edition="2022")
    found = {problem.file: problem.found for problem in system.problems if problem.code == "missing-file"}
    assert found[f"{folder.name}/results.txt"] == "none, but “Results.txt”, which differs in capitals only"


def unlike(file):
    return [(problem.line, problem.found) for problem in file.problems if problem.code == "unlike-baseline"]


@pytest.mark.parametrize(("line", "old", "new"), [(18, "1.805", "99.360"), (5, "69.0796", "68.9000")])
def test_numbers_of_original_speech_are_held_against_the_published_ones(line, old, new):
    assert unlike(read_rank_file(io.StringIO(RANK))) == []
    assert unlike(read_rank_file(io.StringIO(RANK.replace(old, new)))) == [(line, f"“{new}”")]


@pytest.mark.parametrize(("value", "found"), [("8.665", []), ("8.807", []), ("9.1", [(2, "“9.1”")])])
def test_each_value_that_was_published_of_2020_will_do(value, found):
    text = f"ASV-libri_dev_enrolls-libri_dev_trials_f\n  EER: {value}%\n"
    assert unlike(read_result_file(io.StringIO(text), recipe=load_recipe("2020"))) == found


@pytest.mark.parametrize("edition", ["2020", "2022", "2024", "2026"])
def test_recipes_state_what_is_published_of_original_speech(edition):
    recipe = load_recipe(edition)
    estimators = {"", recipe.results.ranked_recognition if recipe.results else ""}
    estimators |= {average.estimator for track in recipe.tracks.values() for average in track.averages}
    estimators |= {rule.estimator for rule in recipe.metrics if rule.key == "eer"} - {"rocch"}
    published: dict[str, set[float]] = {}
    for number in load_published(edition):
        if number.system == ORIGINAL and number.metric in ("eer", "wer", "uar") and number.estimator in estimators:
            published.setdefault(number.data_set, set()).add(float(number.value))
    stated = {name: one.original_value for name, one in recipe.data_sets.items() if one.original_value is not None}
    assert stated.keys() == published.keys()
    assert all(any(abs(value - one) < 0.02 for one in published[name]) for name, value in stated.items())
