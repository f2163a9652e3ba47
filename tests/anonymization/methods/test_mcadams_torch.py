"""The torch engine of B2 against the compiled one, on the processor and on a graphics card where there is one."""

import numpy as np
import pytest

from anonymization.methods.mcadams import numba_engine, torch_engine
from anonymization.methods.mcadams.method import mcadams
from anonymization.methods.mcadams.parameters import McAdamsParameters

torch = pytest.importorskip("torch", reason="the torch engine is tested where torch is installed; here it is not")

# Largest difference before quantisation, as a part of the peak: far less than one step of int16, 3e-5.
TOLERANCE = 1e-7
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
ALPHAS = [0.5, 0.63, 0.8, 0.9, 1.0, 1.2]


def noise(n, seed=0):
    return np.random.default_rng(seed).normal(0, 1000, n).astype(np.int16)


def largest_difference(a, b):
    return int(np.abs(a.astype(int) - b).max(initial=0))


def assert_bent_alike(bent, expected):
    assert bent.shape == expected.shape
    assert np.abs(bent - expected).max(initial=0) <= TOLERANCE * np.abs(expected).max(initial=0)


def settings(alpha, **options):
    return McAdamsParameters(alpha, engine="torch", **options)


@pytest.mark.parametrize("device", DEVICES)
def test_torch_equals_compiled_before_quantisation(vowels, device):
    parameters = [settings(alpha) for alpha in ALPHAS]
    bent = list(torch_engine.bend_poles([vowels] * len(ALPHAS), parameters, device=device))
    assert len(bent) == len(ALPHAS)
    for one, each in zip(bent, parameters, strict=True):
        assert_bent_alike(one, numba_engine.bend_poles(vowels, each, threads=1))


@pytest.mark.parametrize("n", [319, 4001])
@pytest.mark.parametrize("ends", [{}, {"first_frame": True, "tail": True}], ids=["official", "both ends"])
def test_every_length_equals_compiled(n, ends):
    output = mcadams(noise(n), 16_000, settings(0.7, **ends))
    assert output.dtype == np.int16
    assert output.shape == (n,)
    assert largest_difference(output, mcadams(noise(n), 16_000, McAdamsParameters(0.7, **ends))) <= 1


@pytest.mark.parametrize("frames_per_batch", [7, 100_000])
def test_size_of_batches_changes_nothing(frames_per_batch):
    """Pieces of utterances, several utterances in one batch, and utterances without a frame between them."""
    utterances = [noise(n, seed=n) for n in (3000, 0, 480, 100, 5000, 319)]
    parameters = [settings(alpha) for alpha in ALPHAS]
    bent = list(torch_engine.bend_poles(utterances, parameters, device="cpu", frames_per_batch=frames_per_batch))
    assert [one.size for one in bent] == [samples.size for samples in utterances]
    for one, samples, each in zip(bent, utterances, parameters, strict=True):
        assert_bent_alike(one, numba_engine.bend_poles(samples, each, threads=1))


def test_degenerate_sound_stays_finite():
    samples = np.full(8000, -32_768, np.int16)
    (bent,) = torch_engine.bend_poles([samples], [settings(0.7)])
    assert np.isfinite(bent).all()
    assert np.abs(mcadams(samples, 16_000, settings(0.7)).astype(int)).max() == 32766


def test_eigenvalues_stand_in_for_unsettled_roots(monkeypatch, vowels):
    monkeypatch.setattr(torch_engine, "_MAX_ITERATIONS", 7)  # some frames settle by then, others do not
    (bent,) = torch_engine.bend_poles([vowels], [settings(0.6)])
    assert_bent_alike(bent, numba_engine.bend_poles(vowels, McAdamsParameters(0.6), threads=1))


def test_threads_of_torch_are_given_back_and_change_nothing(vowels):
    before = torch.get_num_threads()
    outputs = [mcadams(vowels, 16_000, settings(0.7), threads=threads) for threads in (1, 2)]
    assert torch.get_num_threads() == before
    assert np.array_equal(*outputs)
