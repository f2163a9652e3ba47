"""Audio of any kind becomes mono 16-bit samples at one rate, or a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from anonymization.methods.audio_conversion import convert_audio, convert_file
from anonymization.methods.contract import MethodError
from speech.audio.files import AudioError, resample

RATE_HZ = 16_000
TONE = np.round(12_000 * np.sin(2 * np.pi * 440 * np.arange(RATE_HZ) / RATE_HZ)).astype(np.int16)


def test_mono_16_bit_samples_at_the_rate_come_back_untouched():
    done = convert_audio(TONE, RATE_HZ, strict=True)
    assert np.array_equal(done.samples, TONE)
    assert (done.rate_hz, done.notes, done.samples.dtype) == (RATE_HZ, (), np.int16)


def test_other_rate_is_resampled_and_said():
    rate_hz = 44_100
    tone = np.round(12_000 * np.sin(2 * np.pi * 440 * np.arange(rate_hz) / rate_hz)).astype(np.int16)
    done = convert_audio(tone, rate_hz)
    assert done.notes == (f"resampled from {rate_hz:,} Hz to 16,000 Hz by soxr",)
    assert done.samples.size == RATE_HZ
    inner = slice(2_000, -2_000)
    assert np.abs(done.samples[inner].astype(int) - TONE[inner]).max() <= 3


def test_long_audio_is_resampled_as_at_once():
    """Several blocks, the last of them a short one."""
    noise = np.random.default_rng(3).normal(0, 9000, 1_300_001).clip(-32768, 32767).astype(np.int16)
    assert np.array_equal(convert_audio(noise, 44_100).samples, resample(noise, 44_100, RATE_HZ))


def test_channels_are_averaged_and_said():
    done = convert_audio(np.stack([TONE, np.zeros_like(TONE)], axis=1), RATE_HZ)
    assert done.notes == ("2 channels averaged to one",)
    assert np.array_equal(done.samples, np.rint(TONE / 2).astype(np.int16))


def test_floating_point_is_rounded_to_the_same_samples():
    done = convert_audio((TONE / 32768).astype(np.float32), RATE_HZ)
    assert np.array_equal(done.samples, TONE)
    assert done.notes == ("float32 samples written as they are to 16 bits",)


def test_floating_point_beyond_full_scale_is_clipped_and_counted():
    done = convert_audio(np.array([1.5, -1.5, 1.0, -1.0, 0.0]), RATE_HZ)
    assert done.samples.tolist() == [32767, -32768, 32767, -32768, 0]
    assert done.notes[-1] == "2 samples beyond full scale clipped"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.array([0, 128, 255], np.uint8), [-32768, 0, 127 * 256]),
        (np.array([-128, 0, 127], np.int8), [-32768, 0, 127 * 256]),
        (np.array([-(2**31), 0, 5 << 16, 2**31 - 1], np.int32), [-32768, 0, 5, 32767]),
        (np.array([1, -2], ">i2"), [1, -2]),
        (np.array([0.5], np.float16), [16384]),
    ],
    ids=["uint8", "int8", "int32", "big-endian", "float16"],
)
def test_integers_fill_the_range_of_their_type(samples, expected):
    assert convert_audio(samples, RATE_HZ).samples.tolist() == expected


@pytest.mark.parametrize(
    ("samples", "rate_hz", "sentence"),
    [
        (np.zeros(0, np.int16), RATE_HZ, "at least one sample, found none"),
        (np.array([0.0, np.nan]), RATE_HZ, "found NaN or infinity"),
        (np.array([12_000.0]), RATE_HZ, "full scale 1.0, found a peak of 12000"),
        (np.zeros((2, 2, 2), np.int16), RATE_HZ, r"found \(2, 2, 2\)"),
        (np.zeros((2, 16_000), np.int16), RATE_HZ, "Swap the axes"),
        (np.zeros(4, np.int64), RATE_HZ, "found int64"),
        (np.zeros(4, np.int16), 0, "found a rate of 0 Hz"),
        (np.zeros(4, np.int16), 10**9, "found a rate of 1,000,000,000 Hz"),
        (np.zeros(4, np.int16), 16_000.5, "whole number of hertz as rate, found 16000.5"),
        (np.zeros(1, np.int16), 48_000, "found less: 1 at 48,000 Hz"),
    ],
)
def test_audio_that_cannot_be_used_is_refused_in_a_sentence(samples, rate_hz, sentence):
    with pytest.raises(MethodError, match=sentence):
        convert_audio(samples, rate_hz)


@pytest.mark.parametrize(
    ("samples", "rate_hz", "change"),
    [(TONE, 8_000, "resampled from 8,000 Hz"), (np.stack([TONE, TONE], axis=1), RATE_HZ, "2 channels averaged")],
)
def test_strict_refuses_each_change(samples, rate_hz, change):
    with pytest.raises(MethodError, match=f"Strict: expected mono 16-bit samples at 16,000 Hz.*{change}"):
        convert_audio(samples, rate_hz, strict=True)


def test_file_of_another_encoding_is_read(tmp_path):
    soundfile.write(tmp_path / "a.wav", TONE / 32768, RATE_HZ, subtype="PCM_24")
    done = convert_file(tmp_path / "a.wav")
    assert np.array_equal(done.samples, TONE)
    assert done.notes == ("PCM_24 samples written as they are to 16 bits",)


def test_cut_stereo_file_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([TONE, TONE], axis=1), RATE_HZ)
    content = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(content[:-1000])
    with pytest.raises(AudioError, match="cut or damaged"):
        convert_file(tmp_path / "a.wav")


def test_channels_that_cancel_each_other_are_refused():
    speech = np.random.default_rng(3).normal(0, 3000, 4000).astype(np.int16)
    with pytest.raises(MethodError, match="found 2 that cancel each other"):
        convert_audio(np.stack([speech, -speech], axis=1), 16_000)
    kept = convert_audio(np.stack([speech, -(speech // 2)], axis=1), 16_000).samples
    assert np.abs(kept).max() > 1000
