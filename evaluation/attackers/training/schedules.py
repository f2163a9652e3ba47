"""How the learning rate and the hold of the target classifier change while a recogniser is trained.

Conventions: steps are counted from 0, the learning rate of step 0 is the one that the first update uses; weights are
one for each epoch. Sources: `CyclicLRScheduler` of SpeechBrain, after L. Smith, WACV 2017 (triangular), and its
`LinearScheduler`; section 4.3 of Franzreb et al. (target weights).
"""

from __future__ import annotations

import math

from evaluation.attackers.training.recipe import TrainingRecipe

WARM_UP_SHARE = 0.05  # of all steps


def learning_rate(recipe: TrainingRecipe, step: int, steps: int) -> float:
    """The learning rate of a step.

    Args:
        step: from 0.
        steps: of the whole training; the cyclic schedule does not depend on it, so a short training never reaches its
            peak.
    """
    low, high = recipe.base_learning_rate, recipe.peak_learning_rate
    if recipe.schedule == "cyclic-literal":
        place = step / recipe.half_cycle_steps % 2
        return low + (high - low) * (1 - abs(place - 1))
    if recipe.schedule == "linear":
        epoch = step * recipe.epochs // max(1, steps)
        return high + (low - high) * min(1.0, epoch / max(1, recipe.epochs - 1))
    climb = max(1, round(WARM_UP_SHARE * steps))
    if step < climb:
        return low + (high - low) * (step + 1) / climb
    return low + (high - low) * 0.5 * (1 + math.cos(math.pi * (step - climb) / max(1, steps - climb)))


def target_weights(recipe: TrainingRecipe) -> tuple[float, ...]:
    """The weight w_T of the reversed gradient in each epoch: 0 for E epochs, then in equal steps to the largest.

    With E = 6, one epoch at the maximum 1 and ten epochs: six times 0, then 0.25, 0.5, 0.75, 1. With no epoch at the
    maximum the climb would arrive one epoch after the end: 0.2, 0.4, 0.6, 0.8.

    Source: `n_epochs_zero`, `n_epochs_max` and `max_weight` of the published code; section 4.3 of the paper.
    """
    if recipe.target_head == "none":
        return (0.0,) * recipe.epochs
    climb = max(1, recipe.epochs - recipe.zero_epochs - recipe.full_epochs + 1)
    steps = (max(0, epoch - recipe.zero_epochs + 1) for epoch in range(recipe.epochs))
    return tuple(recipe.largest_weight * min(1.0, step / climb) for step in steps)
