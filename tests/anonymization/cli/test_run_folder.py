"""``run`` on plain folders: what is written, who gets which voice, and what is said."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
import soundfile

from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import draw_pseudo_speaker, plan_voices, pseudo_speaker_key
from speech.audio.files import read_pcm16
from tests.anonymization.cli.shell import B2, DEMO, RATE_HZ, buzz, contents, write_speech
from tests.anonymization.programs import confined, make_command
from tests.evaluation.commands import refusal


def test_run_anonymises_each_file_with_the_voice_of_its_speaker(shell, tmp_path):
    write_speech(tmp_path / "in", "a/x.wav", "a/deep/a-y.flac", "b/z.wav")
    answer = shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", "--seed", 3)
    assert (answer.code, answer.err) == (0, "")
    assert "Speakers are read off folders: 2, such as a of a/x.wav." in answer.out
    method = get_method("mcadams-2022")
    plan = plan_voices(method.parameters, seed=3, role="trial", split="undivided", speakers=["a", "b"])
    for file, speaker in (("a/x.wav", "a"), ("a/deep/a-y.flac", "a"), ("b/z.wav", "b")):
        samples, rate = read_pcm16(tmp_path / "in" / file)
        expected = method.anonymize(samples, rate, plan.voices[speaker])
        written, _ = read_pcm16((tmp_path / "out" / file).with_suffix(".wav"))
        assert np.array_equal(written, expected)


def test_run_at_utterance_level_draws_a_voice_for_each(shell, tmp_path):
    write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", "--seed", 3, "--role", "training", "--split", "train")
    method = get_method("mcadams-2022")
    for name in ("a/x", "a/y"):
        samples, rate = read_pcm16(tmp_path / "in" / f"{name}.wav")
        key = pseudo_speaker_key(seed=3, role="training", split="train", speaker="a", utterance=name)
        expected = method.anonymize(samples, rate, draw_pseudo_speaker(key, method.parameters))
        assert np.array_equal(read_pcm16(tmp_path / "out" / f"{name}.wav")[0], expected)


def test_run_takes_options_container_and_limit(shell, tmp_path):
    write_speech(tmp_path / "in", "a/x.wav", "a/y.wav", "a/z.wav")
    arguments = ("--seed", 3, "--option", "level=kept", "--format", "flac", "--limit", 2)
    answer = shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", *arguments, "--json")
    assert (answer.json["finished"], answer.json["not_tried"], answer.json["utterances"]) == (2, 1, 3)
    assert {path.name for path in (tmp_path / "out").rglob("*.flac")} == {"x.flac", "y.flac"}
    original, _ = read_pcm16(tmp_path / "in/a/x.wav")
    written, _ = read_pcm16(tmp_path / "out/a/x.flac")
    level = np.sqrt(np.mean(written.astype(float) ** 2)) / np.sqrt(np.mean(original.astype(float) ** 2))
    assert level == pytest.approx(1, abs=0.01)


def test_run_gives_the_same_bytes_with_two_processes(shell, tmp_path):
    source = tmp_path / "in"
    for path in sorted(DEMO.glob("d0[12]/*.flac"))[::6]:
        (source / path.parent.name).mkdir(parents=True, exist_ok=True)
        (source / path.parent.name / path.name).symlink_to(path)
    answers = [shell("anonymize", *B2, source, tmp_path / f"out{n}", "--seed", 3, "--jobs", n) for n in (1, 2)]
    assert [answer.code for answer in answers] == [0, 0]
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


def test_run_says_what_was_changed_before(shell, tmp_path):
    (tmp_path / "in").mkdir()
    soundfile.write(tmp_path / "in/a-8k.wav", buzz(120)[::2], 8_000)
    soundfile.write(tmp_path / "in/a-stereo.wav", np.stack([buzz(120)] * 2, axis=1), RATE_HZ)
    soundfile.write(tmp_path / "in/a-u8.wav", buzz(120) / 32768, RATE_HZ, subtype="PCM_U8")
    soundfile.write(tmp_path / "in/a-float.wav", buzz(120) / 32768, RATE_HZ, subtype="FLOAT")
    answer = shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", "--seed", 3)
    assert answer.code == 0
    assert "  changed before, of 1 utterance: resampled from 8,000 Hz to 16,000 Hz by soxr" in answer.out
    assert "  changed before, of 1 utterance: 2 channels averaged to one" in answer.out
    assert soundfile.info(tmp_path / "out/a-8k.wav").samplerate == RATE_HZ
    strict = shell("anonymize", *B2, tmp_path / "in", tmp_path / "strict", "--seed", 3, "--strict")
    assert strict.code == 1
    assert strict.err.count("wav: expected mono 16-bit samples at 16,000 Hz, found audio that would be changed") == 4
    assert not list((tmp_path / "strict").rglob("*.wav"))


def test_run_tells_every_bad_file_and_does_the_others(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/good.wav", "a/cut.wav")
    (source / "a/empty.wav").touch()
    (source / "a/text.wav").write_text("this is no audio")
    (source / "a/cut.wav").write_bytes((source / "a/cut.wav").read_bytes()[:-500])
    soundfile.write(source / "a/nothing.wav", np.zeros(0, np.int16), RATE_HZ)
    soundfile.write(source / "a/nan.wav", np.array([0.1, np.nan]), RATE_HZ, subtype="FLOAT")
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 3)
    assert answer.code == 1
    assert "1 finished (0 s of speech), 5 failed." in answer.out
    for sentence in ("a file of 0 bytes", "found text", "cut or damaged", "at least one sample", "NaN or infinity"):
        assert sentence in answer.err
    assert [path.name for path in (tmp_path / "out").rglob("*.wav")] == ["good.wav"]
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert (report["finished"], report["failed"], len(report["problems"])) == (1, 5, 5)


def test_run_with_voices_of_a_file_repeats_the_run_that_they_are_of(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "b/y.wav")
    shell("voices", source, *B2, "--seed", 3, "--out", tmp_path / "voices.csv")
    shell("anonymize", *B2, source, tmp_path / "drawn", "--seed", 3)
    answer = shell("anonymize", *B2, source, tmp_path / "given", "--voices", tmp_path / "voices.csv")
    assert answer.code == 0
    for name in ("a/x.wav", "b/y.wav"):
        assert (tmp_path / "drawn" / name).read_bytes() == (tmp_path / "given" / name).read_bytes()


@pytest.mark.parametrize(
    ("names", "arguments", "speakers"),
    [
        (["1462/170142/1462-170142-0000.wav", "84/1/84-1-0.wav"], (), {"1462", "84"}),
        (["p225_001.wav", "p226_001.wav"], (), {"p225", "p226"}),
        (["x/p225_001.wav", "x/p226_001.wav"], ("--speaker-from", "prefix"), {"p225", "p226"}),
    ],
    ids=["LibriSpeech", "prefix", "as said"],
)
def test_speakers_are_read_off_names(shell, tmp_path, names, arguments, speakers):
    write_speech(tmp_path / "in", *names)
    answer = shell("voices", tmp_path / "in", *B2, "--seed", 1, *arguments, "--json")
    assert {row["speaker"] for row in answer.json["assignments"]} == speakers


def test_speakers_are_those_of_utt2spk_where_there_is_one(shell, tmp_path):
    source = write_speech(tmp_path / "in", "x/one.wav", "x/two.wav", "x/three.wav")
    (source / "utt2spk").write_text("one s1\ntwo s2\n")
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1, "--json")
    assert answer.code == 1
    assert (answer.json["finished"], answer.json["voices"]["n_speakers"]) == (2, 2)
    [problem] = answer.json["problems"]
    assert "expected a line for three in utt2spk, found none" in problem["sentence"]


def test_speakers_that_cannot_be_told_are_asked_for(shell, tmp_path):
    write_speech(tmp_path / "in", "one.wav", "two.wav")
    sentence = refusal(shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", "--seed", 1))
    assert "expected the speaker of every file" in sentence
    assert "found one.wav. Add utt2spk, or name the rule: --speaker-from folder or prefix." in sentence


@confined
def test_program_of_a_team_runs_from_its_description(shell, tmp_path):
    """The program turns the bytes of each file around."""
    make_command(tmp_path / "own", "copy()")
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav", "b/z.wav")
    description = tmp_path / "own/anonymizer.toml"
    answer = shell("anonymize", "--method", description, source, tmp_path / "out", "--seed", 3, "--jobs", 2)
    assert answer.code == 0
    for name in ("a/x.wav", "a/y.wav", "b/z.wav"):
        original, written = (read_pcm16(folder / name)[0] for folder in (source, tmp_path / "out"))
        assert written.tobytes() == original.tobytes()[::-1]
    record = json.loads((tmp_path / "out/anonymization.json").read_text())
    assert record["method"] == "hush"
    description.write_text(description.read_text() + "\n# changed\n")
    answer = shell("anonymize", "--method", description, source, tmp_path / "out", "--seed", 3)
    assert "out: hush has changed since this folder was begun (another version, or another command" in refusal(answer)


@confined
def test_program_that_fails_on_one_utterance_does_the_others(shell, tmp_path):
    code = """
        for path in source.iterdir():
            with wave.open(str(path)) as file:
                if file.getnframes() == 3200:
                    sys.exit("no short ones")
        copy()
    """
    make_command(tmp_path / "own", code)
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    soundfile.write(source / "a/short.wav", buzz(120, 0.2), RATE_HZ)
    answer = shell("anonymize", "--method", tmp_path / "own/anonymizer.toml", source, tmp_path / "out", "--seed", 3)
    assert answer.code == 1
    assert "2 finished (1 s of speech), 1 failed." in answer.out
    assert "short.wav" in answer.err
    assert "no short ones" in answer.err
    assert "short.wav: expected an output of the method, found hush failed." in answer.err
    assert "Fix what this names, or leave the file out, and repeat the command." in answer.err


@confined
def test_output_that_is_its_input_is_an_error(shell, tmp_path):
    make_command(tmp_path / "own", "[shutil.copy(path, output) for path in source.iterdir()]")
    source = write_speech(tmp_path / "in", "a/x.wav")
    arguments = ("anonymize", "--method", tmp_path / "own/anonymizer.toml", source, tmp_path / "out", "--seed", 3)
    answer = shell(*arguments)
    assert answer.code == 1
    assert "error: identical to original\n  a/x.wav: " in answer.err
    again = shell(*arguments)
    assert (again.code, again.err) == (1, answer.err)  # what was found is not forgotten


def test_files_that_all_fail_end_the_run_early(shell, tmp_path):
    (tmp_path / "in/a").mkdir(parents=True)
    for number in range(60):
        (tmp_path / f"in/a/{number:02}.wav").write_bytes(b"no audio")
    answer = shell("anonymize", *B2, tmp_path / "in", tmp_path / "out", "--seed", 3)
    assert answer.code == 1
    assert "0 finished (0 s of speech), 10 failed, 50 not tried (as the first ones all failed)." in answer.out
    [sentence] = [line for line in answer.err.splitlines() if "expected" in line]
    names = ", ".join(str(tmp_path / f"in/a/{number:02}.wav") for number in range(5))
    assert sentence.startswith(f"  10 files, such as {names}: expected ")


def test_folder_of_a_mac_is_read_by_names_as_people_see_them(shell, tmp_path):
    spelled = [unicodedata.normalize("NFD", name) for name in ("jürgen/a.wav", "zoé/b.wav")]
    source = write_speech(tmp_path / "in", *spelled)
    (source / "utt2spk").write_text("a jürgen\nb zoé\n")
    for name in ("Icon\r", "._a.wav", ".DS_Store"):
        (source / name).touch()
    answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 1, "--json")
    assert (answer.code, answer.json["finished"]) == (0, 2)
    assert [problem["code"] for problem in answer.json["problems"]] == ["droppings"]
    assert (tmp_path / "out" / "jürgen" / "a.wav").is_file()
