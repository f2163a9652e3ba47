"""The process between the portal and a confined command: starts it in bubblewrap, watches its limits, ends all of it.

It is a process of its own so that it can remove the files of a command whose portal was killed, and set limits between
fork and exec, which a program with threads cannot do safely. It reads a plan (JSON, `sandbox` writes it) on its
standard input, writes a report (JSON) on its standard output, and imports the standard library only.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from anonymization.methods.external import leftovers

KEPT_OF_ERRORS = 64 * 1024
LOOK_EVERY_S = 0.1
MEASURE_FILES_EVERY_S = 0.5
GRACE_S = 2.0  # for what a command leaves running when it ends, such as the trackers of multiprocessing
MOST_OPEN_FILES = 1024  # of a process
LONGEST_ENDING_S = 30.0  # a process that waits for a broken disk cannot be ended
MB = 1 << 20

_FIRST, _COMMAND = "1", "2"  # processes as the sandbox numbers them; the first is bubblewrap's own
_SIGNALLED = 128  # the exit code of a command that a signal ended is the number of the signal and this


class CommandSupervisor:
    """One run of one command; `run` returns what becomes of it.

    The report: `end` is one of exit, signal, time, memory, processes, disk, unmeasured, stopped, left-running and
    refused; `status` the exit code or the signal; `reason` why it was not measured or was refused; `errors` the last
    that it printed; `cut` whether that was more; `peak_mb`, `wall_s`.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.limits: dict[str, float] = plan["limits"]
        self.tail = bytearray()
        self.printed = 0
        self.peak = self.buffers = 0
        self.reason = ""
        self.root = Path()  # of the sandbox, seen from here
        self.stopped = False
        self.started_at = self.measured_at = time.monotonic()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def run(self) -> dict[str, Any]:
        """Start the command, wait until it ends or breaks a limit, end the rest; return the report."""
        output, errors = os.pipe()
        states, state = os.pipe()
        gate, opener = os.pipe()
        options = ["--json-status-fd", str(state), "--block-fd", str(gate), "--"]
        with ExitStack() as files:
            stdin = files.enter_context(Path(self.plan["stdin"] or os.devnull).open("rb"))
            stdout = files.enter_context(Path(self.plan["stdout"]).open("wb")) if self.plan["stdout"] else errors
            bubblewrap = subprocess.Popen(  # noqa: S603 - what this module is for
                [*self.plan["bubblewrap"], *options, *self.plan["command"]],
                stdin=stdin,
                stdout=stdout,
                stderr=errors,
                pass_fds=(state, gate),
                preexec_fn=self._settle,
            )
        for descriptor in (errors, state, gate):
            os.close(descriptor)
        os.set_blocking(output, False)
        end = "exit"
        with os.fdopen(states) as lines:
            if started := lines.readline():  # else it could not make namespaces
                with suppress(ProcessLookupError):  # else it could not fill them
                    end = self._run_sandbox(bubblewrap, json.loads(started)["child-pid"], opener, output)
            else:
                os.close(opener)
            bubblewrap.wait()
            code = re.search(r'"exit-code": (\d+)', lines.read())
        self._read(output)
        return self._report(end, int(code[1]) if code else None)

    def _run_sandbox(self, bubblewrap: subprocess.Popen[bytes], first: int, opener: int, output: int) -> str:
        """Let the command start, watch it and end the sandbox; return how it ended."""
        try:
            ending = os.pidfd_open(first)
            self.root = Path(f"/proc/{first}/root")
            while not (self._is_set_up() or select.select([ending], [], [], 0.001)[0]):
                pass
            # It would end with the command, and end with it what the command left running: that is to be told.
            bubblewrap.send_signal(signal.SIGSTOP)
        finally:
            os.close(opener)
        end = self._watch(output, ending)
        if end != "exit":
            signal.pidfd_send_signal(ending, signal.SIGKILL)  # the kernel ends all others with the first process
            select.select([ending], [], [], LONGEST_ENDING_S)
        bubblewrap.send_signal(signal.SIGCONT if end == "exit" else signal.SIGKILL)
        return end

    def _is_set_up(self) -> bool:
        with suppress(OSError):
            return (self.root / "proc").stat().st_dev != Path("/proc").stat().st_dev
        return False

    def _report(self, end: str, code: int | None) -> dict[str, Any]:
        if end == "exit" and code is None:
            end = "refused"
            self.reason = re.sub(r"bwrap: (?:execvp .*: )?", "", self.tail.decode(errors="replace").strip())
            self.tail.clear()
        elif end == "exit" and code is not None and code - _SIGNALLED in set(signal.Signals):
            end, code = "signal", code - _SIGNALLED
        return {
            "end": end,
            "status": code,
            "reason": self.reason,
            "errors": bytes(self.tail).decode(errors="replace"),
            "cut": self.printed > len(self.tail),
            "peak_mb": self.peak / MB,
            "wall_s": time.monotonic() - self.started_at,
        }

    def _watch(self, output: int, ending: int) -> str:
        ended_at = looked_at = 0.0
        waiting = [ending, output]
        while True:
            readable, _, _ = select.select(waiting, [], [], LOOK_EVERY_S / 2)
            if output in readable and not self._read(output):
                waiting.remove(output)  # closed by the command, which may go on
            now = time.monotonic()
            if ending in readable:
                return self._broken_limit([], now) or "exit"
            if now - looked_at >= LOOK_EVERY_S or self.stopped:
                looked_at = now
                running = self._list_running()
                if running and _COMMAND not in (process.name for process in running):
                    ended_at = ended_at or now
                    if now - ended_at > GRACE_S:
                        return "left-running"
                if broken := self._broken_limit(running, now):
                    return broken

    def _list_running(self) -> list[Path]:
        """Return the folders in /proc of the processes that run in the sandbox."""
        running = []
        with suppress(OSError):  # all have ended
            for folder in (self.root / "proc").iterdir():
                if folder.name.isdecimal() and folder.name != _FIRST:
                    with suppress(OSError):
                        if (folder / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z":
                            running.append(folder)
        return running

    def _broken_limit(self, running: list[Path], now: float) -> str:
        if self.stopped or os.getppid() != self.plan["parent"]:
            return "stopped"
        if now - self.started_at > self.limits["time_limit_s"]:
            return "time"
        if len(running) > self.limits["processes"]:
            return "processes"
        if not running or now - self.measured_at >= MEASURE_FILES_EVERY_S:
            self.measured_at = now
            try:
                written, largest = self.plan["written"], int(self.limits["file_size_mb"] * MB)
                disk, self.buffers = leftovers.measure_held(running, written, largest)
                disk += leftovers.measure_folder(written)
            except RuntimeError as error:
                self.reason = str(error)
                return "unmeasured"
            if disk > self.limits["disk_mb"] * MB:
                return "disk"
        most = self.limits["memory_mb"] * MB
        memory = self.buffers + leftovers.measure_memory(running, self.root / "dev/shm", most - self.buffers)
        self.peak = max(self.peak, memory)
        return "memory" if memory > most else ""

    def _read(self, output: int) -> bool:
        """Keep the end of what the command printed. False once nobody can print any more."""
        for _ in range(64):  # then look at the limits again
            try:
                chunk = os.read(output, KEPT_OF_ERRORS)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.printed += len(chunk)
            self.tail += chunk
            del self.tail[:-KEPT_OF_ERRORS]
        return True

    def _settle(self) -> None:
        """Set limits of the kernel, a low priority, and the first place when memory runs out."""
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, int(self.limits["file_size_mb"] * MB))
        _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
        if not self.plan["needs_gpu"]:
            # RLIMIT_AS would count what libraries only reserve, and even this counts the stacks of threads: so it is
            # wide, and only keeps a command from filling the memory between two looks of the watch, which is exact.
            _limit(resource.RLIMIT_DATA, int((2 * self.limits["memory_mb"] + 1024) * MB))
        if os.getuid():  # the kernel counts the threads of all processes of the user, and exempts root
            _limit(resource.RLIMIT_NPROC, _threads_of_user() + 1024 + int(self.limits["processes"]))
        os.nice(5)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _limit(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(what, (value, value))


def _threads_of_user() -> int:
    count = 0
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdecimal() and process.stat().st_uid == os.getuid():
                count += sum(1 for _ in (process / "task").iterdir())
    return count


def main() -> None:
    """Read the plan, run it, write the report; nobody to report to means to leave nothing behind."""
    os.umask(0o077)
    plan = json.load(sys.stdin)
    report = CommandSupervisor(plan).run()
    if os.getppid() != plan["parent"]:
        leftovers.remove_folder(plan["work"], last=Path(plan["written"]).name)
        return
    json.dump(report, sys.stdout)
    sys.stdout.flush()
