"""A report groups by cause, counts what it leaves out, and loses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from evaluation.formats.problem_list import EXAMPLES_PER_CAUSE, ProblemList
from evaluation.formats.problems import Problem


def fault(code="wrong", file="a/text", line=1):
    return Problem(code, file, "this", "that", "Change it.", line=line)


def report(*problems):
    collected = ProblemList()
    for problem in problems:
        collected.add(problem)
    return collected.report()


def test_causes_are_kept_apart_by_code_and_top_folder():
    problems = [fault(), fault(code="other"), fault(file="b/text")]
    assert report(*problems) == tuple(problems)


def test_the_same_problem_twice_is_one():
    assert report(*[fault()] * 9) == (fault(),)


def test_what_exceeds_the_examples_is_counted():
    *examples, rest = report(*(fault(line=line) for line in range(1, 9)))
    assert [example.line for example in examples] == [1, 2, 3, 4, 5]
    assert rest.sentence() == "a/text: expected no further fault of this kind, found 3 more. Change it."


def test_a_count_over_several_files_names_their_folder():
    assert report(*(fault(file=f"a/{line}") for line in range(6)))[-1].file == "a"


def test_a_finished_report_is_kept_whole():
    collected = ProblemList()
    collected.keep(fault(line=line) for line in range(20))
    assert len(collected.report()) == 20


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 40)), max_size=60))
def test_every_different_problem_is_shown_or_counted(faults):
    shown = report(*(fault(code=code, line=line) for code, line in faults))
    counted = sum(int(each.found.removesuffix(" more")) for each in shown if each.line is None)
    assert len([each for each in shown if each.line]) + counted == len(set(faults))
    assert len(shown) <= 3 * (EXAMPLES_PER_CAUSE + 1)
