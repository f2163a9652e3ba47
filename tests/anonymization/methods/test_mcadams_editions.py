"""The three editions of B2 and their options: what each does at the edges, to silence and to the level."""

import sys

import numpy as np
import pytest

from anonymization.methods.contract import MethodError, PseudoSpeaker
from anonymization.methods.mcadams import numba_engine
from anonymization.methods.mcadams.method import METHODS, mcadams, official_options
from anonymization.methods.mcadams.parameters import (
    McAdamsParameters,
    official_speaker_alpha,
    official_utterance_alphas,
)
from tests.anonymization.plain_mcadams import plain_mcadams
from tests.official import load_json
from tests.recordings import read_demo

HOP = 160
BY_NAME = {method.name: method for method in METHODS}
BOTH_ENDS = {"first_frame": True, "tail": True}

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(0, 1000, n).astype(np.int16)


def voice(**parameters):
    return PseudoSpeaker("00", parameters)


def run(edition, samples, alpha=None, **options):
    parameters = {} if alpha is None else {"alpha": alpha}
    return BY_NAME[f"mcadams-{edition}"].anonymize(samples, 16_000, voice(**parameters), options=options)


def bend(samples, alpha, **options):
    """What comes out before any change of level, full scale ±1."""
    return numba_engine.bend_poles(samples, McAdamsParameters(alpha, **options), threads=1)


def largest_difference(a, b):
    return int(np.abs(a.astype(int) - b).max(initial=0))


# --- editions


def test_first_frame_is_as_large_as_officially():
    expected = load_json("mcadams.json")["batch_2024_minus_loop_2024"]
    samples = read_demo(expected["utterance"])[expected["from_sample"] :]
    difference = np.abs(bend(samples, expected["alpha"], first_frame=True) - bend(samples, expected["alpha"]))
    assert difference[:320].max() == pytest.approx(expected["max_abs_first_320"], rel=1e-9)
    assert difference[320:].max() <= 1e-12


def test_one_whole_frame_is_zeros_until_2024():
    n = 479
    assert not run(2022, noise(n), 0.8).any()
    assert np.abs(run(2024, noise(n), 0.8).astype(int)).max() == 32766
    assert largest_difference(run(2024, noise(n), 0.8), plain_mcadams(noise(n), 0.8, first_frame=True)) <= 1


@pytest.mark.parametrize("edition", [2020, 2022, 2024])
def test_official_options_bring_the_defects_back(edition, vowels):
    method = BY_NAME[f"mcadams-{edition}"]
    speaker = voice(**{parameter.name: 0.8 for parameter in method.parameters})
    silence = method.anonymize(np.zeros(16_000, np.int16), 16_000, speaker, options=official_options(edition))
    assert np.abs(silence.astype(int)).max() == 32766
    part = vowels[:12_000]
    speech = method.anonymize(part, 16_000, speaker, options=official_options(edition))
    assert largest_difference(speech, plain_mcadams(part, 0.8, first_frame=edition == 2024)) <= 1


# --- what happens at the ends


@pytest.mark.parametrize("n", [161, 639])
@pytest.mark.parametrize("options", [{"tail": True}, {"first_frame": True}, BOTH_ENDS], ids="-".join)
def test_options_at_the_ends_equal_plain_implementation(n, options):
    samples = noise(n)
    output = mcadams(samples, 16_000, McAdamsParameters(0.7, **options))
    assert output.shape == (n,)
    assert largest_difference(output, plain_mcadams(samples, 0.7, **options)) <= 1


@pytest.mark.parametrize("n", [161, 16_161])
def test_tail_keeps_the_level_to_the_last_sample(n):
    """At an alpha of 1 only the windows are left: flat to 1 %, but for the first hop, which fades in."""
    samples = np.random.default_rng(n).integers(4000, 9000, n).astype(np.int16)
    gain = bend(samples, 1.0, **BOTH_ENDS) * 32768 / samples
    hann = np.hanning(320)[:HOP] / np.hanning(320).sum() * HOP
    assert gain[:HOP] == pytest.approx(hann[:n], abs=1e-3)
    assert gain[HOP:] == pytest.approx(np.ones(max(0, n - HOP)), abs=0.011)


def test_end_of_silence_stays_silent_with_both_ends():
    samples = np.concatenate([noise(4000), np.zeros(1000, np.int16)])
    output = bend(samples, 0.7, **BOTH_ENDS)
    assert output[:4000].any()
    assert not output[4320:].any()
    assert bend(samples, 0.7, keep_digital_silence=False, **BOTH_ENDS)[4320:].any()


# --- alphas of the published baseline of 2024


def test_utterance_alphas_are_those_of_the_published_baseline():
    alphas = official_utterance_alphas(500)
    assert alphas[:3] == pytest.approx([0.68758807, 0.56747103, 0.75924141], abs=5e-9)
    assert alphas.min() >= 0.5
    assert alphas.max() < 0.9
    assert official_utterance_alphas(3).tolist() == alphas[:3].tolist()
    assert official_utterance_alphas(0).shape == (0,)


def test_speaker_alpha_depends_on_the_speaker_alone():
    alphas = {speaker: official_speaker_alpha(speaker) for speaker in ("1272", "1462", "p234")}
    # The generator written out: SHA-256 of "1272" begins with these digits.
    assert alphas["1272"] == np.random.default_rng(0xC676B6E9).uniform(0.5, 0.9)
    assert len(set(alphas.values())) == 3
    assert alphas["1462"] == official_speaker_alpha("1462")


# --- engines


def test_missing_torch_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as where it is not installed
    with pytest.raises(MethodError, match=r"needs the package torch, .* choose the engine \"compiled\""):
        mcadams(noise(1000), 16_000, McAdamsParameters(0.8, engine="torch"))
