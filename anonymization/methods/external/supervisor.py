"""The process between the portal and a confined command: starts it, watches its limits, ends all that it started.

It is a process of its own because restrictions are set between fork and exec, which a program with threads cannot do
safely, and because orphans of the command must have a parent that ends them. It reads a plan (JSON, `sandbox` writes
it) on its standard input, writes a report (JSON) on its standard output, and imports the standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from anonymization.methods.external import confinement, leftovers

KEPT_OF_ERRORS = 64 * 1024
LOOK_EVERY_S = 0.1
MEASURE_FILES_EVERY_S = 0.5
GRACE_S = 2.0  # for what a command leaves running when it ends, such as the trackers of multiprocessing
MOST_OPEN_FILES = 1024  # of a process
LONGEST_ENDING_S = 30.0  # a process that waits for a broken disk cannot be ended
MB = 1 << 20

_PR_SET_CHILD_SUBREAPER, _PR_SET_PDEATHSIG, _PR_CAPBSET_DROP = 36, 1, 24
_CAPABILITY_VERSION_3 = 0x20080522


class CommandSupervisor:
    """One run of one command; `report` is what becomes of it.

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
        self.main = 0
        self.status: int | None = None
        self.stopped = False
        self.started_at = self.measured_at = time.monotonic()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)

    def _stop(self, *_: object) -> None:
        self.stopped = True

    def run(self) -> dict[str, Any]:
        """Start the command, wait until it ends or breaks a limit, end the rest; the report."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        output, errors = os.pipe()
        refusal, refused = os.pipe()
        self.main = os.fork()
        if self.main == 0:
            _become_command(self.plan, errors, refused)
        os.close(errors)
        os.close(refused)
        os.set_blocking(output, False)
        reason = b""
        while chunk := os.read(refusal, 4096):  # until exec closes it
            reason += chunk
        self.reason = reason.decode(errors="replace")
        pins = confinement.pin_own_files(self.main)
        end = "refused" if reason else self._watch(output)
        end_descendants()
        for pin in pins:
            os.close(pin)
        self._read(output)
        return self._report(end)

    def _report(self, end: str) -> dict[str, Any]:
        status = self.status
        if end == "exit" and status is not None and os.WIFSIGNALED(status):
            end, status = "signal", os.WTERMSIG(status)
        elif status is not None:
            status = os.waitstatus_to_exitcode(status)
        return {
            "end": end,
            "status": status,
            "reason": self.reason,
            "errors": bytes(self.tail).decode(errors="replace"),
            "cut": self.printed > len(self.tail),
            "peak_mb": self.peak / MB,
            "wall_s": time.monotonic() - self.started_at,
        }

    def _watch(self, output: int) -> str:
        ended_at = looked_at = 0.0
        while True:
            readable, _, _ = select.select([output], [], [], LOOK_EVERY_S / 2)
            if readable and not self._read(output):
                time.sleep(LOOK_EVERY_S / 2)  # closed by the command, which may go on
            now = time.monotonic()
            self._reap()
            if self.status is not None:
                ended_at = ended_at or now
                if not list_descendants():
                    return self._broken_limit([], now) or "exit"
                if now - ended_at > GRACE_S:
                    return "left-running"
            if now - looked_at >= LOOK_EVERY_S or self.stopped:
                looked_at = now
                if broken := self._broken_limit(list_descendants(), now):
                    return broken

    def _broken_limit(self, running: list[int], now: float) -> str:
        if self.stopped or os.getppid() != self.plan["parent"]:
            return "stopped"
        if now - self.started_at > self.limits["time_limit_s"]:
            return "time"
        if len(running) > self.limits["processes"]:
            return "processes"
        if not running or now - self.measured_at >= MEASURE_FILES_EVERY_S:
            self.measured_at = now
            try:
                written, largest = self.plan["write"], int(self.limits["file_size_mb"] * MB)
                disk, self.buffers = leftovers.measure_held(running, written, largest)
                disk += leftovers.measure_folders(written)
            except RuntimeError as error:
                self.reason = str(error)
                return "unmeasured"
            if disk > self.limits["disk_mb"] * MB:
                return "disk"
        most = self.limits["memory_mb"] * MB
        memory = self.buffers + leftovers.measure_memory(running, confinement.SHARED_MEMORY, most - self.buffers)
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

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            if process == self.main:
                self.status = status


def list_descendants() -> list[int]:
    """All processes below this one that still run, whatever session or group they are in."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            state, parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(process.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_descendants() -> None:
    """End them all; those that they start meanwhile come to this process and are ended in the next round."""
    give_up_at = time.monotonic() + LONGEST_ENDING_S
    while (running := list_descendants()) and time.monotonic() < give_up_at:
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for process in running:
                with suppress(ProcessLookupError):
                    os.kill(process, signal_number)
        _wait_for_some()
        time.sleep(0.01)
    _wait_for_some()


def _wait_for_some() -> None:
    """Reap who has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _become_command(plan: dict[str, Any], errors: int, refused: int) -> NoReturn:
    """In the forked child: confine itself, then become the command. Says why on `refused` where it cannot."""
    channel = refused
    try:
        stdin = os.open(plan["stdin"] or os.devnull, os.O_RDONLY)
        stdout = os.open(plan["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if plan["stdout"] else errors
        for source, target in ((stdin, 0), (stdout, 1), (errors, 2)):
            os.dup2(source, target)
        channel = os.dup2(refused, 3, inheritable=False)
        os.closerange(4, 1 << 16)
        os.setsid()
        os.umask(0o077)
        os.chdir(plan["folder"])
        _settle(plan)
        _confine(plan)
        os.execve(plan["executable"], plan["argv"], plan["environment"])  # noqa: S606 - what this module is for
    except BaseException as error:  # nothing may go on in the code of the parent
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        os.write(channel, reason.encode()[:4096])
    os._exit(127)


def _settle(plan: dict[str, Any]) -> None:
    """Limits of the kernel, a low priority, and the first place when memory runs out."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    limits = plan["limits"]
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, int(limits["file_size_mb"] * MB))
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
    if not plan["needs_gpu"]:
        # RLIMIT_AS would count what libraries only reserve, and even this counts the stacks of threads: so it is wide,
        # and only keeps a command from filling the memory between two looks of the watch, which is exact.
        _limit(resource.RLIMIT_DATA, int((2 * limits["memory_mb"] + 1024) * MB))
    if os.getuid():  # the kernel counts the threads of all processes of the user, and exempts root
        _limit(resource.RLIMIT_NPROC, _threads_of_user() + 1024 + int(limits["processes"]))
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


def _confine(plan: dict[str, Any]) -> None:
    rules = [(path, confinement.READ) for path in [*plan["read"], *confinement.list_own_files(os.getpid())]]
    rules += [(path, confinement.WRITE) for path in plan["write"]]
    rules += [(path, confinement.DEVICE) for path in plan["devices"]]
    # A new one would hide files of the command that lie there.
    is_used = any(Path(confinement.SHARED_MEMORY) in Path(path).parents for path in [*plan["read"], *plan["write"]])
    if plan["landlock"] and not is_used and confinement.give_shared_memory(plan["limits"]["memory_mb"]):
        rules.append((confinement.SHARED_MEMORY, confinement.WRITE))
    _drop_capabilities()
    if plan["landlock"]:
        confinement.close_folders(rules)
    if plan["seccomp"]:
        confinement.forbid_calls(own_signals_only=confinement.find_landlock() < confinement.LANDLOCK_OF_SIGNALS)


def _drop_capabilities() -> None:
    """Give up what root may do beyond owning its files, now and after exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to who has none to lose
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(header), ctypes.byref(none)):
        raise OSError(ctypes.get_errno(), "capabilities could not be given up")


def main() -> None:
    """Read the plan, run it, write the report; nobody to report to means to leave nothing behind."""
    plan = json.load(sys.stdin)
    report = CommandSupervisor(plan).run()
    if os.getppid() != plan["parent"]:
        leftovers.remove_folder(plan["work"], last=[Path(folder).name for folder in plan["write"]])
        return
    json.dump(report, sys.stdout)
    sys.stdout.flush()
