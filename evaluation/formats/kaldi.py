"""Kaldi data files: one reader per file, all problems at once, each with its line.

Conventions: a line is ``<key> <value>``, fields separated by spaces or tabs; blank lines are
skipped with a note; a line with a problem is reported and left out of the content. Formats: the
VoicePrivacy 2022 data directories and Kaldi's "Data preparation" page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, NamedTuple, TextIO, TypeVar

from common.problems import Problem, ProblemFound, ProblemList, Severity, has_errors
from common.text_files import Source, read_text_file, source_name

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class KaldiTrial(NamedTuple):
    """One comparison of a verification test: an enrolled speaker (*model*) against an utterance."""

    model: str
    utterance: str
    target: bool


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """What one file holds.

    Attributes:
        content: the entries in file order (a dict keeps that order).
        lines: the line number of each entry, from 1.
        problems: everything wrong with the file; entries with a problem are not in `content`.
        refused: the first words of lines that are not in `content` because they have a problem.
    """

    content: T
    lines: tuple[int, ...]
    problems: tuple[Problem, ...]
    refused: frozenset[str] = frozenset()


def read_wav_scp(source: Source, name: str | None = None) -> Parsed[dict[str, str]]:
    """``wav.scp``: utterance → path. A value that ends in ``|`` is a command: refused, not run.

    Beside ``segments`` that is not empty its entries are recordings that are cut into utterances, and the whole file is
    refused: ``segments-refused``.
    """
    if isinstance(source, Path) and _has_segments(source.with_name("segments")):
        segments = (name or source_name(source)).removesuffix(source.name) + "segments"
        expected, found = "a file for each utterance", "recordings that are cut into segments"
        remedy = "Write the segments to files first (Kaldi: extract-segments)."
        return Parsed({}, (), (Problem("segments-refused", segments, expected, found, remedy),))
    return _read(source, name, _wav_line)


def _has_segments(path: Path) -> bool:
    if not path.is_file():
        return False
    text, problems = read_text_file(path)
    return bool(text.strip()) or has_errors(problems)


def read_utt2spk(source: Source, name: str | None = None) -> Parsed[dict[str, str]]:
    """``utt2spk``: utterance → speaker."""
    return _read(source, name, lambda line: _two_fields(line, "<utterance> <speaker>"))


def read_spk2utt(source: Source, name: str | None = None) -> Parsed[dict[str, tuple[str, ...]]]:
    """``spk2utt``: speaker → utterances, in file order."""
    return _read(source, name, _spk2utt_line)


def read_spk2gender(source: Source, name: str | None = None) -> Parsed[dict[str, str]]:
    """``spk2gender``: speaker → ``f`` or ``m``."""
    return _read(source, name, _gender_line)


def read_text(source: Source, name: str | None = None, *, known: Collection[str] = ()) -> Parsed[dict[str, str]]:
    """``text``: utterance → transcript as written; empty where the utterance stands alone.

    A file in another form of the field is refused as a whole: ``other-form``.

    Args:
        source, name: the file and what it is called in problems.
        known: utterances of the set, where these are known: they tell the forms apart.
    """
    parsed = _read(source, name, _text_line)
    if form := _find_other_form(parsed, known):
        remedy = "Write a line for each utterance: its name, a space, its words."
        problem = Problem(
            "other-form", name or source_name(source), "“<utterance> <words>”", f"lines of {form}", remedy
        )
        return Parsed({}, (), (problem,))
    return parsed


def read_utt2dur(source: Source, name: str | None = None) -> Parsed[dict[str, float]]:
    """``utt2dur``: utterance → duration in seconds, above 0."""
    return _read(source, name, _duration_line)


def read_enrolls(source: Source, name: str | None = None) -> Parsed[tuple[str, ...]]:
    """``enrolls``: the utterances of the enrolment set, one per line."""
    parsed = _read(source, name, _enroll_line)
    return Parsed(tuple(parsed.content), parsed.lines, parsed.problems)


def read_trials(source: Source, name: str | None = None) -> Parsed[tuple[KaldiTrial, ...]]:
    """``trials``: ``<model speaker> <trial utterance> target|nontarget``; a pair may occur once."""
    parsed = _read(source, name, _trial_line)
    trials = tuple(KaldiTrial(model, utterance, t) for (model, utterance), t in parsed.content.items())
    return Parsed(trials, parsed.lines, parsed.problems)


def write_trials(trials: Iterable[KaldiTrial], file: TextIO) -> None:
    """Write trials in the given order, as the challenge's own files look."""
    file.writelines(
        f"{model} {utterance} {'target' if target else 'nontarget'}\n" for model, utterance, target in trials
    )


def write_listing(entries: Mapping[str, str], file: TextIO) -> None:
    """``wav.scp``, ``utt2spk``, ``spk2gender`` or ``text``: key and value, sorted bytewise as Kaldi expects."""
    file.writelines(f"{key} {entries[key]}".rstrip() + "\n" for key in _in_byte_order(entries))


def write_spk2utt(entries: Mapping[str, Iterable[str]], file: TextIO) -> None:
    """``spk2utt``: speaker and utterances, both sorted bytewise."""
    file.writelines(f"{key} {' '.join(_in_byte_order(entries[key]))}\n" for key in _in_byte_order(entries))


def write_utt2dur(entries: Mapping[str, float], file: TextIO) -> None:
    """``utt2dur``: utterance and seconds, in the shortest form that reads back the same."""
    file.writelines(f"{key} {entries[key]!r}\n" for key in _in_byte_order(entries))


def _in_byte_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=str.encode)


def _read(source: Source, name: str | None, parse_line: Callable[[str], tuple[K, V]]) -> Parsed[dict[K, V]]:
    name = name or source_name(source)
    text, file_problems = read_text_file(source, name)
    problems = ProblemList()
    problems.keep(file_problems)
    content: dict[K, V] = {}
    lines: dict[K, int] = {}
    refused = set[str]()
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        if not line.strip():
            found, remedy = "a blank line", "It was skipped; remove it."
            problems.add(Problem("blank-line", name, "an entry", found, remedy, Severity.NOTE, number))
            continue
        try:
            key, value = parse_line(line)
        except ProblemFound as found_problem:
            problems.add(replace(found_problem.problem, file=name, line=number))
            refused.add(line.split(None, 1)[0])
            continue
        if key in content:
            shown = " ".join(key) if isinstance(key, tuple) else key
            found = f"“{shown}” again (first in line {lines[key]})"
            problems.add(Problem("repeated-entry", name, "each entry once", found, "Keep one of them.", line=number))
            continue
        content[key] = value
        lines[key] = number
    if not text and not file_problems:
        problems.add(Problem("empty-file", name, "at least one line", "none", "Fill the file."))
    return Parsed(content, tuple(lines.values()), problems.report(), frozenset(refused))


def _malformed(form: str, line: str) -> ProblemFound:
    shown = line if len(line) <= 60 else line[:57] + "…"
    return ProblemFound(Problem("malformed-line", "", f"“{form}”", f"“{shown}”", "Correct the line."))


def _two_fields(line: str, form: str) -> tuple[str, str]:
    fields = line.split()
    if len(fields) != 2:
        raise _malformed(form, line)
    return fields[0], fields[1]


def _wav_line(line: str) -> tuple[str, str]:
    fields = line.split(None, 1)
    if len(fields) != 2:
        raise _malformed("<utterance> <path>", line)
    path = fields[1].strip()
    if path.endswith("|") or path.startswith("|"):
        remedy = "Commands are never run: make the file and name its path."
        raise ProblemFound(Problem("pipe-refused", "", "the path of a file", f"the command “{path}”", remedy))
    return fields[0], path


def _spk2utt_line(line: str) -> tuple[str, tuple[str, ...]]:
    speaker, *utterances = line.split()
    if not utterances:
        raise _malformed("<speaker> <utterance> <utterance> …", line)
    return speaker, tuple(utterances)


def _gender_line(line: str) -> tuple[str, str]:
    speaker, gender = _two_fields(line, "<speaker> f|m")
    if gender.lower() not in ("f", "m"):
        raise ProblemFound(
            Problem("unknown-gender", "", f"“f” or “m” for speaker {speaker}", f"“{gender}”", "Write f or m.")
        )
    return speaker, gender.lower()


_SECONDS = r"\d+(?:\.\d+)?"
_TRN = "NIST's trn form, “<words> (<utterance>)”"
_TRN_LINE = re.compile(r"(?:.*\s)?\([^\s()\d]*\d[^\s()]*\)")
_TIMED_FORMS = {
    "NIST's ctm form, a word and its time in each": re.compile(
        rf"\A\S+\s+\S+\s+{_SECONDS}\s+{_SECONDS}\s+\S+(?:\s+\S+)?"
    ),
    "NIST's stm form, with times before the words": re.compile(
        rf"\A\S+\s+\S+\s+\S+\s+{_SECONDS}\s+{_SECONDS}(?:\s.*)?"
    ),
}


_DECIMAL_TIMES = re.compile(r"\s\d+\.\d+\s+\d+\.\d+(?:\s|$)")


def _find_other_form(parsed: Parsed[dict[str, str]], known: Collection[str]) -> str:
    """Return the form of the field that every line has in place of Kaldi's text; empty where none is.

    Words may look like a form by chance, such as spoken digits or a word in brackets. So lines that begin with
    utterances are no trn; and times are told from spoken numbers by their decimals, in more than one line.
    """
    keys = [key for key in parsed.content if not key.startswith(";;")]
    lines = [f"{key} {parsed.content[key]}".rstrip() for key in keys]
    is_long = len(lines) > 1 or any(problem.code == "repeated-entry" for problem in parsed.problems)
    if lines and all(map(_TRN_LINE.fullmatch, lines)):
        names = {key for key in keys if not key.startswith("(")}
        is_named = (
            not names.isdisjoint(known)
            if known
            else not is_long or (names and all(map(re.compile(r"\d").search, names)))
        )
        return "" if is_named else _TRN
    if not is_long or not any(map(_DECIMAL_TIMES.search, lines)):
        return ""
    return next((form for form, pattern in _TIMED_FORMS.items() if all(map(pattern.fullmatch, lines))), "")


def _text_line(line: str) -> tuple[str, str]:
    utterance, *words = line.split(None, 1)
    return utterance, words[0].strip() if words else ""


def _duration_line(line: str) -> tuple[str, float]:
    utterance, written = _two_fields(line, "<utterance> <seconds>")
    try:
        seconds = float(written)
    except ValueError:
        raise _malformed("<utterance> <seconds>", line) from None
    if not (math.isfinite(seconds) and seconds > 0):
        expected = f"seconds above 0 for {utterance}"
        raise ProblemFound(Problem("wrong-duration", "", expected, f"“{written}”", "Correct the duration."))
    return utterance, seconds


def _enroll_line(line: str) -> tuple[str, None]:
    fields = line.split()
    if len(fields) != 1:
        raise _malformed("<utterance>", line)
    return fields[0], None


def _trial_line(line: str) -> tuple[tuple[str, str], bool]:
    fields = line.split()
    if len(fields) != 3 or fields[2] not in ("target", "nontarget"):
        raise _malformed("<model speaker> <utterance> target|nontarget", line)
    return (fields[0], fields[1]), fields[2] == "target"
