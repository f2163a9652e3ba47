"""Result files of the 2024 and 2026 editions (usually ``result_for_rank*``): read whole and checked.

A file is a sequence of sections under ``---- … ----`` lines, each with a text table of fixed columns as pandas prints
it: the row index may be absent or jump, columns come in any order, and a section may come again, once per language.
Formats: protocol 4 and 4.1. Data sets are named ``<dataset>_<split>`` with ``_trials_<gender>`` or ``_asr``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from common.problems import Problem, ProblemList, Severity
from common.text_files import Source, read_text_file, source_name
from evaluation.formats.results import Gender, NumberIdentity, ReportedNumber, Speech
from evaluation.objective_results.results.checks import unlike_originals
from evaluation.protocols.recipes import Recipe, load_recipe

_RULE = re.compile(r"---- (?P<title>.+?) ----\Z")
_TIME = re.compile(r"Time: (?P<time>\d\d-\d\d-\d\d_\d\d:\d\d)\Z")
_SPEECH = {"original": Speech.ORIGINAL, "orig": Speech.ORIGINAL, "anon": Speech.ANONYMISED}
_WHERE = ("dataset", "split")
_ROLES = {"trial": "a trial list", "recognition": "a recognition set", "emotion": "an emotion set"}
UAR_TOLERANCE = 0.0015  # per cent: what three decimals allow


@dataclass(frozen=True, slots=True)
class SectionKind:
    """A section: its title, the columns that say where and how, those with numbers, and the decimals of these."""

    title: str
    keys: tuple[str, ...]
    decimals: int
    training: Speech | None


SER = SectionKind("SER results", (*_WHERE, "ser"), 4, Speech.ORIGINAL)
ASV = SectionKind("ASV_eval results", (*_WHERE, "gender", "enrollment", "trial"), 3, Speech.ORIGINAL)
ASR = SectionKind("ASR results", (*_WHERE, "asr"), 3, Speech.ORIGINAL)
ASV_ANON = SectionKind("ASV_eval^anon results", ASV.keys, 3, Speech.ANONYMISED)
SECTIONS = {kind.title: kind for kind in (SER, ASV, ASR, ASV_ANON)}


@dataclass(frozen=True, slots=True)
class RankFile:
    """A ``result_for_rank*`` file that was read.

    Attributes:
        name: the file as its owner knows it.
        edition: such as ``2024``.
        suffix: of the anonymised sets, from the file's name; empty where the name has none.
        times: as written, in file order.
        sections: titles in file order, repeated ones included.
        rows: number of table rows that were read.
        reported_numbers: every number, in file order; of a repeated row the first one.
        repeated: the numbers of the repetitions.
        problems: everything that could be seen from this file alone.
    """

    name: str
    edition: str
    suffix: str
    times: tuple[str, ...]
    sections: tuple[str, ...]
    rows: int
    reported_numbers: tuple[ReportedNumber, ...]
    repeated: tuple[ReportedNumber, ...]
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Table:
    kind: SectionKind
    header: list[str] = field(default_factory=list)
    broken: bool = False  # the header is; its rows are passed over


@dataclass(slots=True)
class _Reading:
    name: str
    problems: ProblemList = field(default_factory=ProblemList)
    times: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    reported_numbers: dict[NumberIdentity, ReportedNumber] = field(default_factory=dict)
    repeated: list[ReportedNumber] = field(default_factory=list)
    rows: int = 0
    table: _Table | None = None

    def add_problem(
        self, code: str, expected: str, found: str, remedy: str, line: int, severity: Severity = Severity.ERROR
    ) -> None:
        self.problems.add(Problem(code, self.name, expected, found, remedy, severity, line))


def is_title(line: str) -> bool:
    """Return whether a line is the title of a section, by which such a file is known."""
    rule = _RULE.match(line.strip())
    return rule is not None and rule["title"] in SECTIONS


def missing_results(name: str, reported_numbers: Sequence[ReportedNumber], recipe: Recipe) -> Iterator[Problem]:
    """Yield what the ranking of a track needs and the numbers of a system lack; the track is the one that they are of.

    Args:
        name: of the file in which it is missed.
    """
    found = {reported.identity for reported in reported_numbers}
    named = {identity.data_set for identity in found}
    averages = [
        average
        for track in recipe.tracks.values()
        if any(one in named for average in track.averages for split in average.weights.values() for one in split)
        for average in track.averages
    ]
    for average in averages:
        for weights in average.weights.values():
            for data_set in weights:
                if not any(
                    _is_ranked(one) and one.data_set == data_set and one.metric == average.metric for one in found
                ):
                    expected = f"the {average.metric} of {data_set}, anonymised"
                    remedy = "Run that part of the evaluation; an average needs all of its data sets."
                    yield Problem("missing-result", name, expected, "nothing", remedy)


def read_rank_file(source: Source, *, recipe: Recipe | None = None, name: str | None = None) -> RankFile:
    """Read a result file of 2024 or 2026 and check it.

    Args:
        recipe: of the edition; without one, 2026 where most of the trial lists mix the genders, else 2024.

    Problems reported, each with file and line: ``unknown-line``, ``unknown-section``, ``missing-column``,
    ``unexpected-column`` (it is passed over), ``malformed-row``, ``unexpected-row`` (a data set or emotion that the
    edition lacks), ``not-a-number``, ``out-of-range``, ``hand-typed-value`` (not the official number of decimals),
    ``repeated-result``, ``missing-result``, ``wrong-uar`` (not the mean of the recalls listed with it),
    ``unlike-baseline`` (a number of original speech that is not about the published one), ``empty-file``.
    """
    name = name or source_name(source)
    text, file_problems = read_text_file(source, name)
    reading = _Reading(name)
    reading.problems.keep(file_problems)
    if not text.strip() and not file_problems:
        reading.add_problem("empty-file", "at least one section", "none", "Add the file with its results.", 1)
    for number, line in enumerate(text.splitlines(), start=1):
        _read_line(reading, line, number)
    reported_numbers = tuple(reading.reported_numbers.values())
    trials = [
        reported.identity.gender is Gender.MIXED for reported in reported_numbers if reported.identity.metric == "eer"
    ]
    recipe = recipe or load_recipe("2026" if 2 * sum(trials) > len(trials) else "2024")
    if reported_numbers:
        reading.problems.keep(_unexpected((*reported_numbers, *reading.repeated), recipe))
        reading.problems.keep(missing_results(name, reported_numbers, recipe))
        reading.problems.keep(_wrong_recalls(name, reported_numbers))
        reading.problems.keep(unlike_originals(reported_numbers, recipe))
    base = name.rpartition("/")[2]
    suffix = base.removeprefix("result_for_rank") if base.startswith("result_for_rank") else ""
    read = tuple(reading.times), tuple(reading.sections), reading.rows, reported_numbers, tuple(reading.repeated)
    return RankFile(name, recipe.edition, suffix, *read, reading.problems.report())


def _read_line(reading: _Reading, line: str, number: int) -> None:
    text = line.strip()
    if not text:
        return
    if rule := _RULE.match(text):
        _open_section(reading, rule["title"], number)
    elif reading.table is None:
        shown = text if len(text) <= 60 else text[:57] + "…"
        reading.add_problem("unknown-line", "a line of a section", f"“{shown}”", "Restore the official form.", number)
    elif not reading.table.header:
        _read_header(reading, reading.table, text.split(), number)
    elif not reading.table.broken and set(text.split()) != {"mean"}:
        _read_row(reading, reading.table, text.split(), number)


def _open_section(reading: _Reading, title: str, number: int) -> None:
    reading.table = None
    if time := _TIME.match(title):
        reading.times.append(time["time"])
    elif title in SECTIONS:
        reading.sections.append(title)
        reading.table = _Table(SECTIONS[title])
    else:
        expected = f"a time or one of {', '.join(SECTIONS)}"
        reading.add_problem("unknown-section", expected, f"“{title}”", "Correct the title.", number)


def _read_header(reading: _Reading, table: _Table, columns: list[str], number: int) -> None:
    missing = [column for column in table.kind.keys if column not in columns]
    numbers = [column for column in columns if _number_of(table.kind, column)]
    unknown = [column for column in columns if column not in table.kind.keys and column not in numbers]
    expected = f"the columns {', '.join(table.kind.keys)} and the numbers"
    if missing or not numbers or len(set(columns)) != len(columns):
        reading.add_problem("missing-column", expected, f"“{' '.join(columns)}”", "Restore the header.", number)
        table.broken = True
    elif unknown:
        found = f"also “{' '.join(unknown)}”"
        remedy = "It was ignored; submit the table as the official script printed it."
        reading.add_problem("unexpected-column", expected, found, remedy, number, Severity.WARNING)
    table.header = columns


def _number_of(kind: SectionKind, column: str) -> tuple[str, str] | None:
    """Return metric and estimator of a column; None where the section has no such number."""
    if kind is SER:
        known = column == "UAR" or re.fullmatch(r"ACC_[A-Za-z]+", column)
        return (("uar", "") if column == "UAR" else (f"accuracy_{column[4:]}", "")) if known else None
    wanted = {"WER": ("wer", "")} if kind is ASR else {"EER": ("eer", "speechbrain")}
    return wanted.get(column)


def _read_row(reading: _Reading, table: _Table, cells: list[str], number: int) -> None:
    if len(cells) == len(table.header) + 1 and cells[0].isdigit():
        cells = cells[1:]
    row = dict(zip(table.header, cells, strict=False))
    genders = [gender.value for gender in Gender]
    speeches = [row.get(key, "anon") for key in table.kind.keys if key in ("enrollment", "trial", "ser", "asr")]
    if (
        len(cells) != len(table.header)
        or any(speech not in _SPEECH for speech in speeches)
        or row.get("gender", "f") not in genders
    ):
        expected = f"a row with {', '.join(table.header)}"
        reading.add_problem("malformed-row", expected, f"“{' '.join(cells)}”", "Restore the row.", number)
        return
    reading.rows += 1
    for column in table.header:
        if named := _number_of(table.kind, column):
            _read_number(reading, table.kind, _identity(table.kind, row, named), row[column], number)


def _identity(kind: SectionKind, row: dict[str, str], named: tuple[str, str]) -> NumberIdentity:
    base = f"{row['dataset']}_{row['split']}"
    if kind in (ASV, ASV_ANON):
        gender = Gender(row["gender"])
        speeches = _SPEECH[row["enrollment"]], _SPEECH[row["trial"]]
        return NumberIdentity(f"{base}_trials_{gender}", gender, *named, kind.training, *speeches)
    name, speech = (f"{base}_asr", row["asr"]) if kind is ASR else (base, row["ser"])
    return NumberIdentity(name, Gender.ALL, *named, kind.training, None, _SPEECH[speech])


def _read_number(reading: _Reading, kind: SectionKind, identity: NumberIdentity, written: str, number: int) -> None:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    what = f"the {identity.metric} of {identity.data_set}"
    if not math.isfinite(value):
        reading.add_problem("not-a-number", f"{what}, in per cent", f"“{written}”", "Evaluate it again.", number)
        return
    highest = math.inf if identity.metric == "wer" else 100
    if not 0 <= value <= highest:
        reading.add_problem(
            "out-of-range", f"{what} within 0 to {highest:g}", f"“{written}”", "Evaluate it again.", number
        )
    elif len(written.partition(".")[2]) not in (3, 4) or not re.fullmatch(r"\d+\.\d+", written):
        remedy = "Submit the number as the official script printed it."
        expected = f"{kind.decimals} decimals, as the official script prints {what}"
        reading.add_problem("hand-typed-value", expected, f"“{written}”", remedy, number, Severity.WARNING)
    reported = ReportedNumber(identity, value, "%", written, reading.name, number)
    if identity in reading.reported_numbers:
        first = reading.reported_numbers[identity].line
        remedy = "Keep the row of one run."
        reading.add_problem(
            "repeated-result", "each result once", f"{what} again (first in line {first})", remedy, number
        )
        reading.repeated.append(reported)
    else:
        reading.reported_numbers[identity] = reported


def _unexpected(reported_numbers: Iterable[ReportedNumber], recipe: Recipe) -> Iterator[Problem]:
    """Yield one problem for each row of a data set, and one for each number of an emotion, that the edition lacks."""
    for reported in reported_numbers:
        identity = reported.identity
        role = {"eer": "trial", "wer": "recognition"}.get(identity.metric, "emotion")
        known = recipe.data_sets.get(identity.data_set)
        emotion = identity.metric.removeprefix("accuracy_") if identity.metric.startswith("accuracy_") else ""
        if known is None or known.role != role:
            expected, found = f"{_ROLES[role]} of {recipe.title}", identity.data_set
        elif emotion and recipe.emotions and emotion not in recipe.emotions:
            expected, found = f"one of the emotions {', '.join(recipe.emotions)}", f"“{emotion}”"
        else:
            continue
        remedy = "Remove it, or name the edition that it belongs to."
        yield Problem("unexpected-row", reported.file, expected, found, remedy, line=reported.line)


def _wrong_recalls(name: str, reported_numbers: Sequence[ReportedNumber]) -> Iterator[Problem]:
    """UAR is the mean of the class recalls where every speaker has every class, as in the official sets."""
    recalls: dict[NumberIdentity, list[float]] = {}
    for reported in reported_numbers:
        if reported.identity.metric.startswith("accuracy_"):
            recalls.setdefault(replace(reported.identity, metric="uar"), []).append(reported.value)
    for reported in reported_numbers:
        if reported.identity in recalls:
            mean = sum(recalls[reported.identity]) / len(recalls[reported.identity])
            if abs(reported.value - mean) > UAR_TOLERANCE:
                expected = f"{mean:.4f} %, the mean of the recalls listed with it"
                found = f"“{reported.written}”"
                remedy = "Submit the numbers as the official script printed them."
                yield Problem("wrong-uar", name, expected, found, remedy, Severity.WARNING, reported.line)


def _is_ranked(identity: NumberIdentity) -> bool:
    if identity.metric == "eer":
        return identity.training is identity.enrolment is identity.speech is Speech.ANONYMISED
    return identity.speech is Speech.ANONYMISED
