"""Gender preservation by the nearest centroid, on vectors whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError
from evaluation.metrics.speaker_traits import gender_preservation

GENDER_OF = {"a": "F", "b": "F", "c": "M", "d": "M"}
FEMALE, MALE = [1.0, 0.1, 0.0], [0.1, 1.0, 0.0]
SPEAKERS = ["a", "a", "b", "c", "d", "d"]
ORIGINALS = [FEMALE, [0.9, 0.0, 0.2], [1.0, 0.2, 0.1], MALE, [0.0, 0.8, 0.1], [0.2, 1.0, 0.3]]


def test_each_gender_counts_alike_whatever_its_number():
    anonymised = [FEMALE, MALE, FEMALE, MALE, FEMALE]
    found = gender_preservation(ORIGINALS, SPEAKERS, anonymised, ["a", "a", "b", "c", "d"], GENDER_OF)
    assert found.preserved_by_gender == {"F": pytest.approx(2 / 3), "M": pytest.approx(1 / 2)}
    assert found.preserved == pytest.approx(7 / 12)
    assert (found.originals, found.utterances, found.speakers) == (1.0, 5, 4)


def test_a_speaker_is_judged_by_the_others_only():
    """One unlike all others, a little nearer to the men: with their own original they would be among the women."""
    speakers, gender_of = ["a", "b", "e", "c", "d"], GENDER_OF | {"e": "F"}
    originals = [[0.0, 0.0, 1.0], FEMALE, [1.0, 0.2, 0.1], [0.1, 1.0, 0.2], MALE]
    found = gender_preservation(originals, speakers, originals, speakers, gender_of)
    assert found.preserved_by_gender == {"F": pytest.approx(2 / 3), "M": 1.0}
    assert found.preserved == found.originals == pytest.approx(5 / 6)


def test_a_gender_without_anonymised_utterances_has_no_share():
    found = gender_preservation(ORIGINALS, SPEAKERS, [MALE], ["a"], GENDER_OF)
    assert (found.preserved_by_gender, found.preserved) == ({"F": 0.0}, 0.0)


@pytest.mark.parametrize(
    ("originals", "speakers", "words"),
    [
        (ORIGINALS[:3], SPEAKERS[:3], "found 2 of F"),
        (ORIGINALS, ["e", *SPEAKERS[1:]], "found none of e"),
        (np.zeros((0, 3)), [], "found shape"),
        ([[0.0] * 3, *ORIGINALS[1:]], SPEAKERS, "finite and not zero"),
    ],
)
def test_what_cannot_be_judged_is_refused(originals, speakers, words):
    with pytest.raises(InputError, match=words):
        gender_preservation(originals, speakers, [FEMALE], ["a"], GENDER_OF)
