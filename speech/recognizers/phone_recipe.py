"""How a phone recogniser is trained: on which layer of which encoder, its size, and for how long."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self

from common.recipe_values import RecipeValue, change_values

ENCODER = "whisper-base"
FRAMES_PER_S = 50
INPUTS = 512
MERGED = 2  # frames that become one
FEWEST = 20  # utterances to learn from


@dataclass(frozen=True)
class PhoneRecipe:
    """The values of a training."""

    layer: Annotated[int, RecipeValue("layer of Whisper base whose frames go in", 1, 6)] = 4
    width: Annotated[int, RecipeValue("numbers for each frame in the network", 16, 2048)] = 256
    blocks: Annotated[int, RecipeValue("blocks of convolutions in the network", 1, 16)] = 4
    steps: Annotated[int, RecipeValue("updates of the weights, in whole epochs, at least one", 1, 1e6)] = 400
    batch_s: Annotated[float, RecipeValue("speech of a batch, in seconds", 30, 3600)] = 160.0
    learning_rate: Annotated[float, RecipeValue("the highest, reached after a tenth of the steps", 1e-5, 0.1)] = 0.002
    dropout: Annotated[
        float, RecipeValue("share of the numbers of a block that is left out while it learns", 0, 0.9)
    ] = 0.1
    masked_s: Annotated[float, RecipeValue("longest stretch that is masked, twice in each utterance", 0, 5)] = 0.3
    held_out: Annotated[float, RecipeValue("share of the utterances that is only measured", 0, 0.5)] = 0.05
    most_s: Annotated[float, RecipeValue("seconds of speech that are used at most, drawn by utterance", 60, 3.6e6)] = (
        18_000.0
    )

    def changed(self, **values: object) -> Self:
        """Return the recipe with other values.

        Raises:
            InputError: an unknown name, or values out of their range; names all of them.
        """
        return change_values(self, values)

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(self._values())

    def _values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(PhoneRecipe)}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the recipe that `to_json` wrote."""
        return cls().changed(**json.loads(text))
