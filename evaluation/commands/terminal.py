"""What the commands write: aligned tables, complete reports, JSON, and a progress bar while one waits.

Results go to standard output, everything about them (problems, progress) to standard error, so that a pipe carries
numbers only. Conventions: text columns flush left, numbers flush right; ``–`` is no value.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TypeVar

from evaluation.formats.problems import Problem, Severity, has_errors
from evaluation.metrics.catalogue import Metric

NONE = "–"
REPLACEMENT = "�"
# Names in files may hold what a terminal obeys; only lines and tabs are for it. Halves of characters have no bytes.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
FINE, PROBLEMS, UNUSABLE = 0, 1, 2
PROBLEMS_PER_KIND = 20
_BAR_WIDTH = 30
_GAP = "  "

T = TypeVar("T")


class CommandError(Exception):
    """Bad usage or an input that cannot be read: one sentence for the person at the terminal."""


def say(text: str = "") -> None:
    """One line, or several, to standard output."""
    sys.stdout.write(f"{_CONTROL.sub(REPLACEMENT, text)}\n")


def warn(text: str) -> None:
    """One line, or several, to standard error."""
    sys.stderr.write(f"{_CONTROL.sub(REPLACEMENT, text)}\n")


def say_json(content: object) -> None:
    """JSON with every digit; numbers that JSON does not know are the texts “nan”, “inf” and “-inf”."""
    text = json.dumps(_plain(content), ensure_ascii=False, indent=2, allow_nan=False)
    say(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def say_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "", numbers_from: int | None = None
) -> None:
    """Columns side by side: those of numbers flush right, any other flush left.

    Args:
        indent: before each line.
        numbers_from: the first column of numbers; None where the cells tell.
    """
    columns = [list(column) for column in zip(header, *rows, strict=True)]
    if numbers_from is None:
        right = [bool(rows) and all(_is_number(cell) for cell in column[1:]) for column in columns]
    else:
        right = [number >= numbers_from for number in range(len(columns))]
    widths = [max(len(cell) for cell in column) for column in columns]
    for cells in (list(header), ["─" * width for width in widths], *rows):
        padded = (
            cell.rjust(width) if flush_right else cell.ljust(width)
            for cell, width, flush_right in zip(cells, widths, right, strict=True)
        )
        say(indent + _GAP.join(padded).rstrip())


def say_wrapped(text: str, *, indent: str = "") -> None:
    """A paragraph in the width of the terminal."""
    width = max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
    say(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent))


def show(value: float | None, metric: Metric) -> str:
    """A value with the decimals of its metric; its unit stands beside the name, as `heading` writes it."""
    return NONE if value is None or math.isnan(value) else f"{value:.{metric.decimals}f}"


def heading(metric: Metric, *, detail: str = "") -> str:
    """Name and unit of a metric over or beside its values."""
    name = f"{metric.label} {detail}".strip()
    return name if metric.unit in ("", "log10") else f"{name}, {metric.unit}"


def report_problems(problems: Sequence[Problem]) -> int:
    """Every problem in one sentence each, grouped by kind, the worst kinds first; the exit code that follows."""
    for line in problem_lines(problems):
        warn(line)
    return PROBLEMS if has_errors(problems) else FINE


def problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """A heading for each kind of problem, then its sentences; of a long list the first ones (JSON has all)."""
    order = list(Severity)
    by_kind: dict[tuple[Severity, str], list[Problem]] = {}
    for problem in problems:
        by_kind.setdefault((problem.severity, problem.code), []).append(problem)
    for (severity, code), members in sorted(by_kind.items(), key=lambda item: order.index(item[0][0])):
        yield f"{severity}: {code.replace('-', ' ')}"
        for problem in members[:PROBLEMS_PER_KIND]:
            yield f"  {problem.sentence()}"
        if len(members) > PROBLEMS_PER_KIND:
            yield f"  … and {len(members) - PROBLEMS_PER_KIND:,} more; --json lists all."


def problem_rows(problems: Iterable[Problem]) -> list[dict[str, object]]:
    """Problems for JSON."""
    return [asdict(problem) | {"sentence": problem.sentence()} for problem in problems]


def with_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items, with a bar on standard error where that is a terminal."""
    if not sys.stderr.isatty() or total < 2:
        yield from items
        return
    for done, item in enumerate(items):
        _draw_bar(done, total, what)
        yield item
    _draw_bar(total, total, what)
    sys.stderr.write("\n")


def _draw_bar(done: int, total: int, what: str) -> None:
    filled = _BAR_WIDTH * done // total
    sys.stderr.write(f"\r{'█' * filled}{'░' * (_BAR_WIDTH - filled)} {done}/{total} {what}")
    sys.stderr.flush()


def _is_number(cell: str) -> bool:
    return cell in (NONE, "") or cell.lstrip("+-−±(")[:1].isdigit()


def _plain(content: object) -> object:
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return str(content)
    return content
