"""The loop of a process that draws for another one, which then needs no plotting library of its own.

Each line of standard input asks for a file; the answer is its length in 8 bytes, big end first, and the file. A process
that asks waits for each answer before asking again. The process ends with its input, or when nothing was asked for a
while.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

LENGTH_BYTES = 8
IDLE_S = 300.0


def answer_lines(draw: Callable[[bytes], bytes]) -> int:
    """Answer until the input ends or nothing comes for `IDLE_S`; the exit status. `draw`: the file of a line."""
    while select.select([sys.stdin], [], [], IDLE_S)[0]:
        line = sys.stdin.buffer.readline()
        if not line:
            break
        file = draw(line)
        sys.stdout.buffer.write(len(file).to_bytes(LENGTH_BYTES, "big") + file)
        sys.stdout.buffer.flush()
    return 0
