"""Folders of published files, and one file beside another: only what lies there is read, once, and said once."""

from __future__ import annotations

import io
import shutil

import pytest

from common.problems import Severity
from evaluation.objective_results.results.folders import read_published, read_results
from evaluation.objective_results.results.results_2022 import read_result_file
from tests.evaluation.commands import RANK_FILE
from tests.evaluation.formats.published import R2022

PARTS = ("RESULTS_summary", "results.anon", "results.orig")


@pytest.fixture
def published(tmp_path):
    for part in PARTS:
        shutil.copyfile(R2022 / f"{part}_mcadams", tmp_path / f"{part}_mcadams")
    return tmp_path


def find_problems(folder):
    [system] = read_results(folder)
    return [(one.code, one.file, one.severity) for one in system.problems if one.code != "copied-asr"]


def test_published_systems_are_those_of_the_folder_itself(tmp_path):
    (tmp_path / "below").mkdir()
    for path in (tmp_path / "result_for_rank_here", tmp_path / "below" / "result_for_rank_there"):
        path.write_text(RANK_FILE)
    (tmp_path / "result_for_rank_folder").mkdir()
    (tmp_path / "result_for_rank_nothing").symlink_to(tmp_path / "nowhere")
    assert [one.system for one in read_published(tmp_path)] == ["here"]
    assert [one.system for one in read_results(tmp_path)] == ["below/there", "here"]
    assert read_published(tmp_path / "nowhere") == ()
    assert read_published(tmp_path / "result_for_rank_here") == ()


@pytest.mark.parametrize(
    ("missing", "expected"), [((), []), (PARTS[:1], [("missing-summary", "results.anon_mcadams", Severity.WARNING)])]
)
def test_published_files_without_a_summary_are_a_warning(published, missing, expected):
    for part in missing:
        (published / f"{part}_mcadams").unlink()
    assert find_problems(published) == expected


@pytest.mark.parametrize(("summary", "codes"), [("nan%", []), ("16.92%", ["contradicting-results"])])
def test_no_number_agrees_with_no_number_alone(published, summary, codes):
    path = published / "results.anon_mcadams"
    name = "ASV-vctk_test_enrolls_anon-vctk_test_trials_f_anon"
    path.write_text(path.read_text().replace(f"{name}\n  EER: 16.92%", f"{name}\n  EER: nan%"))
    other = published / "RESULTS_summary_mcadams"
    other.write_text(other.read_text().replace("16.92%", summary))
    found = [code for code, _, _ in find_problems(published)]
    assert [code for code in found if code == "contradicting-results"] == codes
    assert "not-finite" in found


def test_unknown_line_is_shown_with_its_faulty_number():
    text = (R2022 / "results.anon_mcadams").read_text().splitlines()
    number, line = next((n, line) for n, line in enumerate(text, start=1) if "%WER" in line)
    text[number - 1] = line.replace("1859 sub", "1859 subs")
    [problem] = [
        one
        for one in read_result_file(io.StringIO("\n".join(text)), name="results.anon").problems
        if one.code == "unknown-line"
    ]
    assert (problem.line, problem.found) == (number, f"“{line.strip().replace('1859 sub', '1859 subs')}”")


def test_endless_unknown_line_is_cut():
    [problem] = [
        one
        for one in read_result_file(io.StringIO("x" * 5000 + "\n"), name="results.txt").problems
        if one.code == "unknown-line"
    ]
    assert problem.found == f"“{'x' * 239}…”"
