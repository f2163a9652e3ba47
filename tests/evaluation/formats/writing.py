"""Result files of 2020 and 2022 written as the official scripts do, which only tests need: what was read, again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from evaluation.formats.results import KINDS, NumberIdentity, Recognition, ReportedNumber, ResultEntry
from evaluation.metrics.averages import weighted_average
from evaluation.objective_results.results.expected import ExpectedLine, ResultKind, expected_lines, is_member
from evaluation.objective_results.results.results_2022 import SingleFile, make_reported_number, single_files
from evaluation.protocols.recipes import Recipe


class ResultWriteError(ValueError):
    """Reported numbers that do not fill a result file: names what is missing or given twice."""


def write_result_file(
    reported_numbers: Iterable[ReportedNumber], kind: ResultKind, recipe: Recipe, file: TextIO
) -> None:
    """Write reported numbers as the official scripts would; missing averages are computed from the printed values.

    Raises:
        ResultWriteError: numbers that the file needs are missing or given twice with different values; all are named.
    """
    given = by_identity(reported_numbers)
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


def by_identity(reported_numbers: Iterable[ReportedNumber]) -> dict[NumberIdentity, ReportedNumber]:
    """Reported numbers by what they measure.

    Raises:
        ResultWriteError: a number is given twice with different values.
    """
    given: dict[NumberIdentity, ReportedNumber] = {}
    for reported in reported_numbers:
        known = given.setdefault(reported.identity, reported)
        if known.written != reported.written:
            raise ResultWriteError(
                f"Expected one value of {reported.identity}, found {known.written}, {reported.written}."
            )
    return given


def _average(line: ExpectedLine, recipe: Recipe, given: dict[NumberIdentity, ReportedNumber]) -> ReportedNumber:
    identity = line.identities[0]
    split = identity.data_set.removeprefix("average_")
    weights = recipe.track.average(identity.metric).weights[split]
    members = {
        reported.identity.data_set: reported.value
        for reported in given.values()
        if is_member(reported.identity, identity)
    }
    values = [(name, members[name]) for name in weights if name in members]
    return make_reported_number(identity, weighted_average(values, weights).value)


def write_value(entry: ResultEntry) -> str:
    """The value part of a line as the official scripts print it; an average is nothing but its value."""
    if entry.kind == "average":
        return entry.values[0]
    if entry.recognition is None:
        return KINDS[entry.kind].template.format(*entry.values)
    counts, recognition = entry.recognition.counts, entry.recognition
    return (
        f"%WER {entry.values[0]} [ {counts.errors} / {counts.words}, {counts.insertions} ins, {counts.deletions} del, "
        f"{counts.substitutions} sub ]{' [PARTIAL]' if recognition.partial else ''} {recognition.path}".rstrip()
    )


def line_value(line: ExpectedLine, given: Mapping[NumberIdentity, ReportedNumber]) -> str:
    """The value part of a line from its reported numbers, as the official scripts print it.

    Raises:
        ResultWriteError: a word error rate without its counts.
    """
    reported_numbers = [given[identity] for identity in line.identities]
    values = tuple(reported.written for reported in reported_numbers)
    recognition = None
    if line.kind == "wer":
        if reported_numbers[0].counts is None:
            raise ResultWriteError(f"Expected the word counts of {line.name}, found none.")
        recognition = Recognition(reported_numbers[0].counts, reported_numbers[0].partial, reported_numbers[0].decoding)
    return write_value(ResultEntry(line.name, line.kind, values, 0, line.inline, recognition))


# What surrounds the lines; {} is one line each. The minDCF values may be empty, says the protocol.
_TEMPLATES = {
    "EER": "{}\nminDCF(p-target=0.01): \nminDCF(p-target=0.001): \n",
    "Cllr": "{}\n     {}\n\n",
    "linkability_log": "{}\n\n",
    "zebra": "\n<name>\n{}\n{}\n\n",
}


def write_single_file(reported_numbers: Iterable[ReportedNumber], file: SingleFile, out: TextIO) -> None:
    """Write the numbers of one test as the official scripts would; the minDCF values of ``EER`` are left empty.

    Args:
        reported_numbers: with those of the file; others are passed over.

    Raises:
        ResultWriteError: reported numbers that the file needs are missing or given twice with different values.
    """
    given = by_identity(reported_numbers)
    wanted = [identity for line in file.lines for identity in line.identities]
    if missing := [f"{one.estimator} {one.metric}".strip() for one in wanted if one not in given]:
        raise ResultWriteError(f"Expected every number of {file.path}; missing: {', '.join(missing)}.")
    values = [line_value(line, given) for line in file.lines]
    template = _TEMPLATES.get(file.path.rpartition("/")[2], "{}\n" * len(values))
    out.write(template.replace("<name>", file.test).format(*values))


def write_single_files(
    folder: Path, reported_numbers: Iterable[ReportedNumber], recipe: Recipe, kind: ResultKind
) -> tuple[Path, ...]:
    """Write every single file of a results directory for which all numbers are given; the paths written.

    Raises:
        ResultWriteError: a number is given twice with different values.
        ProblemsError: the edition has no such directory.
    """
    given = by_identity(reported_numbers)
    written = []
    for file in single_files(recipe, kind):
        if all(identity in given for line in file.lines for identity in line.identities):
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as out:
                write_single_file(given.values(), file, out)
            written.append(path)
    return tuple(written)
