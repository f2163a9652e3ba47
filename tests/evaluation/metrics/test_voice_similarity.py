"""Similarity matrices, De-Identification and G_VD: official values, equations 1 to 3, and the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.arrays import unit_vectors
from common.errors import InputError
from evaluation.metrics.voice_similarity import (
    diagonal_dominance,
    similarity_matrix,
    voice_distinctiveness,
    voice_distinctiveness_of_embeddings,
)
from tests.official import load_json

KINDS = ("osp_osp", "osp_psp", "psp_psp")


def reference_sets() -> dict[str, dict]:
    return {name: case for name, case in load_json("voice_distinctiveness.json").items() if "utt2spk" in case}


def squares(case: dict) -> list[np.ndarray]:
    places = {utterance: place for place, utterance in enumerate(case["utt2spk"])}
    found = [np.full((len(places), len(places)), np.nan) for _ in KINDS]
    for square, kind in zip(found, KINDS, strict=True):
        for row, column, score in case[f"scores_{kind}"]:
            square[places[row], places[column]] = score
    return found


def cosine_scores(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return unit_vectors(rows, "rows") @ unit_vectors(columns, "columns").T


@pytest.mark.parametrize("name", reference_sets())
def test_voice_distinctiveness_equals_official(name):
    case = reference_sets()[name]
    result = voice_distinctiveness(*squares(case), list(case["utt2spk"].values()))
    assert result.gain_db == pytest.approx(case["gain_of_voice_distinctiveness"], abs=1e-12)
    assert result.de_identification_score == pytest.approx(case["de_identification"], abs=1e-12)
    for matrix, kind in zip((result.oo, result.op, result.pp), KINDS, strict=True):
        assert matrix.values == pytest.approx(np.array(case[f"matrix_{kind}"]), abs=1e-12)
        assert len(matrix.speakers) == case["speakers"]


def random_case(seed: int = 3) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Embeddings of 4 speakers with 2 to 5 utterances, original and anonymised."""
    random = np.random.default_rng(seed)
    counts = [3, 2, 5, 4]
    codes = np.repeat(np.arange(4), counts)
    voices = random.normal(size=(4, 8))
    original = voices[codes] + random.normal(size=(codes.size, 8))
    anonymised = 0.3 * voices[codes] + random.normal(size=(codes.size, 8))
    return original, anonymised, [f"s{code}" for code in codes]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def plan_by_loops(scores: np.ndarray, speakers: list[str]) -> np.ndarray:
    """Equation 1 of the plan, term by term."""
    names = list(dict.fromkeys(speakers))
    values = np.zeros((len(names), len(names)))
    for a, first in enumerate(names):
        for b, second in enumerate(names):
            rows = [i for i, speaker in enumerate(speakers) if speaker == first]
            columns = [i for i, speaker in enumerate(speakers) if speaker == second]
            terms = [scores[k, m] for k in rows for m in columns if k != m]
            values[a, b] = sigmoid(sum(terms) / (len(rows) * len(columns)))
    return values


def test_plan_form_is_equation_one_term_by_term():
    original, anonymised, speakers = random_case()
    for scores in (10 * cosine_scores(original, original), 10 * cosine_scores(original, anonymised)):
        matrix = similarity_matrix(scores, speakers, form="plan")
        assert matrix.values == pytest.approx(plan_by_loops(scores, speakers), abs=1e-14)
        assert matrix.speakers == ("s0", "s1", "s2", "s3")


def test_dominance_and_gain_are_equations_two_and_three():
    original, anonymised, speakers = random_case()
    oo, op, pp = (
        9 * cosine_scores(a, b) for a, b in ((original, original), (original, anonymised), (anonymised, anonymised))
    )
    result = voice_distinctiveness(oo, op, pp, speakers, form="plan")
    dominances = []
    for matrix in (result.oo, result.op, result.pp):
        n = len(matrix.values)
        diagonal = sum(matrix.values[i, i] for i in range(n)) / n
        others = sum(matrix.values[i, j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
        dominances.append(abs(diagonal - others))
        assert matrix.diagonal_dominance == pytest.approx(dominances[-1], abs=1e-14)
    assert result.de_identification_score == pytest.approx(1 - dominances[1] / dominances[0])
    assert result.gain_db == pytest.approx(10 * math.log10(dominances[2] / dominances[0]))


@pytest.mark.parametrize("form", ["official", "plan"])
def test_embeddings_give_what_their_cosines_give(form):
    original, anonymised, speakers = random_case()
    direct = voice_distinctiveness_of_embeddings(original, anonymised, speakers, form=form)
    by_scores = voice_distinctiveness(
        cosine_scores(original, original),
        cosine_scores(original, anonymised),
        cosine_scores(anonymised, anonymised),
        speakers,
        form=form,
    )
    assert direct.gain_db == pytest.approx(by_scores.gain_db, abs=1e-9)
    assert direct.de_identification_score == pytest.approx(by_scores.de_identification_score, abs=1e-9)


def single(where: str) -> tuple[np.ndarray, list[str]]:
    original, _, speakers = random_case()
    keep = {"middle": [0, 1, 2, 3, 5, 6, 7], "last": [0, 1, 2, 3, 4, 5]}[where]
    return original[keep], [speakers[i] for i in keep]


@pytest.mark.parametrize(("where", "form"), [("middle", "official"), ("last", "plan")])
def test_a_speaker_with_one_utterance_counts_off_the_diagonal_only(where, form):
    embeddings, speakers = single(where)
    result = voice_distinctiveness_of_embeddings(embeddings, embeddings, speakers, form=form)
    lonely = {"middle": 1, "last": 2}[where]
    values = result.oo.values
    assert np.flatnonzero(np.isnan(values.ravel())).tolist() == [lonely * len(values) + lonely]
    off = values[~np.eye(len(values), dtype=bool)]
    assert result.oo.diagonal_dominance == pytest.approx(abs(np.nanmean(np.diag(values)) - off.mean()))
    assert result.gain_db == 0.0


def test_official_value_with_a_single_utterance_is_nan_or_lacks_the_last_speaker():
    embeddings, speakers = single("middle")
    scores = cosine_scores(embeddings, embeddings)
    assert math.isnan(similarity_matrix(scores, speakers, compatibility="official").diagonal_dominance)
    embeddings, speakers = single("last")
    scores = cosine_scores(embeddings, embeddings)
    official = similarity_matrix(scores, speakers, compatibility="official")
    documented = similarity_matrix(scores, speakers)
    assert official.speakers == ("s0", "s1")
    assert np.array_equal(official.values, documented.values[:2, :2])


def test_tied_anonymised_scores_are_no_voices_any_more():
    _, _, speakers = random_case()
    original, _, _ = random_case()
    oo = cosine_scores(original, original)
    tied = voice_distinctiveness(oo, None, np.zeros(oo.shape), speakers, form="plan")
    assert tied.gain_db == -math.inf
    with pytest.raises(InputError, match="cannot be distinguished"):
        voice_distinctiveness(np.zeros(oo.shape), None, oo, speakers, form="plan")
    official = voice_distinctiveness(np.zeros(oo.shape), None, oo, speakers, form="plan", compatibility="official")
    assert official.gain_db == math.inf


@pytest.mark.parametrize(
    ("scores", "speakers", "form", "sentence"),
    [
        (np.zeros((3, 4)), ["a", "a", "b"], "official", r"3 utterances with each other, found shape \(3, 4\)"),
        (np.zeros((2, 2)), ["a", "b"], "plan", "one of them with two utterances"),
        (np.full((3, 3), np.nan), ["a", "a", "b"], "official", "3 utterance pairs, found 3 missing.*1 and 2"),
        (np.array([[0, 1, 1], [1, 0, np.inf], [1, 1, 0]]), ["a", "a", "b"], "plan", "6 .* found 1 .* 2 and 3"),
    ],
)
def test_similarity_matrix_refuses(scores, speakers, form, sentence):
    with pytest.raises(InputError, match=sentence):
        similarity_matrix(scores, speakers, form=form)


@pytest.mark.parametrize(
    ("original", "anonymised", "sentence"),
    [
        (np.ones(3), np.ones((3, 2)), r"original embeddings of shape \(utterances, dimensions\)"),
        (np.ones((3, 2)), np.zeros((3, 2)), "anonymised embeddings that are finite and not zero, found 3 of 3"),
    ],
)
def test_embeddings_are_refused(original, anonymised, sentence):
    with pytest.raises(InputError, match=sentence):
        voice_distinctiveness_of_embeddings(original, anonymised, ["a", "a", "b"])


@pytest.mark.parametrize(("values", "sentence"), [(np.ones((2, 3)), "square"), (np.full((2, 2), np.nan), "none on")])
def test_diagonal_dominance_refuses(values, sentence):
    with pytest.raises(InputError, match=sentence):
        diagonal_dominance(values)
