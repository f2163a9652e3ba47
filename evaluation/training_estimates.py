"""How long a training will take here: by what trainings of its size took, else by measurements of another machine.

Conventions: a step is one update of the recogniser; speech and times in seconds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from evaluation.attackers.contract import Device
from evaluation.attackers.training.recipe import Network, TrainingRecipe
from evaluation.models import EvaluationRun, TrainingEpoch
from evaluation.selectors_training import STEPS_OF

EPOCHS_THAT_TELL = 40
# Seconds of work for a second of speech in one step (forward, backward, Adam) by network and width, measured on two
# cores with 32 pieces of 3 s; between them the cost grows by a power of the width. Those of the x-vector follow from
# ECAPA-TDNN's of the same width by the shares that both took on one core, 0.35 and 0.43.
ELSEWHERE: dict[Network, dict[int, float]] = {
    "ecapa-tdnn": {64: 0.09 / 96, 128: 0.17 / 96, 256: 0.50 / 96, 512: 1.7 / 96, 1024: 7.7 / 96},
    "x-vector": {256: 0.35 * 0.50 / 96, 512: 0.43 * 1.7 / 96},
}
# About so much is held out.
LEARNED_SHARE = 0.9


@dataclass(frozen=True)
class TrainingCost:
    """What a training costs. seconds: None where nothing tells; is_from_here: whether trainings of this portal tell."""

    steps: int
    seconds: float | None
    is_from_here: bool


def cost_of(recipe: TrainingRecipe, speech_s: float, *, seeds: int, device: Device) -> TrainingCost:
    """What it costs to train on so much speech; the number of its pieces is that of whole lengths."""
    steps = seeds * recipe.epochs * steps_per_epoch(recipe, speech_s)
    step_s = _step_here(recipe, device)
    if step_s is not None:
        return TrainingCost(steps, steps * step_s, is_from_here=True)
    if device == "cuda":
        return TrainingCost(steps, None, is_from_here=False)
    step_s = _cost_elsewhere(recipe) * min(recipe.batch, _learned_pieces(recipe, speech_s)) * recipe.crop_s
    return TrainingCost(steps, steps * step_s, is_from_here=False)


def steps_per_epoch(recipe: TrainingRecipe, speech_s: float) -> int:
    """About how many steps an epoch has, one at least."""
    return max(1, _learned_pieces(recipe, speech_s) // recipe.batch)


def _learned_pieces(recipe: TrainingRecipe, speech_s: float) -> int:
    return max(1, int(LEARNED_SHARE * speech_s / recipe.segment_s))


def _step_here(recipe: TrainingRecipe, device: Device) -> float | None:
    """Seconds of a step as the newest epochs of trainings of the same size took."""
    size = {f"run__parameters__recipe__{name}": getattr(recipe, name) for name in ("width", "batch", "crop_s")}
    # What a recipe does not name, it does not store.
    named = json.loads(recipe.to_json()).get("network")
    of_network = {"network": named} if named else {"network__isnull": True}
    size |= {f"run__parameters__recipe__{name}": value for name, value in of_network.items()}
    epochs = TrainingEpoch.objects.filter(
        run__kind=EvaluationRun.Kind.TRAINING,
        run__parameters__device=device,
        run__parameters__recipe__adversary_steps=recipe.adversary_steps,
        **size,
    )
    rows = epochs.order_by("-pk").values_list("seconds", f"values__{STEPS_OF}")[:EPOCHS_THAT_TELL]
    known = [(seconds, steps) for seconds, steps in rows if steps]
    return sum(seconds for seconds, _ in known) / sum(steps for _, steps in known) if known else None


def _cost_elsewhere(recipe: TrainingRecipe) -> float:
    """Work for a second of speech at a width, along straight lines between the measured ones in logarithms."""
    costs, width = ELSEWHERE[recipe.network], recipe.width
    known = sorted(costs)
    upper = next((one for one in known[1:] if one >= width), known[-1])
    lower = known[known.index(upper) - 1]
    power = math.log(costs[upper] / costs[lower]) / math.log(upper / lower)
    return costs[lower] * (width / lower) ** power
