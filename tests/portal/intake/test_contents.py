"""What a file of a submission is, by its path in any folder layout."""

from __future__ import annotations

import pytest

from portal.intake.contents import Content, classify, recognise, results_directory

STAMP = "results-2022-07-01-10-00-00"
TEST = "ASV-libri_dev_enrolls_anon-libri_dev_trials_f_anon"


CONTENTS = (
    ("data/libri_dev_enrolls_anon/wav/1462-170142-0000.wav", Content.SPEECH),
    ("wav/p234/p234_063_mic2.WAV", Content.SPEECH),
    ("x.flac", Content.SPEECH),
    (f"{STAMP}/results.txt", Content.RESULTS),
    (f"{STAMP}/results_summary.txt", Content.RESULTS),
    (f"{STAMP}.orig/results.txt", Content.RESULTS),
    (f"{STAMP}/config.info", Content.RESULTS),
    (f"{STAMP}/{TEST}/EER", Content.RESULTS),
    (f"{STAMP}/{TEST}/linkability_log", Content.RESULTS),
    (f"{STAMP}/{TEST}/scores", Content.SCORES),
    (f"{STAMP}/{TEST}/linkability.pdf", Content.OTHER),
    (f"{STAMP}/{TEST}/.done", Content.OTHER),
    (f"{STAMP}/{TEST}/log/scores", Content.OTHER),
    (f"{STAMP}/ASR-libri_dev_asr_anon", Content.RESULTS),
    (f"{STAMP}/similarity_matrices_DeID_Gvd/libri_dev_trials_f/similarity_matrix_osp_psp.npy", Content.SIMILARITY),
    (f"{STAMP}/similarity_matrices_DeID_Gvd/libri_dev_trials_f/DeIDentification", Content.RESULTS),
    (f"{STAMP}/similarity_matrices_DeID_Gvd/libri_dev_trials_f/gain_of_voice_distinctiveness", Content.RESULTS),
    (f"{STAMP}/similarity_matrices_DeID_Gvd/libri_dev_trials_f/exp_files/scores", Content.OTHER),
    ("RESULTS_summary_mcadams", Content.RESULTS),
    ("results.anon_mcadams", Content.RESULTS),
    ("result_for_rank_mcadams", Content.RESULTS),
    ("hypotheses/libri_dev_asr", Content.HYPOTHESES),
    ("hypotheses/libri_dev_asr_anon.txt", Content.HYPOTHESES),
    ("asr/libri_dev_asr.hyp.txt", Content.HYPOTHESES),
    ("targets.csv", Content.TARGETS),
    ("targets.csv.bak", Content.OTHER),
    ("description.pdf", Content.DESCRIPTION),
    ("T11 System.PDF", Content.DESCRIPTION),
    ("__MACOSX/wav/._x.wav", Content.DROPPING),
    ("wav/._x.wav", Content.DROPPING),
    ("wav/.DS_Store", Content.DROPPING),
    ("wav/.anonymization.lock", Content.DROPPING),
    ("wav/Thumbs.db", Content.DROPPING),
    ("wav/desktop.ini", Content.DROPPING),
    ("README.txt", Content.OTHER),
    ("scores", Content.OTHER),
    ("EER", Content.OTHER),
    ("wav.scp", Content.OTHER),
    ("x.wav.txt", Content.OTHER),
    ("results.txt.bak", Content.OTHER),
)


@pytest.mark.parametrize("above", ["", "a/b/c/d/"])
def test_path_tells_what_a_file_is(above: str) -> None:
    found = [(path, classify(above + path)) for path, _ in CONTENTS]
    assert found == list(CONTENTS)


@pytest.mark.parametrize(
    "path", ["results.txt", f"{TEST}/scores", "similarity_matrices_DeID_Gvd/libri_dev_trials_f/DeIDentification"]
)
def test_results_directory_is_found_in_any_layout(path: str) -> None:
    for above in ("", "myteam/exp/"):
        assert results_directory(f"{above}{STAMP}/{path}") == above + STAMP
    assert results_directory(path) == ""


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (b"RIFF\x24\0\0\0WAVEfmt ", Content.SPEECH),
        (b"FORM\0\0\0\x24AIFFCOMM", Content.SPEECH),
        (b"fLaC\0\0\0\x22", Content.SPEECH),
        (b"ID3\3\0\0", Content.SPEECH),
        (b"%PDF-1.7", Content.DESCRIPTION),
        (b"FORMAT of the files", None),
        (b"ID3 tags were removed", None),
        (b"RIFFLE is our system", None),
        (b"NIST_1A scores", None),
        (b"OggSquad", None),
    ],
)
def test_head_of_a_file_tells_what_it_is(head, content):
    assert recognise(head) is content
