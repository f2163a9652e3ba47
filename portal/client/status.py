"""``vp status``: the submissions of one's teams, or one of them with its timeline and work."""

from __future__ import annotations

import argparse
from typing import Any

from evaluation.commands.terminal import FINE, PROBLEMS, say, say_json, say_table, say_wrapped
from portal.client.api import add_server_arguments, open_portal
from portal.client.follow import stage_of

DESCRIPTION = "Show your submissions, the newest first, or one of them: timeline, what was found, and how far it is."
BAD = {"refused", "failed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("submission", type=int, nargs="?", metavar="SUBMISSION", help="number of a submission")
    parser.add_argument("--edition", metavar="NAME", help="only submissions to this edition")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_server_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Ask and say; the exit code is 1 where the submission asked for was refused or could not be evaluated."""
    with open_portal(options.server) as portal:
        if options.submission is not None:
            return _say_one(portal.get(f"submissions/{options.submission}/"), as_json=options.json)
        search = {"edition": options.edition} if options.edition else {}
        found = list(portal.every("submissions/", **search))
    if options.json:
        say_json(found)
    elif not found:
        say("Nothing was submitted yet.")
    else:
        say_table(
            ("number", "edition", "system", "version", "state", "errors", "arrived"), [_row(one) for one in found]
        )
    return FINE


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    state = f"{one['state']}, late" if one["is_late"] else one["state"]
    return (
        str(one["id"]), one["edition"] or "–", one["label"], str(one["version"]), state, str(one["errors"]),
        moment(one["created_at"]),
    )  # fmt: skip


def _say_one(submission: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        say_json(submission)
    else:
        _say_all(submission)
    return PROBLEMS if submission["state"] in BAD else FINE


def _say_all(submission: dict[str, Any]) -> None:
    late = ", late" if submission["is_late"] else ""
    say(f"{submission['label']} version {submission['version']}, {submission['edition']}: {submission['state']}{late}")
    for step in submission["timeline"]:
        say_wrapped(f"{moment(step['at'])}  {step['state']}{': ' if step['note'] else ''}{step['note']}", indent="  ")
    for job in submission["jobs"]:
        if job["failure"]:
            say_wrapped(f"{job['title']}: {job['failure']} {job['failure_remedy']}", indent="  ")
    if submission["is_under_way"]:
        say(f"\n{stage_of(submission)}")
    for cause in submission["report_summary"]:
        place = f" in {cause['data_set']}" if cause["data_set"] else ""
        say(f"  {cause['severity']}: {cause['title']} ({cause['count']:,}){place}")
    for one in submission["data_sets"]:
        say(f"  {one['name']}: {one['files']:,} recordings, {one['inherited']:,} of them inherited")


def moment(text: str) -> str:
    """A time of the portal as a person reads it, in UTC."""
    return f"{text[:10]} {text[11:16]}"
