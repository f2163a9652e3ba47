"""How a phone recogniser is trained: on which layer of which encoder, its size, and for how long."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from common.errors import MetricInputError

ENCODER = "whisper-base"
FRAMES_PER_S = 50
INPUTS = 512
MERGED = 2  # frames that become one
FEWEST = 20  # utterances to learn from


@dataclass(frozen=True)
class PhoneRecipe:
    """The values of a training.

    Attributes:
        layer: of Whisper base, 1 to 6, whose frames go in.
        width, blocks: of the network: numbers for each frame, and blocks of convolutions.
        steps: of training, in whole epochs, at least one.
        batch_s: speech of a batch, in seconds.
        learning_rate: the highest, reached after a tenth of the steps.
        dropout: share of the numbers of a block that are left out while it learns.
        masked_s: longest stretch of an utterance that is masked while it learns, twice in each.
        held_out: share of the utterances that is only measured.
        most_s: speech that is used at most, drawn by utterance; in seconds.
    """

    layer: int = 4
    width: int = 256
    blocks: int = 4
    steps: int = 400
    batch_s: float = 160.0
    learning_rate: float = 0.002
    dropout: float = 0.1
    masked_s: float = 0.3
    held_out: float = 0.05
    most_s: float = 18_000.0

    def changed(self, **values: object) -> Self:
        """The recipe with other values.

        Raises:
            MetricInputError: an unknown name, or values out of their range; names all of them.
        """
        known = {name: type(value) for name, value in self._values().items()}
        problems: list[str] = []
        taken: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                problems.append(f"{name}: expected a name among {', '.join(known)}.")
                continue
            try:
                taken[name] = known[name](value)
            except (TypeError, ValueError):
                problems.append(f"{name}: expected a number, found “{value}”.")
        made = replace(self, **taken)
        problems += made.find_problems()
        if problems:
            raise MetricInputError(" ".join(problems))
        return made

    def find_problems(self) -> list[str]:
        """A sentence for each value out of its range."""
        ranges = {
            "layer": (1, 6),
            "width": (16, 2048),
            "blocks": (1, 16),
            "steps": (1, 1_000_000),
            "batch_s": (30.0, 3600.0),
            "learning_rate": (1e-5, 0.1),
            "dropout": (0.0, 0.9),
            "masked_s": (0.0, 5.0),
            "held_out": (0.0, 0.5),
            "most_s": (60.0, 3.6e6),
        }
        values = self._values()
        return [
            f"{name}: expected {low:g} to {high:g}, found {values[name]:g}."
            for name, (low, high) in ranges.items()
            if not low <= values[name] <= high
        ]

    def to_json(self) -> str:
        """As `from_json` reads it."""
        return json.dumps(self._values())

    def _values(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(PhoneRecipe)}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The recipe that `to_json` wrote."""
        return cls().changed(**json.loads(text))
