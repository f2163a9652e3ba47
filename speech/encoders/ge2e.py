"""GE2E speaker encoder of Resemblyzer, its network and preparation rebuilt here, with its published weights.

Prepared as there: quiet speech is raised to −30 dB, long pauses are cut, 40 mel power bands (not logarithmic) go in
windows of 1.6 s through three LSTM layers, and the unit vectors of the windows are averaged. One thing differs:
Resemblyzer asks WebRTC's detector, which has to be compiled, where speech is; here the level of 30 ms windows says so.

Source: L. Wan et al., "Generalized end-to-end loss for speaker verification", ICASSP 2018; Resemblyzer 0.1.4,
`audio.py` and `voice_encoder.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Floats32, Samples
from speech.encoders.contract import RATE_HZ, Device, EncoderEngine, SpeakerEncoder, Vectors, check_utterances, unusable
from speech.features.mel import slaney_triangles
from speech.model_files.catalogue import read_engine
from speech.model_files.devices import require_torch_device
from speech.model_files.store import find

if TYPE_CHECKING:
    from torch import nn


DIMENSION = 256
BANDS = 40
FRAME_SAMPLES, HOP_SAMPLES = 400, 160
WINDOW_FRAMES = 160  # 1.6 s
WINDOWS_PER_S = 1.3
LEAST_COVERAGE = 0.75  # of the last window by speech, or it is left out
SHORTEST_SAMPLES = RATE_HZ // 4
TARGET_DB = -30.0
FULL_SCALE = 32767
VAD_SAMPLES = 480  # 30 ms
VAD_SMOOTHING = 8  # windows
LONGEST_PAUSE = 6  # windows
# Windows whose level from 80 Hz to 4 kHz is further below the loud ones (their 95 % quantile) are pauses. Chosen for
# agreement with WebRTC's detector (mode 3): after smoothing 96 % of 80,000 windows of real speech are judged alike.
SPEECH_HZ = (80.0, 4000.0)
LOUD_QUANTILE, PAUSE_BELOW_LOUD_DB = 0.95, 32.0
SILENT_DB = -80.0  # of full scale: never speech
_WINDOWS_AT_ONCE = 64


class Ge2eEncoder:
    """The network with its weights on a device."""

    def __init__(self, network: nn.ModuleDict, device: Device) -> None:
        self._network = network.to(device).eval()
        self._device = device

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """As `speech.encoders.contract.SpeakerEncoder`; unit vectors, none of whose elements is negative."""
        check_utterances(utterances, rate_hz, shortest_samples=SHORTEST_SAMPLES)
        vectors = np.empty((len(utterances), DIMENSION), np.float32)
        for position, samples in enumerate(utterances):
            prepared = without_long_pauses(raised(samples))
            if prepared.size < SHORTEST_SAMPLES:
                found = f"{prepared.size / RATE_HZ:.2f} s"
                expected = f"at least {SHORTEST_SAMPLES / RATE_HZ:.2f} s of speech between pauses"
                raise unusable(position, len(utterances), expected, found)
            vectors[position] = self.embed_prepared(prepared)
        return vectors

    def embed_prepared(self, prepared: Floats32) -> Floats32:
        """Return the vector of speech whose level and pauses are as they should be, float32 in [−1, 1]; shape
        (256,)."""
        import torch

        starts = window_starts(prepared.size)
        whole = (starts[-1] + WINDOW_FRAMES) * HOP_SAMPLES
        bands = mel_power(np.pad(prepared, (0, max(0, whole - prepared.size))))
        windows = np.stack([bands[start : start + WINDOW_FRAMES] for start in starts])
        parts = []
        with torch.no_grad():
            for first in range(0, len(windows), _WINDOWS_AT_ONCE):
                batch = torch.from_numpy(windows[first : first + _WINDOWS_AT_ONCE]).to(self._device)
                _, (hidden, _) = self._network["lstm"](batch)
                raw = torch.relu(self._network["linear"](hidden[-1]))
                parts.append((raw / raw.norm(dim=1, keepdim=True)).cpu().numpy())
        mean = np.concatenate(parts).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), np.float32)


def raised(samples: Samples) -> Floats32:
    """Return speech as float32 in [−1, 1], raised to −30 dB of full scale where it is quieter."""
    wave = samples.astype(np.float32) / 32768
    level_db = 20 * np.log10(float(np.sqrt(np.mean(np.square(wave, dtype=np.float64)))))
    return np.asarray(wave * 10 ** (max(0.0, TARGET_DB - level_db) / 20), np.float32)


def without_long_pauses(wave: Floats32) -> Floats32:
    """Return speech and pauses of at most about 0.2 s; the end is cut to whole windows of 30 ms.

    Args:
        wave: float32, shape (n,), one window or longer.
    """
    windows = wave[: wave.size - wave.size % VAD_SAMPLES].reshape(-1, VAD_SAMPLES)
    hertz = np.fft.rfftfreq(VAD_SAMPLES, 1 / RATE_HZ)
    within = (hertz >= SPEECH_HZ[0]) & (hertz <= SPEECH_HZ[1])
    power = np.sum(np.abs(np.fft.rfft(windows, axis=1)[:, within]) ** 2, axis=1) * 2 / VAD_SAMPLES**2
    levels = 10 * np.log10(power + 1e-12)
    spoken = levels > max(np.quantile(levels, LOUD_QUANTILE) - PAUSE_BELOW_LOUD_DB, SILENT_DB)
    padded = np.pad(spoken.astype(np.float64), ((VAD_SMOOTHING - 1) // 2, VAD_SMOOTHING // 2))
    share = np.convolve(padded, np.ones(VAD_SMOOTHING), "valid") / VAD_SMOOTHING
    kept = np.round(share).astype(bool)  # exactly one half counts as a pause, as there
    kept = np.convolve(kept, np.ones(LONGEST_PAUSE + 1), "same") > 0
    return windows[kept].reshape(-1)


def window_starts(samples: int) -> list[int]:
    """Return the first frame of each window of 1.6 s; the last one only where three quarters of it are speech."""
    frames = -(-(samples + 1) // HOP_SAMPLES)
    step = round(RATE_HZ / WINDOWS_PER_S / HOP_SAMPLES)
    starts = list(range(0, max(1, frames - WINDOW_FRAMES + step + 1), step))
    coverage = (samples - starts[-1] * HOP_SAMPLES) / (WINDOW_FRAMES * HOP_SAMPLES)
    return starts[:-1] if coverage < LEAST_COVERAGE and len(starts) > 1 else starts


def mel_power(wave: Floats32) -> Floats32:
    """Mel power bands as librosa computes them by default: frames centred, zeros beyond both ends.

    Args:
        wave: float32 in [−1, 1], shape (n,).

    Returns:
        Shape (1 + n // hop, 40), float32.
    """
    padded = np.pad(wave, FRAME_SAMPLES // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME_SAMPLES)[::HOP_SAMPLES]
    triangles = slaney_triangles(FRAME_SAMPLES, BANDS).T.astype(np.float32)
    parts = []
    for first in range(0, len(frames), 4096):
        spectra = np.fft.rfft(frames[first : first + 4096] * _hann(), axis=1)
        parts.append((spectra.real**2 + spectra.imag**2).astype(np.float32) @ triangles)
    return np.concatenate(parts)


@cache
def _hann() -> Floats32:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME_SAMPLES) / FRAME_SAMPLES)).astype(np.float32)


def _network() -> nn.ModuleDict:
    from torch import nn

    return nn.ModuleDict({"lstm": nn.LSTM(BANDS, 256, 3, batch_first=True), "linear": nn.Linear(256, DIMENSION)})


def _load(device: Device) -> SpeakerEncoder:
    import torch

    require_torch_device(device)
    network = _network()
    # The file also holds the state of its training and tensors of a graphics card; its hash is known, and no code runs.
    checkpoint = torch.load(find("ge2e"), map_location="cpu", weights_only=True)
    state = {name: tensor for name, tensor in checkpoint["model_state"].items() if not name.startswith("similarity_")}
    network.load_state_dict(state)
    return Ge2eEncoder(network, device)


ENGINE = read_engine(EncoderEngine, __file__, "ge2e", load=_load, dimension=DIMENSION)
