"""Log-mel features of a training's pieces, on the device where the network is.

Where they fit in memory they are computed once and kept as float16; otherwise the samples of a batch are read and their
features computed when the batch is needed. Conventions: features have shape (pieces, frames, bands), the mean of each
band over what is handed out taken off; frames every 10 ms.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from common.arrays import Samples
from common.progress import Count
from evaluation.attackers.training.corpus import Indices, Segments, TrainingUtterance, read_checked
from speech.features.log_mel import HOP, log_mel

BANDS = 80  # where no other number is asked for
BYTES_PER_NUMBER = 2
SHARE_OF_MEMORY = 0.4  # of what is free now
MEMORY_INFORMATION = Path("/proc/meminfo")
_AT_ONCE = 64  # pieces of one length whose features are computed together
_FULL_SCALE = 32768.0


class FeatureStore(Protocol):
    """Where features come from."""

    device: torch.device

    def frame_counts(self) -> Indices:
        """Return frames of every piece, shape (pieces,)."""

    def batch(self, pieces: Indices, starts: Indices, frames: int) -> tuple[Tensor, Tensor | None]:
        """Windows of some pieces.

        Args:
            pieces, starts: shape (batch,); the window of each begins at its frame.
            frames: length of every window; a piece that ends before is followed by zeros.

        Returns:
            Float32, shape (batch, frames, bands), and the frames that count of each; None where all do.
        """


class KeptFeatures:
    """Features in memory, one piece after the other."""

    def __init__(self, frames: Tensor, ends: Indices) -> None:
        """Keep features.

        Args:
            frames: shape (all frames, bands), any floating type, on the device to train on.
            ends: shape (pieces,), where each piece ends among the frames.
        """
        self.device = frames.device
        self._frames = frames
        self._first = torch.from_numpy(np.append(0, ends[:-1])).to(self.device)
        self._counts = np.diff(ends, prepend=0)
        self._lengths = torch.from_numpy(self._counts).to(self.device)

    def frame_counts(self) -> Indices:
        return self._counts

    def batch(self, pieces: Indices, starts: Indices, frames: int) -> tuple[Tensor, Tensor | None]:
        chosen = torch.from_numpy(pieces).to(self.device)
        begin = torch.from_numpy(starts).to(self.device)
        left = self._lengths[chosen] - begin
        offsets = torch.arange(frames, device=self.device)[None]
        places = self._first[chosen][:, None] + begin[:, None] + torch.minimum(offsets, left[:, None] - 1)
        return centred(self._frames[places].float(), self._counts[pieces] - starts, frames)


class ReadFeatures:
    """Features that are computed again for each batch."""

    def __init__(
        self, utterances: Sequence[TrainingUtterance], segments: Segments, device: torch.device, bands: int = BANDS
    ) -> None:
        self.device = device
        self._bands = bands
        self._utterances = utterances
        self._segments = segments
        self._counts = segments.piece_length // HOP + 1

    def frame_counts(self) -> Indices:
        return self._counts

    def batch(self, pieces: Indices, starts: Indices, frames: int) -> tuple[Tensor, Tensor | None]:
        longest = int((self._segments.piece_length[pieces] - starts * HOP).clip(max=(frames - 1) * HOP).max())
        sound = np.zeros((len(pieces), longest), dtype=np.int16)
        lengths = np.zeros(len(pieces), dtype=np.int64)
        for row, (piece, start) in enumerate(zip(pieces, starts, strict=True)):
            samples = _piece(self._utterances, self._segments, piece)[start * HOP :][:longest]
            sound[row, : samples.size], lengths[row] = samples, samples.size
        features = log_mel(_waveforms(sound, self.device), torch.from_numpy(lengths).to(self.device), self._bands)
        padded = torch.nn.functional.pad(features, (0, 0, 0, max(0, frames - features.shape[1])))[:, :frames]
        return centred(padded, self._counts[pieces] - starts, frames)


def centred(features: Tensor, counts: Indices, frames: int) -> tuple[Tensor, Tensor | None]:
    """Return the mean of each band taken off every window, and zeros behind its end.

    Args:
        features: shape (batch, frames, bands).
        counts: frames that count of each, shape (batch,); those beyond `frames` are all of them.
    """
    if (counts >= frames).all():
        return features - features.mean(dim=1, keepdim=True), None
    valid = torch.from_numpy(np.minimum(counts, frames)).to(features.device)
    heard = (torch.arange(frames, device=features.device) < valid[:, None])[:, :, None]
    mean = (features * heard).sum(dim=1, keepdim=True) / valid[:, None, None]
    return (features - mean) * heard, valid


def make_store(
    utterances: Sequence[TrainingUtterance],
    segments: Segments,
    device: torch.device,
    progress: Count,
    limit_bytes: int | None = None,
    bands: int = BANDS,
) -> FeatureStore:
    """Keep the features where they fit, else compute them batch by batch.

    Args:
        progress: told of each utterance whose features are kept.
        limit_bytes: memory for features; a share of what is free where None.
        bands: of the features.
    """
    needed = int((segments.piece_length // HOP + 1).sum()) * bands * BYTES_PER_NUMBER
    if needed > (free_bytes(device) * SHARE_OF_MEMORY if limit_bytes is None else limit_bytes):
        return ReadFeatures(utterances, segments, device, bands)
    counts = segments.piece_length // HOP + 1
    ends = np.cumsum(counts)
    frames = torch.empty(int(ends[-1]), bands, dtype=torch.float16, device=device)
    order = np.argsort(segments.piece_utterance, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(segments.piece_utterance[order])) + 1)
    waiting: dict[int, list[tuple[int, Samples]]] = {}
    for done, group in enumerate(groups):
        progress(done, len(groups))
        samples = read_checked(utterances[segments.piece_utterance[group[0]]])
        for piece in group:
            start, length = int(segments.piece_start[piece]), int(segments.piece_length[piece])
            alike = waiting.setdefault(length, [])
            alike.append((int(piece), samples[start : start + length]))
            if len(alike) == _AT_ONCE:
                _fill(frames, ends, counts, waiting.pop(length))
    for alike in waiting.values():
        _fill(frames, ends, counts, alike)
    progress(len(groups), len(groups))
    return KeptFeatures(frames, ends)


def free_bytes(device: torch.device) -> int:
    """Return memory that is free now, on a graphics card or for processes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    # What the system could give, files that it keeps in memory for later included; Linux alone says so.
    lines = MEMORY_INFORMATION.read_text().splitlines() if MEMORY_INFORMATION.is_file() else []
    available = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    if available:
        return 1024 * int(available[0])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _fill(frames: Tensor, ends: Indices, counts: Indices, alike: Sequence[tuple[int, Samples]]) -> None:
    """Compute the features of pieces of one length and lay them in their places."""
    sound = np.stack([samples for _, samples in alike])
    features = log_mel(_waveforms(sound, frames.device), bands=frames.shape[1]).to(torch.float16)
    for row, (piece, _) in enumerate(alike):
        frames[ends[piece] - counts[piece] : ends[piece]] = features[row]


def _piece(utterances: Sequence[TrainingUtterance], segments: Segments, piece: int) -> Samples:
    start, length = int(segments.piece_start[piece]), int(segments.piece_length[piece])
    return read_checked(utterances[segments.piece_utterance[piece]])[start : start + length]


def _waveforms(samples: Samples, device: torch.device) -> Tensor:
    return torch.from_numpy(samples).to(device).float() / _FULL_SCALE
