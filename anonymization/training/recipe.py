"""What a training is made of: the values of `recipes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from common.errors import MetricInputError
from speech.conversion.shape import DecoderShape

_FILE = Path(__file__).with_name("recipes.toml")


@dataclass(frozen=True)
class DecoderRecipe:
    """A training of `speech.conversion.content_decoder`.

    Attributes:
        name, title: as listed.
        steps: updates of the weights.
        batch: pieces of speech in each. crop: frames of the vocoder in a piece, 11.6 ms each.
        learning_rate: the largest, of AdamW; it rises over `warm_up` steps and falls to 0 with a cosine.
        warm_up: steps without codes, after which the codes are taken from what the bottleneck gives.
        commitment: weight of the squared distance between bottleneck and codes, beside the mean absolute difference
            of spectra.
        decay: part of the old that a code keeps with each step.
        variants: copies of each utterance with other formants and F0 (WORLD), from which content is taken as well; its
            spectrum stays that of the original, so that content learns to leave the voice out.
        checkpoint_every: steps between two states on disk.
        shape: of the network.
    """

    name: str
    title: str
    steps: int
    batch: int
    crop: int
    learning_rate: float
    warm_up: int
    commitment: float
    decay: float
    variants: int
    checkpoint_every: int
    shape: DecoderShape

    def changed(self, **values: object) -> DecoderRecipe:
        """The recipe with other values.

        Raises:
            MetricInputError: no such value, or one that is none; names all of them.
        """
        known = {each.name: type(getattr(self, each.name)) for each in fields(self) if each.name not in _FIXED}
        problems, found = [], {}
        for name, value in values.items():
            kind = known.get(name)
            if kind is None:
                problems.append(f"Expected a value of the recipe ({', '.join(known)}), found “{name}”.")
                continue
            try:
                found[name] = kind(str(value))
            except ValueError:
                problems.append(f"Expected {name} as a number such as {getattr(self, name)}, found “{value}”.")
                continue
            least = 0 if name in {"commitment", "decay", "variants", "warm_up"} else 1 if kind is int else 1e-9
            if found[name] < least or (name == "decay" and found[name] >= 1):
                problems.append(f"Expected {name} within its range, found {value}.")
        if problems:
            raise MetricInputError(" ".join(problems))
        return replace(self, **found)

    def as_dict(self) -> dict[str, object]:
        """All values, for a record."""
        return asdict(self)


_FIXED = {"name", "title", "shape"}


def read_recipes() -> Mapping[str, DecoderRecipe]:
    """The recipes that ship, by name."""
    with _FILE.open("rb") as file:
        content = tomllib.load(file)
    return {
        name: DecoderRecipe(**(values | {"name": name, "shape": DecoderShape(**values["shape"])}))
        for name, values in content.items()
    }
