"""The report of a recogniser: rates, groups, intervals, originals, what could not be compared."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from common.errors import InputError
from common.progress import ignore_progress
from evaluation.metrics.bootstrap import bootstrap_ratio
from evaluation.metrics.word_errors import WordErrorCounts
from evaluation.objective_results.recognition import recognition_report
from evaluation.objective_results.results.folders import SystemResults
from evaluation.objective_results.sources import Sources, Work

REFERENCES = {"a1": "ONE TWO", "a2": "THREE FOUR", "b1": "FIVE", "c1": "SIX SEVEN EIGHT"}
HYPOTHESES = {"a1": "One, two!", "a2": "three for", "b1": "", "c1": "6, 7, 8"}
SPEAKERS = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
GENDERS = {"a": "f", "b": "m", "c": "m"}


def report(hypotheses=HYPOTHESES, **options):
    options = {"speakers": SPEAKERS, "genders": GENDERS} | options
    return recognition_report(REFERENCES, hypotheses, random=np.random.default_rng(1), **options)


def test_rates_are_counted_overall_and_by_gender():
    found = report()
    assert [(one.group, one.counts, one.utterances, one.speakers) for one in found.groups] == [
        ("all", WordErrorCounts(8, 0, 1, 1), 4, 3),
        ("f", WordErrorCounts(4, 0, 0, 1), 2, 1),
        ("m", WordErrorCounts(4, 0, 1, 0), 2, 2),
    ]
    assert found.rule == "written-english-1"
    assert [one.utterance for one in found.worst()] == ["b1", "a2"]
    assert [one.utterance for one in found.worst(1)] == ["b1"]
    assert any("Of 1 of 4 utterances nothing was recognised" in note for note in found.notes)


def test_intervals_hold_the_rate_and_need_two_speakers():
    overall, women, men = report().groups
    assert overall.interval.lower <= overall.interval.estimate == overall.counts.error_rate <= overall.interval.upper
    assert men.interval.lower == 0
    assert men.interval.upper == 1
    assert women.interval is None
    alone = report(speakers=dict.fromkeys(REFERENCES, "a"))
    assert alone.overall.interval is None
    assert report(speakers=None).overall.interval is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"speakers": None}, "the speakers of the utterances are not known"),
        (
            {"hypotheses": REFERENCES},
            "no utterance has an error, so that every resample of the speakers gives the same rate",
        ),
    ],
)
def test_note_says_why_there_is_no_interval(changes, reason):
    found = report(**changes)
    assert found.overall.interval is None
    assert f"There is no interval: {reason}." in found.notes


@pytest.mark.parametrize(
    ("references", "hypotheses", "reason"),
    [
        ({"a": ""}, {"a": "x"}, "found no words in the 1 that have a hypothesis"),
        ({"a": "x"}, {"b": "x"}, "there are 1 transcripts, such as of “a”, and 1 hypotheses, such as of “b”"),
    ],
)
def test_refusal_says_which_words_are_lacking(references, hypotheses, reason):
    with pytest.raises(InputError, match=re.escape(reason)):
        recognition_report(references, hypotheses)


def test_a_rate_has_the_interval_that_the_numbers_of_an_edition_have():
    """Both draw by the names of the speakers, so that no two pages differ."""
    spoken = {f"{speaker}{n}": " ".join("ABCDEFG"[: n + 3]) for n in range(5) for speaker in "abcdefgh"}
    heard = {name: " ".join("ABCDEFGH"["aceg".count(name[0]) : int(name[1]) + 3]) for name in spoken}
    owners = {name: name[0] for name in spoken}
    found = recognition_report(spoken, heard, speakers=owners)
    nobody = SystemResults("", "", (), (), (), (), ())
    work = Work(Path(), nobody, Sources(None, None), ignore_progress, ignore_progress)
    counted = [one.errors.counts for one in found.utterances]
    names = [one.speaker for one in found.utterances]
    ratio = bootstrap_ratio(
        [one.errors for one in counted], [one.reference_words for one in counted], names, work.draws(names)
    )
    assert found.overall.interval == ratio.find_interval()
    assert found.overall.interval.lower < found.overall.interval.estimate < found.overall.interval.upper < 1
    other = recognition_report(spoken, heard, speakers=owners, random=np.random.default_rng(1))
    assert found.overall.interval != other.overall.interval


def test_utterances_on_one_side_only_are_named_and_left_out():
    found = report({"a1": "one two", "z9": "nothing", "c1": "six"})
    assert found.without_hypothesis == ("a2", "b1")
    assert found.without_reference == ("z9",)
    assert found.overall.counts == WordErrorCounts(5, 0, 2, 0)
    assert found.overall.honest_error_rate == 5 / 8
    assert [one.utterance for one in found.utterances] == ["a1", "c1"]
    assert sum("such as a2" in note or "that of z9" in note for note in found.notes) == 2


def test_originals_stand_beside_over_the_utterances_that_have_both():
    found = report(originals={"a1": "one", "c1": "six seven eight", "z9": "x"})
    overall = found.overall
    assert overall.original == WordErrorCounts(5, 0, 1, 0)
    assert overall.difference.estimate == pytest.approx(0 / 5 - 1 / 5)
    assert overall.difference.lower <= overall.difference.estimate <= overall.difference.upper
    assert [one.original is None for one in found.utterances] == [False, True, True, False]
    assert any("2 of 4 utterances have no hypothesis of the original" in note for note in found.notes)


def test_a_recogniser_that_goes_on_and_on_is_named_and_clipped():
    found = report(HYPOTHESES | {"b1": "thank you " * 40})
    assert [one.utterance for one in found.utterances if one.is_runaway] == ["b1"]
    assert found.overall.counts.errors == 81
    assert found.overall.clipped_error_rate == 2 / 8
    assert any("such as b1, the recogniser repeats" in note for note in found.notes)


@pytest.mark.parametrize(
    ("said", "heard", "runaway"),
    [
        ("NO", "no no no no no no no no", True),
        ("NO NO NO NO NO NO NO NO NO", "no no no no no no no no", False),
        ("A", "he said so he said so he said so she", False),
    ],
)
def test_only_what_nobody_said_four_times_is_a_loop(said, heard, runaway):
    found = recognition_report({"u": said}, {"u": heard}, random=np.random.default_rng(0))
    assert found.utterances[0].is_runaway is runaway
