"""``vp verify``: the portal's own check of an archive or a folder, on the team's machine.

What the edition expects comes from the portal, or without a connection as a file from the page of the edition.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evaluation.commands.terminal import FINE, PROBLEMS, CommandError, say, say_wrapped
from evaluation.formats.problems import Severity
from evaluation.protocols.recipes import RecipeError
from portal.client.api import Refused, add_server_arguments, open_portal
from portal.submissions.intake.check import KeepNothing, check_archive
from portal.submissions.intake.expected import ExpectedError, ExpectedSubmission
from portal.submissions.intake.report import IntakeReport

DESCRIPTION = (
    "Check an archive, or the folder that it will be made of, as the portal will: every utterance decoded and held "
    "against the lists of the edition, result and score files read. Nothing is sent."
)
_BAR_WIDTH = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="zip or tar archive, or a folder")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--expected", type=Path, metavar="FILE",
        help="what the edition expects, downloaded from its page on the portal (JSON)",
    )  # fmt: skip
    source.add_argument("--edition", metavar="NAME", help="ask the portal what this edition expects")
    parser.add_argument(
        "--system", metavar="NAME", help="check a further version of this system, such as T11-p1, with what it inherits"
    )
    add_server_arguments(parser)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every finding as CSV; - for standard output")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report; - for standard output")


def run(options: argparse.Namespace) -> int:
    """Check and report; the exit code."""
    if not options.archive.exists():
        raise CommandError(f"{options.archive}: expected an archive or a folder, found nothing there.")
    wanted = options.edition
    if options.system and not wanted:
        remedy = "Give --edition, or a file of --expected that the portal made for this system."
        raise CommandError(f"--system: expected a portal that knows what {options.system} inherits. {remedy}")
    expected = fetch_expected(wanted, options.server, options.system) if wanted else read_expected(options.expected)
    try:
        report = verify(options.archive, expected)
    except RecipeError as error:
        raise CommandError(str(error)) from error
    outputs = {"csv": options.csv, "json": options.json}
    for kind, place in outputs.items():
        if place:
            _write(report, kind, place)
    if Path("-") not in outputs.values():
        say_report(report)
    return PROBLEMS if report.has_errors else FINE


def read_expected(path: Path) -> ExpectedSubmission:
    """What an edition expects, from its file.

    Raises:
        CommandError: no such file, or another one.
    """
    try:
        return ExpectedSubmission.from_json(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: expected a readable file, found “{error.strerror}”.") from error
    except ExpectedError as error:
        remedy = "Download it again from the page of the edition."
        raise CommandError(f"{path}: {error}. {remedy}") from error


def fetch_expected(edition: str, server: str | None, system: str | None = None) -> ExpectedSubmission:
    """What an edition expects, from the portal; of a further version of `system`, where one is named.

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
            remedy = "Members of approved teams and organizers are told; the page of the edition says where you stand."
            what = f"no edition {edition}, or you do not take part in it"
            if system:
                what = f"no system {system} of yours in an edition {edition}, or you do not take part in it"
            raise CommandError(f"There is {what}. {remedy}") from refused
        except ExpectedError as error:
            raise CommandError(f"{portal.address}: {error}. Update this program.") from error


def verify(archive: Path, expected: ExpectedSubmission) -> IntakeReport:
    """The report on an archive or a folder; nothing of it is kept."""
    bar, inherited = _Bar(), expected.inherited
    speech = {name: frozenset(names) for name, names in inherited.speech.items()} if inherited else {}
    try:
        with tempfile.TemporaryDirectory(prefix="vp-verify-") as folder:
            return check_archive(
                archive, name=archive.resolve().name, expected=expected, keeper=KeepNothing(), documents=Path(folder),
                inherited=speech, hand_down=inherited.documents_beside if inherited else None, progress=bar.show,
            )  # fmt: skip
    except OSError as error:
        raise CommandError(f"{archive}: it cannot be read to its end: {error}.") from error
    finally:
        bar.end()


def say_report(report: IntakeReport, *, conclusion: str = "") -> None:
    """The report on standard output, by data set and cause, with the first sentences of each cause.

    Args:
        conclusion: what has become of the archive; without it what would.
    """
    counts = report.counts
    say(f"{report.archive} for {report.edition}")
    say(
        f"{counts.files:,} files: {counts.received:,} of {counts.expected:,} utterances in data sets, "
        f"{counts.documents:,} documents"
    )
    if counts.inherited:
        say(f"{counts.inherited:,} of the utterances in data sets are inherited from earlier versions.")
    for data_set, causes in groupby(report.summary(), key=lambda cause: cause["data_set"]):
        say(f"\n{data_set or 'Whole submission'}")
        for cause in causes:
            _say_cause(cause)
    say(f"\n{found_words(report)} {conclusion}" if conclusion else f"\n{verdict(report)}")


def verdict(report: IntakeReport) -> str:
    """The outcome in one or two sentences."""
    found = found_words(report)
    if report.is_refused:
        return f"{found} The archive would be refused; it was not read to its end."
    if report.has_errors:
        return f"{found} The submission would be refused: mend the errors and check again."
    return f"{found} The submission would be accepted."


def found_words(report: IntakeReport) -> str:
    """How many faults of each severity."""
    numbers = [_number(report.count(severity), severity) for severity in Severity]
    return f"Found {', '.join(numbers[:-1])} and {numbers[-1]}."


def _number(count: int, severity: Severity) -> str:
    return f"{count:,} {severity}{'' if count == 1 else 's'}"


def _say_cause(cause: dict[str, Any]) -> None:
    count = f" ({cause['count']:,})" if cause["count"] > 1 else ""
    say(f"  {cause['severity']}: {cause['title']}{count}")
    for example in cause["examples"]:
        say_wrapped(example, indent="    ")
    if (rest := cause["count"] - len(cause["examples"])) > 0 and len(cause["examples"]) > 1:
        say(f"    … and {rest:,} more; --csv and --json list all.")
    say_wrapped(f"→ {cause['remedy']}", indent="    ")


def _write(report: IntakeReport, kind: str, place: Path) -> None:
    try:
        if place == Path("-"):
            _write_to(sys.stdout, report, kind)
        else:
            with place.open("w", encoding="utf-8", newline="") as file:
                _write_to(file, report, kind)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{place}: the report cannot be written, “{error.strerror}”.") from error


def _write_to(file: Any, report: IntakeReport, kind: str) -> None:
    if kind == "json":
        file.write(f"{report.to_json()}\n")
    else:
        csv.writer(file).writerows(report.csv_rows())


class _Bar:
    """Progress on standard error: a bar where that is a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""

    def show(self, stage: str, done: int, total: int) -> None:
        """Draw what changed."""
        share = done / total if total else 0.0
        if self._is_terminal:
            filled = round(_BAR_WIDTH * share)
            text = f"{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {done:,}/{total:,} {stage}"
        else:
            text = f"{stage}: {10 * int(10 * share)} %" if total else f"{stage} …"
        if text != self._shown:
            sys.stderr.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
            sys.stderr.flush()
            self._shown = text

    def end(self) -> None:
        """Leave the line free for what follows."""
        if self._is_terminal and self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
