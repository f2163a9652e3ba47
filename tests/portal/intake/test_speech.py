"""A file of speech as it came: what is told of it, what becomes of its samples."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.problems import Severity
from portal.intake.expectation import ExpectedUtterance, pcm_sha256
from portal.intake.speech import LONGER_FACTOR, inspect_speech, length_problem
from speech.audio.files import MAX_DIFFERENCE_S, resample
from tests.portal.intake.packing import RATE, flac, tone, wav

SPEECH = tone(2.0, seed=1)
UTTERANCE = ExpectedUtterance("u1", 2 * RATE, RATE, pcm_sha256(tone(2.0, seed=2)))


def inspect(content, expected=UTTERANCE, rate_hz=RATE):
    return inspect_speech(content, file="a/u1.wav", expected=expected, rate_hz=rate_hz)


def codes(inspection):
    return [problem.code for problem in inspection.problems]


def extended(samples):
    """A WAV file with the extensible header, and a chunk before and one after its samples."""
    guid = struct.pack("<H", 1) + bytes.fromhex("000000001000800000aa00389b71")
    header = struct.pack("<HHIIHHHHI", 0xFFFE, 1, RATE, 2 * RATE, 2, 16, 22, 16, 4) + guid
    chunks = b"JUNK" + struct.pack("<I", 3) + b"abc\0" + b"fmt " + struct.pack("<I", len(header)) + header
    data = samples.astype("<i2").tobytes()
    chunks += b"data" + struct.pack("<I", len(data)) + data + b"LIST" + struct.pack("<I", 4) + b"INFO"
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


@pytest.mark.parametrize("pack", [wav, flac, extended])
def test_sixteen_bit_speech_is_kept_as_it_is(pack):
    found = inspect(pack(SPEECH))
    assert found.problems == ()
    np.testing.assert_array_equal(found.speech.samples, SPEECH)
    assert found.speech.pcm_sha256 == pcm_sha256(SPEECH)
    assert (found.speech.rate_hz, found.speech.converted_from) == (RATE, "")


@pytest.mark.parametrize(
    ("subtype", "severity"), [("PCM_24", Severity.NOTE), ("FLOAT", Severity.NOTE), ("ULAW", Severity.WARNING)]
)
def test_other_encodings_are_rounded_and_recorded(subtype, severity):
    found = inspect(wav(SPEECH / 32768, subtype=subtype))
    assert [(one.code, one.severity) for one in found.problems] == [("another-encoding", severity)]
    assert found.speech.converted_from == f"16000 Hz, {subtype}, WAV"
    if severity is Severity.NOTE:
        np.testing.assert_array_equal(found.speech.samples, SPEECH)


def test_another_rate_is_converted_by_soxr_and_recorded():
    content = wav(resample(SPEECH, RATE, 48000), rate=48000)
    found = inspect(content)
    assert codes(found) == ["another-rate"]
    assert found.speech.samples.size == SPEECH.size
    assert found.speech.converted_from == "48000 Hz, PCM_16, WAV"
    np.testing.assert_array_equal(found.speech.samples, resample(resample(SPEECH, RATE, 48000), 48000, RATE))


def test_samples_that_are_no_numbers_are_counted():
    samples = SPEECH / 32768
    samples[5:8], samples[100] = np.nan, np.inf
    found = inspect(wav(samples, subtype="DOUBLE"))
    assert found.speech is None
    assert [problem.found for problem in found.problems] == ["3 NaN and 1 infinite"]


def test_original_is_recognised_in_any_container():
    original = tone(2.0, seed=2)
    for content in (wav(original), flac(original), wav(original / 32768, subtype="PCM_32"), extended(original)):
        assert codes(inspect(content)) == ["identical-to-original"]


def test_length_is_compared_at_its_limits():
    def severity(samples):
        problem = length_problem(samples, UTTERANCE, RATE, "u1.wav")
        return problem and (problem.code, problem.severity)

    tolerated, original = round(MAX_DIFFERENCE_S * RATE), 2 * RATE
    assert severity(original + tolerated) is None
    assert severity(original - tolerated) is None
    assert severity(original + tolerated + 1) == ("longer", Severity.WARNING)
    assert severity(original - tolerated - 1) == ("shorter", Severity.WARNING)
    assert severity(round(original * LONGER_FACTOR)) == ("longer", Severity.WARNING)
    assert severity(round(original * LONGER_FACTOR) + 1) == ("longer", Severity.ERROR)
    assert severity(round(original / LONGER_FACTOR) - 1) == ("shorter", Severity.ERROR)
    assert length_problem(5, ExpectedUtterance("u1"), RATE, "u1.wav") is None


@pytest.mark.parametrize("size", [b"\xff" * 4, bytes(4)])
def test_length_that_a_pipe_leaves_open_is_a_note(size):
    content = wav(SPEECH)
    piped = content[:4] + size + content[8:40] + size + content[44:]
    found = inspect(piped)
    assert codes(found) == ["unstated-length"]
    np.testing.assert_array_equal(found.speech.samples, SPEECH)


def test_hours_of_silence_in_a_small_file_are_not_decoded():
    content = flac(np.zeros(61 * RATE, np.int16))
    assert codes(inspect(content)) == ["too-long"]


@given(content=st.binary(max_size=300), cut=st.integers(0, 200), place=st.integers(0, 60))
def test_any_bytes_give_a_report(content, cut, place):
    whole = wav(SPEECH[:3000])
    for one in (content, whole[:cut], b"RIFF\0\0\0\0WAVE" + content, whole[:place] + content + whole[place:]):
        found = inspect(one)
        assert found.speech is not None or found.has_errors
