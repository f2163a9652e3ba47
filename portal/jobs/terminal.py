"""Jobs on the terminal: a line that tells how far each is, and the whole report of what went wrong."""

from __future__ import annotations

from pathlib import Path

from django.urls import reverse

from common.problems import EXAMPLES_PER_CAUSE, Problem
from common.terminal import ProgressBar, format_problems
from portal.core.clock import read_clock
from portal.core.downloads import problem_response
from portal.jobs.models import Job, JobState
from portal.jobs.rules import remaining_time


def progress_line(job: Job) -> str:
    """Such as ``B2 on demo_trials_f: Anonymising 12 of 48 (25 %), about 20 s left``."""
    line = f"{job.title}: {job.get_state_display()}"
    if job.state == JobState.RUNNING and job.stage:
        line = f"{job.title}: {job.stage}"
        if job.total:
            line += f" {job.done} of {job.total} ({job.percent} %)"
        remaining = remaining_time(job, read_clock())
        if remaining is not None:
            line += f", about {remaining.total_seconds():.0f} s left"
    return line


def show_job(bar: ProgressBar, job: Job) -> None:
    """Show the stage of a job, or how it ended."""
    is_staged = job.state == JobState.RUNNING and job.stage
    bar.show(f"{job.title}: {job.stage if is_staged else job.get_state_display()}", job.done, job.total)


def failure_report(job: Job) -> str:
    """Return why a job failed, who must act, what to do, and its problems by cause."""
    return "\n".join(filter(None, [job.failure, job.failure_remedy, *report_lines(job)]))


def report_lines(job: Job, file: Path | None = None) -> list[str]:
    """List the job's problems by cause, and where the whole report is.

    Args:
        file: where `write_report` wrote it.
    """
    page = f"{reverse('jobs:problems-csv', args=[job.pk])} on the portal, or a file with --report FILE,"
    problems = (Problem(**problem) for problem in job.problems)
    lines = list(format_problems(problems, whole=str(file or page), per_kind=EXAMPLES_PER_CAUSE))
    return [*lines, f"The whole report is in {file}."] if file else lines


def write_report(job: Job, file: Path) -> None:
    """Write every problem of the job as CSV, the same as its page gives.

    Raises:
        OSError: the file cannot be written.
    """
    file.write_bytes(problem_response(file.name, job.problems).content)
