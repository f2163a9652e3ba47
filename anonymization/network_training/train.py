"""Train a network of a recipe: features, steps, and what stays of them: weights, losses and a card, and for the decoder
the voices of the speakers.

Stages of progress: ``features``, ``training``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from anonymization.methods.content_decoder.network_files import SHIPPED, NetworkFile
from anonymization.network_training.decoder import DecoderTraining, SoftUnitsTraining, WorldDecoderTraining
from anonymization.network_training.features import SPEAKER_ENCODER, Features, read_features
from anonymization.network_training.generator import GeneratorTraining, HifiGanTraining, VocoderTraining
from anonymization.network_training.loop import Training, TrainingSpeech, write_curve
from anonymization.network_training.recipe import (
    DecoderRecipe,
    GeneratorRecipe,
    HifiGanRecipe,
    MapRecipe,
    NetworkRecipe,
    Recipe,
    RecognizerRecipe,
    RegressorRecipe,
    SoftUnitsRecipe,
    VocoderRecipe,
    WorldDecoderRecipe,
)
from anonymization.network_training.recognizer_map import fit_recognizer_map
from anonymization.network_training.regressor import RegressorTraining
from common.atomic_write import write_atomically
from common.errors import InputError
from common.progress import Progress, ignore_progress
from evaluation.attackers.training.corpus import TrainingUtterance
from evaluation.recognizer_training.frames import read_spoken_texts
from evaluation.recognizer_training.training import train_phones
from speech.conversion.content_decoder import FRAME_S
from speech.model_files.devices import Device, require_torch_device
from speech.model_files.store import find
from speech.model_files.training_states import other_training
from speech.recognizers.phone_recipe import FRAMES_PER_S
from speech.vocoders.world_library import missing_world

WEIGHTS, CARD, CHECKPOINT = "weights.safetensors", "card.json", "checkpoint.pt"
_TRAININGS: Mapping[type[NetworkRecipe], type[Training[Any, Any]]] = {
    DecoderRecipe: DecoderTraining,
    SoftUnitsRecipe: SoftUnitsTraining,
    RegressorRecipe: RegressorTraining,
    GeneratorRecipe: GeneratorTraining,
    HifiGanRecipe: HifiGanTraining,
    VocoderRecipe: VocoderTraining,
    WorldDecoderRecipe: WorldDecoderTraining,
}


def train(
    utterances: Sequence[TrainingUtterance],
    recipe: Recipe,
    seed: int,
    folder: Path,
    licence: str = "",
    progress: Progress = ignore_progress,
    device: Device = "cpu",
    texts: Mapping[str, str] | None = None,
    *,
    decoder: NetworkFile = SHIPPED.decoder,
) -> Mapping[str, Any]:
    """Train, or go on from the state in the folder; its card.

    Args:
        folder: is made; holds features, state, weights, losses, card and whatever else the recipe makes.
        licence: of the speech and who has to be named, for the card.
        device: that reads the features and trains; a recognizer-map is fitted on the processor.
        texts: words by identifier of the utterance, for recipes that need them; nothing is learnt of phones from
            utterances without.
        decoder: whose content is learnt from, by recipes that need one; that which ships, or another training's.

    Raises:
        InputError: speech that cannot be used, a folder with another training, no such device, or a model of
            the recipe that is not here.
    """
    require_torch_device(device)
    folder.mkdir(parents=True, exist_ok=True)
    key = _key(utterances, recipe, seed, texts, decoder)
    if (folder / CARD).is_file():
        card: dict[str, Any] = json.loads((folder / CARD).read_text())
        if card["key"] != key:
            raise other_training(folder)
        return card
    if isinstance(recipe, MapRecipe):
        return _keep_map(utterances, recipe, seed, key, folder, licence, progress)
    if isinstance(recipe, RecognizerRecipe):
        return _keep_recognizer(utterances, texts or {}, recipe, seed, key, folder, licence, progress, device)
    if not isinstance(recipe, NetworkRecipe):
        raise TypeError(recipe)
    for model in recipe.begins_from:
        find(model)
    if recipe.for_world and (sentence := missing_world("Parameters of WORLD")):
        raise InputError(sentence)
    read = partial(progress, "features")
    features = read_features(utterances, folder / "features", recipe.variants, read, device, for_world=recipe.for_world)
    speech = TrainingSpeech(utterances, features, decoder, texts or {})
    training = _TRAININGS[type(recipe)].begin(speech, recipe, seed, folder / CHECKPOINT, key, device)
    training.run(partial(progress, "training"))
    return _keep(training, utterances, features, licence, folder, decoder)


def _keep(
    training: Training[Any, Any],
    utterances: Sequence[TrainingUtterance],
    features: Sequence[Features],
    licence: str,
    folder: Path,
    decoder: NetworkFile,
) -> dict[str, Any]:
    from safetensors.torch import save

    weights = save(_halve(training.learnt()))
    files = {WEIGHTS: weights, **training.make_files(utterances)}
    training.keep_curve()
    seconds = sum(len(each.spectrum) for each in features) * FRAME_S
    card = {
        "key": training.key,
        "recipe": training.recipe.as_dict(),
        "seed": training.seed,
        "data": _describe_data(utterances, seconds, licence),
        "training_seconds": round(training.seconds, 1),
        "losses": dict(zip(training.loss_names, training.losses[-1][1:], strict=True)),
        **training.tell(),
        **({"decoder_sha256": decoder.sha256} if training.recipe.reads_decoder else {}),
        "device": _describe_device(training.device),
    }
    return _write(folder, files, card)


def _keep_map(
    utterances: Sequence[TrainingUtterance],
    recipe: MapRecipe,
    seed: int,
    key: str,
    folder: Path,
    licence: str,
    progress: Progress,
) -> dict[str, Any]:
    from safetensors.numpy import save

    began = time.monotonic()
    fitted, seconds, told = fit_recognizer_map(utterances, recipe, seed, partial(progress, "features"))
    card = {
        "key": key,
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": _describe_data(utterances, seconds, licence),
        "training_seconds": round(time.monotonic() - began, 1),
        **told,
    }
    return _write(folder, {WEIGHTS: save(dict(fitted.tensors()))}, card)


def _keep_recognizer(
    utterances: Sequence[TrainingUtterance],
    texts: Mapping[str, str],
    recipe: RecognizerRecipe,
    seed: int,
    key: str,
    folder: Path,
    licence: str,
    progress: Progress,
    device: Device,
) -> dict[str, Any]:
    from safetensors.torch import save

    began = time.monotonic()
    spoken = read_spoken_texts(utterances, texts, folder / "features", recipe, partial(progress, "features"), device)
    fitted = train_phones(spoken, recipe, seed, folder / CHECKPOINT, partial(progress, "training"), device)
    write_curve(
        folder,
        ("epoch", "loss", "phone_error_rate"),
        [(one.epoch, round(one.loss, 5), one.error_rate) for one in fitted.epochs],
    )
    heard = {one.name for one in spoken}
    seconds = sum(len(one.frames) for one in spoken) / FRAMES_PER_S
    last = fitted.epochs[-1]
    card = {
        "key": key,
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": _describe_data([one for one in utterances if one.identifier in heard], seconds, licence),
        "training_seconds": round(time.monotonic() - began, 1),
        "losses": {"loss": round(last.loss, 5)},
        "held_out": {"phone_error_rate": last.error_rate},
        "device": _describe_device(device),
    }
    return _write(
        folder, {WEIGHTS: save(_halve(fitted.network.state_dict()), metadata=fitted.network.describe())}, card
    )


def _halve(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors in 16 bits, as they ship."""
    return {name: tensor.detach().half().cpu().contiguous() for name, tensor in tensors.items()}


def _describe_data(utterances: Sequence[TrainingUtterance], seconds: float, licence: str) -> dict[str, Any]:
    speakers = len({one.source for one in utterances})
    return {"utterances": len(utterances), "speakers": speakers, "seconds": round(seconds, 1), "licence": licence}


def _write(folder: Path, files: Mapping[str, bytes], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return files, and last of all the card."""
    for name, content in files.items():
        write_atomically(folder / name, content)
    card = {
        **about,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "speaker_encoder": SPEAKER_ENCODER,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    write_atomically(folder / CARD, (json.dumps(card, indent=2) + "\n").encode())
    return card


def _describe_device(device: Device) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


def _key(
    utterances: Sequence[TrainingUtterance],
    recipe: Recipe,
    seed: int,
    texts: Mapping[str, str] | None,
    decoder: NetworkFile,
) -> str:
    named = [(one.identifier, one.source, *([texts.get(one.identifier, "")] if texts else [])) for one in utterances]
    described = [recipe.as_dict(), seed, named, *([decoder.sha256] if recipe.reads_decoder else [])]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
