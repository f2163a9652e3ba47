"""Formant and F0 scaling: what arrives of what was asked, what stays as it was, and what the vocoder loses."""

import sys

import numpy as np
import pytest

from anonymization.methods.contract import MethodError, PseudoSpeaker
from anonymization.methods.registry import get_method
from anonymization.methods.world import method as world
from anonymization.methods.world.f0 import measure_f0, move_f0, track_f0
from anonymization.methods.world.method import FrequencyWarp, WorldParameters, cut_at_pauses, world_voice
from speech.vocoders import world_library
from speech.vocoders.world_library import load_world, missing_world
from tests.recordings import first_of_each_speaker, read_demo

pytestmark = pytest.mark.skipif(bool(missing_world()), reason=missing_world() or "-")

NAME = "world-formant-f0"
DEEP = WorldParameters(f0_mean_hz=100, f0_spread_semitones=2, formant_factor=0.85)
HIGH = WorldParameters(f0_mean_hz=210, f0_spread_semitones=4, formant_factor=1.2)


def log_envelope(samples, contour):
    """In dB, shape (frames, 513), at the frames of a contour."""
    times_s = np.arange(contour.size) * 0.005
    return 10 * np.log10(load_world().cheaptrick(samples / 32768, contour, times_s, 16_000, fft_size=1024) + 1e-12)


def heard_factor(original, output):
    """The factor by which the original's mean voiced envelope, warped, is most like the output's, up to 4 kHz."""
    envelopes = [log_envelope(each, contour)[contour > 0] for each in (original, output) for contour in [f0(each)]]
    first, second = (each.mean(axis=0) for each in envelopes)
    bins = np.arange(10, 257)
    factors = np.arange(0.7, 1.4, 0.01)
    likeness = [np.corrcoef(np.interp(bins / factor, np.arange(513), first), second[bins])[0, 1] for factor in factors]
    return float(factors[np.argmax(likeness)])


def f0(samples):
    return track_f0(samples, "autocorrelation")


def rms(samples):
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


@pytest.mark.parametrize("n", [0, 1, 1601])
def test_length_is_kept_to_the_sample(vowels, n):
    output = world_voice(vowels[:n], 16_000, DEEP)
    assert (output.shape, output.dtype) == ((n,), np.int16)


def test_f0_statistics_arrive(vowels):
    found = measure_f0(track_f0(world_voice(vowels, 16_000, DEEP), "dio"))
    assert found.mean_hz == pytest.approx(DEEP.f0_mean_hz, rel=0.02)
    assert found.spread_semitones == pytest.approx(DEEP.f0_spread_semitones, abs=0.4)


def test_formants_arrive_on_speech():
    factor = 1.2
    speech = [read_demo(row["utterance_id"]) for row in first_of_each_speaker()[::4]]
    found = [heard_factor(each, world_voice(each, 16_000, WorldParameters(formant_factor=factor))) for each in speech]
    assert np.mean(found) == pytest.approx(factor, abs=0.03)


def test_peak_level_fills_the_scale(vowels):
    output = world_voice(vowels, 16_000, WorldParameters(120, 3, 0.85, level="peak"))
    assert np.abs(output.astype(int)).max() == 32766


def test_digital_silence_stays_silent(vowels):
    samples = np.concatenate([vowels[:16_000], np.zeros(8000, np.int16), vowels[16_000:]])
    output = world_voice(samples, 16_000, HIGH)
    assert not output[16_000:24_000].any()
    assert output[:16_000].any()
    assert output[24_000:].any()


def test_noise_stays_unvoiced_and_keeps_its_level():
    samples = np.random.default_rng(2).normal(0, 2000, 32_000).astype(np.int16)
    output = world_voice(samples, 16_000, HIGH)
    assert np.mean(f0(output) > 0) < 0.1
    assert rms(output) == pytest.approx(rms(samples), rel=0.01)


def test_spread_changes_by_a_factor_of_two_at_most():
    contour = 150 * 2 ** (np.random.default_rng(3).normal(0, 0.5, 400) / 12)
    own = measure_f0(contour).spread_semitones
    assert measure_f0(move_f0(contour, 150, 6)).spread_semitones == pytest.approx(2 * own)
    assert measure_f0(move_f0(contour, 150, 0.1)).spread_semitones == pytest.approx(own / 2)


def test_few_voiced_frames_move_by_their_median_and_keep_their_spread():
    contour = np.concatenate([np.zeros(50), np.full(10, 100.0), [102.0], np.zeros(50)])
    moved = move_f0(contour, 200, 4.5)
    assert moved[moved > 0] == pytest.approx([200.0] * 10 + [204.0])


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.25])
def test_warp_scales_formants_and_keeps_the_band(factor):
    warp = FrequencyWarp(factor)
    hz = np.linspace(0, 8000, 400)
    source = warp.source_hz(hz)
    below = hz <= 6000 * min(1, factor)
    assert source[below] == pytest.approx(hz[below] / factor)
    assert (source[0], source[-1]) == (0, 8000)
    assert np.all(np.diff(source) > 0)


def test_pieces_cover_all_frames_and_end_in_pauses():
    voiced = np.ones(20_000, bool)
    voiced[2500:2600] = voiced[1700:1710] = False
    pieces = list(cut_at_pauses(voiced))
    assert [end for _, end in pieces[:-1]] == [start for start, _ in pieces[1:]]
    assert (pieces[0], pieces[-1][1]) == ((0, 2550), 20_000)
    assert max(end - start for start, end in pieces) <= 3200


def test_a_seam_within_voice_makes_no_click(monkeypatch):
    """A tone without a pause must be cut somewhere: here after two seconds already."""
    monkeypatch.setattr(world, "_MIN_PIECE", 200)
    monkeypatch.setattr(world, "_MAX_PIECE", 400)
    samples = (8000 * np.sin(2 * np.pi * 150 * np.arange(3 * 16_000) / 16_000)).astype(np.int16)
    output = world_voice(samples, 16_000, WorldParameters(150.0)).astype(float)
    steps = np.abs(np.diff(output))
    assert steps.max() < 3 * np.quantile(steps, 0.99)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"formant_factor": 3.0}, "The formant factor must be from 0.5 to 2; found 3.0."),
        ({"f0_mean_hz": 5.0}, "The mean F0 must be from 50 to 500 Hz; found 5.0."),
        ({"f0": "praat"}, 'F0 is found by autocorrelation, dio, harvest; found "praat".'),
    ],
)
def test_values_out_of_range_are_refused_in_words(values, sentence):
    with pytest.raises(MethodError) as refused:
        WorldParameters(**values)
    assert str(refused.value) == sentence


def test_absent_package_is_said_with_what_to_do(monkeypatch):
    monkeypatch.delitem(sys.modules, world_library._COMPILED, raising=False)
    monkeypatch.setattr(world_library, "_find_compiled", lambda: None)
    with pytest.raises(MethodError, match="needs the package pyworld, which is not installed here") as refused:
        get_method(NAME).anonymize(np.ones(9, np.int16), 16_000, PseudoSpeaker("", {}))
    assert str(refused.value) == get_method(NAME).missing()
