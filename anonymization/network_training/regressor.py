"""The training of the regressor of F0 and voicing, from codes of the decoder that ships, and what it is worth.

Speakers of whom nothing is learnt show how far the estimate is from the F0 that Praat finds, beside a guess that knows
the mean F0 of each recording and nothing else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from anonymization.methods.content_decoder.network_files import load_decoder
from anonymization.network_training.features import Features
from anonymization.network_training.loop import SpeechBatch, Training, TrainingSpeech
from anonymization.network_training.recipe import RegressorRecipe
from common.errors import InputError
from evaluation.attackers.training.corpus import TrainingUtterance
from speech.conversion.content_decoder import ContentDecoder, Converter, log_f0
from speech.conversion.f0_regressor import F0Regressor, Regressor
from speech.model_files.devices import Device

_SEMITONES = 12 / math.log(2)
# Fewer voiced frames have no course.
_LEAST_VOICED = 10


class RegressorTraining(Training[RegressorRecipe, F0Regressor]):
    """Regressor at a step.

    decoder: whose codes it reads. held_out: features of the speakers of whom it learns nothing.
    """

    loss_names = ("f0", "voicing")

    def __init__(
        self,
        features: Sequence[Features],
        recipe: RegressorRecipe,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        decoder: ContentDecoder,
        held_out: Sequence[Features],
        device: Device = "cpu",
    ) -> None:
        self._decoder, self._held_out = decoder.to(device).eval(), held_out
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    @classmethod
    def begin(
        cls, speech: TrainingSpeech, recipe: RegressorRecipe, seed: int, checkpoint: Path, key: str, device: Device
    ) -> Self:
        """Some speakers are held out."""
        unheard = hold_out_speakers(speech.utterances, recipe.held_out, seed)
        by_part: tuple[list[Features], list[Features]] = ([], [])
        for utterance, one in zip(speech.utterances, speech.features, strict=True):
            by_part[utterance.source in unheard].append(one)
        learnt, held_out = by_part
        decoder = load_decoder(speech.decoder)
        recipe = recipe.fit(decoder.shape)
        return cls(learnt, recipe, seed, checkpoint, key, decoder=decoder, held_out=held_out, device=device)

    def make_network(self) -> F0Regressor:
        """With mean and spread of the logarithm of F0 over the voiced frames.

        Raises:
            InputError: speech without any.
        """
        logs = np.log(np.concatenate([each.hz for each in self.features]).astype(np.float64))
        if not logs.size:
            raise InputError("Expected speech with voiced frames, found none. Add other recordings.")
        network = F0Regressor(self.recipe.shape)
        network.get_buffer("mean").fill_(logs.mean())
        network.get_buffer("spread").fill_(logs.std() + 1e-3)
        return network

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:  # noqa: ARG002 - of others
        """Return squared error of the standardised logarithm of F0 where voiced, and cross-entropy of voicing."""
        with torch.no_grad():
            codes = self._decoder.quantize(self._decoder.encode(batch.layers), self._decoder.shape.stages)[0][-1]
            content = batch.at_spectra(codes)
        logs, voicing = self.network(content, batch.speakers).unbind(dim=2)
        voiced = batch.intonation[:, :, 1] > 0
        mean, spread = (self.network.get_buffer(name) for name in ("mean", "spread"))
        wanted = (log_f0(batch.intonation) - mean) / spread
        error = (logs - wanted)[voiced].square().sum() / voiced.sum().clamp_min(1)
        doubt = functional.binary_cross_entropy_with_logits(voicing[batch.inside], voiced[batch.inside].float())
        self.descend(error + doubt)
        return float(error.detach()), float(doubt.detach())

    def tell(self) -> Mapping[str, Any]:
        """Return what it is worth on the speakers who were held out."""
        converter, stages = Converter(self._decoder, self.device), self._decoder.shape.stages
        return {"held_out": measure(Regressor(self.network, self.device), converter, stages, self._held_out)}


def measure(
    regressor: Regressor, converter: Converter, stages: int, features: Sequence[Features]
) -> dict[str, float | None]:
    """Return how far the estimates are from F0 and voicing as they were found.

    Args:
        stages: how many codes describe a frame.
        features: of utterances, with their own speaker vectors.

    Returns:
        rmse_semitones: of F0 over voiced frames; null_rmse_semitones: of the mean of each utterance's logarithm of F0
        in its place. correlation: of the logarithms over voiced frames, mean of the utterances with ten of them.
        voicing_error: share of frames. utterances. None where nothing is voiced.
    """
    wrong, frames = 0, 0
    errors: list[NDArray[np.float64]] = []
    nulls: list[NDArray[np.float64]] = []
    correlations = []
    for one in features:
        content = converter.find_content(one.layers[0].astype(np.float32), len(one.intonation), stages)
        logs, voicing = regressor.estimate(content, one.vector).T
        voiced = one.intonation[:, 1] > 0
        wrong, frames = wrong + int(((voicing > 0) != voiced).sum()), frames + voiced.size
        if not voiced.any():
            continue
        true = log_f0(torch.from_numpy(one.intonation)).numpy().astype(np.float64)[voiced]
        errors.append(logs[voiced] - true)
        nulls.append(true.mean() - true)
        if true.size >= _LEAST_VOICED and true.std() and logs[voiced].std():
            correlations.append(float(np.corrcoef(logs[voiced], true)[0, 1]))
    return {
        "utterances": len(features),
        "rmse_semitones": _root_mean_square(errors),
        "null_rmse_semitones": _root_mean_square(nulls),
        "correlation": round(float(np.mean(correlations)), 4) if correlations else None,
        "voicing_error": round(wrong / frames, 4) if frames else None,
    }


def hold_out_speakers(utterances: Sequence[TrainingUtterance], share: float, seed: int) -> frozenset[str]:
    """Return the speakers of whom nothing is learnt: so large a share, at least one, of those with the fewest
    utterances."""
    counts = Counter(one.source for one in utterances)
    least = sorted(counts, key=lambda name: (counts[name], name))
    number = max(1, round(share * len(counts)))
    among = least[: max(number, len(least) // 2)]
    return frozenset(np.random.default_rng(seed).permutation(among)[:number].tolist())


def _root_mean_square(errors: Sequence[NDArray[np.float64]]) -> float | None:
    if not errors:
        return None
    return round(_SEMITONES * float(np.sqrt(np.square(np.concatenate(errors)).mean())), 4)
