"""Files of one size for each duration: lossless, playable by a foreign decoder, and silent about their content."""

import io
import struct

import numpy as np
import soundfile

from listening.stimuli.making import SILENCE_SAMPLES, make_stimulus, make_uniform, write_wav
from tests.listening.stimuli.speech import decode, demo_recordings

HEADER_BYTES = 44


def test_criterion_02_one_channel_serves_both_ears():
    for samples in demo_recordings(step=20):
        heard = decode(make_stimulus(samples, 16000).content)
        assert heard.shape[1] == 1
        np.testing.assert_array_equal(heard[:, 0], make_uniform(samples, 16000).samples)


def test_size_and_header_follow_from_the_duration_alone():
    by_duration, lead_ins = {}, set()
    for samples in demo_recordings(step=4):
        content = make_stimulus(samples, 16000).content
        frames = soundfile.info(io.BytesIO(content)).frames
        by_duration.setdefault(frames, set()).add((len(content), content[:HEADER_BYTES]))
        lead_ins.add(content[HEADER_BYTES : HEADER_BYTES + 2 * SILENCE_SAMPLES])
    assert len(by_duration) > 3
    assert lead_ins == {bytes(2 * SILENCE_SAMPLES)}
    for frames, found in by_duration.items():
        assert [size for size, _ in found] == [HEADER_BYTES + 2 * frames]


def test_header_states_format_and_duration_and_nothing_else():
    content = write_wav(np.arange(9000, dtype=np.int16))
    assert content[:4] + content[8:16] == b"RIFFWAVEfmt "
    assert struct.unpack("<I", content[4:8]) == (len(content) - 8,)
    pcm, mono, rate_hz, bytes_per_s, block, bits = 1, 1, 16000, 32000, 2, 16
    assert struct.unpack("<IHHIIHH", content[16:36]) == (16, pcm, mono, rate_hz, bytes_per_s, block, bits)
    assert content[36:40] == b"data"
    assert struct.unpack("<I", content[40:44]) == (18000,)
    np.testing.assert_array_equal(np.frombuffer(content[HEADER_BYTES:], "<i2"), np.arange(9000))
