"""The work of a run: one utterance after the other, here or in worker processes, which changes no output.

A worker thinks in one thread, writes to a temporary name in the folder of the output and renames; it ends with its
parent, however that ended. Conventions: outcomes come in the order in which they finish.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_byte
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from anonymization.checks.outputs import check_output
from anonymization.cli.records import FULL, PART, OutputRow, hold_as_worker, no_space
from anonymization.cli.voice_assignment import prepare_method
from anonymization.methods import contract
from anonymization.methods.audio_conversion import ConvertedAudio, convert_file
from anonymization.methods.external.method import watching
from anonymization.methods.registry import find_method
from common.arrays import Samples
from common.errors import CommandError
from common.hashes import compute_sha256
from common.problems import Problem
from speech.audio.files import AudioError

_OUTSTANDING_PER_JOB = 3
# What goes through a method at once: external commands start a program for it, and graphics cards gain by it.
_TOGETHER = 32
_LOOK_EVERY_S = 0.5
_TOGETHER_S = 300.0
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_LONGEST_PROBLEM = 200
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# How methods and readers of audio say what is wrong; a report has the parts.
_EXPECTED = re.compile(r"(?:Strict: )?expected (.+?), found (.+?)\.?(?:(?<=\.) (.+))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class FileTask:
    """An utterance to anonymise. output: below the folder of the run; earlier: how an earlier call finished it."""

    audio: Path
    output: str
    voice: contract.PseudoSpeaker
    earlier: OutputRow | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What all utterances of a run have in common.

    method: its name, or the path of a description; targets: the folder of its targets, where it takes some.
    """

    method: str
    options: Mapping[str, contract.OptionValue]
    folder: Path
    container: str
    is_strict: bool
    targets: Path | None = None


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of a task: a row, new or kept from an earlier call, or the problem that stood in its way.

    notes: what the method had to say meanwhile, of this task or of others beside it.
    """

    task: FileTask
    row: OutputRow | None = None
    is_kept: bool = False
    problem: Problem | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is read of an utterance that is to be anonymised. digest: SHA-256 of its file."""

    task: FileTask
    digest: str
    given: ConvertedAudio


def outcomes(
    tasks: Sequence[FileTask], settings: RunSettings, jobs: int, should_stop: Callable[[], bool]
) -> Generator[FileOutcome, None, None]:
    """Yield what becomes of each task.

    Args:
        jobs: worker processes; 1 works in this one.
        should_stop: asked twice a second; what is finished by then still comes.

    Raises:
        KeyboardInterrupt: `should_stop` said yes.
        CommandError: the disk is full.
        CommandError: a worker died.
    """
    method = prepare_method(find_method(settings.method), settings.targets)
    at_once = _at_once(method, len(tasks), jobs)
    batches = (list(tasks[start : start + at_once]) for start in range(0, len(tasks), at_once))
    if jobs == 1:
        for batch in batches:
            yield from anonymize_tasks(method, settings, batch, should_stop)
            _stop_if(should_stop)
        return
    context = multiprocessing.get_context("spawn")
    # Without a lock: a worker that a signal ends while it holds one would keep us waiting for ever.
    stop = context.RawValue("b", 0)
    with (
        _one_thread_each(),
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_worker, initargs=(settings, stop)) as pool,
    ):
        waiting: set[Future[list[FileOutcome]]] = set()
        try:
            for batch in batches:
                waiting.add(pool.submit(_work, batch))
                while len(waiting) >= _OUTSTANDING_PER_JOB * jobs:
                    done, waiting = wait(waiting, _LOOK_EVERY_S, FIRST_COMPLETED)
                    yield from _results(done)
                    _stop_if(should_stop)
            while waiting:
                done, waiting = wait(waiting, _LOOK_EVERY_S, FIRST_COMPLETED)
                yield from _results(done)
                _stop_if(should_stop)
        except BrokenProcessPool as error:
            _stop_if(should_stop)  # who stops us may have stopped them, too
            raise CommandError(
                "A worker process ended, perhaps because memory ran out. What is finished is kept: "
                "repeat the command, with fewer --jobs if it happens again."
            ) from error
        finally:
            stop.value = 1
            pool.shutdown(wait=True, cancel_futures=True)


def _stop_if(should_stop: Callable[[], bool]) -> None:
    if should_stop():
        raise KeyboardInterrupt


def _results(done: Iterable[Future[list[FileOutcome]]]) -> Iterator[FileOutcome]:
    for future in done:
        yield from future.result()


def _at_once(method: contract.Anonymizer, total: int, jobs: int) -> int:
    """Return how many utterances go through the method together: one where it gains nothing, lest a kill costs more."""
    if not contract.gains_by_batches(method):
        return 1
    return max(1, min(_TOGETHER, -(-total // jobs)))


def anonymize_tasks(
    method: contract.Anonymizer, settings: RunSettings, tasks: Iterable[FileTask], should_stop: Callable[[], bool]
) -> list[FileOutcome]:
    """Anonymise and check some utterances, and write each whole; keep what an earlier call wrote if it is still that.

    Args:
        should_stop: asked between utterances, and by external commands while they run; the others are then left.

    Raises:
        CommandError: the disk is full.
    """
    notes: list[str] = []
    with watching(should_stop=should_stop, note=notes.append):
        found = _anonymize_all(method, settings, tasks, should_stop)
    if should_stop():  # what was broken off is no problem
        found = [outcome for outcome in found if not outcome.problem]
    return [*found[:-1], replace(found[-1], notes=tuple(notes))] if notes and found else found


def _anonymize_all(
    method: contract.Anonymizer, settings: RunSettings, tasks: Iterable[FileTask], should_stop: Callable[[], bool]
) -> list[FileOutcome]:
    found: list[FileOutcome] = []
    ready: list[_Ready] = []
    for task in tasks:
        if should_stop():
            return found
        try:
            digest = compute_sha256(task.audio)
            if task.earlier and task.earlier.still_holds(settings.folder, task.voice, digest):
                found.append(FileOutcome(task, task.earlier, is_kept=True))
                continue
            ready.append(_Ready(task, digest, convert_file(task.audio, strict=settings.is_strict)))
        except (AudioError, contract.MethodError, MemoryError, OSError) as error:
            found.append(_failed(task, settings, error, is_read=False))
        if sum(each.given.samples.size / each.given.rate_hz for each in ready) >= _TOGETHER_S:
            found += _anonymize_ready(method, settings, ready)
            ready = []
    return found + _anonymize_ready(method, settings, ready)


def _anonymize_ready(method: contract.Anonymizer, settings: RunSettings, ready: Sequence[_Ready]) -> list[FileOutcome]:
    """Return what becomes of utterances that were read; nothing where an external command was stopped."""
    if not ready:
        return []
    items = [contract.VoicedUtterance(each.given.samples, each.task.voice) for each in ready]
    try:
        outputs = contract.anonymize_items(method, items, ready[0].given.rate_hz, options=settings.options)
    except CancelledError:
        return []
    keeps_duration = contract.keeps_duration(method)
    made = zip(ready, outputs, strict=True)
    return [_finish(settings, each, output, keeps_duration=keeps_duration) for each, output in made]


def _finish(settings: RunSettings, ready: _Ready, output: Samples | Exception, *, keeps_duration: bool) -> FileOutcome:
    task, given = ready.task, ready.given
    if isinstance(output, Exception):
        return _failed(task, settings, output, is_read=True)
    try:
        path = settings.folder / task.output
        _write(path, output, given.rate_hz, settings.container)
        problems = tuple(
            check_output(given.samples, output, given.rate_hz, file=task.output, keeps_duration=keeps_duration)
        )
        made = output.size, given.rate_hz, path.stat().st_size, compute_sha256(path)
        return FileOutcome(task, OutputRow(task.output, ready.digest, task.voice, *made, given.notes, problems))
    except Exception as error:  # it concerns this utterance alone, unless the disk is full
        return _failed(task, settings, error, is_read=True)


def _failed(task: FileTask, settings: RunSettings, error: Exception, *, is_read: bool) -> FileOutcome:
    """Return the problem that an error is.

    Args:
        is_read: the recording could be read, so that what is wrong may lie elsewhere.

    Raises:
        CommandError: it is that the disk is full.
    """
    if isinstance(error, AudioError):
        return FileOutcome(task, problem=error.problem(str(task.audio)))
    if isinstance(error, OSError) and error.errno in FULL:
        raise no_space(settings.folder, error) from error
    expected, remedy = "audio that the method can anonymise", "Fix or remove this file and repeat the command."
    if is_read:  # what is wrong may be the method, or an external command
        expected = "an output of the method"
        remedy = "Fix what this names, or leave the file out, and repeat the command."
    if isinstance(error, contract.MethodError):
        found = str(error)
        if parts := _EXPECTED.fullmatch(found):
            expected, found, remedy = parts[1], parts[2], parts[3] or remedy
    elif isinstance(error, MemoryError):
        found, remedy = "too little memory for it", "Use fewer --jobs, or cut the recording, and repeat the command."
    elif isinstance(error, OSError):
        found = f"“{error.strerror or error}”"
        if is_read:
            expected = f"a file {task.output} that can be written"
            remedy = "Rename or move this one, and repeat the command."
    else:
        first = " ".join(str(error).split())[:_LONGEST_PROBLEM]
        found = f"a problem of the method, {type(error).__name__}: {first}"
    return FileOutcome(
        task, problem=Problem("not-anonymised", str(task.audio), expected, found.removesuffix("."), remedy)
    )


def _write(path: Path, samples: Samples, rate_hz: int, container: str) -> None:
    import soundfile

    whole = io.BytesIO()  # the library would keep to itself what goes wrong while it writes to a file
    soundfile.write(whole, samples, rate_hz, format=container.upper(), subtype="PCM_16")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}{PART}")
    try:
        part.write_bytes(whole.getbuffer())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Note a first Ctrl-C (or SIGTERM, of a batch system), after which work ends between two utterances.

    An exception in the middle of anything is lost in callbacks of C libraries, which call their work done then. A
    second signal interrupts.
    """
    asked = threading.Event()

    def note(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():  # it has no signals
        yield asked.is_set
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries of processes started here use one thread each; they read it as they are loaded."""
    before = {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name in _THREAD_VARIABLES:
            del os.environ[name]
        os.environ.update(before)


_worker: tuple[contract.Anonymizer, RunSettings, c_byte] | None = None
_held: IO[str] | None = None  # the lock that ends with this process


def _prepare_worker(settings: RunSettings, stop: c_byte) -> None:
    global _worker, _held
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent decides what becomes of them
    _held = hold_as_worker(settings.folder)  # before it is asked whether the parent lives, so that none slips through
    if (parent := multiprocessing.parent_process()) and not parent.is_alive():
        os._exit(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = prepare_method(find_method(settings.method), settings.targets), settings, stop


def _end_with_parent() -> None:
    """A parent that was killed cannot say so, and its workers would wait for ever."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _work(tasks: list[FileTask]) -> list[FileOutcome]:
    assert _worker is not None  # noqa: S101
    method, settings, stop = _worker
    return [] if stop.value else anonymize_tasks(method, settings, tasks, lambda: bool(stop.value))
