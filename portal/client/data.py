"""``vp data``: the speech and the lists of an edition, fetched, checked and unpacked.

What has arrived is kept: a file goes on where it ended, one that is unpacked is not fetched again unless the portal has
another one of its name.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from common.atomic_write import write_atomically
from common.errors import CommandError, Refused
from common.hashes import compute_sha256
from common.memory import format_size
from common.problems import Problem, ProblemFound, Severity
from common.terminal import FINE, ProgressBar, print_message, print_text
from common.wording import counted
from portal.client.api import (
    PIECE_BYTES,
    Patience,
    Portal,
    Server,
    keep_trying,
    open_portal,
)
from portal.client.workspace import (
    EditionFolder,
    EditionName,
    Workspace,
    find_workspace,
    not_taking_part,
    unknown_answer,
)
from portal.intake.archives.limits import ARCHIVE_ENDINGS, ArchiveLimits
from portal.intake.archives.reading import read_archive

Note = dict[str, Any]  # by name of a file: its SHA-256, and the paths of what it gave
ARRIVING, NOTE = ".arriving", ".data.json"
ASK_EVERY_S = 5.0
# Our own archives: large, of recordings that are stored as they are.
LIMITS = ArchiveLimits(members=10**8, total_bytes=1 << 50, member_bytes=1 << 40)


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that the portal offers; `url` may be relative to it."""

    name: str
    bytes: int
    sha256: str
    url: str

    @property
    def is_archive(self) -> bool:
        """Return whether it is to be unpacked."""
        return self.name.endswith(ARCHIVE_ENDINGS)


def fetch_data(edition: EditionName, to: EditionFolder = None, patience: Patience = 600, server: Server = None) -> int:
    """Fetch the data of an edition: recordings, Kaldi lists, trials.

    Each file is checked by its SHA-256. Interrupted at any time, the same command continues where it stopped. First
    accept its terms on the page of the edition.

        vp data autumn
        vp data autumn --to /scratch/autumn
    """
    workspace = find_workspace(edition, to)
    with open_portal(server) as portal:
        files = keep_trying(lambda: list_files(portal, workspace.edition), patience_s=patience, only_busy=True)
        kept = _read_note(workspace)
        wanted = [one for one in files if not _is_there(workspace, one, kept)]
        _require_space(workspace, wanted)
        try:
            _bring(portal, workspace, wanted, kept, patience)
        except OSError as error:  # of what is written; without a name where the disk is full
            place, remedy = error.filename or workspace.folder, "Make space and repeat the command: it goes on there."
            raise CommandError(f"{place}: it cannot be written, “{error.strerror}”. {remedy}") from error
    with suppress(OSError):  # something else lies there
        (workspace.folder / ARRIVING).rmdir()
    new = f"{len(wanted):,} of them new" if len(wanted) < len(files) else format_size(sum(one.bytes for one in files))
    print_text(f"{counted(len(files), 'file')}, {new}: {workspace.data}.")
    print_text(f"Next: {name_next(workspace)} (or your own program by --command, see vp run --help)")
    return FINE


def _bring(portal: Portal, workspace: Workspace, wanted: list[OfferedFile], kept: Note, patience_s: float) -> None:
    """Fetch and unpack files; each counts for half of the progress."""
    total, before = sum(one.bytes for one in wanted), 0
    with ProgressBar(is_kept=True, lines="quarters", in_bytes=True) as bar:

        def show(before: int, done: int) -> None:
            bar.show(f"Fetching {workspace.edition}", (before + done) // 2, total)

        for one in wanted:
            _fetch(portal, workspace, one, partial(show, before), patience_s)
            before += one.bytes
            kept[one.name] = {"sha256": one.sha256, "files": _unpack(workspace, one, partial(show, before))}
            before += one.bytes
            _write_note(workspace, kept)


def name_next(workspace: Workspace) -> str:
    """Return the line that anonymises."""
    place = "" if workspace.folder == Path(workspace.edition) else f" --to {workspace.folder}"
    return f"vp run {workspace.edition} --method mcadams-2022{place}"


def list_files(portal: Portal, edition: str) -> list[OfferedFile]:
    """Return the files of an edition; while the portal makes them, it is asked again.

    Raises:
        CommandError: there is none for this person; says on which page the licence is accepted.
    """
    path = f"editions/{quote(edition, safe='')}/data/"
    is_told = False
    while True:
        found = _ask(portal, edition, path)
        if not found["is_shared"]:
            raise CommandError(
                f"The edition {edition} does not offer its speech for download. Ask its organizer how to get it."
            )
        if not (found["accepted_at"] or found.get("is_open")):
            raise CommandError(
                f"The data of {edition} are given under terms that you have not accepted yet. Read and accept them on "
                f"{found['page']}, then repeat the command."
            )
        if found["files"] or not found["is_under_way"]:
            break
        if not is_told:
            print_message("The portal is making the files; this command continues when they are ready.")
            is_told = True
        time.sleep(ASK_EVERY_S)
    if found.get("archived_at"):
        print_message(f"The edition {edition} was archived on {found['archived_at'][:10]}: it takes no submissions.")
    try:
        files = [
            OfferedFile(str(row["name"]), int(row["bytes"]), str(row["sha256"]), str(row["url"]))
            for row in found["files"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise unknown_answer(portal) from error
    for one in files:
        if one.name != Path(one.name).name or one.name.startswith("."):
            raise CommandError(f"{portal.address} offers a file “{one.name}”, which is not a file name.")
    if not files:
        raise CommandError(f"The edition {edition} has no files to fetch yet. Ask its organizer to make them.")
    return files


def _ask(portal: Portal, edition: str, path: str) -> dict[str, Any]:
    try:
        found = portal.get(path)
    except Refused as refused:
        if refused.status != 404:
            raise
        raise not_taking_part(portal, edition) from refused
    if not isinstance(found, dict) or not {"accepted_at", "page", "is_under_way", "files"} <= found.keys():
        raise unknown_answer(portal)
    return found


def _is_there(workspace: Workspace, one: OfferedFile, kept: Note) -> bool:
    """Return whether this version of a file was unpacked, and everything of it is still there."""
    try:
        known = kept[one.name]
        return known["sha256"] == one.sha256 and all((workspace.folder / path).is_file() for path in known["files"])
    except (KeyError, TypeError):
        return False


def _read_note(workspace: Workspace) -> Note:
    try:
        found = json.loads((workspace.folder / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_note(workspace: Workspace, kept: Note) -> None:
    write_atomically(workspace.folder / NOTE, json.dumps(kept, indent=0).encode())


def _require_space(workspace: Workspace, wanted: list[OfferedFile]) -> None:
    """A file and what is unpacked from it are there at the same time."""
    for folder in (workspace.folder, workspace.data, workspace.lists, workspace.folder / ARRIVING):
        folder.mkdir(parents=True, exist_ok=True)
    needed = sum(one.bytes for one in wanted) + max((one.bytes for one in wanted), default=0)
    if (free := shutil.disk_usage(workspace.folder).free) < needed:
        raise CommandError(
            f"{workspace.folder}: expected {format_size(needed)} of free space, found {format_size(free)}. "
            "Make space, or name another folder by --to."
        )


def _fetch(
    portal: Portal, workspace: Workspace, one: OfferedFile, show: Callable[[int], None], patience_s: float
) -> None:
    """Bring a file whole; what another process or day has brought is used."""
    place = workspace.folder / ARRIVING / one.name

    def add() -> None:
        portal.download(one.url, place, show)

    for is_last in (False, True):
        size = place.stat().st_size if place.is_file() else -1
        if size != one.bytes:
            if size > one.bytes:
                place.unlink()
            keep_trying(add, patience_s=patience_s)
        if place.stat().st_size == one.bytes and compute_sha256(place) == one.sha256:
            return
        place.unlink()  # of another version of the file, or damaged
        if is_last:
            raise CommandError(
                f"{one.name}: expected the SHA-256 {one.sha256}, found another one, twice. Repeat the command later, "
                "and tell the organizer if it happens again."
            )


def _unpack(workspace: Workspace, one: OfferedFile, show: Callable[[int], None]) -> list[str]:
    """Put what a file holds in its place, an archive below the folder of data only; the paths that it gave."""
    place = workspace.folder / ARRIVING / one.name
    if not one.is_archive:
        place.replace(workspace.lists / one.name)
        show(one.bytes)
        return [(workspace.lists / one.name).relative_to(workspace.folder).as_posix()]
    paths: list[str] = []
    problems: list[Problem] = []
    try:
        for member, stream in read_archive(place, name=one.name, limits=LIMITS, report=problems.append):
            target = workspace.data / member.path
            paths.append(target.relative_to(workspace.folder).as_posix())
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(stream, file, PIECE_BYTES)
            show(min(member.position, one.bytes))
    except ProblemFound as refused:
        raise CommandError(f"{refused} Tell the organizer.") from refused
    if grave := [each for each in problems if each.severity is Severity.ERROR]:
        raise CommandError(f"{grave[0].sentence()} Tell the organizer.")
    show(one.bytes)
    place.unlink()
    return paths
