"""Checks of outputs and voices: what is right passes, and each problem is named by its own code."""

import numpy as np
import pytest

from anonymization.checks.outputs import LOST_SPEECH_MS, check_output
from anonymization.checks.voices import check_voices
from anonymization.methods.contract import Parameter, PseudoSpeaker
from anonymization.methods.voices.pseudo_speakers import (
    Assignment,
    draw_pseudo_speaker,
    plan_voices,
    pseudo_speaker_key,
)
from common.problems import Severity
from evaluation.metrics.audio_checks import MAX_CLIPPED_SHARE, MAX_DURATION_DIFFERENCE_MS, MAX_LEVEL_CHANGE_DB

RATE = 16_000
ALPHA = Parameter("alpha", "", 0.5, 0.9, "")
SHIFT = Parameter("shift", "semitones", -6.0, 6.0, "", gap=(-1.0, 1.0))


def speech(seconds=1.0, amplitude=3000):
    noise = np.random.default_rng(3).normal(0, amplitude / 3, round(seconds * RATE))
    return np.clip(noise, -amplitude, amplitude).astype(np.int16)


def codes(problems):
    return [problem.code for problem in problems]


def found(original, output):
    return codes(check_output(original, output, RATE, file="a.wav"))


# Outputs


def test_changed_speech_of_the_same_length_and_level_is_in_order():
    assert found(speech(), -speech()) == []


def test_untouched_speech_is_an_error_and_one_changed_sample_is_not():
    changed = speech()
    changed[100] += 1
    assert found(speech(), speech()) == ["identical-to-original"]
    assert found(speech(), changed) == []


def test_silent_output_is_an_error():
    [first, *_] = check_output(speech(), np.zeros(RATE, np.int16), RATE, file="a.wav")
    assert (first.code, first.severity, first.file) == ("silent", Severity.ERROR, "a.wav")


@pytest.mark.parametrize(("milliseconds", "remedy"), [(99, "leave it out"), (100, "Anonymise this utterance again")])
def test_very_short_output_that_is_silent_or_the_same_is_not_asked_for_again(milliseconds, remedy):
    short = speech()[: RATE * milliseconds // 1000]
    [silent, *_] = check_output(short, np.zeros_like(short), RATE, file="a.wav")
    assert (silent.code, silent.severity) == ("silent", Severity.ERROR)
    assert remedy in silent.remedy
    [same] = check_output(short, short, RATE, file="a.wav")
    assert ("leave it out" in same.remedy) == (milliseconds < 100)


@pytest.mark.parametrize("original", [np.zeros(RATE, np.int16), np.zeros(0, np.int16)])
def test_silence_that_stays_silent_is_only_noted(original):
    [problem] = check_output(original, original.copy(), RATE, file="a.wav")
    assert (problem.code, problem.severity) == ("silent", Severity.NOTE)


@pytest.mark.parametrize(("extra_samples", "expected"), [(0, []), (1, ["duration-differs"])])
@pytest.mark.parametrize("sign", [1, -1])
def test_duration_is_measured_to_the_sample_at_the_limit_of_evaluation(extra_samples, expected, sign):
    limit = round(MAX_DURATION_DIFFERENCE_MS * RATE / 1000)
    output = np.resize(-speech(), RATE + sign * (limit + extra_samples))
    assert found(speech(), output) == expected


def test_clipping_and_level_have_the_limits_of_evaluation():
    clipped = -speech()
    clipped[: round(MAX_CLIPPED_SHARE * RATE) + 1] = 32767
    assert found(speech(), clipped) == ["clipped"]
    gain = 10 ** ((MAX_LEVEL_CHANGE_DB + 1) / 20)
    quiet = speech(amplitude=400)
    assert found(quiet, (-gain * quiet).astype(np.int16)) == ["level-changed"]


def test_dropped_speech_is_a_warning_and_a_closure_is_not():
    limit = round(LOST_SPEECH_MS * RATE / 1000)
    kept, lost = -speech(), -speech()
    kept[3200 : 3200 + limit] = 0
    lost[3200 : 3200 + limit + 320] = 0
    assert found(speech(), kept) == []
    [problem] = check_output(speech(), lost, RATE, file="a.wav")
    assert (problem.code, problem.severity, problem.found) == ("speech-lost", Severity.WARNING, "120 ms from 0.20 s on")


def test_pauses_of_the_original_may_be_silent():
    original = speech(2.0)
    original[RATE:] = np.resize([1, -1], RATE)
    output = -original
    output[RATE:] = 0
    assert found(original, output) == []


# Voices, by what is written of them


def planned(parameters, role, speakers, *, split="dev", seed=1):
    plan = plan_voices(parameters, seed=seed, role=role, split=split, speakers=speakers)
    return [
        Assignment(role, split, "speaker", name, f"{name}_{number}", voice)
        for name, voice in plan.voices.items()
        for number in range(2)
    ], plan.distance


def at_utterance_level(count, role="training"):
    keys = [
        pseudo_speaker_key(seed=1, role=role, split="train", speaker="a", utterance=f"a_{number}")
        for number in range(count)
    ]
    return [
        Assignment(role, "train", "utterance", "a", f"a_{number}", draw_pseudo_speaker(key, [ALPHA]))
        for number, key in enumerate(keys)
    ]


def given_voice(speaker, alpha, role="trial", utterance="", key="k", **names):
    level = "utterance" if names.pop("own", False) else "speaker"
    return Assignment(
        role, names.get("split", "dev"), level, speaker, utterance, PseudoSpeaker(key, {"alpha": alpha}), line=5
    )


def find_problems(assignments, parameters=(ALPHA,), distance=0.01):
    report = check_voices(assignments, parameters, distance=distance)
    return [(problem.code, problem.severity.value, problem.found) for problem in report.problems]


def test_report_says_in_words_what_was_found():
    trial, distance = planned([ALPHA], "trial", ["a", "b"])
    report = check_voices([*trial, *at_utterance_level(3)], [ALPHA], distance=distance)
    assert report.sentence() == (
        "2 speakers at speaker level and 3 utterances at utterance level: 5 different voices, any two at least "
        f"{report.smallest_distance:.4g} apart (required: 0.125). Voices differ as required."
    )


def test_speaker_with_two_voices_is_told_whatever_the_data_set():
    rows = [given_voice("a", 0.6, utterance="a_common"), given_voice("a", 0.7, utterance="a_different")]
    assert find_problems(rows) == [("several-voices", "error", "2 voices, in a_common, a_different")]
    assert not check_voices(rows, [ALPHA], distance=0.01).voices_differ


def test_voice_of_two_speakers_is_told_once():
    rows = [given_voice(name, 0.6, utterance=f"{name}_{n}") for name in "abcdefg" for n in range(3)]
    assert find_problems(rows) == [("shared-voice", "error", "one voice for 7: a, b, c, d, e and 2 more")]


def test_enrolment_like_trial_is_told_and_that_of_another_speaker_is_not():
    assert find_problems([given_voice("a", 0.6), given_voice("a", 0.6, "enrolment")]) == [
        ("enrolment-like-trial", "error", "the same voice")
    ]
    assert find_problems([given_voice("a", 0.6), given_voice("b", 0.6, "enrolment")]) == []


def test_voices_nearer_than_promised_are_told():
    near = [given_voice("a", 0.6), given_voice("b", 0.603), given_voice("c", 0.8)]
    [(code, _, sentence)] = find_problems(near)
    assert code == "voices-too-close"
    assert sentence == "0.0075 between the speaker a (trial, dev) and the speaker b (trial, dev)"
    assert find_problems(near, distance=0.007) == []
    [(code, _, sentence)] = find_problems([given_voice("a", 0.6), given_voice("a", 0.603, "enrolment")])
    assert (code, sentence) == (
        "voices-too-close",
        "0.0075 between the speaker a (enrolment, dev) and the speaker a (trial, dev)",
    )


def test_distance_is_that_of_the_parameter_that_differs_most():
    voices = {"a": (0.6, 2.0), "b": (0.6001, 5.0)}
    rows = [
        Assignment("trial", "dev", "speaker", name, "", PseudoSpeaker(name, {"alpha": alpha, "shift": shift}))
        for name, (alpha, shift) in voices.items()
    ]
    report = check_voices(rows, [ALPHA, SHIFT], distance=0.2)
    assert report.problems == ()
    assert report.smallest_distance == pytest.approx(3 / 10)


def test_each_utterance_needs_its_own_voice_at_utterance_level():
    assert find_problems(at_utterance_level(200)) == []
    shared = [given_voice("a", 0.6, "training", f"a_{n}", own=True) for n in range(3)]
    assert find_problems(shared) == [("shared-voice", "error", "one voice for 3: a_0, a_1, a_2")]
    two = [given_voice("a", alpha, "training", "a_1", own=True) for alpha in (0.6, 0.7)]
    assert find_problems(two) == [("several-voices", "error", "two")]


def test_method_of_one_voice_is_a_note_and_no_problem():
    rows = [
        Assignment(role, "dev", "speaker", name, "", PseudoSpeaker(name, {}))
        for role in ("trial", "enrolment")
        for name in "abc"
    ]
    report = check_voices(rows, [], distance=0)
    [problem] = report.problems
    assert (problem.code, problem.severity) == ("one-voice-for-all", Severity.NOTE)
    assert "one voice for all 3 speakers" in problem.found
    assert (report.voices_differ, report.n_voices, report.smallest_distance) == (False, 1, None)
    assert report.sentence().endswith("This method has no parameters, so nothing here makes its voices differ.")


def test_voices_of_an_uploaded_system_are_compared_without_a_distance():
    rows = [given_voice("a", 0.6), given_voice("b", 0.6000001), given_voice("c", 99.0)]
    assert find_problems(rows, None) == [("distance-not-known", "note", "an uploaded system's")]
    assert [code for code, *_ in find_problems([*rows, given_voice("d", 99.0)], None)] == [
        "shared-voice",
        "distance-not-known",
    ]
    named = [Assignment("trial", "dev", "speaker", name, "", PseudoSpeaker("voice-7", {})) for name in "ab"]
    assert [code for code, *_ in find_problems(named, None)] == ["shared-voice", "distance-not-known"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (given_voice("a", 0.4), "0.4 for the speaker a (trial, dev)"),
        (Assignment("trial", "dev", "speaker", "a", "", PseudoSpeaker("k", {"beta": 1.0})), "beta for the speaker a"),
    ],
)
def test_voice_that_the_method_does_not_have_is_told(row, sentence):
    [(code, severity, what)] = find_problems([row])
    assert (code, severity) == ("wrong-voice", "error")
    assert what.startswith(sentence)
