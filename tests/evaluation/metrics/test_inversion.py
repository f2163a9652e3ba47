"""The inversion attack: maps that are linear are found, others are not, and chance is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from common.errors import InputError
from evaluation.metrics.inversion import fit_map, invert_embeddings

Floats = NDArray[np.float64]
SIZE = 8


def speech(seed: int, speakers: int = 10, utterances: int = 12) -> tuple[Floats, list[str]]:
    """Speaker vectors of length 1, as an encoder makes them."""
    generator = np.random.default_rng(seed)
    voices = np.repeat(generator.normal(size=(speakers, SIZE)), utterances, axis=0)
    vectors = voices + 0.4 * generator.normal(size=voices.shape)
    names = [f"s{number // utterances}" for number in range(len(vectors))]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), names


def rotation(seed: int) -> Floats:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(SIZE, SIZE)))[0]


@pytest.mark.parametrize(("kind", "disjoint"), [("orthogonal", True), ("affine", False)])
def test_a_rotation_is_undone(kind: Any, disjoint: bool):
    vectors, speakers = speech(1)
    found = invert_embeddings(
        vectors,
        7 * vectors @ rotation(2),
        speakers,
        generator=np.random.default_rng(3),
        kind=kind,
        disjoint_speakers=disjoint,
    )
    assert (found.utterance_recovery_rate, found.speaker_recovery_rate) == (1.0, 1.0)
    assert found.relative_error < (1e-12 if kind == "orthogonal" else 0.1)
    assert (found.pairs, found.utterances) == (60, 60)
    assert found.disjoint_speakers == disjoint
    assert found.utterance_chance_rate == pytest.approx(1 / 60)


def test_the_same_map_is_found_by_least_squares_and_by_procrustes():
    vectors, _ = speech(4)
    turned = vectors @ rotation(5)
    np.testing.assert_allclose(fit_map(vectors, turned, "orthogonal").matrix, rotation(5), atol=1e-10)
    plain = fit_map(vectors, turned + 3, "affine", ridge=0)
    np.testing.assert_allclose(plain.matrix, rotation(5), atol=1e-10)
    np.testing.assert_allclose(plain.offset, np.full(SIZE, 3.0), atol=1e-10)


def test_a_map_that_is_linear_but_no_rotation_needs_the_affine_attack():
    vectors, speakers = speech(8)
    squeezed = vectors * np.array([5.0, 3, 2, 1, 1, 0.5, 0.2, 0.1]) @ rotation(9) + 1
    errors = {
        kind: invert_embeddings(vectors, squeezed, speakers, generator=np.random.default_rng(1), kind=kind)
        for kind in ("orthogonal", "affine")
    }
    assert errors["affine"].relative_error < 0.7 * errors["orthogonal"].relative_error
    assert errors["affine"].utterance_recovery_rate > errors["orthogonal"].utterance_recovery_rate


@pytest.mark.parametrize("kind", ["orthogonal", "affine"])
def test_vectors_that_have_nothing_to_do_with_the_originals_are_found_by_chance(kind: Any):
    vectors, speakers = speech(10, speakers=20, utterances=40)
    others = np.random.default_rng(11).normal(size=vectors.shape)
    found = invert_embeddings(vectors, others, speakers, generator=np.random.default_rng(12), kind=kind)
    assert found.utterance_chance_rate == 1 / 400
    assert found.speaker_chance_rate == pytest.approx(0.1)
    # 400 guesses at 0.0025 and at 0.1: far outside of five standard deviations only if something leaked.
    assert found.utterance_recovery_rate < 0.02
    assert abs(found.speaker_recovery_rate - 0.1) < 0.08


def test_one_voice_for_all_hides_the_utterance():
    vectors, speakers = speech(13)
    constant = np.tile(vectors[0], (len(vectors), 1))
    found = invert_embeddings(vectors, constant, speakers, generator=np.random.default_rng(14), kind="affine")
    assert found.utterance_recovery_rate == found.utterance_chance_rate


def test_as_many_pairs_as_dimensions_do_not_ruin_the_affine_map():
    vectors, speakers = speech(19, speakers=20)
    turned = vectors @ rotation(20) + 0.05 * np.random.default_rng(21).normal(size=vectors.shape)
    drawn = [
        invert_embeddings(
            vectors, turned, speakers, generator=np.random.default_rng(seed), kind="affine", pairs=SIZE + 1
        ).relative_error
        for seed in range(8)
    ]
    assert max(drawn) < 1.5


def test_the_same_generator_gives_the_same_attack_and_a_single_pair_is_enough():
    vectors, speakers = speech(22)
    for kind in ("orthogonal", "affine"):
        twice: list[object] = [
            invert_embeddings(
                vectors, vectors @ rotation(1), speakers, generator=np.random.default_rng(5), kind=kind, pairs=1
            )
            for _ in range(2)
        ]
        assert twice[0] == twice[1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"anonymised": np.ones((3, SIZE))}, r"shapes \(120, 8\) and \(3, 8\)"),
        ({"speakers": ["a", "b"] * 60}, "needs three speakers, one to learn from and two to distinguish; found 2"),
        ({"anonymised": np.zeros((120, SIZE))}, "found 120 of 120"),
        ({"original": np.full((120, SIZE), np.nan)}, "original vectors that are finite"),
        ({"pairs": 61}, "1 to 60 pairs to learn from, as many as were drawn, found 61"),
    ],
)
def test_what_cannot_be_attacked_gets_a_sentence(change: dict[str, Any], sentence: str):
    vectors, speakers = speech(23)
    arguments = {"original": vectors, "anonymised": vectors, "speakers": speakers} | change
    with pytest.raises(InputError, match=sentence):
        invert_embeddings(**arguments, generator=np.random.default_rng(1))
