"""Real vectors and the real trials of the challenge at full size: published EERs, scores, DET, G_VD and inversion."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.attackers.trial_scores import score_trials
from evaluation.formats.kaldi import KaldiTrial, read_enrolls, read_trials, read_utt2spk
from evaluation.formats.scores import read_scores
from evaluation.metrics.detection import det_curve, kaldi_eer
from evaluation.metrics.inversion import invert_embeddings
from evaluation.metrics.voice_similarity import voice_distinctiveness_of_embeddings
from tests.recordings import SHARED

FOLDER = SHARED / "vpc-librispeech"
# The vectors are under CC BY-NC 4.0: not ours to publish.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared")]

Floats = NDArray[np.float32]
# Enrolment side, trial side, EER in percent of female and male trials (from the folder's README).
CONDITIONS = {
    "unprotected": ("original", "original", {"f": 2.983, "m": 0.1553}),
    "ignorant": ("original", "ohnn", {"f": 64.35, "m": 74.22}),
    "lazy-informed": ("ohnn", "ohnn", {"f": 3.125, "m": 0.1553}),
}
EACH = [(condition, gender) for condition in CONDITIONS for gender in "fm"]


@cache
def vectors(side: str) -> dict[str, Floats]:
    with np.load(FOLDER / f"embeddings-dev-{side}.npz") as file:
        return dict(zip(map(str, file["ids"]), file["vectors"], strict=True))


def vectors_of(side: str, part: str) -> dict[str, Floats]:
    """Those of a data set by utterance."""
    return {name.split("/")[1]: vector for name, vector in vectors(side).items() if name.startswith(f"{part}/")}


@cache
def trials_of(gender: str) -> tuple[KaldiTrial, ...]:
    return read_trials(FOLDER / "data" / f"libri_dev_trials_{gender}" / "trials").content


@cache
def scores_of(condition: str, gender: str) -> NDArray[np.float64]:
    enrolment, trial, _ = CONDITIONS[condition]
    data = FOLDER / "data" / "libri_dev_enrolls"
    speakers = read_utt2spk(data / "utt2spk").content
    enrolled = vectors_of(enrolment, "enrolls")
    models: dict[str, list[Floats]] = {}
    for utterance in read_enrolls(data / "enrolls").content:
        models.setdefault(speakers[utterance], []).append(enrolled[utterance])
    return score_trials(models, vectors_of(trial, f"trials_{gender}"), trials_of(gender))


@pytest.mark.parametrize(("condition", "gender"), EACH)
def test_the_published_eers_come_out(condition: str, gender: str):
    targets = np.array([trial.target for trial in trials_of(gender)])
    scores = scores_of(condition, gender)
    expected = CONDITIONS[condition][2][gender]
    assert f"{100 * kaldi_eer(scores[targets], scores[~targets]):.4g}" == f"{expected:.4g}"


@pytest.mark.parametrize(("condition", "gender"), EACH)
def test_every_score_is_the_published_one(condition: str, gender: str):
    enrolment, trial = ("_anon" if side == "ohnn" else "" for side in CONDITIONS[condition][:2])
    published = read_scores(
        FOLDER / "scores-ohnn" / f"ASV-libri_dev_enrolls{enrolment}-libri_dev_trials_{gender}{trial}" / "scores"
    )
    assert len(published.scores) == len(trials_of(gender))
    np.testing.assert_allclose(scores_of(condition, gender), published.scores, atol=1e-6)  # six digits in the files


def test_the_det_curve_passes_the_eer():
    targets = np.array([trial.target for trial in trials_of("f")])
    scores = scores_of("unprotected", "f")
    det = det_curve(scores[targets], scores[~targets])
    crossing = np.abs(det.miss_rate - det.false_alarm_rate).argmin()
    assert det.miss_rate[crossing] == pytest.approx(0.0298, abs=0.001)
    assert (det.miss_rate[0], det.miss_rate[-1]) in ((0.0, 1.0), (1.0, 0.0))


@cache
def sides(gender: str) -> tuple[NDArray[np.float32], NDArray[np.float32], tuple[str, ...]]:
    """Original and anonymised vectors of the trial utterances in the official order, and their speakers."""
    original, anonymised = (vectors_of(side, f"trials_{gender}") for side in ("original", "ohnn"))
    speakers = read_utt2spk(FOLDER / "data" / f"libri_dev_trials_{gender}" / "utt2spk").content
    names = sorted(original)
    first, second = (np.stack([side[name] for name in names]) for side in (original, anonymised))
    return first, second, tuple(speakers[name] for name in names)


@pytest.mark.parametrize("gender", ["f", "m"])
def test_voices_stay_distinct_and_are_de_identified(gender: str):
    original, anonymised, speakers = sides(gender)
    found = voice_distinctiveness_of_embeddings(original, anonymised, speakers)
    # An orthogonal map keeps the voices as far apart as they were, and leads all of them elsewhere.
    assert found.gain_db == pytest.approx(0, abs=0.05)
    assert found.de_identification_score == pytest.approx(1, abs=1e-3)
    assert len(found.oo.speakers) == len(set(speakers)) == 20


@pytest.mark.parametrize("gender", ["f", "m"])
def test_an_orthogonal_anonymiser_is_inverted_from_other_speakers(gender: str):
    original, anonymised, speakers = sides(gender)
    found = invert_embeddings(original, anonymised, speakers, generator=np.random.default_rng(1), pairs=300)
    assert found.utterance_recovery_rate > 0.99
    assert found.utterance_chance_rate < 0.003
    assert found.relative_error < 0.3
