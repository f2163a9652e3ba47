"""Jobs on the terminal: a line for progress, a report for failure."""

import pytest

from portal.jobs.models import Job, JobState
from portal.jobs.terminal import failure_report
from tests.portal.factories import make_problem

pytestmark = pytest.mark.django_db  # which has the clock


def running(**fields):
    known = {"title": "B2 on trials", "state": JobState.RUNNING, "stage": "Anonymising", "done": 12, "total": 48}
    return Job(**known | fields)


def test_report_tells_what_failed_what_to_do_and_each_problem_by_cause():
    problems = [make_problem(file=f"{number}.wav") for number in range(7)]
    silent = {"file": "lists/text", "line": 3, "expected": "text", "found": "nothing", "remedy": "Add it."}
    problems.append(make_problem("no-text", "warning", **silent))
    job = Job(failure="Not imported.", failure_remedy="Fix it.", problems=problems)
    assert failure_report(job).splitlines() == [
        "Not imported.",
        "Fix it.",
        "error: wrong rate (7)",
        *[f"  {number}.wav: expected 16000 Hz, found 44100 Hz. Convert the corpus." for number in range(5)],
        f"  … and 2 more; /jobs/{job.pk}/problems.csv on the portal, or a file with --report FILE, lists all.",
        "warning: no text",
        "  lists/text, line 3: expected text, found nothing. Add it.",
    ]
