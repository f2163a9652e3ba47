"""The sizes of the networks of a conversion, for what declares one without loading torch."""

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


@dataclass(frozen=True)
class SoftUnitsShape(DecoderShape):
    """The sizes of a network whose content names units, and has no codes. units: how many there are."""

    bottleneck: int = 256
    stages: int = 0
    codes: int = 0
    units: int = 256


@dataclass(frozen=True)
class RegressorShape:
    """The sizes of a regressor of F0.

    content: numbers of a frame of content; speaker: of the vector; width, layers: of its convolutions.
    """

    content: int = 64
    speaker: int = 256
    width: int = 256
    layers: int = 4


@dataclass(frozen=True)
class GeneratorShape:
    """The sizes of a generator of samples from content.

    content: numbers of a frame of content; speaker: of the vector; width, blocks: of what comes before the samples;
    channels: of the first layer that makes more samples; harmonics: of the source.
    """

    content: int = 64
    speaker: int = 256
    width: int = 192
    blocks: int = 4
    channels: int = 256
    harmonics: int = 8


@dataclass(frozen=True)
class JointHifiGanShape:
    """What is learnt of a decoder and HiFi-GAN as one network.

    width: of the decoder; blocks: its last ones that learn, where it has so many; groups: of the generator's layers,
    the first ones that learn, of five.
    """

    width: int = 256
    blocks: int = 4
    groups: int = 1


@dataclass(frozen=True)
class SourceFilterShape:
    """The sizes of a source-filter vocoder.

    speaker: of the vector; width, blocks: of the condition; hidden, layers: channels and convolutions of a filter
    block; filters: blocks that filter the harmonics; taps: of the sincs.
    """

    speaker: int = 256
    width: int = 128
    blocks: int = 2
    hidden: int = 32
    filters: int = 1
    layers: int = 6
    taps: int = 31


@dataclass(frozen=True)
class WorldDecoderShape:
    """The sizes of a decoder to parameters of WORLD.

    content: numbers of a frame of content; speaker: of the vector; width, blocks: of the decoder.
    """

    content: int = 64
    speaker: int = 256
    width: int = 192
    blocks: int = 4
