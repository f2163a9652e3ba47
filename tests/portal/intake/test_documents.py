"""Result and score files of an archive: the published ones of 2022 in the layout of a submission, whole and damaged."""

from __future__ import annotations

import io

import pytest

from evaluation.formats.results import Speech
from evaluation.objective_results.results.expected import ResultKind, detection_name
from evaluation.objective_results.results.results_2022 import read_result_file
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.formats.published import R2022
from tests.evaluation.formats.writing import write_single_files
from tests.portal.intake.packing import check, expect, pack_zip

STAMP = "results-2022-05-01-10-20-30"
RECIPE = load_recipe("2022")


@pytest.fixture(scope="module")
def b2(tmp_path_factory):
    return published_files("mcadams", tmp_path_factory.mktemp("b2"))


def published_files(system, root):
    for folder, kind, name in (
        (STAMP, ResultKind.RETRAINED, f"results.anon_{system}"),
        (f"{STAMP}.orig", ResultKind.ORIGINAL, f"results.orig_{system}"),
    ):
        text = (R2022 / name).read_text()
        (root / folder).mkdir()
        (root / folder / "config.info").write_text("as published\n")
        (root / folder / "results.txt").write_text(text)
        reported_numbers = read_result_file(io.StringIO(text), name=name, kind=kind).reported_numbers
        write_single_files(root / folder, reported_numbers, RECIPE, kind)
    (root / STAMP / "results_summary.txt").write_bytes((R2022 / f"RESULTS_summary_{system}").read_bytes())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def checked(tmp_path, files, **changes):
    source = pack_zip(tmp_path / "T1.zip", [(f"T1/exp/{path}", content) for path, content in files.items()])
    required = {"audio_required": False} | changes
    return check(source, expect({}, {}, **required), tmp_path / "documents")


def found(report):
    return {(one.file, one.code, str(one.severity)) for one in report.findings}


def score_path(folder, data_set):
    return f"{folder}/{detection_name(RECIPE, RECIPE.data_sets[data_set], Speech.ANONYMISED, Speech.ANONYMISED)}/scores"


def score_lines(count):
    return "".join(f"a b{number} {number}\n" for number in range(count)).encode()


def test_published_results_are_accepted_without_scores(b2, tmp_path):
    report = checked(tmp_path, b2)
    assert [one.sentence() for one in report.findings if str(one.severity) == "error"] == []
    assert report.counts.documents == len(b2)


def test_single_score_files_that_are_missing_are_named(b2, tmp_path):
    path = score_path(STAMP, "libri_dev_trials_f")
    report = checked(tmp_path, b2 | {path: score_lines(15270)}, scores_required=True)
    errors = {one for one in found(report) if one[2] == "error"}
    assert len(errors) == 71
    assert {code for _, code, _ in errors} == {"missing-file"}
    assert f"T1/exp/{path}" not in {file for file, _, _ in errors}


def test_results_outside_of_their_folder_are_an_error(b2, tmp_path):
    source = pack_zip(tmp_path / "flat.zip", [("results.txt", b2[f"{STAMP}/results.txt"])])
    report = check(source, expect({}, {}, audio_required=False), tmp_path / "documents")
    assert found(report) == {("results.txt", "misplaced-results", "error")}
