"""All commands of ``vp``: help with examples, a sentence for each slip, completion, and what a start loads."""

import os
import subprocess
import sys

import pytest

from portal.client.commands import COMMANDS
from portal.client.main import main

NAMES = [name for part in COMMANDS.values() for name in part]


@pytest.mark.parametrize("name", NAMES)
def test_help_of_each_command_has_an_example(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert f"     vp {name}" in said
    assert "Exit code: 0 fine" in said


def test_help_names_every_command(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    assert [name for name in NAMES if f"│ {name.split()[0]} " not in said] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["anonymise"], "vp: No such command 'anonymise'. Did you mean 'anonymize'? See vp --help."),
        (["study"], "vp study: Missing command. See vp study --help."),
        (["pack"], "vp pack: Missing argument 'EDITION'. See vp pack --help."),
        (["status", "--jsn"], "vp status: No such option: --jsn (Possible options: --json). See vp status --help."),
        (["data", "a", "--to"], "vp data: Option '--to' requires an argument. See vp data --help."),
        (["results", "T1", "--csv", "--json"], "Expected at most one of --all, --csv, --json, found --csv and --json."),
        (["verify", "a.zip"], "Expected one of --expected, --edition, found none."),
        (
            ["voices", "--method", "x", "--distance", "7"],
            "vp voices: Invalid value for '--distance': 7.0 is not in the range 0<=x<=1. See vp voices --help.",
        ),
    ],
)
def test_bad_usage_is_one_sentence(words, sentence, capsys):
    assert main(words) == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_command_whose_package_is_missing_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert main(["status", "--server", "http://localhost"]) == 2
    sentence = "vp status needs the package httpx, which is not installed here. Install it with “"
    assert capsys.readouterr().err.startswith(sentence)


def test_help_ends_well_when_its_reader_leaves():
    command = f"{sys.executable} -m portal.client --help | head -2; exit ${{PIPESTATUS[0]}}"
    answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "Usage: vp" in answer.stdout


def test_shell_completes_names_and_options():
    def complete(words: str, place: int) -> list[str]:
        asked = {"_VP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        command = [sys.executable, "-m", "portal.client"]
        answer = subprocess.run(
            command, env=os.environ | asked, capture_output=True, text=True, timeout=60, check=False
        )
        return answer.stdout.split()

    assert complete("vp stu", 1) == ["study"]
    assert complete("vp status --j", 2) == ["--json"]


def test_portal_starts_without_the_parser_of_vp(tmp_path):
    program = "import sys, manage\nsys.argv = ['manage.py', 'check']\nmanage.main()\nimport portal.config.urls\n"
    program += "print('HELD', *{'typer'} & sys.modules.keys())"
    environment = os.environ | {"PORTAL_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "portal.config.settings"}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (answer.returncode, answer.stdout.splitlines()[-1]) == (0, "HELD"), answer.stderr
