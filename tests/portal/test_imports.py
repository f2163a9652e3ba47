"""Starting the portal stays light, and imports point one way; each contract is shown to catch a violation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "torchaudio", "pandas", "matplotlib", "pyworld", "parselmouth", "numba", "scipy.signal")


def modules_after(code: str, data_dir: Path) -> list[str]:
    """The heavy libraries that a fresh process holds after running the code."""
    program = f"{code}\nimport sys\nprint('HELD', *[name for name in {HEAVY!r} if name in sys.modules])"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PORTAL_DATA_DIR": str(data_dir)}
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    [held] = [line for line in answer.stdout.splitlines() if line.startswith("HELD")]
    return held.split()[1:]


@pytest.mark.parametrize(
    "code",
    [
        "import django; django.setup(); from django.core.management import call_command; call_command('check')",
        "import portal.config.wsgi; from django.urls import get_resolver; get_resolver().url_patterns",
        "import django; django.setup(); from django.test import Client; "
        "assert Client(headers={'host': 'localhost'}).get('/log-in/').status_code == 200",
    ],
    ids=["manage.py", "web process", "first request"],
)
def test_start_imports_no_heavy_library(code, tmp_path):
    assert modules_after(code, tmp_path) == []


def test_probe_sees_a_heavy_library(tmp_path):
    assert modules_after("import matplotlib", tmp_path) == ["matplotlib"]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def copy_of_the_code(tmp_path):
    for package in ("portal", "listening", "evaluation", "anonymization"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("portal/core/audit.py", "import portal.jobs.models", "Imports point one way through the house"),
        ("portal/jobs/rules.py", "import evaluation.models", "Imports point one way through the house"),
        ("portal/results/pages.py", "import portal.config.settings", "Imports point one way through the house"),
        ("evaluation/metrics/pitch.py", "import django.utils.timezone", "Science never sees Django"),
        ("evaluation/formats/kaldi.py", "import evaluation.models", "Science never sees an app's shell"),
        ("listening/design/plan.py", "import django.utils.timezone", "Science never sees Django"),
        ("portal/results/board.py", "import listening.models", "Imports point one way through the house"),
        ("portal/challenges/selectors.py", "import portal.challenges.views", "Inside an app"),
    ],
)
def test_planted_violation_is_caught(copy_of_the_code, file, line, contract):
    target = copy_of_the_code / file
    target.write_text(f"{target.read_text()}\n{line}\n")
    answer = lint_imports(copy_of_the_code)
    broken = [row for row in answer.stdout.splitlines() if "BROKEN" in row]
    assert answer.returncode == 1
    assert any(row.startswith(contract) for row in broken), answer.stdout
