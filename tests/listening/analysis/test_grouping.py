"""Letters: two systems share one exactly if they do not differ significantly, whatever the tests say."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listening.analysis.models import grouping
from listening.analysis.models.grouping import assign_letters, letter


def always(first, second):
    return True


def never(first, second):
    return False


def shares(groups):
    """For each pair of names whether they share a letter."""
    is_spaced = any("aa" in text.split() for text in groups.values())  # beyond z, letters stand apart
    letters = {name: set(text.split() if is_spaced else text) for name, text in groups.items()}
    assert all(letters.values())
    return {pair: bool(letters[pair[0]] & letters[pair[1]]) for pair in itertools.combinations(groups, 2)}


def random_apart(names, share, seed):
    numbers = np.random.default_rng(seed)
    return {pair for pair in itertools.combinations(names, 2) if numbers.random() < share}


def test_letters_of_a_worked_example():
    """Different where means are more than 1 apart: A and C are, A and B and B and C are not."""
    means = {"A": 9.0, "B": 8.2, "C": 7.9, "D": 6.0, "E": 5.9}
    assert assign_letters(list(means), lambda a, b: abs(means[a] - means[b]) > 1) == {
        "A": "a",
        "B": "ab",
        "C": "b",
        "D": "c",
        "E": "c",
    }


def test_nothing_told_apart_is_one_letter_and_everything_told_apart_one_each():
    names = [f"T{number:02}" for number in range(30)]
    assert set(assign_letters(names, never).values()) == {"a"}
    alone = assign_letters(names, always)
    assert list(alone.values()) == [letter(number) for number in range(30)]
    assert (alone["T25"], alone["T26"], alone["T27"]) == ("z", "aa", "ab")


def test_a_name_twice_is_refused():
    with pytest.raises(ValueError, match="found one twice"):
        assign_letters(["T01", "T01"], always)


@given(st.integers(1, 9), st.floats(0, 1), st.integers(0, 10_000))
def test_sharing_a_letter_is_not_being_told_apart(count, share, seed):
    names = [f"T{number}" for number in range(count)]
    apart = random_apart(names, share, seed)
    groups = assign_letters(names, lambda a, b: (a, b) in apart)
    assert list(groups) == names
    assert shares(groups) == {pair: pair not in apart for pair in itertools.combinations(names, 2)}


@given(st.integers(2, 14), st.floats(0, 1), st.integers(0, 10_000))
def test_the_bounded_way_means_the_same(count, share, seed):
    names = [f"T{number}" for number in range(count)]
    apart = random_apart(names, share, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "MOST_COLUMNS", 1)
        groups = assign_letters(names, lambda a, b: (a, b) in apart)
    assert shares(groups) == {pair: pair not in apart for pair in itertools.combinations(names, 2)}
