"""``vp study new``: a listening test of a folder of recordings, or of an edition's systems, described by one file."""

from __future__ import annotations

import tempfile
import time
import zipfile
from pathlib import Path
from typing import Annotated

from typer import Argument

from common.errors import CommandError
from common.terminal import FINE, print_message, print_text
from common.wording import counted
from portal.client.api import Patience, Portal, Server, open_portal
from portal.client.submit import Sender, hash_archive, open_archive, wait_for
from portal.client.workspace import Row

ENDINGS = (".wav", ".flac", ".csv")
ASK_EVERY_S = 2.0


def make_study(
    file: Annotated[Path, Argument(metavar="FILE", help="The file of the test, such as test.toml.")],
    folder: Annotated[
        Path | None, Argument(metavar="FOLDER", help="The folder with a folder for each condition.")
    ] = None,
    patience: Patience = 600,
    server: Server = None,
) -> int:
    """Make a listening test of the recordings in a folder, CONDITION/ITEM.wav or .flac, as a file in TOML describes it.

    Only its title is needed. Without a folder: of the systems of the edition that the file names. The portal checks
    every recording, makes the design and prepares the recordings; then you launch the test on its page. Interrupted at
    any time, the same command continues where it stopped.

        vp study new test.toml recordings
    """
    text = _read(file)
    with open_portal(server) as portal:
        if folder:
            made = _send(portal, text, folder, patience)
        else:
            made = portal.ask("POST", "/api/studies/", files={"test": (None, text)}).json()
    print_text(f"{made['title']}: {made['address']}")
    print_text(f"{made['evaluators']} evaluators, {made['trials']} trials of each.")
    for sentence in made["warnings"]:
        print_text(f"Warning: {sentence}")
    return FINE


class RecordingsSender(Sender):
    """Brings recordings to the portal, of which it makes a test."""

    def _announce(self) -> str:
        told = {**self.metadata, "size": self.size}
        return str(self.portal.ask("POST", "/api/studies/uploads/", json=told).json()["address"])


def _send(portal: Portal, text: str, folder: Path, patience_s: float) -> Row:
    """Pack and send a folder, and return the test once the portal has made it.

    Raises:
        CommandError: it cannot be made of these recordings, or the portal does not answer for too long.
    """
    paths = _list(folder)
    with tempfile.TemporaryDirectory() as place:
        packed = Path(place, f"{folder.resolve().name}.zip")
        with zipfile.ZipFile(packed, "w") as zipped:
            for path in paths:  # the same files give the same archive, by which what was sent of it is known again
                zipped.write(path, path.relative_to(folder).as_posix())
        with open_archive(packed) as archive:
            told = {"file_name": packed.name, "test": text, "sha256": hash_archive(archive)}
            print_message(f"Sending {counted(len(paths), 'file')}.")
            sender = RecordingsSender(portal, archive, told, patience_s=patience_s)
            upload = sender.deliver()
    if sender.was_submitted:
        print_message("These recordings and this file made the test already.")
    else:
        print_message("All is sent. The portal reads the recordings and makes the design.")
    while not upload["study"]:
        if upload["job"]["state"] in {"failed", "cancelled"}:
            raise CommandError(upload["job"]["failure"] or f"The job was cancelled: {upload['job']['address']}")
        if upload["job"]["state"] == "succeeded":
            raise CommandError("The test was made, and has been deleted since.")
        time.sleep(ASK_EVERY_S)
        address = f"/api/uploads/{upload['id']}"
        upload = wait_for(lambda: portal.ask("GET", address).json(), patience_s=patience_s)  # noqa: B023
    study: Row = upload["study"]
    return study


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"{file}: expected a readable TOML file, found “{found}”.") from None


def _list(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise CommandError(f"{folder}: expected a folder with a folder for each condition.")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    if not paths:
        raise CommandError(f"{folder}: expected recordings CONDITION/ITEM.wav or .flac, found none.")
    return paths
