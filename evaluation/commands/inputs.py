"""The result that a person names: a file, a directory, or one system among several."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from evaluation.commands.terminal import CommandError
from evaluation.formats.results import SystemResults, read_published, read_results
from evaluation.protocols.recipes import Recipe, load_recipe, read_recipe

_UNREADABLE = {"no-results", "empty-file", "wrong-encoding", "not-text", "missing-file", "not-a-file"}


def add_recipe_argument(parser: argparse._ActionsContainer) -> None:
    """The option that names a recipe of one's own."""
    parser.add_argument(
        "--recipe", type=Path, metavar="FILE", help="an organizer's own recipe (TOML), as the page of an edition has it"
    )


def recipe_at(path: Path | None) -> Recipe | None:
    """The recipe of ``--recipe``; None where it was not given.

    Raises:
        RecipeError: it cannot be read, or is none.
    """
    return None if path is None else read_recipe(path)


def recipe_of(system: SystemResults, own: Recipe | None) -> Recipe:
    """What the results of a system were held against."""
    return own or load_recipe(system.edition)


def results_at(path: Path, edition: str | None = None, recipe: Recipe | None = None) -> tuple[SystemResults, ...]:
    """Everything that lies at a path; ``FOLDER/SYSTEM`` is one system of a folder of published files.

    Args:
        recipe: an organizer's own, in place of an edition's.

    Raises:
        CommandError: nothing there, or nothing that can be read as results.
    """
    if os.path.exists(path):  # noqa: PTH110 (false where a folder above may not be entered; Path.exists raises)
        return _readable(path, read_results(path, edition=edition, recipe=recipe))
    folder = path.parent
    found = read_published(folder, edition=edition, recipe=recipe) if folder != Path() else ()
    chosen = tuple(one for one in found if one.system == path.name and one.claims)
    if not chosen:
        known = ", ".join(one.system for one in found if one.claims)
        hint = f"{folder} holds the systems {known}." if known else "Name a result file or a results directory."
        raise CommandError(f"{path}: expected results, found no such file, directory or system. {hint}")
    return chosen


def one_result_at(path: Path, recipe: Recipe | None = None) -> SystemResults:
    """The only system at a path.

    Raises:
        CommandError: as `results_at`, or several systems.
    """
    found = results_at(path, recipe=recipe)
    if len(found) > 1:
        names = ", ".join(one.system for one in found)
        raise CommandError(f"{path}: expected one system, found {names}. Name one, such as {path / found[0].system}.")
    return found[0]


def _readable(path: Path, found: tuple[SystemResults, ...]) -> tuple[SystemResults, ...]:
    if not any(one.claims for one in found):
        faults = [problem for one in found for problem in one.problems]
        first = next((one for one in faults if one.code in _UNREADABLE), faults[0] if faults else None)
        reason = f" {first.sentence()}" if first else ""
        raise CommandError(f"{path}: expected results of a challenge, found no number.{reason}")
    return found
