"""Small trainings for tests: of noise with a tone."""

from __future__ import annotations

from functools import partial

import numpy as np

from evaluation.attackers.training.corpus import RATE_HZ, TrainingUtterance
from evaluation.attackers.training.recipe import PRESETS, with_variant

TINY = PRESETS["small"].changed(
    width=8, aggregated=24, embedding=8, attention=8, epochs=3, batch=8, segment_s=0.5, crop_s=0.4, shortest_s=0.4
)

TINY_XVECTOR = PRESETS["x-vector"].changed(
    width=8,
    aggregated=12,
    embedding=8,
    epochs=2,
    batch=8,
    segment_s=0.5,
    crop_s=0.5,
    shortest_s=0.3,
    validation="last segment",
)

RESUMED = with_variant(TINY, "stabilised").changed(zero_epochs=1)


def utterances(sources: int = 3, each: int = 4, seconds: float = 1.1, seed: int = 0) -> list[TrainingUtterance]:
    """Noise with a resonance of each source; targets take turns, genders alternate."""
    random = np.random.default_rng(seed)
    found = []
    for source in range(sources):
        for number in range(each):
            noise = random.normal(size=round(seconds * RATE_HZ))
            tone = np.sin(2 * np.pi * (300 + 500 * source) * np.arange(noise.size) / RATE_HZ)
            samples = (3000 * (0.3 * noise + tone)).clip(-32768, 32767).astype(np.int16)
            found.append(
                TrainingUtterance(
                    f"s{source}-{number}", f"s{source}", partial(_say, samples), f"t{number % 2}", "fm"[source % 2]
                )
            )
    return found


def _say(samples: np.ndarray) -> tuple[np.ndarray, int]:
    return samples, RATE_HZ
