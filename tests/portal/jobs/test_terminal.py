"""Jobs on the terminal: a line for progress, a report for failure."""

from datetime import timedelta

import pytest
from django.utils import timezone

from common.terminal import ProgressBar
from portal.jobs.models import Job, JobState
from portal.jobs.terminal import (
    failure_report,
    problem_lines,
    progress_line,
    report_lines,
    show_job,
    write_report,
)
from tests.portal.factories import make_problem

pytestmark = pytest.mark.django_db  # which has the clock


def running(**fields):
    known = {"title": "B2 on trials", "state": JobState.RUNNING, "stage": "Anonymising", "done": 12, "total": 48}
    return Job(**known | fields)


def test_line_tells_stage_count_and_estimate():
    job = running(progress_from=0, progress_since=timezone.now() - timedelta(seconds=12))
    assert progress_line(job) == "B2 on trials: Anonymising 12 of 48 (25 %), about 36 s left"


def test_line_without_a_pace_has_no_estimate():
    assert progress_line(running()) == "B2 on trials: Anonymising 12 of 48 (25 %)"
    assert progress_line(Job(title="B2", state=JobState.WAITING)) == "B2: Waiting"


def test_each_stage_and_end_gets_a_line(capsys):
    job = running()
    with ProgressBar(lines="stages") as bar:
        for done in range(12, 48):
            job.done = done
            show_job(bar, job)
        job.stage = "Measuring"
        show_job(bar, job)
        job.state = JobState.SUCCEEDED
        show_job(bar, job)
    assert capsys.readouterr().err.splitlines() == [
        f"B2 on trials: {stage}" for stage in ("Anonymising", "Measuring", "Succeeded")
    ]


def test_report_tells_what_failed_what_to_do_and_each_problem_by_cause():
    problems = [make_problem(file=f"{number}.wav") for number in range(7)]
    silent = {"file": "lists/text", "line": 3, "expected": "text", "found": "nothing", "remedy": "Add it."}
    problems.append(make_problem("no-text", "warning", **silent))
    report = failure_report(Job(failure="Not imported.", failure_remedy="Fix it.", problems=problems))
    assert report.splitlines() == [
        "Not imported.",
        "Fix it.",
        "error: wrong-rate (7)",
        *[f"  {number}.wav: expected 16000 Hz, found 44100 Hz. Convert the corpus." for number in range(5)],
        "  and 2 more of this kind",
        "warning: no-text (1)",
        "  lists/text, line 3: expected text, found nothing. Add it.",
    ]


def test_written_report_has_every_row_and_no_formula(tmp_path):
    problems = [make_problem(file=f"={number}.wav") for number in range(7)]
    write_report(Job(problems=problems), tmp_path / "report.csv")
    head, *rows = (tmp_path / "report.csv").read_text().splitlines()
    assert head == "code,file,expected,found,remedy,severity,line,count"
    assert [row.split(",")[1] for row in rows] == [f"'={number}.wav" for number in range(7)]


def test_complete_list_names_no_further_report():
    assert not any("whole report" in line for line in report_lines(Job(problems=[make_problem()])))


def test_problems_are_listed_errors_first():
    problems = [make_problem("b", "note"), make_problem("a", "warning"), make_problem("z", "error")]
    heads = [line for line in problem_lines(problems) if not line.startswith(" ")]
    assert heads == ["error: z (1)", "warning: a (1)", "note: b (1)"]
