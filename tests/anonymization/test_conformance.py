"""The conformance kit finds what is wrong: methods that break the contract in one way each, and one that keeps it."""

import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from anonymization.conformance import check_method, make_vowel, run_in_fork
from anonymization.methods.contract import Method, MethodError, Option, Parameter, PseudoSpeaker
from common.problems import Severity

GAIN = Parameter("bend", "", 0.1, 0.9, "how far the wave is bent", "The voice sounds rough.")
VOICE = PseudoSpeaker("k", {"bend": 0.5})


def bend(samples, rate, parameters, options, threads):
    """Distorts: enough of an anonymiser for the contract."""
    if rate != 16_000:
        raise MethodError(f"Bending works at 16000 Hz; found {rate} Hz.")
    if samples.dtype != np.int16 or samples.ndim != 1:
        raise MethodError(f"Bending takes int16 samples in one row; found {samples.dtype} {samples.shape}.")
    with np.errstate(invalid="ignore"):
        bent = np.sin(samples / 3000 * (1 + 5 * parameters["bend"])) * 9000 * options["loudness"]
    return np.nan_to_num(bent).astype(np.int16)


GOOD = Method(
    name="bend",
    title="Bending",
    version="1",
    reference="None: a method of the tests",
    process=bend,
    parameters=(GAIN,),
    options=(Option("loudness", 1.0, "how loud", low=0.1, high=1.0),),
)


def changed(process):
    return replace(GOOD, process=process)


def codes(method):
    return {problem.code for problem in check_method(method) if problem.severity is Severity.ERROR}


def test_method_that_keeps_the_contract_has_no_problem():
    assert check_method(GOOD) == []


def test_method_that_cannot_run_here_gets_a_note():
    problems = check_method(replace(GOOD, check=lambda: "It needs a thing that is absent. Get it."))
    assert [(problem.code, problem.severity) for problem in problems] == [("not-run", Severity.NOTE)]
    assert "found It needs a thing that is absent. Get it. It was not run" in problems[0].sentence()


def test_method_with_one_voice_gets_a_note():
    def mumble(samples, rate, parameters, options, threads):
        return bend(samples, rate, {"bend": 0.5}, options, threads)

    problems = check_method(replace(GOOD, parameters=(), process=mumble))
    assert [(problem.code, problem.severity) for problem in problems] == [("one-voice", Severity.NOTE)]


def counting():
    calls = iter(range(1, 10_000))
    return lambda samples, *rest: bend(samples, *rest) // np.int16(1 + next(calls) % 3)


def overwriting(samples, *rest):
    output = bend(samples, *rest)
    samples[:1] += 1
    return output


def fragile(samples, *rest):
    return bend(samples, *rest) if samples[0] or samples.size else None


def curt(samples, rate, *rest):
    if samples.dtype != np.int16 or samples.ndim != 1 or rate != 16_000:
        raise MethodError("bad")
    return bend(samples, rate, *rest)


def by_threads(samples, rate, parameters, options, threads):
    return bend(samples, rate, parameters, options, threads) // np.int16(threads)


class Careless:
    """Keeps the speech of the current call where another call can reach it."""

    def __init__(self):
        self.current = None

    def __call__(self, samples, *rest):
        self.current = samples
        time.sleep(0.02)
        output = bend(self.current, *rest)
        return output * np.int16(-1) if threading.current_thread() is not threading.main_thread() else output


def dying(samples, *rest):
    if os.getpid() != PARENT:
        os._exit(3)
    return bend(samples, *rest)


PARENT = os.getpid()
SLEEP_S = 600


@pytest.mark.parametrize(
    ("process", "code"),
    [
        (lambda samples, *_: samples.copy(), "identical"),
        (lambda samples, *_: np.zeros_like(samples), "silent"),
        (lambda samples, *rest: bend(samples, *rest) / 32768, "form"),
        (lambda samples, *rest: bend(samples, *rest)[:, None], "form"),
        (lambda samples, *rest: bend(samples, *rest)[::2], "duration"),
        (overwriting, "input-changed"),
        (counting(), "not-repeatable"),
        (by_threads, "threads-differ"),
        (fragile, "raised"),
        (curt, "wordless"),
        (lambda samples, rate, _, *rest: bend(samples, rate, {"bend": 0.5}, *rest), "same-voice"),
        (Careless(), "not-reentrant"),
        (dying, "worker"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_breach_is_found(process, code):
    assert code in codes(changed(process))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "Bend It"}, "name"),
        ({"parameters": tuple(replace(GAIN, name=name) for name in "abcde")}, "parameters"),
        ({"parameters": (replace(GAIN, gap=(0.8, 1.0)),)}, "parameter-range"),
        ({"options": (Option("loudness", 5.0, "how loud", low=0.1, high=1.0),)}, "raised"),
        ({"check": lambda: None}, "missing"),
    ],
)
def test_wrong_description_is_found(changes, code):
    assert code in codes(replace(GOOD, **changes))


def test_object_that_is_no_method_is_told_what_it_lacks():
    problems = check_method(object())
    assert [problem.code for problem in problems] == ["not-an-anonymizer"]
    assert "anonymize_batch" in problems[0].found
    assert "needs_gpu" in problems[0].found


class Unchecked:
    """The method without the checks of `Method`: takes any voice and option, or raises a KeyError for a wrong one."""

    def __init__(self, accepts):
        self.accepts = accepts

    def __getattr__(self, name):
        return getattr(GOOD, name)

    def anonymize(self, samples, rate, pseudo_speaker, *, options=None, threads=1):
        if self.accepts:
            return bend(samples, rate, {"bend": 0.5, **pseudo_speaker.parameters}, {"loudness": 1.0}, threads)
        if not GAIN.holds(pseudo_speaker.parameters["bend"]) or options:
            raise KeyError("bend")
        return GOOD.anonymize(samples, rate, pseudo_speaker)


def test_wrong_voice_that_is_taken_is_found():
    found = [problem.sentence() for problem in check_method(Unchecked(True)) if problem.code == "not-refused"]
    assert any("bend above its range" in each for each in found)
    assert any("bend that is no number" in each for each in found)
    assert any("an option that it does not have" in each for each in found)


def test_wrong_voice_that_breaks_it_is_found():
    found = [problem for problem in check_method(Unchecked(False)) if "a MethodError for" in problem.expected]
    assert {problem.found for problem in found} == {"KeyError: 'bend'"}


class OutOfOrder(Unchecked):
    def anonymize(self, samples, rate, pseudo_speaker, **rest):
        return GOOD.anonymize(samples, rate, pseudo_speaker, **rest)

    def anonymize_batch(self, items, rate, **_):
        return [self.anonymize(item.samples, rate, item.pseudo_speaker) for item in reversed(items)]


def test_batch_out_of_order_is_found():
    assert "batch-differs" in codes(OutOfOrder(True))


def test_random_method_that_says_so_is_in_order():
    method = replace(changed(counting()), is_deterministic=False)
    assert check_method(method) == []


def test_worker_that_hangs_is_ended():
    started = time.monotonic()
    slow = changed(lambda *_: time.sleep(SLEEP_S))
    assert run_in_fork(slow, make_vowel(16_000), 16_000, VOICE, limit_s=0.3) == "no answer within 0.3 s"
    assert time.monotonic() - started < SLEEP_S
