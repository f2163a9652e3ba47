"""The body of an anonymisation job: every utterance of a data set that has no file yet, in bounded memory.

Utterances come from the database in chunks and go through a method in small batches, in as many threads as the portal
gives a job; this thread alone writes rows. What is finished is kept batch by batch, so that an interrupted job goes on
where it was; an output depends on nothing but samples, voice and options, so that it makes no difference who made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q

from anonymization.app.models import AnonymizationRun
from anonymization.app.voice_assignment import EXAMPLES, find_voice
from anonymization.checks.outputs import check_output
from anonymization.methods.audio_conversion import ConvertedAudio, convert_audio
from anonymization.methods.contract import (
    Anonymizer,
    Method,
    MethodError,
    Options,
    PseudoSpeaker,
    VoicedUtterance,
    anonymize_items,
    gains_by_batches,
    keeps_duration,
)
from anonymization.methods.external.method import watching
from common.arrays import Samples
from common.errors import InputError
from common.problems import Problem, ProblemList, Severity
from portal.core.storage import keep_audio, load_audio
from portal.jobs.long_work import threads
from portal.submissions.models import SubmittedFile
from speech.audio.files import AudioError

# A method compiles or loads what it needs at its first call; this one is shown as a stage of its own.
PREPARING = "Preparing the method (the first time on a machine takes about 15 s)"
ANONYMISING = "Anonymising"
SILENCE = (np.zeros(1600, np.int16), 16_000)
CHUNK = 500
# Of a method that works on one utterance at a time; of others, which may start a program for each batch.
ALONE, TOGETHER = 4, 32
# As many samples of speech are in a batch at most, unless one utterance is longer: five minutes at 16 kHz.
BATCH_SAMPLES = 5 * 60 * 16_000
LOOK_EVERY_S = 0.5
# What is not speech that somebody anonymised; all else that the checks find is kept and reported.
USELESS = {"identical-to-original"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UtteranceTask:
    """An utterance that is to be anonymised, and its voice."""

    utterance: int
    name: str
    audio: str
    samples: int
    voice: PseudoSpeaker


@dataclass(frozen=True, slots=True)
class UtteranceOutcome:
    """What became of a task: a stored file, or none with the reason among the problems."""

    task: UtteranceTask
    audio: str
    samples: int
    rate_hz: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class RunExtent:
    """How many utterances a run has, and how many of them have their file."""

    total: int
    without_audio: int
    kept: int


def measure_extent(run: AnonymizationRun) -> RunExtent:
    """Return how far a run is, in two queries."""
    counts = run.data_set.utterances.order_by().aggregate(total=Count("pk"), silent=Count("pk", filter=Q(audio="")))
    return RunExtent(counts["total"], counts["silent"], _list_files(run).count())


def list_missing_tasks(run: AnonymizationRun, method: Anonymizer) -> Iterator[UtteranceTask]:
    """Yield the utterances without a file, by name, read in chunks."""
    kept = _list_files(run).filter(utterance=OuterRef("pk"))
    members = run.data_set.utterances.filter(~Exists(kept)).order_by("name")
    last = None
    while True:
        rows = members if last is None else members.filter(name__gt=last)
        chunk = list(rows.values_list("pk", "name", "speaker__name", "audio", "samples")[:CHUNK])
        if not chunk:
            return
        last = chunk[-1][1]
        for pk, name, speaker, audio, samples in chunk:
            yield UtteranceTask(
                pk, name, audio, samples or 0, find_voice(run, speaker=speaker, utterance=name, method=method)
            )


def _list_files(run: AnonymizationRun) -> Any:
    return SubmittedFile.objects.filter(submission=run.submission_id, data_set=run.data_set_id)


# The work ------------------------------------------------------------------------------------------


class AnonymizationWork:
    """Anonymises what is missing of a run and keeps it; counts what is done and what failed."""

    def __init__(self, run: AnonymizationRun, method: Anonymizer, extent: RunExtent, check: Callable[[], None]) -> None:
        self.run, self.method, self.extent = run, method, extent
        self.done = extent.kept
        self.findings = ProblemList(EXAMPLES)
        self.findings.keep(read_stored_problems(run))
        self.failures = ProblemList(EXAMPLES)
        self.failed = 0
        self._check = check

    def prepare(self) -> None:
        """Let a method of the portal compile what it needs; others are left to prepare themselves."""
        if isinstance(self.method, Method):
            first = next(list_missing_tasks(self.run, self.method))
            with suppress(MethodError):  # what it does not like of silence or options, the first utterance tells
                self.method.anonymize(*SILENCE, first.voice, options=self.run.options)

    def go(self, progress: Callable[[int], None]) -> None:
        """All that is missing; where nothing was kept before, one utterance alone first, and no other if it fails.

        Args:
            progress: told after each batch how many utterances are done.
        """
        tasks = list_missing_tasks(self.run, self.method)
        if not self.extent.kept and (canary := next(tasks, None)) is not None:
            self._go_through([[canary]], 1, progress)
            if self.failed:
                return
        at_once = TOGETHER if gains_by_batches(self.method) and not isinstance(self.method, Method) else ALONE
        n_threads = 1 if self.method.needs_gpu else threads()
        self._go_through(batches(tasks, at_once), n_threads, progress)

    def _go_through(
        self, parts: Iterable[list[UtteranceTask]], n_threads: int, progress: Callable[[int], None]
    ) -> None:
        """However it ends, no thread stores anything after it; this one, where signals arrive, only waits and keeps."""
        is_over = Event()

        def work(tasks: Sequence[UtteranceTask]) -> list[UtteranceOutcome]:
            return anonymize_tasks(
                self.method, self.run.options, tasks, should_stop=lambda: is_over.is_set() or self._should_stop()
            )

        with closing(run_in_threads(parts, work, n_threads, self._check, is_over)) as made:
            for outcomes in made:
                self._keep(outcomes)
                if not self.failed or self.done:  # a canary that failed is told by its failure
                    progress(self.done)

    def _should_stop(self) -> bool:
        """Return whether the job is to end, asked from any thread."""
        try:
            self._check()
        except Exception:  # whatever it is, the thread of the job meets it too
            return True
        return False

    def _keep(self, outcomes: Iterable[UtteranceOutcome]) -> None:
        """Write the rows of what was made, and what was found in it, in one transaction."""
        rows, is_remarkable = [], False
        for outcome in outcomes:
            if outcome.audio:
                stored = {name: getattr(outcome, name) for name in ("audio", "samples", "rate_hz")}
                of = {"submission_id": self.run.submission_id, "data_set_id": self.run.data_set_id}
                rows.append(SubmittedFile(utterance_id=outcome.task.utterance, **of, **stored))
                self.findings.keep(outcome.problems)
                is_remarkable |= bool(outcome.problems)
            else:
                self.failures.keep(outcome.problems)
                self.failed += 1
        with transaction.atomic():
            # Of two processes that made the same file, one of which was taken for dead, the first is kept.
            SubmittedFile.objects.bulk_create(rows, ignore_conflicts=True)
            if is_remarkable:
                store_report(self.run, problems=self.findings.report())
        self.done += len(rows)


def read_stored_problems(run: AnonymizationRun) -> list[Problem]:
    """Return what the report of a run holds of its files."""
    rows = run.report.get("problems", [])
    return [Problem(**row) for row in rows]


def store_report(run: AnonymizationRun, *, problems: Iterable[Problem] | None = None, **parts: Any) -> None:
    """Replace parts of the report of a run."""
    if problems is not None:
        parts["problems"] = [asdict(problem) for problem in problems]
    run.report = run.report | parts
    run.save(update_fields=["report"])


def batches(tasks: Iterable[UtteranceTask], at_once: int) -> Iterator[list[UtteranceTask]]:
    """Yield tasks in batches of so many, of fewer where they are long."""
    batch: list[UtteranceTask] = []
    size = 0
    for task in tasks:
        if batch and (len(batch) == at_once or size + task.samples > BATCH_SAMPLES):
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += task.samples
    if batch:
        yield batch


def run_in_threads(
    parts: Iterable[list[UtteranceTask]],
    work: Callable[[list[UtteranceTask]], list[UtteranceOutcome]],
    n_threads: int,
    check: Callable[[], None],
    is_over: Event,
) -> Generator[list[UtteranceOutcome], None, None]:
    """Yield what `work` makes of each part, as it comes; parts are taken from their iterator in this thread, few in
    advance.

    Args:
        check: asked while waiting; what it raises ends the work between two parts.
        is_over: set as soon as nobody waits for results any more, however that came: parts under way may end early.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="anonymize")
    running: set[Future[list[UtteranceOutcome]]] = set()
    try:
        for part in parts:
            running.add(pool.submit(work, part))
            while len(running) > n_threads:
                ended, running = wait(running, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
                yield from _results(ended, check)
        while running:
            ended, running = wait(running, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            yield from _results(ended, check)
    finally:
        is_over.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _results(
    ended: Iterable[Future[list[UtteranceOutcome]]], check: Callable[[], None]
) -> Iterator[list[UtteranceOutcome]]:
    for one in ended:
        try:
            yield one.result()
        except CancelledError:
            check()  # raises what the command was stopped for
            raise
    check()


# A batch, in any thread: no database ---------------------------------------------------------------


def anonymize_tasks(
    method: Anonymizer,
    options: Options,
    tasks: Sequence[UtteranceTask],
    *,
    should_stop: Callable[[], bool] | None = None,
) -> list[UtteranceOutcome]:
    """Load, anonymise, check and store some utterances; one that cannot be is told, and the others are kept.

    Args:
        should_stop: asked while an external command works.

    Raises:
        OSError: the storage takes no file.
        CancelledError: an external command was stopped.
    """
    outcomes: list[UtteranceOutcome] = []
    ready: list[tuple[UtteranceTask, ConvertedAudio]] = []
    for task in tasks:
        try:
            ready.append((task, convert_audio(*load_audio(task.audio))))
        except (AudioError, MethodError, OSError) as error:
            outcomes.append(_failed(task, str(error)))
    notes: list[str] = []
    items = [VoicedUtterance(conformed.samples, task.voice) for task, conformed in ready]
    with watching(should_stop=should_stop, note=notes.append):
        made = anonymize_items(method, items, ready[0][1].rate_hz if ready else 0, options=options)
    for (task, conformed), output in zip(ready, made, strict=True):
        if isinstance(output, Exception):
            outcomes.append(_failed(task, _reason(method, output)))
        else:
            outcomes.append(_checked(task, conformed, output, keeps_duration=keeps_duration(method)))
    if outcomes and notes:  # of a whole batch, told with its first utterance
        first, wanted = outcomes[0], "a command without messages"
        remedy = "See the description of the command."
        told = [_note(first.task, "remark", wanted, note, remedy) for note in dict.fromkeys(notes)]
        outcomes[0] = replace(first, problems=(*first.problems, *told))
    return outcomes


def _reason(method: Anonymizer, error: Exception) -> str:
    """Return why an utterance has no output; the problem of a plug-in, which may raise anything, goes to the log,
    too."""
    if isinstance(error, MethodError):
        return str(error)
    log.error("%s failed.", method.name, exc_info=error)
    return f"{method.name} failed with {type(error).__name__}: {error}"


def _checked(
    task: UtteranceTask, conformed: ConvertedAudio, output: Samples, *, keeps_duration: bool
) -> UtteranceOutcome:
    """Return the stored output with what is worth a look in it; an output that is of no use is not stored."""
    try:
        found = check_output(
            conformed.samples, output, conformed.rate_hz, file=task.name, keeps_duration=keeps_duration
        )
        problems = tuple(found)
    except InputError as error:
        return _failed(task, str(error))
    if useless := tuple(problem for problem in problems if problem.code in USELESS):
        return UtteranceOutcome(task, "", 0, conformed.rate_hz, useless)
    wanted, remedy = "mono 16-bit audio at 16,000 Hz", "The method was given the converted form."
    notes = (_note(task, "converted", wanted, note, remedy) for note in conformed.notes)
    key = keep_audio(output, conformed.rate_hz)
    return UtteranceOutcome(task, key, output.size, conformed.rate_hz, (*problems, *notes))


def _note(task: UtteranceTask, code: str, expected: str, found: str, remedy: str) -> Problem:
    return Problem(code, task.name, expected, found, remedy, Severity.NOTE)


def _failed(task: UtteranceTask, reason: str) -> UtteranceOutcome:
    expected, remedy = "audio that the method can anonymise", "Fix the audio of this utterance in the corpus."
    return UtteranceOutcome(task, "", 0, 0, (Problem("not-anonymised", task.name, expected, reason, remedy),))
