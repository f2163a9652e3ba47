"""Unweighted average recall as the 2024 recipe takes it: within speakers, then over them."""

from __future__ import annotations

import pytest

from common.errors import InputError
from evaluation.metrics.speaker_traits import EMOTIONS, emotion_scores


def scores(table: dict[str, list[tuple[str, str]]], **options):
    """From speaker → (reference, prediction) pairs."""
    references, predictions, speakers = {}, {}, {}
    for speaker, pairs in table.items():
        for i, (reference, prediction) in enumerate(pairs):
            utterance = f"{speaker}-{i}"
            references[utterance], predictions[utterance], speakers[utterance] = reference, prediction, speaker
    return emotion_scores(references, predictions, speakers, **options)


def test_uar_is_the_mean_over_speakers_of_the_mean_recall():
    result = scores(
        {
            "1": [("sad", "sad"), ("sad", "neu"), ("neu", "neu"), ("ang", "ang"), ("hap", "sad")],
            "2": [("sad", "sad"), ("neu", "neu"), ("ang", "ang"), ("hap", "hap")],
        }
    )
    assert [speaker.uar_score for speaker in result.speakers] == [0.625, 1.0]
    assert result.uar_score == 0.8125  # pooled it would be 7/9 correct or a mean recall of 0.79
    assert result.class_scores == {"sad": 0.75, "neu": 1.0, "ang": 1.0, "hap": 0.5}
    assert result.confusion.tolist() == [[2, 1, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [1, 0, 0, 1]]
    assert result.classes == EMOTIONS
    assert [speaker.n for speaker in result.speakers] == [5, 4]


def test_uar_leaves_out_a_class_that_a_speaker_lacks():
    result = scores({"1": [("sad", "sad"), ("neu", "hap")], "2": [("hap", "hap")]})
    assert [speaker.uar_score for speaker in result.speakers] == [0.5, 1.0]
    assert result.speakers[0].recall_scores == {"sad": 1.0, "neu": 0.0, "ang": None, "hap": None}
    assert result.class_scores == {"sad": 1.0, "neu": 0.0, "ang": None, "hap": 1.0}


def test_official_uar_counts_a_predicted_class_that_the_speaker_lacks_as_zero():
    table = {"1": [("sad", "sad"), ("neu", "hap"), ("neu", "neu"), ("neu", "neu")]}
    assert scores(table).uar_score == pytest.approx((1 + 2 / 3) / 2)
    official = scores(table, compatibility="official")
    assert official.uar_score == pytest.approx(0.55556, abs=1e-12)  # (1 + 2/3 + 0) / 3, rounded
    assert official.class_scores["neu"] == pytest.approx(0.66667, abs=1e-12)
    assert official.class_scores["hap"] is None


def test_emotion_scores_report_everything_wrong_at_once():
    with pytest.raises(InputError) as error:
        emotion_scores({"a": "sad", "b": "joy"}, {"a": "sad", "c": "neu"}, {"a": "S"})
    for part in (
        "1 without a prediction, first b",
        "1 predicted but without a reference, first c",
        "1 without a speaker, first b",
        "the unknown classes joy",
    ):
        assert part in str(error.value)


def test_emotion_scores_need_an_utterance():
    with pytest.raises(InputError, match="no utterance at all"):
        emotion_scores({}, {}, {})
