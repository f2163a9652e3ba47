"""Kaldi scores: what is read, how it joins its trials, and every problem with file and line."""

from __future__ import annotations

import io
import statistics
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.problems import Severity
from evaluation.formats import scores as module
from evaluation.formats.scores import join_scores, list_score_problems, read_scores, read_trial_table, write_scores
from evaluation.objective_results.recomputation import join_files, measure_scores
from tests.librispeech import name_test

TRIALS = """\
a a-1 target
a b-1 nontarget
b a-1 nontarget
b b-1 target
"""
SCORES = """\
a a-1 12.5
a b-1 -3.25
b a-1 -1e-05
b b-1 7
"""


def join(scores: str, trials: str = TRIALS):
    table = read_scores(io.StringIO(scores), "scores")
    return join_scores(table, read_trial_table(io.StringIO(trials), "trials"))


def find_problems(joined):
    return [(problem.code, problem.file, problem.line) for problem in joined.problems]


def test_scores_join_their_trials():
    joined = join(SCORES)
    assert joined.scores.dtype == np.float64
    assert joined.scores.tolist() == [12.5, -3.25, -1e-5, 7]
    assert joined.targets.tolist() == [True, False, False, True]
    assert joined.models.tolist() == [b"a", b"a", b"b", b"b"]
    assert joined.utterances.tolist() == [b"a-1", b"b-1", b"a-1", b"b-1"]
    assert (joined.complete, joined.problems) == (True, ())
    assert joined.target_scores.tolist() == [12.5, 7]
    assert len(joined.nontarget_scores) == 2


@pytest.mark.parametrize(
    "written",
    [SCORES.replace(" ", "\t"), SCORES.replace("\n", " \n"), SCORES.rstrip("\n")],
    ids=["tabs", "space at the end", "no line end"],
)
def test_scores_allow_any_space(written):
    assert join(written).scores.tolist() == join(SCORES).scores.tolist()
    assert join(written).problems == ()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (SCORES.replace("a b-1 -3.25\n", ""), [("missing-score", "trials", 2)]),
        (SCORES + "c a-1 3\n", [("extra-score", "scores", 5)]),
        (SCORES + "a a-1 12.5\n", [("repeated-score", "scores", 5)]),
        (SCORES.replace("-3.25", "nan"), [("not-finite-score", "scores", 2)]),
        (SCORES.replace("-3.25", "3,25"), [("not-finite-score", "scores", 2)]),
        (SCORES.replace("b b-1 7", "b b-1"), [("malformed-line", "scores", 4), ("missing-score", "trials", 4)]),
        (SCORES + "\n", [("blank-line", "scores", 5)]),
        ("", [("empty-file", "scores", None)]),
    ],
)
def test_problem_is_named_with_its_line(scores, expected):
    assert find_problems(join(scores)) == expected


def test_a_file_without_its_trials_is_refused_for_repeated_and_not_finite_scores_alone():
    written = SCORES.replace("-3.25", "nan").replace("-1e-05", "inf") + "a a-1 12.5\n"
    found = list_score_problems(read_scores(io.StringIO(written), "scores"))
    assert [(one.code, one.line) for one in found] == [
        ("repeated-score", 5),
        ("not-finite-score", 2),
        ("not-finite-score", 3),
    ]
    assert list_score_problems(read_scores(io.StringIO(SCORES), "scores")) == ()


def test_all_problems_are_named_at_once():
    scores = SCORES.replace("a b-1 -3.25\n", "a b-1 nan\n").replace("b b-1 7\n", "b c-1 7\nb a-1 2\n")
    joined = join(scores)
    assert find_problems(joined) == [
        ("missing-score", "trials", 4),
        ("extra-score", "scores", 4),
        ("repeated-score", "scores", 5),
        ("not-finite-score", "scores", 2),
    ]
    assert (joined.missing, joined.extra, joined.repeated, joined.not_finite) == (1, 1, 1, 1)
    assert joined.scores.tolist() == [12.5, -1e-5]
    assert not joined.complete


def test_trial_problems_are_named_with_their_line():
    trials = TRIALS.replace("b a-1 nontarget", "b a-1 impostor") + "a a-1 target\n"
    assert find_problems(join(SCORES, trials)) == [
        ("wrong-kind", "trials", 3),
        ("repeated-trial", "trials", 5),
        ("extra-score", "scores", 3),
    ]
    only_targets = TRIALS.replace("nontarget", "target")
    assert find_problems(join(SCORES, only_targets)) == [("one-class", "trials", None)]


def test_each_missing_score_is_named_and_those_beyond_the_bound_are_counted():
    trials = "".join(f"a u{number} {'target' if number % 2 else 'nontarget'}\n" for number in range(10_102))
    joined = join("a u0 1\na u1 2\n", trials)
    assert joined.missing == 10_100
    assert find_problems(joined)[:-1] == [("missing-score", "trials", line) for line in range(3, 10_003)]
    last = joined.problems[-1]
    assert (last.line, last.found, last.count) == (None, "100 more", 100)


TWELVE = "".join(f"m u{i} {'target' if i < 6 else 'nontarget'}\n" for i in range(12))


@pytest.mark.parametrize(
    ("scores", "open_eer"),
    [
        ([0.5] * 12, "equal scores leave the EER anywhere from 0.0 to 100.0 %"),
        ([1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1], "equal scores leave the EER anywhere from 16.7 to 66.7 %"),
        ([1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0], ""),
    ],
    ids=["one score", "decisions", "decisions that are right"],
)
def test_scores_that_leave_the_eer_open_are_an_error(scores, open_eer):
    joined = join("".join(f"m u{i} {score}\n" for i, score in enumerate(scores)), TWELVE)
    assert (joined.complete, joined.open_eer) == (not open_eer, open_eer)
    assert [one.found for one in joined.problems if one.code == "equal-scores"] == ([open_eer] if open_eer else [])


def test_one_score_for_all_targets_is_a_warning():
    trials = "".join(f"m u{i} {'target' if i < 20 else 'nontarget'}\n" for i in range(60))
    scores = "".join(f"m u{i} {2.5 if i < 20 else i / 60}\n" for i in range(60))
    (problem,) = join(scores, trials).problems
    assert (problem.code, problem.severity) == ("few-scores", Severity.WARNING)
    assert problem.found == "1 different for 20 target trials"


def warn_of(targets, nontargets):
    rows = [(value, True) for value in targets] + [(value, False) for value in nontargets]
    joined = join(
        "".join(f"m u{i} {value}\n" for i, (value, _) in enumerate(rows)),
        "".join(f"m u{i} {'target' if target else 'nontarget'}\n" for i, (_, target) in enumerate(rows)),
    )
    return [(one.code, one.severity, one.found) for one in joined.problems]


def test_equal_scores_that_leave_the_eer_open_by_more_than_a_percent_are_warned_of():
    found = "equal scores leave the EER anywhere from 30.0 to 40.0 %"
    assert warn_of([1, *range(10, 19)], [1, *[0] * 5, 2, 3, 4, 5]) == []
    assert warn_of([3, 3, 3, 2, *range(10, 16)], [*range(-6, 0), 3, 20, 21, 22]) == [
        ("few-scores", Severity.WARNING, found)
    ]


def test_one_score_for_all_is_an_error_without_the_trials():
    found = list_score_problems(read_scores(io.StringIO("a a-1 0.5\nb a-1 0.5\n"), "scores"))
    assert [(one.code, one.found) for one in found] == [("equal-scores", "one score, 0.5, for all 2")]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=14))
def test_scores_are_inverted_as_defined(rows):
    """More than half of the targets, by 1.5 standard errors, below the median nontarget; equal ones count half."""
    joined = join(
        "".join(f"m u{i} {value}\n" for i, (value, _) in enumerate(rows)),
        "".join(f"m u{i} {'target' if target else 'nontarget'}\n" for i, (_, target) in enumerate(rows)),
    )
    wanted = [value for value, target in rows if target]
    others = [value for value, target in rows if not target]
    inverted = False
    if wanted and others:
        middle = statistics.median(others)
        below = sum((value < middle) + (value == middle) / 2 for value in wanted) / len(wanted)
        inverted = below - 0.5 > min(0.4, 0.75 / len(wanted) ** 0.5)
    assert joined.inverted == inverted


def test_pairs_with_one_hash_are_still_told_apart(monkeypatch):
    monkeypatch.setattr(module, "_hash", lambda words: np.zeros(len(words), np.uint64))
    turned = "".join(reversed(SCORES.splitlines(keepends=True)))
    assert join(turned).scores.tolist() == [12.5, -3.25, -1e-5, 7]
    assert find_problems(join(turned + "a a-1 3\nx y 3\n")) == [
        ("extra-score", "scores", 6),
        ("repeated-score", "scores", 5),
    ]


def test_written_scores_read_back(tmp_path):
    rows = [("a", "a-1", 12.5), ("a", "b-1", -3.1415927), ("b", "a-1", 1.25e-7), ("b", "b-1", 123456789.0)]
    path = tmp_path / "scores"
    with path.open("w") as file:
        write_scores(rows, file)
    assert path.read_text() == "a a-1 12.5\na b-1 -3.14159\nb a-1 1.25e-07\nb b-1 1.23457e+08\n"
    again = read_scores(path)
    assert again.problems == ()
    assert [f"{score:.6g}" for score in again.scores] == ["12.5", "-3.14159", "1.25e-07", "1.23457e+08"]
    assert again.lines.tolist() == [1, 2, 3, 4]


def test_unreadable_file_is_one_problem_and_not_one_of_each_line(tmp_path):
    (tmp_path / "scores").write_text(SCORES)
    (tmp_path / "trials").write_text(TRIALS)
    joined = join_files(tmp_path / "nowhere", tmp_path / "trials")
    assert find_problems(joined) == [("missing-file", str(tmp_path / "nowhere"), None)]
    assert (joined.missing, len(joined.scores)) == (4, 0)
    joined = join_files(tmp_path / "scores", tmp_path / "nowhere")
    assert find_problems(joined) == [("missing-file", str(tmp_path / "nowhere"), None)]
    assert (joined.extra, len(joined.scores)) == (4, 0)


def test_measuring_names_the_first_problems_of_a_kind_and_counts_the_others(tmp_path):
    (tmp_path / "trials").write_text("".join(f"a a-{n} target\nb a-{n} nontarget\n" for n in range(100)))
    with pytest.raises(InputError) as error:
        measure_scores(tmp_path / "nowhere", tmp_path / "trials")
    assert str(error.value).count("\n") == 0
    (tmp_path / "scores").write_text("a a-0 1\nb a-0 0\n")
    with pytest.raises(InputError) as error:
        measure_scores(tmp_path / "scores", tmp_path / "trials")
    lines = str(error.value).splitlines()
    assert len(lines) == 6
    assert "“a a-1”" in lines[0]
    assert "found 193 more" in lines[-1]


@given(
    st.lists(
        st.tuples(
            st.text("ab-_7é", min_size=1, max_size=12),
            st.text("xyz-_0", min_size=1, max_size=20),
            st.floats(width=32, allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=30,
        unique_by=lambda row: row[:2],
    ),
    st.randoms(),
)
def test_any_table_joins_in_any_order(rows, random):
    file = io.StringIO()
    write_scores(rows, file)
    shuffled = file.getvalue().splitlines(keepends=True)
    random.shuffle(shuffled)
    trials = "".join(f"{model} {utterance} target\n" for model, utterance, _ in rows)
    joined = join("".join(shuffled), trials)
    assert joined.scores.tolist() == [float(f"{np.float32(score):.6g}") for _, _, score in rows]
    assert (joined.missing, joined.extra, joined.repeated, joined.not_finite) == (0, 0, 0, 0)


def test_scores_of_all_official_trials_join_without_a_problem(librispeech):
    trials = read_trial_table(librispeech / "data" / "libri_dev_trials_f" / "trials")
    path = librispeech / "scores" / name_test("ignorant", "f") / "scores"
    table = read_scores(path)
    joined = join_scores(table, trials)
    assert (len(joined.target_scores), len(joined.nontarget_scores)) == (704, 14566)
    assert (joined.missing, joined.extra, joined.repeated, joined.not_finite) == (0, 0, 0, 0)
    assert [problem.code for problem in joined.problems] == ["inverted-scores"]
    order = np.random.default_rng(0).permutation(len(table.pairs))
    lines = path.read_text().splitlines(keepends=True)
    turned = read_scores(io.StringIO("".join(lines[i] for i in order)))
    assert np.array_equal(join_scores(turned, trials).scores, joined.scores)


def test_names_with_accents_are_the_same_in_either_form():
    trials, scores = TRIALS.replace("a", "ä"), SCORES.replace("a", "ä")
    trials, nfd = (text.replace("tärget", "target") for text in (trials, unicodedata.normalize("NFD", scores)))
    assert nfd != scores
    joined = join(nfd, trials)
    assert (joined.missing, joined.extra, joined.complete) == (0, 0, True)
    assert joined.scores.tolist() == join(SCORES).scores.tolist()
