"""Result files of the 2020 and 2022 editions: read whole into claims, with every fault by name, and written.

Known are ``results.txt``, ``results_summary.txt`` and the names under which the baselines were published
(``RESULTS_summary_*``, ``results.anon_*``, ``results.orig_*``). A line is never guessed at: what is not understood is
reported. Formats: protocol 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from evaluation.formats.claims import Claim, ClaimIdentity, WordCounts
from evaluation.formats.expected_results import ExpectedLine, ResultKind, expected_lines
from evaluation.formats.problem_list import ProblemList
from evaluation.formats.problems import Problem, Severity
from evaluation.formats.result_checks import check_results
from evaluation.formats.result_file import ResultFile, is_member, path_training
from evaluation.formats.result_lines import (
    AVERAGE_DECIMALS,
    CATEGORIES,
    KINDS,
    Entry,
    Number,
    Recognition,
    header_name,
    parse_line,
    write_value,
)
from evaluation.formats.text_files import Source, read_text_file, source_name
from evaluation.metrics.averages import weighted_average
from evaluation.protocols.recipes import Recipe, load_recipe

_NAMES = (
    (re.compile(r"results_summary\.txt\Z|results_summary_", re.IGNORECASE), ResultKind.SUMMARY),
    (re.compile(r"results\.anon(_|\Z)"), ResultKind.RETRAINED),
    (re.compile(r"results\.orig(_|\Z)"), ResultKind.ORIGINAL),
)
LONGEST_EXCERPT = 240  # a whole line of word errors with its path
_UNITS = {"eer": "%", "wer": "%", "gain_of_voice_distinctiveness": "dB"}


class ResultWriteError(ValueError):
    """Claims that do not fill a result file: names what is missing or given twice."""


def read_result_file(
    source: Source, *, recipe: Recipe | None = None, kind: ResultKind | None = None, name: str | None = None
) -> ResultFile:
    """Read a result file of 2020 or 2022 and check it.

    Args:
        recipe: of the edition; without one, 2022 or 2020 by what the file holds.
        kind: which of the three files; without one, by its name, or else by what it holds.
        name: the file as its owner knows it.

    The codes of the problems are listed in `evaluation.formats.result_checks`, besides those of the text itself:
    ``unknown-line``, ``blank-line``, ``empty-file``, ``unexpected-block`` (a block or line that the edition lacks).
    """
    name = name or source_name(source)
    text, file_problems = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(file_problems)
    if not text.strip() and not file_problems:
        problems.add(Problem("empty-file", name, "at least one line", "none", "Add the file with its results."))
    entries = _entries(text, name, problems)
    recipe = recipe or load_recipe("2022" if _is_2022(entries) else "2020")
    kind = kind or _kind(source, name, entries, recipe)
    expected = {line.slot: line for line in expected_lines(recipe, kind)}
    claims, repeated = _claims(entries, expected, name, problems)
    lines = len(text.splitlines())
    file = ResultFile(name, recipe.edition, kind, entries, claims, repeated, lines, ())
    of_numbers = check_results(file, recipe) if entries else ()
    return replace(file, problems=(*problems.report(), *of_numbers))


def write_result_file(claims: Iterable[Claim], kind: ResultKind, recipe: Recipe, file: TextIO) -> None:
    """Write claims as the official scripts would; averages that are not given are computed from the printed values.

    Raises:
        ResultWriteError: claims that the file needs are missing or given twice with different values; all are named.
    """
    given = by_identity(claims)
    expected = expected_lines(recipe, kind)
    for line in expected:
        if line.kind == "average" and line.identities[0] not in given:
            given[line.identities[0]] = _average(line, recipe, given)
    missing = [line.name for line in expected for identity in line.identities if identity not in given]
    if missing:
        shown = ", ".join(dict.fromkeys(missing))
        raise ResultWriteError(f"Expected every number of the {kind} results of {recipe.edition}; missing: {shown}.")
    block = ""
    for line in expected:
        value = line_value(line, given)
        if line.kind == "average":
            file.write(f"{line.name}: {value}\n")
        elif line.inline:
            file.write(f"{line.name}  {value}\n")
        else:
            file.write((f"{line.name}\n" if line.name != block else "") + f"  {value}\n")
        block = "" if line.inline else line.name


def by_identity(claims: Iterable[Claim]) -> dict[ClaimIdentity, Claim]:
    """Claims by what they measure.

    Raises:
        ResultWriteError: a number is given twice with different values.
    """
    given: dict[ClaimIdentity, Claim] = {}
    for claim in claims:
        known = given.setdefault(claim.identity, claim)
        if known.written != claim.written:
            raise ResultWriteError(f"Expected one value of {claim.identity}, found {known.written}, {claim.written}.")
    return given


def new_claim(identity: ClaimIdentity, value: float, *, counts: WordCounts | None = None, decoding: str = "") -> Claim:
    """A number of our own as a claim, written as the official scripts print it."""
    if identity.data_set.startswith("average_"):
        unit = _UNITS.get(identity.metric, "")
        return Claim(identity, value, unit, f"{value:.{AVERAGE_DECIMALS}f}", "", 0)
    if identity.metric == "wer":
        return Claim(identity, value, "%", f"{value:.2f}", "", 0, counts, decoding)
    number = _number(identity)
    return Claim(identity, value, number.unit, number.show(value), "", 0)


def claim_value(written: str) -> float:
    """The number of a written value; a ZEBRA category becomes its place, 0 for “0” and 1 to 6 for A to F."""
    return float(CATEGORIES.index(written)) if written in CATEGORIES and written else float(written)


def _number(identity: ClaimIdentity) -> Number:
    wanted = identity.metric, identity.estimator
    return next(n for kind in KINDS.values() for n in kind.numbers if (n.metric, n.estimator) == wanted)


def _entries(text: str, name: str, problems: ProblemList) -> tuple[Entry, ...]:
    entries, block = [], None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            remedy = "It was skipped; remove it."
            problems.add(Problem("blank-line", name, "a result", "a blank line", remedy, Severity.NOTE, number))
        elif header := header_name(line):
            block = header
        elif entry := parse_line(line, number, block):
            entries.append(entry)
        else:
            whole = line.strip()
            shown = whole if len(whole) <= LONGEST_EXCERPT else whole[: LONGEST_EXCERPT - 1] + "…"
            remedy = "Restore the line as the official scripts print it."
            problems.add(Problem("unknown-line", name, "a line of results", f"“{shown}”", remedy, line=number))
    return tuple(entries)


def _is_2022(entries: Iterable[Entry]) -> bool:
    return any(entry.kind not in ("eer", "cllr", "rocch", "wer") for entry in entries)


def _kind(source: Source, name: str, entries: Iterable[Entry], recipe: Recipe) -> ResultKind:
    path = source if isinstance(source, Path) else Path(name)
    if recipe.results is not None and not recipe.results.trial_set:
        return ResultKind.ORIGINAL
    for pattern, kind in _NAMES:
        if pattern.match(path.name):
            return kind
    if path.parent.name.endswith(".orig"):
        return ResultKind.ORIGINAL
    kinds = {entry.kind for entry in entries}
    if "average" in kinds:
        return ResultKind.SUMMARY
    return ResultKind.RETRAINED if "pitch" in kinds or "gain" in kinds else ResultKind.ORIGINAL


def _claims(
    entries: Iterable[Entry], expected: dict[tuple[str, str, str], ExpectedLine], name: str, problems: ProblemList
) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    claims: list[Claim] = []
    repeated: list[Claim] = []
    seen = set()
    for entry in entries:
        line = expected.get(entry.slot)
        if line is None:
            problems.add(_unexpected(entry, name))
            continue
        (repeated if entry.slot in seen else claims).extend(entry_claims(entry, line, name))
        seen.add(entry.slot)
    return tuple(claims), tuple(repeated)


def entry_claims(entry: Entry, line: ExpectedLine, name: str) -> Iterable[Claim]:
    """The claims of one line: what it measures is `line`'s, but which model recognised is told by its path."""
    for identity, written in zip(line.identities, entry.values, strict=True):
        if entry.kind == "average":
            yield Claim(identity, float(written), _UNITS.get(identity.metric, ""), written, name, entry.line)
        elif entry.recognition is None:
            yield Claim(identity, claim_value(written), _number(identity).unit, written, name, entry.line)
        else:
            recognition = entry.recognition
            identity = replace(identity, training=path_training(recognition.path) or identity.training)
            said = recognition.counts, recognition.path, recognition.partial
            yield Claim(identity, float(written), "%", written, name, entry.line, *said)


def _unexpected(entry: Entry, name: str) -> Problem:
    shown = f"{entry.name}, {entry.kind}" + (f" ({entry.slot[2]})" if entry.slot[2] else "")
    remedy = "Remove it, or name the edition that it belongs to."
    return Problem("unexpected-block", name, "a result of this edition and file", shown, remedy, line=entry.line)


def _average(line: ExpectedLine, recipe: Recipe, given: dict[ClaimIdentity, Claim]) -> Claim:
    identity = line.identities[0]
    split = identity.data_set.removeprefix("average_")
    weights = recipe.track.average(identity.metric).weights[split]
    members = {claim.identity.data_set: claim.value for claim in given.values() if is_member(claim.identity, identity)}
    values = [(name, members[name]) for name in weights if name in members]
    return new_claim(identity, weighted_average(values, weights).value)


def line_value(line: ExpectedLine, given: Mapping[ClaimIdentity, Claim]) -> str:
    """The value part of a line from its claims, as the official scripts print it.

    Raises:
        ResultWriteError: a word error rate without its counts.
    """
    claims = [given[identity] for identity in line.identities]
    values = tuple(claim.written for claim in claims)
    recognition = None
    if line.kind == "wer":
        if claims[0].counts is None:
            raise ResultWriteError(f"Expected the word counts of {line.name}, found none.")
        recognition = Recognition(claims[0].counts, claims[0].partial, claims[0].decoding)
    return write_value(Entry(line.name, line.kind, values, 0, line.inline, recognition))
