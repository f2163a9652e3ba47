"""Files of targets: what is written is read again, and every problem is told at once."""

import csv
import io

import pytest

from anonymization.methods.contract import MethodError
from anonymization.methods.voices.files import read_targets, write_targets_csv


def read(text):
    return read_targets(io.StringIO(text), "targets.csv")


def codes(file):
    return [(problem.code, problem.line) for problem in file.problems]


@pytest.mark.parametrize(
    "rows",
    [
        (("", "1-a", "t1"), ("", "1-b", "t2")),
        (("dev", "a", "t1"), ("test", "a", "t2")),
        (("", "=1+1", "'t"), ("", "a,b", 'say "t"'), ("", "ä-1", "目标")),
    ],
)
def test_rows_come_back_as_they_were_written(rows):
    text = write_targets_csv(rows)
    assert (read(text).rows, read(text).problems) == (rows, ())
    assert not [cell for line in csv.reader(io.StringIO(text)) for cell in line if cell.startswith("=")]


def test_other_columns_order_and_blank_lines_do_no_harm():
    file = read("target,speaker,utterance\n\nt1,s,a\nt2,s,b\n")
    assert file.targets_in("any") == {"a": "t1", "b": "t2"}
    assert file.require() is file


def test_every_problem_is_told_at_once():
    file = read("utterance,target\na,t1\nb\n,t2\nc,\na,t3\nd,t4\n")
    assert codes(file) == [("malformed-line", 3), ("malformed-line", 4), ("malformed-line", 5), ("contradiction", 6)]
    assert file.targets_in("x") == {"a": "t1", "d": "t4"}
    with pytest.raises(MethodError) as refused:
        file.require()
    assert "targets.csv, line 6" in str(refused.value)
    assert "line 3" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty-file"),
        ("utterance,target\n", "empty-file"),
        ("name,target\na,t\n", "wrong-heading"),
        ("utterance,target,target\na,t,t\n", "wrong-heading"),
        ('utterance,target\n"a,t\n', "malformed-line"),
    ],
)
def test_files_that_say_nothing_are_named(text, code):
    assert code in [problem.code for problem in read(text).problems]


def test_check_tells_what_is_missing_and_what_is_not_in_the_set():
    file = read("data_set,utterance,target\ndev,a,t1\ndev,zz,t2\n")
    found = file.check(["a", "b", "c"], "dev")
    assert [problem.code for problem in found] == ["no-target", "unknown-utterance"]
    assert "2 of 3 without one: b, c" in found[0].sentence()
    assert "zz" in found[1].sentence()
    assert not read("utterance,target\na,t1\nb,t2\n").check(["a"], "dev")
