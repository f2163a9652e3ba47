"""Jobs on the terminal: a line that tells how far each is, and the whole report of what went wrong."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from django.urls import reverse

from common.problems import EXAMPLES_PER_CAUSE, ROWS_PER_CAUSE, Problem, Severity
from common.terminal import ProgressBar
from portal.core.clock import read_clock
from portal.core.downloads import problem_response
from portal.jobs.models import Job, JobState
from portal.jobs.rules import remaining_time

_MORE = "more of this kind"


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
    """Why a job failed, who must act, what to do, and its problems by cause."""
    lines = [job.failure, job.failure_remedy, *problem_lines(job.problems)]
    return "\n".join(line for line in lines if line)


def report_lines(job: Job, file: Path | None = None) -> list[str]:
    """The job's problems as `problem_lines`, and where the whole report is if these are not all of it.

    Args:
        file: where `write_report` wrote it.
    """
    lines = problem_lines(job.problems)
    address = reverse("jobs:problems-csv", args=[job.pk])
    if file is not None:
        is_cut = any(problem.get("count", 1) > 1 for problem in job.problems)
        rest = (
            f", the first {ROWS_PER_CAUSE:,} problems of each kind by name and the others by number" if is_cut else ""
        )
        lines.append(f"The whole report is in {file}{rest}.")
    elif any(line.endswith(_MORE) for line in lines):
        lines.append(f"The whole report is on the portal at {address}, or in a file with --report FILE.")
    return lines


def write_report(job: Job, file: Path) -> None:
    """Write every problem of the job as CSV, the same as its page gives.

    Raises:
        OSError: the file cannot be written.
    """
    file.write_bytes(problem_response(file.name, job.problems).content)


def problem_lines(problems: list[dict[str, Any]]) -> list[str]:
    """Problems grouped by severity and cause, the first few of each in full."""
    by_kind: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        by_kind[problem["severity"], problem["code"]].append(Problem(**problem))
    order = list(map(str, Severity))
    lines = []
    for (severity, code), members in sorted(by_kind.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        count = sum(problem.count for problem in members)
        shown = [problem for problem in members if problem.count == 1][:EXAMPLES_PER_CAUSE]
        lines += [f"{severity}: {code} ({count:,})", *(f"  {problem.sentence()}" for problem in shown)]
        if count > len(shown):
            lines.append(f"  and {count - len(shown):,} {_MORE}")
    return lines
