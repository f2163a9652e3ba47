"""``voices`` and ``list``; and that the program starts without what is heavy."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import pytest

from anonymization.methods.registry import methods
from tests.anonymization.cli.shell import B2, ROOT, write_speech
from tests.evaluation.commands import refusal

HEAVY = ("django", "matplotlib", "numba", "pandas", "parselmouth", "pyworld", "scipy", "soundfile", "torch")
IMPORT_ALL = """
import importlib, pkgutil, sys
import anonymization.cli
for _, name, _ in pkgutil.iter_modules(anonymization.cli.__path__, "anonymization.cli."):
    importlib.import_module(name)
print(*sorted(sys.modules))
"""


def test_the_command_line_imports_nothing_heavy():
    command = [sys.executable, "-c", IMPORT_ALL]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "anonymization.cli.run" in loaded
    assert [name for name in loaded if name in HEAVY] == []


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
    ],
)
def test_voices_of_nothing_are_refused(shell, arguments, sentence):
    assert sentence in refusal(shell("voices", *B2, *arguments))


def test_list_names_every_method_with_parameters_and_options(shell):
    answer = shell("methods")
    assert answer.code == 0
    for method in methods():
        assert f"  {method.name}  {method.title}" in answer.out
    listed = shell("methods", "--json").json
    assert [row["name"] for row in listed["methods"]] == [method.name for method in methods()]
    assert {option["name"] for option in listed["methods"][0]["options"]} >= {"level", "keep_digital_silence"}
    assert listed["broken"] == []
