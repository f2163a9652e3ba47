"""LibriSpeech trees, and folders that are no corpus."""

from portal.intake.corpora.draft import Layout
from portal.intake.corpora.reading import read_corpus
from tests.portal.corpora import corpora
from tests.portal.corpora.corpora import found, sentence, sizes


def test_librispeech_is_read(tmp_path):
    draft = read_corpus(corpora.librispeech(tmp_path))
    assert (draft.layout, draft.problems[1:]) == (Layout.LIBRISPEECH, ())
    assert [(each.name, each.gender) for each in draft.speakers] == [("11", "f"), ("12", "f"), ("21", "m")]
    assert sizes(draft) == {
        "librispeech-dev-clean_enrolls": 6,
        "librispeech-dev-clean_trials_f": 12,
        "librispeech-dev-clean_trials_m": 6,
    }
    first = draft.utterances[0]
    assert (first.name, first.speaker, first.transcript) == ("11-100-0000", "11", corpora.SENTENCE)
    assert first.audio == tmp_path / "dev-clean/11/100/11-100-0000.flac"
    assert first.file == "dev-clean/11/100/11-100-0000.flac"


def test_librispeech_is_found_one_folder_down_and_train_is_training(tmp_path):
    corpora.librispeech(tmp_path / "LibriSpeech", "train-clean-100")
    draft = read_corpus(tmp_path)
    assert sizes(draft) == {"librispeech-train-clean-100_train": 24}
    assert (draft.data_sets[0].role, draft.data_sets[0].split) == ("training", "train")
    assert draft.problems == ()


def test_the_licence_beside_the_tree_is_stated(tmp_path):
    corpora.librispeech(tmp_path)
    assert read_corpus(tmp_path).licence == ""
    corpora.write_text(tmp_path / "LICENSE.TXT", "Attribution 4.0\n  International\n")
    assert read_corpus(tmp_path).licence == "CC BY 4.0"
    corpora.write_text(tmp_path / "LICENSE.TXT", "Ask us.")
    assert read_corpus(tmp_path).licence == "see LICENSE.TXT"


def test_librispeech_problems_come_at_once_with_their_places(tmp_path):
    corpora.librispeech(tmp_path)
    speaker = tmp_path / "dev-clean" / "11" / "100"
    (speaker / "11-100-0001.flac").unlink()
    corpora.edit(speaker / "11-100.trans.txt", "11-100-0002 HE SAID SO\n", "")
    corpora.write_text(speaker / "12-100-0009.flac", "")
    corpora.write_text(tmp_path / "loose.wav", "")
    corpora.edit(tmp_path / "SPEAKERS.TXT", "| M |", "| X |")
    draft = read_corpus(tmp_path)
    assert found(draft, "missing-file") == [("dev-clean/11/100/11-100.trans.txt", 2)]
    assert ("dev-clean/11/100/11-100-0002.flac", None) in found(draft, "no-transcript")
    assert found(draft, "wrong-folder") == [("dev-clean/11/100/12-100-0009.flac", None)]
    assert found(draft, "unknown-gender") == [("SPEAKERS.TXT", 4)]
    assert "1 not listed, such as loose.wav" in sentence(draft, "not-listed")
    assert not draft.is_usable


def test_a_folder_of_text_files_is_no_corpus(tmp_path):
    for number in range(4):
        corpora.write_text(tmp_path / f"chapter{number}.txt", "It was a dark night.")
    draft = read_corpus(tmp_path)
    (problem,) = draft.problems
    assert (draft.layout, problem.code, problem.file) == (None, "unknown-layout", str(tmp_path))
    assert problem.found == ("a folder of 4 entries such as chapter0.txt, chapter1.txt, chapter2.txt")
    for word in ("LibriSpeech", "Kaldi", "utterances.csv"):
        assert word in problem.expected
