from dataclasses import fields, replace

import numpy as np
import pytest

from listening.analysis.reading.inputs import sort_rows
from tests.listening.analysis.made_ratings import made_inputs
from tests.listening.analysis.made_up_boards import made_up_placements
from tests.listening.analysis.test_transcription import made_up_transcripts


def rows_of(part):
    return list(zip(*(map(str, getattr(part, one.name).tolist()) for one in fields(part)), strict=True))


@pytest.mark.parametrize("name", ["ratings", "placements", "transcripts", "objective"])
def test_whatever_the_order_was_it_is_one_and_no_row_is_lost(name):
    inputs = replace(made_inputs(), placements=made_up_placements(), transcripts=made_up_transcripts())
    numbers = np.random.default_rng(1)
    part = getattr(inputs, name)
    shuffled = replace(inputs, **{name: part.rows(numbers.permutation(len(part)))})
    first, second = (getattr(sort_rows(one), name) for one in (inputs, shuffled))
    assert rows_of(first) == rows_of(second)
    assert sorted(rows_of(first)) == sorted(rows_of(part))
    assert rows_of(getattr(shuffled, name)) != rows_of(first)


def test_answers_of_a_session_stay_in_the_order_of_asking():
    ratings = sort_rows(made_inputs()).ratings
    for session in np.unique(ratings.session):
        assert (np.diff(ratings.position[ratings.session == session]) >= 0).all()


def test_what_is_absent_stays_absent():
    inputs = replace(made_inputs(), objective=None)
    assert (sort_rows(inputs).objective, sort_rows(inputs).transcripts) == (None, None)
