"""What the layers of Whisper's encoder make of speech: vectors that say which sounds there are, 50 a second.

The weights are those of the recogniser Whisper base, read from its CTranslate2 file; the forward pass is written here
in torch, because that program gives the last layer only, which keeps less of the sound than those before it. Each piece
of at most 30 s is followed by silence up to 30 s, as the network was trained. Conventions: samples are int16 at 16 kHz;
frame t covers samples 320 t to 320 t + 319. Layer 0 is what enters the first block, layer n the output of block n; the
last, 6, has also passed the closing normalisation, as the decoder gets it. Computed in float32 from weights of 16 bits.

Source: A. Radford et al., "Robust speech recognition via large-scale weak supervision", ICML 2023, and its program
(MIT, github.com/openai/whisper).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.arrays import Floats32, Samples
from common.errors import InputError
from speech.features.mel import slaney_triangles
from speech.model_files.checkpoints import put_state, renamed
from speech.model_files.ctranslate2 import read_tensors
from speech.model_files.devices import Device, require_torch_device
from speech.model_files.store import find

WEIGHTS = "whisper-base"
RATE_HZ = 16_000
HOP_SAMPLES = 320  # of a frame of the encoder
WINDOW_FRAMES = 1500  # 30 s
_WINDOW_SAMPLES = WINDOW_FRAMES * HOP_SAMPLES
_MEL_POINTS, _MEL_HOP = 400, 160  # samples
_MEL_FLOOR, _MEL_RANGE = 1e-10, 8.0  # power; decades below the loudest
_BATCH = {"cpu": 1, "cuda": 16}
_POSITIONS = ((r"^position_encodings\.encodings$", "positions"),)


@dataclass(frozen=True)
class WhisperShape:
    """The sizes of an encoder; the defaults are those of Whisper base."""

    width: int = 512
    depth: int = 6
    heads: int = 8
    bands: int = 80


class _Attention(nn.Module):
    """Self-attention: `linear_0` makes queries, keys and values, `linear_1` joins the heads."""

    def __init__(self, shape: WhisperShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.layer_norm = nn.LayerNorm(shape.width)
        self.linear_0 = nn.Linear(shape.width, 3 * shape.width)
        self.linear_1 = nn.Linear(shape.width, shape.width)

    def forward(self, values: Tensor) -> Tensor:
        batch, frames, width = values.shape
        joined = self.linear_0(self.layer_norm(values)).view(batch, frames, 3, self.heads, width // self.heads)
        queries, keys, contents = joined.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(queries, keys, contents)
        result: Tensor = self.linear_1(mixed.transpose(1, 2).reshape(batch, frames, width))
        return result


class _Block(nn.Module):
    """Attention, then two layers for each frame alone; both are added to what they get."""

    def __init__(self, shape: WhisperShape) -> None:
        super().__init__()
        self.self_attention = _Attention(shape)
        self.ffn = nn.ModuleDict(
            {
                "layer_norm": nn.LayerNorm(shape.width),
                "linear_0": nn.Linear(shape.width, 4 * shape.width),
                "linear_1": nn.Linear(4 * shape.width, shape.width),
            }
        )

    def forward(self, values: Tensor) -> Tensor:
        values = values + self.self_attention(values)
        hidden = functional.gelu(self.ffn["linear_0"](self.ffn["layer_norm"](values)))
        result: Tensor = values + self.ffn["linear_1"](hidden)
        return result


class WhisperEncoder(nn.Module):
    """The network; its parts are called as in the files of CTranslate2."""

    def __init__(self, shape: WhisperShape) -> None:
        super().__init__()
        self.shape = shape
        self.conv1 = nn.Conv1d(shape.bands, shape.width, 3, padding=1)
        self.conv2 = nn.Conv1d(shape.width, shape.width, 3, stride=2, padding=1)
        self.register_buffer("positions", torch.zeros(WINDOW_FRAMES, shape.width))
        for number in range(shape.depth):
            self.add_module(f"layer_{number}", _Block(shape))
        self.layer_norm = nn.LayerNorm(shape.width)

    def forward(self, bands: Tensor, layers: Sequence[int]) -> Tensor:
        """Return the outputs of layers, shape (batch, layers, 1500, width).

        Args:
            bands: of whole windows, shape (batch, bands, 3000).
            layers: numbers from 0 to the depth, in any order.
        """
        values = functional.gelu(self.conv2(functional.gelu(self.conv1(bands)))).transpose(1, 2)
        values = values + self.get_buffer("positions")
        outputs = {0: values}
        for number in range(max(layers)):
            values = outputs[number + 1] = self.get_submodule(f"layer_{number}")(values)
        if self.shape.depth in layers:
            outputs[self.shape.depth] = self.layer_norm(values)
        return torch.stack([outputs[number] for number in layers], dim=1)


class WhisperLayers:
    """The encoder with its weights on a device."""

    def __init__(self, encoder: WhisperEncoder, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._encoder = encoder.to(device).eval()
        self._device = device

    @property
    def positions(self) -> Floats32:
        """Return what is added to the frames of a window before the first block, shape (1500, width)."""
        return self._encoder.get_buffer("positions").cpu().numpy()

    def encode(self, utterances: Sequence[Samples], rate_hz: int, layers: Sequence[int]) -> list[Floats32]:
        """Return the layers of each utterance, shape (layers, frames, width); frames = samples / 320, rounded up.

        Recordings longer than 30 s are cut into pieces of equal length, which know nothing of one another.

        Args:
            utterances: int16, shape (n,), n ≥ 1 each.
            rate_hz: 16,000.
            layers: numbers from 0 to 6, at least one.

        Raises:
            InputError: another rate, an empty utterance, or no such layer.
        """
        self._check(utterances, rate_hz, layers)
        found: list[list[Floats32]] = [[] for _ in utterances]
        pieces = ((number, piece) for number, one in enumerate(utterances) for piece in cut_evenly(one))
        while batch := list(islice(pieces, _BATCH[self._device])):
            bands = torch.stack([log_mel(piece) for _, piece in batch]).to(self._device)
            with torch.inference_mode():
                outputs = self._encoder(bands, layers).cpu().numpy()
            for (number, piece), output in zip(batch, outputs, strict=True):
                found[number].append(output[:, : -(-piece.size // HOP_SAMPLES)])
        return [np.concatenate(parts, axis=1) for parts in found]

    def _check(self, utterances: Sequence[Samples], rate_hz: int, layers: Sequence[int]) -> None:
        depth = self._encoder.shape.depth
        if rate_hz != RATE_HZ:
            raise InputError(f"Layers of Whisper need samples at {RATE_HZ} Hz, found {rate_hz} Hz. Resample.")
        if not layers or not set(layers) <= set(range(depth + 1)):
            raise InputError(f"Expected layers from 0 to {depth}, at least one; found {list(layers)}.")
        if empty := [number for number, one in enumerate(utterances, 1) if one.size == 0]:
            raise InputError(f"Expected samples in each utterance; utterance {empty[0]} has none.")


def cut_evenly(samples: Samples) -> Iterator[Samples]:
    """Yield pieces of at most 30 s, as long as one another up to a frame; all but the last are whole frames."""
    frames = -(-samples.size // HOP_SAMPLES)
    pieces = -(-frames // WINDOW_FRAMES)
    step = -(-frames // pieces) * HOP_SAMPLES
    for start in range(0, samples.size, step):
        yield samples[start : start + step]


def log_mel(samples: Samples) -> Tensor:
    """Return the spectrum that the encoder takes, of 30 s with silence behind the samples, shape (80, 3000)."""
    wave = functional.pad(torch.from_numpy(samples.astype(np.float32) / 32768), (0, _WINDOW_SAMPLES - samples.size))
    window = torch.hann_window(_MEL_POINTS)
    spectrum = torch.stft(wave, _MEL_POINTS, _MEL_HOP, window=window, return_complex=True)[:, :-1]
    levels = torch.log10((_triangles() @ spectrum.abs().square()).clamp_min(_MEL_FLOOR))
    return (torch.maximum(levels, levels.max() - _MEL_RANGE) + 4) / 4


def load(device: Device = "cpu") -> WhisperLayers:
    """Return the encoder of Whisper base, its file verified.

    Raises:
        InputError: the file is missing or another one, or the device cannot be used.
    """
    return WhisperLayers(load_encoder(find(WEIGHTS)), device)


def load_encoder(path: Path, shape: WhisperShape | None = None) -> WhisperEncoder:
    """Return the encoder of a CTranslate2 file of the declared sizes; those of Whisper base where none are given.

    Raises:
        InputError: what `read_tensors` refuses, or other names, shapes or numbers of heads than declared.
    """
    encoder = WhisperEncoder(shape or WhisperShape())
    state = read_tensors(path, "WhisperSpec", "encoder/")
    heads = int(state.pop("num_heads", torch.tensor(0)))
    if heads != encoder.shape.heads:
        raise InputError(f"{path.name}: expected {encoder.shape.heads} heads of attention, found {heads}.")
    put_state(renamed(state, _POSITIONS, path), encoder, path)
    return encoder


@lru_cache(maxsize=1)
def _triangles() -> Tensor:
    return torch.from_numpy(slaney_triangles(_MEL_POINTS, 80).astype(np.float32))
