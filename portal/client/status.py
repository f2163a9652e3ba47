"""``vp status``: one's submissions, or one of them; and how ``vp submit`` follows the check of a new one."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Annotated, Any

from typer import Argument, Option

from common.errors import CommandError, Refused, Unreachable
from common.problems import Severity
from common.terminal import FINE, PROBLEMS, print_json, print_message, print_paragraph, print_table, print_text
from portal.client.api import Portal, Server, open_portal
from portal.intake.report import IntakeReport, describe_kept

NOT_CHECKED = {"received", "checking"}
LONGEST_PAUSE_S = 10.0
SHOWN = 3
BAD = {"refused", "failed"}
WHOSE = "vp status lists your own."
HOW_NAMED = "Name or label of a system, such as vpc2022-t11-p1 or T11-p1"


def follow(portal: Portal, number: int) -> int:
    """Wait for the report of a submission and say it; the exit code.

    Raises:
        CommandError: the check itself failed.
    """
    submission = wait_for_report(portal, number)
    if submission["state"] in NOT_CHECKED:
        raise CommandError(failed_check(submission))
    say_checked(portal, submission)
    return PROBLEMS if submission["state"] in BAD else FINE


def wait_for_report(portal: Portal, number: int) -> dict[str, Any]:
    """The submission once its check is over, however it ended."""
    pause_s, said, reason = 1.0, "", ""
    while True:
        try:
            submission: dict[str, Any] = portal.get(f"submissions/{number}/")
        except Unreachable as error:
            if str(error) != reason:
                reason = str(error)
                print_message(f"{reason} The submission is there; its report follows.")
            time.sleep(LONGEST_PAUSE_S)
            continue
        if submission["state"] not in NOT_CHECKED or not submission["is_under_way"]:
            return submission
        if (stage := describe_stage(submission)) != said:
            print_message(stage)
            said = stage
        time.sleep(pause_s)
        pause_s = min(LONGEST_PAUSE_S, 1.3 * pause_s)


def describe_stage(submission: dict[str, Any]) -> str:
    """Return how far the work on a submission is, in a line."""
    running = next((job for job in submission["jobs"] if job["state"] == "running"), None)
    if running is None:
        return "It is waiting in the queue."
    done = f" {25 * (4 * running['done'] // running['total'])} %" if running["total"] else ""
    return f"{running['stage'] or running['title']}{done}"


def failed_check(submission: dict[str, Any]) -> str:
    """Return why there is no report."""
    failed = next((job for job in submission["jobs"] if job["failure"]), None)
    if failed is None:
        return "The check was stopped; ask the organizer to continue it."
    return f"The check failed: {failed['failure']} {failed['failure_remedy']}".strip()


def say_checked(portal: Portal, submission: dict[str, Any]) -> None:
    """The whole report, grouped, and what it means."""
    report = IntakeReport.from_json(portal.text(f"submissions/{submission['id']}/report", "application/json"))
    say_report(report, conclusion=describe_outcome(submission))


def describe_outcome(submission: dict[str, Any]) -> str:
    """Return the outcome in a sentence or two."""
    name = f"{submission['label']} version {submission['version']}"
    if submission["state"] == "refused":
        is_repeated = any(cause["code"] == "same-archive" for cause in submission["report_summary"])
        kept = "" if is_repeated else f" {describe_kept(submission['data_sets'] or submission['documents'])}"
        return (
            f"{name} was refused and does not count. Fix the errors and upload again with "
            f"--system {submission['label']}.{kept}"
        )
    if submission["state"] in {"accepted", "evaluating"}:
        return f"{name} was accepted and is being evaluated: vp status {submission['id']}."
    return f"{name} is {submission['state']}: vp results {submission['label']}."


def show_status(
    submission: Annotated[
        str | None,
        Argument(metavar="SUBMISSION", help=f"{HOW_NAMED}, for its newest version; or number of a submission."),
    ] = None,
    edition: Annotated[str | None, Option(metavar="NAME", help="Only submissions to this edition.")] = None,
    as_json: Annotated[bool, Option("--json", help="Everything, as JSON.")] = False,
    server: Server = None,
) -> int:
    """Show your submissions, the newest first, or one of them: timeline, problems and progress.

    The exit code is 1 where the one that was named was refused or could not be evaluated.

        vp status
        vp status T11-p1
    """
    with open_portal(server) as portal:
        if submission is not None:
            named = find_submission(portal, submission)
            (print_json if as_json else _say_all)(named)
            return PROBLEMS if named["state"] in BAD else FINE
        search = {"edition": edition} if edition else {}
        found = list(portal.every("submissions/", **search))
    if as_json:
        print_json(found)
    elif not found:
        print_text("Nothing was submitted yet.")
    else:
        head = ("number", "edition", "system", "version", "state", "errors", "arrived")
        print_table(head, [_row(one) for one in found])
    return FINE


def find_submission(portal: Portal, wanted: str) -> dict[str, Any]:
    """Return a submission by its number, or the newest of the system with this name or label.

    Raises:
        CommandError: there is none that this person may see.
    """
    number = wanted
    if not wanted.isdecimal():
        names = ((one["id"], {one["system"], one["label"].casefold()}) for one in portal.every("submissions/"))
        number = next((pk for pk, names_of in names if wanted.casefold() in names_of), "")
    try:
        if number:
            submission: dict[str, Any] = portal.get(f"submissions/{number}/")
            return submission
    except Refused as error:
        if error.status != 404:
            raise
    raise CommandError(f"{wanted}: there is no such submission, or none that you may see. {WHOSE}")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    state = f"{one['state']}, late" if one["is_late"] else one["state"]
    which = (str(one["id"]), one["edition"] or "–", one["label"], str(one["version"]))
    errors = "–" if one["state"] in NOT_CHECKED else str(one["errors"])
    return (*which, state, errors, moment(one["created_at"]))


def _say_all(submission: dict[str, Any]) -> None:
    late = ", late" if submission["is_late"] else ""
    print_text(
        f"{submission['label']} version {submission['version']}, {submission['edition']}: {submission['state']}{late}"
    )
    for step in submission["timeline"]:
        print_paragraph(
            f"{moment(step['at'])}  {step['state']}{': ' if step['note'] else ''}{step['note']}", indent="  "
        )
    for job in submission["jobs"]:
        if job["failure"]:
            print_paragraph(f"{job['title']}: {job['failure']} {job['failure_remedy']}", indent="  ")
    if submission["is_under_way"]:
        print_text(f"\n{describe_stage(submission)}")
    for cause in submission["report_summary"]:
        place = f" in {cause['data_set']}" if cause["data_set"] else ""
        print_text(f"  {cause['severity']}: {cause['title']} ({cause['count']:,}){place}")
    for one in submission["data_sets"]:
        print_text(f"  {one['name']}: {one['files']:,} recordings, {one['inherited']:,} of them inherited")


def moment(text: str) -> str:
    """Return a time of the portal as a person reads it, in UTC."""
    return f"{text[:10]} {text[11:16]}"


def say_report(report: IntakeReport, *, conclusion: str = "") -> None:
    """The report on standard output, by data set and cause, with the first sentences of each; equal notes are one.

    Args:
        conclusion: what has become of the archive; without it what would.
    """
    counts = report.counts
    print_text(f"{report.archive} for {report.edition}")
    with_errors = f" ({len(report.faulty):,} came with an error)" if report.faulty else ""
    inherited = f", {counts.inherited_documents:,} inherited" if counts.inherited_documents else ""
    print_text(
        f"{counts.files:,} file{'' if counts.files == 1 else 's'}: "
        f"{counts.received:,} of {counts.expected:,} utterances in data sets{with_errors}, "
        f"{counts.documents:,} document{'' if counts.documents == 1 else 's'}{inherited}"
    )
    if counts.inherited:
        print_text(f"{counts.inherited:,} of the utterances in data sets are inherited from earlier versions.")
    summary = report.summary()
    graver = (cause for cause in summary if cause["severity"] != Severity.NOTE)
    for data_set, causes in groupby(graver, key=lambda cause: cause["data_set"]):
        print_text(f"\n{data_set or 'Whole submission'}")
        for cause in causes:
            _say_cause(cause)
    _say_notes([cause for cause in summary if cause["severity"] == Severity.NOTE])
    print_text(f"\n{found_words(report)} {conclusion}" if conclusion else f"\n{verdict(report)}")


def verdict(report: IntakeReport) -> str:
    """Return the outcome in one or two sentences."""
    found = found_words(report)
    if report.is_refused:
        return f"{found} The archive would be refused; it was not read to its end."
    if report.has_errors:
        return f"{found} The submission would be refused: fix the errors and check again."
    return f"{found} The submission would be accepted."


def found_words(report: IntakeReport) -> str:
    """Return how many problems of each severity."""
    counts = {severity: report.count(severity) for severity in Severity}
    numbers = [f"{count:,} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items()]
    return f"Found {', '.join(numbers[:-1])} and {numbers[-1]}."


def _say_notes(notes: list[dict[str, Any]]) -> None:
    """What needs no action: each kind once for all data sets, with one example."""
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for note in notes:
        kinds.setdefault((note["title"], note["remedy"]), []).append(note)
    if kinds:
        print_text("\nNotes")
    for (title, remedy), alike in kinds.items():
        data_sets = name_first([note["data_set"] for note in alike if note["data_set"]])
        print_text(f"  {title} ({sum(note['count'] for note in alike):,}){f' in {data_sets}' if data_sets else ''}")
        print_paragraph(alike[0]["examples"][0], indent="    ")
        print_paragraph(f"→ {remedy}", indent="    ")


def name_first(names: list[str]) -> str:
    """Some of them, and how many there are besides."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _say_cause(cause: dict[str, Any]) -> None:
    count = f" ({cause['count']:,})" if cause["count"] > 1 else ""
    print_text(f"  {cause['severity']}: {cause['title']}{count}")
    for example in cause["examples"]:
        print_paragraph(example, indent="    ")
    if (rest := cause["count"] - len(cause["examples"])) > 0 and len(cause["examples"]) > 1:
        print_text(f"    … and {rest:,} more; --csv and --json list all.")
    print_paragraph(f"→ {cause['remedy']}", indent="    ")
