"""What programs write: tables, complete reports, JSON and progress, and how a program of several commands ends.

Results go to standard output, everything about them (problems, progress) to standard error, so that a pipe carries
numbers only. What is no terminal gets plain text, as wide as it needs. Conventions: text columns flush left, numbers
flush right; ``–`` is no value. Exit codes: what the command returns; 2 for what a person typed or sent that cannot be
used, or a machine without room, said in one sentence on standard error; 130 when it was interrupted.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Literal, TypeVar

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from common.errors import CommandError
from common.memory import format_size
from common.problems import Problem, Severity, has_errors

NONE = "–"
REPLACEMENT = "�"
# Names in files may hold what a terminal obeys; only lines and tabs are for it. Halves of characters have no bytes.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
FINE, PROBLEMS, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
PROBLEMS_PER_KIND = 20
_BAR_WIDTH = 30
_DRAW_EVERY_S, _LINE_EVERY_S = 0.1, 30.0
_NARROWEST, _WIDEST_PARAGRAPH, _UNBOUNDED = 40, 100, 100_000

Lines = Literal["none", "stages", "quarters", "minutes"]
T = TypeVar("T")


def print_text(text: str = "") -> None:
    """Write one line, or several, to standard output."""
    sys.stdout.write(f"{clean_text(text)}\n")


def print_message(text: str) -> None:
    """Write one line, or several, to standard error."""
    sys.stderr.write(f"{clean_text(text)}\n")


def print_json(content: object) -> None:
    """Write JSON with every digit; numbers that JSON does not know are the texts “nan”, “inf” and “-inf”."""
    text = json.dumps(_make_plain(content), ensure_ascii=False, indent=2, allow_nan=False)
    print_text(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "", numbers_from: int | None = None
) -> None:
    """Write columns side by side: those of numbers flush right, any other flush left. Too narrow a terminal gets lists.

    Args:
        indent: before each line.
        numbers_from: the first column of numbers; None where the cells tell.
    """
    console = _make_console(len(indent))
    if sum(_widest_word(title) + 1 for title in header) > console.width:  # each row becomes lines of its own
        width = max(map(len, header))
        for row in rows:
            for title, cell in zip(header, row, strict=True):
                sys.stdout.write(f"{indent}{clean_text(title):{width}}  {clean_text(cell)}".rstrip() + "\n")
            sys.stdout.write("\n")
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="")
    for number, title in enumerate(header):
        cells = [row[number] for row in rows]
        is_right = (bool(cells) and all(map(_is_number, cells))) if numbers_from is None else number >= numbers_from
        table.add_column(Text(clean_text(title)), justify="right" if is_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean_text(cell)) for cell in row))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        sys.stdout.write(f"{indent}{line}".rstrip() + "\n")


def print_paragraph(text: str | Text, *, indent: str = "") -> None:
    """Write a paragraph in the width of the terminal; of a `Text` with its colours, where the terminal has them."""
    console = _make_console()
    width = min(_WIDEST_PARAGRAPH, console.width) - len(indent)
    for line in (text if isinstance(text, Text) else Text(clean_text(text))).wrap(console, width):
        line.rstrip()
        console.print(Text(indent) + line, soft_wrap=True)


def print_problems(problems: Sequence[Problem], *, whole: str = "--json") -> int:
    """Write every problem in one sentence each, grouped by kind, the worst kinds first.

    Args:
        whole: what lists all of them.

    Returns:
        The exit code that follows.
    """
    for line in format_problems(problems, whole=whole):
        print_message(line)
    return PROBLEMS if has_errors(problems) else FINE


def format_problems(
    problems: Iterable[Problem], *, whole: str = "--json", per_kind: int = PROBLEMS_PER_KIND
) -> Iterator[str]:
    """Yield a heading for each kind of problem, then its sentences; of a long list the first ones (`whole` has all)."""
    order = list(Severity)
    by_kind: dict[tuple[Severity, str], list[Problem]] = {}
    for problem in problems:
        by_kind.setdefault((problem.severity, problem.code), []).append(problem)
    for (severity, code), members in sorted(by_kind.items(), key=lambda item: order.index(item[0][0])):
        count = sum(problem.count for problem in members)
        yield f"{severity}: {code.replace('-', ' ')}{f' ({count:,})' if count > 1 else ''}"
        for problem in members[:per_kind]:
            yield f"  {problem.sentence()}"
        if more := sum(problem.count for problem in members[per_kind:]):
            yield f"  … and {more:,} more; {whole} lists all."


def problem_rows(problems: Iterable[Problem]) -> list[dict[str, object]]:
    """Return problems for JSON."""
    return [asdict(problem) | {"sentence": problem.sentence()} for problem in problems]


class ProgressBar:
    """How far a long command is, on standard error: a bar on a terminal; elsewhere lines from time to time, or nothing.

    Args:
        is_kept: whether the bar stays when the work has ended.
        lines: what gets a line where there is no terminal: each stage, each quarter of it, half a minute, or nothing.
        in_bytes: whether what is counted are bytes.
    """

    def __init__(self, *, is_kept: bool = False, lines: Lines = "none", in_bytes: bool = False) -> None:
        self._is_terminal, self._lines, self._in_bytes = sys.stderr.isatty(), lines, in_bytes
        self._stage, self._last_line, self._told_at = "", "", time.monotonic()
        self._bar = Progress(
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.description}", markup=False),
            console=_Console(file=sys.stderr),
            auto_refresh=False,
            transient=not is_kept,
            redirect_stdout=sys.stdout.isatty(),
            disable=not self._is_terminal,
        )
        self._task = self._bar.add_task("")

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, stage: str, done: int, total: int) -> None:
        """Show what changed; a total of 0 is not known."""
        is_due = time.monotonic() - self._told_at >= (_DRAW_EVERY_S if self._is_terminal else _LINE_EVERY_S)
        text = f"{done:,}/{total:,} {stage}" if total else stage
        if self._in_bytes and total:
            text = f"{stage}: {100 * done / total:.0f} %{self._size(total)}"
        if stage != self._stage:
            self._bar.reset(self._task, completed=done, total=max(total, 1), description=clean_text(text))
            self._stage, is_due = stage, is_due and not self._is_terminal
        else:
            self._bar.update(self._task, completed=done, total=max(total, 1))
        if left_s := self._bar.tasks[0].time_remaining:
            text = f"{text} · {format_duration(left_s)} left"
        if self._is_terminal:
            if is_due or done >= total:
                self._bar.update(self._task, description=clean_text(text), refresh=True)
                self._told_at = time.monotonic()
            return
        line = {
            "none": "",
            "stages": stage,
            "quarters": f"{stage}: {25 * (4 * done // total)} %{self._size(total)}" if total else f"{stage} …",
            "minutes": text if is_due else "",
        }[self._lines]
        if line and line != self._last_line:
            print_message(line)
            sys.stderr.flush()
            self._last_line, self._told_at = line, time.monotonic()

    def _size(self, total: int) -> str:
        return f" of {format_size(total)}" if self._in_bytes else ""


def format_duration(seconds: float) -> str:
    """Return a duration as people say it, to two figures at most."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def track_progress(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield the items, with a bar on standard error where that is a terminal."""
    if total < 2:
        yield from items
        return
    with ProgressBar(is_kept=True) as bar:
        bar.show(what, 0, total)
        for done, item in enumerate(items):
            bar.show(what, done, total)
            yield item
        bar.show(what, total, total)


def clean_text(text: str) -> str:
    """Return the text without what a terminal would obey."""
    return _CONTROL.sub(REPLACEMENT, text)


def run_command(command: Callable[[], int], *told: type[Exception]) -> int:
    """Run a command to its end; returns the exit code.

    Args:
        command: reads what was typed, does it and returns the exit code.
        told: exceptions besides `CommandError` whose words are for the person at the terminal.
    """
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a terminal without ρ or “ still gets its numbers and sentences
    expected: tuple[type[Exception], ...] = (CommandError, *told)
    try:
        code = command()
        sys.stdout.flush()
    except expected as error:
        print_message(str(error))
        return UNUSABLE
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except KeyboardInterrupt:
        print_message("\nStopped.")
        return INTERRUPTED
    except OSError as error:
        _discard_output()
        print_message(_describe(error))
        return UNUSABLE
    except MemoryError:
        print_message("Memory ran out. Give the command less at a time, or stop other programs that use memory.")
        return UNUSABLE
    return code


def _describe(error: OSError) -> str:
    """Return what the system says of a file that no command expected to fail; without a name it is standard output."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"Standard output: expected space for it, found “{reason}”. Make space and repeat the command."
    return f"{error.filename}: expected a file or folder that can be used, found “{reason}”."


def _discard_output() -> None:
    """What still waits to be printed would fail again as Python ends, where standard output is what failed."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Say so by the error itself: rich would end the program at once, as if it had failed."""
        raise BrokenPipeError


def _make_console(margin: int = 0) -> Console:
    """Return standard output, `margin` columns narrower than the terminal; unbounded where it is none."""
    console = _Console(file=sys.stdout, highlight=False, emoji=False)
    console.width = max(_NARROWEST, console.width - margin) if console.is_terminal else _UNBOUNDED
    return console


def _widest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _is_number(cell: str) -> bool:
    return cell in (NONE, "") or cell.lstrip("+-−±(")[:1].isdigit()


def _make_plain(content: object) -> object:
    if isinstance(content, dict):
        return {str(key): _make_plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_make_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return str(content)
    return content
