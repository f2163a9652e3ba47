"""An analysis made again from its bundle, and held against what the bundle holds, file by file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from listening.analysis.analyse import Progress, analyse
from listening.analysis.bundle import (
    FIGURES,
    INPUTS,
    MANIFEST,
    RESULTS,
    TABLES,
    read_inputs,
    read_members,
    result_files,
)
from listening.analysis.tables import Results

_HASH = re.compile(r"([0-9a-f]{64}) [ *](.+)")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Attributes:
    results: made now.
    equal: how many tables came out the same byte for byte.
    differing: a sentence for each table that did not, or that only one side has.
    damaged: files of the bundle that its list of hashes does not know as they are.
    """

    results: Results
    equal: int
    differing: tuple[str, ...]
    damaged: tuple[str, ...]


def reproduce(source: Path | bytes, place: str, progress: Progress | None = None) -> Reproduction:
    """Analyse the inputs of a bundle again and compare the tables.

    Args:
        source: a bundle, or a zip of inputs alone, which leaves nothing to compare.
        place: what it is called, for what is said about it.

    Raises:
        AnalysisInputError: it is neither, or its inputs cannot be analysed.
    """
    inputs, settings = read_inputs(source, place)
    held = read_members(source, place)
    results = analyse(inputs, settings, progress)
    made = {name: content for name, content in result_files(results).items() if name.startswith(TABLES)}
    before = {name: content for name, content in held.items() if name.startswith(TABLES)}
    differing = tuple(_differences(before, made)) if before else ()
    equal = sum(before.get(name) == content for name, content in made.items())
    return Reproduction(results, equal, differing, tuple(_damaged(held)))


def differing_figures(source: Path | bytes, place: str, made: Mapping[str, bytes]) -> list[str]:
    """Names of figures that the bundle holds in other bytes; those that were not made now are left aside."""
    held = read_members(source, place)
    return [name for name, content in made.items() if held.get(f"{FIGURES}{name}", content) != content]


def _differences(before: Mapping[str, bytes], made: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*before, *made}):
        if name not in made:
            yield f"{name}: stands in the bundle, and was not made now."
        elif name not in before:
            yield f"{name}: was made now, and stands not in the bundle."
        elif before[name] != made[name]:
            yield _first_difference(name, before[name], made[name])


def _first_difference(name: str, before: bytes, made: bytes) -> str:
    old, new = before.decode("utf-8", "replace").splitlines(), made.decode("utf-8", "replace").splitlines()
    pairs = zip(old, new, strict=False)
    line = next((number for number, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
    shown = [f"“{rows[line][:80]}”" if line < len(rows) else "no such line" for rows in (old, new)]
    return f"{name}, line {line + 1}: the bundle has {shown[0]}, now it is {shown[1]}."


def _damaged(held: Mapping[str, bytes]) -> Iterator[str]:
    """Files whose bytes are not those that the list of hashes says, that are missing, or that it does not name.

    A zip of inputs alone has no list.
    """
    if MANIFEST not in held:
        if any(name == RESULTS or name.startswith((INPUTS, TABLES, FIGURES)) for name in held):
            yield f"{MANIFEST}: is missing from the bundle, so nothing says whether its files were changed."
        return
    named = {MANIFEST}
    for line in held.get(MANIFEST, b"").decode("utf-8", "replace").splitlines():
        if (found := _HASH.fullmatch(line)) is None:
            yield f"{MANIFEST}: cannot be read where it says “{line[:60]}”."
            continue
        named.add(found[2])
        if found[2] not in held:
            yield f"{found[2]}: is missing from the bundle."
        elif hashlib.sha256(held[found[2]]).hexdigest() != found[1]:
            yield f"{found[2]}: was changed after the bundle was made."
    for name in held:
        if name not in named:
            yield f"{name}: stands in the bundle, and {MANIFEST} does not name it."
