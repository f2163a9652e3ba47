"""``voices`` and ``list``; and that the program starts without what is heavy."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import pytest

from anonymization.cli.listing import describe_values
from anonymization.methods.contract import Option
from anonymization.methods.registry import FOLDER_VARIABLE, methods
from tests.anonymization.cli.shell import B2, ROOT, start, write_speech
from tests.evaluation.commands import refusal

HEAVY = ("django", "matplotlib", "numba", "pandas", "parselmouth", "pyworld", "scipy", "soundfile", "torch")
IMPORT_ALL = """
import importlib, pkgutil, sys
import anonymization.cli, anonymization.__main__
for _, name, _ in pkgutil.iter_modules(anonymization.cli.__path__, "anonymization.cli."):
    importlib.import_module(name)
print(*sorted(sys.modules))
"""


def test_the_command_line_imports_nothing_heavy():
    command = [sys.executable, "-c", IMPORT_ALL]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "anonymization.cli.run" in loaded
    assert [name for name in loaded if name in HEAVY] == []


def test_the_program_lists_its_commands():
    out, _ = start("--help").communicate(timeout=60)
    for name in ("run", "voices", "list", "train"):
        assert f"\n    {name} " in out


def test_voices_are_csv_on_standard_output(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "b/y.wav")
    answer = shell("voices", source, *B2, "--seed", 6)
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert [(row["role"], row["split"], row["speaker"]) for row in rows] == [
        ("trial", "undivided", "a"),
        ("trial", "undivided", "b"),
    ]
    assert all(0.5 <= float(row["alpha"]) < 0.9 for row in rows)


def test_voices_are_checked(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "b/y.wav")
    file = tmp_path / "voices.csv"
    answer = shell("voices", source, *B2, "--seed", 6, "--out", file)
    assert "Voices differ as required." in answer.out
    good = shell("voices", *B2, "--check", file, "--distance", "0.1")
    assert (good.code, good.err) == (0, "")
    lines = file.read_text().splitlines()
    alpha = lines[1].rpartition(",")[2]
    file.write_text("\n".join([*lines[:2], f"{lines[2].rpartition(',')[0]},{alpha}"]) + "\n")
    bad = shell("voices", *B2, "--check", file)
    assert bad.code == 1
    assert "one voice for 2: a, b" in bad.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "expected a folder whose speakers get voices, or --check FILE.csv; found neither"),
        (("--check", "gone.csv"), "gone.csv"),
        ((".",), "--seed: expected a whole number"),
    ],
)
def test_voices_of_nothing_are_refused(shell, arguments, sentence):
    assert sentence in refusal(shell("voices", *B2, *arguments))


def test_list_names_every_method_with_parameters_and_options(shell):
    answer = shell("list")
    assert answer.code == 0
    for method in methods():
        assert f"  {method.name}  {method.title}" in answer.out
    listed = shell("list", "--json").json
    assert [row["name"] for row in listed["methods"]] == [method.name for method in methods()]
    assert {option["name"] for option in listed["methods"][0]["options"]} >= {"level", "keep_digital_silence"}
    assert listed["broken"] == []


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-60.0, 0.0, "-20 dB (from -60 to 0)"),
        (0.0, 1.0, "-20 dB (from 0 to 1)"),
        (None, 0.0, "-20 dB (to 0)"),
        (0.0, None, "-20 dB (from 0)"),
        (None, None, "-20 dB"),
    ],
)
def test_list_names_both_bounds_of_an_option(low, high, words):
    assert describe_values(Option("gain", -20.0, "how loud", low=low, high=high, unit="dB")) == words


def test_list_tells_broken_commands(shell, tmp_path, monkeypatch):
    (tmp_path / "broken.toml").write_text("name = \n")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    answer = shell("list")
    assert answer.code == 1
    assert f"error: {tmp_path / 'broken.toml'}" in answer.err
    assert "  mcadams-2022  " in answer.out
