"""What a person can type or lay in the way: each ends in a sentence, exit code 2, and nothing written."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import soundfile

from tests.anonymization.cli.shell import B2, RATE_HZ, ROOT, buzz, contents, write_speech
from tests.evaluation.commands import refusal


@pytest.fixture
def source(tmp_path):
    return write_speech(tmp_path / "in", "a/x.wav", "b/y.wav")


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("in", "expected an output folder apart from the input"),
        (".", "expected an output folder of its own, found one that holds the input"),
        ("file/out", "expected a folder that can be written, found “Not a directory”"),
        ("full", "expected an empty folder or one of an earlier call, found other files, such as letter.txt"),
    ],
)
def test_output_folder_that_cannot_be_is_refused(shell, source, tmp_path, out, sentence):
    (tmp_path / "file").write_text("a file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter.txt").write_text("mine")
    before = contents(tmp_path)
    assert sentence in refusal(shell("anonymize", *B2, source, tmp_path / out, "--seed", 1))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "found no such folder"),
        ("empty", "found nothing that can be anonymised"),
    ],
)
def test_input_without_audio_is_refused(shell, tmp_path, name, sentence):
    write_speech(tmp_path, "a.wav")
    (tmp_path / "empty").mkdir()
    assert sentence in refusal(shell("anonymize", *B2, tmp_path / name, tmp_path / "out", "--seed", 1))
    assert not (tmp_path / "out").exists()


def test_two_recordings_for_one_output_are_refused(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/x.flac")
    sentence = refusal(shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1))
    assert "x.wav: expected a name of its own, found that" in sentence
    assert "x.flac would be written to a/x.wav too" in sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--voices", "v.csv", "--seed", 1), "expected no --seed, which draws other voices; found both"),
        ((), "--seed: expected a whole number, from which the voices are drawn; found none"),
        (("--seed", 1, "--option", "level=peak", "--option", "level=kept"), "expected level once, found it twice"),
        (("--seed", 1, "--suffix", "../x"), "--suffix: expected an ending for names of folders"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(shell, source, tmp_path, arguments, sentence):
    answer = shell("anonymize", *B2, source, tmp_path / "out", *arguments)
    assert sentence in refusal(answer)
    assert not (tmp_path / "out").exists()


def test_names_that_steer_a_terminal_are_not_obeyed(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x\x1b[31m.wav", "a/weiß ☂.wav")
    (source / "a/x\x1b[31m.wav").write_bytes(b"no audio")
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1)
    assert answer.code == 1
    assert "\x1b" not in answer.out + answer.err
    assert (tmp_path / "out/a/weiß ☂.wav").is_file()


def test_names_that_are_no_utf8_are_anonymised_and_continued(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav")
    odd = os.fsdecode(b"a/odd \xff.wav")
    try:
        soundfile.write(source / "a/stereo.wav", np.stack([buzz(120)] * 2, axis=1), RATE_HZ)
        (source / "a/stereo.wav").rename(source / odd)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 1)
    assert "2 finished" in shell(*arguments).out
    assert (tmp_path / "out" / odd).is_file()
    assert "2 of them by an earlier call" in shell(*arguments).out
    assert shell(*arguments, "--json").json["finished"] == 2


def test_what_looks_like_audio_and_is_none_is_told(shell, source, tmp_path):
    write_speech(tmp_path / "elsewhere", "z.wav")
    (source / "c").symlink_to(tmp_path / "elsewhere")
    (source / "d").symlink_to(source / "a")
    (source / "a/dead.wav").symlink_to("nowhere.wav")
    (source / "a/loop.wav").symlink_to("loop.wav")
    (source / "a/endless.wav").symlink_to("/dev/zero")
    os.mkfifo(source / "a/pipe.wav")
    write_speech(source, "a/.hidden.wav", ".hid/h.wav")
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1, "--json")
    assert (answer.code, answer.json["finished"]) == (1, 2)
    told = {os.path.relpath(each["file"], source): each["severity"] for each in answer.json["problems"]}
    errors = ("c", "a/dead.wav", "a/loop.wav", "a/endless.wav", "a/pipe.wav")
    assert told == dict.fromkeys(errors, "error") | dict.fromkeys(("d", "a/.hidden.wav", ".hid/h.wav"), "note")


def test_folder_of_linked_folders_is_refused_and_they_are_named(shell, source, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links/a").symlink_to(source / "a")
    sentence = refusal(shell("anonymize", *B2, tmp_path / "links", tmp_path / "out", "--seed", 1))
    assert "links/a: expected a folder, found a link to" in sentence


def test_names_that_the_output_cannot_have_cost_only_their_files(shell, source, tmp_path):
    write_speech(source, f"a/{'n' * 251}.wav", "anonymization.jsonl/j.wav", "report.json/r.wav")
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1, "--format", "flac")
    assert answer.code == 1
    assert "2 finished" in answer.out
    assert "File name too long" in answer.err
    for name in ("anonymization.jsonl", "report.json"):
        assert f"expected a name that no record of the run has, found “{name}”" in answer.err
        assert (tmp_path / "out" / name).is_file()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
def test_standard_output_that_is_full_ends_in_a_sentence():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        answer = subprocess.run(
            [sys.executable, "-m", "portal.client", "methods"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert answer.returncode == 2
    assert answer.stderr == (
        "Standard output: expected space for it, found “No space left on device”. Make space and repeat the command.\n"
    )
