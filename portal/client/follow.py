"""Waits until the portal has checked a submission, and says what it found, as ``vp verify`` does."""

from __future__ import annotations

import time
from typing import Any

from evaluation.commands.terminal import FINE, PROBLEMS, CommandError, warn
from portal.client.api import Portal, Unreachable

NOT_CHECKED = {"received", "checking"}
LONGEST_PAUSE_S = 10.0


def follow(portal: Portal, number: int) -> int:
    """Wait for the report of a submission and say it; the exit code.

    Raises:
        CommandError: the check itself failed.
    """
    submission = wait_for_report(portal, number)
    if submission["state"] in NOT_CHECKED:
        raise CommandError(failed_check(submission))
    say_checked(portal, submission)
    return PROBLEMS if submission["state"] in {"refused", "failed"} else FINE


def wait_for_report(portal: Portal, number: int) -> dict[str, Any]:
    """The submission once its check is over, however it ended."""
    pause_s, said = 1.0, ""
    while True:
        try:
            submission: dict[str, Any] = portal.get(f"submissions/{number}/")
        except Unreachable as fault:
            warn(str(fault))
            time.sleep(LONGEST_PAUSE_S)
            continue
        if submission["state"] not in NOT_CHECKED or not submission["is_under_way"]:
            return submission
        if (stage := stage_of(submission)) != said:
            warn(stage)
            said = stage
        time.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, 1.3 * pause_s)


def stage_of(submission: dict[str, Any]) -> str:
    """How far the work on a submission is, in a line."""
    running = next((job for job in submission["jobs"] if job["state"] == "running"), None)
    if running is None:
        return "It waits for its turn."
    done = f" {10 * (10 * running['done'] // running['total'])} %" if running["total"] else ""
    return f"{running['stage'] or running['title']}{done}"


def failed_check(submission: dict[str, Any]) -> str:
    """Why there is no report."""
    failed = next((job for job in submission["jobs"] if job["failure"]), None)
    if failed is None:
        return "The check was stopped; ask the organizer to let it go on."
    return f"The check failed: {failed['failure']} {failed['failure_remedy']}".strip()


def say_checked(portal: Portal, submission: dict[str, Any]) -> None:
    """The whole report, grouped, and what it means."""
    from portal.client.verify import say_report
    from portal.submissions.intake.report import IntakeReport

    report = IntakeReport.from_json(portal.text(f"submissions/{submission['id']}/report", "application/json"))
    say_report(report, conclusion=conclusion_of(submission))


def conclusion_of(submission: dict[str, Any]) -> str:
    """The outcome in a sentence or two."""
    name = f"{submission['label']} version {submission['version']}"
    if submission["state"] == "refused":
        system = submission["label"]
        return (
            f"{name} was refused and does not count. Mend the errors and upload again with --system {system}; what was "
            "sound is kept, so that the archive may hold only what changed."
        )
    if submission["state"] in {"accepted", "evaluating"}:
        return f"{name} was accepted and is being evaluated: vp status {submission['id']}."
    return f"{name} is {submission['state']}: vp results {submission['label']}."
