"""A report groups by cause, counts what it leaves out, and loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from common.problems import ROWS_PER_CAUSE, Problem, ProblemList, Severity


def make_problem(code="wrong", file="a/text", line=1, severity=Severity.ERROR):
    return Problem(code, file, "this", "that", "Change it.", severity, line)


def report(*problems, rows=ROWS_PER_CAUSE):
    collected = ProblemList(rows)
    collected.keep(problems)
    return collected.report()


def test_problems_come_back_by_cause():
    problems = [make_problem(), make_problem(code="other"), make_problem(file="b/text")]
    assert report(*problems) == (problems[0], problems[2], problems[1])


def test_what_exceeds_the_rows_is_counted():
    *examples, rest = report(*(make_problem(line=line) for line in range(1, 9)), rows=5)
    assert [example.line for example in examples] == [1, 2, 3, 4, 5]
    assert rest.sentence() == "a/text: expected no further problem of this kind, found 3 more. Change it."
    assert rest.count == 3


def test_an_error_is_never_counted_among_warnings():
    warnings = [make_problem(line=line, severity=Severity.WARNING) for line in range(9)]
    assert report(*warnings, make_problem(line=99), rows=5)[-1] == make_problem(line=99)


def test_a_count_over_several_files_names_their_folder():
    assert report(*(make_problem(file=f"a/{line}") for line in range(9)), rows=5)[-1].file == "a"
    assert report(*(make_problem(file=f"{line}.wav") for line in range(9)), rows=5)[-1].file == "."


def test_a_count_of_another_report_is_added():
    first = report(*(make_problem(line=line) for line in range(20)), rows=5)
    *rows, rest = report(*first, *(make_problem(line=line) for line in range(20, 40)), rows=10)
    assert ([row.line for row in rows], rest.count) == ([*range(5), *range(20, 25)], 30)
    assert report(*first) == first


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 40)), max_size=60))
def test_every_different_problem_is_shown_or_counted(problems):
    shown = report(*(make_problem(code=code, line=line) for code, line in problems), rows=5)
    assert sum(each.count for each in shown) == len(set(problems))
    assert len(shown) <= 3 * 6
