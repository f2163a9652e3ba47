"""Whether a recipe can be read, has the track that is asked for, and fits the corpus of its edition.

Pure functions; each fault is one sentence. Data sets of a corpus are known by their name, or by the directory that the
recipe states; what the recipe counts or hashes must be what the corpus holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from evaluation.metrics.catalogue import UnknownMetricError, find_metric
from evaluation.protocols.recipes import DataSet, Recipe, RecipeError, parse_recipe

LARGEST_RECIPE_BYTES = 1 << 20
ROLES_OF_A_CORPUS = ("enrolment", "trial", "training")
HASH_DIGITS = 16


@dataclass(frozen=True)
class HeldSet:
    """A data set as a corpus holds it."""

    role: str
    utterances: tuple[str, ...]


def read_recipe_text(text: str, *, file: str) -> Recipe:
    """A recipe that computes: `parse_recipe`, and every metric that it names is known.

    Raises:
        RecipeError: with a sentence for each thing that is wrong with the text.
    """
    if len(text.encode("utf-8", "replace")) > LARGEST_RECIPE_BYTES:
        raise RecipeError(f"{file}: expected at most {LARGEST_RECIPE_BYTES // 1024} KiB of text, found more.")
    try:
        return parse_recipe(text, file=file, metric_fault=_metric_fault)
    except RecipeError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise RecipeError(
            f"{file}: expected tables, lists and numbers as in the shipped recipes, found a value of another kind "
            f"({error}). Compare it with the recipe of an edition, which can be downloaded."
        ) from error


def track_problem(recipe: Recipe, track: str) -> str:
    """Why a track cannot be the one of an edition, or ""; a recipe with one track needs no name."""
    names = ", ".join(recipe.tracks)
    if track and track not in recipe.tracks:
        return f"Expected one of the recipe's tracks ({names}), found “{track}”."
    if not track and len(recipe.tracks) > 1:
        return f"The recipe has several tracks: {names}. Name the one of this edition."
    return ""


def contradictions(recipe: Recipe, corpus: str, held: Mapping[str, HeldSet]) -> list[str]:
    """Where the data sets of a recipe contradict those of a corpus; a set that the corpus lacks is no contradiction.

    Args:
        corpus: its name, for the sentences.
        held: the data sets of the corpus by name.
    """
    wanted = [one for one in recipe.data_sets.values() if one.role in ROLES_OF_A_CORPUS]
    pairs = [(one, found) for one in wanted if (found := _held(one, held)) is not None]
    if wanted and not pairs:
        return [
            f"The corpus {corpus} holds none of the {len(wanted)} enrolment, trial and training sets of the recipe: "
            f"expected {_some(one.name for one in wanted)}, found {_some(held)}."
        ]
    return [sentence for one, found in pairs for sentence in _differences(one, found, corpus)]


def missing_sets(recipe: Recipe, held: Iterable[str]) -> list[str]:
    """The enrolment, trial and training sets of a recipe that a corpus lacks."""
    names = set(held)
    wanted = [one for one in recipe.data_sets.values() if one.role in ROLES_OF_A_CORPUS]
    return [one.name for one in wanted if not names & {one.name, one.directory}]


def _held(one: DataSet, held: Mapping[str, HeldSet]) -> HeldSet | None:
    return held.get(one.name) or held.get(one.directory)


def _differences(one: DataSet, found: HeldSet, corpus: str) -> Iterator[str]:
    place = f"The data set {one.name} of the recipe and of the corpus {corpus} differ"
    if one.role != found.role:
        yield f"{place}: expected the role {one.role}, found {found.role}."
    if one.utterances not in (None, len(found.utterances)):
        yield f"{place}: expected {one.utterances} utterances, found {len(found.utterances)}."
    elif one.id_hash and one.id_hash != (digits := _id_hash(found.utterances)):
        yield f"{place}: expected utterances whose names hash to {one.id_hash}, found {digits}."


def _id_hash(names: Iterable[str]) -> str:
    lines = sorted(name.encode() + b"\n" for name in names)
    return hashlib.sha256(b"".join(lines)).hexdigest()[:HASH_DIGITS]


def _metric_fault(metric: str, estimator: str) -> str:
    try:
        find_metric(metric, estimator)
    except UnknownMetricError as error:
        return str(error)
    return ""


def _some(names: Iterable[str]) -> str:
    every = list(names)
    shown = ", ".join(every[:4])
    return f"{shown} and {len(every) - 4} more" if len(every) > 4 else shown or "none"
