"""The single files of a results directory: what is written is read again, and has the official form to the byte."""

from __future__ import annotations

import io

import pytest

from common.problems import ProblemList
from evaluation.objective_results.results.expected import ResultKind
from evaluation.objective_results.results.results_2022 import make_reported_number, read_single_file, single_files
from evaluation.protocols.recipes import load_recipe
from tests.evaluation.formats.writing import write_single_file

RECIPE = load_recipe("2022")
NAMES = ("EER", "Cllr", "linkability_log", "zebra", "DeIDentification", "gain_of_voice_distinctiveness")
TEST = "ASV-libri_dev_enrolls-libri_dev_trials_f"
# protocol 1.2, the numbers of B2's retrained models
OFFICIAL = {
    f"{TEST}/EER": "EER: 14.91%\nminDCF(p-target=0.01): \nminDCF(p-target=0.001): \n",
    f"{TEST}/Cllr": "Cllr (min/act): 0.466/12.520\n     ROCCH-EER: 14.793%\n\n",
    f"{TEST}/linkability_log": "linkability: 0.661233\n\n",
    f"{TEST}/zebra": f"\n{TEST}\nPopulation: 0.375 bit\nIndividual: 3.452 (C)\n\n",
    "ASR-libri_dev_asr": (
        "%WER 5.86 [ 2333 / 39783, 221 ins, 253 del, 1859 sub ] "
        "exp/models/user_asr_eval_anon/decode_libri_dev_asr_tgsmall/wer_12_0.0\n"
        "%WER 4.19 [ 1666 / 39783, 214 ins, 134 del, 1318 sub ] "
        "exp/models/user_asr_eval_anon/decode_libri_dev_asr_tglarge/wer_11_0.0\n"
    ),
    "similarity_matrices_DeID_Gvd/libri_dev_trials_f/DeIDentification": "De-Identification : 0.7805323634528221\n",
    "similarity_matrices_DeID_Gvd/libri_dev_trials_f/gain_of_voice_distinctiveness": (
        "Gain of voice distinctiveness : -1.939460000444101\n"
    ),
}


def read(text, file):
    problems = ProblemList()
    return read_single_file(io.StringIO(text), file, problems, file.path), problems.report()


def written(reported_numbers, file):
    out = io.StringIO()
    write_single_file(reported_numbers, file, out)
    return out.getvalue()


def test_directory_of_a_model_has_every_file_of_the_protocol():
    paths = [file.path for file in single_files(RECIPE, ResultKind.RETRAINED)]
    counts = {name: sum(path.endswith(f"/{name}") for path in paths) for name in NAMES}
    assert counts == dict.fromkeys(NAMES[:4], 36) | dict.fromkeys(NAMES[4:], 12)
    assert sum(path.startswith("ASR-") for path in paths) == 8
    assert len(set(paths)) == len(paths) == 4 * 36 + 8 + 2 * 12
    assert len(single_files(RECIPE, ResultKind.ORIGINAL)) == 4 * 36 + 8
    assert len(single_files(load_recipe("2020"), ResultKind.ORIGINAL)) == 2 * 36 + 8


@pytest.mark.parametrize("path", OFFICIAL)
def test_official_file_is_read_and_written_to_the_byte(path):
    [file] = [one for one in single_files(RECIPE, ResultKind.RETRAINED) if one.path == path]
    reported_numbers, problems = read(OFFICIAL[path], file)
    assert problems == ()
    assert len(reported_numbers) == sum(len(line.identities) for line in file.lines)
    assert written(reported_numbers, file) == OFFICIAL[path]
    again = [
        make_reported_number(one.identity, one.value, counts=one.counts, decoding=one.decoding)
        for one in reported_numbers
    ]
    assert written(again, file) == OFFICIAL[path]


def test_minimum_costs_are_passed_over_and_anything_else_is_named():
    file = single_files(RECIPE, ResultKind.RETRAINED)[0]
    text = "EER: 8.665%\nminDCF(p-target=0.01): 0.4321\nminDCF(p-target=0.001): \nsurprise\n"
    reported_numbers, problems = read(text, file)
    assert [one.written for one in reported_numbers] == ["8.665"]
    assert [(one.code, one.line) for one in problems] == [("unknown-line", 4)]
    reported_numbers, problems = read("minDCF(p-target=0.01): 0.4321\n", file)
    assert (reported_numbers, [one.code for one in problems]) == ([], ["missing-result"])
