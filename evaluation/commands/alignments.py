"""Alignments of words on a terminal: signs that any terminal shows, and colours where it has them.

Conventions: ``-word-`` was said and not recognised, ``+word+`` recognised and not said, ``word→other`` mistaken.
Colours repeat what the signs say; they are left out on a pipe and where ``NO_COLOR`` is set (no-color.org).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence

from evaluation.commands.terminal import REPLACEMENT
from evaluation.metrics.word_errors import AlignedWord

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_INDENT = "  "


def legend() -> str:
    """What the signs mean."""
    return "-missed-, +added+, said→recognised"


def say_alignment(alignment: Sequence[AlignedWord]) -> None:
    """One alignment to standard output, wrapped to the terminal's width."""
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = max(40, min(100, shutil.get_terminal_size((100, 24)).columns)) - len(_INDENT)
    for line in _lines([_written(step) for step in alignment], width):
        text = " ".join(f"{colour}{word}{_PLAIN}" if colour and colours else word for word, colour in line)
        sys.stdout.write(f"{_INDENT}{text}\n")


def _written(step: AlignedWord) -> tuple[str, str]:
    """The step with its signs, and its colour; words from files may not steer the terminal."""
    said = _STEERING.sub(REPLACEMENT, step.reference or "")
    heard = _STEERING.sub(REPLACEMENT, step.hypothesis or "")
    if step.is_correct:
        return said, ""
    if step.hypothesis is None:
        return f"-{said}-", _RED
    return (f"+{heard}+", _GREEN) if step.reference is None else (f"{said}→{heard}", _YELLOW)


def _lines(words: Sequence[tuple[str, str]], width: int) -> list[list[tuple[str, str]]]:
    """The words in lines of at most `width` signs, a longer word alone."""
    lines: list[list[tuple[str, str]]] = [[]]
    used = 0
    for word, colour in words:
        if lines[-1] and used + 1 + len(word) > width:
            lines.append([])
            used = 0
        used += len(word) + (1 if lines[-1] else 0)
        lines[-1].append((word, colour))
    return lines
