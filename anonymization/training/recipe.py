"""What a training is made of: the values of `recipes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import ClassVar, Self

from common.errors import MetricInputError
from speech.conversion.shape import DecoderShape, GeneratorShape, RegressorShape
from speech.recognizers.phone_recipe import PhoneRecipe

_FILE = Path(__file__).with_name("recipes.toml")


@dataclass(frozen=True)
class Recipe:
    """What every training has: name and title, as listed.

    needs_texts: whether it learns from the words of the utterances, too. reads_decoder: whether from the content that a
    decoder makes.
    """

    needs_texts: ClassVar[bool] = False
    reads_decoder: ClassVar[bool] = False

    name: str
    title: str

    def changed(self, **values: object) -> Self:
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
            least = 0 if name in _MAY_BE_0 else 1 if kind is int else 1e-9
            if found[name] < least or (name in {"decay", "held_out"} and found[name] >= 1):
                problems.append(f"Expected {name} within its range, found {value}.")
        if problems:
            raise MetricInputError(" ".join(problems))
        return replace(self, **found)

    def as_dict(self) -> dict[str, object]:
        """All values, for a record."""
        return asdict(self)


@dataclass(frozen=True)
class NetworkRecipe(Recipe):
    """A training in steps.

    Attributes:
        steps: updates of the weights.
        batch: pieces of speech in each. crop: frames of the vocoder in a piece, 11.6 ms each.
        learning_rate: the largest, of AdamW; it rises over `warm_up` steps and falls to 0 with a cosine.
        variants: copies of each utterance with other formants and F0 (WORLD), from which content is taken as well; what
            is to be learnt stays that of the original, so that content is learnt to be read without the voice.
        checkpoint_every: steps between two states on disk.
        shape: of the network.
    """

    steps: int
    batch: int
    crop: int
    learning_rate: float
    warm_up: int
    variants: int
    checkpoint_every: int
    shape: DecoderShape | RegressorShape | GeneratorShape


@dataclass(frozen=True)
class DecoderRecipe(NetworkRecipe):
    """A training of `speech.conversion.content_decoder`.

    Attributes:
        warm_up: also the steps without codes, after which the codes are taken from what the bottleneck gives.
        commitment: weight of the squared distance between bottleneck and codes, beside the mean absolute difference
            of spectra.
        decay: part of the old that a code keeps with each step.
    """

    commitment: float
    decay: float
    shape: DecoderShape


@dataclass(frozen=True)
class RegressorRecipe(NetworkRecipe):
    """A training of `speech.conversion.f0_regressor`, on the codes of a decoder.

    Attributes:
        held_out: share of the speakers of whom nothing is learnt, and on whom the network is measured.
    """

    reads_decoder: ClassVar[bool] = True

    held_out: float
    shape: RegressorShape


@dataclass(frozen=True)
class GeneratorRecipe(NetworkRecipe):
    """A training of `speech.conversion.joint_generator`, on the content of a decoder.

    Attributes:
        adversarial_from: the step from which discriminators judge; before it only spectra are compared.
        narrower: by how much the discriminators are narrower than those of HiFi-GAN.
        spectrum, features: weights of the difference of spectra and of what the discriminators make of both, beside
            their judgement.
    """

    reads_decoder: ClassVar[bool] = True

    adversarial_from: int
    narrower: int
    spectrum: float
    features: float
    shape: GeneratorShape


@dataclass(frozen=True)
class MapRecipe(Recipe):
    """A fit of `speech.conversion.recognizer_map`, in one step.

    Attributes:
        ridge: weight of the squared weights, in units of the mean variance of a feature.
        held_out: share of the speakers on whom a map of the others is measured; the map that is kept knows all.
    """

    ridge: float
    held_out: float


@dataclass(frozen=True)
class RecognizerRecipe(PhoneRecipe, Recipe):
    """A training of `speech.recognizers.phone_network`, for methods that have to know which phone is said when."""

    needs_texts: ClassVar[bool] = True


_FIXED = {"name", "title", "shape"}
_MAY_BE_0 = {"adversarial_from", "commitment", "decay", "features", "variants", "warm_up"}
_SHAPES = {
    "content-decoder": DecoderShape,
    "f0-regressor": RegressorShape,
    "joint-nsf-hifigan": GeneratorShape,
}
_RECIPES: dict[str, type[Recipe]] = {
    "content-decoder": DecoderRecipe,
    "f0-regressor": RegressorRecipe,
    "joint-nsf-hifigan": GeneratorRecipe,
    "recognizer-map": MapRecipe,
    "phone-recognizer": RecognizerRecipe,
}


def read_recipes() -> Mapping[str, Recipe]:
    """The recipes that ship, by name."""
    with _FILE.open("rb") as file:
        content = tomllib.load(file)
    found = {}
    for name, values in content.items():
        shape = {"shape": _SHAPES[name](**values["shape"])} if "shape" in values else {}
        found[name] = _RECIPES[name](**(values | shape | {"name": name}))
    return found
