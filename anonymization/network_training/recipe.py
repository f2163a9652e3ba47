"""What a training is made of: the values of `recipes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, cast

from anonymization.methods.content_decoder.network_files import SHAPES, Shape
from anonymization.methods.content_decoder.retrained import READ_DECODER
from common.errors import InputError
from common.recipe_values import RecipeValue, change_values, list_values
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
HeldOut = Annotated[float, RecipeValue("share of the speakers that is only measured", 1e-9, 0.9999)]


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
        """Return whether it learns from the words of the utterances, too."""
        return False

    @property
    def reads_decoder(self) -> bool:
        """Return whether it learns from the content that a decoder makes."""
        return self.name in READ_DECODER

    @property
    def needs_card(self) -> bool:
        """Return whether it would take days on a processor."""
        return False

    def changed(self, **values: object) -> Self:
        """Return the recipe with other values; `size` says which others stand in place of them, ``small`` or ``full``.

        Raises:
            InputError: no such value, or one that is none; names all of them.
        """
        size = values.pop("size", "small")
        if size not in read_sizes(self.name):
            raise InputError(f"Expected size as {' or '.join(read_sizes(self.name))}, found “{size}”.")
        if size != "small":
            return cast("Self", read_sizes(self.name)[str(size)]).changed(**values)
        return change_values(self, values)

    def as_dict(self) -> dict[str, object]:
        """Return all values, for a record."""
        return asdict(self)


@dataclass(frozen=True)
class NetworkRecipe(Recipe):
    """A training in steps. shape: of the network."""

    steps: Annotated[int, RecipeValue("updates of the weights", 1)]
    batch: Annotated[int, RecipeValue("pieces of speech in a step", 1)]
    crop: Annotated[int, RecipeValue("frames of 11.6 ms in a piece", 1)]
    learning_rate: Annotated[
        float, RecipeValue("the largest; it rises over warm_up steps, then falls to 0 as a cosine", 1e-9)
    ]
    warm_up: Annotated[
        int, RecipeValue("steps over which learning_rate rises; content-decoder uses no codes in them", 0)
    ]
    variants: Annotated[
        int,
        RecipeValue("copies of each utterance with other formants and F0, to learn content that tells no voice", 0),
    ]
    checkpoint_every: Annotated[int, RecipeValue("steps between two states on disk", 1)]
    shape: Shape

    @property
    def needs_card(self) -> bool:
        return self.shape == cast("NetworkRecipe", read_sizes(self.name)["full"]).shape

    def fit(self, decoder: DecoderShape) -> Self:
        """Return the recipe for the decoder whose content is learnt from: a network reads as many numbers a frame."""
        if not hasattr(self.shape, "content"):
            return self
        return replace(self, shape=replace(cast("Any", self.shape), content=decoder.bottleneck))


@dataclass(frozen=True)
class DecoderRecipe(NetworkRecipe):
    """A training of `speech.conversion.content_decoder`; the loss is the mean absolute difference of spectra, and
    others by their weights."""

    commitment: Annotated[float, RecipeValue("weight of the squared distance between bottleneck and codes", 0)]
    decay: Annotated[float, RecipeValue("part of the old that a code keeps in a step", 0, 0.9999)]
    phones: Annotated[
        float, RecipeValue("weight of the loss of phones (CTC), learnt from transcripts; 0 needs no transcripts", 0)
    ]
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
    """A training of `speech.conversion.f0_regressor`, on the codes of a decoder."""

    held_out: HeldOut
    shape: RegressorShape


@dataclass(frozen=True)
class WorldDecoderRecipe(NetworkRecipe):
    """A training of `speech.conversion.world_decoder`, on the bottleneck of a decoder."""

    for_world: ClassVar[bool] = True

    shape: WorldDecoderShape


@dataclass(frozen=True)
class AdversarialRecipe(NetworkRecipe):
    """A training of a network that makes samples."""

    reads_waves: ClassVar[bool] = True

    adversarial_from: Annotated[
        int, RecipeValue("the step from which discriminators judge; before, only spectra count", 0)
    ]
    narrower: Annotated[int, RecipeValue("how many times narrower than HiFi-GAN’s the discriminators are", 1)]
    spectrum: Annotated[float, RecipeValue("weight of the difference of spectra", 1e-9)]
    features: Annotated[float, RecipeValue("weight of the difference of what the discriminators make of both", 0)]


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
        """Return the recipe for a decoder that learns on itself, with all of its blocks where it has no more."""
        blocks = min(self.shape.blocks, decoder.blocks)
        return replace(self, shape=replace(self.shape, width=decoder.width, blocks=blocks))


@dataclass(frozen=True)
class VocoderRecipe(AdversarialRecipe):
    """That of `SourceFilter`, on the spectra of recordings; the distance of log power spectra is always a part."""

    discriminators: Annotated[int, RecipeValue("1 learns with discriminators, 0 without", 0, 1)]
    shape: SourceFilterShape


@dataclass(frozen=True)
class MapRecipe(Recipe):
    """A fit of `speech.conversion.recognizer_map`, in one step; the map that is kept knows all speakers."""

    ridge: Annotated[float, RecipeValue("weight of the squared weights, in mean variances of a feature", 1e-9)]
    held_out: HeldOut


@dataclass(frozen=True)
class RecognizerRecipe(PhoneRecipe, Recipe):
    """A training of `speech.recognizers.phone_network`, for methods that have to know which phone is said when."""

    @property
    def needs_texts(self) -> bool:
        return True


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
    """Return the recipes that ship, by name."""
    return {name: sizes["small"] for name, sizes in _read_all().items()}


class ValueMeaning(NamedTuple):
    """What a value that `Recipe.changed` takes means. recipes: those that have it; none where it is of most."""

    name: str
    meaning: str
    recipes: tuple[str, ...]


def explain_values() -> list[ValueMeaning]:
    """Return all values of the recipes; one that means different things in two stands there twice."""
    found: dict[tuple[str, str], list[str]] = {}
    for recipe in read_recipes().values():
        for name, value in list_values(type(recipe)).items():
            found.setdefault((name, value.meaning), []).append(recipe.name)
    most = len(read_recipes()) // 2
    return [ValueMeaning(*key, () if len(recipes) > most else tuple(recipes)) for key, recipes in found.items()]


def read_sizes(name: str) -> Mapping[str, Recipe]:
    """Return the sizes of a recipe: ``small``, and where it has one ``full``."""
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
