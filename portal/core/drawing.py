"""Processes that draw, each kept while it is in use.

The web process holds no plotting library, and need not start one again for each picture that somebody looks at for a
second.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO, cast

from django.conf import settings
from django.http import HttpResponse

from common.errors import NotPossible
from evaluation.figures.drawing_process import LENGTH_BYTES

# The first picture of pitch marks on a machine waits for their kernel to be compiled.
DRAWING_S = 90
# Longer, nobody waits for their turn.
WAITING_S = 10
AGAIN_S = 10
# Requests that draw or wait, of the few threads that uploads leave to pages.
_MOST_AT_A_TIME = 3
BUSY = "Other pictures are drawn first; ask for this one again in some seconds."


def answer_not_drawn(error: NotPossible) -> HttpResponse:
    """Says why there is no picture, and when to ask for it again."""
    response = HttpResponse(str(error), status=503, content_type="text/plain; charset=utf-8")
    response["Retry-After"] = str(AGAIN_S)
    return response


class DrawingProcess:
    """One process of a module that answers lines, started when first asked and again after it has gone."""

    def __init__(self, module: str, *, draws_within_s: float = DRAWING_S, waits_s: float = WAITING_S) -> None:
        self._module = module
        self.draws_within_s = draws_within_s
        self.waits_s = waits_s
        self._places = threading.BoundedSemaphore(_MOST_AT_A_TIME)
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def draw(self, request: bytes) -> bytes:
        """Return the file that a line asks for.

        Raises:
            NotPossible: other pictures are drawn first, the process failed twice, or it drew for too long.
        """
        with self._own_turn():
            ends = time.monotonic() + self.draws_within_s
            return self._ask(request, ends) or self._ask(request, ends) or self._give_up()

    @contextlib.contextmanager
    def _own_turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise NotPossible(BUSY)
        try:
            if not self._turn.acquire(timeout=self.waits_s):
                raise NotPossible(BUSY)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()

    def _ask(self, request: bytes, ends: float) -> bytes:
        """Return the file; nothing where the process has gone. `ends`: when it is ended, by the monotonic clock."""
        process, is_late = self._running(), threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(ends - time.monotonic(), end)
        timer.start()
        try:
            return _exchange(process, request)
        except (BrokenPipeError, EOFError) as gone:
            self.close()
            if is_late.is_set():
                sentence = f"The picture was not drawn within {self.draws_within_s:g} s; ask for it again in a minute."
                raise NotPossible(sentence) from gone
            return b""
        except BaseException:  # the answer would be read as that to the next request
            self.close()
            raise
        finally:
            timer.cancel()

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process; another after a fork, as the pipes of this one are its parent's."""
        if self._process is None or self._owner != os.getpid():
            command = [sys.executable, "-m", self._module]
            self._process = subprocess.Popen(  # noqa: S603 (our own module, by the interpreter that runs this)
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=settings.BASE_DIR
            )
            self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """End the process, where there is one of ours."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in _pipes(process):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _give_up(self) -> bytes:
        raise NotPossible("The drawing process ended without a picture; the log has what it said.")


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Raises BrokenPipeError or EOFError where the process ends before its answer does."""
    stdin, stdout = _pipes(process)
    stdin.write(request)
    stdin.flush()
    length = int.from_bytes(stdout.read(LENGTH_BYTES), "big")
    file = stdout.read(length)
    if not length or len(file) < length:
        raise EOFError
    return file


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
