"""``run`` continued: after Ctrl-C, after ``kill -9``, and where the folder holds something else."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anonymization.cli import records
from speech.audio.files import inspect_audio
from tests.anonymization.cli.shell import B2, DEMO, ROOT, contents, start, write_speech
from tests.evaluation.commands import refusal

# More than a quick machine anonymises before the test looks; the second is never anonymised whole.
LINKS = 30


@pytest.fixture
def many(tmp_path):
    return link(tmp_path, LINKS)


def link(tmp_path: Path, count: int) -> Path:
    """Links to a few recordings under many names, which takes a while to anonymise."""
    recordings = sorted(DEMO.glob("d0[1-4]/*.flac"))
    for number in range(count):
        path = recordings[number % len(recordings)]
        folder = tmp_path / "in" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{path.stem}-{number:04}.flac").symlink_to(path)
    return tmp_path / "in"


def wait_for_rows(out: Path, count: int) -> None:
    for _ in range(12000):
        journal = out / "anonymization.jsonl"
        if journal.exists() and journal.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    raise AssertionError("nothing was finished in four minutes")


def children_of(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def wait_for_end(processes: list[int]) -> None:
    for _ in range(9000):
        if not any(Path(f"/proc/{process}").exists() for process in processes):
            return
        time.sleep(0.02)
    raise AssertionError("worker processes outlived their parent")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system has no /proc")
def test_killed_run_is_continued_and_nothing_is_done_twice(shell, many, tmp_path):
    arguments = ("anonymize", *B2, many, tmp_path / "out", "--seed", 2)
    process = start(*arguments, "--jobs", 2)
    wait_for_rows(tmp_path / "out", 10)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL
    wait_for_end(workers)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.wav")}
    assert 10 <= len(written) < LINKS
    for path in written:
        assert inspect_audio(path).samples > 0
    journal = (tmp_path / "out/anonymization.jsonl").read_text().rpartition("\n")[0].splitlines()
    finished = {tmp_path / "out" / json.loads(line)["output"] for line in journal}
    answer = shell(*arguments)
    assert answer.code == 0
    assert f"{LINKS:,} finished" in answer.out
    assert f"{len(finished):,} of them by an earlier call" in answer.out
    assert {path: path.stat().st_mtime_ns for path in finished} == {path: written[path] for path in finished}
    shell("anonymize", *B2, many, tmp_path / "clean", "--seed", 2)
    again, clean = contents(tmp_path / "out"), contents(tmp_path / "clean")
    assert again.keys() == clean.keys()
    # The report says how many were kept, the record which code made them.
    told = {"report.json", "anonymization.json"}
    assert {name for name in again if again[name] != clean[name]} <= told


def test_output_that_was_cut_or_removed_is_made_again(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav", "a/z.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    before = contents(tmp_path / "out")
    (tmp_path / "out/a/x.wav").write_bytes((tmp_path / "out/a/x.wav").read_bytes()[:-100])
    (tmp_path / "out/a/y.wav").unlink()
    answer = shell(*arguments)
    assert "1 of them by an earlier call" in answer.out
    after = contents(tmp_path / "out")
    assert {name for name in before if before[name] != after[name]} == {"report.json"}


def test_changed_input_is_anonymised_again(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    before = contents(tmp_path / "out")
    (source / "a/x.wav").write_bytes((source / "a/y.wav").read_bytes())
    answer = shell(*arguments)
    assert "1 of them by an earlier call" in answer.out
    assert contents(tmp_path / "out")["a/x.wav"] == contents(tmp_path / "out")["a/y.wav"] == before["a/y.wav"]


def test_input_that_broke_leaves_no_output_of_before(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    (source / "a/x.wav").write_bytes(b"RIFF")
    assert shell(*arguments).code == 1
    assert [path.name for path in (tmp_path / "out").rglob("*.wav")] == ["y.wav"]


def test_originals_that_are_gone_are_told(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    (source / "a/x.wav").unlink()
    answer = shell(*arguments)
    assert answer.code == 0
    assert "1 of earlier calls whose originals are not there any more, such as a/x.wav" in answer.err


def test_line_that_a_kill_cut_costs_only_its_utterance(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav", "a/y.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    journal = tmp_path / "out/anonymization.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-40])
    (tmp_path / "out/a/.999.part").write_bytes(b"RIFF")
    answer = shell(*arguments)
    assert "1 of them by an earlier call" in answer.out
    assert journal.read_bytes() == whole
    assert not (tmp_path / "out/a/.999.part").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (("--seed", 3), "seed is 2 there and 3 now"),
        (("--seed", 2, "--option", "level=kept"), "options is"),
        (("--seed", 2, "--role", "enrolment", "--limit", 1), 'role is null there and "enrolment" now'),
    ],
)
def test_other_run_in_the_folder_is_refused(shell, tmp_path, changes, sentence):
    source = write_speech(tmp_path / "in", "a/x.wav")
    shell("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    before = contents(tmp_path / "out")
    assert sentence in refusal(shell("anonymize", *B2, source, tmp_path / "out", *changes))
    assert contents(tmp_path / "out") == before


def test_other_method_and_other_input_are_refused(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav")
    shell("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    other = shell("anonymize", "--method", "mcadams-2024", source, tmp_path / "out", "--seed", 2)
    assert 'method is "mcadams-2022" there and "mcadams-2024" now' in refusal(other)
    elsewhere = write_speech(tmp_path / "elsewhere", "a/x.wav")
    assert "source is" in refusal(shell("anonymize", *B2, elsewhere, tmp_path / "out", "--seed", 2))


def test_folder_that_another_process_writes_is_refused(shell, tmp_path):
    source = write_speech(tmp_path / "in", "a/x.wav")
    shell("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    with (tmp_path / "out/.anonymization.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = shell("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    assert "expected to be the only writer, found another process" in refusal(answer)


def test_folder_is_not_free_before_the_workers_of_a_killed_run_ended(shell, tmp_path, monkeypatch):
    """A process of its own stands for the worker: a lock on a byte is no obstacle to its holder."""
    source = write_speech(tmp_path / "in", "a/x.wav")
    arguments = ("anonymize", *B2, source, tmp_path / "out", "--seed", 2)
    shell(*arguments)
    code = (
        "import sys; from pathlib import Path; from anonymization.cli.records import hold_as_worker\n"
        "lock = hold_as_worker(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout.readline() == "held\n"
        monkeypatch.setattr(records, "_WAIT_FOR_WORKERS_S", 0.2)
        assert "expected to be the only writer, found another process" in refusal(shell(*arguments))
        worker.stdin.close()
        monkeypatch.undo()
        assert shell(*arguments).code == 0
