"""What the McAdams filter can be told, checked once (the engines assume it is right), and the official alphas of 2024.

The alphas are those of the official B2 of 2024, so that a published baseline can be made again. Enrolment and trials of
a speaker share an alpha there, and the n-th utterance of every set does: voices for a challenge come from
`pseudo_speakers`, which keeps them apart. Source: the challenge's own program of 2024.

Conventions: durations in seconds; a frame starts every `hop_samples` samples, frame 0 at sample 0.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from anonymization.methods.contract import MethodError
from common.arrays import Floats

RATE_HZ = 16_000

Level = Literal["peak", "kept"]
Engine = Literal["compiled", "torch"]

FULL_SCALE = 32768
PEAK = 32766
# Added to every sample, and to the windowed frame where the prediction is fitted.
OFFSET = float(np.finfo(np.float32).eps)
_MAX_ALPHA = 2.0
OFFICIAL_LOW, OFFICIAL_HIGH = 0.5, 0.9
_UTTERANCE_SEED = "VPC2024"


@dataclass(frozen=True)
class McAdamsParameters:
    """What `mcadams` does; everything but alpha defaults to the edition of 2022, with digital silence kept.

    alpha: exponent on the pole angles, above 0, at most 2; 1 changes nothing.
    window_s, hop_s: frame length and distance in seconds.
    order: poles per frame.
    level: "peak" scales the largest sample to 32766, as the official program does; "kept" gives
        back the RMS of the original, less where that would clip.
    keep_digital_silence: a frame of zeros stays zeros. The official program (False) filters the
        tiny constant that it adds to the signal: a second of zeros becomes sound at full scale.
    first_frame: also filter the frame at sample 0, as the edition of 2024 does. Without it the first
        hop of the output is zeros and the second fades in; with it the first hop fades in.
    tail: also filter the frames that reach past the end, as if zeros followed, so that the output
        stays at its level to the last sample. Without it, as officially, the last whole frame fades
        out and up to a hop of zeros follows.
    engine: "compiled" runs on the processor's cores; "torch" on a graphics card where torch finds
        one, else on the processor. Their outputs differ by at most 1.

    Raises MethodError where a value is out of range.
    """

    alpha: float
    window_s: float = 0.02
    hop_s: float = 0.01
    order: int = 20
    level: Level = "peak"
    keep_digital_silence: bool = True
    first_frame: bool = False
    tail: bool = False
    engine: Engine = "compiled"

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= _MAX_ALPHA:
            raise MethodError(
                f"The McAdams coefficient alpha must be above 0 and at most {_MAX_ALPHA:g}; found {self.alpha}."
            )
        if self.level not in get_args(Level):
            raise MethodError(f'The level must be "peak" or "kept"; found "{self.level}".')
        if self.engine not in get_args(Engine):
            raise MethodError(f'The engine must be "compiled" or "torch"; found "{self.engine}".')
        if self.order < 1:
            raise MethodError(f"The prediction order must be at least 1; found {self.order}.")
        if not 0 < self.hop_s <= self.window_s < math.inf or self.hop_samples < 1:
            raise MethodError(
                "The hop must be at least one sample and at most the window; "
                f"found hop_s={self.hop_s}, window_s={self.window_s}."
            )
        if self.window_samples < self.order + 2:
            raise MethodError(
                f"A window of {self.window_s} s has {self.window_samples} samples; "
                f"order {self.order} needs at least {self.order + 2}."
            )

    @property
    def window_samples(self) -> int:
        return round(self.window_s * RATE_HZ)

    @property
    def hop_samples(self) -> int:
        return round(self.hop_s * RATE_HZ)

    def frames(self, n_samples: int) -> range:
        """Return the frames that are filtered; those past the last whole one only with `tail`."""
        whole = max(0, 1 + (n_samples - self.window_samples) // self.hop_samples)
        touching = -(-n_samples // self.hop_samples)
        return range(0 if self.first_frame else 1, touching if self.tail else whole)

    def analysis_window(self) -> Floats:
        """Return root of the symmetric Hann window, scaled so that its squares overlap to about 1;
        (window_samples,)."""
        hann: Floats = np.hanning(self.window_samples)
        window: Floats = np.sqrt(hann / (hann.sum() / self.hop_samples))
        return window


def official_speaker_alpha(speaker: str) -> float:
    """Alpha of a speaker at speaker level, in [0.5, 0.9): the same in every data set.

    >>> round(official_speaker_alpha("1272"), 8)
    0.77574436
    """
    return float(_generator(speaker).uniform(OFFICIAL_LOW, OFFICIAL_HIGH))


def official_utterance_alphas(n_utterances: int) -> Floats:
    """Alphas at utterance level, shape (n_utterances,), in [0.5, 0.9), in the order of `wav.scp`.

    >>> official_utterance_alphas(3).round(8).tolist()
    [0.68758807, 0.56747103, 0.75924141]
    """
    return _generator(_UTTERANCE_SEED).uniform(OFFICIAL_LOW, OFFICIAL_HIGH, n_utterances)


def _generator(text: str) -> np.random.Generator:
    """Numpy's default generator, seeded by the first eight hexadecimal digits of SHA-256."""
    return np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
