"""The folder of an edition on a team's machine, and what the edition asks for: shared by data, run, pack and submit.

``data/NAME/`` is a Kaldi directory for each data set, with its recordings in ``wav/``; ``lists/`` holds trial lists and
expected utterances; ``anonymised/NAME_anon/`` the anonymised speech; ``EDITION.zip`` the archive. The suffix of
anonymised speech is the edition's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from typer import Argument, Option

from common.errors import CommandError, Refused
from evaluation.protocols.recipes import Recipe
from portal.client.api import Portal

Row = dict[str, Any]
EditionName = Annotated[str, Argument(metavar="EDITION", help="Name of the edition, as in its address.")]
FOLDER_HELP = "Folder of the edition on this machine, by default one with the name of the edition, here."
EditionFolder = Annotated[Path | None, Option("--to", metavar="DIR", help=FOLDER_HELP)]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the files of an edition lie."""

    edition: str
    folder: Path

    @property
    def data(self) -> Path:
        """Return the originals, a Kaldi directory for each data set."""
        return self.folder / "data"

    @property
    def lists(self) -> Path:
        """Trial lists and expected utterances."""
        return self.folder / "lists"

    def find_trials(self, recipe: Recipe) -> dict[str, Path]:
        """Find the organizer's trials by trial set, as far as `vp data` brought them."""
        found = {}
        for one in recipe.sets("trial"):
            names = (f"{one.name}-trials-{one.enrolment}.txt", f"{one.name}-trials.txt")
            if path := next((self.lists / name for name in names if (self.lists / name).is_file()), None):
                found[one.name] = path
        return found

    @property
    def anonymised(self) -> Path:
        """Return the anonymised speech."""
        return self.folder / "anonymised"

    @property
    def archive(self) -> Path:
        """Return what is submitted."""
        return self.folder / f"{self.edition}.zip"


@dataclass(frozen=True, slots=True)
class ExpectedSet:
    """A data set whose speech an edition asks for.

    directory: of its anonymised speech. role, split: as voices are planned. is_required: whether an archive without it
    is refused.
    """

    name: str
    directory: str
    role: str
    split: str
    utterances: int
    is_required: bool


@dataclass(frozen=True, slots=True)
class AskedArchive:
    """What an archive must hold, without the names of its utterances."""

    suffix: str
    data_sets: tuple[ExpectedSet, ...]
    description_required: bool
    takes_results: bool
    largest_archive_bytes: int


def find_workspace(edition: str, folder: Path | None) -> Workspace:
    """Return the folder that was named, or the usual one."""
    if not edition or "/" in edition or edition.startswith("."):
        raise CommandError(f"EDITION: expected the name of an edition, as in its address, found “{edition}”.")
    return Workspace(edition, folder or Path(edition))


def edition_by(portal: Portal, name: str) -> Row:
    """Return the edition of this name.

    Raises:
        CommandError: there is none, or none that this person sees.
    """
    try:
        found: Row = portal.get(f"editions/{quote(name, safe='')}/")
    except Refused as refused:
        if refused.status != 404:
            raise
        known = ", ".join(one["name"] for one in portal.every("editions/")) or "none"
        raise CommandError(f"There is no edition {name}, or you may not see it. You see: {known}.") from refused
    return found


def not_taking_part(portal: Portal, edition: str) -> CommandError:
    """Return why the portal tells this person nothing that is for teams alone.

    Raises:
        CommandError: there is no such edition.
    """
    edition_by(portal, edition)
    status = f"{portal.address}/editions/{quote(edition, safe='')}/"
    return CommandError(
        f"You do not take part in {edition}: this is for approved teams and organizers. Your next step is on {status}."
    )


def fetch_requirements(portal: Portal, edition: str) -> AskedArchive:
    """Return what an archive of this edition must hold.

    Raises:
        CommandError: there is no such edition, or the portal tells something else.
    """
    try:
        found = portal.get(f"editions/{quote(edition, safe='')}/requirements/")
    except Refused as refused:
        if refused.status != 404:
            raise
        edition_by(portal, edition)
        raise
    try:
        return AskedArchive(
            suffix=str(found["suffix"]),
            data_sets=tuple(map(_asked_set, found["data_sets"])),
            description_required=bool(found["description_required"]),
            takes_results=bool(found["results"]["kinds"]),
            largest_archive_bytes=int(found["largest_archive_bytes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise unknown_answer(portal) from error


def unknown_answer(portal: Portal) -> CommandError:
    """Return what to say of an answer that lacks what this program reads."""
    return CommandError(f"{portal.address} gives an answer that this version of vp cannot read. Update it.")


def _asked_set(row: Mapping[str, Any]) -> ExpectedSet:
    return ExpectedSet(
        name=str(row["name"]),
        directory=str(row["directory"]),
        role=str(row["role"]),
        split=str(row["split"]),
        utterances=int(row["utterances"]),
        is_required=bool(row["required"]),
    )
