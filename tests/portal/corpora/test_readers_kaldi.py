"""Kaldi data directories: those of the challenge, and toy ones broken in every way."""

import json
import re

import pytest

from common.problems import Severity
from portal.intake.corpora.draft import CorpusDraft, Layout
from portal.intake.corpora.reading import read_corpus
from tests.portal.corpora import corpora
from tests.portal.corpora.corpora import found, sizes, trial_pairs

ENROLLS, TRIALS = "toy_dev_enrolls", "toy_dev_trials_f"


def test_the_challenges_trials_are_the_same_gender_product(librispeech):
    draft = read_corpus(librispeech / "data", without_audio=True)
    for each in draft.trial_lists:
        product = type(each)(each.name, each.enrolment_set, each.trial_set, "same-gender-product", 0, 0, None)
        assert sorted(trial_pairs(draft, product)) == sorted(trial_pairs(draft, each))


def test_toy_directories_are_read_with_their_audio(tmp_path):
    draft = read_corpus(corpora.kaldi(tmp_path))
    assert (draft.layout, [each.code for each in draft.problems]) == (Layout.KALDI, ["not-enrolled"])
    assert draft.utterances[0].audio == tmp_path / "audio" / "11-a.wav"
    assert draft.utterances[0].file == "data/toy_dev/wav/11-a.wav"
    assert draft.utterances[0].duration_s == 1.0
    (trial_list,) = draft.trial_lists
    assert (trial_list.origin, trial_list.target_count, trial_list.nontarget_count) == ("given", 2, 4)
    assert trial_list.name == f"{ENROLLS}-{TRIALS}"
    assert CorpusDraft.from_told(json.loads(json.dumps(draft.told()))) == draft


def test_audio_is_found_by_basename_below_the_audio_root(tmp_path):
    corpora.kaldi(tmp_path / "data", with_audio=False)
    for name in ("11-a", "11-b", "12-a", "12-b", "11-c", "12-c", "13-c"):
        corpora.write_text(tmp_path / "speech" / name / f"{name}.flac", "")
    draft = read_corpus(tmp_path / "data", audio_root=tmp_path / "speech")
    assert draft.is_usable
    assert draft.utterances[0].audio == tmp_path / "speech" / "11-a" / "11-a.flac"
    assert not read_corpus(tmp_path / "data").is_usable
    assert read_corpus(tmp_path / "data", without_audio=True).is_usable
    missing = read_corpus(tmp_path / "data", audio_root=tmp_path / "none")
    assert found(missing, "missing-folder") == [(str(tmp_path / "none"), None)]


def test_the_challenges_archives_give_a_set_per_list(tmp_path):
    corpora.kaldi(tmp_path / "two")
    archive = tmp_path / "one" / "toy_dev"
    for name in ("utt2spk", "text", "wav.scp", "utt2dur"):
        both = [(tmp_path / "two" / each / name).read_text() for each in (ENROLLS, TRIALS)]
        corpora.write_text(archive / name, "".join(both))
    corpora.write_text(archive / "spk2gender", "11 f\n12 f\n13 f\n")
    corpora.write_text(archive / "enrolls_mic2", (tmp_path / "two" / ENROLLS / "enrolls").read_text())
    corpora.write_text(archive / "trials_f_common_mic2", (tmp_path / "two" / TRIALS / "trials").read_text())
    draft = read_corpus(tmp_path / "one", without_audio=True)
    assert draft.is_usable
    assert sizes(draft) == {ENROLLS: 4, f"{TRIALS}_common": 3}
    assert corpora.counts(draft) == {f"{ENROLLS}-{TRIALS}_common": ("given", 2, 4)}


def test_sets_without_lists_are_read_by_their_names(tmp_path):
    corpora.kaldi(tmp_path)
    (tmp_path / TRIALS / "trials").unlink()
    for name in ("toy_train", "toy_dev_trials_all"):
        for file in ("utt2spk", "spk2gender", "text", "wav.scp"):
            text = (tmp_path / TRIALS / file).read_text()
            corpora.write_text(tmp_path / name / file, text)
    draft = read_corpus(tmp_path)
    assert draft.is_usable
    assert {each.name: each.role for each in draft.data_sets} == {
        ENROLLS: "enrolment",
        "toy_train": "training",
        TRIALS: "trial",
    }
    assert corpora.counts(draft) == {f"{ENROLLS}-{TRIALS}": ("same-gender-product", 2, 4)}
    assert found(draft, "union-left-out") == [("toy_dev_trials_all/utt2spk", None)]


PROBLEMS = {
    "duplicate utterance": (f"{TRIALS}/utt2spk", "12-c 12", "11-c 12", "repeated-entry", 2),
    "no gender": (f"{TRIALS}/spk2gender", "12 f\n", "", "no-gender", None),
    "contradicting gender": (f"{TRIALS}/spk2gender", "12 f", "12 m", "contradicting-gender", 2),
    "no transcript": (f"{TRIALS}/text", "12-c HE SAID SO", "12-c", "no-transcript", 2),
    "pipe": (f"{TRIALS}/wav.scp", "12-c data/", "12-c sox x | data |", "pipe-refused", 2),
    "unknown model": (f"{TRIALS}/trials", "12 12-c", "19 12-c", "unknown-model", 5),
    "no target": (f"{TRIALS}/trials", "12-c target", "12-c nontarget", "contradicting-target", 5),
    "unknown enrolment": (f"{ENROLLS}/enrolls", "12-a", "19-a", "unknown-utterance", 3),
    "other inverse": (f"{TRIALS}/spk2utt", "12 12-c", "12 13-c", "contradicting-speaker", 2),
    "missing audio": (f"{TRIALS}/wav.scp", "wav/12-c.wav", "wav/19-c.wav", "missing-file", 2),
    "listed twice": (f"{TRIALS}/wav.scp", "wav/12-c.wav", "wav/11-c.wav", "file-listed-twice", 2),
    "bad duration": (f"{TRIALS}/utt2dur", "12-c 1.0", "12-c -1", "wrong-duration", 2),
    "bad name": (f"{TRIALS}/utt2spk", "12-c 12", "a/12-c 12", "bad-name", None),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_problem_names_its_file_and_line(tmp_path, problem):
    file, old, new, code, line = PROBLEMS[problem]
    corpora.kaldi(tmp_path)
    corpora.edit(tmp_path / file, old, re.sub(r"sox x \| data \|$", "sox x |\n#", new))
    draft = read_corpus(tmp_path)
    places = [place for place in found(draft, code) if place[1] == line]
    wanted = file.replace("utt2spk", "wav.scp") if code == "bad-name" else file
    assert places == [(wanted, line)]


def test_recordings_that_segments_cut_are_one_problem(tmp_path):
    corpora.kaldi(tmp_path)
    (tmp_path / TRIALS / "segments").write_text("13-a rec 0.0 1.0\n")
    draft = read_corpus(tmp_path)
    errors = [(each.code, each.file) for each in draft.problems if each.severity is Severity.ERROR]
    assert errors == [("segments-refused", f"{TRIALS}/segments")]


def test_an_utterance_says_the_same_in_every_directory(tmp_path):
    corpora.kaldi(tmp_path)
    for name, line in {"utt2spk": "11-a 12", "text": "11-a ANOTHER", "wav.scp": "11-a data/11-c.wav"}.items():
        with (tmp_path / TRIALS / name).open("a") as file:
            file.write(f"{line}\n")
    draft = read_corpus(tmp_path)
    assert found(draft, "contradicting-speaker")[-1] == (f"{TRIALS}/wav.scp", 4)
    assert found(draft, "contradicting-transcript") == [(f"{TRIALS}/text", 4)]
    assert found(draft, "contradicting-file") == [(f"{TRIALS}/wav.scp", 4)]
