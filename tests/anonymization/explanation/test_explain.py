"""Explanations of an instant: what is seen of vowels whose formants are known, and what each family says it did."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy.signal import lfilter

from anonymization.explanation.drawing import answer_drawing, request_drawing
from anonymization.explanation.explain import (
    cut_frame,
    explain,
    find_best_instant,
    find_common_factor,
    find_f0,
    look_at,
    pair_resonances,
)
from anonymization.methods.contract import Method, MethodError, PseudoSpeaker
from anonymization.methods.mcadams.numba_engine import fit_polynomial
from anonymization.methods.registry import get_method
from evaluation.figures.drawing_process import LENGTH_BYTES
from evaluation.figures.explanation import draw_explanation
from tests.anonymization.vowels import RATE_HZ, vowel

ROOT = Path(__file__).resolve().parents[3]
VOWELS = {
    "schwa": (520, 1480, 2500, 3500),
    "a": (700, 1220, 2600, 3600),
    "i": (300, 2300, 3000, 3700),
    "o": (400, 800, 2400, 3300),
}
AT_S = 0.25


def voice(**parameters):
    return PseudoSpeaker("0" * 64, parameters)


def run(name, samples, options=None, **parameters):
    """The explanation of what a method really does to a recording."""
    method, speaker = get_method(name), voice(**parameters)
    if missing := method.missing():
        pytest.skip(missing)
    output = method.anonymize(samples, RATE_HZ, speaker, options=options)
    return explain(method, samples, output, RATE_HZ, speaker, options, AT_S)


def noise(seconds=0.5, deviation=3000):
    return np.random.default_rng(7).normal(0, deviation, int(seconds * RATE_HZ)).astype(np.int16)


# What is seen of a voice ---------------------------------------------------------------------------


@pytest.mark.parametrize("formants", VOWELS.values(), ids=VOWELS)
@pytest.mark.parametrize("f0_hz", [90, 120, 160, 200, 250])
def test_resonances_and_f0_of_a_vowel_are_found(formants, f0_hz):
    side = look_at(vowel(f0_hz, formants), RATE_HZ, AT_S)
    found = side.peaks_hz[side.peaks_hz < 4500]
    assert found.size == len(formants)
    # No estimate from one frame is better than the harmonics allow: a formant lies between two of them.
    np.testing.assert_allclose(found, formants, atol=max(50, 0.3 * f0_hz))
    assert side.f0_hz == pytest.approx(f0_hz, rel=0.01)


def test_envelope_lies_over_the_spectrum_and_its_resonances_on_it():
    side = look_at(vowel(120, VOWELS["schwa"]), RATE_HZ, AT_S)
    assert np.mean(side.envelope_db >= side.spectrum_db) == pytest.approx(0.9, abs=0.01)
    bins = np.round(side.peaks_hz / (RATE_HZ / 2048)).astype(int)
    np.testing.assert_allclose(side.peaks_db, side.envelope_db[bins], atol=1.0)


def test_levels_are_those_of_a_sine_of_full_scale():
    sine = (32767 * np.sin(2 * np.pi * 1000 * np.arange(RATE_HZ) / RATE_HZ)).astype(np.int16)
    side = look_at(sine, RATE_HZ, 0.5)
    assert side.level_dbfs == pytest.approx(-3.01, abs=0.01)
    assert side.spectrum_db.max() == pytest.approx(0, abs=0.05)
    assert side.spectrum_db.argmax() == 1000 / (RATE_HZ / 2048)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 48000])
def test_rate_of_a_recording_changes_nothing(rate_hz):
    side = look_at(vowel(120, VOWELS["schwa"], rate_hz=rate_hz), rate_hz, AT_S)
    below = side.peaks_hz[side.peaks_hz < 3000]
    np.testing.assert_allclose(below[:3], VOWELS["schwa"][:3], rtol=0.12)
    assert side.f0_hz == pytest.approx(120, rel=0.02)


def test_noise_and_silence_have_no_f0():
    assert find_f0(cut_frame(noise(), RATE_HZ, AT_S), RATE_HZ)[0] == 0
    assert find_f0(np.zeros(640), RATE_HZ) == (0.0, 0.0)
    side = look_at(np.zeros(RATE_HZ, np.int16), RATE_HZ, 0.5)
    assert (side.is_silent, side.f0_hz, side.peaks_hz.size) == (True, 0.0, 0)
    assert set(side.spectrum_db) == set(side.envelope_db) == {-120.0}


def test_all_pole_model_of_a_resonance_is_the_resonance():
    radius, angle = 0.98, 1.1
    coefficients = [1.0, -2 * radius * np.cos(angle), radius**2]
    ringing = lfilter([1.0], coefficients, np.random.default_rng(3).normal(size=20_000))
    np.testing.assert_allclose(fit_polynomial(ringing, 2), coefficients, atol=0.01)


# Which resonance became which ----------------------------------------------------------------------


def test_resonances_are_paired_in_order_and_each_once():
    pairs = pair_resonances([500, 1500, 2500], [420, 560, 1700, 2600])
    assert pairs == ((500.0, 560.0), (1500.0, 1700.0), (2500.0, 2600.0))
    assert pair_resonances([], [500]) == pair_resonances([500], []) == ()


def test_resonance_that_is_far_from_where_it_is_expected_stays_alone():
    assert pair_resonances([500], [700]) == ()
    assert pair_resonances([500], [700], lambda hertz: hertz * 1.4) == ((500.0, 700.0),)
    assert pair_resonances([500], [500], lambda hertz: hertz * 1.4) == ()


def test_resonances_that_moved_by_one_factor_are_paired_by_it():
    before, after = [386, 1250, 2680, 3435, 5184], [454, 1443, 3165, 4085, 6100]
    factor = find_common_factor(before, after)
    assert factor == pytest.approx(1.18, abs=0.01)
    assert pair_resonances(before, after, lambda hertz: hertz * factor) == tuple(zip(before, after, strict=True))
    assert find_common_factor(before, before) == find_common_factor([], after) == find_common_factor([500], [900]) == 1


# Which instant -------------------------------------------------------------------------------------


def test_best_instant_is_the_loudest_voiced_one():
    quiet, loud = (vowel(120, VOWELS["a"], 0.3, peak) for peak in (2000, 8000))
    silence = np.zeros(3200, np.int16)
    recording = np.concatenate([silence, quiet, silence, loud, silence, noise(0.3, 9000)])
    begins_s = (3200 + quiet.size + 3200) / RATE_HZ
    at_s = find_best_instant(recording, RATE_HZ)
    assert begins_s < at_s < begins_s + 0.3
    assert at_s == round(at_s, 2)
    found = explain(None, recording, recording, RATE_HZ)
    assert (found.at_s, round(found.original.f0_hz)) == (at_s, 120)


def test_best_instant_of_noise_is_loud_and_of_silence_the_first():
    recording = np.concatenate([noise(0.3, 100), noise(0.3, 9000), noise(0.3, 100)])
    assert 0.28 <= find_best_instant(recording, RATE_HZ) <= 0.62
    assert find_best_instant(np.zeros(RATE_HZ, np.int16), RATE_HZ) == 0
    assert find_best_instant(np.ones(1, np.int16), RATE_HZ) == 0


@pytest.mark.parametrize("at_s", [-0.01, 0.51, 1e9, float("nan"), float("inf")])
def test_instants_outside_are_refused_in_a_sentence(at_s):
    recording = vowel(120, VOWELS["a"])
    with pytest.raises(MethodError, match=r"must be between 0 and 0\.50 s, where both recordings are; found"):
        explain(None, recording, recording, RATE_HZ, at_s=at_s)


@pytest.mark.parametrize("at_s", [0.0, 0.001, 0.25, 0.499, 0.5])
def test_every_instant_inside_is_explained(at_s):
    recording = vowel(120, VOWELS["a"])
    found = explain(get_method("mcadams-2022"), recording, recording, RATE_HZ, voice(alpha=0.7), at_s=at_s)
    assert found.original.wave.size == 640
    assert np.isfinite(found.original.envelope_db).all()


def test_recordings_that_cannot_be_explained_are_refused_in_a_sentence():
    good = vowel(120, VOWELS["a"])
    for samples, output, rate, words in (
        (good, good[:0], RATE_HZ, "The anonymised recording is empty"),
        (good[:0], good, RATE_HZ, "The original recording is empty"),
        (good.astype(float), good, RATE_HZ, r"original recording must be int16 samples .* found float64 \(8000,\)"),
        (good, np.stack([good, good]), RATE_HZ, r"found int16 \(2, 8000\)"),
        (good, good, 800, "at least 2000 Hz; found 800 Hz"),
    ):
        with pytest.raises(MethodError, match=words):
            explain(None, samples, output, rate)


def test_shorter_of_two_recordings_decides_what_can_be_asked():
    good = vowel(120, VOWELS["a"])
    assert explain(None, good, good[:4800], RATE_HZ, at_s=0.3).at_s == 0.3
    with pytest.raises(MethodError, match=r"between 0 and 0\.30 s"):
        explain(None, good, good[:4800], RATE_HZ, at_s=0.31)


# What families did ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("at_s", [0.0, 0.1234, 0.25, 0.5])
def test_mcadams_poles_are_those_of_the_method_and_turn_to_phi_to_the_alpha(alpha, at_s):
    from anonymization.methods.mcadams import numba_engine
    from anonymization.methods.mcadams.parameters import OFFSET, McAdamsParameters

    samples = vowel(130, VOWELS["a"])
    poles = explain(get_method("mcadams-2022"), samples, samples, RATE_HZ, voice(alpha=alpha), at_s=at_s).poles
    np.testing.assert_allclose(poles.angles_after, np.minimum(poles.angles_before**alpha, np.pi), rtol=1e-12)
    settings = McAdamsParameters(alpha)
    window, hop = settings.analysis_window(), settings.hop_samples
    start = round(poles.starts_s * RATE_HZ)
    middle_s = (poles.starts_s + poles.ends_s) / 2
    assert start % hop == 0
    assert start // hop in settings.frames(samples.size)
    assert abs(middle_s - np.clip(at_s, 0.02, 0.49)) <= 0.005 + 1e-9
    signal = samples[start : start + window.size] / 32768 + OFFSET
    _, found, _ = numba_engine.find_poles(signal, window, hop, settings.order, OFFSET)
    upper = found[0][found[0].imag > 0]
    upper = upper[np.argsort(np.angle(upper))]
    np.testing.assert_allclose(poles.radii * np.exp(1j * poles.angles_before), upper, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.65, 0.8, 0.9])
def test_mcadams_resonances_are_found_where_the_map_sends_them(alpha):
    found = run("mcadams-2022", vowel(100, VOWELS["schwa"]), alpha=alpha)
    to_hz = RATE_HZ / (2 * np.pi)
    moved = [(before, after) for before, after in found.moves if before < 4000]
    assert len(moved) >= 3
    for before, after in moved:
        assert after == pytest.approx((before / to_hz) ** alpha * to_hz, abs=100)
    assert found.sentences[0] == (
        f"The McAdams coefficient α = {alpha:g} turns each pole from its angle φ to φ^α: resonances below 2546 Hz move "
        "up, those above it down."
    )


def test_mcadams_of_2020_takes_its_alpha_from_the_options():
    samples = vowel(120, VOWELS["a"])
    assert run("mcadams-2020", samples).poles.alpha == 0.8
    assert run("mcadams-2020", samples, {"alpha": 0.6}).poles.alpha == 0.6


def test_mcadams_has_no_poles_where_it_filters_nothing():
    method = get_method("mcadams-2022")
    short = vowel(120, VOWELS["a"])[:400]
    assert explain(method, short, short, RATE_HZ, voice(alpha=0.7), at_s=0.01).poles is None
    silent = np.zeros(8000, np.int16)
    assert explain(method, silent, silent, RATE_HZ, voice(alpha=0.7), at_s=0.2).poles is None
    loud = {"keep_digital_silence": False}
    assert explain(method, silent, silent, RATE_HZ, voice(alpha=0.7), loud, at_s=0.2).poles is not None


@pytest.mark.parametrize("factor", [0.85, 1.2])
def test_world_map_multiplies_by_the_factor_and_resonances_follow(factor):
    found = run("world-formant-f0", vowel(120, VOWELS["schwa"]), formant_factor=factor, f0_mean=150.0, f0_spread=2.0)
    assert np.interp(1000, found.warp.from_hz, found.warp.to_hz) == pytest.approx(1000 * factor)
    assert (found.warp.from_hz[-1], found.warp.to_hz[-1]) == (8000, 8000)
    low = [(before, after) for before, after in found.moves if before < 2800]
    assert len(low) == 3
    for before, after in low:
        assert after == pytest.approx(before * factor, rel=0.08)
    assert found.anonymised.f0_hz == pytest.approx(150, rel=0.03)


@pytest.mark.parametrize(("name", "cents"), [("pitch-shift-psola", 400), ("pitch-shift-vocoder", -400)])
def test_pitch_shift_multiplies_f0_and_resonances(name, cents):
    ratio = 2 ** (cents / 1200)
    found = run(name, vowel(120, VOWELS["schwa"]), shift=float(cents))
    np.testing.assert_allclose(found.warp.to_hz, found.warp.from_hz * ratio)
    assert found.warp.to_hz.max() <= RATE_HZ / 2
    assert found.anonymised.f0_hz / found.original.f0_hz == pytest.approx(ratio, rel=0.02)
    low = [(before, after) for before, after in found.moves if before < 2800]
    assert len(low) == 3
    for before, after in low:
        assert after == pytest.approx(before * ratio, rel=0.08)


def test_psola_shows_a_mark_for_each_period_before_and_after():
    found = run("pitch-shift-psola", vowel(120, VOWELS["a"]), shift=500.0)
    ratio = 2 ** (500 / 1200)
    np.testing.assert_allclose(np.diff(found.marks.before_s), 1 / 120, rtol=0.03)
    np.testing.assert_allclose(np.diff(found.marks.after_s), 1 / (120 * ratio), rtol=0.05)
    counts = found.marks.before_s.size, found.marks.after_s.size
    assert f"the original has {counts[0]} pitch marks, the anonymised voice {counts[1]}." in found.sentences[1]
    assert np.abs(np.concatenate([found.marks.before_s, found.marks.after_s])).max() < 0.02


def test_psola_that_keeps_formants_expects_them_to_stay():
    found = run("pitch-shift-psola", vowel(120, VOWELS["schwa"]), {"formants": "kept"}, shift=400.0)
    assert found.warp is None
    assert "the resonances are kept" in found.sentences[0]
    for before, after in found.moves[:3]:
        assert after == pytest.approx(before, rel=0.08)


def test_method_of_no_family_and_no_method_get_the_general_picture():
    samples = vowel(120, VOWELS["a"])
    other = Method(name="own-system", title="Our own", version="1", reference="", process=lambda *_: samples)
    for method, title in ((other, "Our own"), (None, "")):
        found = explain(method, samples, samples, RATE_HZ, voice(), at_s=AT_S)
        assert (found.title, found.poles, found.warp, found.marks) == (title, None, None, None)
        assert [before for before, _ in found.moves] == found.original.peaks_hz.tolist()
        assert len(found.sentences) == 1


def test_voice_of_an_earlier_version_of_a_method_gets_the_general_picture():
    samples = vowel(120, VOWELS["a"])
    found = explain(get_method("mcadams-2022"), samples, samples, RATE_HZ, voice(coefficient=0.7), at_s=AT_S)
    assert (found.poles, len(found.sentences)) == (None, 1)
    found = explain(get_method("mcadams-2022"), samples, samples, RATE_HZ, voice(alpha=0.7), {"gone": 1}, AT_S)
    assert found.poles is None


# Words ---------------------------------------------------------------------------------------------


def test_sentence_tells_resonances_f0_and_level_in_numbers():
    before, after = vowel(120, VOWELS["schwa"]), vowel(150, (640, 1730, 2600, 3500), peak=4000)
    found = explain(None, before, after, RATE_HZ, at_s=AT_S)
    first, second = (
        " and ".join((", ".join(words[:3]), words[3]))
        for words in ([f"{pair[side]:.0f}" for pair in found.moves[:4]] for side in (0, 1))
    )
    assert found.sentences[-1].startswith(
        f"At 0.25 s the resonances at {first} Hz are at {second} Hz in the anonymised voice; "
        "F0 goes from 120 to 150 Hz (+3.9 semitones); it is "
    )
    np.testing.assert_allclose(
        np.transpose(found.moves[:4]), [(520, 1480, 2500, 3500), (640, 1730, 2600, 3500)], atol=45
    )


def test_sentences_of_silence_noise_and_nothing_changed():
    sound, silence = vowel(120, VOWELS["a"]), np.zeros(8000, np.int16)
    cases = {
        "both recordings are silent: there is nothing to explain.": (silence, silence),
        "the anonymised recording is silent and the original one is not.": (sound, silence),
        "the original recording is silent and the anonymised one is not.": (silence, sound),
    }
    for words, (before, after) in cases.items():
        assert explain(None, before, after, RATE_HZ, at_s=AT_S).sentences == (f"At 0.25 s {words}",)
    assert "F0 stays at 120 Hz." in explain(None, sound, sound, RATE_HZ, at_s=AT_S).sentences[0]
    assert "neither voice has an F0 there" in explain(None, noise(), noise(), RATE_HZ, at_s=AT_S).sentences[0]
    lost = explain(None, sound, noise(), RATE_HZ, at_s=AT_S).sentences[0]
    assert "the original has an F0 of 120 Hz, the anonymised voice has none there" in lost
    won = explain(None, noise(), sound, RATE_HZ, at_s=AT_S).sentences[0]
    assert "the original has no F0 there, the anonymised voice has one of 120 Hz" in won


def test_f0_that_was_measured_before_is_taken():
    sound = vowel(120, VOWELS["a"])
    found = explain(None, sound, sound, RATE_HZ, at_s=AT_S, f0_hz=(118.0, 0.0))
    assert (found.original.f0_hz, found.anonymised.f0_hz) == (118.0, 0.0)
    assert "an F0 of 118 Hz" in found.sentences[0]


# Real speech, and cost -----------------------------------------------------------------------------


def test_b2_of_real_speech_moves_resonances_as_poles_do(shared):
    """Below 1 rad up, above it down, for most of what is found at the best instants of twelve speakers."""
    method, right, total = get_method("mcadams-2022"), 0, 0
    files = sorted((shared / "speech" / "librispeech-train-clean-100-pool").rglob("*.flac"))[:12]
    assert len(files) == 12
    for file in files:
        samples, rate = soundfile.read(file, dtype="int16")
        speaker = voice(alpha=0.7)
        found = explain(method, samples, method.anonymize(samples, rate, speaker), rate, speaker)
        assert found.original.f0_hz > 0
        clear = [pair for pair in found.moves if not 2000 < pair[0] < 3200]
        right += sum((after > before) == (before < 2546) for before, after in clear)
        total += len(clear)
    assert total >= 30
    assert right / total > 0.9


def test_explaining_loads_no_heavy_library():
    program = (
        "import sys, numpy as np\n"
        "from anonymization.methods.contract import PseudoSpeaker\n"
        "from anonymization.explanation.explain import explain\n"
        "from anonymization.methods.registry import get_method\n"
        "x = np.random.default_rng(0).normal(0, 900, 16000).astype(np.int16)\n"
        "voice = PseudoSpeaker('0' * 64, {'alpha': 0.7})\n"
        "shift = PseudoSpeaker('0' * 64, {'shift': 300.0})\n"
        "assert explain(get_method('pitch-shift-psola'), x, x, 16000, shift, with_marks=False).warp is not None\n"
        "assert explain(get_method('mcadams-2022'), x, x, 16000, voice).poles is not None\n"
        "heavy = {'numba', 'scipy', 'matplotlib', 'torch', 'pandas', 'parselmouth', 'pyworld', 'django', 'soundfile'}\n"
        "print('held', *sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert answer.stdout.strip() == "held"


# By another process --------------------------------------------------------------------------------


def test_process_draws_what_it_is_asked_one_line_after_another():
    samples = vowel(120, VOWELS["a"])
    mcadams = run("mcadams-2022", samples, alpha=0.7)
    lines = [
        request_drawing(mcadams, theme="dark", image_format="png", narrow=True),
        request_drawing(mcadams, theme="light", image_format="svg"),
    ]
    program = [sys.executable, "-m", "anonymization.explanation.drawing"]
    answer = subprocess.run(program, input=b"".join(lines), capture_output=True, cwd=ROOT, check=True, timeout=120)
    pictures = [draw_explanation(mcadams, "dark", "png", narrow=True), draw_explanation(mcadams)]
    expected = b"".join(len(each).to_bytes(LENGTH_BYTES, "big") + each for each in pictures)
    assert (answer.stdout == expected) is True  # a difference of such files takes minutes to be told


def test_pitch_marks_are_found_where_the_picture_is_drawn():
    """The same picture as with marks of one's own, but for the words about them."""
    samples = np.concatenate([vowel(120, VOWELS["a"], 1.5), vowel(150, VOWELS["o"], 1.5)])
    method, speaker = get_method("pitch-shift-psola"), voice(shift=300.0)
    output = method.anonymize(samples, RATE_HZ, speaker)
    whole = explain(method, samples, output, RATE_HZ, speaker, at_s=2.2)
    without = explain(method, samples, output, RATE_HZ, speaker, at_s=2.2, with_marks=False)
    assert whole.marks.before_s.size >= 5
    assert without.marks is None
    assert len(without.sentences) == len(whole.sentences) - 1
    line = request_drawing(without, theme="light", image_format="svg", to_mark=(samples, output))
    assert len(line) < 300_000
    assert answer_drawing(line) == draw_explanation(replace(whole, sentences=without.sentences))
