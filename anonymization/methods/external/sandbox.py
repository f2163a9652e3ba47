"""Runs one's own program, or somebody else's without network, without credentials, within limits.

Somebody else's program runs in bubblewrap: it reads the system's folders, its interpreter and its own folder, writes
into its work folder, and sees no other file, no environment but a small clean one, and no process outside. `supervisor`
is the process that starts and watches it; nothing here needs privileges. Sizes are in MiB (`_mb`), durations in
seconds (`_s`).
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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from anonymization.methods.contract import MethodError

PATH = "/usr/local/bin:/usr/bin:/bin"
SHOWN_LINES = 4
SHOWN_CHARACTERS = 200
_ASK_EVERY_S = 0.2
_ENDING_S = 40.0
_KEPT_OF_PRINTED = 64 * 1024

# What programs of any kind need: no secrets lie there (of /etc the parts that hold none).
_ETC = (
    "alternatives fonts group hosts java ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime login.defs magic "
    "mime.types nsswitch.conf OpenCL os-release passwd ssl/certs ssl/openssl.cnf timezone"
)
_ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/sys/devices/system")
SYSTEM_FOLDERS = (*_ROOTS, *(f"/etc/{name}" for name in _ETC.split()))
_GPU_FOLDERS = ("/sys/bus/pci", "/sys/class/drm", "/sys/devices", "/sys/module/nvidia", "/etc/nvidia", "/etc/vulkan")
_GPU_DEVICES = ("/dev/dri", "/dev/kfd")

# Namespaces of its own for processes, network, users, names and messages; no privilege, no namespaces within, no
# variable of bubblewrap itself.
_ALONE = "--unshare-user --unshare-all --disable-userns --cap-drop ALL --new-session --die-with-parent --clearenv"
_SETTINGS_OF_NAMESPACES = (  # which forbids namespaces of users, at which value, and which one allows them
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)


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

    arguments: the program and what it is told. folder: its own, which it may read. work: read, too, and removed with
    what is in it should this process die. reads: further files and folders that it may read. start: where it starts,
    None for `folder`.
    stdin, stdout: files; without `stdout` its output is kept with its errors. own_variables: added to its environment.
    """

    arguments: Sequence[str]
    folder: Path
    work: Path
    reads: tuple[Path, ...] = ()
    start: Path | None = None
    stdin: Path | None = None
    stdout: Path | None = None
    limits: CommandLimits = field(default_factory=CommandLimits)
    needs_gpu: bool = False
    threads: int = 1
    own_variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> Path:
        """Return the folder of `work` that it may write: one, so that files can be moved in it."""
        return self.work / "written"

    @property
    def home(self) -> Path:
        """Return the folder for its temporary files."""
        return self.written / "home"


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
        """Return why it failed, with the last lines that it printed; empty where it did not."""
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
def explain_missing_bubblewrap() -> str:
    """Return why commands cannot be confined on this machine and what to do, a clause; empty where they can be."""
    if platform.system() != "Linux":
        return f"commands are confined on Linux only, this is {platform.system()}"
    if shutil.which("bwrap", path=PATH) is None:
        return "bubblewrap is missing: install it, on Debian and Ubuntu with apt-get install bubblewrap"
    words = [*_list_bubblewrap((), None, shared_mb=1), "--", "/bin/sh", "-c", ":"]
    tried = subprocess.run(words, env={"PATH": PATH}, capture_output=True, text=True, check=False)  # noqa: S603
    if tried.returncode == 0:
        return ""
    said = _printable(tried.stderr).removeprefix("bwrap: ") or f"exit code {tried.returncode}"
    if "--disable-userns" in said:
        return "bubblewrap 0.8 or newer is needed, this one is older: install a newer one"
    remedy = "in a container, start it as “Containers” in the operator's manual says"
    for setting, forbidding, allowing in _SETTINGS_OF_NAMESPACES:
        with suppress(OSError):
            if Path("/proc/sys", setting.replace(".", "/")).read_text(encoding="ascii").strip() == forbidding:
                remedy = f"allow user namespaces by sysctl -w {setting}={allowing}"
                break
    return f"bubblewrap cannot make a sandbox ({said}): {remedy}"


def run_command(
    task: CommandCall, confinement: str, *, should_stop: Callable[[], bool] | None = None
) -> CommandOutcome:
    """Run a command as its description wants to have it confined, ``full``, ``limited`` or ``none``.

    Raises:
        MethodError: it is to be confined, which this machine cannot, or the program is not there.
    """
    if confinement == "none":
        return run_freely(task, os.environ, should_stop=should_stop)
    if confinement == "limited" and explain_missing_bubblewrap():
        return run_freely(task, _environment(task) | {"PATH": os.environ.get("PATH", PATH)}, should_stop=should_stop)
    return run_confined(task, should_stop=should_stop)


def run_freely(
    task: CommandCall, variables: Mapping[str, str], *, should_stop: Callable[[], bool] | None = None
) -> CommandOutcome:
    """Run a command as from a terminal, with its rights and these variables; of its limits the time alone counts."""
    started, end = time.monotonic(), "exit"
    with ExitStack() as opened:
        printed = opened.enter_context((task.work / "printed").open("w+b"))
        stdin = opened.enter_context((task.stdin or Path(os.devnull)).open("rb"))
        stdout = opened.enter_context(task.stdout.open("wb")) if task.stdout else printed
        try:
            process = subprocess.Popen(  # noqa: S603 - what it is for
                task.arguments,
                cwd=task.start or task.folder,
                env={**variables, "TMPDIR": str(task.home), "PYTHONUNBUFFERED": "1", **task.own_variables},
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


def run_confined(task: CommandCall, *, should_stop: Callable[[], bool] | None = None) -> CommandOutcome:
    """Run a command to its end, or to the first limit that it breaks; all its processes have ended then.

    Args:
        should_stop: asked several times a second; the command is ended once it says yes.

    Raises:
        MethodError: this machine cannot confine commands, or the program is not there.
    """
    if reason := explain_missing_bubblewrap():
        raise MethodError(f"Commands cannot be confined on this machine: {reason}.")
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
    """Return what it printed and complained of, and whether it was asked to stop."""
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
    reads = [*list_program_folders(executable), task.folder, task.work, *task.reads]
    words = _list_bubblewrap(reads, task.written, shared_mb=task.limits.memory_mb, needs_gpu=task.needs_gpu)
    # Not by the environment of bubblewrap itself, which would then load what the command wants to have preloaded.
    words += [word for name, value in _environment(task).items() for word in ("--setenv", name, value)]
    return {
        "parent": os.getpid(),
        "bubblewrap": [*words, "--chdir", str(task.start or task.folder)],
        "command": [str(executable), *task.arguments[1:]],
        "work": str(task.work),
        "written": str(task.written),
        "stdin": str(task.stdin) if task.stdin else None,
        "stdout": str(task.stdout) if task.stdout else None,
        "limits": asdict(task.limits),
        "needs_gpu": task.needs_gpu,
    }


def _list_bubblewrap(
    reads: Iterable[Path], written: Path | None, *, shared_mb: float, needs_gpu: bool = False
) -> list[str]:
    """Return bubblewrap with the options that make a sandbox of these folders and those of the system."""
    words = [shutil.which("bwrap", path=PATH) or "bwrap", *_ALONE.split()]
    # Read-only, because bubblewrap leaves /proc/sys writable for commands of root, and because files in the memory of
    # /dev and / would count nowhere.
    words += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    if needs_gpu:
        for device in (*_GPU_DEVICES, *map(str, Path("/dev").glob("nvidia*"))):
            words += ["--dev-bind-try", device, device]
    words += ["--size", str(int(shared_mb * 2**20)), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    folders = [*SYSTEM_FOLDERS, *(_GPU_FOLDERS if needs_gpu else ()), *reads]
    for place in _list_places(map(Path, folders)):
        words += ["--ro-bind", str(place), str(place)]
    if written is not None:
        words += ["--bind", str(written), str(written)]
    return [*words, "--remount-ro", "/"]


def _list_places(paths: Iterable[Path]) -> list[Path]:
    """Return under which names these files and folders are to be seen, without those within another one.

    A link is seen under its own name, as what it leads to, which is seen in its own place too: other links lead there.
    """
    places: list[Path] = []
    for place in sorted({each for path in paths if path.exists() for each in (path, path.resolve())}):
        if not any(place.is_relative_to(outer) for outer in places):
            places.append(place)
    return places


def _environment(task: CommandCall) -> dict[str, str]:
    """Nothing is handed on: the environment of the portal holds its secrets."""
    home = str(task.home)
    variables = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home, "USER": "anonymizer"}
    variables |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    variables |= {"NUMBA_CACHE_DIR": home, "MPLCONFIGDIR": home, "XDG_CACHE_HOME": home}
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        variables[f"{library}_NUM_THREADS"] = str(task.threads)
    if task.needs_gpu and "CUDA_VISIBLE_DEVICES" in os.environ:
        variables["CUDA_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    return variables | dict(task.own_variables)


def find_program(name: str, folder: Path) -> Path:
    """Return the program of a command: by its name in the system's folders, else by its path, seen from the folder.

    Raises:
        MethodError: there is none that may be run.
    """
    found = shutil.which(name, path=PATH) if "/" not in name else str(folder / name)
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        where = f"in {PATH}" if "/" not in name else f"at {folder / name}"
        raise MethodError(f'There is no program "{name}" {where} that may be run. Install it, or fix the command.')
    return Path(found)


def list_program_folders(program: Path) -> tuple[Path, ...]:
    """Return what a program needs to be read: itself, and for an interpreter of Python what is installed with it."""
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
    """Return the end of what a program printed, as the second part of a sentence; empty where it printed nothing."""
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
