"""Audio files: facts, and a typed error for every way in which a file lies."""

import hashlib
import io
import os
import re
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from speech.audio.files import AudioError, check_stated_rate, inspect_audio, read_pcm16, resample, write_flac16

RATE = 16000


@pytest.fixture
def speech():
    """Two seconds of noise: it does not compress, so that a cut always hits samples."""
    return (np.random.default_rng(7).standard_normal(2 * RATE) * 3000).astype(np.int16)


def encoded(samples, form="WAV", subtype="PCM_16", rate=RATE):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=form, subtype=subtype)
    return bytearray(buffer.getvalue())


def saved(folder, data, name="a.audio"):
    path = folder / name
    path.write_bytes(data)
    return path


def refused(source):
    with pytest.raises(AudioError) as caught:
        inspect_audio(source)
    assert str(caught.value) == (f"expected {caught.value.expected}, found {caught.value.found}. {caught.value.remedy}")
    return caught.value.code


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_inspect_states_what_is_in_the_file(tmp_path, speech, form):
    data = encoded(speech, form)
    facts = inspect_audio(saved(tmp_path, data))
    scaled = speech / 32768
    assert (facts.rate_hz, facts.channels, facts.samples) == (RATE, 1, 2 * RATE)
    assert (facts.encoding, facts.format, facts.duration_s) == ("PCM_16", form, 2.0)
    assert facts.sha256 == hashlib.sha256(data).hexdigest()
    assert facts.peak == np.abs(scaled).max()
    assert facts.rms == pytest.approx(np.sqrt(np.mean(scaled**2)), rel=1e-12)
    assert facts.is_silent is False


def test_digital_silence_and_faint_noise_are_silent_but_quiet_speech_is_not(speech):
    silence, noise = np.zeros(RATE, np.int16), (speech[:RATE] % 3).astype(np.int16)
    quiet = (speech // 100).astype(np.int16)
    assert [inspect_audio(io.BytesIO(encoded(samples))).is_silent for samples in (silence, noise, quiet)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
@pytest.mark.parametrize("kept", [0.3, 0.99])
def test_a_cut_file_is_truncated(tmp_path, speech, form, kept):
    data = encoded(speech, form)
    assert refused(saved(tmp_path, data[: int(len(data) * kept)])) == "truncated"


def test_a_damaged_part_is_named_by_the_samples_around_it(speech):
    data = encoded(speech, "FLAC")
    with pytest.raises(AudioError) as caught:
        inspect_audio(io.BytesIO(data[: len(data) // 2]))
    first, last = re.fullmatch(
        r"a part that cannot be decoded, between samples (\d+) and (\d+)", caught.value.found
    ).groups()
    assert 0 <= int(first) < int(last) == len(speech)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"This is a text about speech.", "not-audio"),
        (encoded(np.zeros(RATE), "OGG", "VORBIS"), "not-audio"),
        (encoded(np.zeros(RATE), "WAV", "IMA_ADPCM"), "not-audio"),
        (b"fLaC" + bytes(60), "not-audio"),
        (b"RIFF\x24\0\0\0WAVE", "truncated"),
    ],
)
def test_what_is_no_audio_is_refused(tmp_path, data, code):
    assert refused(saved(tmp_path, data, "a.wav")) == code


def test_a_missing_file_is_named(tmp_path):
    assert refused(tmp_path / "none.wav") == "missing-file"


def test_a_wav_header_that_states_too_much_is_truncated(speech):
    data = encoded(speech)
    struct.pack_into("<I", data, 40, 2 * len(data))
    assert refused(io.BytesIO(data)) == "truncated"


def test_a_wav_header_that_states_too_little_is_false(speech):
    data = encoded(speech)
    struct.pack_into("<I", data, 40, 100)
    assert refused(io.BytesIO(data)) == "false-header"


@pytest.mark.parametrize("stated", [0, 0xFFFFFFFF])
def test_chunks_behind_samples_of_unstated_length_are_no_sound(speech, stated):
    data = encoded(speech)
    struct.pack_into("<I", data, 40, stated)
    behind = chunk(b"LIST", b"INFOISFT\5\0\0\0Lavf\0") + chunk(b"id3 ", b"ID3\4")
    np.testing.assert_array_equal(read_pcm16(io.BytesIO(data + behind))[0], speech)
    assert not inspect_audio(io.BytesIO(data)).states_length


@pytest.mark.parametrize("form", ["WAV", "FLAC"])
def test_a_tag_in_front_of_a_recording_is_passed_over(speech, form):
    tag = b"ID3\4\0\0\0\0\1\5" + bytes(133)
    data = tag + encoded(speech, form)
    np.testing.assert_array_equal(read_pcm16(io.BytesIO(data))[0], speech)
    assert refused(io.BytesIO(data[:-500])) == "truncated"


@pytest.mark.parametrize(("place", "form", "value"), [(28, "<I", 12345), (32, "<H", 4)])
def test_a_wav_header_that_contradicts_itself_is_false(speech, place, form, value):
    data = encoded(speech)
    struct.pack_into(form, data, place, value)
    assert refused(io.BytesIO(data)) == "false-header"


def chunk(name, content, *, pad=True):
    return name + struct.pack("<I", len(content)) + content + b"\0" * (pad * len(content) % 2)


def wave_of(*chunks, form=b"RIFF"):
    body = b"".join(chunks)
    return form + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def wav_forms(samples):
    """Whole WAV files of one recording, as programs write them, by what is unusual in them."""
    mono16 = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16))
    mono24 = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 3 * RATE, 3, 24))
    guid = struct.pack("<HHIH", 22, 16, 4, 1) + bytes.fromhex("000000001000800000aa00389b71")
    extensible = chunk(b"fmt ", struct.pack("<HHIIHH", 0xFFFE, 1, RATE, 2 * RATE, 2, 16) + guid)
    data = samples.astype("<i2").tobytes()
    wide = (samples.astype("<i4") << 16).reshape(-1, 1).view(np.uint8)[:, 1:].tobytes()
    odd, text = chunk(b"LIST", b"INFOISFT\5\0\0\0Lavf\0", pad=False), chunk(b"LIST", b"INFO")
    open_sizes = chunk(b"ds64", b"\xff" * 16 + bytes(12))
    sizes = chunk(b"ds64", struct.pack("<QQQI", 0, len(data), len(samples), 0))
    in_ds64 = b"data" + b"\xff" * 4 + data
    return {
        "list before data": wave_of(mono16, text, chunk(b"data", data)),
        "odd list with a pad byte": wave_of(mono16, chunk(b"LIST", odd[8:]), chunk(b"data", data)),
        "odd list without a pad byte": wave_of(mono16, odd, chunk(b"data", data)),
        "odd samples without a pad byte": wave_of(mono24, chunk(b"data", wide, pad=False), text),
        "odd samples with a pad byte": wave_of(mono24, chunk(b"data", wide), text),
        "extensible": wave_of(extensible, chunk(b"data", data), text),
        "RF64": wave_of(sizes, mono16, in_ds64, form=b"RF64"),
        "BW64": wave_of(sizes, mono16, in_ds64, form=b"BW64"),
        "RF64 from a pipe": wave_of(open_sizes, mono16, in_ds64, form=b"RF64"),
    }


@pytest.mark.parametrize("form", wav_forms(np.zeros(1, np.int16)))
def test_whole_wav_files_are_read_however_their_chunks_lie(speech, form):
    samples, rate = read_pcm16(io.BytesIO(wav_forms(speech[:3201])[form]))
    assert rate == RATE
    np.testing.assert_array_equal(samples, speech[:3201])


@pytest.mark.parametrize("form", ["RF64", "odd list without a pad byte"])
def test_unusual_wav_files_that_are_cut_are_truncated(speech, form):
    assert refused(io.BytesIO(wav_forms(speech)[form][:-500])) == "truncated"


@pytest.mark.parametrize("is_before", [True, False])
def test_wav_files_of_very_many_chunks_are_refused(is_before):
    frame, data = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)), chunk(b"data", bytes(20))
    many = chunk(b"note", b"xx") * 10_000
    file = wave_of(frame, many, data) if is_before else wave_of(frame, data, many)
    with pytest.raises(AudioError, match="expected at most 10,000 chunks in a WAV file, found more"):
        inspect_audio(io.BytesIO(file))


def test_a_long_file_of_an_unusual_form_is_refused_before_its_samples_are_read():
    read = []

    class Counting(io.BytesIO):
        def read(self, size=-1):
            read.append(size)
            return super().read(size)

    with pytest.raises(AudioError) as caught:
        read_pcm16(Counting(wav_forms(np.zeros(60 * RATE, np.int16))["BW64"]), longest_s=1)
    assert (caught.value.code, sum(read) < 100_000) == ("too-long", True)


def test_a_chunk_behind_an_empty_recording_is_no_speech():
    data = encoded(np.zeros(0, np.int16)) + b"LIST\4\0\0\0INFO"
    assert refused(io.BytesIO(data)) == "empty"


@pytest.mark.parametrize("form", ["W64", "AIFF"])
def test_lossless_containers_are_read_whatever_their_name(tmp_path, speech, form):
    path = saved(tmp_path, encoded(speech, form), "a.flac")
    assert np.array_equal(read_pcm16(path)[0], speech)
    assert inspect_audio(path).format == form


def test_a_rate_for_as_many_samples_as_the_original_has_is_false(speech):
    check_stated_rate(RATE, RATE // 2, original=2 * RATE, original_hz=RATE)
    check_stated_rate(2 * RATE, RATE, original=2 * RATE, original_hz=RATE)
    with pytest.raises(AudioError) as caught:
        check_stated_rate(2 * RATE, RATE // 2, original=2 * RATE, original_hz=RATE)
    assert (caught.value.code, caught.value.expected) == ("false-header", "16000 Hz, as the original has")


def flac_with_length(samples, total):
    data = encoded(samples, "FLAC")
    field = int.from_bytes(data[18:26], "big") >> 36 << 36 | total
    data[18:26] = field.to_bytes(8, "big")
    return io.BytesIO(data)


@pytest.mark.parametrize(
    ("total", "code"), [(0, "unknown-length"), (1000, "damaged"), (10**9, "truncated"), (2**36 - 1, "truncated")]
)
def test_a_flac_header_that_lies_is_refused(speech, total, code):
    assert refused(flac_with_length(speech, total)) == code


def test_flac_samples_are_held_against_their_checksum(speech):
    data = encoded(speech, "FLAC")
    data[26] ^= 1
    assert refused(io.BytesIO(data)) == "damaged"
    data[26:42] = bytes(16)  # an encoder may leave the checksum out
    assert inspect_audio(io.BytesIO(data)).samples == len(speech)


def test_numbers_that_are_none_are_refused(speech):
    samples = speech / 32768
    samples[5] = np.nan
    assert refused(io.BytesIO(encoded(samples, subtype="FLOAT"))) == "not-finite"


@pytest.mark.parametrize("subtype", ["PCM_24", "FLOAT"])
def test_read_pcm16_rounds_other_encodings(speech, subtype):
    samples, _ = read_pcm16(io.BytesIO(encoded(speech / 32768, subtype=subtype)))
    assert np.array_equal(samples, speech)


def test_read_pcm16_clips_what_exceeds_full_scale():
    data = encoded(np.array([2.0, -2.0, 0.5]), subtype="FLOAT")
    assert read_pcm16(io.BytesIO(data))[0].tolist() == [32767, -32768, 16384]


def test_read_pcm16_refuses_stereo_and_hours(speech):
    with pytest.raises(AudioError, match="found 2"):
        read_pcm16(io.BytesIO(encoded(speech.reshape(-1, 2))))
    with pytest.raises(AudioError, match="at most 1 s"):
        read_pcm16(io.BytesIO(encoded(speech)), longest_s=1)


@given(st.lists(st.integers(-32768, 32767), min_size=1, max_size=300))
def test_flac_keeps_every_sample(values):
    samples, buffer = np.array(values, np.int16), io.BytesIO()
    write_flac16(buffer, samples, RATE)
    buffer.seek(0)
    assert read_pcm16(buffer)[0].tolist() == values


@pytest.mark.parametrize(("from_hz", "to_hz"), [(44100, 16000)])
def test_resample_keeps_a_tone_and_the_duration(from_hz, to_hz):
    length = from_hz + 7
    tone = np.rint(8000 * np.sin(2 * np.pi * 440 * np.arange(length) / from_hz))
    changed = resample(tone.astype(np.int16), from_hz, to_hz)
    assert changed.dtype == np.int16
    assert len(changed) == round(length * to_hz / from_hz)
    wanted = 8000 * np.sin(2 * np.pi * 440 * np.arange(len(changed)) / to_hz)
    inner = slice(400, -400)
    assert np.abs(changed[inner] - wanted[inner]).max() < 3


def test_resample_is_repeatable_and_never_wraps_around():
    square = np.where(np.arange(44100) // 50 % 2, 32767, -32768).astype(np.int16)
    first = resample(square, 44100, RATE)
    assert np.array_equal(first, resample(square, 44100, RATE))
    assert np.array_equal(resample(square, RATE, RATE), square)
    middle = slice(10, 17)  # within the first half wave, all negative
    assert (first[middle] < -20000).all()


def test_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(AudioError) as raised:
        inspect_audio(tmp_path / "a.wav")
    assert raised.value.code == "not-a-file"
