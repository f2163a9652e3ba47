"""The sizes of the content decoder, for what declares one without loading torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DecoderShape:
    """The sizes of a network.

    inputs: numbers of a frame of Whisper's layers; bottleneck: of a frame of content; stages, codes: how many residual
    codes describe a frame at most, and how many there are in each stage; speaker: of the vector; width, blocks: of the
    decoder.
    """

    inputs: int = 1536
    bottleneck: int = 64
    stages: int = 4
    codes: int = 64
    speaker: int = 256
    width: int = 256
    blocks: int = 8
