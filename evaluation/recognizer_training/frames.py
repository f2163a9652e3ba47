"""The frames of an encoder's layer that a phone recogniser reads, kept in files named after the samples."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.atomic_write import write_atomically
from common.errors import InputError
from common.packages import missing_packages
from common.progress import Count, ignore_progress
from evaluation.attackers.training.corpus import RATE_HZ, TrainingUtterance, read_checked
from speech.model_files.devices import Device
from speech.model_files.store import is_here, missing_sentence
from speech.recognizers import phones
from speech.recognizers.phone_recipe import ENCODER, MERGED, PhoneRecipe

if TYPE_CHECKING:
    from speech.features.whisper_layers import WhisperLayers

Frames = NDArray[np.floating]
_VERSION = "1"
_TITLE = "A phone recogniser"


@dataclass(frozen=True, eq=False)
class SpokenText:
    """What is learned from or tested on.

    Attributes:
        name: of the utterance.
        frames: of the encoder's layer, shape (frames, inputs).
        phones: of the transcript, separated by spaces.
    """

    name: str
    frames: Frames
    phones: str

    @property
    def is_possible(self) -> bool:
        """Return whether CTC can align them: an output for each phone, and one between two that are alike."""
        phones = self.phones.split()
        return 0 < len(phones) + sum(a == b for a, b in pairwise(phones)) <= -(-len(self.frames) // MERGED)


def missing() -> str:
    """Return why no phone recogniser can be trained here, as one sentence; empty where it can."""
    if sentence := missing_packages(_TITLE, "torch", "safetensors") or phones.missing():
        return sentence
    return "" if is_here(ENCODER) else missing_sentence(ENCODER)


def read_spoken_texts(
    utterances: Sequence[TrainingUtterance],
    texts: Mapping[str, str],
    folder: Path,
    recipe: PhoneRecipe,
    progress: Count = ignore_progress,
    device: Device = "cpu",
    refuse: Callable[[str], None] | None = None,
) -> list[SpokenText]:
    """Return frames and phones of the utterances that have a transcript, in their order.

    Args:
        texts: transcripts by name of the utterance.
        folder: is made; keeps the frames, so that what was computed before is read.
        refuse: told the sentence of each recording that cannot be used; without it they are an error, named together.

    Raises:
        InputError: recordings that cannot be used, or the weights of the encoder are missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reader: list[WhisperLayers] = []
    found: list[SpokenText] = []
    problems: list[str] = []
    wanted = [one for one in utterances if texts.get(one.identifier, "").strip()]
    for number, one in enumerate(wanted):
        progress(number, len(wanted))
        try:
            frames = _read_frames(one, folder, recipe.layer, device, reader)
        except InputError as error:
            (refuse or problems.append)(str(error))
            continue
        found.append(SpokenText(one.identifier, frames, phones.spell_phones(texts[one.identifier])))
    progress(len(wanted), len(wanted))
    if problems:
        raise InputError(" ".join(problems))
    return found


def _read_frames(
    utterance: TrainingUtterance, folder: Path, layer: int, device: Device, reader: list[WhisperLayers]
) -> NDArray[np.float16]:
    samples = read_checked(utterance)
    if not samples.size:
        raise InputError(f"{utterance.identifier}: expected speech, found a recording without a sample.")
    digest = hashlib.sha256(f"{_VERSION}|{layer}|".encode() + samples.tobytes()).hexdigest()
    path = folder / f"{digest[:32]}.npy"
    if not path.is_file():
        if not reader:
            from speech.features import whisper_layers

            reader.append(whisper_layers.load(device))
        content = io.BytesIO()
        np.save(content, reader[0].encode([samples], RATE_HZ, (layer,))[0][0].astype(np.float16))
        write_atomically(path, content.getvalue())
    kept: NDArray[np.float16] = np.load(path, allow_pickle=False)
    return kept


def choose_speech(
    utterances: Sequence[TrainingUtterance], durations_s: Mapping[str, float], recipe: PhoneRecipe, seed: int
) -> list[TrainingUtterance]:
    """Return utterances of at most as much speech as the recipe uses, drawn by chance, in their order.

    Args:
        durations_s: by name of the utterance.
    """
    order = np.random.default_rng([seed, 2]).permutation(len(utterances))
    left, chosen = recipe.most_s, set()
    for place in order.tolist():
        if (length := durations_s[utterances[place].identifier]) <= left:
            left -= length
            chosen.add(place)
    return [one for place, one in enumerate(utterances) if place in chosen]
