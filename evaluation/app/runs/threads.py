"""How many threads torch may use in a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from anonymization.app.job import threads


@contextmanager
def own_threads(most: int | None = None) -> Iterator[None]:
    """Let torch use as many threads as the portal gives a job, fewer where the network cannot keep more busy.

    Threads that wait for each other at every layer cost more than they bring, above all beside other work.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(threads(), most or threads())))
    try:
        yield
    finally:
        torch.set_num_threads(before)
