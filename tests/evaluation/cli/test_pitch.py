"""``vp pitch``: folders of any layout and Kaldi directories, in one process and in several."""

from __future__ import annotations

import csv
import unicodedata

import numpy as np
import pytest

from evaluation.formats.audio_pairs import match_audio
from evaluation.metrics.averages import summarise
from evaluation.metrics.pitch import compare_pitch
from speech.audio.files import read_pcm16, write_flac16
from tests.evaluation.commands import refusal

RATE = 16000


def voice(hz: float, seconds: float = 0.8) -> np.ndarray:
    """A gliding tone with a harmonic and a pause."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(hz * (1 + 0.2 * np.sin(5 * time))) / RATE
    return (9000 * (np.cos(phase) + 0.5 * np.cos(2 * phase)) * (np.abs(time - 0.4) > 0.05)).astype(np.int16)


@pytest.fixture
def folders(tmp_path):
    """Three utterances, flat on one side and by speaker on the other, WAV or FLAC."""
    original, anonymised = tmp_path / "original", tmp_path / "anonymised"
    (anonymised / "s1").mkdir(parents=True)
    original.mkdir()
    for number, hz in enumerate((110.0, 150.0, 210.0)):
        write_flac16(original / f"u{number}.flac", voice(hz), RATE)
        write_flac16(anonymised / "s1" / f"u{number}.flac", voice(1.1 * hz, 0.75), RATE)
    return original, anonymised


def expected_rows(folders, **how):
    original, anonymised = folders
    for number in range(3):
        first, rate = read_pcm16(original / f"u{number}.flac")
        second, _ = read_pcm16(anonymised / "s1" / f"u{number}.flac")
        yield compare_pitch(first, second, rate, **how)


def test_pitch_json_holds_each_utterance_and_the_set(shell, folders):
    answer = shell("pitch", *folders, "--realign", "--json")
    expected = list(expected_rows(folders, realign=True))
    rows = answer.json["utterances"]
    assert (answer.code, answer.json["problems"], answer.json["failed"]) == (0, [], [])
    assert [row["utterance"] for row in rows] == ["u0", "u1", "u2"]
    assert [row["pitch_correlation"] for row in rows] == [one.correlation.rho for one in expected]
    assert [row["pitch_correlation_voiced"] for row in rows] == [one.correlation.rho_voiced for one in expected]
    assert [row["pitch_correlation_realigned"] for row in rows] == [one.realigned.rho_voiced for one in expected]
    assert [row["duration_difference_ms"] for row in rows] == pytest.approx([-50.0] * 3)
    summary = summarise(one.correlation.rho for one in expected)
    assert answer.json["summaries"]["pitch_correlation"] == {"mean": summary.mean, "std": summary.std, "n": 3}
    assert answer.json["estimator"] == expected[0].estimator


def test_pitch_in_processes_gives_the_same(shell, folders):
    assert shell("pitch", *folders, "--jobs", 2, "--json").out == shell("pitch", *folders, "--json").out


def test_pitch_table_and_csv_show_the_same_numbers(shell, folders, tmp_path):
    path = tmp_path / "rows.csv"
    answer = shell("pitch", *folders, "--csv", path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    summary = summarise(float(row["pitch_correlation"]) for row in rows)
    [line] = [line for line in answer.out.splitlines() if line.startswith("Pitch correlation ρF0")]
    assert line.split()[-3:] == [f"{summary.mean:.4f}", f"{summary.std:.4f}", "3"]
    assert {row["pitch_correlation_realigned"] for row in rows} == {""}  # not asked for
    assert "F0 by praat" in answer.out
    assert answer.err == ""  # no bar where nobody watches


def test_pitch_csv_has_no_formula(shell, folders, tmp_path):
    original, anonymised = folders
    for folder in (original, anonymised / "s1"):
        (folder / "u0.flac").rename(folder / "=u0.flac")
        (folder / "u1.flac").rename(folder / "-1.flac")
    path = tmp_path / "rows.csv"
    assert shell("pitch", *folders, "--csv", path).code == 0
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["utterance"] for row in rows} == {"'=u0", "-1", "u2"}
    assert [float(row["duration_difference_ms"]) for row in rows] == pytest.approx([-50.0] * 3)  # signs stay


def test_pitch_names_what_is_missing_repeated_or_broken_and_measures_the_rest(shell, folders):
    original, anonymised = folders
    (anonymised / "s1" / "u0.flac").rename(anonymised / "extra.flac")
    (anonymised / "s1" / "u1.flac").write_bytes(b"fLaC, cut here")
    (original / "copy").mkdir()
    write_flac16(original / "copy" / "u2.flac", voice(100.0), RATE)
    answer = shell("pitch", original, anonymised)
    assert answer.code == 1
    assert f"{anonymised}: expected the utterance u0, found none" in answer.err
    assert "found extra, which" in answer.err
    assert "u2 also as " in answer.err
    assert f"error: {anonymised / 's1' / 'u1.flac'}: expected a WAV or FLAC file" in answer.err
    assert answer.out.splitlines()[2].split()[-1] == "1"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["original", "nowhere"], "nowhere: expected WAV or FLAC files, or wav.scp, found no such folder"),
        (["original", "other"], "original and other: expected the same utterances in both, found none"),
        (["original", "anonymised", "--csv", "no/x.csv"], "no/x.csv: expected a file that can be written"),
    ],
)
def test_pitch_refuses_in_one_sentence(shell, folders, tmp_path, monkeypatch, arguments, sentence):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    write_flac16(tmp_path / "other" / "elsewhere.flac", voice(100.0), RATE)
    monkeypatch.chdir(tmp_path)
    assert sentence in refusal(shell("pitch", *arguments))


def test_pitch_names_a_rate_that_the_header_states_falsely(shell, folders):
    file = folders[1] / "s1" / "u0.flac"
    write_flac16(file, voice(110.0), RATE // 2)
    answer = shell("pitch", *folders, "--json")
    assert [row["utterance"] for row in answer.json["utterances"]] == ["u1", "u2"]
    assert answer.json["failed"] == [
        f"{file}: expected 16000 Hz, as the original has, found a header that states 8000 Hz for about as many "
        "samples. Write the file with its true rate; if it does play at another speed, convert it to the right one."
    ]


def test_folders_are_matched_by_names_as_people_see_them(tmp_path):
    original, anonymised = tmp_path / "original", tmp_path / "anonymised"
    original.mkdir()
    anonymised.mkdir()
    for name in ("müller-1", "Anna-1"):
        write_flac16(original / f"{unicodedata.normalize('NFD', name)}.flac", voice(110.0), RATE)
    for name in ("müller-1.flac", "anna-1.flac", "._müller-1.flac", "Thumbs.db"):
        write_flac16(anonymised / name, voice(120.0), RATE)
    matched = match_audio(original, anonymised)
    assert [pair.utterance for pair in matched.pairs] == ["müller-1"]
    assert [(problem.code, problem.found) for problem in matched.problems] == [
        ("droppings", "2 that an operating system or a program left behind, such as ._müller-1.flac"),
        ("missing-utterance", "none, but “anna-1”, which differs in capitals only"),
        ("extra-utterance", f"anna-1, which {original} lacks"),
    ]


def test_kaldi_directories_find_audio_however_the_disk_spells_it(tmp_path):
    write_flac16(tmp_path / unicodedata.normalize("NFD", "müller-1.flac"), voice(110.0), RATE)
    (tmp_path / "wav.scp").write_text("müller-1 elsewhere/müller-1.flac\n")
    found = match_audio(tmp_path, tmp_path)
    assert ([pair.utterance for pair in found.pairs], found.problems) == (["müller-1"], ())
