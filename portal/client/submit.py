"""``vp submit``: send an archive to an edition, going on after any interruption, and read the report on it."""

from __future__ import annotations

import hashlib
import os
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urljoin, urlsplit

from typer import Argument, Option

from common.errors import CommandError, Refused, Unreachable
from common.memory import format_size
from common.parameters import require_one
from common.terminal import FINE, ProgressBar, print_message, print_text
from portal.client.api import (
    Patience,
    Portal,
    Server,
    keep_trying,
    lengthen_pause,
    open_portal,
)
from portal.client.status import follow
from portal.client.workspace import Row, edition_by

T = TypeVar("T")
SystemKind = Literal["primary", "contrastive"]
PUBLIC_AT_ONCE = (
    "The leaderboard is published: your numbers are public as soon as they are computed. From then on, only the "
    "organizer can withdraw the submission."
)
PART_BYTES = 8 << 20
HASH_BYTES = 1 << 20
TRY_AGAIN = {409, 423, 460}
GONE = {404, 410}
SEND_AGAIN = "What was sent of it is discarded. Run the same command again: it sends the file as it is now."
AGAIN = "Run the same command again later: it continues where it stopped."
TUS = {"Tus-Resumable": "1.0.0"}


def chosen_team(portal: Portal, edition: Row, wanted: str | None) -> Row | None:
    """Return the team that sends, by label, name or number, else one's own; None for an organizer's baseline.

    Raises:
        CommandError: there is no such team, or none at all.
    """
    teams = list(portal.every("teams/", edition=edition["name"]))
    if wanted:
        keys = [{one["label"].casefold(), one["name"].casefold(), str(one["id"])} for one in teams]
        found = [one for one, names in zip(teams, keys, strict=True) if wanted.casefold() in names]
        if len(found) != 1:
            yours = ", ".join(f"{one['label'] or one['id']} ({one['name']})" for one in teams) or "none"
            raise CommandError(f"--team: expected one of your teams in {edition['name']} ({yours}), found {wanted}.")
        return found[0]
    own = [one for one in teams if one["id"] == edition["your_team"]]
    if not own and not edition["you_organise"]:
        raise CommandError(
            f"You belong to no team of “{edition['title']}”. Register one on the page of the edition, ask to be "
            "invited, or log in first (vp login)."
        )
    return own[0] if own else None


def list_systems(portal: Portal, edition: Row, team: int | None) -> list[Row]:
    """Return the systems of a team in an edition, or without one the baselines of its organizers."""
    systems = portal.every("systems/", edition=edition["name"], **({"team": team} if team else {}))
    return [one for one in systems if team or one["is_baseline"]]


def suggest_system(systems: list[Row], team: object) -> str:
    """Return the label to offer where a team has systems, so that ``--system`` or ``--kind`` has to say which is
    meant."""
    return str(systems[0]["label"]) if systems and team else ""


def chosen_system(portal: Portal, edition: Row, team: Row | None, wanted: str | None, kind: str | None) -> str:
    """Return the name of the system of which this is a further version; empty for a new one.

    Raises:
        CommandError: the team has no such system, or has systems and nothing says which is meant.
    """
    if kind is not None:
        return ""
    systems = list_systems(portal, edition, team["id"] if team else None)
    known = ", ".join(one["label"] for one in systems) or "none"
    if wanted is None:
        if label := suggest_system(systems, team):
            raise CommandError(
                f"The team has systems already ({known}). Say --system {label} for a further version of "
                "one, which inherits what the archive does not hold, else --kind primary or --kind contrastive."
            )
        return ""
    for one in systems:
        if wanted.casefold() in {one["name"].casefold(), one["label"].casefold()}:
            return str(one["name"])
    raise CommandError(f"--system: expected a system of this team ({known}), found {wanted}.")


def submit(
    archive: Annotated[Path, Argument(metavar="ARCHIVE", help="Zip or tar archive.")],
    edition: Annotated[str, Option(metavar="NAME", help="Name of the edition, as in its address.")],
    team: Annotated[
        str | None, Option(metavar="TEAM", help="Label, name or number of the team, by default your own.")
    ] = None,
    system: Annotated[
        str | None, Option(metavar="NAME", help="A further version of this system, such as T11-p1.")
    ] = None,
    kind: Annotated[SystemKind | None, Option(help="A new system of this kind.")] = None,
    title: Annotated[
        str, Option(metavar="TEXT", help="Title of a new system; an earlier system's is changed on its page.")
    ] = "",
    only_resume: Annotated[bool, Option("--resume", help="Only resume an upload; start no new one.")] = False,
    no_wait: Annotated[bool, Option("--no-wait", help="Do not wait for the report.")] = False,
    patience: Patience = 600,
    server: Server = None,
) -> int:
    """Send an archive to an edition and read the report on it.

    Interrupted at any time, the same command continues where it stopped. Without --system and --kind it makes your
    team's first primary system.

        vp submit autumn/autumn.zip --edition autumn --title "Our system"
        vp submit autumn/autumn.zip --edition autumn --system T11-p1
    """
    require_one({"--system": system, "--kind": kind}, is_required=False)
    if not archive.is_file():
        remedy = "Pack the folder first; vp verify reads folders too." if archive.is_dir() else "Check the path."
        raise CommandError(f"{archive}: expected a file, found none. {remedy}")
    with open_portal(server) as portal, open_archive(archive) as opened:

        def find_sender() -> tuple[Row, Row | None]:
            found = edition_by(portal, edition)
            return found, chosen_team(portal, found, team)

        def describe() -> dict[str, str]:
            begun = _find_begun(portal, found, sender, sha256)
            if only_resume and begun is None:
                raise CommandError(
                    f"{archive}: there is no unfinished upload of it to this edition. Leave --resume out to begin."
                )
            if begun is None:
                _say_other_content(portal, found, sender, archive.name)
            metadata = {"filename": archive.name, "edition": found["name"], "sha256": sha256}
            return metadata | _describe_system(portal, found, sender, begun, system=system, kind=kind, title=title)

        waiting: dict[str, Any] = {"patience_s": patience, "only_busy": True}
        found, sender = wait_for(find_sender, **waiting)
        sha256 = hash_archive(opened)
        sending = Sender(portal, opened, wait_for(describe, **waiting), patience_s=patience)
        number = sending.send()
        is_here = "was submitted before" if sending.was_submitted else "arrived completely"
        print_text(f"{archive.name} {is_here}: submission {number}, {portal.address}/submissions/{number}/")
        return FINE if no_wait else wait_for(lambda: follow(portal, number), patience_s=patience)


def wait_for(action: Callable[[], T], **waiting: Any) -> T:
    """Call `keep_trying` with these arguments; where its time is over, the error says how to continue.

    Returns:
        What the action returns.

    Raises:
        CommandError: the portal did not answer within `patience_s`.
    """
    try:
        return keep_trying(action, **waiting)
    except Unreachable as error:
        raise CommandError(f"{error} {AGAIN}") from error


def _describe_system(
    portal: Portal,
    edition: Row,
    team: Row | None,
    begun: Row | None,
    *,
    system: str | None,
    kind: SystemKind | None,
    title: str,
) -> dict[str, str]:
    """Return team and system of an upload; without --system and --kind what it was begun or submitted for."""
    if edition.get("public_at_once"):  # an older portal does not say it
        print_text(PUBLIC_AT_ONCE)
    if team and not team["members_frozen_at"]:
        _say_ending_invitations(portal, team["id"])
    metadata = {"team": str(team["id"])} if team else {}
    if begun is not None and system is None and kind is None:
        known = ("system",) if begun["system"] else ("system_kind", "system_title")
        return metadata | {name: begun[name] for name in known}
    if name := chosen_system(portal, edition, team, system, kind):
        if title:
            place = f"{portal.address}/systems/{name}/"
            print_text(f"The system keeps its title: --title is for a new one. Change it on its page, {place}.")
        return metadata | {"system": name}
    return metadata | {"system_kind": kind or "primary", "system_title": title}


def _find_begun(portal: Portal, edition: Row, team: Row | None, sha256: str) -> Row | None:
    """Return the newest upload of this content by the team or the organizers, unfinished or submitted."""
    found = portal.every(f"editions/{edition['name']}/uploads/", sha256=sha256)
    whose = team["id"] if team else None
    # An older portal does not say it, and lists others too.
    return next((one for one in found if one.get("sha256") == sha256 and one["team"] == whose), None)


def _say_other_content(portal: Portal, edition: Row, team: Row | None, file_name: str) -> None:
    """Say that something is here of a file of this name, which is not continued: a re-packed archive is sent whole."""
    whose = team["id"] if team else None
    for one in portal.every(f"editions/{edition['name']}/uploads/"):
        if one["team"] == whose and one["file_name"] == file_name and one["state"] == "receiving":
            arrived = f"{format_size(one['offset'])} of {format_size(one['size'])}"
            # Other tus clients, and an older portal, need not say it; a known one is another, or it would go on.
            what = "is of other content" if one.get("sha256") else "may be of other content"
            print_message(
                f"An unfinished upload of a file {file_name} ({arrived}) {what} and is kept; this one is sent from its "
                "beginning. Discard the other on the page “Submit” if it is no longer needed."
            )


def _say_ending_invitations(portal: Portal, team: int) -> None:
    count = portal.get(f"teams/{team}/").get("open_invitations")  # an older portal does not say it
    if count:
        print_text(
            f"Once this submission is accepted, the members of your team are fixed, and {count} open "
            f"invitation{' ends' if count == 1 else 's end'}: {portal.address}/teams/{team}/"
        )


@contextmanager
def open_archive(path: Path) -> Iterator[FileIO]:
    """Open the archive; an error of the disk while it is read says so."""
    try:
        with path.open("rb", buffering=0) as archive:  # what is read again comes from the disk
            yield archive
    except OSError as error:
        raise CommandError(f"{path}: it cannot be read, “{error.strerror}”.") from error


def hash_archive(archive: FileIO) -> str:
    """Return the SHA-256 of an archive, from its beginning, with a bar that tells how far the reading is."""
    digest, done, size = hashlib.sha256(), 0, os.fstat(archive.fileno()).st_size
    with ProgressBar(is_kept=True, lines="quarters", in_bytes=True) as bar:
        while piece := archive.read(HASH_BYTES):
            digest.update(piece)
            done += len(piece)
            bar.show(f"Reading {Path(archive.name).name}", done, size)
    return digest.hexdigest()


class Sender:
    """Brings one file to the portal, which knows it by its SHA-256: what it has of that is not sent again.

    Args:
        archive: stays open, so that a file that takes its name meanwhile is not mixed with it.

    Attributes:
        was_submitted: whether the portal had made a submission or a listening test of it before.
    """

    def __init__(
        self,
        portal: Portal,
        archive: FileIO,
        metadata: Mapping[str, str],
        *,
        patience_s: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.portal, self.metadata, self.patience_s = portal, metadata, patience_s
        self.was_submitted = False
        self._archive, self._path = archive, Path(archive.name)
        self._state = _state_of(archive)
        self.size = self._state[0]
        self._pause = pause
        self._bar = ProgressBar(is_kept=True, lines="quarters", in_bytes=True)

    def send(self) -> int:
        """Send everything that is not there yet; return the number of the submission.

        Raises:
            CommandError: as of `deliver`.
        """
        state = self.deliver()
        if not state["submission"]:
            state = self._patiently(lambda: self.portal.ask("POST", f"/api/uploads/{state['id']}/submit").json())
        return int(state["submission"]["id"])

    def deliver(self) -> Row:
        """Send everything that is not there yet; return what the portal says of the upload then.

        Raises:
            CommandError: the portal refuses the archive, or does not answer for too long; or the file has changed.
        """
        with self._bar:
            address = self._begin()
            try:
                self._send_parts(address)
            except Refused as refused:
                if refused.status not in GONE:
                    raise
                print_message(f"{refused} It is sent again from its beginning.")
                self._discard(address)
                address = self._begin()
                self._send_parts(address)
        state: Row = self._patiently(lambda: self.portal.ask("GET", address).json())
        return state

    def _begin(self) -> str:
        """Return the address of the upload of this content, a new one unless there is one."""
        address = urljoin(f"{self.portal.address}/", self._patiently(self._announce))
        if urlsplit(address)[:2] != urlsplit(self.portal.address)[:2]:
            raise CommandError(f"{self.portal.address} sends the archive elsewhere ({address}); nothing was sent.")
        return address

    def _announce(self) -> str:
        """Tell the portal what comes, and return the address that it gives."""
        pairs = (f"{key} {b64encode(text.encode()).decode()}" for key, text in self.metadata.items() if text)
        headers = TUS | {"Upload-Length": str(self.size), "Upload-Metadata": ",".join(pairs)}
        return self.portal.ask("POST", "/api/uploads/", headers=headers).headers["Location"]

    def _send_parts(self, address: str) -> None:
        last_progress = time.monotonic()
        pause_s = 0.5
        offset = self._patiently(lambda: self._offset(address))
        if offset == self.size:
            state = self._patiently(lambda: self.portal.ask("GET", address).json())
            self.was_submitted = bool(state["submission"] or state.get("study"))  # an older portal makes no tests
        elif offset:
            print_message(f"Resuming at {format_size(offset)} of {format_size(self.size)}.")
        while offset < self.size:
            before = offset
            try:
                offset = self._send_part(address, offset)
            except (Unreachable, Refused) as error:
                self._require_hope(error, last_progress)
                if pause_s > 2:
                    print_message(f"\n{error} Trying again in {pause_s:.0f} s.")
                self._pause(pause_s)
                pause_s = lengthen_pause(pause_s)
                offset = self._patiently(lambda: self._offset(address))
            if offset > before:
                last_progress, pause_s = time.monotonic(), 0.5
            self._bar.show(f"Sending {self._path.name}", offset, self.size)

    def _send_part(self, address: str, offset: int) -> int:
        part = self._read(offset)
        if _state_of(self._archive) != self._state or len(part) < min(PART_BYTES, self.size - offset):
            self._require_same_content(address)
            part = self._read(offset)
        checksum = b64encode(hashlib.sha256(part).digest()).decode()
        headers = TUS | {
            "Content-Type": "application/offset+octet-stream",
            "Upload-Offset": str(offset),
            "Upload-Checksum": f"sha256 {checksum}",
        }
        response = self.portal.ask("PATCH", address, content=part, headers=headers)
        return int(response.headers["Upload-Offset"])

    def _read(self, offset: int) -> bytes:
        self._archive.seek(offset)
        return self._archive.read(PART_BYTES)

    def _require_same_content(self, address: str) -> None:
        """Read the whole file again: its time changes also where its content does not.

        Raises:
            CommandError: it has changed; what was sent of it is discarded.
        """
        print_message(f"{self._path} was touched or written while it was sent; it is read again.")
        self._state = _state_of(self._archive)
        self._archive.seek(0)
        if hashlib.file_digest(self._archive, "sha256").hexdigest() != self.metadata["sha256"]:
            self._discard(address)
            raise CommandError(f"{self._path}: the file has changed while it was sent. {SEND_AGAIN}")

    def _discard(self, address: str) -> None:
        """Have the portal forget what it has of a file that is another now; it lapses there otherwise."""
        with suppress(Refused, Unreachable):
            self.portal.ask("DELETE", address, headers=TUS)

    def _offset(self, address: str) -> int:
        return int(self.portal.ask("HEAD", address, headers=TUS).headers["Upload-Offset"])

    def _require_hope(self, error: Unreachable | Refused, last_progress: float) -> None:
        """Raises the problem where trying again is in vain."""
        if isinstance(error, Refused) and error.status not in TRY_AGAIN:
            raise error
        if time.monotonic() - last_progress > self.patience_s:
            raise CommandError(f"{error} {AGAIN}") from error

    def _patiently(self, action: Callable[[], T]) -> T:
        return wait_for(action, patience_s=self.patience_s, pause=self._pause)


def _state_of(archive: FileIO) -> tuple[int, int]:
    """Return size and time of change of an open file, by which a changed file is suspected."""
    found = os.fstat(archive.fileno())
    return found.st_size, found.st_mtime_ns
