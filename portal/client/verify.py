"""``vp verify``: the portal's own check of an archive or a folder, on the team's machine.

What the edition expects comes from the portal, or without a connection as a file from the page of the edition.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from typer import Argument, Option

from common.errors import CommandError, InputError, ProblemsError, Refused
from common.parameters import require_one
from common.tables import csv_lines
from common.terminal import FINE, PROBLEMS, ProgressBar, print_text
from portal.client.api import Server, open_portal
from portal.client.status import say_report
from portal.client.workspace import Workspace, not_taking_part
from portal.intake.check import ArchiveCheck
from portal.intake.expectation import ExpectedSubmission
from portal.intake.report import IntakeReport


def verify_archive(
    archive: Annotated[Path, Argument(metavar="ARCHIVE", help="Zip or tar archive, or a folder.")],
    expected: Annotated[
        Path | None,
        Option(metavar="FILE", help="What the edition expects, downloaded from its page on the portal (JSON)."),
    ] = None,
    edition: Annotated[str | None, Option(metavar="NAME", help="Ask the portal what this edition expects.")] = None,
    system: Annotated[
        str | None,
        Option(metavar="NAME", help="Check a further version of this system, such as T11-p1, with what it inherits."),
    ] = None,
    server: Server = None,
    csv: Annotated[
        Path | None, Option(metavar="FILE", help="Write every problem as CSV; - for standard output.")
    ] = None,
    as_json: Annotated[
        Path | None, Option("--json", metavar="FILE", help="Write the whole report; - for standard output.")
    ] = None,
) -> int:
    """Check an archive, or the folder that it will be made of, as the portal will.

    Every utterance is decoded and compared with the lists of the edition, result and score files are read, scores are
    held against the trials that vp data has put into the folder of the edition. Nothing is sent.

        vp verify autumn/autumn.zip --edition autumn
        vp verify autumn/anonymised --expected autumn.json --csv report.csv
    """
    require_one({"--expected": expected, "--edition": edition})
    if not archive.exists():
        raise CommandError(f"{archive}: expected an archive or a folder, found nothing there.")
    if system and not edition:
        remedy = "Give --edition, or a file of --expected that the portal made for this system."
        raise CommandError(f"--system: expected what {system} inherits, found none. {remedy}")
    wanted = read_expected(expected) if expected else fetch_expected(edition or "", server, system)
    try:
        report = verify(archive, wanted)
    except ProblemsError as error:
        raise CommandError(str(error)) from error
    outputs = {"csv": csv, "json": as_json}
    for kind, place in outputs.items():
        if place:
            _write(report, kind, place)
    if Path("-") not in outputs.values():
        say_findings(report, wanted)
    return PROBLEMS if report.has_errors else FINE


def read_expected(path: Path) -> ExpectedSubmission:
    """Return what an edition expects, from its file.

    Raises:
        CommandError: no such file, or another one.
    """
    if path.is_dir():
        remedy = f"Name the JSON file from the page of the edition; to ask the portal, write --edition {path.name}."
        raise CommandError(f"{path}: expected a file, found a folder. {remedy}")
    try:
        return ExpectedSubmission.from_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: expected a readable file, found “{error.strerror}”.") from error
    except InputError as error:
        remedy = "Download it again from the page of the edition."
        raise CommandError(f"{path}: {error}. {remedy}") from error


def fetch_expected(edition: str, server: str | None, system: str | None = None) -> ExpectedSubmission:
    """Return what an edition expects, from the portal; of a further version of `system`, where one is named.

    Raises:
        CommandError: the portal does not answer, or does not tell this person.
    """
    with open_portal(server) as portal:
        try:
            path = f"editions/{quote(edition, safe='')}/expected"
            query = {"system": system} if system else {}
            return ExpectedSubmission.from_json(portal.text(path, "application/json", **query))
        except Refused as refused:
            if refused.status != 404:
                raise
            problem = not_taking_part(portal, edition)
            if system:
                remedy = "vp status lists your own."
                problem = CommandError(f"There is no system {system} of yours in the edition {edition}. {remedy}")
            raise problem from refused
        except InputError as error:
            raise CommandError(f"{portal.address}: {error}. Update this program.") from error


def verify(archive: Path, expected: ExpectedSubmission, workspace: Workspace | None = None) -> IntakeReport:
    """Return the report on an archive or a folder; nothing of it is kept.

    Args:
        workspace: where the organizer's trials lie, which scores are held against; None for the usual one.
    """
    workspace = workspace or Workspace(expected.edition, Path(expected.edition))
    inherited = expected.inherited
    speech = {name: frozenset(names) for name, names in inherited.speech.items()} if inherited else {}
    try:
        with tempfile.TemporaryDirectory(prefix="vp-verify-") as folder, ProgressBar(lines="quarters") as bar:
            check = ArchiveCheck(archive.resolve().name, expected, Path(folder), bar.show)
            for _ in check.read(archive):
                pass  # nothing is kept
            beside = inherited.documents_beside(check.paths) if inherited else ()
            return check.report(speech, beside, workspace.find_trials(expected.recipe()))
    except OSError as error:
        raise CommandError(f"{archive}: it cannot be read to its end: {error}.") from error


def say_findings(report: IntakeReport, expected: ExpectedSubmission) -> None:
    """Print the report, after what this edition takes that others refuse."""
    if not expected.recipe().keeps_duration:
        print_text("This edition lets speech change its duration: lengths and silence are warnings only.")
    say_report(report)


def _write(report: IntakeReport, kind: str, place: Path) -> None:
    text = io.StringIO(newline="")
    if kind == "json":
        text.write(f"{report.to_json()}\n")
    else:
        text.writelines(csv_lines(report.csv_rows()))
    try:
        if place == Path("-"):
            sys.stdout.write(text.getvalue())
        else:
            place.write_text(text.getvalue(), encoding="utf-8", newline="")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{place}: the report cannot be written, “{error.strerror}”.") from error
