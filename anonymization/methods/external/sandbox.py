"""Runs one's own program, or somebody else's without network, without credentials, within limits.

Somebody else's program reads the system's folders, its interpreter and its own folder, writes into its work folder, and
sees no other file, no environment but a small clean one, and no process outside. `supervisor` is the process that
starts and watches it; nothing here needs privileges. Sizes are in MiB (`_mb`), durations in seconds (`_s`).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from anonymization.methods.contract import MethodError
from anonymization.methods.external import confinement

PATH = "/usr/local/bin:/usr/bin:/bin"
SHOWN_LINES = 4
SHOWN_CHARACTERS = 200
_ASK_EVERY_S = 0.2
_ENDING_S = 40.0
_KEPT_OF_PRINTED = 64 * 1024

SYSTEM_FOLDERS = tuple(confinement.OPENED["system_folders"])


@dataclass(frozen=True)
class CommandLimits:
    """What one call of a command may use.

    time_limit_s: by the clock. memory_mb: of all its processes. file_size_mb: of each file. disk_mb: of all files that
    it writes. processes: how many at a time.
    """

    time_limit_s: float = 3600.0
    memory_mb: float = 4096.0
    file_size_mb: float = 1024.0
    disk_mb: float = 8192.0
    processes: float = 64.0


@dataclass(frozen=True)
class CommandCall:
    """One call of a command.

    arguments: the program and what it is told. folder: its own, which it may read. work: removed with what is in it
    should this process die. writes: folders that it may write, the last one for temporary files. reads: further files
    and folders that it may read. start: where it starts, None for `folder`.
    stdin, stdout: files; without `stdout` its output is kept with its errors. own_variables: added to its environment.
    """

    arguments: Sequence[str]
    folder: Path
    work: Path
    writes: tuple[Path, ...]
    reads: tuple[Path, ...] = ()
    start: Path | None = None
    stdin: Path | None = None
    stdout: Path | None = None
    limits: CommandLimits = field(default_factory=CommandLimits)
    needs_gpu: bool = False
    threads: int = 1
    own_variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandOutcome:
    """How a command ended.

    end: exit, signal, time, memory, processes, disk, unmeasured, stopped, left-running or refused (it was never
    started). status: exit code or signal. reason: why it was not measured or not started. errors: the last of what it
    printed, `cut` where it was more.
    """

    end: str
    status: int | None
    reason: str
    errors: str
    cut: bool
    peak_mb: float
    wall_s: float

    def failure(self, limits: CommandLimits) -> str:
        """Why it failed, with the last lines that it printed; empty where it did not."""
        if self.end == "exit" and self.status == 0:
            return ""
        reasons = {
            "exit": f"It ended with exit code {self.status}, expected 0.",
            "signal": f"It was ended by {_signal_name(self.status)}.",
            "time": f"It ran longer than its limit of {limits.time_limit_s:g} s and was ended.",
            "memory": f"It used more memory than its limit of {limits.memory_mb:g} MB and was ended.",
            "processes": f"It ran more than its limit of {limits.processes:g} processes at a time and was ended.",
            "disk": f"It wrote more files than its limit of {limits.disk_mb:g} MB and was ended.",
            "unmeasured": f"It was ended because what it wrote cannot be measured: {self.reason}.",
            "stopped": "It was ended because the run was stopped.",
            "left-running": "It ended while processes that it had started still ran; they were ended.",
            "refused": f"It could not be started: {self.reason}.",
        }
        if self.end == "signal" and self.status == signal.SIGXFSZ:
            reasons["signal"] = f"It wrote a file larger than its limit of {limits.file_size_mb:g} MB and was ended."
        return f"{reasons[self.end]}{last_lines(self.errors, cut=self.cut)}"


@cache
def find_missing_protections() -> tuple[str, ...]:
    """What this machine cannot keep a command from, a clause each; empty where it can be confined in full."""
    if platform.system() != "Linux":
        return (f"commands are confined on Linux only, this is {platform.system()}",)
    lacking = []
    if reason := confinement.explain_missing_filter():
        lacking.append(f"the network stays open to it ({reason})")
    if (found := confinement.find_landlock()) < confinement.LOWEST_LANDLOCK:
        lacking.append(
            "files that this user may read or write stay open to it "
            f"(Landlock {confinement.LOWEST_LANDLOCK} is needed, Linux 6.2 or newer with it switched on; "
            f"found {f'version {found}' if found else 'none'})"
        )
    return tuple(lacking)


def run_command(
    task: CommandCall, confinement: str, *, should_stop: Callable[[], bool] | None = None
) -> CommandOutcome:
    """Run a command as its description wants to have it confined, ``full``, ``limited`` or ``none``.

    Raises:
        MethodError: this machine lacks a protection that it wants, or the program is not there.
    """
    if confinement == "none" or (confinement == "limited" and platform.system() != "Linux"):
        return run_freely(task, should_stop=should_stop)
    return run_confined(task, allow_limited=confinement == "limited", should_stop=should_stop)


def run_freely(task: CommandCall, *, should_stop: Callable[[], bool] | None = None) -> CommandOutcome:
    """Run one's own command as from a terminal, with its rights and variables; of its limits the time alone counts."""
    started, end = time.monotonic(), "exit"
    with ExitStack() as opened:
        printed = opened.enter_context((task.work / "printed").open("w+b"))
        stdin = opened.enter_context((task.stdin or Path(os.devnull)).open("rb"))
        stdout = opened.enter_context(task.stdout.open("wb")) if task.stdout else printed
        try:
            process = subprocess.Popen(  # noqa: S603 - what it is for
                task.arguments,
                cwd=task.start or task.folder,
                env=os.environ | {"TMPDIR": str(task.writes[-1]), "PYTHONUNBUFFERED": "1"} | dict(task.own_variables),
                stdin=stdin,
                stdout=stdout,
                stderr=printed,
                start_new_session=True,  # it is stopped by us, and not by Ctrl-C
            )
        except OSError as error:
            return CommandOutcome("refused", None, error.strerror or str(error), "", cut=False, peak_mb=0.0, wall_s=0.0)
        try:
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ASK_EVERY_S)
                    break
                if should_stop is not None and should_stop():
                    end = "stopped"
                elif time.monotonic() - started > task.limits.time_limit_s:
                    end = "time"
                if end != "exit":
                    break
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        size = printed.seek(0, os.SEEK_END)
        printed.seek(max(0, size - _KEPT_OF_PRINTED))
        errors = printed.read().decode(errors="replace")
    if end == "exit" and status < 0:
        end, status = "signal", -status
    wall_s = time.monotonic() - started
    return CommandOutcome(end, status, "", errors, cut=size > _KEPT_OF_PRINTED, peak_mb=0.0, wall_s=wall_s)


def run_confined(
    task: CommandCall, *, allow_limited: bool = False, should_stop: Callable[[], bool] | None = None
) -> CommandOutcome:
    """Run a command to its end, or to the first limit that it breaks; all its processes have ended then.

    Args:
        allow_limited: run it even where `find_missing_protections` names some, with those that there are.
        should_stop: asked several times a second; the command is ended once it says yes.

    Raises:
        MethodError: this machine lacks a protection, or the program is not there.
    """
    if find_missing_protections() and not allow_limited:
        raise MethodError(f"Commands cannot be confined on this machine: {'; '.join(find_missing_protections())}.")
    plan = json.dumps(_plan(task))
    process = subprocess.Popen(  # noqa: S603 - the program of the portal itself
        [sys.executable, "-I", "-S", "-c", _SUPERVISE, str(Path(__file__).resolve().parents[3])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": PATH, "LANG": "C.UTF-8"},
        cwd="/",
        text=True,
        start_new_session=True,
    )
    try:
        printed, complaints, is_stopped = _wait(process, plan, should_stop)
    finally:
        _end(process)
    if is_stopped and process.returncode == -signal.SIGTERM:  # before it watched, so nothing was started
        return CommandOutcome("stopped", None, "", "", cut=False, peak_mb=0.0, wall_s=0.0)
    if process.returncode or not printed:
        raise MethodError(f"The process that watches a command ended unexpectedly.{last_lines(complaints)}")
    return CommandOutcome(**json.loads(printed))


_SUPERVISE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from anonymization.methods.external.supervisor import main; main()"
)


def _wait(process: subprocess.Popen[str], plan: str, should_stop: Callable[[], bool] | None) -> tuple[str, str, bool]:
    """What it printed and complained of, and whether it was asked to stop."""
    asked = False
    given: str | None = plan
    while True:
        try:
            return *process.communicate(given, timeout=_ASK_EVERY_S), asked
        except subprocess.TimeoutExpired:
            given = None  # it was handed over at the first call
        if not asked and should_stop is not None and should_stop():
            asked = True
            process.terminate()


def _end(process: subprocess.Popen[str]) -> None:
    """On an exception of ours (a time limit of the job, Ctrl-C): the watching process ends the command, then itself."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _plan(task: CommandCall) -> dict[str, object]:
    executable = find_program(task.arguments[0], task.folder)
    reads = [*SYSTEM_FOLDERS, *list_program_folders(executable), task.folder, task.work, *task.reads]
    opened = confinement.OPENED
    devices = [*opened["devices"]]
    if task.needs_gpu:
        reads += opened["gpu_folders"]
        devices += [*opened["gpu_devices"], *(str(path) for path in Path("/dev").glob("nvidia*"))]
    return {
        "parent": os.getpid(),
        "executable": str(executable),
        "argv": [str(executable), *task.arguments[1:]],
        "environment": _environment(task),
        "folder": str(task.start or task.folder),
        "work": str(task.work),
        "read": [str(path) for path in reads],
        "write": [str(path) for path in task.writes],
        "devices": devices,
        "stdin": str(task.stdin) if task.stdin else None,
        "stdout": str(task.stdout) if task.stdout else None,
        "limits": asdict(task.limits),
        "needs_gpu": task.needs_gpu,
        "landlock": confinement.find_landlock() > 0,
        "seccomp": not confinement.explain_missing_filter(),
    }


def _environment(task: CommandCall) -> dict[str, str]:
    """Nothing is handed on: the environment of the portal holds its secrets."""
    home = str(task.writes[-1])
    variables = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "USER": "anonymizer"}
    variables |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    variables |= {"NUMBA_CACHE_DIR": home, "MPLCONFIGDIR": home, "XDG_CACHE_HOME": home}
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        variables[f"{library}_NUM_THREADS"] = str(task.threads)
    if task.needs_gpu and "CUDA_VISIBLE_DEVICES" in os.environ:
        variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    return variables | dict(task.own_variables)


def find_program(name: str, folder: Path) -> Path:
    """The program of a command: by its name in the system's folders, else by its path, seen from the folder.

    Raises:
        MethodError: there is none that may be run.
    """
    found = shutil.which(name, path=PATH) if "/" not in name else str(folder / name)
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        where = f"in {PATH}" if "/" not in name else f"at {folder / name}"
        raise MethodError(f'There is no program "{name}" {where} that may be run. Install it, or fix the command.')
    return Path(found)


def list_program_folders(program: Path) -> tuple[Path, ...]:
    """What a program needs to be read: itself, and for an interpreter of Python what is installed with it."""
    found: list[Path] = []
    while True:
        found.append(program)
        prefix = program.parent.parent
        if (prefix / "conda-meta").is_dir():
            found.append(prefix)
        elif (prefix / "pyvenv.cfg").is_file() or any(prefix.glob("lib/python3*")):
            # Not the whole prefix: it may be the root of all, or a home folder's .local.
            found += [prefix / name for name in ("bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg")]
        if not program.is_symlink():
            return tuple(found)
        # One link after the other: those of a virtual environment lead to its base.
        program = Path(os.path.normpath(program.parent / program.readlink()))


def last_lines(text: str, *, cut: bool = False) -> str:
    """The end of what a program printed, as the second part of a sentence; empty where it printed nothing."""
    lines = [_printable(line) for line in text.splitlines() if line.strip(" ^~")]
    if not lines:
        return ""
    shown = " / ".join(lines[-SHOWN_LINES:])
    mark = "… " if cut or len(lines) > SHOWN_LINES or len(shown) > SHOWN_CHARACTERS else ""
    if len(lines[-1]) > SHOWN_CHARACTERS:  # its beginning names the error
        return f" The last that it printed: {lines[-1][:SHOWN_CHARACTERS]} …"
    return f" The last that it printed: {mark}{shown[-SHOWN_CHARACTERS:]}"


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()


def _signal_name(number: int | None) -> str:
    try:
        return f"signal {signal.Signals(number or 0).name}"
    except ValueError:
        return f"signal {number}"
