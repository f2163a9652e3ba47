"""What an engine makes of stored recordings, kept by content: the part that attacks and recognition share.

A recording is known by the key of its file, so what was made of it once is found again by every run, whichever job,
submission or data set it was made for. Work goes on where it stopped: each batch is kept before the next begins. The
first recordings go one by one; where all of them fail, the engine is at fault and the others are not tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from evaluation.formats.audio import AudioError
from evaluation.formats.problems import Problem
from evaluation.metrics.errors import MetricInputError
from evaluation.selectors_recordings import Recording
from portal.core.audio import Samples, load_audio
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor
from portal.jobs.runner import JobContext

CANARIES = 3
BATCH = 8
_TOLD_AS_MEMORY = "out of memory"
T = TypeVar("T")

Loaded = tuple[Recording, Samples, int]


@dataclass(frozen=True)
class Maker(Generic[T]):
    """How an engine's work is done and kept.

    Attributes:
        title: of the engine, for sentences.
        what: it makes, in the plural, such as ``speaker vectors``.
        make: of a batch of samples and their rate in Hz; called only once the model is needed.
        known: which of some keys have been worked on.
        keep: stores pairs of key and result; what is there already stays.
        refuses_silence: whether digital silence is no input.
    """

    title: str
    what: str
    make: Callable[[Sequence[Samples], int], Sequence[T]]
    known: Callable[[Sequence[str]], set[str]]
    keep: Callable[[Sequence[tuple[str, T]]], None]
    refuses_silence: bool = True


@dataclass
class Pace:
    """How much speech an engine has heard in a job and how long that took; in s. Estimates of later jobs rest on it."""

    engine: str
    speech_s: float = 0.0
    work_s: float = 0.0

    def add(self, speech_s: float, work_s: float) -> None:
        self.speech_s += speech_s
        self.work_s += work_s

    def as_result(self) -> dict[str, Any]:
        """For the result of a job."""
        return {"engine": self.engine, "speech_s": round(self.speech_s, 3), "work_s": round(self.work_s, 3)}


@dataclass
class _Progress:
    done: int
    total: int
    tried: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_hopeless(self) -> bool:
        return not self.done and len(self.problems) == self.tried >= min(CANARIES, self.total)


def extract(
    context: JobContext, maker: Maker[Any], recordings: Iterable[Recording], stage: str, pace: Pace
) -> list[Problem]:
    """Work on each recording that has no result yet; what could not be used, all of it at once.

    Args:
        pace: is told how much speech took how long.

    Raises:
        JobFailure: nothing could be used, or the memory was too small.
    """
    by_key = {one.audio: one for one in recordings if one.audio}
    known = maker.known(list(by_key))
    # Alike in length within a batch, so that little of it is padding.
    pending = sorted((one for key, one in by_key.items() if key not in known), key=lambda one: (one.samples, one.audio))
    progress = _Progress(len(known), len(by_key))
    context.progress(stage, progress.done, progress.total)
    for batch in _batches(pending):
        loaded = _loaded(context, maker, batch, progress)
        for same_rate in _by_rate(loaded):
            began = time.monotonic()
            _work_on(maker, same_rate, progress)
            pace.add(sum(samples.size / rate for _, samples, rate in same_rate), time.monotonic() - began)
        progress.tried += len(batch)
        if progress.is_hopeless:
            raise _hopeless(maker, stage, progress)
        context.progress(stage, progress.done, progress.total)
    return progress.problems


def _batches(pending: Sequence[Recording]) -> Iterator[Sequence[Recording]]:
    for canary in pending[:CANARIES]:
        yield [canary]
    for start in range(CANARIES, len(pending), BATCH):
        yield pending[start : start + BATCH]


def _loaded(context: JobContext, maker: Maker[Any], batch: Sequence[Recording], progress: _Progress) -> list[Loaded]:
    found = []
    for recording in batch:
        context.check()
        try:
            samples, rate_hz = load_audio(recording.audio)
        except (AudioError, OSError) as error:
            progress.problems.append(_unusable(recording, "audio that can be read", str(error)))
            continue
        if not samples.any() and (maker.refuses_silence or not samples.size):
            progress.problems.append(_unusable(recording, "speech", "silence" if samples.size else "no samples"))
            continue
        found.append((recording, samples, rate_hz))
    return found


def _by_rate(loaded: Sequence[Loaded]) -> Iterator[list[Loaded]]:
    for rate in dict.fromkeys(rate for _, _, rate in loaded):
        yield [one for one in loaded if one[2] == rate]


def _work_on(maker: Maker[Any], batch: list[Loaded], progress: _Progress) -> None:
    """The whole batch, or one by one where something in it cannot be used."""
    try:
        results = maker.make([samples for _, samples, _ in batch], batch[0][2])
    except MetricInputError as error:
        if len(batch) == 1:
            progress.problems.append(_unusable(batch[0][0], "speech that the engine can use", str(error)))
            return
        for one in batch:
            _work_on(maker, [one], progress)
        return
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _TOLD_AS_MEMORY not in str(error).lower():
            raise
        raise _too_little_memory(maker, batch) from error
    maker.keep([(recording.audio, result) for (recording, _, _), result in zip(batch, results, strict=True)])
    progress.done += len(batch)


def _unusable(recording: Recording, expected: str, found: str) -> Problem:
    remedy = "Mend this recording; everything that needs it is left out and named."
    return Problem("unusable-recording", f"{recording.utterance} ({recording.speech})", expected, found, remedy)


def _hopeless(maker: Maker[Any], stage: str, progress: _Progress) -> JobFailure:
    return JobFailure(
        f"{maker.title} made no {maker.what} of the first {progress.tried} of {progress.total} recordings at "
        f"“{stage}”, so the others were not tried: {progress.problems[0].found}",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Mend the speech or choose another engine, and run it again.",
        problems=progress.problems,
    )


def _too_little_memory(maker: Maker[Any], batch: list[Loaded]) -> JobFailure:
    longest = max(samples.size / rate for _, samples, rate in batch)
    return JobFailure(
        f"{maker.title} ran out of memory at {len(batch)} recordings, the longest of {longest:.0f} s.",
        actor=Actor.OPERATOR,
        remedy="Give the worker more memory or let fewer jobs run beside it, then run the job again: what was finished "
        "is kept.",
    )
