"""ResNet34 of WeSpeaker, trained on VoxCeleb: the default attacker, run by onnxruntime without PyTorch.

Input are 80 log mel filterbank energies (Kaldi's, Hamming window) less their mean over the utterance; output is a
vector of 256 that is compared by the cosine.

Source: H. Wang et al., "WeSpeaker: a research and production oriented speaker embedding learning toolkit", ICASSP 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Floats32, Samples
from speech.encoders.contract import RATE_HZ, Device, EncoderEngine, SpeakerEncoder, Vectors, check_utterances
from speech.features.mel import FilterbankOptions, log_mel_filterbank
from speech.model_files.catalogue import read_engine
from speech.model_files.devices import open_session
from speech.model_files.store import find

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

DIMENSION = 256
# Shorter than this the network's three halvings of time leave too little to take a spread of.
SHORTEST_SAMPLES = RATE_HZ // 4
# A minute takes about 0.2 GB of memory; longer utterances are heard in equal pieces of at most this many frames.
LONGEST_FRAMES = 6_000
_OPTIONS = FilterbankOptions(window="hamming")


class WeSpeakerEncoder:
    """The model in one session; each utterance runs alone, so that no padding touches its vector.

    Args:
        session: of onnxruntime, as `speech.model_files.devices.open_session` makes it.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        self._output = session.get_outputs()[0].name

    def embed(self, utterances: Sequence[Samples], rate_hz: int) -> Vectors:
        """As `speech.encoders.contract.SpeakerEncoder`; one longer than a minute is the mean of its pieces."""
        check_utterances(utterances, rate_hz, shortest_samples=SHORTEST_SAMPLES)
        vectors = np.empty((len(utterances), DIMENSION), np.float32)
        for position, samples in enumerate(utterances):
            energies = log_mel_filterbank(samples, _OPTIONS)
            vectors[position] = self._embed_one(energies - energies.mean(axis=0))
        return vectors

    def _embed_one(self, energies: Floats32) -> Vectors:
        pieces = np.array_split(energies, -(-len(energies) // LONGEST_FRAMES))
        heard = [self._session.run([self._output], {self._input: piece[np.newaxis]})[0][0] for piece in pieces]
        return np.asarray(np.mean(heard, axis=0), np.float32)


def _load(device: Device) -> SpeakerEncoder:
    return WeSpeakerEncoder(open_session(find("wespeaker-resnet34"), device))


ENGINE = read_engine(EncoderEngine, __file__, "wespeaker-resnet34", load=_load, dimension=DIMENSION)
