"""``vp pack``: the archive of a submission, made of what the edition asks for and checked before anything is written.

What belongs into it is linked into a folder under the names that it will have, that folder gets the whole check, and
only a folder without an error is packed. Left out is what nothing is computed from, the records of a run among it, as
they hold its seed and its voices.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated

from typer import Argument, Option

from anonymization.cli.records import LOCK
from common.errors import CommandError, ProblemsError
from common.memory import format_size
from common.problems import Problem
from common.terminal import FINE, PROBLEMS, ProgressBar, print_text
from evaluation.formats.audio_pairs import describe_droppings
from evaluation.objective_results.results.forms import HEAD_BYTES
from portal.client.api import PIECE_BYTES, Server, open_portal
from portal.client.status import name_first
from portal.client.submit import list_systems, suggest_system
from portal.client.verify import fetch_expected, say_findings, verify
from portal.client.workspace import (
    FOLDER_HELP,
    AskedArchive,
    EditionName,
    edition_by,
    fetch_requirements,
    find_workspace,
)
from portal.intake.contents import Content, classify
from portal.intake.documents import unused_by_name
from portal.intake.expectation import ExpectedSubmission
from portal.intake.utterances import Names

_SPEECH = frozenset({Content.SPEECH})
_BESIDE = frozenset({Content.DESCRIPTION, Content.TARGETS})
_RESULTS = frozenset({Content.RESULTS, Content.SCORES, Content.HYPOTHESES, Content.SIMILARITY})
_MOST_NAMED = 5
_MOMENT = (2020, 1, 1, 0, 0, 0)  # the same files give the same archive


def pack(
    edition: EditionName,
    folder: Annotated[Path | None, Argument(metavar="DIR", help=FOLDER_HELP)] = None,
    add: Annotated[
        list[Path] | None,
        Option(
            metavar="PATH",
            help="A description (PDF), results directories or hypotheses; a file or a folder, may be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(metavar="FILE", help="The archive, by default EDITION.zip in DIR.")] = None,
    system: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Check it as a further version of this system, such as T11-p1: everything in DIR is packed all the "
            "same, and what DIR lacks is inherited.",
        ),
    ] = None,
    server: Server = None,
) -> int:
    """Make the archive that the edition requires from the anonymised speech in DIR and the files of --add.

    DIR holds what vp run wrote, or WAV and FLAC files under the names of their originals, in any folders. It is checked
    first as the portal does; with an error there is no archive.

        vp pack autumn --add T11.pdf
        vp pack autumn --add T11.pdf --system T11-p1
    """
    workspace = find_workspace(edition, folder)
    source = workspace.anonymised if workspace.anonymised.is_dir() else workspace.folder
    out = out or workspace.archive
    added = add or []
    if out.suffix.lower() != ".zip":
        raise CommandError(f"--out: expected a name that ends in .zip, found {out.name}.")
    for path in (source, *added):
        if not path.exists():
            remedy = f"Use vp run {workspace.edition} first, or name DIR." if path == source else "Check the path."
            raise CommandError(f"{path}: expected a file or a folder, found nothing there. {remedy}")
    with open_portal(server) as portal:
        asked = fetch_requirements(portal, workspace.edition)
        found = edition_by(portal, workspace.edition)
        team = found["your_team"]
        known = suggest_system(list_systems(portal, found, team), team) if team and not system else ""
    expected = fetch_expected(workspace.edition, server, system)
    with tempfile.TemporaryDirectory(prefix="vp-pack-") as place:
        linked = Path(place) / out.name
        linked.mkdir()
        try:
            left = _link(source, added, linked, asked, expected)
            report = verify(linked, expected, workspace)
        except ProblemsError as error:
            raise CommandError(str(error)) from error
        say_findings(report, expected)
        if left.unused:
            print_text(f"Left out, as no utterance of the edition has its name: {name_first(left.unused)}.")
        if left.droppings:
            print_text(describe_droppings(str(source), left.droppings).sentence())
        for problem in left.unnamed[:_MOST_NAMED]:
            print_text(problem.sentence())
        if report.has_errors:
            lacks_description = any(cause["code"] == "missing-description" for cause in report.summary())
            print_text("Nothing was packed." + (" Name the description: --add FILE.pdf." if lacks_description else ""))
            return PROBLEMS
        size = _pack(linked, out, asked.largest_archive_bytes)
    print_text(f"Packed: {out}, {format_size(size)}.")
    again = f" --system {system or known}" if system or known else ""
    print_text(f"Next: vp submit {out} --edition {workspace.edition}{again}")
    if known:
        print_text(
            f"This makes a further version of {known}. For a new system, say --kind primary instead of --system."
        )
    return FINE


@dataclass
class _LeftOut:
    """What does not come into an archive.

    Attributes:
        unused: speech under no utterance's name.
        droppings: what operating systems left behind.
        unnamed: what its name alone keeps from being used.
    """

    unused: list[str] = field(default_factory=list)
    droppings: list[str] = field(default_factory=list)
    unnamed: list[Problem] = field(default_factory=list)


def _link(source: Path, added: list[Path], folder: Path, asked: AskedArchive, expected: ExpectedSubmission) -> _LeftOut:
    """Link what belongs into the archive under its names there; what does not."""
    kinds = _SPEECH | _BESIDE | (_RESULTS if asked.takes_results else frozenset())
    names = Names(expected)
    left = _LeftOut()
    for name, path in _files(source, added):
        content = classify(name)
        if content is Content.DROPPING and path.name != LOCK:  # of vp run itself
            left.droppings.append(name)
        if content is Content.OTHER and (problem := unused_by_name(name, _head(path), expected)):
            left.unnamed.append(problem)
        target = _speech_name(name, names) if content is Content.SPEECH else name
        if target is None:
            left.unused.append(name)
        if content not in kinds or target is None:
            continue
        place = folder / target
        if place.exists():  # two names of one utterance: both come, and the check tells it
            if place.resolve() == path.resolve():
                continue  # it is in DIR and named by --add, too
            place = folder / name
        if place.is_symlink():
            raise CommandError(
                f"{path}: expected one file of the name {name}, found {place.resolve()} too. Rename one."
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path.resolve())
    return left


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _files(source: Path, added: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every file with its name in the archive; a folder that is added keeps its own name."""
    for root, above in ((source, source), *((path, path.resolve().parent) for path in added)):
        whole = root.resolve() if above != source else root
        paths = [whole] if whole.is_file() else sorted(whole.rglob("*"))
        for path in paths:
            if path.is_file():
                yield path.relative_to(above).as_posix(), path


def _speech_name(name: str, names: Names) -> str | None:
    """Return the name of a speech file with that of its utterance; None where it is none of the edition."""
    placed, _ = names.place(name)
    if placed is None:
        return None
    path = PurePosixPath(name)
    return str(path.with_name(f"{placed.utterance}{path.suffix}"))


def _pack(folder: Path, out: Path, largest_bytes: int) -> int:
    """Write the archive whole or not at all; its size.

    Raises:
        CommandError: it is larger than the edition takes, or cannot be written.
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    total, done = sum(path.stat().st_size for path in paths), 0
    unfinished = out.with_name(f".{out.name}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            ProgressBar(is_kept=True, lines="quarters", in_bytes=True) as bar,
            zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for path in paths:
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _MOMENT)
                entry.external_attr, entry.file_size = 0o644 << 16, path.stat().st_size
                entry.compress_type = zipfile.ZIP_STORED if path.suffix.lower() == ".flac" else zipfile.ZIP_DEFLATED
                with path.open("rb") as stream, archive.open(entry, "w") as target:
                    while piece := stream.read(PIECE_BYTES):
                        target.write(piece)
                        done += len(piece)
                        bar.show(f"Packing {out.name}", done, total)
        size = unfinished.stat().st_size
        if size > largest_bytes:
            raise CommandError(
                f"{out}: expected at most {format_size(largest_bytes)}, which the edition takes, found "
                f"{format_size(size)}. Use FLAC (vp run --format flac), or ask the organizer."
            )
        unfinished.replace(out)
    except OSError as error:
        raise CommandError(f"{out}: the archive cannot be written, “{error.strerror}”. Nothing was packed.") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return size
