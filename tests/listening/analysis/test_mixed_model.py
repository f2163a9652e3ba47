"""Tables of the mixed model: effects against the originals, shares of variance, and what is left out with a note."""

import numpy as np
import pytest

from listening.analysis.models.mixed_model import make_model_tables
from tests.listening.analysis.rated import QUICK, drawn, ratings_of, scored_of


def tables(ratings, kind="raw", settings=QUICK):
    return make_model_tables(scored_of(ratings, kind), settings)


def test_effects_are_against_the_originals_and_shares_add_up():
    effects, variances = tables(drawn(listeners=40, each=8, seed=1, step=0.6, position_effect=0.05))
    rows = {row["system"]: row for row in effects.records()}
    assert list(rows) == ["original", "T01", "T02", "T03"]
    assert (rows["original"]["effect"], rows["original"]["se"]) == (0, None)
    for place, system in enumerate(("T01", "T02", "T03"), start=1):
        row = rows[system]
        assert row["effect"] == pytest.approx(-0.6 * place, abs=4 * row["se"])
        assert row["low"] == pytest.approx(row["effect"] - 1.959964 * row["se"], rel=1e-4)
        assert row["high"] == pytest.approx(row["effect"] + 1.959964 * row["se"], rel=1e-4)
    assert rows["original"]["remark"].startswith("Reference. +0.0")
    assert "per trial of position" in rows["original"]["remark"]
    assert [row["part"] for row in variances.records()] == ["listener", "utterance", "speaker", "residual"]
    assert sum(row["share"] for row in variances.records()) == pytest.approx(1)


def test_verifiability_takes_the_class_of_pairs_into_account():
    ratings = drawn(task="verifiability", seed=3)
    shifted = ratings.rating + 3.0 * (ratings.is_target == 1)
    ratings = ratings_of(
        ratings.listener,
        ratings.system,
        shifted,
        task="verifiability",
        is_target=ratings.is_target,
        utterance=ratings.utterance,
        speaker=ratings.speaker,
        position=ratings.position,
    )
    assert "for pairs of one speaker" in tables(ratings)[0].records()[0]["remark"]


@pytest.mark.parametrize(
    ("changed", "part", "words"),
    [
        ({"speaker": "s1"}, "speaker", "all ratings have one speaker"),
        ({"speaker": ""}, "speaker", "the speaker of some ratings is not known"),
        ({"utterance": "as system"}, "utterance", "each system has one utterance only"),
        ({"speaker": "as utterance"}, "speaker", "each utterance has a speaker of its own"),
        ({"utterance": "all different"}, "utterance", "each utterance was rated once"),
    ],
)
def test_a_part_that_cannot_be_told_is_left_out_with_a_note(changed, part, words):
    ratings = drawn()
    ((name, value),) = changed.items()
    values = {
        "as utterance": ratings.utterance,
        "as system": ratings.system,
        "all different": np.array([f"u{n}" for n in range(len(ratings))]),
    }.get(value, value)
    columns = {"utterance": ratings.utterance, "speaker": ratings.speaker, "position": ratings.position} | {
        name: values
    }
    effects, variances = tables(ratings_of(ratings.listener, ratings.system, ratings.rating, **columns))
    row = variances.records(part=part)[0]
    assert (row["variance"], row["share"]) == (None, None)
    assert row["remark"].startswith(f"Left out: {words}")
    assert effects.records()[1]["effect"] is not None


def test_a_position_that_is_not_known_is_said_to_be_left_out():
    ratings = drawn()
    plain = ratings_of(ratings.listener, ratings.system, ratings.rating, utterance=ratings.utterance)
    assert tables(plain)[0].records()[0]["remark"] == "Reference. Position in the session is not known and left out."


def test_one_listener_constant_ratings_and_few_ratings_are_notes():
    one = drawn(listeners=1, utterances=1, speakers=1)
    assert "random parts cannot be distinguished" in tables(one)[0].records()[1]["remark"]
    same = drawn()
    same = ratings_of(same.listener, same.system, np.full(len(same), 3), utterance=same.utterance)
    assert "All scores are equal" in tables(same)[0].records()[1]["remark"]
    few = ratings_of(list("AABB"), ["original", "T1", "original", "T2"], [1, 2, 3, 4])
    assert tables(few)[0].records()[1]["remark"]
