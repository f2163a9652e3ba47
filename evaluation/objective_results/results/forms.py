"""What a text file of a result is by its content, since names are changed on the way: a few lines tell."""

from __future__ import annotations

import codecs
from enum import StrEnum
from itertools import islice
from pathlib import Path

from evaluation.formats.results import header_name, parse_line
from evaluation.objective_results.results.rank_files import is_title

HEAD_BYTES = 1 << 16
_LINES = 400
_SCORED_LINES = 5
_LONGEST_LINE = 1000
_LARGEST_BYTES = 1 << 24  # the largest published one has 40 kB


class ResultForm(StrEnum):
    """Forms of result files, in words that follow “a file of”."""

    SECTIONS = "results of 2024 or 2026"
    LINES = "results of 2020 or 2022"
    SCORES = "scores"


def find_form(head: bytes) -> ResultForm | None:
    """Return the form of a file by its first bytes; None where no line is one of a result.

    Example:
        >>> find_form(b"---- ASR results ----")
        <ResultForm.SECTIONS: 'results of 2024 or 2026'>
    """
    is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if is_utf16 else "utf-8-sig", "ignore")
    lines = [line for line in islice(text.splitlines(), _LINES) if 0 < len(line.strip()) <= _LONGEST_LINE]
    if any(map(is_title, lines)):
        return ResultForm.SECTIONS
    block = None
    for line in lines:
        if header := header_name(line):
            block = header
        elif parse_line(line, 1, block):
            return ResultForm.LINES
    scored = lines[:_SCORED_LINES]
    return ResultForm.SCORES if len(scored) > 1 and all(map(_is_score, scored)) else None


def read_form(path: Path) -> ResultForm | None:
    """Return the form of a file; None where it cannot be read, has no size, or is larger than results are."""
    try:
        if not 0 < path.stat().st_size <= _LARGEST_BYTES:
            return None
        with path.open("rb") as file:
            return find_form(file.read(HEAD_BYTES))
    except OSError:
        return None


def _is_score(line: str) -> bool:
    fields = line.split()
    try:
        return len(fields) == 3 and float(fields[2]) == float(fields[2])
    except ValueError:
        return False
