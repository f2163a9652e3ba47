"""Checks of an anonymised utterance beside its original."""

from __future__ import annotations

import numpy as np
import pytest

from anonymization.methods.contract import PseudoSpeaker
from anonymization.methods.registry import get_method
from evaluation.metrics.audio_checks import Damage, audio_problems, check_audio, damage_signs, find_damage
from speech.audio.files import resample
from tests.recordings import RATE, first_of_each_speaker, read_demo

SPEECH = np.round(3000 * np.random.default_rng(3).normal(size=RATE)).astype(np.int16)
# What an anonymiser would give: as long and as loud, but another signal.
OTHER = np.ascontiguousarray(SPEECH[::-1])


def codes(anonymised: np.ndarray, original: np.ndarray = SPEECH) -> list[str]:
    return [p.code for p in audio_problems(check_audio(original, anonymised, RATE), "a.wav")]


def test_audio_check_of_a_proper_utterance_finds_nothing():
    check = check_audio(SPEECH, OTHER, RATE)
    assert audio_problems(check, "a.wav") == []
    assert check.duration_difference_samples == 0
    assert check.level_change_db == pytest.approx(0)
    assert check.level_anonymised_dbfs == pytest.approx(20 * np.log10(3000 / 32768), abs=0.1)
    assert check.peak_dbfs == pytest.approx(20 * np.log10(np.abs(SPEECH).max() / 32768))
    assert (check.clipped_share, check.n_not_finite) == (0.0, 0)
    assert (check.silent, check.identical) == (False, False)


def test_audio_check_recognises_a_copy_whatever_its_type():
    assert codes(SPEECH.copy()) == ["identical-to-original"]
    assert codes(SPEECH / 32768) == ["identical-to-original"]
    changed = SPEECH.copy()
    changed[7] += 1
    assert codes(changed) == []


@pytest.mark.parametrize(("samples", "expected"), [(-1040, []), (-1041, ["duration-differs"])])
def test_audio_check_flags_a_duration_beyond_65_ms(samples, expected):
    longer = np.concatenate([OTHER, OTHER])[: RATE + samples]
    check = check_audio(SPEECH, longer, RATE)
    assert check.duration_difference_samples == samples
    assert check.duration_difference_ms == samples / 16
    assert [problem.code for problem in audio_problems(check, "a.wav")] == expected


@pytest.mark.parametrize(("gain", "expected"), [(1 / 17, ["level-changed"]), (17, ["level-changed"])])
def test_audio_check_notes_a_level_change_beyond_24_db(gain, expected):
    quiet = SPEECH / 32768 / 50
    assert codes(gain * quiet[::-1], quiet) == expected


@pytest.mark.parametrize(("clipped", "expected"), [(16, []), (17, ["clipped"])])
def test_audio_check_flags_clipping_beyond_one_in_a_thousand(clipped, expected):
    loud = OTHER.copy()
    loud[:clipped:2] = 32767
    loud[1:clipped:2] = -32768
    assert check_audio(SPEECH, loud, RATE).clipped_share == clipped / RATE
    assert codes(loud) == expected


def test_audio_check_of_silence_has_no_level():
    check = check_audio(SPEECH, np.zeros_like(SPEECH), RATE)
    assert check.silent
    assert check.level_anonymised_dbfs is None
    assert check.level_change_db is None
    assert check.peak_dbfs is None
    assert codes(np.zeros_like(SPEECH)) == ["silent"]


def test_audio_check_says_when_the_original_is_silent_too():
    silence = np.zeros(RATE, np.int16)
    problems = audio_problems(check_audio(silence, silence, RATE), "a.wav")
    assert [problem.code for problem in problems] == ["silent", "identical-to-original"]
    assert "the original is silent, too" in problems[0].sentence()


def test_audio_check_counts_samples_that_are_not_finite():
    broken = OTHER / 32768
    broken[:3] = [np.nan, np.inf, -np.inf]
    check = check_audio(SPEECH, broken, RATE)
    assert check.n_not_finite == 3
    assert check.clipped_share == 0
    assert check.level_change_db == pytest.approx(0, abs=0.01)
    assert codes(broken) == ["not-finite"]


def clipped(samples, factor, gain=0.5):
    """As a system does that limits samples in between: flat peaks, below full scale."""
    peak = np.abs(samples.astype(float)).max()
    return np.rint(np.clip(factor * samples.astype(float), -peak, peak) * gain).astype(np.int16)


def with_gaps(samples, rate, gap_s=0.05, every_s=1.0):
    holed = samples.copy()
    for start in range(int(every_s * rate / 2), len(samples), int(every_s * rate)):
        holed[start : start + int(gap_s * rate)] = 0
    return holed


def at_half_the_rate(samples, rate):
    return resample(resample(samples, rate, rate // 2), rate // 2, rate)[: len(samples)]


def signs_of(samples, original, rate=RATE):
    return damage_signs(find_damage(samples, rate, original), find_damage(original, rate))


def test_damage_to_speech_is_found():
    found = {"flattened": 0, "gaps": 0, "narrow-band": 0}
    speech = [read_demo(row["utterance_id"]) for row in first_of_each_speaker()]
    for samples in speech:
        made = {"flattened": clipped(samples, 4), "gaps": with_gaps(samples, RATE)}
        made["narrow-band"] = at_half_the_rate(samples, RATE)
        for sign, damaged in made.items():
            signs = signs_of(damaged, samples)
            assert set(signs) <= {sign}
            found[sign] += sign in signs
    assert min(found.values()) >= 0.9 * len(speech)


def test_no_speech_and_no_speech_of_b2_is_called_damaged():
    b2 = get_method("mcadams-2022")
    for place, row in enumerate(first_of_each_speaker()):
        samples = read_demo(row["utterance_id"])
        before = find_damage(samples, RATE)
        assert damage_signs(find_damage(samples, RATE, samples), None) == []
        alpha = 0.5 + 0.1 * (place % 5)
        after = b2.anonymize(samples, RATE, PseudoSpeaker("voice", {"alpha": alpha}))
        assert damage_signs(find_damage(after, RATE, samples), before) == [], (place, alpha)


def test_pauses_and_what_the_original_has_too_are_no_damage():
    random = np.random.default_rng(4)
    speech = (3000 * random.normal(size=RATE)).clip(-12000, 12000).astype(np.int16)
    holed = with_gaps(speech, RATE)
    assert signs_of(holed, speech) == ["gaps"]
    assert signs_of(holed, holed) == []
    assert find_damage(holed[: RATE // 2], RATE, speech).gap_s == 0
    assert find_damage(holed, RATE).gap_s == 0
    assert signs_of(clipped(speech, 4), clipped(speech, 4)) == []
    assert find_damage(np.zeros(3, np.int16), RATE) == Damage(0.0, 0.0, None)
    assert find_damage(np.zeros(0, np.int16), RATE) == Damage(0.0, 0.0, None)
