"""Whether an anonymiser, built in or plugged in, keeps the contract: tried on speech, on worst cases and at once.

`check_method` never raises for what a method does: every breach is a `Problem` that says what was expected and found.
It takes some thirty calls of the method; conventions are those of `contract`.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from anonymization.methods.conformance_inputs import make_targets, make_vowel, worst_cases, wrong_options, wrong_voices
from anonymization.methods.conformance_workers import run_in_fork
from anonymization.methods.contract import (
    MOST_PARAMETERS,
    Anonymizer,
    Item,
    Options,
    Parameter,
    PseudoSpeaker,
    Samples,
    takes_targets,
)
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import plan_voices
from anonymization.methods.target_pool import target_voice
from evaluation.formats.problems import Problem, Severity

# A method that does not keep the duration may change it by so much, and a very short input by so many seconds.
_NEAR, _NEAR_S = 0.25, 0.1
# Two voices that differ by less than this part of their energy, at the best gain, are one.
_DIFFERENCE = 0.01
_FORK_LIMIT_S = 120.0
_MEMBER = (property, FunctionType)


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

    def problem(
        self, code: str, expected: str, found: str, remedy: str, severity: Severity = Severity.ERROR
    ) -> Problem:
        return Problem(code, str(getattr(self.method, "name", self.method)), expected, found, remedy, severity)


def check_method(method: Anonymizer, *, speech: Samples | None = None, rate: int = 16_000) -> list[Problem]:
    """Everything about a method that breaks the contract; empty for one that keeps it.

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
        note = "what it needs is on this machine", missing.rstrip("."), "It was not run; get what is missing first."
        return [*described, Problem("not-run", method.name, *note, Severity.NOTE)]
    sound = make_vowel(rate) if speech is None else speech
    case = _case(method, sound, rate)
    found = list(_guarded(method, "output", lambda: _check_output(case)))
    if any(problem.severity is Severity.ERROR for problem in found):
        return [*described, *found]
    checks: tuple[Callable[[_Case], Iterator[Problem]], ...] = (
        _check_repeatable,
        _check_batch,
        _check_voices,
        _check_options,
        _check_worst_cases,
        _check_refusals,
        _check_threads,
        _check_worker,
    )
    for check in checks:
        found += _guarded(method, check.__name__.removeprefix("_check_").replace("_", " "), partial(check, case))
    return [*described, *found]


def _case(method: Anonymizer, speech: Samples, rate: int) -> _Case:
    """A method with targets is tried with two that are made here."""
    if takes_targets(method):
        pool = make_targets(rate)
        first, second = (target_voice(target.name) for target in pool.targets)
        return _Case(method.prepare(pool), speech, rate, first, second)
    voices = {
        role: plan_voices(method.parameters, seed=7, role=role, split="test", speakers=["a"]).voices["a"]
        for role in ("enrolment", "trial")
    }
    return _Case(method, speech, rate, voices["enrolment"], voices["trial"])


def _guarded(method: Anonymizer, what: str, check: Callable[[], Iterator[Problem]]) -> Iterator[Problem]:
    """What a check yields, and what escapes it as a problem: a method that raises must not end the report."""
    try:
        yield from check()
    except Exception as error:
        expected = f"the check of its {what} to run through"
        remedy = "Return a result, or raise MethodError for what cannot be used."
        yield Problem("raised", str(getattr(method, "name", method)), expected, _words_of(error), remedy)


def _check_description(method: Anonymizer) -> Iterator[Problem]:
    name = str(getattr(method, "name", method))
    if not isinstance(method, Anonymizer):
        wanted = [each for each in _members() if not hasattr(method, each)]
        expected = "all that the protocol Anonymizer names"
        yield Problem("not-an-anonymizer", name, expected, f"no {', '.join(wanted)}", "Add what is missing.")
        return
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        yield Problem("name", name, "small letters, digits and hyphens", f'the name "{name}"', "Name it so.")
    for attribute in ("title", "version", "reference"):
        value = getattr(method, attribute)
        if not isinstance(value, str) or not value.strip():
            yield Problem(attribute, name, f"a {attribute} in words", f"{value!r}", f"Give the method a {attribute}.")
    if len(method.parameters) > MOST_PARAMETERS:
        found = f"{len(method.parameters)}"
        yield Problem("parameters", name, f"at most {MOST_PARAMETERS} parameters", found, "Make some of them options.")
    for named in (method.parameters, method.options):
        names = [each.name for each in named]
        if len(set(names)) < len(names):
            yield Problem("names", name, "a name of its own for each", ", ".join(names), "Name them apart.")
    for parameter in method.parameters:
        yield from _check_parameter(name, parameter)
    for option in method.options:
        option.validate(option.default)
    if not isinstance(method.missing(), str):
        yield Problem("missing", name, "missing() to give a sentence or nothing", "another type", "Return a text.")


def _check_parameter(name: str, parameter: Parameter) -> Iterator[Problem]:
    gap = parameter.gap or (parameter.low, parameter.low)
    if not (parameter.low <= gap[0] <= gap[1] <= parameter.high and parameter.extent > 0):
        found = f"{parameter.low:g} to {parameter.high:g} without {parameter.gap}"
        expected = f"a range of {parameter.name} with its gap inside"
        yield Problem("parameter-range", name, expected, found, "Correct the range.")
    if parameter.unit != parameter.unit.strip():
        expected, found = f"a unit of {parameter.name} without spaces around it", f'"{parameter.unit}"'
        yield Problem("parameter-unit", name, expected, found, "Whoever prints it adds the space.")
    for attribute, severity in (("meaning", Severity.ERROR), ("effect", Severity.WARNING)):
        if not getattr(parameter, attribute).strip():
            expected = f"{parameter.name} to say its {attribute}"
            yield Problem(f"parameter-{attribute}", name, expected, "nothing", "Write a sentence.", severity)


def _check_output(case: _Case) -> Iterator[Problem]:
    samples = case.speech.copy()
    output = case.method.anonymize(samples, case.rate, case.trial)
    yield from _check_form(case, output, case.speech, "speech")
    if not np.array_equal(samples, case.speech):
        yield case.problem("input-changed", "the input as it was", "other samples in it", "Work on a copy.")
    if np.array_equal(output, case.speech):
        remedy = "Anonymise, or raise MethodError where that cannot be done."
        yield case.problem("identical", "another voice", "the input itself", remedy)
    elif isinstance(output, np.ndarray) and not output.any():
        remedy = "Return speech, or raise MethodError where that cannot be done."
        yield case.problem("silent", "speech", "silence", remedy)


def _check_form(case: _Case, output: object, given: npt.NDArray[Any], what: str) -> Iterator[Problem]:
    """int16, mono, about as long as what was given (any length where that was not mono)."""
    found = f"{getattr(output, 'dtype', type(output).__name__)} {getattr(output, 'shape', '')}".strip()
    if not isinstance(output, np.ndarray) or output.dtype != np.int16 or output.ndim != 1:
        remedy = "Return a numpy array of int16, shape (n,)."
        yield case.problem("form", f"int16 samples, mono, for {what}", found, remedy)
    elif given.ndim == 1 and abs(output.size - given.size) > max(_NEAR * given.size, _NEAR_S * case.rate):
        expected = f"about {given.size} samples for {what}"
        yield case.problem("duration", expected, f"{output.size}", "Keep the duration, or come near it.")


def _check_repeatable(case: _Case) -> Iterator[Problem]:
    if not case.method.is_deterministic:
        return
    first = case.run()
    case.run(case.enrolment)
    remedy = "Take all randomness from the key of the voice, keep no state, or declare is_deterministic false."
    if not np.array_equal(case.run(), first):
        yield case.problem("not-repeatable", "the same output for the same request", "another one", remedy)
    if not np.array_equal(case.run(threads=2), first):
        yield case.problem("threads-differ", "the same output with two threads", "another one", remedy)


def _check_batch(case: _Case) -> Iterator[Problem]:
    half = case.speech[: case.speech.size // 2]
    items = [Item(case.speech, case.trial), Item(half, case.enrolment), Item(case.speech, case.enrolment)]
    outputs = case.method.anonymize_batch(items, case.rate)
    remedy = "Return one output for each item, in their order, as anonymize would."
    if len(outputs) != len(items):
        yield case.problem("batch-count", f"{len(items)} outputs of a batch", f"{len(outputs)}", remedy)
        return
    for item, output in zip(items, outputs, strict=True):
        yield from _check_form(case, output, item.samples, "an item of a batch")
        alone = case.method.anonymize(item.samples.copy(), case.rate, item.pseudo_speaker)
        if case.method.is_deterministic and not np.array_equal(alone, output):
            yield case.problem("batch-differs", "a batch to give what single calls give", "another output", remedy)
    if list(case.method.anonymize_batch([], case.rate)):
        yield case.problem("batch-count", "no output of an empty batch", "some", remedy)


def _check_voices(case: _Case) -> Iterator[Problem]:
    if not case.method.parameters and not takes_targets(case.method):
        found, remedy = "no parameters: all speakers get one voice", "Known for what it is, this is in order."
        yield case.problem("one-voice", "parameters that make voices differ", found, remedy, Severity.NOTE)
        return
    enrolment, trial = case.run(case.enrolment).astype(float), case.run(case.trial).astype(float)
    size = min(enrolment.size, trial.size)
    enrolment, trial = enrolment[:size], trial[:size]
    gain = float(enrolment @ trial) / max(float(trial @ trial), 1.0)
    rest = float(np.square(enrolment - gain * trial).sum()) / max(float(enrolment @ enrolment), 1.0)
    if rest < _DIFFERENCE:
        expected = "the enrolment and the trial voice of a speaker to sound different"
        remedy = "Let the parameters of the voice change the sound."
        yield case.problem("same-voice", expected, f"{100 * rest:.2g} % of the energy differing", remedy)


def _check_options(case: _Case) -> Iterator[Problem]:
    """Each value that an option names, and the ends of its range."""
    for option in case.method.options:
        values: list[Any] = [*option.choices]
        if not values:
            values = [False, True] if isinstance(option.default, bool) else [option.low, option.high]
        for value in values:
            if value is not None:
                what = f"{option.name} = {value}"
                yield from _try(case, case.speech, case.rate, case.trial, {option.name: value}, what)


def _check_worst_cases(case: _Case) -> Iterator[Problem]:
    for what, samples, rate in worst_cases(case.speech, case.rate):
        yield from _try(case, samples, rate, case.trial, None, what)


def _try(
    case: _Case, samples: npt.NDArray[Any], rate: int, voice: PseudoSpeaker, options: Options | None, what: str
) -> Iterator[Problem]:
    """A result of the right form, or a MethodError in words."""
    given = samples.copy()
    try:
        output = case.method.anonymize(given, rate, voice, options=options)
    except MethodError as error:
        yield from _check_words(case, error, what)
    except Exception as error:
        remedy = "Return a result, or raise MethodError for what cannot be used."
        yield case.problem("raised", f"a result or a MethodError for {what}", _words_of(error), remedy)
    else:
        yield from _check_form(case, output, samples, what)
    if not np.array_equal(given, samples):
        yield case.problem("input-changed", f"the input as it was, {what}", "other samples in it", "Work on a copy.")


def _check_words(case: _Case, error: MethodError, what: str) -> Iterator[Problem]:
    words = str(error)
    if len(words.split()) < 3 or not words.rstrip().endswith((".", "!", "?", "”", '"')):
        remedy = "Say what was expected, what was found and what to do."
        yield case.problem("wordless", f"a sentence that refuses {what}", f'"{words}"', remedy)


def _check_refusals(case: _Case) -> Iterator[Problem]:
    requests: list[tuple[str, PseudoSpeaker, Mapping[str, Any] | None]] = [
        *((what, voice, None) for what, voice in wrong_voices(case.method, case.trial)),
        *((what, case.trial, options) for what, options in wrong_options(case.method)),
    ]
    for what, voice, options in requests:
        try:
            case.run(voice, options=options)
        except MethodError as error:
            yield from _check_words(case, error, what)
        except Exception as error:
            yield case.problem("raised", f"a MethodError for {what}", _words_of(error), "Raise MethodError.")
        else:
            remedy = "Refuse it, with `contract.validate_voice` and `contract.complete_options`."
            yield case.problem("not-refused", f"a MethodError for {what}", "a result", remedy)


def _check_threads(case: _Case) -> Iterator[Problem]:
    """Two calls at once, of two voices, give what they give alone."""
    voices = [case.trial, case.enrolment] * 2
    alone = {voice.key: case.run(voice) for voice in voices[:2]}
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(case.run, voices))
    for voice, output in zip(voices, outputs, strict=True):
        if case.method.is_deterministic and not np.array_equal(output, alone[voice.key]):
            remedy = "Share no state between calls."
            yield case.problem("not-reentrant", "the same output in two threads at once", "another one", remedy)
            return


def _check_worker(case: _Case) -> Iterator[Problem]:
    """A forked worker can use it; where there is none, it must be picklable."""
    request = (case.method, case.speech, case.rate, case.trial)
    result = run_in_fork(*request, limit_s=_FORK_LIMIT_S)
    remedy = "Keep no thread, lock or device open between calls."
    if result is None:
        pickle.dumps(case.method)
    elif isinstance(result, str):
        yield case.problem("worker", "a result in a forked worker", result, remedy)
    elif case.method.is_deterministic and not np.array_equal(result, case.run()):
        yield case.problem("worker", "the same output in a forked worker", "another one", remedy)


def _members() -> tuple[str, ...]:
    """What the protocol names."""
    return tuple(name for name, value in vars(Anonymizer).items() if name[0] != "_" and isinstance(value, _MEMBER))


def _words_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
