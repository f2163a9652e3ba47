"""A recogniser of phones on the frames of a frozen encoder, and what it is trained by (CTC).

Convolutions along time over the layer of Whisper that a recipe names; its output says for each two frames which
phone begins or goes on there, or none. Conventions: frames have shape (frames, inputs), 50 a second; a text is phones
separated by spaces; phone 0 is CTC's blank.

Source: A. Graves et al., "Connectionist temporal classification", ICML 2006.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from common.errors import InputError
from speech.model_files.checkpoints import put_state, save_checkpoint
from speech.recognizers.phone_recipe import INPUTS, MERGED, PhoneRecipe

Frames = NDArray[np.floating]

KERNEL = 9
# CTC names a phone at one or two outputs; frames so many outputs away, 120 ms, still belong to it.
_REACH = 3


class _Block(nn.Module):
    """A convolution over time for each number alone, then two layers for each frame; added to what they get."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.along = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2, groups=width)
        self.normed = nn.LayerNorm(width)
        self.across = nn.Sequential(
            nn.Linear(width, 3 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(3 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, values: Tensor, heard: Tensor) -> Tensor:
        along = self.along((values * heard).transpose(1, 2)).transpose(1, 2)
        result: Tensor = values + self.across(self.normed(along))
        return result


def count_outputs(lengths: Tensor) -> Tensor:
    """Return how many outputs utterances of so many frames have, both shape (batch,)."""
    return (lengths + MERGED - 1) // MERGED


class PhoneNetwork(nn.Module):
    """The network with the phones that it knows."""

    def __init__(self, recipe: PhoneRecipe, phones: Sequence[str]) -> None:
        super().__init__()
        self.recipe, self.phones = recipe, tuple(phones)
        self.register_buffer("mean", torch.zeros(INPUTS))
        self.register_buffer("spread", torch.ones(INPUTS))
        self.enter = nn.Sequential(nn.Linear(MERGED * INPUTS, recipe.width), nn.LayerNorm(recipe.width))
        self.blocks = nn.ModuleList(_Block(recipe.width, recipe.dropout) for _ in range(recipe.blocks))
        self.leave = nn.Sequential(nn.LayerNorm(recipe.width), nn.Linear(recipe.width, len(self.phones) + 1))

    def forward(self, frames: Tensor, lengths: Tensor) -> Tensor:
        """Logarithms of chances, shape (batch, frames / 2 rounded up, phones + 1).

        Args:
            frames: shape (batch, frames, inputs); those behind an utterance's end have no effect.
            lengths: frames of each utterance, shape (batch,).
        """
        heard = (torch.arange(frames.shape[1], device=frames.device) < lengths[:, None])[:, :, None]
        values = heard * (frames - self.get_buffer("mean")) / self.get_buffer("spread")
        values = functional.pad(values, (0, 0, 0, -frames.shape[1] % MERGED))
        values = self.enter(values.reshape(len(values), -1, MERGED * INPUTS))
        places = torch.arange(values.shape[1], device=frames.device)
        heard = (places < count_outputs(lengths)[:, None])[:, :, None]
        for block in self.blocks:
            values = block(values, heard)
        return functional.log_softmax(self.leave(values).float(), dim=2)

    def describe(self) -> dict[str, str]:
        """Recipe and phones, for the header of a file that `load` reads."""
        return {"recipe": self.recipe.to_json(), "phones": json.dumps(self.phones)}

    def number(self, text: str) -> list[int]:
        """Return the numbers of the phones of a text; those that the network does not know are left out."""
        places = {phone: place for place, phone in enumerate(self.phones, 1)}
        return [places[phone] for phone in text.split() if phone in places]

    def recognise(self, utterances: Sequence[Frames]) -> list[str]:
        """Return the phones of each utterance: of each frame the likeliest, repetitions and blanks left out.

        Args:
            utterances: frames, shape (frames, inputs), at least one frame each.
        """
        likeliest = (self._find_likeliest(frames).tolist() for frames in utterances)
        return [" ".join(self.phones[place - 1] for place, _ in groupby(best) if place) for best in likeliest]

    def label_frames(self, frames: Frames) -> NDArray[np.intp]:
        """Return the number of the phone that each frame belongs to, 0 where none is near, shape (frames,).

        CTC says when a phone is heard, not how long it lasts: a frame belongs to the nearest output that names one.

        Args:
            frames: shape (frames, inputs), at least one.
        """
        named = self._find_likeliest(frames)
        outputs = np.arange(len(named))
        peaks = np.flatnonzero(named)
        if not peaks.size:
            return np.zeros(len(frames), np.intp)
        after = np.searchsorted(peaks, outputs).clip(max=peaks.size - 1)
        before = (after - 1).clip(min=0)
        is_before = np.abs(outputs - peaks[before]) <= np.abs(peaks[after] - outputs)
        nearest = np.where(is_before, peaks[before], peaks[after])
        labels = np.where(np.abs(outputs - nearest) <= _REACH, named[nearest], 0)
        return np.repeat(labels, MERGED)[: len(frames)]

    def _find_likeliest(self, frames: Frames) -> NDArray[np.intp]:
        """Of each output the likeliest phone, 0 for none, shape (outputs,)."""
        self.eval()
        with torch.inference_mode():
            given = torch.from_numpy(np.ascontiguousarray(frames, np.float32)).to(self.get_buffer("mean").device)
            found = self(given[None], torch.tensor([len(frames)], device=given.device))[0].argmax(dim=1)
        likeliest: NDArray[np.intp] = found.cpu().numpy().astype(np.intp)
        return likeliest


def save(network: PhoneNetwork, path: Path) -> None:
    """Keep a network as safetensors, its recipe and phones in the header."""
    save_checkpoint(path, network, network.describe())


def load(path: Path) -> PhoneNetwork:
    """Return the network of a file of `save`.

    Raises:
        InputError: another file, or a damaged one.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dictionary
        network = PhoneNetwork(PhoneRecipe.from_json(header["recipe"]), json.loads(header["phones"]))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path.name}: expected the weights of a phone recogniser: {error}") from error
    put_state(state, network, path)
    return network.eval()
