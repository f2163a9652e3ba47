"""The shell: a design of a CSV of trials, its certificate, and the check of a saved design."""

import csv
import json

import pytest

from listening.design.commands import COLUMNS
from tests.command_line import run_study
from tests.listening.design.pools import make_request

NUMBERS = ["--evaluators", "6", "--trials", "12", "--originals", "6"]
CLASSES = {True: "target", False: "nontarget"}


@pytest.fixture
def candidates(tmp_path):
    path = tmp_path / "candidates.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for one in make_request().candidates:
            rows.writerow(
                [one.key, one.system, one.speaker, one.sex, CLASSES[one.is_target], one.source, one.enrolment]
            )
    return path


def test_plan_and_check_again(candidates, tmp_path, capsys):
    saved = tmp_path / "design.json"
    assert run_study("plan", candidates, *NUMBERS, "--out", saved) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Balance certificate: passes")
    assert run_study("check", saved) == 0
    assert capsys.readouterr().out == printed
    assert run_study("check", saved, "--json") == 0
    assert json.loads(capsys.readouterr().out)["sha256"] in printed


def test_a_changed_design_does_not_pass(candidates, tmp_path, capsys):
    saved = tmp_path / "design.json"
    run_study("plan", candidates, *NUMBERS, "--out", saved)
    whole = json.loads(saved.read_text())
    whole["design"]["blocks"][0][0] = whole["design"]["blocks"][0][1]
    saved.write_text(json.dumps(whole))
    assert run_study("check", saved) == 1
    assert "DOES NOT PASS" in capsys.readouterr().out


def test_a_request_that_cannot_be_met_ends_with_sentences(candidates, capsys):
    assert run_study("plan", candidates, "--evaluators", "1", "--trials", "4", "--originals", "2") == 2
    assert "Coverage: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("key,system\n", "expected the columns"),
        (f"{','.join(COLUMNS)}\na,,s,x,target,u,e\n", "line 2: expected sex f or m, found 'x'"),
        (
            f"{','.join(COLUMNS)}\na,,s,f,maybe,u,e\n",
            "line 2: expected class target or nontarget, found 'maybe'",
        ),
        (f"{','.join(COLUMNS)}\n,,s,f,target,u,\n", "line 2: expected a value as key and as enrolment, found none"),
    ],
)
def test_a_wrong_csv_is_told(tmp_path, capsys, text, words):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    assert run_study("plan", path) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", '{"request": {}, "design": {}}'])
def test_no_saved_design_is_told(tmp_path, capsys, text):
    path = tmp_path / "design.json"
    path.write_text(text)
    assert run_study("check", path) == 2
    assert "expected a saved design" in capsys.readouterr().err
