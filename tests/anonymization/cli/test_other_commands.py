"""``voices``, ``list`` and ``explain``; and that the program starts without what is heavy."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from anonymization.cli.listing import describe_values
from anonymization.methods.contract import Option
from anonymization.methods.registry import FOLDER_VARIABLE, methods
from tests.anonymization.cli.shell import B2, DEMO, ROOT, start, write_speech
from tests.evaluation.commands import refusal

HEAVY = ("django", "matplotlib", "numba", "pandas", "parselmouth", "pyworld", "scipy", "soundfile", "torch")
ONE = DEMO / "d01" / "d01-0006.flac"
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
    for name in ("run", "voices", "list", "explain"):
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


@pytest.mark.parametrize("name", [method.name for method in methods()])
def test_explain_describes_a_method(shell, name):
    answer = shell("explain", name)
    method = next(method for method in methods() if method.name == name)
    assert answer.code == 0
    words = " ".join(answer.out.split())
    assert all(" ".join(parameter.effect.split()) in words for parameter in method.parameters)
    assert " ".join(f"Published: {method.reference}".split()) in words
    assert shell("explain", name, "--json").json["words"]


def test_explain_draws_a_moment_of_a_recording(shell, tmp_path):
    arguments = ("explain", "mcadams-2022", ONE, "--at", "1.0", "--parameter", "alpha=0.8")
    answer = shell(*arguments, "--figure", tmp_path / "out.svg")
    assert (answer.code, answer.err) == (0, "")
    assert "at 1.00 s" in answer.out
    assert "alpha 0.8" in answer.out
    assert (tmp_path / "out.svg").read_bytes().lstrip().startswith(b"<?xml")
    found = shell(*arguments, "--json").json
    assert (found["at_s"], found["parameters"]) == (1.0, {"alpha": 0.8})
    assert json.dumps(found["numbers"]).count("pole 1, angle") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("b2",), 'There is no anonymisation method "b2"'),
        (("mcadams-2022", "--figure", "x.svg"), "expected a recording for --figure"),
        (("mcadams-2022", "gone.wav"), "gone.wav: expected a readable file"),
        (("mcadams-2022", ONE, "--at", "99"), "found 99 s"),
        (("mcadams-2022", ONE, "--figure", "x.bmp"), "expected a figure that ends in .svg"),
        (("mcadams-2022", ONE, "--parameter", "alpha=2"), "alpha of mcadams-2022 must be from 0.5 to 0.9"),
        (("mcadams-2022", ONE, "--parameter", "alpha"), "--parameter: expected name=number, found “alpha”"),
        (("mcadams-2022", ONE, "--figure", "gone/x.svg"), "expected a file that can be written"),
    ],
)
def test_explain_refuses_in_a_sentence(shell, arguments, sentence):
    assert sentence in refusal(shell("explain", *arguments))
