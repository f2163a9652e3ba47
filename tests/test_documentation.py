"""The commands and the code of the documentation are run as they are written there."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from evaluation.formats.score_measures import measure_scores
from tests.evaluation.commands import RANK_FILE, write_test

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LIMIT_S = 400


def blocks(language: str) -> list[str]:
    """The code blocks of a language in all pages."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [block for page in PAGES for block in pattern.findall(page.read_text())]


def environment(folder: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PORTAL_", "DJANGO_", "MAKE"))}
    return clean | {"PORTAL_DATA_DIR": str(folder / "var")} | more


def run(command: str, folder: Path, **more: str) -> str:
    """What the command prints; it must end well."""
    answer = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"
    return answer.stdout


@contextmanager
def started(command: str, folder: Path, until: str) -> Iterator[tuple[str, list[str]]]:
    """A command that runs on: the address that it serves and its lines so far; ended by one Ctrl-C."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} ADDRESS={address}"],
        cwd=ROOT,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if until in line:
                break
        else:
            pytest.fail(f"{command} ended early:\n" + "\n".join(lines))
        yield address, lines
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            lines += process.communicate(timeout=60)[0].splitlines()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def wait_for(address: str) -> bytes:
    for _ in range(100):
        try:
            with urlopen(f"http://{address}", timeout=2) as answer:
                return answer.read()
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"{address} did not open")


def make_demo(folder: Path, speech: str = "") -> None:
    with started(f"make demo {speech}", folder, until="The portal is open at") as (address, lines):
        assert b"VoicePrivacy Portal" in wait_for(f"{address}/log-in/")
        assert any("Measure " in line and "· b2-" in line and line.endswith("Succeeded") for line in lines)


def make_demo_with_real_speech(folder: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with real speech is not here")
    make_demo(folder, "SPEECH=../shared/speech")


def make_run(folder: Path) -> None:
    with started("make run", folder, until="The portal opens at") as (address, _):
        wait_for(f"{address}/health/live")
        time.sleep(3)  # the scheduler's first round
        assert json.loads(wait_for(f"{address}/health/ready"))["ready"] is True


def make_test(folder: Path) -> None:
    assert "pytest" in run("make --dry-run test", folder)  # this very run


def import_corpus(folder: Path) -> None:
    prepare = ".venv/bin/python manage.py migrate --verbosity 0 && "
    output = run(prepare + ".venv/bin/python manage.py import_corpus demo/corpus --name demo", folder)
    assert "The corpus demo gained 10 speakers, 120 utterances, 120 audio files, 3 data sets, 2 trial lists." in output


def create_superuser(folder: Path) -> None:
    prepare = ".venv/bin/python manage.py migrate --verbosity 0 && "
    command = prepare + ".venv/bin/python manage.py createsuperuser --no-input --email a@example.org"
    assert "Superuser created" in run(command, folder, DJANGO_SUPERUSER_PASSWORD="a good passphrase")


def production_settings(folder: Path) -> None:
    [block] = [block for block in blocks("sh") if "PORTAL_DATABASE_URL" in block]
    run(f"{block}\n.venv/bin/python manage.py check --deploy --fail-level WARNING", folder)


def science_command(line: str) -> Callable[[Path], None]:
    """A command of the README beside files as it names them, which ends well and prints something."""

    def trial(folder: Path) -> None:
        write_science_files(folder)
        command = line.replace(".venv/bin/python", str(ROOT / ".venv/bin/python"))
        answer = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment(folder, PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        assert answer.stdout.strip()
        for ending in re.findall(r"--(?:det|csv) (\S+)", line):
            assert (folder / ending).stat().st_size > 0

    return trial


def write_science_files(folder: Path) -> None:
    """What the README's section on Python and the shell finds in its folder."""
    write_test(folder)
    for name in ("original", "anonymised"):
        (folder / name).mkdir()
    for path in sorted((ROOT / "demo/corpus/d01").glob("*.flac"))[:2]:
        shutil.copy(path, folder / "original")
        shutil.copy(path, folder / "anonymised")
    (folder / "results").mkdir()
    for name in ("a", "b"):
        (folder / "results" / f"result_for_rank_{name}").write_text(RANK_FILE)


COMMANDS = {
    "make demo": make_demo,
    "make demo SPEECH=../shared/speech": make_demo_with_real_speech,
    "make test": make_test,
    "make run": make_run,
    ".venv/bin/python manage.py import_corpus demo/corpus --name demo": import_corpus,
    ".venv/bin/python manage.py createsuperuser": create_superuser,
    "export": production_settings,
} | {
    line: science_command(line)
    for line in (
        ".venv/bin/python -m evaluation score --scores scores --trials trials --bootstrap 1000 --det det.svg",
        ".venv/bin/python -m evaluation pitch original anonymised --csv pitch.csv",
        ".venv/bin/python -m evaluation verify results",
        ".venv/bin/python -m evaluation compare results/result_for_rank_a results/result_for_rank_b",
        ".venv/bin/python -m evaluation list",
    )
}


def documented_commands() -> set[str]:
    lines = [line.split("  #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return {"export" if line.startswith("export ") else line for line in lines if line}


def test_each_documented_command_is_run_here():
    assert documented_commands() == set(COMMANDS)


@pytest.mark.parametrize("trial", COMMANDS.values(), ids=COMMANDS.keys())
def test_documented_command_does_what_it_says(trial, tmp_path):
    if not (ROOT / ".venv").is_dir():
        pytest.skip("the documented commands use .venv, which make test sets up")
    trial(tmp_path)


def run_code(code: str, folder: Path, where: Path) -> list[float]:
    """The numbers that a piece of documented code prints."""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=where,
        env=environment(folder, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return [float(word) for word in answer.stdout.split()]


def test_documented_code_for_score_files_runs_in_under_five_lines(tmp_path):
    code, _ = blocks("python")
    write_science_files(tmp_path)
    assert len([line for line in code.splitlines() if line]) < 5
    measured = measure_scores(tmp_path / "scores", tmp_path / "trials")
    assert run_code(code, tmp_path, tmp_path) == [measured.kaldi_eer, measured.min_cllr]
    assert (tmp_path / "det.pdf").read_bytes().startswith(b"%PDF")


def test_documented_code_for_an_anonymiser_runs(tmp_path):
    _, code = blocks("python")
    [rho] = run_code(code, tmp_path, ROOT)
    assert 0 < rho < 1


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_lists_its_targets(tmp_path):
    listed = run("make", tmp_path)
    for target in ("demo", "run", "test", "lint", "bench", "clean"):
        assert f"make {target}" in listed
