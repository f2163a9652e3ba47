"""Ctrl-C as a question that work answers between two utterances.

An exception in the middle of anything is lost in callbacks of C libraries, which call their work done then; so the
first Ctrl-C (or SIGTERM, of a batch system) only says that it was, and the second one ends at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
