"""Work in a process of its own, within limits: what strangers send may make a reader hang, take all memory, or crash.

The child is a copy of the process that asks, so it costs no start; it must not touch what it cannot share, such as a
connection to the database. It ends with its parent, however that ends: at once on Linux, elsewhere at the latest with
its processor time. What it says comes as JSON, so that a child that was taken over cannot make its parent run anything.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import mmap
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from common.progress import ignore_progress

PR_SET_PDEATHSIG = 1
MOST_DEATHS = 3
_ASK_EVERY_S = 0.2
_READ_BYTES = 1 << 16
_MOST_FILES = 4096  # that are closed where the system knows no limit
_SLOTS, _SLOT_BYTES = 16, 512
T = TypeVar("T")
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ChildLimits:
    """What a child may use: processor time, memory beyond that of its parent, time by the clock."""

    cpu_s: float
    memory_bytes: int
    time_s: float


class How(StrEnum):
    """How a child ended without a result."""

    CPU = "it used more processor time than its limit"
    MEMORY = "it used more memory than its limit"
    TIME = "it did not end in time"
    DIED = "it died"


class ChildEnded(Exception):  # noqa: N818 - an outcome with a reason, not a defect
    """A child ended without a result: how, and what it looked at just then."""

    def __init__(self, how: How, places: list[str]) -> None:
        super().__init__(f"{how}{' at ' if places else ''}{', '.join(places)}")
        self.how, self.places = how, places

    def where(self, unknown: str) -> str:
        """Return the files that it looked at, or the given name where that is not known."""
        return ", ".join(self.places) or unknown


class Child:
    """What the work has of its process: a way to tell its parent something, and to note what it looks at."""

    def __init__(self, pipe: int, answers: int, places: mmap.mmap) -> None:
        self._pipe, self._places = pipe, places
        self._answers = open(answers, encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
        self._slots: dict[int, int] = {}
        self._lock = threading.Lock()

    def say(self, *message: Any) -> None:
        """Tell the parent something that JSON can hold."""
        self._send({"said": message})

    def ask(self, *question: Any) -> Any:
        """Return what the parent answers, which has what this process must not touch."""
        self._send({"asked": question})
        return json.loads(self._answers.readline())

    def look_at(self, name: str) -> None:
        """What this thread looks at from now on; an empty name for nothing. Cheap enough for each file."""
        with self._lock:
            slot = self._slots.setdefault(threading.get_ident(), len(self._slots) % _SLOTS)
        text = name.encode("utf-8", "replace")[: _SLOT_BYTES - 1]
        self._places[slot * _SLOT_BYTES : (slot + 1) * _SLOT_BYTES] = text.ljust(_SLOT_BYTES, b"\0")

    def run(self, work: Callable[[Child], Any]) -> None:
        """Do the work and send what comes of it."""
        try:
            self._send({"result": work(self)})
        except MemoryError:
            self._send({"ended": How.MEMORY.name})
        except OSError as error:
            self._send({"os": [error.errno, error.strerror or str(error)]})
        except BaseException:
            self._send({"failed": traceback.format_exc()})

    def _send(self, message: dict[str, Any]) -> None:
        rest = memoryview(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        while rest:
            rest = rest[os.write(self._pipe, rest) :]


def run_in_child(
    work: Callable[[Child], Any],
    limits: ChildLimits,
    *,
    check: Callable[[], None] = lambda: None,
    hear: Callable[..., None] = ignore_progress,
    answer: Callable[..., Any] = ignore_progress,
) -> Any:
    """Return what the work returns, as JSON gives it back, from a process of its own.

    Args:
        work: may use threads; its process ends when it returns.
        check: called several times a second; the child is gone when it raises.
        hear: called with what the child says.
        answer: called with what it asks.

    Raises:
        ChildEnded: the child broke a limit or died.
        OSError: the work raised one, such as for a full disk.
        RuntimeError: it raised something else; a note has where.
    """
    places = mmap.mmap(-1, _SLOTS * _SLOT_BYTES)
    reading, telling = os.pipe()
    answers, answering = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        _be_child(work, limits, parent, (telling, answers), places)
    os.close(telling)
    os.close(answers)
    ended: int | None = None
    try:
        last = _listen(reading, answering, time.monotonic() + limits.time_s, (check, hear, answer))
        if last is None:
            ended = os.waitpid(child, 0)[1]
            is_over = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGXCPU
            last = {"ended": How.CPU.name if is_over else How.DIED.name}
    finally:
        os.close(reading)
        os.close(answering)
        if ended is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if "ended" in last:
        raise ChildEnded(How[last["ended"]], _read_places(places))
    if "os" in last:
        raise OSError(*last["os"])
    if "failed" in last:
        failure = RuntimeError(last["failed"].rstrip().rpartition("\n")[2])
        failure.add_note(last["failed"])
        raise failure
    return last["result"]


def try_until_third_death(attempt: Callable[[int], T], tell: Callable[[ChildEnded], None] = ignore_progress) -> T:
    """Return what an attempt returns: another follows where its child died or was not done in time, but no fourth.

    Args:
        attempt: takes how many ended before.
        tell: called with each end.

    Raises:
        ChildEnded: a child broke its limit of processor time or memory, which it would again, or the third one ended.
    """
    for deaths in range(MOST_DEATHS):
        try:
            return attempt(deaths)
        except ChildEnded as ended:
            tell(ended)
            if ended.how in (How.CPU, How.MEMORY) or deaths + 1 == MOST_DEATHS:
                raise
    raise AssertionError


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """In a new process, on Linux: get a signal when the thread that started it ends."""
    if _libc:
        _libc.prctl(PR_SET_PDEATHSIG, number)


def _listen(pipe: int, answering: int, ends: float, doing: tuple[Callable[..., Any], ...]) -> dict[str, Any] | None:
    """Return the last word of the child; None where it ended without one."""
    check, hear, answer = doing
    held = bytearray()
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    while True:
        check()
        if time.monotonic() > ends:
            return {"ended": How.TIME.name}
        if not waiting.poll(1000 * _ASK_EVERY_S):
            continue
        if not (data := os.read(pipe, _READ_BYTES)):
            return None
        *lines, last = data.split(b"\n")
        if lines:
            lines[0], held = bytes(held) + lines[0], bytearray()
        held += last
        for line in lines:
            message: dict[str, Any] = json.loads(line.decode("utf-8", "surrogatepass"))
            if "said" in message:
                hear(*message["said"])
            elif "asked" in message:
                with suppress(BrokenPipeError):  # it died while it waited
                    os.write(answering, json.dumps(answer(*message["asked"])).encode() + b"\n")
            else:
                return message


def _read_places(places: mmap.mmap) -> list[str]:
    texts = [places[slot * _SLOT_BYTES : (slot + 1) * _SLOT_BYTES].rstrip(b"\0") for slot in range(_SLOTS)]
    return list(dict.fromkeys(text.decode("utf-8", "replace") for text in texts if text))


def _be_child(
    work: Callable[[Child], Any], limits: ChildLimits, parent: int, pipes: tuple[int, int], places: mmap.mmap
) -> NoReturn:
    """The whole life of a child: nothing of the parent's is closed in order, written out or called back."""
    try:
        end_with_parent()
        if os.getppid() != parent:  # it ended before it could be asked
            os._exit(0)
        gc.freeze()  # what is never looked at is never copied
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        first, last = sorted(pipes)
        for start, end in ((3, first), (first + 1, last), (last + 1, max(os.sysconf("SC_OPEN_MAX"), _MOST_FILES))):
            os.closerange(start, end)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, math.ceil(limits.cpu_s))
        if (used := _data_bytes()) is not None:
            _limit(resource.RLIMIT_DATA, used + limits.memory_bytes)
        Child(*pipes, places).run(work)
    finally:
        os._exit(0)


def _limit(what: int, most: int) -> None:
    _, highest = resource.getrlimit(what)
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (most if highest == resource.RLIM_INFINITY else min(most, highest), highest))


def _data_bytes() -> int | None:
    """Return bytes that this process may write to and shares with nobody; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)
