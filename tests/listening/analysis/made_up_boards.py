"""Boards that simulated listeners filled: samples lie around their speaker, anonymised ones further away."""

import numpy as np

from listening.analysis.reading.inputs import ORIGINAL, Placements
from tests.listening.analysis.made_ratings import fill


def placements_of(rows):
    """Columns from dictionaries; what is not named is empty or unknown."""
    usual = {
        "listener": "l1",
        "session": "s1",
        "board": "b1",
        "slot": "1",
        "system": ORIGINAL,
        "utterance": "u",
        "speaker": "A",
        "x": 0.5,
        "y": np.nan,
        "group": "",
        "declared": 0,
        "excluded": "",
    }
    return fill(Placements, rows, usual)


def made_up_placements(
    listeners=12,
    boards=2,
    samples=8,
    speakers=2,
    dimensions=2,
    spread=0.05,
    lost=0.3,
    seed=1,
    shared=False,
    with_groups=True,
    systems=("T01", "T02"),
):
    """Boards of `samples` samples, half original and half by one system, shared by all listeners or one's alone.

    `spread`: how far from the speaker samples lie; `lost`: how much further anonymised ones do.
    """
    numbers = np.random.default_rng(seed)
    rows = []
    for listener in range(listeners):
        for place in range(boards):
            board = f"board-{place}" if shared else f"board-{listener}-{place}"
            system = systems[(place if shared else listener + place) % len(systems)]
            homes = numbers.random((speakers, dimensions)) * 0.6 + 0.2
            for sample in range(samples):
                speaker = sample % speakers
                is_original = (sample // speakers) % 2 == 0
                away = spread if is_original else spread + lost
                at = np.clip(homes[speaker] + away * numbers.normal(size=dimensions), 0, 1).round(4)
                nearest = int(np.argmin(((homes - at) ** 2).sum(1)))
                rows.append(
                    {
                        "listener": f"listener-{listener:02}",
                        "session": f"session-{listener:02}",
                        "board": board,
                        "slot": str(sample + 1),
                        "system": ORIGINAL if is_original else system,
                        "utterance": f"{speaker}-{sample}",
                        "speaker": f"speaker-{speaker}",
                        "x": at[0],
                        "y": at[1] if dimensions == 2 else np.nan,
                        "group": "ABCDEFGH"[nearest] if with_groups else "",
                        "declared": speakers,
                    }
                )
    return placements_of(rows)
