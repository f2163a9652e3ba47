"""What a training is made of: the values of `recipes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from anonymization.methods.content_decoder.network_files import SHAPES, Shape
from anonymization.methods.content_decoder.retrained import READ_DECODER
from common.errors import MetricInputError
from speech.conversion.shape import (
    DecoderShape,
    GeneratorShape,
    JointHifiGanShape,
    RegressorShape,
    SoftUnitsShape,
    SourceFilterShape,
    WorldDecoderShape,
)
from speech.recognizers.phone_recipe import PhoneRecipe

_FILE = Path(__file__).with_name("recipes.toml")


@dataclass(frozen=True)
class Recipe:
    """What every training has: name and title, as listed.

    reads_waves: whether it learns from samples. for_world: whether its spectra are parameters of WORLD.
    begins_from: models that it begins from.
    """

    reads_waves: ClassVar[bool] = False
    for_world: ClassVar[bool] = False
    begins_from: ClassVar[tuple[str, ...]] = ()

    name: str
    title: str

    @property
    def needs_texts(self) -> bool:
        """Whether it learns from the words of the utterances, too."""
        return False

    @property
    def reads_decoder(self) -> bool:
        """Whether it learns from the content that a decoder makes."""
        return self.name in READ_DECODER

    @property
    def needs_card(self) -> bool:
        """Whether it would take days on a processor."""
        return False

    def changed(self, **values: object) -> Self:
        """The recipe with other values; `size` says which others stand in place of them, ``small`` or ``full``.

        Raises:
            MetricInputError: no such value, or one that is none; names all of them.
        """
        size = values.pop("size", "small")
        if size not in read_sizes(self.name):
            raise MetricInputError(f"Expected size as {' or '.join(read_sizes(self.name))}, found “{size}”.")
        if size != "small":
            return cast("Self", read_sizes(self.name)[str(size)]).changed(**values)
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
            if (
                found[name] < least
                or (name in _BELOW_1 and found[name] >= 1)
                or (name in _SWITCHES and found[name] > 1)
            ):
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
    shape: Shape

    @property
    def needs_card(self) -> bool:
        return self.shape == cast("NetworkRecipe", read_sizes(self.name)["full"]).shape

    def fit(self, decoder: DecoderShape) -> Self:
        """The recipe for the decoder whose content is learnt from: a network reads as many numbers a frame."""
        if not hasattr(self.shape, "content"):
            return self
        return replace(self, shape=replace(cast("Any", self.shape), content=decoder.bottleneck))


@dataclass(frozen=True)
class DecoderRecipe(NetworkRecipe):
    """A training of `speech.conversion.content_decoder`.

    Attributes:
        warm_up: also the steps without codes, after which the codes are taken from what the bottleneck gives.
        commitment: weight of the squared distance between bottleneck and codes, beside the mean absolute difference
            of spectra.
        decay: part of the old that a code keeps with each step.
        phones: weight of the loss of a phone (CTC) by what the bottleneck holds, of whole utterances with their words;
            0 learns from no words.
    """

    commitment: float
    decay: float
    phones: float
    shape: DecoderShape

    @property
    def needs_texts(self) -> bool:
        return self.phones > 0


@dataclass(frozen=True)
class SoftUnitsRecipe(NetworkRecipe):
    """A training of `speech.conversion.content_decoder` whose content names units, and no other loss reaches it."""

    shape: SoftUnitsShape


@dataclass(frozen=True)
class RegressorRecipe(NetworkRecipe):
    """A training of `speech.conversion.f0_regressor`, on the codes of a decoder.

    Attributes:
        held_out: share of the speakers of whom nothing is learnt, and on whom the network is measured.
    """

    held_out: float
    shape: RegressorShape


@dataclass(frozen=True)
class WorldDecoderRecipe(NetworkRecipe):
    """A training of `speech.conversion.world_decoder`, on the bottleneck of a decoder."""

    for_world: ClassVar[bool] = True

    shape: WorldDecoderShape


@dataclass(frozen=True)
class AdversarialRecipe(NetworkRecipe):
    """A training of a network that makes samples.

    Attributes:
        adversarial_from: the step from which discriminators judge; before it only spectra are compared.
        narrower: by how much the discriminators are narrower than those of HiFi-GAN.
        spectrum, features: weights of the difference of spectra and of what the discriminators make of both, beside
            their judgement.
    """

    reads_waves: ClassVar[bool] = True

    adversarial_from: int
    narrower: int
    spectrum: float
    features: float


@dataclass(frozen=True)
class GeneratorRecipe(AdversarialRecipe):
    """That of `JointGenerator`, which begins from nothing."""

    shape: GeneratorShape

    @property
    def needs_card(self) -> bool:
        return True


@dataclass(frozen=True)
class HifiGanRecipe(AdversarialRecipe):
    """That of `JointHifiGan`, which begins from the decoder and from the universal weights of HiFi-GAN."""

    begins_from: ClassVar[tuple[str, ...]] = ("hifigan-universal",)

    shape: JointHifiGanShape

    def fit(self, decoder: DecoderShape) -> Self:
        """The recipe for a decoder that learns on itself, with all of its blocks where it has no more."""
        blocks = min(self.shape.blocks, decoder.blocks)
        return replace(self, shape=replace(self.shape, width=decoder.width, blocks=blocks))


@dataclass(frozen=True)
class VocoderRecipe(AdversarialRecipe):
    """That of `SourceFilter`, on the spectra of recordings; the distance of log power spectra is always a part.

    Attributes:
        discriminators: 1 with discriminators, 0 without.
    """

    discriminators: int
    shape: SourceFilterShape


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

    @property
    def needs_texts(self) -> bool:
        return True


_FIXED = {"name", "title", "shape"}
_MAY_BE_0 = {"adversarial_from", "commitment", "decay", "discriminators", "features", "phones", "variants", "warm_up"}
_BELOW_1, _SWITCHES = {"decay", "held_out"}, {"discriminators"}
_RECIPES: dict[str, type[Recipe]] = {
    "content-decoder": DecoderRecipe,
    "soft-units-decoder": SoftUnitsRecipe,
    "f0-regressor": RegressorRecipe,
    "world-decoder": WorldDecoderRecipe,
    "joint-nsf-hifigan": GeneratorRecipe,
    "joint-hifigan": HifiGanRecipe,
    "hn-sinc-nsf": VocoderRecipe,
    "recognizer-map": MapRecipe,
    "phone-recognizer": RecognizerRecipe,
}


def read_recipes() -> Mapping[str, Recipe]:
    """The recipes that ship, by name."""
    return {name: sizes["small"] for name, sizes in _read_all().items()}


def read_sizes(name: str) -> Mapping[str, Recipe]:
    """The sizes of a recipe: ``small``, and where it has one ``full``."""
    return _read_all()[name]


@cache
def _read_all() -> Mapping[str, Mapping[str, Recipe]]:
    with _FILE.open("rb") as file:
        content = tomllib.load(file)
    found = {}
    for name, values in content.items():
        full = values.pop("full", None)
        sizes = {"small": values}
        if full is not None:
            sizes["full"] = values | full | {"shape": values["shape"] | full["shape"]}
        found[name] = {size: _make_recipe(name, each) for size, each in sizes.items()}
    return found


def _make_recipe(name: str, values: Mapping[str, Any]) -> Recipe:
    shape = {"shape": SHAPES[name](**values["shape"])} if "shape" in values else {}
    return _RECIPES[name](**{**values, **shape, "name": name})
