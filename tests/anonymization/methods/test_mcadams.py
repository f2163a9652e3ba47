"""B2 against the official program's values, against the plain implementation, and at its edges."""

import numpy as np
import pytest

from anonymization.methods.contract import MethodError
from anonymization.methods.mcadams import numba_engine
from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters
from tests.anonymization.plain_mcadams import plain_mcadams
from tests.official import load_arrays, load_json
from tests.recordings import first_of_each_speaker, read_demo

REFERENCE = load_json("mcadams.json")
CASES = {case["utterance"]: case for case in REFERENCE["cases"]}
EXCERPT = slice(*REFERENCE["excerpt_samples"])
OFFICIAL = {"level": "peak", "keep_digital_silence": False}

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def anonymize(samples, alpha=0.8, threads=1, **options):
    return mcadams(samples, 16_000, McAdamsParameters(alpha, **options), threads=threads)


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(0, 1000, n).astype(np.int16)


def largest_difference(a, b):
    return int(np.abs(a.astype(int) - b).max(initial=0))


# --- the official program's values


@pytest.mark.parametrize("utterance", CASES)
def test_utterance_equals_reference(utterance):
    case = CASES[utterance]
    samples = read_demo(utterance)
    assert samples.size == case["n_samples"]

    output = anonymize(samples, case["alpha"], **OFFICIAL)

    magnitude = np.abs(output.astype(int))
    nonzero = np.flatnonzero(output)
    assert largest_difference(output[EXCERPT], load_arrays("mcadams.npz")[utterance]) <= 2
    assert output.dtype == np.dtype(case["dtype_out"])
    assert output.size == case["n_samples_out"]
    assert magnitude.max() == case["peak_out"]
    assert magnitude.argmax() == case["peak_index_out"]
    assert nonzero[[0, -1]].tolist() == [case["first_nonzero_out"], case["last_nonzero_out"]]
    full_scale = output / 32768
    assert np.sqrt(np.mean(full_scale**2)) == pytest.approx(case["rms_out"], rel=1e-6)
    assert np.abs(full_scale).mean() == pytest.approx(case["mean_abs_out"], rel=1e-5)


@pytest.mark.parametrize("n", [479, 480])
def test_short_inputs_give_the_reference_zeros(n):
    expected = REFERENCE["edge_cases"][f"noise_{n}_samples"]
    output = anonymize(noise(n), expected["alpha"], **OFFICIAL)
    assert output.size == expected["n_samples_out"]
    assert np.abs(output.astype(int)).max() == expected["peak_out"]


@pytest.mark.parametrize(("name", "value"), [("digital_silence_1s", 0), ("constant_1000_1s", 1000)])
def test_constant_inputs_reach_the_reference_edges(name, value):
    expected = REFERENCE["edge_cases"][name]
    output = anonymize(np.full(16_000, value, np.int16), expected["alpha"], **OFFICIAL)
    nonzero = np.flatnonzero(output)
    assert np.abs(output.astype(int)).max() == expected["peak_out"]
    assert nonzero[[0, -1]].tolist() == [expected["first_nonzero_out"], expected["last_nonzero_out"]]


# --- the plain implementation


def test_speech_equals_plain_implementation():
    """The first second of an utterance of every third speaker, each with its own alpha."""
    rows = first_of_each_speaker()[::3]
    for alpha, row in zip(np.linspace(0.5, 0.9, len(rows)), rows, strict=True):
        samples = read_demo(row["utterance_id"])[:16_000]
        difference = largest_difference(anonymize(samples, alpha), plain_mcadams(samples, alpha))
        assert difference <= 1, row["utterance_id"]


@pytest.mark.parametrize("n", [0, 479, 480, 16_161])
def test_every_length_equals_plain_implementation(n):
    samples = noise(n)
    output = anonymize(samples, 0.7)
    assert output.shape == (n,)
    assert output.dtype == np.int16
    assert largest_difference(output, plain_mcadams(samples, 0.7)) <= 1
    if n < 480:
        assert not output.any()
    else:
        assert np.abs(output.astype(int)).max() == 32766


def test_noise_with_silent_gap_equals_plain_implementation():
    samples = noise(16_000)
    samples[6000:10_000] = 0
    expected = plain_mcadams(samples, 0.8)
    for keep in (True, False):
        output = anonymize(samples, 0.8, keep_digital_silence=keep)
        assert largest_difference(output, expected) <= 1


def test_eigenvalues_stand_in_for_unsettled_roots(monkeypatch, vowels):
    expected = anonymize(vowels, 0.6)
    find_poles = numba_engine.find_poles

    def find_every_second(*arguments):
        coefficients, poles, found = find_poles(*arguments)
        found[::2] = False
        poles[::2] = np.nan
        return coefficients, poles, found

    monkeypatch.setattr(numba_engine, "find_poles", find_every_second)
    assert largest_difference(anonymize(vowels, 0.6), expected) <= 1


# --- options


def test_kept_level_gives_back_the_rms(vowels):
    quiet = (vowels // 8).astype(np.int16)
    output = anonymize(quiet, level="kept").astype(np.float64)
    rms = np.sqrt(np.mean(quiet.astype(np.float64) ** 2))
    assert np.sqrt(np.mean(output**2)) == pytest.approx(rms, rel=0.01)


def test_kept_level_never_clips(vowels):
    loud = np.where(vowels > 0, 32_767, -32_768).astype(np.int16)
    kept, peak = anonymize(loud, level="kept"), anonymize(loud, level="peak")
    assert np.array_equal(kept, peak)
    assert np.abs(kept.astype(int)).max() == 32766


# --- properties


def test_output_of_crowded_frames_does_not_depend_on_threads(vowels):
    crowded = {"window_s": 0.02, "hop_s": 1 / 16_000, "order": 4}
    expected = anonymize(vowels[:4000], 0.7, **crowded).tobytes()
    for _ in range(3):
        assert anonymize(vowels[:4000], 0.7, threads=4, **crowded).tobytes() == expected


# --- bad input


@pytest.mark.parametrize(
    ("samples", "rate", "sentence"),
    [
        (np.zeros(800, np.int16), 8_000, "16000 Hz; found 8000 Hz"),
        (np.zeros(800, np.float32), 16_000, "int16 samples; found float32"),
        (np.zeros((800, 2), np.int16), 16_000, r"found shape \(800, 2\)"),
    ],
)
def test_unusable_samples_are_refused(samples, rate, sentence):
    with pytest.raises(MethodError, match=sentence):
        mcadams(samples, rate, McAdamsParameters(alpha=0.8))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must be above 0 and at most 2; found 0.0"),
        ({"alpha": 0.8, "level": "loud"}, 'must be "peak" or "kept"; found "loud"'),
        ({"alpha": 0.8, "order": 319}, "order 319 needs at least 321"),
        ({"alpha": 0.8, "hop_s": 0.03}, "hop_s=0.03, window_s=0.02"),
    ],
)
def test_unusable_parameters_are_refused(values, sentence):
    with pytest.raises(MethodError, match=sentence):
        McAdamsParameters(**values)
