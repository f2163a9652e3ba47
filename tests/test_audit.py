"""The look-up of known vulnerabilities: what is found fails it, what cannot be reached does not."""

import runpy
import stat
from pathlib import Path

import pytest

AUDIT = runpy.run_path(str(Path(__file__).resolve().parents[1] / ".ci" / "audit.py"))
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found"}
BROKEN = {"name": "broken", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([SOUND, SOUND, UNKNOWN], 0, "1 of 2 pinned packages looked up, 0 known vulnerabilities."),
        ([SOUND, BROKEN], 1, "broken 2.0: CVE-1, fixed in 2.1"),
        ([UNKNOWN], 0, AUDIT["NOT_REACHED"]),
        ([], 0, AUDIT["NOT_REACHED"]),
    ],
)
def test_only_what_was_looked_up_counts(packages, code, said):
    found, lines = AUDIT["judge_report"]({"dependencies": packages})
    assert (found, lines[0]) == (code, said)


@pytest.mark.parametrize("body", ["exit 1", "echo no json", None], ids=["fails", "says nothing", "is not there"])
def test_program_that_tells_nothing_fails_nothing(tmp_path, capsys, body):
    program = tmp_path / "pip-audit"
    if body is not None:
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert AUDIT["main"](str(program), "requirements.txt") == 0
    assert capsys.readouterr().out == f"{AUDIT['NOT_REACHED']}\n"
