"""A report by data set and cause, as JSON, as CSV."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from common.problems import Problem, ProblemList, Severity
from portal.intake.report import TITLES, Counts, IntakeReport, sort_findings


def problem(number, code="empty", severity=Severity.ERROR, count=1):
    return Problem(code, f"u{number}.wav", "speech", "nothing", f"Fix {code}.", severity, count=count)


def report_of(*findings):
    return IntakeReport(
        "T1.zip", "autumn", tuple(found.within(name) for name, found in findings), Counts(files=3), ("u1",)
    )


@pytest.fixture
def mixed():
    return report_of(
        ("", problem(0, "extra", Severity.WARNING)),
        ("dev", problem(1, "longer", Severity.WARNING)),
        *(("dev", problem(number)) for number in range(2, 9)),
        ("test", problem(9, "missing-data-set", count=40)),
        ("test", problem(10, "another-encoding", Severity.NOTE)),
    )


def test_summary_names_each_cause_of_each_data_set_once_the_gravest_first(mixed):
    rows = [(row["data_set"], row["severity"], row["code"], row["count"]) for row in mixed.summary()]
    assert rows == [
        ("", "warning", "extra", 1),
        ("dev", "error", "empty", 7),
        ("dev", "warning", "longer", 1),
        ("test", "error", "missing-data-set", 40),
        ("test", "note", "another-encoding", 1),
    ]


def test_summary_gives_five_examples_a_title_and_the_remedy_once(mixed):
    [cause] = [row for row in mixed.summary() if row["code"] == "empty"]
    assert cause["examples"] == [f"u{number}.wav: expected speech, found nothing." for number in range(2, 7)]
    assert (cause["title"], cause["remedy"]) == ("Empty", "Fix empty.")
    assert json.loads(json.dumps(mixed.summary())) == mixed.summary()


def test_counts_include_what_is_only_counted(mixed):
    assert [mixed.count(severity) for severity in Severity] == [47, 2, 1]
    assert mixed.has_errors
    assert not report_of(("dev", problem(1, "longer", Severity.WARNING))).has_errors


def test_report_survives_json(mixed):
    assert IntakeReport.from_json(mixed.to_json()) == mixed
    content = json.loads(mixed.to_json())
    assert (content["errors"], content["warnings"], content["notes"]) == (47, 2, 1)
    assert content["summary"] == mixed.summary()


def test_list_is_bounded_for_each_data_set_and_cause():
    found = ProblemList(rows_per_cause=3)
    for number in range(10):
        found.add(problem(number, "longer").within("test"))
        found.add(problem(number).within("dev"))
    found.add(problem(0, "extra"))
    findings = sort_findings(found.report(), ["dev", "test"])
    assert [one.data_set for one in findings] == ["", *["dev"] * 4, *["test"] * 4]
    assert sum(one.count for one in findings) == 21


def test_every_problem_with_a_title_is_explained_to_teams():
    page = (Path(__file__).resolve().parents[3] / "docs" / "teams.md").read_text()
    explained = {
        code for line in page.splitlines() if line.startswith("| `") for code in re.findall(r"`([a-z-]+)`", line)
    }
    assert set(TITLES) <= explained
