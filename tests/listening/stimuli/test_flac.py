"""Files of one size for each duration: lossless, playable by a foreign decoder, and silent about their content."""

import io
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from listening.stimuli.flac import (
    FRAME_SAMPLES,
    HEADER_BYTES,
    LARGEST_FRAME_BYTES,
    RATE_STEP_BYTES,
    USUAL_FRAME_BYTES,
    FlacSizeError,
    file_bytes,
    frame_bytes_needed,
    kbit_per_s,
    write_stimulus,
)
from listening.stimuli.making import make_stimulus
from listening.stimuli.uniform import make_uniform
from tests.listening.stimuli.speech import decode, demo_recordings


def with_silence(samples):
    whole = np.zeros((2 - -len(samples) // FRAME_SAMPLES) * FRAME_SAMPLES, np.int16)
    whole[FRAME_SAMPLES : FRAME_SAMPLES + len(samples)] = samples
    return whole


def test_criterion_02_both_ears_get_the_same_samples():
    for samples in demo_recordings(step=20):
        uniform = make_uniform(samples, 16000)
        heard = decode(write_stimulus(uniform.samples, USUAL_FRAME_BYTES))
        np.testing.assert_array_equal(heard[:, 0], uniform.samples)
        np.testing.assert_array_equal(heard[:, 1], uniform.samples)
        left, right = np.square(heard.astype(float)).sum(axis=0)
        assert left == right > 0


def test_size_follows_from_the_duration_alone():
    by_duration, lead_ins = {}, set()
    for samples in demo_recordings(step=4):
        content = make_stimulus(samples, 16000, USUAL_FRAME_BYTES).content
        by_duration.setdefault(soundfile.info(io.BytesIO(content)).frames, set()).add(
            (len(content), content[:HEADER_BYTES])
        )
        lead_ins.add(content[HEADER_BYTES : HEADER_BYTES + USUAL_FRAME_BYTES])
    assert all(len(found) == 1 for found in by_duration.values())
    assert len(lead_ins) == 1
    assert len(by_duration) > 3
    for frames, [(size, _)] in by_duration.items():
        assert size == file_bytes(frames, USUAL_FRAME_BYTES) == HEADER_BYTES + frames // FRAME_SAMPLES * 5888


def test_header_states_format_and_duration_and_nothing_else():
    samples = with_silence(np.arange(9000, dtype=np.int16))
    content = write_stimulus(samples, USUAL_FRAME_BYTES)
    assert content[:8] == b"fLaC\x80\x00\x00\x22"  # STREAMINFO, and it is the last block
    smallest_block, largest_block = struct.unpack(">HH", content[8:12])
    assert (smallest_block, largest_block) == (4096, 4096)
    assert content[12:18] == bytes(6)  # sizes of frames
    facts = int.from_bytes(content[18:26], "big")
    assert (facts >> 44, (facts >> 41) & 7, (facts >> 36) & 31, facts & (2**36 - 1)) == (16000, 1, 15, len(samples))
    assert content[26:42] == bytes(16)  # MD5 of the samples
    assert content[42:44] == b"\xff\xf8"  # the sound begins


@pytest.mark.parametrize("frame_bytes", range(4096, LARGEST_FRAME_BYTES + 1, RATE_STEP_BYTES))
def test_same_samples_at_every_size(frame_bytes):
    rng = np.random.default_rng(frame_bytes)
    samples = with_silence(np.rint(rng.normal(0, 60, 20000) * np.linspace(0, 1, 20000)).astype(np.int16))
    content = write_stimulus(samples, frame_bytes)
    assert len(content) == file_bytes(len(samples), frame_bytes)
    np.testing.assert_array_equal(decode(content), np.stack([samples, samples], axis=1))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 3 * FRAME_SAMPLES),
    loudness=st.integers(0, 2600),
    smooth=st.integers(1, 40),
)
def test_any_sound_of_stimulus_level_comes_back_in_the_size_asked_for(seed, length, loudness, smooth):
    rng = np.random.default_rng(seed)
    sound = np.convolve(rng.normal(0, loudness, length), np.ones(smooth) / smooth)[:length]
    samples = with_silence(np.clip(np.rint(sound), -32768, 32767).astype(np.int16))
    frame_bytes = max(USUAL_FRAME_BYTES, frame_bytes_needed(samples))
    content = write_stimulus(samples, frame_bytes)
    assert len(content) == file_bytes(len(samples), frame_bytes)
    np.testing.assert_array_equal(decode(content)[:, 0], samples)


def test_extreme_samples_are_refused_or_come_back():
    for wave in (np.tile(np.array([32767, -32768], np.int16), 6000), np.full(9000, -32768, np.int16)):
        samples = with_silence(wave)
        content = write_stimulus(samples, max(USUAL_FRAME_BYTES, frame_bytes_needed(samples)))
        np.testing.assert_array_equal(decode(content)[:, 1], samples)
    loud = with_silence(np.random.default_rng(0).integers(-32768, 32768, 40000).astype(np.int16))
    assert frame_bytes_needed(loud) > LARGEST_FRAME_BYTES
    with pytest.raises(FlacSizeError, match="do not come to"):
        write_stimulus(loud, USUAL_FRAME_BYTES)


def test_smaller_than_needed_is_refused():
    samples = make_uniform(demo_recordings(step=119)[0], 16000).samples
    needed = frame_bytes_needed(samples)
    assert len(write_stimulus(samples, needed)) == file_bytes(len(samples), needed)
    with pytest.raises(FlacSizeError):
        write_stimulus(samples, needed - RATE_STEP_BYTES)


def test_same_samples_give_the_same_bytes():
    one, other = (make_stimulus(demo_recordings(step=119)[0], 16000, USUAL_FRAME_BYTES) for _ in range(2))
    assert one == other
    assert one.facts["frame_bytes"] == USUAL_FRAME_BYTES
    assert kbit_per_s(USUAL_FRAME_BYTES) == 184


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(5000, np.int16),
        np.zeros(0, np.int16),
        np.zeros(8192),
        np.ones(8192, np.int16),
        np.zeros((4096, 2), np.int16),
    ],
)
def test_samples_of_another_form_are_refused(samples):
    with pytest.raises(ValueError, match="expected"):
        write_stimulus(samples, USUAL_FRAME_BYTES)
