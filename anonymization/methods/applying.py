"""Samples and voices through any method: each utterance gets its output or the error that it met, and loses no other.

A plug-in may be anybody's: what it raises and what it gives is looked at here, for the jobs of the portal and for the
command line alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymization.methods.contract import Anonymizer, Item, Options, Samples
from anonymization.methods.errors import MethodError
from anonymization.methods.external import CommandStopped


def apply_method(
    method: Anonymizer, items: Sequence[Item], rate: int, *, options: Options | None = None
) -> list[Samples | Exception]:
    """For each item its output, or why there is none; all at once, and one by one where that fails.

    Args:
        items: samples int16, shape (n,), `rate` in hertz, each with its voice.

    Returns:
        int16, shape (n,), n ≥ 1, or the error, in the order of the items: a `MethodError` where the method refuses an
        utterance or gives something else than samples, and whatever else it raised.

    Raises:
        CommandStopped: an external command was stopped.
    """
    if not items:
        return []
    try:
        outputs = list(method.anonymize_batch(items, rate, options=options))
        if len(outputs) != len(items):
            raise MethodError(f"{method.name} gave {len(outputs)} outputs for {len(items)} utterances.")
        return [_checked(method.name, output) for output in outputs]
    except CommandStopped:
        raise
    except Exception as error:  # of anybody's making
        if len(items) == 1:
            return [error]
    return [each for item in items for each in apply_method(method, [item], rate, options=options)]


def _checked(name: str, output: Samples) -> Samples | Exception:
    """An output as the contract has it, or the error that it is none."""
    if isinstance(output, np.ndarray) and output.dtype == np.int16 and output.ndim == 1 and output.size:
        return output
    found = f"{output.dtype} {output.shape}" if isinstance(output, np.ndarray) else type(output).__name__
    return MethodError(f"{name} was to give int16 samples of the shape (n,), at least one; it gave {found}.")
