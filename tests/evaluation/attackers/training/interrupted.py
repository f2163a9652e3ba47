"""Trains in a process of its own and stands still in the second epoch, for a test that kills it there.

Run as a module with the folder as its argument; prints one line when it stands still.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

from evaluation.attackers.training.train import train
from tests.evaluation.attackers.training.toys import RESUMED, utterances

LONGER_THAN_ANY_TEST_S = 3600


def stand_still(stage: str, done: int, total: int) -> None:
    """In the middle of the second of three epochs."""
    if stage == "training" and done > total // 3 and done < 2 * total // 3:
        sys.stdout.write("standing still\n")
        sys.stdout.flush()
        time.sleep(LONGER_THAN_ANY_TEST_S)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(utterances(), RESUMED, 7, Path(sys.argv[1]), stand_still)
