"""The command that recognises: what it prints, how it goes on, and what it says of inputs that cannot be used."""

from __future__ import annotations

import json

import pytest

from evaluation.cli import recognize
from tests.evaluation.recognition import Listener, write_noise

TEXTS = {2000: "One two.", 3000: "three four five", 4000: "sicks"}


@pytest.fixture
def listener(monkeypatch):
    made = Listener(TEXTS)
    monkeypatch.setattr(recognize, "load", lambda _name, _device: made)
    return made


@pytest.fixture
def corpus(tmp_path):
    """Three recordings of two speakers with transcripts, as a Kaldi directory."""
    for name, samples in (("a1", 2000), ("a2", 3000), ("b1", 4000)):
        write_noise(tmp_path / f"{name}.flac", samples)
    (tmp_path / "wav.scp").write_text("a1 a1.flac\na2 a2.flac\nb1 b1.flac\n")
    (tmp_path / "text").write_text("a1 ONE TWO\na2 THREE FOR FIVE\nb1 SIX\nc1 ELSEWHERE\n")
    (tmp_path / "utt2spk").write_text("a1 a\na2 a\nb1 b\nc1 c\n")
    (tmp_path / "spk2gender").write_text("a f\nb m\nc m\n")
    return tmp_path


def test_a_rate_with_its_interval_and_the_worst_utterances(shell, listener, corpus):
    answer = shell("recognize", corpus, "--text", corpus / "text")
    assert answer.code == 0
    rows = {
        line.split()[0]: line.split() for line in answer.out.splitlines() if line.startswith(("all", "fem", "male"))
    }
    assert rows["all"][1:5] == ["33.33", "20.00", "to", "100.00"]
    assert rows["female"][1:3] == ["20.00", "–"]
    assert "FOR→FOUR" in answer.out
    assert answer.out.index("a2: 1 errors in 3 words") > answer.out.index("b1: 1 errors in 1 words")
    assert "ELSEWHERE" not in answer.out
    assert listener.heard == 3


def test_texts_alone_are_printed_where_nothing_else_is_asked(shell, listener, corpus):
    answer = shell("recognize", corpus / "b1.flac", corpus / "a1.flac")
    assert (answer.code, answer.out) == (0, "b1 sicks\na1 One two.\n")


def test_a_second_run_does_only_what_is_left(shell, listener, corpus, tmp_path):
    out = tmp_path / "hypotheses"
    assert shell("recognize", corpus / "a1.flac", "--out", out).code == 0
    with out.open("a") as file:
        file.write("a2 thr")
    assert listener.heard == 1
    answer = shell("recognize", corpus, "--out", out)
    assert answer.code == 0
    assert f"3 hypotheses: {out}" in answer.out
    assert listener.heard == 3
    assert out.read_text() == "a1 One two.\na2 three four five\nb1 sicks\n"
    assert shell("recognize", corpus, "--out", out).code == 0
    assert listener.heard == 3
    refused = shell("recognize", corpus, "--out", out, "--engine", "whisper-base")
    assert refused.code == 2
    assert "expected hypotheses of whisper-base@1, found those of moonshine-tiny" in refused.err


def test_names_that_no_list_can_hold_and_links_to_nothing_are_told(shell, listener, tmp_path):
    folder = tmp_path / "audio"
    folder.mkdir()
    for name in ("a1", "with space", "a\nb"):
        write_noise(folder / f"{name}.flac", 2000)
    (folder / "dead.wav").symlink_to(folder / "nothing")
    answer = shell("recognize", folder, "--json")
    assert answer.code == 1
    content = json.loads(answer.out)
    assert list(content["hypotheses"]) == ["a1"]
    assert sorted(one["code"] for one in content["problems"]) == ["missing-file", "spaces-in-name", "spaces-in-name"]


def test_every_digit_for_machines(shell, listener, corpus):
    answer = shell("recognize", corpus, "--text", corpus / "text", "--json")
    report = answer.json["report"]
    assert answer.json["engine"] == "moonshine-tiny@0.1.0"
    assert answer.json["hypotheses"] == {"a1": "One two.", "a2": "three four five", "b1": "sicks"}
    assert report["groups"][0]["counts"] == {"reference_words": 6, "insertions": 0, "deletions": 0, "substitutions": 2}
    assert report["groups"][0]["interval"]["level"] == 0.95
    assert report["utterances"][1]["errors"]["alignment"][1] == ["FOR", "FOUR"]
    again = shell("recognize", corpus, "--text", corpus / "text", "--json", "--seed", "7").json["report"]
    assert again["groups"][0]["counts"] == report["groups"][0]["counts"]


def test_a_recording_that_cannot_be_read_is_named_and_counts_as_missing(shell, listener, corpus):
    (corpus / "a2.flac").write_bytes(b"no audio at all")
    answer = shell("recognize", corpus, "--text", corpus / "text")
    assert answer.code == 1
    assert "a2.flac: expected a WAV or FLAC file" in answer.err
    assert "1 utterance, a2, has no hypothesis" in answer.out


def test_a_teams_own_text_is_counted_by_the_rule_of_the_challenge(shell, corpus):
    (corpus / "own").write_text("a1 ONE TWO\na2 THREE FOUR FIVE\nx9 NO\n")
    (corpus / "before").write_text("a1 ONE\na2 THREE FOR FIVE\nb1 SIX\n")
    answer = shell(
        "recognize", "--hypotheses", corpus / "own", "--text", corpus / "text", "--originals", corpus / "before"
    )
    assert answer.code == 0
    assert "(vpc-2022)" in answer.out
    words = next(line for line in answer.out.splitlines() if line.startswith("all")).split()
    assert (words[1], words[4:8]) == ("20.00", ["5", "0", "0", "1"])
    assert "2 utterances, such as b1, have no hypothesis" in answer.out
    assert "1 hypotheses, such as that of x9" in answer.out
    assert "1 errors in 3 words, 0 in the original" in answer.out


def test_words_of_a_file_cannot_steer_the_terminal(shell, corpus):
    (corpus / "own").write_text("a1 ONE \x1b[2JTWO\n")
    answer = shell("recognize", "--hypotheses", corpus / "own", "--text", corpus / "text")
    assert "\x1b" not in answer.out
    assert "�[2JTWO" in answer.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "expected audio or --hypotheses, one of the two"),
        (["{}", "--text", "absent"], "absent: expected a readable text file"),
        (["{}/a1.flac", "--text", "{}/other"], "expected transcripts of the utterances recognised, found none"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(shell, listener, corpus, arguments, sentence):
    (corpus / "other").write_text("z9 WORDS\n")
    answer = shell("recognize", *(each.format(corpus) for each in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
