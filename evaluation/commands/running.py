"""How a program of several commands runs one of them and ends: shared by ``python -m evaluation`` and ``vp``.

Exit codes: what the command returns; 2 for what a person typed or sent that cannot be used, or a machine without room,
said in one sentence on standard error; 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from evaluation.commands.terminal import UNUSABLE, CommandError, warn

INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """Says what is wrong with arguments in one sentence instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{self.prog}: {message}. See {self.prog} --help.")


def run_command(read_options: Callable[[], argparse.Namespace], *told: type[Exception]) -> int:
    """Run the command that the options name as `run`; returns its exit code.

    Args:
        read_options: may raise `CommandError`.
        told: exceptions besides `CommandError` whose words are for the person at the terminal.
    """
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # a terminal without ρ or “ still gets its numbers and sentences
    expected: tuple[type[Exception], ...] = (CommandError, *told)
    try:
        options = read_options()
        code: int = options.run(options)
        sys.stdout.flush()
    except expected as error:
        warn(str(error))
        return UNUSABLE
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        warn("\nStopped.")
        return INTERRUPTED
    except OSError as error:
        _discard_output()
        warn(_sentence(error))
        return UNUSABLE
    except MemoryError:
        warn("Memory is full. Give the command less at a time, or stop what else uses the memory.")
        return UNUSABLE
    return code


def _sentence(error: OSError) -> str:
    """What the system says of a file that no command expected to fail; without a name it is standard output."""
    reason = error.strerror or str(error)
    if error.filename is None:
        return f"Expected to write everything that was to be written, found “{reason}”. Make space and repeat it."
    return f"{error.filename}: expected a file or folder that can be used, found “{reason}”."


def _discard_output() -> None:
    """What still waits to be printed would fail again as Python ends, where standard output is what failed."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
