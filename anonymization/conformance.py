"""Whether an anonymiser, built in or plugged in, keeps the contract: tried on speech, on worst cases and at once.

`check_method` never raises for what a method does: every breach is a `Problem` that says what was expected and found.
It takes some thirty calls of the method; conventions are those of `contract`. How breaches are told stands in
``conformance.toml``.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from anonymization.methods.contract import (
    MOST_PARAMETERS,
    Anonymizer,
    MethodError,
    Options,
    Parameter,
    PseudoSpeaker,
    TargetPool,
    VoicedUtterance,
    VoiceRequest,
    find_missing_members,
    keeps_duration,
    plans_voices,
    takes_targets,
)
from anonymization.methods.voices.pseudo_speakers import plan_requests, plan_voices
from anonymization.methods.voices.targets import pool_of_samples, target_voice
from common.arrays import Samples
from common.problems import Problem, Severity

# A method that does not keep the duration may change it by so much, and a very short input by so many seconds.
_NEAR, _NEAR_S = 0.25, 0.1
# Two voices that differ by less than this part of their energy, at the best gain, are one.
_DIFFERENCE = 0.01
_FORK_LIMIT_S = 120.0
_FORMANTS_HZ = ((600.0, 90.0), (1300.0, 110.0), (2600.0, 160.0), (3500.0, 220.0))
_FULL_SCALE = 32767
_BREACHES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Case:
    """What a check gets: the method, speech, and the enrolment and the trial voice of one speaker."""

    method: Anonymizer
    speech: Samples
    rate: int
    enrolment: PseudoSpeaker
    trial: PseudoSpeaker

    def run(self, voice: PseudoSpeaker | None = None, **changes: Any) -> Samples:
        return self.method.anonymize(self.speech.copy(), self.rate, voice or self.trial, **changes)

    def problem(self, breach: str, found: object = "", what: object = "") -> Problem:
        return _tell(self.method, breach, found, what)


def _tell(method: object, breach: str, found: object = "", what: object = "") -> Problem:
    """Return a breach in the words of ``conformance.toml``.

    Args:
        found: where the words do not say it.
        what: was being tried.
    """
    words = _BREACHES[breach]
    name, severity = str(getattr(method, "name", method)), Severity(words.get("severity", "error"))
    expected, told = words["expected"].format(what=what), words.get("found", f"{found}")
    return Problem(breach.partition(":")[0], name, expected, told, words["remedy"], severity)


def check_method(method: Anonymizer, *, speech: Samples | None = None, rate: int = 16_000) -> list[Problem]:
    """Return everything about a method that breaks the contract; empty for one that keeps it.

    Args:
        speech: int16, shape (n,), `rate` in hertz, 1 to 5 s are enough; None for a vowel that is made here.

    Returns:
        Errors for breaches; warnings where something deserves a look; a note where the method cannot run on this
        machine, or its voices could not be compared, as it has only one.
    """
    described = list(_guarded(method, "description", lambda: _check_description(method)))
    if any(problem.severity is Severity.ERROR for problem in described):
        return described
    if missing := method.missing():
        return [*described, _tell(method, "not-run", missing.rstrip("."))]
    sound = make_vowel(rate) if speech is None else speech
    case = _case(method, sound, rate)
    found = list(_guarded(method, "output", lambda: _check_output(case)))
    if any(problem.severity is Severity.ERROR for problem in found):
        return [*described, *found]
    checks = {"repeatable": _check_repeatable, "batch": _check_batch, "voices": _check_voices}
    checks |= {"options": _check_options, "worst cases": _check_worst_cases, "refusals": _check_refusals}
    # Threads last: in a process that forks within milliseconds of the end of a thread, torch's allocator may be locked.
    checks |= {"worker": _check_worker, "threads": _check_threads}
    for what, check in checks.items():
        found += _guarded(method, what, partial(check, case))
    return [*described, *found]


def _case(method: Anonymizer, speech: Samples, rate: int) -> _Case:
    """A method with targets is tried with two that are made here."""
    if takes_targets(method):
        pool = make_targets(rate)
        first, second = (target_voice(target.name) for target in pool.targets)
        return _Case(method.prepare(pool), speech, rate, first, second)
    if plans_voices(method):
        # Each role by itself, as in a run.
        enrolment, trial = (
            plan_requests(method, [VoiceRequest(key, "f", (lambda: (speech, rate),))])[0]
            for key in (hashlib.sha256(role.encode()).hexdigest() for role in ("enrolment", "trial"))
        )
        return _Case(method, speech, rate, enrolment, trial)
    voices = {
        role: plan_voices(method.parameters, seed=7, role=role, split="test", speakers=["a"]).voices["a"]
        for role in ("enrolment", "trial")
    }
    return _Case(method, speech, rate, voices["enrolment"], voices["trial"])


def _guarded(method: Anonymizer, what: str, check: Callable[[], Iterator[Problem]]) -> Iterator[Problem]:
    """Yield what a check yields, and what escapes it as a problem: a method that raises must not end the report."""
    try:
        yield from check()
    except Exception as error:
        yield _tell(method, "raised:check", _describe_error(error), what)


def _check_description(method: Anonymizer) -> Iterator[Problem]:
    if wanted := find_missing_members(method):
        yield _tell(method, "not-an-anonymizer", f"no {', '.join(wanted)}")
        return
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(method.name)):
        yield _tell(method, "name", f'the name "{method.name}"')
    for attribute in ("title", "version", "reference"):
        value = getattr(method, attribute)
        if not isinstance(value, str) or not value.strip():
            yield _tell(method, attribute, repr(value))
    if len(method.parameters) > MOST_PARAMETERS:
        yield _tell(method, "parameters", len(method.parameters), MOST_PARAMETERS)
    for named in (method.parameters, method.options):
        names = [each.name for each in named]
        if len(set(names)) < len(names):
            yield _tell(method, "names", ", ".join(names))
    for parameter in method.parameters:
        yield from _check_parameter(method, parameter)
    for option in method.options:
        option.validate(option.default)
    if not isinstance(method.missing(), str):
        yield _tell(method, "missing")


def _check_parameter(method: Anonymizer, parameter: Parameter) -> Iterator[Problem]:
    gap = parameter.gap or (parameter.low, parameter.low)
    if not (parameter.low <= gap[0] <= gap[1] <= parameter.high and parameter.extent > 0):
        found = f"{parameter.low:g} to {parameter.high:g} without {parameter.gap}"
        yield _tell(method, "parameter-range", found, parameter.name)
    if parameter.unit != parameter.unit.strip():
        yield _tell(method, "parameter-unit", f'"{parameter.unit}"', parameter.name)
    for attribute in ("meaning", "effect"):
        if not getattr(parameter, attribute).strip():
            yield _tell(method, f"parameter-{attribute}", what=parameter.name)


def _check_output(case: _Case) -> Iterator[Problem]:
    samples = case.speech.copy()
    output = case.method.anonymize(samples, case.rate, case.trial)
    yield from _check_form(case, output, case.speech, "speech")
    if not np.array_equal(samples, case.speech):
        yield case.problem("input-changed")
    if np.array_equal(output, case.speech):
        yield case.problem("identical")
    elif isinstance(output, np.ndarray) and not output.any():
        yield case.problem("silent")


def _check_form(case: _Case, output: object, given: npt.NDArray[Any], what: str) -> Iterator[Problem]:
    """int16, mono, about as long as what was given (any length where that was not mono)."""
    found = f"{getattr(output, 'dtype', type(output).__name__)} {getattr(output, 'shape', '')}".strip()
    if not isinstance(output, np.ndarray) or output.dtype != np.int16 or output.ndim != 1:
        yield case.problem("form", found, what)
    elif (
        given.ndim == 1
        and keeps_duration(case.method)
        and abs(output.size - given.size) > max(_NEAR * given.size, _NEAR_S * case.rate)
    ):
        yield case.problem("duration", output.size, f"{given.size} samples for {what}")


def _check_repeatable(case: _Case) -> Iterator[Problem]:
    if not case.method.is_deterministic:
        return
    first = case.run()
    case.run(case.enrolment)
    if not np.array_equal(case.run(), first):
        yield case.problem("not-repeatable")
    if not np.array_equal(case.run(threads=2), first):
        yield case.problem("threads-differ")


def _check_batch(case: _Case) -> Iterator[Problem]:
    half = case.speech[: case.speech.size // 2]
    items = [
        VoicedUtterance(case.speech, case.trial),
        VoicedUtterance(half, case.enrolment),
        VoicedUtterance(case.speech, case.enrolment),
    ]
    outputs = case.method.anonymize_batch(items, case.rate)
    if len(outputs) != len(items):
        yield case.problem("batch-count", len(outputs), f"{len(items)} outputs of a batch")
        return
    for item, output in zip(items, outputs, strict=True):
        yield from _check_form(case, output, item.samples, "an item of a batch")
        alone = case.method.anonymize(item.samples.copy(), case.rate, item.pseudo_speaker)
        if case.method.is_deterministic and not np.array_equal(alone, output):
            yield case.problem("batch-differs")
    if list(case.method.anonymize_batch([], case.rate)):
        yield case.problem("batch-count", "some", "no output of an empty batch")


def _check_voices(case: _Case) -> Iterator[Problem]:
    if not case.method.parameters and not takes_targets(case.method) and not plans_voices(case.method):
        yield case.problem("one-voice")
        return
    enrolment, trial = case.run(case.enrolment).astype(float), case.run(case.trial).astype(float)
    size = min(enrolment.size, trial.size)
    enrolment, trial = enrolment[:size], trial[:size]
    gain = float(enrolment @ trial) / max(float(trial @ trial), 1.0)
    rest = float(np.square(enrolment - gain * trial).sum()) / max(float(enrolment @ enrolment), 1.0)
    if rest < _DIFFERENCE:
        yield case.problem("same-voice", f"{100 * rest:.2g} % of the energy differing")


def _check_options(case: _Case) -> Iterator[Problem]:
    """Yield each value that an option names, and the ends of its range."""
    for option in case.method.options:
        values: list[Any] = [*option.choices]
        if not values:
            values = [False, True] if isinstance(option.default, bool) else [option.low, option.high]
        for value in values:
            if value is not None:
                what = f"{option.name} = {value}"
                yield from _try(case, case.speech, case.rate, case.trial, {option.name: value}, what)


def _check_worst_cases(case: _Case) -> Iterator[Problem]:
    for what, samples, rate in list_worst_cases(case.speech, case.rate):
        yield from _try(case, samples, rate, case.trial, None, what)


def _try(
    case: _Case, samples: npt.NDArray[Any], rate: int, voice: PseudoSpeaker, options: Options | None, what: str
) -> Iterator[Problem]:
    """Yield a result of the right form, or a MethodError in words."""
    given = samples.copy()
    try:
        output = case.method.anonymize(given, rate, voice, options=options)
    except MethodError as error:
        yield from _check_words(case, error, what)
    except Exception as error:
        yield case.problem("raised:request", _describe_error(error), what)
    else:
        yield from _check_form(case, output, samples, what)
    if not np.array_equal(given, samples):
        yield case.problem("input-changed:request", what=what)


def _check_words(case: _Case, error: MethodError, what: str) -> Iterator[Problem]:
    words = str(error)
    if len(words.split()) < 3 or not words.rstrip().endswith((".", "!", "?", "”", '"')):
        yield case.problem("wordless", f'"{words}"', what)


def _check_refusals(case: _Case) -> Iterator[Problem]:
    voices = ((what, voice, None) for what, voice in list_wrong_voices(case.method, case.trial))
    requests = ((what, case.trial, options) for what, options in list_wrong_options(case.method))
    for what, voice, options in chain(voices, requests):
        try:
            case.run(voice, options=options)
        except MethodError as error:
            yield from _check_words(case, error, what)
        except Exception as error:
            yield case.problem("raised:refusal", _describe_error(error), what)
        else:
            yield case.problem("not-refused", what=what)


def _check_threads(case: _Case) -> Iterator[Problem]:
    """Two calls at once, of two voices, give what they give alone."""
    voices = [case.trial, case.enrolment] * 2
    alone = {voice.key: case.run(voice) for voice in voices[:2]}
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(case.run, voices))
    for voice, output in zip(voices, outputs, strict=True):
        if case.method.is_deterministic and not np.array_equal(output, alone[voice.key]):
            yield case.problem("not-reentrant")
            return


def _check_worker(case: _Case) -> Iterator[Problem]:
    """A forked worker can use it; where there is none, it must be picklable."""
    request = (case.method, case.speech, case.rate, case.trial)
    result = run_in_fork(*request, limit_s=_FORK_LIMIT_S)
    if result is None:
        pickle.dumps(case.method)
    elif isinstance(result, str):
        yield case.problem("worker", result)
    elif case.method.is_deterministic and not np.array_equal(result, case.run()):
        yield case.problem("worker:differs")


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# What is tried: a vowel, inputs at the edge of what can be given, wrong requests ---------------------


def make_vowel(rate: int, duration_s: float = 1.5) -> Samples:
    """Return a voice about 130 Hz with vibrato, four resonances and breath, that swells and fades twice, at half
    scale."""
    rng = np.random.default_rng(11)
    time_s = np.arange(round(duration_s * rate)) / rate
    f0_hz = 130 * 2 ** (0.15 * np.sin(2 * np.pi * 1.7 * time_s))
    phase = 2 * np.pi * np.cumsum(f0_hz) / rate
    sound = 0.003 * rng.normal(size=time_s.size)
    for harmonic in range(1, int(0.45 * rate / f0_hz.max())):
        hz = harmonic * f0_hz
        strength = sum(1 / (1 + ((hz - centre_hz) / width_hz) ** 2) for centre_hz, width_hz in _FORMANTS_HZ)
        sound += strength / np.sqrt(harmonic) * np.cos(harmonic * phase)
    sound *= np.clip(1.1 - np.cos(4 * np.pi * time_s / duration_s), 0, None)
    vowel: Samples = (sound / np.abs(sound).max() * _FULL_SCALE / 2).astype(np.int16)
    return vowel


def make_targets(rate: int) -> TargetPool:
    """Return two targets: the vowel played faster, as a smaller speaker would sound, and slower."""
    vowel = make_vowel(rate).astype(np.float64)
    sounds = {}
    for name, speed in (("higher", 1.3), ("lower", 0.8)):
        places = np.arange(0, vowel.size - 1, speed)
        sounds[name] = np.interp(places, np.arange(vowel.size), vowel).astype(np.int16)
    return pool_of_samples(sounds, rate, {"higher": "f", "lower": "m"})


def list_worst_cases(speech: Samples, rate: int) -> Iterator[tuple[str, npt.NDArray[Any], int]]:
    """Name, samples and rate of each case that must give a result or a sentence."""
    rng = np.random.default_rng(12)
    second = rate
    yield "no samples", np.zeros(0, np.int16), rate
    yield "one sample", np.array([123], np.int16), rate
    yield "two samples", np.array([123, -123], np.int16), rate
    yield "0.1 s", speech[: second // 10], rate
    yield "a second of digital silence", np.zeros(second, np.int16), rate
    yield "speech after digital silence", np.concatenate([np.zeros(second // 2, np.int16), speech]), rate
    yield "a constant", np.full(second, 5000, np.int16), rate
    yield "the lowest constant", np.full(second, -32768, np.int16), rate
    yield "a square wave at full scale", np.where(np.arange(second) % 160 < 80, 32767, -32768).astype(np.int16), rate
    yield "noise at full scale", rng.integers(-32768, 32768, second).astype(np.int16), rate
    yield "noise of one step", rng.integers(-1, 2, second).astype(np.int16), rate
    yield "one pulse", np.concatenate([np.zeros(second // 2), [32767], np.zeros(second // 2)]).astype(np.int16), rate
    yield "a tone at half the rate", np.tile(np.array([20_000, -20_000], np.int16), second // 2), rate
    yield "speech at 8 kHz", speech[::2].copy(), 8_000
    yield "speech at 48 kHz", np.repeat(speech, 3), 48_000
    yield "a rate of zero", speech, 0
    yield "two channels", np.stack([speech, speech], axis=1), rate
    yield "floating point", speech / 32768, rate


def list_wrong_voices(method: Anonymizer, voice: PseudoSpeaker) -> Iterator[tuple[str, PseudoSpeaker]]:
    """Name and voice of each one that must be refused."""
    for parameter in method.parameters:
        low, high = parameter.low - parameter.extent, parameter.high + parameter.extent
        outside = {"below its range": low, "above its range": high}
        outside |= {"that is no number": float("nan"), "without end": float("inf")}
        if parameter.gap:
            outside["within its gap"] = sum(parameter.gap) / 2
        for what, value in outside.items():
            changed = {**voice.parameters, parameter.name: value}
            yield f"{parameter.name} {what}", PseudoSpeaker(voice.key, changed)
        rest = {name: value for name, value in voice.parameters.items() if name != parameter.name}
        yield f"a voice without {parameter.name}", PseudoSpeaker(voice.key, rest)
    if takes_targets(method):
        yield "a voice without a target", PseudoSpeaker(voice.key, voice.parameters)
        yield "a target that is not there", PseudoSpeaker(voice.key, voice.parameters, "no-such-target")
    unknown = {**voice.parameters, "no-such-parameter": 1.0}
    yield "a parameter that it does not have", PseudoSpeaker(voice.key, unknown, voice.target)


def list_wrong_options(method: Anonymizer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and options of each request that must be refused."""
    yield "an option that it does not have", {"no-such-option": 1.0}
    for option in method.options:
        if option.choices:
            yield f"{option.name} outside its choices", {option.name: "no-such-choice"}
        elif isinstance(option.default, bool):
            yield f"{option.name} neither true nor false", {option.name: 0.5}
        elif not isinstance(option.default, str):
            yield f"{option.name} that is no number", {option.name: float("nan")}


def run_in_fork(
    method: Anonymizer, samples: Samples, rate: int, voice: PseudoSpeaker, *, limit_s: float
) -> Samples | str | None:
    """Return one call in a forked worker, as jobs and `--jobs` make it: the output, or what went wrong in words.

    None where this process cannot fork (its system, or as a daemon).
    """
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        return None
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(theirs, method, samples, rate, voice))
    worker.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            return f"no answer within {limit_s:g} s"
        return cast("Samples | str", ours.recv())
    except EOFError:
        worker.join()
        return f"the end of the worker, exit status {worker.exitcode}"
    finally:
        ours.close()
        if worker.is_alive():
            worker.join(1.0)
        if worker.is_alive():
            worker.kill()
        worker.join()


def _work(pipe: Connection, method: Anonymizer, samples: Samples, rate: int, voice: PseudoSpeaker) -> None:
    try:
        result: Samples | str = method.anonymize(samples, rate, voice)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    pipe.send(result)
    pipe.close()
