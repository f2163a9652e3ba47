"""Result files of 2024 and 2026: read whole, every planted defect found and nothing else."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from common.errors import InputError
from common.problems import Severity
from evaluation.formats.results import Speech
from evaluation.objective_results.results.folders import read_results, track_average
from evaluation.objective_results.results.rank_files import read_rank_file
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.formats.published import GENDERS, LETTER, R2024, R2026, table
from tests.official import PUBLISHED

FILES = sorted(path for folder in (R2024, R2026) for path in folder.rglob("result_for_rank*"))
MCADAMS, ENGLISH = R2024 / "result_for_rank_mcadams", R2026 / "track1/result_for_rank_sttts"
LANGUAGES = R2026 / "track2/result_for_rank_BM1"
# file name → system of the published table
TABLE = {
    "b1b": "2024-B1",
    "mcadams": "2024-B2",
    "asrbn_hifigan_bn_tdnnf_wav2vec2_vq_48_v1": "2024-B5",
    "asrbn_hifigan_bn_tdnnf_600h_vq_48_v1": "2024-B6",
}


INCOMPLETE = {"result_for_rank_nac"}  # published without the rows of emotion


def read_text(text: str, name: str = "result_for_rank_x"):
    return read_rank_file(io.StringIO(text), name=name)


def find_problems(text: str):
    return [(problem.code, problem.line) for problem in read_text(text).problems]


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-2:]))
def test_every_row_of_a_published_file_is_read(path):
    file = read_rank_file(path)
    text = path.read_text()
    rows = len(re.findall(r"\b(?:dev|test) ", text))
    numbers = len(re.findall(r"\d+\.\d+", text))
    assert (file.rows, len(file.reported_numbers)) == (rows, numbers)
    assert {problem.code for problem in file.problems} == ({"missing-result"} if path.name in INCOMPLETE else set())
    assert file.repeated == ()
    assert len(file.times) == text.count("Time:")
    assert len(file.sections) == text.count(" results ----")
    assert file.edition == path.relative_to(PUBLISHED).parts[0][3:]
    assert f"result_for_rank{file.suffix}" == path.name


@pytest.mark.parametrize(("name", "system"), TABLE.items())
def test_claims_are_the_rows_of_the_published_table(name, system):
    found = {}
    for reported in read_rank_file(R2024 / f"result_for_rank_{name}").reported_numbers:
        one = reported.identity
        if one.metric == "eer":
            training = {Speech.ORIGINAL: "orig", Speech.ANONYMISED: "anon"}[one.training]
            metric = f"eer_percent.{training}.{LETTER[one.enrolment]}-{LETTER[one.speech]}"
        elif one.metric == "wer":
            metric = f"wer_percent.{LETTER[one.speech]}"
        else:
            metric = f"ser_{one.metric.replace('accuracy', 'ACC').replace('uar', 'UAR')}_percent.{LETTER[one.speech]}"
        where = re.sub(r"_asr$|_trials_.*$", "", one.data_set)
        found[where, GENDERS[one.gender], metric] = reported.written
    assert found == table(2024, system)


def test_averages_of_the_tracks():
    recipe = load_recipe("2024")
    reported_numbers = read_rank_file(MCADAMS).reported_numbers
    assert track_average(reported_numbers, recipe, "eer", "test").value == pytest.approx((7.483 + 1.557) / 2, abs=1e-12)
    assert track_average(reported_numbers, recipe, "wer", "test").value == 9.954
    assert track_average(reported_numbers, recipe, "uar", "dev").value == 55.6146
    later = load_recipe("2026")
    several = read_rank_file(LANGUAGES).reported_numbers
    average = track_average(several, later, "eer", "test", track="track2")
    assert average.value == pytest.approx((3.734 + 1.750 + 1.830 + 2.630) / 4, abs=1e-12)
    gap = [one for one in several if not one.identity.data_set.startswith("fr_test")]
    with pytest.raises(InputError, match=r"found missing: fr_test_trials_mixed\.$"):
        track_average(gap, later, "eer", "test", track="track2")


def test_folders_of_rank_files_are_read_by_system():
    systems = [one.system for one in read_results(R2026)]
    assert systems == sorted(f"{path.parent.name}/{path.name[16:]}" for path in R2026.rglob("result_for_rank_*"))
    assert {one.system for one in read_results(R2026) if one.problems} <= {"track1/nac"}
    assert all(one.problems == () for one in read_results(R2024))


def damaged(path: Path, line: int, old: str, new: str) -> str:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    return "".join(lines)


@pytest.mark.parametrize(
    ("path", "line", "old", "new", "expected"),
    [
        (MCADAMS, 1, "29-03-24_10:45", "yesterday", [("unknown-section", 1)]),
        (MCADAMS, 6, "55.6146", "nan", [("not-a-number", 6), ("missing-result", None)]),
        (MCADAMS, 6, "55.6146", "155.6146", [("out-of-range", 6), ("wrong-uar", 6)]),
        (MCADAMS, 6, "55.6146", "56.6146", [("wrong-uar", 6)]),
        (MCADAMS, 16, "original  original", "original  unknown", [("malformed-row", 16)]),
        (MCADAMS, 19, "WER", "CER", [("missing-column", 19), ("missing-result", None), ("missing-result", None)]),
        (MCADAMS, 2, "", "surprise", []),
        (MCADAMS, 32, "test      m", "test      f", [("repeated-result", 32), ("missing-result", None)]),
        (LANGUAGES, 59, "es   dev", "de   dev", [("repeated-result", 59), ("missing-result", None)]),
    ],
)
def test_planted_defect_is_found_and_nothing_else(path, line, old, new, expected):
    if not old:
        lines = path.read_text().splitlines(keepends=True)
        text, expected = "".join([*lines[: line - 1], f"{new}\n", *lines[line - 1 :]]), [("unknown-line", line)]
    else:
        text = damaged(path, line, old, new)
    found = find_problems(text)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_a_missing_language_is_named():
    text = LANGUAGES.read_text()
    start = text.rindex("---- Time:")
    problems = read_text(text[:start]).problems
    assert [problem.expected for problem in problems] == [
        "the eer of fr_dev_trials_mixed, anonymised",
        "the eer of fr_test_trials_mixed, anonymised",
    ]
    assert {problem.severity for problem in problems} == {Severity.ERROR}


def test_a_repeated_section_counts_once_and_is_named():
    text = LANGUAGES.read_text()
    again = text[text.rindex("---- Time:") :]
    file = read_text(text + again)
    number = text.count("\n")
    assert [(one.code, one.line) for one in file.problems] == [
        ("repeated-result", number + 5),
        ("repeated-result", number + 6),
    ]
    assert len(file.reported_numbers) == 52
    assert len(file.repeated) == 2


def test_surprise_languages_are_read_and_not_required():
    text = LANGUAGES.read_text()
    again = text[text.rindex("---- Time:") :].replace("     fr ", "     ja ")
    file = read_text(text + again)
    assert file.problems == ()


@pytest.mark.parametrize(
    ("path", "line", "old", "new", "expected", "found"),
    [
        (LANGUAGES, 6, "emodata", "EMODATA", "an emotion set of VoicePrivacy 2026", "EMODATA_dev"),
        (MCADAMS, 32, "libri  test", "vctk   test", "a trial list of VoicePrivacy 2024", "vctk_test_trials_m"),
    ],
)
def test_a_row_that_the_edition_lacks_is_named_with_what_it_leaves_open(path, line, old, new, expected, found):
    problem, *others = read_text(damaged(path, line, old, new)).problems
    assert (problem.code, problem.line, problem.severity) == ("unexpected-row", line, Severity.ERROR)
    assert (problem.expected, problem.found) == (expected, found)
    assert {other.code for other in others} <= {"missing-result"}


def test_a_further_column_is_named_and_the_section_still_read():
    lines = LANGUAGES.read_text().splitlines()
    lines[43] += " minDCF"
    lines[44:46] = [f"{row} 0.5" for row in lines[44:46]]
    file = read_text("\n".join(lines))
    (problem,) = file.problems
    assert (problem.severity, problem.sentence()) == (
        Severity.WARNING,
        "result_for_rank_x, line 44: expected the columns dataset, split, gender, enrollment, trial and the numbers, "
        "found also “minDCF”. It was ignored; submit the table as the official script printed it.",
    )
    identities = [(one.identity, one.written) for one in file.reported_numbers]
    assert identities == [(one.identity, one.written) for one in read_rank_file(LANGUAGES).reported_numbers]


def test_columns_may_come_in_any_order_and_without_an_index():
    text = re.sub(r"(?m)^\d+ +", "", ENGLISH.read_text())
    file, original = read_text(text), read_rank_file(ENGLISH)
    assert file.problems == ()
    assert [(one.identity, one.value) for one in file.reported_numbers] == [
        (one.identity, one.value) for one in original.reported_numbers
    ]


def test_empty_file_is_refused():
    assert find_problems("") == [("empty-file", 1)]
    assert find_problems("nothing\n") == [("unknown-line", 1)]
