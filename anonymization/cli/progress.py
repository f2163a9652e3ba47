"""How far a long command is: a bar where a person looks on, a line from time to time where a file does."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_WIDTH = 30
_LINE_EVERY_S = 30.0
_BAR_EVERY_S = 0.1
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
        self._has_bar = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if self._has_bar:
            self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._has_bar:
            self._draw()
            sys.stderr.write("\n")
            sys.stderr.flush()

    def add(self, *, is_new: bool, speech_s: float) -> None:
        """One more is done; `speech_s`: seconds of speech in it."""
        self._done += 1
        self._new += is_new
        self._speech_s += speech_s if is_new else 0.0
        now = time.monotonic()
        if now - self._last >= (_BAR_EVERY_S if self._has_bar else _LINE_EVERY_S):
            self._last = now
            if self._has_bar:
                self._draw()
            else:
                sys.stderr.write(f"{self._words()}\n")
                sys.stderr.flush()

    def _draw(self) -> None:
        filled = _WIDTH * self._done // max(1, self._total)
        sys.stderr.write(f"\r{'█' * filled}{'░' * (_WIDTH - filled)} {self._words()}\033[K")
        sys.stderr.flush()

    def _words(self) -> str:
        text = f"{self._done:,}/{self._total:,} {self._what}"
        passed_s = time.monotonic() - self._start
        if self._new >= _TELLING and passed_s > 0 and self._done < self._total:
            left_s = passed_s / self._new * (self._total - self._done)
            text += f" · {self._speech_s / passed_s:.3g} s of speech a second · {duration_words(left_s)} left"
        return text


def duration_words(seconds: float) -> str:
    """A duration as people say it, to two figures at most."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def counted(count: int, one: str, several: str = "") -> str:
    """``1 utterance``, ``1,200 utterances``."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"
