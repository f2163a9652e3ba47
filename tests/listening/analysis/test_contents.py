"""What holds for every table of every analysis, whatever is in it."""

import csv
import io
import json
import math
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest

from listening.analysis.analyse import analyse
from listening.analysis.reading.inputs import BRIDGE, Inputs, ObjectiveRows, Settings, StudyFacts
from listening.analysis.tables import BY_SCORES, COMMON, CONTENTS, Results
from tests.listening.analysis.made_answers import all_kinds
from tests.listening.analysis.made_ratings import made_inputs
from tests.listening.analysis.made_up_boards import made_up_placements
from tests.listening.analysis.test_transcription import made_up_transcripts

SETTINGS = Settings(resamples=200, permutations=200)
FORMS = ("rating", "linkability", "transcription", "answers")
OF_FORM = {
    "rating": {content.name for content in (*BY_SCORES, *COMMON)}
    - {"pair_detection", "pair_det", "grouping", "map", "map_fit", "transcription", "transcripts"}
    - {"estimates", "confusion", "answers_effect"},
    "linkability": {"pair_detection", "pair_det", "grouping", "map", "map_fit"},
    "transcription": {"transcription", "transcripts"},
    "answers": {"estimates", "confusion", "screening", "answers_effect"},
}
# Shares that are differences, or errors per word, which can be more than the words.
SIGNED = {("eer_differences", "difference")}
UNBOUNDED = {("transcription", name) for name in ("wer", "insertions", "recogniser_wer")}
WITHIN = {
    "pearson": (-1, 1), "spearman": (-1, 1), "correlation": (-1, 1), "rank_biserial": (-1, 1), "cliffs_delta": (-1, 1),
    "common_language": (0, 1), "auc": (0, 1), "p": (0, 1), "adjusted": (0, 1), "wilcoxon_p": (0, 1),
    "wilcoxon_adjusted": (0, 1), "permutation_p": (0, 1), "permutation_adjusted": (0, 1), "stress": (0, 1),
    "one_minus_wer": (-math.inf, 1), "pitch_correlation": (-1, 1),
}  # fmt: skip


def rated_inputs():
    """With a bridge set, repeats, one listener left out by a rule, one that answers alike, one that did not finish."""
    inputs = made_inputs()
    ratings = inputs.ratings
    bridge = ratings.rows((ratings.utterance == "u1") & (ratings.listener == "l00"))
    listeners = np.unique(ratings.listener)
    numbers = np.random.default_rng(4)
    shown = bridge.rows(np.repeat(np.arange(len(bridge)), listeners.size))
    bridges = replace(
        shown,
        listener=np.tile(listeners, len(bridge)),
        session=np.char.replace(np.tile(listeners, len(bridge)), "l", "s"),
        purpose=np.full(len(shown), BRIDGE),
        position=100 + np.repeat(np.arange(len(bridge)), listeners.size),
        rating=np.clip(shown.rating + numbers.integers(-2, 3, len(shown)), 1, 10),
    )
    first = np.arange(8)
    again = replace(ratings.rows(first), position=200 + first, rating=np.clip(ratings.rating[first] + 1, 1, 10))
    added = [ratings, bridges, again]
    for name, change in (
        ("left-out", lambda one: {"excluded": np.full(len(one), "too fast")}),
        ("alike", lambda one: {"rating": np.full(len(one), 5.0)}),
        ("unfinished", lambda one: {"is_finished": np.zeros(len(one), np.bool_)}),
    ):
        one = ratings.rows((ratings.listener == "l03") & (ratings.position <= (2 if name == "unfinished" else 99)))
        names = {"listener": np.full(len(one), f"m-{name}"), "session": np.full(len(one), f"of-{name}")}
        added.append(replace(one, **names, **change(one)))
    columns = (np.concatenate([getattr(one, field.name) for one in added]) for field in fields(ratings))
    return replace(inputs, ratings=type(ratings)(*columns))


def inputs_of(form):
    if form == "rating":
        return rated_inputs()
    if form == "answers":
        return all_kinds()
    facts = StudyFacts("made", "Made up", form, (), {}, is_simulated=True)
    if form == "linkability":
        return Inputs(facts, placements=made_up_placements(spread=0.15))
    transcripts = made_up_transcripts()
    of = sorted(set(zip(transcripts.system.tolist(), transcripts.utterance.tolist(), strict=True)))
    objective = ObjectiveRows(
        np.array([system for system, _ in of]),
        np.array([name for _, name in of]),
        np.arange(len(of)) % 3.0,
        np.full(len(of), 8.0),
        np.full(len(of), np.nan),
    )
    return Inputs(facts, transcripts=transcripts, objective=objective)


@pytest.fixture(scope="module", params=FORMS)
def form(request):
    return request.param


@pytest.fixture(scope="module")
def results(form):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what a reader must know is a note in the results
        return analyse(inputs_of(form), SETTINGS)


def cells(results):
    """Every number, with its table and column."""
    for path, table in results.tables.items():
        for row in table.rows:
            for name, value in zip(table.columns, row, strict=True):
                if isinstance(value, (int, float)):
                    yield path, table.name, name, value


def changed(inputs, change):
    """The same study with each of its parts changed."""
    parts = {name: getattr(inputs, name) for name in ("ratings", "placements", "transcripts", "answers", "objective")}
    return replace(inputs, **{name: change(part) for name, part in parts.items() if part is not None})


def test_every_table_of_the_form_is_there_with_its_declared_columns(form, results):
    assert {table.name for table in results.tables.values()} == OF_FORM[form]
    by_scores, common = {one.name for one in BY_SCORES}, {one.name for one in COMMON}
    assert set(results.tables) == {
        *(f"{kind}/{name}" for kind in ("raw", "normalised") for name in OF_FORM[form] & by_scores),
        *(f"common/{name}" for name in OF_FORM[form] & common),
    }
    for table in results.tables.values():
        assert table.columns == tuple(column.key for column in CONTENTS[table.name].columns)
        assert table.rows, table.name
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_every_column_is_filled_somewhere(form, results):
    """A column that no study of the form fills would be a promise that nobody keeps."""
    rarely = {"remark", "excluded", "caught", "repeats", "repeat_difference", "repeat_within_one", "is_caught", "limit"}
    for path, table in results.tables.items():
        for place, name in enumerate(table.columns):
            if name not in rarely:
                assert any(row[place] is not None for row in table.rows), f"{path} {name}"


def test_shares_and_bounded_measures_are_within_their_bounds(results):
    share_of = {(one.name, column.key): column.is_share for one in CONTENTS.values() for column in one.columns}
    for path, table, name, value in cells(results):
        base = name.removesuffix("_low").removesuffix("_high")
        low, high = WITHIN.get(base, (-math.inf, math.inf))
        if share_of[table, name]:
            low, high = (-1, 1) if (table, base) in SIGNED else (0, math.inf if (table, base) in UNBOUNDED else 1)
        assert low - 1e-9 <= value <= high + 1e-9, f"{path} {name}"


def test_intervals_are_around_their_value(results):
    seen = 0
    for path, table in results.tables.items():
        for row in table.records():
            for name in table.columns:
                low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
                if row[name] is None or low is None or high is None:
                    continue
                seen += 1
                assert low - 1e-9 <= row[name] <= high + 1e-9, f"{path} {row} {name}"
    assert seen or not results.tables


def test_nothing_is_nan_and_results_survive_being_written(results):
    text = results.as_json()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)
    again = Results.from_json(text)
    assert again.as_json() == text
    for path, table in results.tables.items():
        assert again.tables[path].rows == table.rows
        lines = list(csv.reader(io.StringIO(table.csv())))
        assert tuple(lines[0]) == table.columns
        assert len(lines) == len(table.rows) + 1


def test_order_of_rows_changes_nothing_and_names_of_listeners_in_the_same_order_names_only(form, results):
    """Equal inputs give equal bytes, then, too."""
    numbers = np.random.default_rng(7)

    def rename(part):
        return replace(part, listener=np.char.add("zz-", part.listener)) if hasattr(part, "listener") else part

    inputs = changed(inputs_of(form), lambda part: rename(part.rows(numbers.permutation(len(part)))))
    assert analyse(inputs, SETTINGS).as_json().replace("zz-", "") == results.as_json()
