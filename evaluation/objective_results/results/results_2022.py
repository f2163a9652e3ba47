"""Result files and single files of 2020 and 2022, read into reported numbers, every problem by name.

**Result files** (`read_result_file`). Known are ``results.txt``, ``results_summary.txt`` and the names under which the
baselines were published (``RESULTS_summary_*``, ``results.anon_*``, ``results.orig_*``). A line is never guessed at:
what is not understood is reported.

**Single files** of a results directory (`read_single_file`) have the numbers of one test each:
``ASV-*/{EER,Cllr,linkability_log,zebra}``, ``ASR-*`` and ``similarity_matrices_DeID_Gvd/<trials>/{DeIDentification,
gain_of_voice_distinctiveness}``.

Conventions: the path of a single file is relative to the results directory. Formats: protocol 1.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.problems import Problem, ProblemList, Severity
from common.text_files import Source, read_text_file, source_name
from evaluation.formats.results import (
    AVERAGE_DECIMALS,
    CATEGORIES,
    KINDS,
    LineNumber,
    NumberIdentity,
    ReportedNumber,
    ResultEntry,
    WordCounts,
    header_name,
    parse_line,
    parse_value,
)
from evaluation.objective_results.results.checks import check_results
from evaluation.objective_results.results.expected import (
    ExpectedLine,
    ResultFile,
    ResultKind,
    expected_lines,
    path_training,
)
from evaluation.protocols.recipes import Recipe, load_recipe

_NAMES = (
    (re.compile(r"results_summary\.txt\Z|results_summary_", re.IGNORECASE), ResultKind.SUMMARY),
    (re.compile(r"results\.anon(_|\Z)"), ResultKind.RETRAINED),
    (re.compile(r"results\.orig(_|\Z)"), ResultKind.ORIGINAL),
)
LONGEST_EXCERPT = 240  # a whole line of word errors with its path
_UNITS = {"eer": "%", "wer": "%", "gain_of_voice_distinctiveness": "dB"}


def read_result_file(
    source: Source, *, recipe: Recipe | None = None, kind: ResultKind | None = None, name: str | None = None
) -> ResultFile:
    """Read a result file of 2020 or 2022 and check it.

    Args:
        recipe: of the edition; without one, 2022 or 2020 by what the file holds.
        kind: which of the three files; without one, by its name, or else by what it holds.
        name: the file as its owner knows it.

    The codes of the problems are listed in `evaluation.objective_results.results.checks`, besides those of the text
    itself: ``unknown-line``, ``blank-line``, ``empty-file``, ``unexpected-block`` (a block or line that the edition
    lacks).
    """
    name = name or source_name(source)
    text, file_problems = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(file_problems)
    if not text.strip() and not file_problems:
        problems.add(Problem("empty-file", name, "at least one line", "none", "Add the file with its results."))
    entries = _entries(text, name, problems)
    is_2022 = any(entry.kind not in ("eer", "cllr", "rocch", "wer") for entry in entries)
    recipe = recipe or load_recipe("2022" if is_2022 else "2020")
    kind = kind or _kind(source, name, entries, recipe)
    expected = {line.slot: line for line in expected_lines(recipe, kind)}
    reported_numbers, repeated = _read_reported(entries, expected, name, problems)
    lines = len(text.splitlines())
    file = ResultFile(name, recipe.edition, kind, entries, reported_numbers, repeated, lines, ())
    of_numbers = check_results(file, recipe) if entries else ()
    return replace(file, problems=(*problems.report(), *of_numbers))


def make_reported_number(
    identity: NumberIdentity, value: float, *, counts: WordCounts | None = None, decoding: str = ""
) -> ReportedNumber:
    """Return a number of our own as a reported number, written as the official scripts print it."""
    if identity.data_set.startswith("average_"):
        unit = _UNITS.get(identity.metric, "")
        return ReportedNumber(identity, value, unit, f"{value:.{AVERAGE_DECIMALS}f}", "", 0)
    if identity.metric == "wer":
        return ReportedNumber(identity, value, "%", f"{value:.2f}", "", 0, counts, decoding)
    number = _number(identity)
    return ReportedNumber(identity, value, number.unit, number.show(value), "", 0)


def parse_number(written: str) -> float:
    """Return the number of a written value; a ZEBRA category becomes its place, 0 for “0” and 1 to 6 for A to F."""
    return float(CATEGORIES.index(written)) if written in CATEGORIES and written else float(written)


def _number(identity: NumberIdentity) -> LineNumber:
    wanted = identity.metric, identity.estimator
    return next(n for kind in KINDS.values() for n in kind.numbers if (n.metric, n.estimator) == wanted)


def _entries(text: str, name: str, problems: ProblemList) -> tuple[ResultEntry, ...]:
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


def _kind(source: Source, name: str, entries: Iterable[ResultEntry], recipe: Recipe) -> ResultKind:
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


def _read_reported(
    entries: Iterable[ResultEntry], expected: dict[tuple[str, str, str], ExpectedLine], name: str, problems: ProblemList
) -> tuple[tuple[ReportedNumber, ...], tuple[ReportedNumber, ...]]:
    reported_numbers: list[ReportedNumber] = []
    repeated: list[ReportedNumber] = []
    seen = set()
    for entry in entries:
        line = expected.get(entry.slot)
        if line is None:
            shown = f"{entry.name}, {entry.kind}" + (f" ({entry.slot[2]})" if entry.slot[2] else "")
            expected_here = "a result of this edition and file"
            remedy = "Remove it, or name the edition that it belongs to."
            problems.add(Problem("unexpected-block", name, expected_here, shown, remedy, line=entry.line))
            continue
        (repeated if entry.slot in seen else reported_numbers).extend(read_entry(entry, line, name))
        seen.add(entry.slot)
    return tuple(reported_numbers), tuple(repeated)


def read_entry(entry: ResultEntry, line: ExpectedLine, name: str) -> Iterable[ReportedNumber]:
    """Yield the numbers of one line: what it measures is `line`'s, but which model recognised is told by its path."""
    for identity, written in zip(line.identities, entry.values, strict=True):
        if entry.kind == "average":
            yield ReportedNumber(identity, float(written), _UNITS.get(identity.metric, ""), written, name, entry.line)
        elif entry.recognition is None:
            yield ReportedNumber(identity, parse_number(written), _number(identity).unit, written, name, entry.line)
        else:
            recognition = entry.recognition
            identity = replace(identity, training=path_training(recognition.path) or identity.training)
            said = recognition.counts, recognition.path, recognition.partial
            yield ReportedNumber(identity, float(written), "%", written, name, entry.line, *said)


SIMILARITY_FOLDER = "similarity_matrices_DeID_Gvd"
_DETECTION_FILES = {
    "EER": ("eer",),
    "Cllr": ("cllr", "rocch"),
    "linkability_log": ("linkability",),
    "zebra": ("population", "individual"),
}
_DISTINCTIVENESS_FILES = {"DeIDentification": ("de_identification",), "gain_of_voice_distinctiveness": ("gain",)}
_MIN_DCF = re.compile(r"minDCF\(p-target=[\d.]+\): *\S*\Z")


@dataclass(frozen=True, slots=True)
class SingleFile:
    """One file of a results directory.

    Attributes:
        path: such as ``ASV-libri_dev_enrolls-libri_dev_trials_f/EER``.
        test: name of the test, such as ``ASV-libri_dev_enrolls-libri_dev_trials_f``.
        lines: what it holds, in order.
    """

    path: str
    test: str
    lines: tuple[ExpectedLine, ...]


def single_files(recipe: Recipe, kind: ResultKind) -> tuple[SingleFile, ...]:
    """Return every single file of the results directory of a kind of model.

    Raises:
        ProblemsError: the edition has no such directory.
    """
    blocks: dict[str, list[ExpectedLine]] = {}
    for line in expected_lines(recipe, kind):
        blocks.setdefault(line.name, []).append(line)
    return tuple(file for name, lines in blocks.items() for file in _list_single_files(name, lines))


def read_single_file(
    source: Source, file: SingleFile, problems: ProblemList, name: str | None = None
) -> list[ReportedNumber]:
    """Return the numbers of a single file; what is wrong with it is added to `problems`.

    Problems: those of the text itself, ``unknown-line`` and ``missing-result``. minDCF values are passed over.
    """
    name = name or source_name(source)
    text, text_problems = read_text_file(source, name)
    problems.keep(text_problems)
    slots = {line.slot: line for line in file.lines}
    label_left = file.path.endswith("/zebra")  # one line of this file is a label
    reported_numbers: list[ReportedNumber] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or (file.path.endswith("/EER") and _MIN_DCF.match(stripped)):
            continue
        entry = parse_value(stripped, number, file.test, inline=False)
        if entry and entry.slot in slots:
            reported_numbers += read_entry(entry, slots.pop(entry.slot), name)
        elif label_left and entry is None:
            label_left = False
        else:
            remedy = "Restore the file as the official script wrote it."
            problems.add(Problem("unknown-line", name, "a result of this file", f"“{stripped}”", remedy, line=number))
    for slot in slots:
        remedy = "Run that part of the evaluation."
        problems.add(Problem("missing-result", name, " ".join(slot).strip(), "nothing", remedy))
    return reported_numbers


def _list_single_files(name: str, lines: Sequence[ExpectedLine]) -> Iterator[SingleFile]:
    if name.startswith("ASR-"):
        yield SingleFile(name, name, tuple(lines))
        return
    is_detection = name.startswith("ASV-")
    folder = name if is_detection else f"{SIMILARITY_FOLDER}/{name}"
    for file, kinds in (_DETECTION_FILES if is_detection else _DISTINCTIVENESS_FILES).items():
        if wanted := tuple(line for line in lines if line.kind in kinds):
            yield SingleFile(f"{folder}/{file}", name, wanted)
