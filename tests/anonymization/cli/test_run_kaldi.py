"""``run`` on Kaldi data directories: read back by the readers of the portal, roles and voices over all of them."""

from __future__ import annotations

import os

import pytest

from anonymization.methods.registry import get_method
from anonymization.methods.voices.pseudo_speakers import plan_voices
from common.problems import has_errors
from evaluation.formats import kaldi
from evaluation.formats.audio_pairs import match_audio
from portal.intake.corpora.kaldi_directories import read_kaldi_directories
from speech.audio.files import read_pcm16
from tests.anonymization.cli.shell import B2, ROOT, write_kaldi
from tests.evaluation.commands import refusal

ENROLLED = {"s1-1": "s1", "s1-2": "s1", "s2-1": "s2"}
TRIED = {"s1-3": "s1", "s2-2": "s2", "s2-3": "s2"}
TRIALS = "".join(
    f"{model} {name} {'target' if model == speaker else 'nontarget'}\n"
    for model in ("s1", "s2")
    for name, speaker in TRIED.items()
)


@pytest.fixture
def data(tmp_path):
    """An enrolment and a trial set as the challenge has them, with different speech in each."""
    write_kaldi(tmp_path / "data/x_dev_enrolls", ENROLLED, lists={"enrolls": "".join(f"{n}\n" for n in ENROLLED)})
    write_kaldi(tmp_path / "data/x_dev_trials_f", TRIED, lists={"trials": TRIALS})
    return tmp_path / "data"


def test_directories_of_a_challenge_come_back_as_such(shell, data, tmp_path):
    answer = shell("anonymize", *B2, data, tmp_path / "out", "--seed", 4, "--suffix", "_anon")
    assert (answer.code, answer.err) == (0, "")
    assert "x_dev_enrolls: role enrolment (as it has enrolls), split dev." in answer.out
    assert "x_dev_trials_f: role trial (as it has trials), split dev." in answer.out
    draft = read_kaldi_directories(tmp_path / "out")
    assert not has_errors(draft.problems), [problem.sentence() for problem in draft.problems]
    sets = {each.name: (each.role, each.utterances) for each in draft.data_sets}
    assert sets == {
        "x_dev_enrolls_anon": ("enrolment", tuple(sorted(ENROLLED))),
        "x_dev_trials_f_anon": ("trial", tuple(sorted(TRIED))),
    }
    [trials] = draft.trial_lists
    assert (trials.target_count, trials.nontarget_count) == (3, 3)
    assert {each.name: each.transcript for each in draft.utterances} == dict.fromkeys(ENROLLED | TRIED, "SOME WORDS")


def test_lists_of_the_output_name_files_that_are_there(shell, data, tmp_path):
    shell("anonymize", *B2, data, tmp_path / "out", "--seed", 4)
    folder = tmp_path / "out/x_dev_trials_f"
    paths = kaldi.read_wav_scp(folder / "wav.scp").content
    durations = kaldi.read_utt2dur(folder / "utt2dur").content
    assert list(paths) == sorted(TRIED)
    for name, path in paths.items():
        samples, rate = read_pcm16(tmp_path / path)
        assert durations[name] == samples.size / rate
    assert kaldi.read_spk2utt(folder / "spk2utt").content == {"s1": ("s1-3",), "s2": ("s2-2", "s2-3")}
    assert kaldi.read_utt2spk(folder / "utt2spk").content == TRIED
    assert kaldi.read_spk2gender(folder / "spk2gender").content == {"s1": "f", "s2": "f"}
    assert (folder / "trials").read_text() == TRIALS
    assert len(match_audio(data / "x_dev_trials_f", folder).pairs) == 3


def test_paths_of_the_output_start_where_it_was_named_from(shell, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell("anonymize", *B2, "data/x_dev_trials_f", "anon/trials", "--seed", 4)
    assert kaldi.read_wav_scp(tmp_path / "anon/trials/wav.scp").content["s1-3"] == "anon/trials/wav/s1-3.wav"
    assert (tmp_path / "anon/trials/wav/s1-3.wav").is_file()


def test_voices_are_planned_over_all_directories_of_a_split(shell, data, tmp_path):
    answer = shell("voices", data, *B2, "--seed", 4, "--json")
    method = get_method("mcadams-2022")
    found = {(row["role"], row["speaker"]): row["parameters"] for row in answer.json["assignments"]}
    expected = {
        (role, speaker): voice.parameters
        for role in ("enrolment", "trial")
        for speaker, voice in plan_voices(
            method.parameters, seed=4, role=role, split="dev", speakers=["s1", "s2"]
        ).voices.items()
    }
    assert found == expected
    assert answer.json["holds"] is True


def test_archive_with_lists_for_both_roles_gives_each_utterance_its_role(shell, tmp_path):
    lists = {"enrolls": "".join(f"{name}\n" for name in ENROLLED), "trials_f": TRIALS}
    write_kaldi(tmp_path / "libri_dev", ENROLLED | TRIED, lists=lists)
    answer = shell("anonymize", *B2, tmp_path / "libri_dev", tmp_path / "out", "--seed", 4, "--json")
    assert answer.code == 0
    assert answer.json["inferred"] == [
        "libri_dev: role trial (except for the utterances of enrolls, which are enrolment), split dev."
    ]
    assert answer.json["voices"]["n_speakers"] == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"enrolls", "trials_f", "wav.scp", "wav"}
    assert len(kaldi.read_wav_scp(tmp_path / "out/wav.scp").content) == 6


def test_utterance_in_both_roles_is_refused(shell, tmp_path):
    lists = {"enrolls": "s1-3\n", "trials_f": TRIALS}
    write_kaldi(tmp_path / "libri_dev", ENROLLED | TRIED, lists=lists)
    answer = shell("anonymize", *B2, tmp_path / "libri_dev", tmp_path / "out", "--seed", 4)
    assert "found s1-3, which needs a voice for each role" in refusal(answer)


def test_role_that_is_said_wins_over_names_and_lists(shell, data, tmp_path):
    answer = shell("voices", data, *B2, "--seed", 4, "--role", "training", "--split", "train", "--json")
    assert {(row["role"], row["split"], row["level"]) for row in answer.json["assignments"]} == {
        ("training", "train", "utterance")
    }


def test_commands_of_wav_scp_are_refused_and_not_run(shell, data, tmp_path):
    scp = data / "x_dev_trials_f/wav.scp"
    trap = tmp_path / "trap"
    scp.write_text(scp.read_text().replace("wav/s1-3.flac", f"touch {trap} |"))
    answer = shell("anonymize", *B2, data, tmp_path / "out", "--seed", 4)
    assert answer.code == 1
    assert "pipe refused" in answer.err
    assert not trap.exists()
    assert set(kaldi.read_wav_scp(tmp_path / "out/x_dev_trials_f/wav.scp").content) == {"s2-2", "s2-3"}


def test_problems_of_the_lists_are_told_and_the_rest_is_done(shell, data, tmp_path):
    folder = data / "x_dev_trials_f"
    lines = (folder / "wav.scp").read_text().splitlines()
    (folder / "wav.scp").write_text("\n".join([*lines[:1], "s2-2 wav/gone.flac", "../../escape wav/s1-3.flac"]) + "\n")
    answer = shell("anonymize", *B2, data, tmp_path / "out", "--seed", 4)
    assert answer.code == 1
    assert "expected the audio of s2-2, found no file “wav/gone.flac”" in answer.err
    assert "expected an utterance id that can be the name of a file, found “../../escape”" in answer.err
    assert "expected a line for s2-3 in wav.scp, found none" in answer.err
    assert list(kaldi.read_utt2spk(tmp_path / "out/x_dev_trials_f/utt2spk").content) == ["s1-3"]
    assert not (tmp_path / "escape.wav").exists()


def test_finished_utterances_of_earlier_calls_stay_in_the_lists(shell, data, tmp_path):
    arguments = ("anonymize", *B2, data, tmp_path / "out", "--seed", 4)
    shell(*arguments, "--limit", 4)
    assert set(kaldi.read_wav_scp(tmp_path / "out/x_dev_trials_f/wav.scp").content) == {"s1-3"}
    answer = shell(*arguments)
    assert "6 finished" in answer.out
    assert "4 of them by an earlier call" in answer.out
    assert set(kaldi.read_wav_scp(tmp_path / "out/x_dev_trials_f/wav.scp").content) == set(TRIED)


def test_relative_paths_are_found_from_the_recipe_root(shell, data, tmp_path, monkeypatch):
    scp = data / "x_dev_trials_f/wav.scp"
    scp.write_text(scp.read_text().replace(" wav/", " data/x_dev_trials_f/wav/"))
    monkeypatch.chdir(ROOT)
    answer = shell("anonymize", *B2, os.path.relpath(data, ROOT), tmp_path / "out", "--seed", 4)
    assert (answer.code, answer.err) == (0, "")


def move_speech(folder, places):
    """Speech of the data directory in other places, and what wav.scp says of it, which is elsewhere."""
    for name, place in places.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "wav" / f"{name}.flac").rename(folder / place)


def test_recordings_of_one_name_are_told_apart_by_their_folders(shell, tmp_path):
    folder = write_kaldi(tmp_path / "k", {"s1-a": "s1", "s2-a": "s2"})
    move_speech(folder, {"s1-a": "wav/s1/a.flac", "s2-a": "wav/s2/a.flac"})
    (folder / "wav.scp").write_text("s1-a /gone/s1/a.flac\ns2-a /gone/s2/a.flac\n")
    answer = shell("anonymize", *B2, folder, tmp_path / "out", "--seed", 1)
    assert (answer.code, answer.err) == (0, "")
    assert "2 recordings not where wav.scp says, found by name, such as wav/s1/a.flac for /gone/s1/a.flac" in answer.out
    for name, place in {"s1-a": "wav/s1/a.flac", "s2-a": "wav/s2/a.flac"}.items():
        assert read_pcm16(tmp_path / f"out/wav/{name}.wav")[0].size == read_pcm16(folder / place)[0].size


def test_recording_that_may_be_another_one_is_left_out(shell, tmp_path):
    folder = write_kaldi(tmp_path / "k", {"s1-a": "s1", "s2-a": "s2", "s3-a": "s3"})
    move_speech(folder, {"s1-a": "wav/s1/a.flac", "s2-a": "wav/s2/a.flac", "s3-a": "wav/x/b.flac"})
    (folder / "wav.scp").write_text("s1-a wav/s2/a.flac\ns2-a /gone/s3/b.flac\ns3-a /gone/s4/b.flac\n")
    answer = shell("anonymize", *B2, folder, tmp_path / "out", "--seed", 1)
    assert answer.code == 1
    why = "several that “/gone/s3/b.flac” may mean: only wav/x/b.flac, which “/gone/s4/b.flac” means as well"
    assert why in answer.err
    assert len(list((tmp_path / "out").rglob("*.wav"))) == 1


def test_lists_with_problems_lose_no_good_line(shell, data, tmp_path):
    folder = data / "x_dev_trials_f"
    (folder / "text").write_bytes(b"s1-3 caf\xe9\ns2-2 hello\ns2-3 there\nother words\n")
    (folder / "spk2gender").write_text("s1 f\ns2 x y\n")
    answer = shell("anonymize", *B2, data, tmp_path / "out", "--seed", 4)
    assert answer.code == 1
    assert "text, line 1: expected UTF-8 text, found the byte 0xE9, perhaps Latin-1. Save it as UTF-8." in answer.err
    assert "found “s2 x y”" in answer.err
    out = tmp_path / "out/x_dev_trials_f"
    assert (out / "text").read_bytes() == b"s1-3 caf\xe9\ns2-2 hello\ns2-3 there\n"
    assert (out / "spk2gender").read_text() == "s1 f\n"
    assert len(list(out.rglob("*.wav"))) == 3
