"""One call of a method in a forked worker, as jobs and `--jobs` make it, with a limit of time."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import cast

from anonymization.methods.contract import Anonymizer, PseudoSpeaker, Samples


def run_in_fork(
    method: Anonymizer, samples: Samples, rate: int, voice: PseudoSpeaker, *, limit_s: float
) -> Samples | str | None:
    """The output, or what went wrong in words; None where this process cannot fork (its system, or as a daemon)."""
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        return None
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(theirs, method, samples, rate, voice))
    worker.start()
    theirs.close()
    try:
        if not ours.poll(limit_s):
            return f"no answer within {limit_s:g} s"
        return cast("Samples | str", ours.recv())
    except EOFError:
        worker.join()
        return f"the end of the worker, exit status {worker.exitcode}"
    finally:
        ours.close()
        if worker.is_alive():
            worker.join(1.0)
        if worker.is_alive():
            worker.kill()
        worker.join()


def _work(pipe: Connection, method: Anonymizer, samples: Samples, rate: int, voice: PseudoSpeaker) -> None:
    try:
        result: Samples | str = method.anonymize(samples, rate, voice)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    pipe.send(result)
    pipe.close()
