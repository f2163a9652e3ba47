"""The encoders on speech: they know original voices, and none of the published anonymisers' voices.

Few utterances, cut to a few seconds, so that this takes seconds; tolerances are for that small number.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

from evaluation.metrics.detection import detection_metrics
from tests.evaluation.engines import require_engine
from tests.recordings import DEMO, RATE, SHARED, first_of_each_speaker, read_samples

SECONDS = 3
PER_SPEAKER = 3
DEFAULT = "wespeaker-resnet34"
ANONYMISED_CORPUS = "librispeech-dev-clean"


@cache
def rows(table):
    with (SHARED / "speech" / table).open() as file:
        return list(csv.DictReader(file))


def first_of_each(found, key, number):
    """The first rows of each value of `key`."""
    kept = defaultdict(list)
    for row in found:
        if len(kept[row[key]]) < number:
            kept[row[key]].append(row)
    return [row for members in kept.values() for row in members]


def vectors_of(encoder, folder, found):
    begun = [read_samples(folder / row["path"])[: SECONDS * RATE] for row in found]
    stacked = np.array([encoder.embed([samples], RATE)[0] for samples in begun], float)
    return stacked / np.linalg.norm(stacked, axis=1, keepdims=True)


def test_original_voices_of_one_gender_are_told_apart():
    """Over all read speech of ../shared the EER is 0.35 %."""
    encoder = require_engine(DEFAULT)
    found = first_of_each_speaker(2)
    vectors = vectors_of(encoder, DEMO, found)
    cosines = vectors @ vectors.T
    speakers, genders = (np.array([row[key] for row in found]) for key in ("speaker", "gender"))
    one, other = np.triu_indices(len(found), 1)
    same = speakers[one] == speakers[other]
    scores, alike = cosines[one, other], genders[one] == genders[other]
    assert (len(found), same.sum(), (alike & ~same).sum()) == (20, 10, 80)
    assert detection_metrics(scores[same], scores[alike & ~same]).rocch_eer <= 0.02


@pytest.mark.slow  # the sound of the published anonymisers is not ours to publish
@pytest.mark.usefixtures("shared")
def test_no_voice_of_the_published_anonymisers_is_known():
    """Original against anonymised, all six systems pooled: the EER of an ignorant attacker is near one half."""
    encoder = require_engine(DEFAULT)
    originals = [row for row in rows("utterances.csv") if row["corpus"] == ANONYMISED_CORPUS]
    originals = first_of_each(originals, "speaker", PER_SPEAKER)
    known = {row["utterance_id"] for row in originals}
    others = [row for row in rows("anonymised.csv") if row["utterance_id"] not in known]
    anonymised = [row for system in sorted({row["system"] for row in others}) for row in _one_of_each(others, system)]
    assert (len(originals), len(anonymised)) == (12, 24)
    heard = vectors_of(encoder, SHARED / "speech", originals)
    cosines = heard @ vectors_of(encoder, SHARED / "speech", anonymised).T
    speakers = np.array([row["speaker"] for row in originals])
    same = speakers[:, None] == np.array([row["source_speaker"] for row in anonymised])
    metrics = detection_metrics(cosines[same], cosines[~same])
    assert 0.35 < metrics.kaldi_eer < 0.65
    one, other = np.triu_indices(len(originals), 1)
    own, scores = speakers[one] == speakers[other], (heard @ heard.T)[one, other]
    assert detection_metrics(scores[own], scores[~own]).kaldi_eer <= 0.02


def _one_of_each(found, system):
    return first_of_each([row for row in found if row["system"] == system], "source_speaker", 1)
