"""ECAPA-TDNN with the published VoxCeleb weights of SpeechBrain: the architecture of the challenge's own attacker.

Features and network are ours, the weights those of ``spkrec-ecapa-voxceleb``; neither speechbrain nor torchaudio is
needed. Conventions: as in `speech.encoders.contract`; vectors have 192 numbers, neither normalised nor centred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Samples
from speech.encoders.contract import RATE_HZ, Device, EncoderEngine, SpeakerEncoder, Vectors, check_utterances
from speech.model_files import store
from speech.model_files.catalogue import read_engine
from speech.model_files.checkpoints import load_state
from speech.model_files.devices import require_torch_device

if TYPE_CHECKING:
    from speech.encoders.networks import EcapaTdnn, XvectorTdnn

WEIGHTS = "ecapa-voxceleb"
DIMENSION = 192
SHORTEST_SAMPLES = RATE_HZ // 10
# Padded speech at a time: the widest layers take 10 MB a second, and a processor gains nothing from more.
_BATCH_S = {"cpu": 30.0, "cuda": 600.0}
_FULL_SCALE = 32768.0


class LogMelEncoder:
    """Vectors of a network over log-mel features, whatever its training; one instance serves one thread."""

    def __init__(self, network: EcapaTdnn | XvectorTdnn, device: Device) -> None:
        """Move the network to where it will compute.

        Args:
            network: with its weights.
            device: where it computes, features included; in mixed precision on a graphics card.
        """
        self._network = network.to(device).eval()
        self._device = device
        self._batch_samples = int(_BATCH_S[device] * RATE_HZ)

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """Return vectors of some utterances, shape (n, dimension), float32; those of like length are computed together.

        Raises:
            InputError: another rate than 16 kHz, an utterance under a tenth of a second or silent throughout;
                names its position.
        """
        check_utterances(utterances, rate_hz, shortest_samples=SHORTEST_SAMPLES)
        vectors = np.empty((len(utterances), self._network.dimension), np.float32)
        by_length = sorted(range(len(utterances)), key=lambda place: utterances[place].size)
        for places in _batches(by_length, [item.size for item in utterances], self._batch_samples):
            vectors[places] = self._embed_batch([utterances[place] for place in places])
        return vectors

    def _embed_batch(self, utterances: Sequence[Samples]) -> Vectors:
        import torch

        from speech.features.log_mel import frame_counts, log_mel

        lengths = torch.tensor([item.size for item in utterances])
        waveforms = torch.zeros(len(utterances), int(lengths.max()))
        for row, item in zip(waveforms, utterances, strict=True):
            row[: item.size] = torch.from_numpy(item.astype(np.float32) / _FULL_SCALE)
        with torch.inference_mode():
            moved = lengths.to(self._device)
            features = log_mel(waveforms.to(self._device), moved, self._network.mel_bands)
            with torch.autocast("cuda", dtype=torch.float16, enabled=self._device == "cuda"):
                vectors = self._network(features, frame_counts(moved))
        return np.asarray(vectors.float().cpu().numpy(), np.float32)


def load_encoder(device: Device = "cpu") -> SpeakerEncoder:
    """Return the encoder with the published weights.

    Raises:
        InputError: the weights or the graphics card are missing, or the file does not hold this network.
    """
    require_torch_device(device)
    from speech.encoders.networks import ECAPA_SPEECHBRAIN_NAMES, EcapaTdnn

    path = store.find(WEIGHTS)
    network = EcapaTdnn()
    load_state(path, network, ECAPA_SPEECHBRAIN_NAMES)
    return LogMelEncoder(network, device)


ENGINE = read_engine(EncoderEngine, __file__, "ecapa-voxceleb", load=load_encoder, dimension=DIMENSION)


def _batches(places: Sequence[int], sizes: Sequence[int], most: int) -> list[list[int]]:
    """Return places in order of length, as many together as their padded samples allow."""
    batches: list[list[int]] = []
    for place in places:
        if batches and (len(batches[-1]) + 1) * sizes[place] <= most:
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches
