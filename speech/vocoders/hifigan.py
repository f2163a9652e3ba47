"""HiFi-GAN: samples from a log mel spectrum by the universal weights of its authors, and the spectrum they expect.

The spectrum: magnitudes of 1024 points every 256 samples, ends mirrored by 384 samples, 80 triangles of Slaney's scale
from 0 to 8 kHz, natural logarithm of at least 1e-5. The network is generator V1. It sees 16 frames to each side at
most, so long spectra are worked on in parts that overlap, and give what the whole would. Conventions: samples are
float32 at 22,050 Hz, shape (n,), full scale 1.0; spectra float32, shape (frames, 80); a frame stands for 256 samples.

Source: J. Kong, J. Kim, J. Bae, "HiFi-GAN: generative adversarial networks for efficient and high fidelity speech
synthesis", NeurIPS 2020, and its program (MIT, github.com/jik876/hifi-gan).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from common.arrays import Floats32
from common.errors import InputError
from speech.features.mel import slaney_triangles
from speech.model_files.checkpoints import put_state
from speech.model_files.devices import Device, require_torch_device, without_tf32
from speech.model_files.store import find

WEIGHTS = "hifigan-universal"
RATE_HZ = 22_050
BANDS, HOP_SAMPLES = 80, 256
SPECTRUM_POINTS, HIGHEST_HZ, _FLOOR = 1024, 8_000.0, 1e-5
_MIRRORED = (SPECTRUM_POINTS - HOP_SAMPLES) // 2
_CHANNELS = 512
_RATES, _KERNELS = (8, 8, 2, 2), (16, 16, 4, 4)  # of the layers that make more samples of fewer channels
_BLOCK_KERNELS, _DILATIONS = (3, 7, 11), (1, 3, 5)
_SLOPE, _LAST_SLOPE = 0.1, 0.01
CONTEXT_FRAMES = 16  # farther frames have no effect on a sample
_FRAMES_AT_ONCE = 512


class _ResidualBlock(nn.Module):
    """Three pairs of convolutions, the first of each spread out, each pair added to what it gets."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        reach = (kernel - 1) // 2
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=spread, padding=reach * spread) for spread in _DILATIONS
        )
        self.convs2 = nn.ModuleList(nn.Conv1d(channels, channels, kernel, padding=reach) for _ in _DILATIONS)

    def forward(self, values: Tensor) -> Tensor:
        for first, second in zip(self.convs1, self.convs2, strict=True):
            hidden = first(functional.leaky_relu(values, _SLOPE))
            values = values + second(functional.leaky_relu(hidden, _SLOPE))
        return values


class Generator(nn.Module):
    """The network, generator V1; its parts are called as in the published files.

    channels: of the first layer. inputs: numbers of a frame. source: whether it adds a signal that is given at the rate
    of the samples after each layer that makes more samples, as NSF-HiFi-GAN does.
    """

    def __init__(self, channels: int = _CHANNELS, inputs: int = BANDS, *, source: bool = False) -> None:
        super().__init__()
        self.conv_pre = nn.Conv1d(inputs, channels, 7, padding=3)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        if source:
            self.sources = nn.ModuleList()
        step = HOP_SAMPLES
        for rate, kernel in zip(_RATES, _KERNELS, strict=True):
            self.ups.append(nn.ConvTranspose1d(channels, channels // 2, kernel, rate, padding=(kernel - rate) // 2))
            channels, step = channels // 2, step // rate
            self.resblocks.extend(_ResidualBlock(channels, each) for each in _BLOCK_KERNELS)
            if source:
                wide = 2 * step if step > 1 else 1
                self.sources.append(nn.Conv1d(1, channels, wide, step, padding=step // 2))
        self.conv_post = nn.Conv1d(channels, 1, 7, padding=3)

    def groups(self) -> list[list[nn.Module]]:
        """Return its layers in the order of their work: a group for each layer that makes more samples, and one after
        them."""
        blocks: list[nn.Module] = list(self.resblocks)
        count = len(_BLOCK_KERNELS)
        before: list[list[nn.Module]] = [
            [self.conv_pre],
            *(blocks[first : first + count] for first in range(0, len(blocks), count)),
        ]
        last: list[nn.Module] = [*self.ups, self.conv_post]
        return [[*layers, each] for layers, each in zip(before, last, strict=True)]

    def forward(self, bands: Tensor, source: Tensor | None = None) -> Tensor:
        """Return samples, shape (batch, 256 frames), of spectra, shape (batch, inputs, frames).

        Args:
            source: shape (batch, 1, 256 frames); None where the network adds none.
        """
        values = self.conv_pre(bands)
        n_blocks = len(_BLOCK_KERNELS)
        for number, up in enumerate(self.ups):
            values = up(functional.leaky_relu(values, _SLOPE))
            if source is not None:
                values = values + self.sources[number](source)
            blocks = self.resblocks[number * n_blocks : (number + 1) * n_blocks]
            values = torch.stack([block(values) for block in blocks]).mean(dim=0)
        samples: Tensor = torch.tanh(self.conv_post(functional.leaky_relu(values, _LAST_SLOPE))).squeeze(1)
        return samples


class HifiGan:
    """The generator with its weights on a device."""

    def __init__(self, generator: Generator, device: Device = "cpu") -> None:
        require_torch_device(device)
        self._generator = generator.to(device).eval()
        self._device = device

    def synthesize(self, spectra: Sequence[Floats32]) -> list[Floats32]:
        """Return the samples of each spectrum, 256 for each frame, within −1 and 1.

        Args:
            spectra: as `log_mel` makes them, shape (frames, 80), one frame or more each.

        Raises:
            InputError: another shape, or numbers that are not finite.
        """
        for number, spectrum in enumerate(spectra, 1):
            if spectrum.ndim != 2 or spectrum.shape[1] != BANDS or not len(spectrum):
                raise InputError(f"Expected a spectrum of shape (frames, {BANDS}), found {spectrum.shape}.")
            if not np.isfinite(spectrum).all():
                raise InputError(f"Expected finite numbers in each spectrum; number {number} has others.")
        with torch.inference_mode(), without_tf32():
            return [np.concatenate(list(self._parts(spectrum))) for spectrum in spectra]

    def _parts(self, spectrum: Floats32) -> Iterator[Floats32]:
        """Yield samples of some frames at a time; what they see of their neighbours is cut off again."""
        for start in range(0, len(spectrum), _FRAMES_AT_ONCE):
            first, end = max(0, start - CONTEXT_FRAMES), min(len(spectrum), start + _FRAMES_AT_ONCE)
            bands = torch.from_numpy(np.ascontiguousarray(spectrum[first : end + CONTEXT_FRAMES].T, np.float32))
            samples = self._generator(bands[None].to(self._device))[0]
            yield samples[(start - first) * HOP_SAMPLES : (end - first) * HOP_SAMPLES].cpu().numpy()


def log_mel(samples: Floats32) -> Floats32:
    """Return the spectrum that the weights expect, shape (n / 256, 80), rounded up: zeros fill the last frame.

    Args:
        samples: at 22,050 Hz, shape (n,), n ≥ 1.

    Raises:
        InputError: no samples.
    """
    if samples.ndim != 1 or not samples.size:
        raise InputError(f"Expected samples of shape (n,), found {samples.shape}.")
    wave = torch.from_numpy(samples.astype(np.float32))
    # A mirror needs more samples than it reaches.
    whole = max(-(-samples.size // HOP_SAMPLES) * HOP_SAMPLES, _MIRRORED + 1)
    frames = -(-samples.size // HOP_SAMPLES)
    wave = functional.pad(wave, (0, whole - samples.size))
    return log_mels(wave[None])[0, :frames].contiguous().numpy()


def log_mels(waves: Tensor) -> Tensor:
    """Return the spectra of pieces of equal length on whatever device they are, shape (batch, frames, 80).

    Args:
        waves: float32, shape (batch, 256 frames), more than 384 samples each.
    """
    waves = functional.pad(waves, (_MIRRORED, _MIRRORED), mode="reflect")
    window = torch.hann_window(SPECTRUM_POINTS, device=waves.device)
    spectrum = torch.stft(waves, SPECTRUM_POINTS, HOP_SAMPLES, window=window, center=False, return_complex=True)
    magnitudes = (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()
    return torch.log((_triangles().to(waves.device) @ magnitudes).clamp_min(_FLOOR)).transpose(1, 2)


def load(device: Device = "cpu") -> HifiGan:
    """Return the vocoder with the universal weights, their file verified.

    Raises:
        InputError: the file is missing or another one, or the device cannot be used.
    """
    return HifiGan(load_generator(find(WEIGHTS)), device)


def load_generator(path: Path) -> Generator:
    """Return a generator V1 with the weights of a published file.

    Raises:
        InputError: not such a file, or tensors of other names or shapes.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        state = content["generator"]
        whole = _joined(state)
    except Exception as error:  # torch raises whatever a broken file leads to
        raise InputError(f"{path.name} is no generator of HiFi-GAN that can be read.") from error
    generator = Generator()
    put_state(whole, generator, path)
    return generator


def _joined(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the state with weights in place of their lengths (`weight_g`) and directions (`weight_v`)."""
    joined = {}
    for name, tensor in state.items():
        if name.endswith("weight_v"):
            lengths = state[f"{name[:-1]}g"]
            norm = torch.linalg.vector_norm(tensor, dim=tuple(range(1, tensor.ndim)), keepdim=True)
            joined[name[:-2]] = tensor * (lengths / norm)
        elif not name.endswith("weight_g"):
            joined[name] = tensor
    return joined


@lru_cache(maxsize=1)
def _triangles() -> Tensor:
    return torch.from_numpy(slaney_triangles(SPECTRUM_POINTS, BANDS, RATE_HZ, HIGHEST_HZ).astype(np.float32))
