"""How far a long command is: a bar where a person looks on, a line from time to time where a file does; and Ctrl-C.

Ctrl-C is a question that work answers between two utterances. An exception in the middle of anything is lost in
callbacks of C libraries, which call their work done then; so the first Ctrl-C (or SIGTERM, of a batch system) only says
that it was, and the second one ends at once.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from common.terminal import ProgressBar, print_message

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LINE_EVERY_S = 30.0
_TELLING = 20  # fewer say more about starting than about how fast it goes


class Progress:
    """Counts what is done of a total, on standard error.

    What was kept from an earlier call is done, but tells nothing about how fast this one is.
    """

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._done = self._new = 0
        self._speech_s = 0.0
        self._start = self._last = time.monotonic()
        self._bar = ProgressBar(is_kept=True)

    def __enter__(self) -> Progress:
        self._bar.__enter__()
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._show()
        self._bar.__exit__()

    def add(self, *, is_new: bool, speech_s: float) -> None:
        """One more is done; `speech_s`: seconds of speech in it."""
        self._done += 1
        self._new += is_new
        self._speech_s += speech_s if is_new else 0.0
        self._show()
        now = time.monotonic()
        if not self._bar.is_terminal and now - self._last >= _LINE_EVERY_S:
            self._last = now
            print_message(self._words())
            sys.stderr.flush()

    def _show(self) -> None:
        self._bar.show(self._what, self._done, self._total, self._words())

    def _words(self) -> str:
        text = f"{self._done:,}/{self._total:,} {self._what}"
        passed_s = time.monotonic() - self._start
        if self._new >= _TELLING and passed_s > 0 and self._done < self._total:
            left_s = passed_s / self._new * (self._total - self._done)
            text += f" · {self._speech_s / passed_s:.3g} s of speech a second · {format_duration(left_s)} left"
        return text


def format_duration(seconds: float) -> str:
    """A duration as people say it, to two figures at most."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Within it, a first signal is only noted: the function tells whether one came. A second one interrupts."""
    asked = threading.Event()

    def note(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():  # it has no signals
        yield asked.is_set
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
