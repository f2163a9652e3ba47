"""Result files of 2020 and 2022: every published number is read, every planted defect is found and nothing else."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from common.problems import Severity
from evaluation.formats.results import AttackModel, Speech, print_zebra
from evaluation.objective_results.results.expected import ResultKind
from evaluation.objective_results.results.folders import read_results, track_average
from evaluation.objective_results.results.results_2022 import make_reported_number, read_result_file
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.formats.published import R2022, table, table_rows
from tests.evaluation.formats.writing import write_result_file

SYSTEMS = {"B1.a": "tts_old_c", "B1.b": "tts_joint_nsf_hifigan", "B2": "mcadams"}
RECIPE = load_recipe("2022")
SUMMARY, RETRAINED, ORIGINAL = (
    R2022 / f"{part}_mcadams" for part in ("RESULTS_summary", "results.anon", "results.orig")
)


def read_text(text: str, name: str):
    return read_result_file(io.StringIO(text), name=name)


def find_problems(text: str, name: str):
    """What is wrong with a text beyond what is wrong with every published file."""
    problems = read_text(text, name).problems
    return [(problem.code, problem.line) for problem in problems if problem.code != "copied-asr"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_line_of_a_published_file_is_read(system):
    counts = {"RESULTS_summary": (68, 80), "results.anon": (324, 352), "results.orig": (276, 304)}
    for part, expected in counts.items():
        file = read_result_file(R2022 / f"{part}_{SYSTEMS[system]}")
        assert (file.lines, len(file.reported_numbers)) == expected
        assert (file.edition, file.repeated) == ("2022", ())
        codes = [problem.code for problem in file.problems]
        assert codes == (["copied-asr"] if part == "results.orig" else [])


@pytest.mark.parametrize("system", SYSTEMS)
def test_claims_are_the_rows_of_the_published_table(system):
    found: dict[tuple[str, str, str], str] = {}
    for part in ("RESULTS_summary", "results.anon", "results.orig"):
        for reported in read_result_file(R2022 / f"{part}_{SYSTEMS[system]}").reported_numbers:
            for row, value in table_rows(reported).items():
                assert found.setdefault(row, value) == value
    assert found == table(2022, system)


@pytest.mark.parametrize(
    ("system", "eer", "wer"),
    [("tts_old_c", 11.809, 8.285), ("tts_joint_nsf_hifigan", 9.183, 7.56), ("mcadams", 7.769, 9.03)],
)
def test_ranked_averages_are_those_of_the_protocol(system, eer, wer):
    (results,) = [one for one in read_results(R2022) if one.system == system]
    assert round(track_average(results.reported_numbers, RECIPE, "eer", "test").value, 3) == eer
    assert round(track_average(results.reported_numbers, RECIPE, "wer", "test").value, 3) == wer


def test_average_of_a_whole_result_is_of_the_model_that_the_edition_or_the_caller_names():
    """Original speech was tested with both models: published is the average by the original one."""
    (results,) = [one for one in read_results(R2022) if one.system == "mcadams"]
    reported_numbers = results.reported_numbers

    def average(metric, **which):
        return round(track_average(reported_numbers, RECIPE, metric, "dev", **which).value, 3)

    written = {
        (one.identity.metric, one.identity.training): one.value
        for one in reported_numbers
        if one.identity.data_set == "average_dev"
    }
    assert average("eer", attack_model=AttackModel.UNPROTECTED) == written["eer", Speech.ORIGINAL] == 3.539
    assert average("eer", attack_model=AttackModel.UNPROTECTED, training=Speech.ORIGINAL) == 3.539
    retrained = {
        one.identity.data_set: one.value
        for one in read_result_file(RETRAINED).reported_numbers
        if one.identity.attack_model is AttackModel.UNPROTECTED and one.identity.estimator == "kaldi"
    }
    weights = {"libri": 0.25, "vctk": 0.2, "common": 0.05}
    by_hand = sum(
        weights["common" if name.endswith("common") else name.split("_")[0]] * value
        for name, value in retrained.items()
        if "_dev_" in name
    )
    assert average("eer", attack_model=AttackModel.UNPROTECTED, training=Speech.ANONYMISED) == round(by_hand, 3)
    assert round(by_hand, 3) != 3.539
    assert average("eer", attack_model=AttackModel.LAZY_INFORMED) != average("eer", attack_model=AttackModel.IGNORANT)
    assert average("wer") == average("wer", training=Speech.ANONYMISED) == written["wer", Speech.ANONYMISED]
    assert average("pitch_correlation", training=Speech.ORIGINAL) == average("pitch_correlation")
    # Of the original recognizer the file has copies only.
    with pytest.raises(InputError, match=r"found missing: libri_dev_asr, vctk_dev_asr\.$"):
        average("wer", training=Speech.ORIGINAL)


def test_copied_recognition_is_not_taken_for_that_of_the_original_model():
    file = read_result_file(ORIGINAL)
    words = [reported for reported in file.reported_numbers if reported.counts]
    assert {reported.identity.training for reported in words} == {Speech.ANONYMISED}
    (problem,) = file.problems
    assert (problem.code, problem.severity, problem.line) == ("copied-asr", Severity.WARNING, 254)
    assert problem.found.startswith("16 lines")


def test_own_numbers_are_written_as_the_official_scripts_print_them():
    again = [
        make_reported_number(one.identity, one.value, counts=one.counts, decoding=one.decoding)
        for one in read_result_file(RETRAINED).reported_numbers
    ]
    written = io.StringIO()
    write_result_file(again, ResultKind.RETRAINED, RECIPE, written)
    assert written.getvalue() == RETRAINED.read_text()


@pytest.mark.parametrize(("value", "printed"), [(0.0, "0"), (3e-5, "3e-05"), (5.01e-4, "0.001"), (0.7213, "0.721")])
def test_zebra_values_are_printed_as_the_official_script_does(value, printed):
    assert print_zebra(value) == printed


def replace_line(path: Path, number: int, old: str, new: str) -> str:
    lines = path.read_text().splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new)
    return "".join(lines)


@pytest.mark.parametrize(
    ("path", "line", "old", "new", "expected"),
    [
        # the rate of a libri_dev_trials_f block is a whole number of 704 targets: 14.91 is 105, 14.95 is none
        (RETRAINED, 2, "14.91%", "14.95%", [("eer-not-countable", 2)]),
        (RETRAINED, 2, "EER: 14.91%", "EER: 14.91 %", [("unknown-line", 2), ("missing-result", 1)]),
        (RETRAINED, 2, "14.91%", "nan%", [("not-finite", 2)]),
        (RETRAINED, 2, "14.91%", "114.9%", [("out-of-range", 2)]),
        (RETRAINED, 3, "0.466/12.520", "12.520/0.466", [("cllr-below-minimum", 3)]),
        # Kaldi's EER is a whole number of 704 targets: 104 is 0.02 below the ROCCH-EER, 103 is 0.16, 102 is 0.30
        (RETRAINED, 2, "14.91%", "14.77%", []),
        (RETRAINED, 2, "14.91%", "14.49%", [("eer-below-rocch", 2)]),
        (RETRAINED, 4, "14.793", "20.310", [("eer-below-rocch", 2)]),
        (RETRAINED, 6, "0.375 bit", "0.950 bit", [("out-of-range", 6)]),
        (RETRAINED, 7, "3.452 (C)", "3.452 (B)", [("wrong-category", 7)]),
        (RETRAINED, 254, "%WER 5.86", "%WER 5.68", [("wrong-wer", 254)]),
        (RETRAINED, 254, "221 ins", "211 ins", [("wrong-sum-of-errors", 254)]),
        (RETRAINED, 254, "/ 39783", "/ 39785", [("wrong-words", 254)]),
        (
            RETRAINED,
            254,
            "[ 2333 / 39783, 221",
            "[ 2333 / 1000, 221",
            [("wrong-sum-of-errors", 254), ("wrong-wer", 254), ("wrong-words", 254)],
        ),
        (RETRAINED, 254, "sub ]", "sub ] [PARTIAL]", [("partial-recognition", 254)]),
        (RETRAINED, 254, "wer_12_0.0", "wer_18_0.0", [("wrong-decoding", 254)]),
        (RETRAINED, 254, "decode_libri_dev_asr_", "decode_vctk_dev_asr_", [("wrong-decoding", 254)]),
        (RETRAINED, 254, "user_asr_eval_anon", "asr_eval", [("wrong-model", 254)]),
        (RETRAINED, 277, "mean=0.6374", "mean=1.6374", [("out-of-range", 277)]),
        (
            RETRAINED,
            1,
            "libri_dev_trials_f",
            "libri_dev_trials_x",
            [("unexpected-block", line) for line in range(2, 8)] + [("missing-result", 1)],
        ),
        (ORIGINAL, 2, "8.665%", "8.807%", [("unlike-baseline", 2)]),
        (SUMMARY, 1, "8.665%", "8.807%", [("wrong-average", 57), ("unlike-baseline", 1)]),
        (SUMMARY, 21, "16.92%", "16.99%", [("eer-not-countable", 21), ("wrong-average", 60)]),
        (SUMMARY, 57, "3.539", "3.551", [("wrong-average", 57)]),
        (
            SUMMARY,
            25,
            "models/asr_eval",
            "models/user_asr_eval_anon",
            [("missing-result", 25), ("wrong-model", 25), ("undefined-average", 61)],
        ),
    ],
)
def test_planted_defect_is_found_and_nothing_else(path, line, old, new, expected):
    found = find_problems(replace_line(path, line, old, new), path.name)
    if path is SUMMARY and old == "models/asr_eval":  # the reported number moved to the other model; its line is there
        found = [problem for problem in found if problem[0] != "missing-result"]
        expected = expected[1:]
    assert found == expected


@pytest.mark.parametrize("number", [1, 25, 68])
def test_missing_summary_line_is_found_with_its_average(number):
    lines = SUMMARY.read_text().splitlines(keepends=True)
    averages = {1: 56, 25: 60}
    expected = [("missing-result", number)] + ([("undefined-average", averages[number])] if number < 57 else [])
    text = "".join(lines[: number - 1] + lines[number:])
    assert find_problems(text, SUMMARY.name) == expected
    (missing,) = [one for one in read_text(text, SUMMARY.name).problems if one.code == "missing-result"]
    assert missing.remedy.startswith("Run that part of the evaluation" if number < 57 else "Add the line")


def test_a_second_run_appended_is_found():
    text = RETRAINED.read_text()
    file = read_text(text + text, RETRAINED.name)
    assert len(file.repeated) == len(file.reported_numbers) == 352
    assert {problem.code for problem in file.problems} == {"repeated-result"}
    assert file.problems[0].line == 324 + 2
    assert len(file.problems) == 268


def test_average_of_a_lowered_sum_is_not_believed():
    """The official script prints the sum over what it finds: a missing set lowers the average without a word."""
    lines = [
        line for line in SUMMARY.read_text().splitlines(keepends=True) if not re.match(r"ASV-vctk_test.*f_anon", line)
    ]
    lowered = f"{7.769 - 0.2 * 16.92:.3f}"
    text = "".join(lines).replace("test anon: 7.769", f"test anon: {lowered}")
    assert lowered in text
    assert find_problems(text, SUMMARY.name) == [("missing-result", 21), ("undefined-average", 59)]


def test_blank_lines_are_noted_and_an_empty_file_is_refused():
    text = SUMMARY.read_text().replace("\n", "\n\n", 1)
    (problem,) = read_text(text, SUMMARY.name).problems
    assert (problem.code, problem.severity, problem.line) == ("blank-line", Severity.NOTE, 2)
    assert [problem.code for problem in read_text("", SUMMARY.name).problems] == ["empty-file"]


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("results-2022-01-01-00-00-00.orig/results.txt", ORIGINAL, ResultKind.ORIGINAL),
        ("anything", SUMMARY, ResultKind.SUMMARY),
        ("anything", RETRAINED, ResultKind.RETRAINED),
    ],
)
def test_kind_follows_from_the_name_or_what_is_in_it(name, path, kind):
    assert read_text(path.read_text(), name).kind is kind


def results_2020(system: str) -> str:
    """A results.txt of 2020 in the form of protocol 1.2, from the published table."""
    values = table(2020, system)
    blocks = []
    for one in load_recipe("2020").sets("trial"):
        corpus, _, rest = one.name.partition("_trials_")
        part = "_common" if rest.endswith("_common") else "_diff" if corpus.startswith("vctk") else ""
        gender = {"f": "female", "m": "male"}[one.gender]
        for enrolment, speech, pair in (("", "", "o-o"), ("", "_anon", "o-a"), ("_anon", "_anon", "a-a")):
            get = lambda metric: values[f"{corpus}{part}", gender, f"{metric}.orig.{pair}"]  # noqa: B023, E731
            blocks.append(
                f"ASV-{one.enrolment}{enrolment}-{one.name}{speech}\n  EER: {get('eer_percent')}%\n"
                f"  Cllr (min/act): {get('cllr_min')}/{get('cllr_act')}\n  ROCCH-EER: {get('rocch_eer_percent')}%\n"
            )
    for one in load_recipe("2020").sets("recognition"):
        for suffix, letter in (("", "o"), ("_anon", "a")):
            lines = [f"ASR-{one.name}{suffix}\n"]
            for model in ("tgsmall", "tglarge"):
                get = lambda key: values[one.name[:-4], "all", f"wer_{key}.orig.{letter}.{model}"]  # noqa: B023, E731
                lines.append(
                    f"  %WER {get('percent')} [ {get('errors')} / {get('ref_words')}, {get('ins')} ins, "
                    f"{get('del')} del, {get('sub')} sub ] exp/models/asr_eval/decode_{one.name}{suffix}_{model}/"
                    f"wer_{get('lmwt')}_{get('wip')}\n"
                )
            blocks.append("".join(lines))
    return "".join(sorted(blocks, key=lambda block: (block.startswith("ASR"), block.partition("\n")[0])))


def test_results_of_2020_are_read_and_written():
    text = results_2020("2020-B2")
    file = read_text(text, "results.txt")
    assert (file.edition, file.kind, file.lines, file.problems) == ("2020", ResultKind.ORIGINAL, 168, ())
    found: dict[tuple[str, str, str], str] = {}
    for reported in file.reported_numbers:
        found |= table_rows(reported)
    assert found == table(2020, "2020-B2")
    written = io.StringIO()
    write_result_file(file.reported_numbers, file.kind, load_recipe("2020"), written)
    assert read_text(written.getvalue(), "results.txt").reported_numbers == file.reported_numbers


STAMP = "results-2022-05-01-10-20-30"


SCORE_LINES = "".join(f"a {number:06} {number % 10}\n" for number in range(20_000))


@pytest.fixture
def submission(tmp_path):
    """The results directories of B2 as its team would hand them in, but for the plots."""
    recipe = RECIPE
    for folder, path in ((STAMP, RETRAINED), (f"{STAMP}.orig", ORIGINAL)):
        root = tmp_path / folder
        root.mkdir()
        (root / "config.info").write_text("baseline B2\n")
        shutil.copyfile(path, root / "results.txt")
        text = path.read_text()
        if folder.endswith(".orig"):
            text = text.replace("user_asr_eval_anon", "asr_eval")
        for block in re.split(r"(?m)^(?=\S)", text):
            name, _, body = block.partition("\n")
            values = [line.strip() for line in body.splitlines()]
            if name.startswith("ASV-"):
                (root / name).mkdir()
                eer, cllr, rocch, linkability, population, individual = values
                (root / name / "EER").write_text(f"{eer}\nminDCF(p-target=0.01): 0.5\nminDCF(p-target=0.001): \n")
                (root / name / "Cllr").write_text(f"{cllr}\n     {rocch}\n\n")
                (root / name / "linkability_log").write_text(f"{linkability}\n\n")
                (root / name / "zebra").write_text(f"\nZEBRA of {name}\n{population}\n{individual}\n\n")
                trials = recipe.data_sets[name.rpartition("-")[2].removesuffix("_anon")].trials
                (root / name / "scores").write_text(SCORE_LINES[: 11 * trials])
            elif name.startswith("ASR-"):
                (root / name).write_text("\n".join(values) + "\n")
            elif values:
                matrices = root / "similarity_matrices_DeID_Gvd" / name
                matrices.mkdir(parents=True)
                (matrices / "DeIDentification").write_text(f"{values[0]}\n")
                (matrices / "gain_of_voice_distinctiveness").write_text(f"{values[1]}\n")
    shutil.copyfile(SUMMARY, tmp_path / STAMP / "results_summary.txt")
    return tmp_path


def find_directory_problems(folder):
    (results,) = read_results(folder)
    return [(one.code, one.file, one.line) for one in results.problems if one.code != "copied-asr"]


def consistent(root):
    """Original WERs of the single files agree with the summary's, which are of another language model table."""
    for line in SUMMARY.read_text().splitlines()[24:28]:
        name, _, value = line.partition("  ")
        path = root / f"{STAMP}.orig" / name
        path.write_text(path.read_text().splitlines()[0] + "\n" + value + "\n")


def test_whole_submission_is_read(submission):
    consistent(submission)
    (results,) = read_results(submission)
    assert find_directory_problems(submission) == []
    assert (results.system, results.edition, len(results.files), len(results.scores)) == (STAMP, "2022", 3, 72)
    # the recognizer trained on original speech stands in the single files alone: 4 more sets, 2 language models
    assert len(results.reported_numbers) == 656 + 12
    assert {one.training for one in results.scores} == set(Speech)
    for folder in (STAMP, f"{STAMP}.orig"):  # one of the two finds its partner
        assert read_results(submission / folder) == (results,)


def test_damaged_submission_is_named_and_the_original_directory_may_be_missing_or_hold_a_summary(submission):
    consistent(submission)
    test = submission / STAMP / "ASV-libri_dev_enrolls-libri_dev_trials_f"
    matrix = submission / STAMP / "similarity_matrices_DeID_Gvd" / "libri_dev_trials_f" / "DeIDentification"
    whole = {path: path.read_text() for path in (test / "EER", test / "Cllr", test / "scores", matrix)}
    (test / "EER").write_text(whole[test / "EER"].replace("14.91", "14.77"))
    (test / "Cllr").write_text(whole[test / "Cllr"].partition("\n")[0])
    (test / "scores").write_text(whole[test / "scores"][11:])
    matrix.unlink()
    assert sorted(
        (code, path.rpartition("/")[2], line) for code, path, line in find_directory_problems(submission)
    ) == [
        ("contradicting-results", "EER", 1),
        ("missing-file", "DeIDentification", None),
        ("missing-result", "Cllr", None),
        ("wrong-score-count", "scores", None),
    ]
    for path, text in whole.items():
        path.write_text(text)
    shutil.copyfile(SUMMARY, submission / f"{STAMP}.orig" / "results_summary.txt")
    assert find_directory_problems(submission) == [("unexpected-summary", f"{STAMP}.orig/results_summary.txt", None)]
    shutil.rmtree(submission / f"{STAMP}.orig")
    assert find_directory_problems(submission) == [("missing-directory", f"{STAMP}.orig", None)]
    (submission / STAMP).rename(submission / "results-mine")
    assert [problem[0] for problem in find_directory_problems(submission)] == ["unexpected-name", "missing-directory"]


def test_folder_without_results_is_a_problem(tmp_path):
    assert find_directory_problems(tmp_path) == [("no-results", tmp_path.name, None)]


def test_damaged_files_never_raise():
    """Random damage is read or reported, never an exception."""
    random = np.random.default_rng(1)
    for path in (SUMMARY, RETRAINED, ORIGINAL):
        data = path.read_text()
        for _ in range(6):
            letters = list(data)
            for place in random.integers(0, len(letters), 4):
                letters[place] = str(random.choice(list("0 .-%eA\n[")))
            file = read_text("".join(letters), path.name)
            assert file.reported_numbers
