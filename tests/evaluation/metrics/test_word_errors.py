"""Word errors: Kaldi's counts, its tie rule fuzzed against the plain algorithm, missing hypotheses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from evaluation.metrics.word_errors import (
    AlignedWord,
    WordErrorCounts,
    align_words,
    count_word_errors,
    normalise_transcript,
    pool_word_errors,
    split_words,
)
from tests.official import load_json


def counts_of(reference: str, hypothesis: str) -> WordErrorCounts:
    return count_word_errors({"u": reference}, {"u": hypothesis}).present


def test_word_errors_equal_kaldi_in_every_stored_case():
    cases = load_json("word_errors.json")["cases"]
    assert len(cases) == 60
    for case in cases:
        expected = WordErrorCounts(case["ref_words"], case["ins"], case["del"], case["sub"])
        assert counts_of(case["ref"], case["hyp"]) == expected, case
        assert expected.errors == case["errors"]


few_words = st.lists(st.sampled_from("ABCDE"), max_size=14)


@given(few_words, few_words)
def test_alignment_holds_both_texts_in_order(reference, hypothesis):
    alignment = align_words(reference, hypothesis)
    assert [word.reference for word in alignment if word.reference is not None] == reference
    assert [word.hypothesis for word in alignment if word.hypothesis is not None] == hypothesis


@pytest.mark.parametrize(
    ("reference", "hypothesis", "steps"),
    [
        ("A B", "B A", [("A", None), ("B", "B"), (None, "A")]),
        ("A B", "C A", [(None, "C"), ("A", "A"), ("B", None)]),
        ("C A", "A B", [("C", None), ("A", "A"), (None, "B")]),
        ("THE CAT SAT", "THE HAT SAT", [("THE", "THE"), ("CAT", "HAT"), ("SAT", "SAT")]),
        ("", "NOISE", [(None, "NOISE")]),
        ("", "", []),
    ],
)
def test_alignment_follows_the_tie_rule(reference, hypothesis, steps):
    alignment = align_words(reference.split(), hypothesis.split())
    assert alignment == tuple(AlignedWord(*step) for step in steps)
    assert sum(not word.is_correct for word in alignment) == counts_of(reference, hypothesis).errors


def test_word_errors_of_a_long_text_stay_exact():
    words = [f"W{i % 700}" for i in range(4000)]
    heard = [word for i, word in enumerate(words) if i % 50]
    assert counts_of(" ".join(words), " ".join(heard)) == WordErrorCounts(4000, 0, 80, 0)


def test_missing_hypotheses_are_left_out_and_counted_as_deleted_side_by_side():
    errors = count_word_errors(
        {"a": "THE CAT SAT", "b": "TWO WORDS", "c": "ONE"}, {"a": "THE HAT SAT", "c": "", "x": "EXTRA"}
    )
    assert errors.present == WordErrorCounts(4, 0, 1, 1)
    assert errors.honest == WordErrorCounts(6, 0, 3, 1)
    assert (errors.missing, errors.unexpected) == (("b",), ("x",))
    assert (errors.present.error_rate, errors.honest.error_rate) == (0.5, pytest.approx(4 / 6))


def test_word_errors_without_a_reference_word_have_no_rate():
    errors = count_word_errors({"a": ""}, {"a": "NOISE"})
    assert errors.present == WordErrorCounts(0, 1, 0, 0)
    assert errors.present.error_rate is None


def test_word_errors_need_a_reference():
    with pytest.raises(InputError, match="at least one reference"):
        count_word_errors({}, {"a": "ONE"})


def test_pooled_word_errors_are_the_sum_of_the_utterances():
    errors = count_word_errors({"a": "ONE TWO", "b": "THREE"}, {"a": "ONE", "b": "THREE FOUR"})
    assert pool_word_errors(utterance.counts for utterance in errors.utterances) == WordErrorCounts(3, 1, 1, 0)
    assert [utterance.has_errors for utterance in errors.utterances] == [True, True]


def test_transcripts_are_normalised_as_the_challenge_does():
    assert normalise_transcript("  Well, isn't it?  Yes!No. ") == "WELL ISN'T IT YES NO"
    assert normalise_transcript("semi-colon; stays") == "SEMI-COLON; STAYS"


def test_words_are_split_as_kaldi_splits_them():
    assert split_words(" A\tB  C\n") == ["A", "B", "C"]
    assert split_words("A\u00a0B") == ["A\u00a0B"]
    assert split_words(" ") == []
