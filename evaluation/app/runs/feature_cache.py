"""The feature cache: what engines make of stored recordings, kept by content for attacks and recognition alike.

A recording is known by the key of its file, so what was made of it once is found again by every run, whichever job,
submission or data set it was made for. Work goes on where it stopped: each batch is kept before the next begins. The
first recordings go one by one; where all of them fail, the engine is at fault and the others are not tried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from common.arrays import Samples
from common.errors import InputError, MachineError
from common.problems import Problem
from evaluation.app.models import EvaluationRun, Hypothesis, SpeakerVector
from evaluation.app.runs.context import EvaluationContext, Recording, list_recordings
from evaluation.app.runs.kinds import EngineRunKind
from evaluation.formats.results import Speech
from portal.core.storage import load_audio
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor
from portal.jobs.runner import JobContext
from speech.audio.files import AudioError
from speech.recognizers.contract import ENGLISH

CANARIES = 3
BATCH = 8
KEYS_PER_QUERY = 500
VECTOR_TYPE = "<f4"
_TOLD_AS_MEMORY = "out of memory"
T = TypeVar("T")

Vector = npt.NDArray[np.float32]
Loaded = tuple[Recording, Samples, int]


@dataclass(frozen=True)
class FeatureCache(Generic[T]):
    """What one engine made of recordings, each by the key of its file.

    Attributes:
        table: `SpeakerVector` or `Hypothesis`.
        engine: name and version, under which it is kept.
        pack, unpack: a result to and from the value of `column`.
    """

    table: type[Any]
    column: str
    engine: str
    pack: Callable[[T], Any]
    unpack: Callable[[Any], T]

    def find_known(self, keys: Sequence[str]) -> set[str]:
        """Return which of these recordings have a result."""
        return {key for (key,) in self._rows(keys, "audio")}

    def read(self, recordings: Iterable[Recording]) -> dict[str, T]:
        """Return the results by name of the utterance; of recordings without one none."""
        by_name = {one.utterance: one.audio for one in recordings if one.audio}
        by_key = dict(self._rows(list(dict.fromkeys(by_name.values())), "audio", self.column))
        return {name: self.unpack(by_key[key]) for name, key in by_name.items() if key in by_key}

    def keep(self, results: Iterable[tuple[str, T]]) -> None:
        """Store pairs of key and result; what is there already stays."""
        rows = (self.table(engine=self.engine, audio=key, **{self.column: self.pack(one)}) for key, one in results)
        self.table._default_manager.bulk_create(rows, ignore_conflicts=True)

    def _rows(self, keys: Sequence[str], *columns: str) -> Iterator[Any]:
        for part in split_keys(keys):
            rows = self.table._default_manager.filter(engine=self.engine, audio__in=part)
            yield from rows.values_list(*columns)


def vector_cache(engine: str) -> FeatureCache[Vector]:
    """Return the speaker vectors of an encoder, by its key."""
    return FeatureCache(
        SpeakerVector,
        "vector",
        engine,
        lambda vector: np.asarray(vector, VECTOR_TYPE).tobytes(),
        lambda stored: np.frombuffer(stored, VECTOR_TYPE).astype(np.float32),
    )


def hypothesis_cache(engine: str, language: str = ENGLISH) -> FeatureCache[str]:
    """Return what a recogniser understood in a language, by its key."""
    engine = engine if language == ENGLISH else f"{engine}+{language}"
    return FeatureCache(Hypothesis, "text", engine, lambda text: text.replace("\0", ""), str)


def split_keys(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """So many keys at a time that a query takes them."""
    return (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))


@dataclass(frozen=True)
class Extractor(Generic[T]):
    """How an engine's work is done and kept.

    Attributes:
        title: of the engine, for sentences.
        what: it makes, in the plural, such as ``speaker vectors``.
        load: the model; called only once it is needed.
        apply: the model to a batch of samples and their rate in Hz.
        stage: of a job, for people, such as ``Words``.
        speeches: the forms of speech that it goes over.
        needs_audio: what to do where recordings have no audio, a sentence; empty where that is not worth telling.
        refuses_silence: whether digital silence is no input.
    """

    title: str
    what: str
    cache: FeatureCache[T]
    load: Callable[[], Any]
    apply: Callable[[Any, Sequence[Samples], int], Sequence[T]]
    stage: str
    speeches: tuple[Speech, ...] = tuple(Speech)
    needs_audio: str = ""
    refuses_silence: bool = True

    @cached_property
    def model(self) -> Any:
        """Return a model that cannot be loaded ends the job, for it is no fault of a recording."""
        try:
            return self.load()
        except InputError as error:
            raise engine_failure(str(error)) from error


def engine_failure(sentence: str) -> JobFailure:
    """Return how a job ends whose engine this worker cannot use."""
    return JobFailure(sentence, actor=Actor.OPERATOR, remedy="Then run the job again; what was finished is kept.")


def load_engine(kind: EngineRunKind, run: EvaluationRun, difference: str = "") -> Any:
    """Return the engine of a run.

    Args:
        difference: what is said of another version.

    Raises:
        JobFailure: this portal has no such engine, or another version of it, or something it needs is missing.
    """
    try:
        engine = kind.engines.find_engine(run.engine)
    except InputError as error:
        raise engine_failure(str(error)) from error
    if sentence := kind.engines.explain_missing(engine):
        raise engine_failure(sentence)
    wanted = run.parameters.get("engine_key", engine.key)
    if wanted != engine.key:
        raise engine_failure(
            f"This run was started with {wanted}; this portal has {engine.key}{difference}. Start a new run."
        )
    return engine


def data_set_gone(name: str) -> JobFailure:
    """Return how a job ends whose data set was deleted."""
    return JobFailure(
        f"The corpus has no data set {name} any more.",
        actor=Actor.ORGANIZER,
        remedy="Import it again, then run the job again: what was finished is kept.",
    )


@dataclass
class EnginePace:
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
class _Extraction:
    done: int
    total: int
    tried: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_hopeless(self) -> bool:
        return not self.done and len(self.problems) == self.tried >= min(CANARIES, self.total)


def extract_data_set(context: JobContext, run: EvaluationRun, extractor: Extractor[Any]) -> dict[str, Any]:
    """Body of the job of one data set: what is not there yet of it. A recording that cannot be used is named.

    Returns:
        The pace of the engine.

    Raises:
        JobFailure: the data set is gone, nothing could be used, or the memory was too small.
    """
    name = context.parameters["data_set"]
    data_set = EvaluationContext(run.submission).data_sets.get(name)
    if data_set is None:
        raise data_set_gone(name)
    pace = EnginePace(extractor.cache.engine)
    for speech in extractor.speeches:
        recordings = list_recordings(run.submission, data_set, speech)
        silent = [one for one in recordings if not one.audio]
        if silent and extractor.needs_audio:
            expected, found = "audio of every utterance", f"{len(silent)} without, such as {silent[0].utterance}"
            named = "no-audio", "the corpus", expected, found, extractor.needs_audio
            context.problems.append(Problem(*named, count=len(silent)))
        stage = f"{extractor.stage} of {speech} {name}"[:80]
        context.problems += extract(context, extractor, recordings, stage, pace)
    return pace.as_result()


def extract(
    context: JobContext, extractor: Extractor[Any], recordings: Iterable[Recording], stage: str, pace: EnginePace
) -> list[Problem]:
    """Work on each recording that has no result yet; what could not be used, all of it at once.

    Args:
        pace: is told how much speech took how long.

    Raises:
        JobFailure: nothing could be used, or the memory was too small.
    """
    by_key = {one.audio: one for one in recordings if one.audio}
    known = extractor.cache.find_known(list(by_key))
    # Alike in length within a batch, so that little of it is padding.
    pending = sorted((one for key, one in by_key.items() if key not in known), key=lambda one: (one.samples, one.audio))
    state = _Extraction(len(known), len(by_key))
    context.progress(stage, state.done, state.total)
    for batch in _batches(pending):
        loaded = _loaded(context, extractor, batch, state)
        for wanted_hz in dict.fromkeys(rate for _, _, rate in loaded):
            same_rate = [one for one in loaded if one[2] == wanted_hz]
            began = time.monotonic()
            _work_on(extractor, same_rate, state)
            pace.add(sum(samples.size / rate for _, samples, rate in same_rate), time.monotonic() - began)
        state.tried += len(batch)
        if state.is_hopeless:
            raise _hopeless(extractor, stage, state)
        context.progress(stage, state.done, state.total)
    return state.problems


def _batches(pending: Sequence[Recording]) -> Iterator[Sequence[Recording]]:
    for canary in pending[:CANARIES]:
        yield [canary]
    for start in range(CANARIES, len(pending), BATCH):
        yield pending[start : start + BATCH]


def _loaded(
    context: JobContext, extractor: Extractor[Any], batch: Sequence[Recording], state: _Extraction
) -> list[Loaded]:
    found = []
    for recording in batch:
        context.check()
        try:
            samples, rate_hz = load_audio(recording.audio)
        except (AudioError, OSError) as error:
            state.problems.append(_unusable(recording, "audio that can be read", str(error)))
            continue
        if not samples.any() and (extractor.refuses_silence or not samples.size):
            state.problems.append(_unusable(recording, "speech", "silence" if samples.size else "no samples"))
            continue
        found.append((recording, samples, rate_hz))
    return found


def _work_on(extractor: Extractor[Any], batch: list[Loaded], state: _Extraction) -> None:
    """The whole batch, or one by one where something in it cannot be used."""
    try:
        results = extractor.apply(extractor.model, [samples for _, samples, _ in batch], batch[0][2])
    except InputError as error:
        if len(batch) == 1:
            if isinstance(error, MachineError):  # no fault of the recording
                raise engine_failure(str(error)) from error
            state.problems.append(_unusable(batch[0][0], "speech that the engine can use", str(error)))
            return
        for one in batch:
            _work_on(extractor, [one], state)
        return
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and _TOLD_AS_MEMORY not in str(error).lower():
            raise
        raise _too_little_memory(extractor, batch) from error
    extractor.cache.keep([(recording.audio, result) for (recording, _, _), result in zip(batch, results, strict=True)])
    state.done += len(batch)


def _unusable(recording: Recording, expected: str, found: str) -> Problem:
    remedy = "Fix this recording; everything that needs it is left out and listed."
    return Problem("unusable-recording", f"{recording.utterance} ({recording.speech})", expected, found, remedy)


def _hopeless(extractor: Extractor[Any], stage: str, state: _Extraction) -> JobFailure:
    return JobFailure(
        f"{extractor.title} made no {extractor.what} of the first {state.tried} of {state.total} recordings at "
        f"“{stage}”, so the others were not tried: {state.problems[0].found}",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Fix the speech or choose another engine, and run it again.",
        problems=state.problems,
    )


def _too_little_memory(extractor: Extractor[Any], batch: list[Loaded]) -> JobFailure:
    longest = max(samples.size / rate for _, samples, rate in batch)
    return JobFailure(
        f"{extractor.title} ran out of memory at {len(batch)} recordings, the longest of {longest:.0f} s.",
        actor=Actor.OPERATOR,
        remedy="Give the worker more memory or let fewer jobs run beside it, then run the job again: what was finished "
        "is kept.",
    )
