"""``vp study new``: a listening test of a folder of recordings, or of an edition's systems, described by one file."""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from common.errors import CommandError
from common.terminal import FINE, print_message, print_text
from portal.client.api import add_server_arguments, open_portal

DESCRIPTION = (
    "Make a listening test of the recordings in a folder, CONDITION/ITEM.wav or .flac, as a file in TOML describes it; "
    "only its title is needed. Without a folder: of the systems of the edition that the file names. The portal checks "
    "every recording, makes the design and prepares the recordings; then you launch the test on its page."
)
ENDINGS = (".wav", ".flac", ".csv")
SENDING_S = 1800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["new"], help="new: make a test")
    parser.add_argument("file", type=Path, metavar="FILE", help="the file of the test, such as test.toml")
    parser.add_argument(
        "folder", type=Path, nargs="?", metavar="FOLDER", help="the folder with a folder for each condition"
    )
    add_server_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Pack the folder where there is one, send it with the file, and say where the test is and what to look at."""
    text, folder = _read(chosen.file), chosen.folder
    paths = _list(folder) if folder else []
    with tempfile.TemporaryFile(suffix=".zip") as packed, open_portal(chosen.server) as portal:
        sent: dict[str, Any] = {"files": {"test": (None, text)}}
        if folder:
            with zipfile.ZipFile(packed, "w") as archive:
                for path in paths:
                    archive.write(path, path.relative_to(folder).as_posix())
            packed.seek(0)
            print_message(f"Sending {len(paths):,} files.")
            sent["files"]["archive"] = (f"{folder.resolve().name}.zip", packed)
        made = portal.ask("POST", "/api/studies/", timeout=SENDING_S, **sent).json()
    print_text(f"{made['title']}: {made['address']}")
    print_text(f"{made['evaluators']} evaluators, {made['trials']} trials of each.")
    for sentence in made["warnings"]:
        print_text(f"Warning: {sentence}")
    return FINE


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: expected a readable TOML file, found “{error}”.") from None


def _list(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise CommandError(f"{folder}: expected a folder with a folder for each condition.")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    if not paths:
        raise CommandError(f"{folder}: expected recordings CONDITION/ITEM.wav or .flac, found none.")
    return paths
