"""``vp submit``: send an archive to an edition, going on after any interruption, and read the report on it."""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from common.errors import CommandError
from common.memory import format_size
from common.terminal import FINE, ProgressBar, print_message, print_text
from portal.client.api import (
    Portal,
    Refused,
    Unavailable,
    Unreachable,
    add_patience,
    add_server_arguments,
    find_folder,
    keep_trying,
    lengthen_pause,
    open_portal,
    show_bytes,
    write_private,
)
from portal.client.status import follow
from portal.client.workspace import Row, edition_by

T = TypeVar("T")
DESCRIPTION = (
    "Send an archive to an edition and read the report on it. Interrupted at any time, the same command continues "
    "where it stopped. Without --system and --kind it makes your team's first primary system."
)
PUBLIC_AT_ONCE = (
    "The leaderboard is published: your numbers are public as soon as they are computed. From then on, only the "
    "organizer can withdraw the submission."
)
PART_BYTES = 8 << 20
HASH_BYTES = 1 << 20
TRY_AGAIN = {409, 423, 460}
GONE = {404, 410}
AGAIN = "Run the same command again later: it continues where it stopped."
TUS = {"Tus-Resumable": "1.0.0"}


def chosen_team(portal: Portal, edition: Row, wanted: str | None) -> Row | None:
    """The team that sends, by label, name or number, else one's own; None for an organizer's baseline.

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
    """The systems of a team in an edition, or without one the baselines of its organizers."""
    systems = portal.every("systems/", edition=edition["name"], **({"team": team} if team else {}))
    return [one for one in systems if team or one["is_baseline"]]


def suggest_system(systems: list[Row], team: object) -> str:
    """The label to offer where a team has systems, so that ``--system`` or ``--kind`` has to say which is meant."""
    return str(systems[0]["label"]) if systems and team else ""


def chosen_system(portal: Portal, edition: Row, team: Row | None, wanted: str | None, kind: str | None) -> str:
    """The name of the system of which this is a further version; empty for a new one.

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("archive", type=Path, metavar="ARCHIVE", help="zip or tar archive")
    parser.add_argument("--edition", metavar="NAME", required=True, help="name of the edition, as in its address")
    parser.add_argument("--team", metavar="TEAM", help="label, name or number of the team; else your own")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--system", metavar="NAME", help="a further version of this system, such as T11-p1")
    what.add_argument("--kind", choices=["primary", "contrastive"], help="a new system of this kind")
    parser.add_argument("--title", default="", help="title of a new system; an earlier system's is changed on its page")
    parser.add_argument("--resume", action="store_true", help="only resume an upload; start no new one")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the report")
    add_patience(parser)
    add_server_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Send, then follow; the exit code."""
    if not options.archive.is_file():
        remedy = (
            "Pack the folder first; vp verify reads folders too." if options.archive.is_dir() else "Check the path."
        )
        raise CommandError(f"{options.archive}: expected a file, found none. {remedy}")
    with open_portal(options.server) as portal:
        metadata = wait_for(lambda: _metadata(portal, options), patience_s=options.patience, at=Unavailable)
        sender = Sender(portal, options.archive, metadata, patience_s=options.patience)
        submission = sender.send(only_resume=options.resume)
        print_text(
            f"{options.archive.name} arrived completely: submission {submission}, "
            f"{portal.address}/submissions/{submission}/"
        )
        return FINE if options.no_wait else follow(portal, submission)


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


def _metadata(portal: Portal, options: argparse.Namespace) -> dict[str, str]:
    edition = edition_by(portal, options.edition)
    team = chosen_team(portal, edition, options.team)
    system = chosen_system(portal, edition, team, options.system, options.kind)
    if edition.get("public_at_once"):  # an older portal does not say it
        print_text(PUBLIC_AT_ONCE)
    if team and not team["members_frozen_at"]:
        _say_ending_invitations(portal, team["id"])
    metadata = {"filename": options.archive.name, "edition": edition["name"], "sha256": _hash(options.archive)}
    if team:
        metadata["team"] = str(team["id"])
    if system:
        if options.title:
            place = f"{portal.address}/systems/{system}/"
            print_text(f"The system keeps its title: --title is for a new one. Change it on its page, {place}.")
        return metadata | {"system": system}
    return metadata | {"system_kind": options.kind or "primary", "system_title": options.title}


def _say_ending_invitations(portal: Portal, team: int) -> None:
    count = portal.get(f"teams/{team}/").get("open_invitations")  # an older portal does not say it
    if count:
        print_text(
            f"Once this submission is accepted, the members of your team are fixed, and {count} open "
            f"invitation{' ends' if count == 1 else 's end'}: {portal.address}/teams/{team}/"
        )


def _hash(path: Path) -> str:
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    try:
        with path.open("rb") as stream, ProgressBar(is_kept=True, lines="quarters") as bar:
            while piece := stream.read(HASH_BYTES):
                digest.update(piece)
                done += len(piece)
                show_bytes(bar, f"Reading {path.name}", done, size)
    except OSError as error:
        raise CommandError(f"{path}: it cannot be read, “{error.strerror}”.") from error
    return digest.hexdigest()


class Sender:
    """Brings one file to the portal."""

    def __init__(
        self,
        portal: Portal,
        path: Path,
        metadata: Mapping[str, str],
        *,
        patience_s: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.portal, self.path, self.metadata, self.patience_s = portal, path, metadata, patience_s
        self.size = path.stat().st_size
        self._pause = pause
        self._bar = ProgressBar(is_kept=True, lines="quarters")
        whole = json.dumps([portal.address, self.size, sorted(metadata.items())])
        name = hashlib.sha256(whole.encode()).hexdigest()[:32]
        self.note = find_folder("state") / f"upload-{name}.json"

    def send(self, *, only_resume: bool = False) -> int:
        """Everything that is not there yet; the number of the submission.

        Raises:
            CommandError: the portal refuses the archive, or does not answer for too long.
        """
        with self._bar:
            address, offset = self._resumed(only_resume=only_resume) or self._begun()
            self._send_parts(address, offset)
        state = self._patiently(lambda: self.portal.ask("GET", address).json())
        if not state["submission"]:
            state = self._patiently(lambda: self.portal.ask("POST", f"{address}/submit").json())
        self.note.unlink(missing_ok=True)
        return int(state["submission"]["id"])

    def _resumed(self, *, only_resume: bool) -> tuple[str, int] | None:
        """What was begun and is known to the portal still."""
        try:
            address = str(json.loads(self.note.read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError, KeyError, TypeError):
            address = ""
        if address:
            try:
                offset = self._patiently(lambda: self._offset(address))
            except Refused as refused:
                if refused.status not in GONE:
                    raise
                self.note.unlink(missing_ok=True)
            else:
                print_message(f"Resuming at {format_size(offset)} of {format_size(self.size)}.")
                return address, offset
        if only_resume:
            raise CommandError(
                f"{self.path}: there is no unfinished upload of it to this edition. Leave --resume out to begin."
            )
        return None

    def _begun(self) -> tuple[str, int]:
        pairs = (f"{key} {b64encode(text.encode()).decode()}" for key, text in self.metadata.items() if text)
        headers = TUS | {"Upload-Length": str(self.size), "Upload-Metadata": ",".join(pairs)}
        response = self._patiently(lambda: self.portal.ask("POST", "/api/uploads/", headers=headers))
        address = urljoin(f"{self.portal.address}/", response.headers["Location"])
        if urlsplit(address)[:2] != urlsplit(self.portal.address)[:2]:
            raise CommandError(f"{self.portal.address} sends the archive elsewhere ({address}); nothing was sent.")
        write_private(self.note, {"address": address, "file": str(self.path.resolve())})
        return address, 0

    def _send_parts(self, address: str, offset: int) -> None:
        last_progress = time.monotonic()
        pause_s = 0.5
        with self.path.open("rb") as stream:
            while offset < self.size:
                before = offset
                try:
                    offset = self._send_part(address, stream, offset)
                except (Unreachable, Refused) as error:
                    self._require_hope(error, last_progress)
                    if pause_s > 2:
                        print_message(f"\n{error} Trying again in {pause_s:.0f} s.")
                    self._pause(pause_s)
                    pause_s = lengthen_pause(pause_s)
                    offset = self._patiently(lambda: self._offset(address))
                if offset > before:
                    last_progress, pause_s = time.monotonic(), 0.5
                show_bytes(self._bar, f"Sending {self.path.name}", offset, self.size)

    def _send_part(self, address: str, stream: Any, offset: int) -> int:
        stream.seek(offset)
        part = stream.read(PART_BYTES)
        if len(part) < min(PART_BYTES, self.size - offset):
            raise CommandError(f"{self.path}: it became shorter while it was sent. Send it again.")
        checksum = b64encode(hashlib.sha256(part).digest()).decode()
        headers = TUS | {
            "Content-Type": "application/offset+octet-stream",
            "Upload-Offset": str(offset),
            "Upload-Checksum": f"sha256 {checksum}",
        }
        response = self.portal.ask("PATCH", address, content=part, headers=headers)
        return int(response.headers["Upload-Offset"])

    def _offset(self, address: str) -> int:
        return int(self.portal.ask("HEAD", address, headers=TUS).headers["Upload-Offset"])

    def _require_hope(self, error: CommandError, last_progress: float) -> None:
        """Raises the problem where trying again is in vain."""
        if isinstance(error, Refused) and error.status not in TRY_AGAIN:
            raise error
        if time.monotonic() - last_progress > self.patience_s:
            raise CommandError(f"{error} {AGAIN}") from error

    def _patiently(self, action: Callable[[], T]) -> T:
        return wait_for(action, patience_s=self.patience_s, pause=self._pause)
