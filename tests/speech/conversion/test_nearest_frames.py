"""Nearest frames: the search, the alignment of the averaged spectra, what is taken off the layers, and a small pool."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the spectra of the vocoder need torch, which is not installed here")

from speech.conversion.nearest_frames import (  # noqa: E402 (needs torch)
    WINDOW_FRAMES,
    Normalization,
    average_spectra,
    find_directions,
    measure_normalization,
    nearest,
)
from speech.vocoders.hifigan import BANDS  # noqa: E402
from tests.speech.conversion.spectral_encoder import make_positions  # noqa: E402

WIDTH = 512
SPECTRA_A_FRAME = 320 / 16_000 * 22_050 / 256


@pytest.mark.parametrize(("k", "candidates"), [(4, 4), (4, 500)])
def test_nearest_are_those_of_a_plain_search(k, candidates):
    rng = np.random.default_rng(k)
    points, pool = rng.normal(size=(70, 40)).astype(np.float32), rng.normal(size=(candidates, 40)).astype(np.float32)
    exact = ((points[:, None].astype(float) - pool[None].astype(float)) ** 2).sum(axis=2)
    assert np.array_equal(nearest(points, pool, k), np.argsort(exact, axis=1, kind="stable")[:, :k])


# Spectra -------------------------------------------------------------------------------------------


def ramp(count):
    """Spectra that name their place."""
    return np.repeat(np.arange(count, dtype=np.float32)[:, None], BANDS, axis=1)


@pytest.mark.parametrize("moved", [0, 7, WINDOW_FRAMES])
def test_spectra_keep_their_place_within_the_chosen_frames(moved):
    """Frames a few later, or a window later, give the spectra that lie as much later."""
    found = average_spectra(np.arange(100)[:, None] + moved, ramp(2 * 2584), 172)
    later = 2584 if moved == WINDOW_FRAMES else moved * SPECTRA_A_FRAME
    assert found.shape == (172, BANDS)
    assert np.allclose(found[:, 0], np.arange(172) + later, atol=2e-3)


def test_spectra_of_several_frames_are_averaged():
    chosen = np.arange(50)[:, None] + np.array([[0, 10, 20]])
    assert np.allclose(average_spectra(chosen, ramp(200), 86)[:, 0], np.arange(86) + 10 * SPECTRA_A_FRAME, atol=1e-3)


# What is taken off ---------------------------------------------------------------------------------


def windows(count, *, course, seed=1, frames=WINDOW_FRAMES):
    """Layers of sounds by chance, each 0.2 s long, with the same course over every window."""
    rng = np.random.default_rng(seed)
    return [
        (np.repeat(rng.normal(size=(3, frames // 10, WIDTH)), 10, axis=1) + course[:frames]).astype(np.float16)
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def directions():
    return find_directions(make_positions(WIDTH))


@pytest.fixture(scope="module")
def course(directions):
    """What three directions say of a place, as strong as the sounds."""
    shares = np.random.default_rng(2).normal(size=(3, WIDTH))
    return np.sqrt(WINDOW_FRAMES / 3) * directions[:, 20:23] @ shares


def test_directions_are_courses_over_the_window_of_length_one(directions):
    count = directions.shape[1]
    assert 100 < count < 400
    assert np.allclose(directions.T @ directions, np.eye(count), atol=1e-4)
    assert np.allclose(directions.sum(axis=0), 0, atol=1e-2)


def test_numbers_that_are_huge_whatever_the_sound_are_left_out(directions):
    given = windows(3, course=np.zeros((WINDOW_FRAMES, 1)))
    for each in given:
        each[1, ::50, 9] = 100
    kept = measure_normalization(given, directions).kept
    assert np.argwhere(~kept).tolist() == [[1, 0, 9]]


def test_a_part_of_a_window_teaches_the_mean_alone(course, directions):
    found = measure_normalization(windows(1, course=course, frames=700), directions)
    assert np.ptp(found.means, axis=1).max() == 0
    assert found.apply(np.ones((3, 20, WIDTH), np.float32)).shape == (20, 3 * WIDTH)


def test_features_have_length_one_and_know_nothing_of_the_place():
    rng = np.random.default_rng(3)
    means = rng.normal(size=(3, WINDOW_FRAMES, WIDTH)).astype(np.float32)
    sound = rng.normal(size=(3, 1, WIDTH)).astype(np.float32)
    kept = np.ones((3, 1, WIDTH), bool)
    kept[:, :, 7] = False
    frames = means[:, :40] + sound
    frames[:, :, 7] += 50 * rng.normal(size=(3, 40))
    found = Normalization(means, kept).apply(frames)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.allclose(found, found[0], atol=1e-4)
