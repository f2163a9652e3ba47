"""The recipes of the published toolkits and a small one, by name, and what can be done about targets in each.

`spane` and `vpc24` train as the public code of SpAnE and of the VoicePrivacy 2024 evaluation does, `x-vector` is
SpAnE's other network with SpeechBrain's recipe for it, and `small` is what two processor cores can do; a variant adds
the target classifier of Franzreb et al. to any of them. What comes after the training is ours: every EER is Kaldi's,
and no waveform is brought to one loudness or trimmed, as 2024's scoring does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.attackers.training.schedules import target_weights
from evaluation.metrics.errors import MetricInputError

__all__ = ["PRESETS", "SEEDS", "VARIANTS", "TrainingRecipe", "Variant", "find_preset", "target_weights", "with_variant"]

SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Variant:
    """What is done about targets, as values that change a recipe.

    Attributes:
        name: in commands.
        title: for people, short.
        description: what it does and what to expect, in one or two sentences.
        values: of `TrainingRecipe`.
    """

    name: str
    title: str
    description: str
    values: Mapping[str, Any]


_SHARED: dict[str, Any] = {"embedding": 192, "attention": 128, "margin": 0.2, "scale": 30.0, "weight_decay": 2e-6}
PRESETS: Mapping[str, TrainingRecipe] = MappingProxyType(
    {
        "spane": TrainingRecipe(
            name="spane", width=1024, aggregated=3072, epochs=10, batch=256, schedule="cyclic-literal",
            base_learning_rate=1e-6, peak_learning_rate=1e-3, half_cycle_steps=65_000, segment_s=3.0, crop_s=3.0,
            crop="grid", shortest_s=0.1, quietest_amplitude=0.0, validation="tenth of each speaker", drop_last=True,
            centre=True, checkpoint="last", gender_split="pooled", **_SHARED,
        ),
        "vpc24": TrainingRecipe(
            name="vpc24", width=512, aggregated=1536, epochs=10, batch=256, schedule="cyclic-literal",
            base_learning_rate=1e-8, peak_learning_rate=1e-2, half_cycle_steps=65_000, segment_s=3.0, crop_s=3.0,
            crop="utterance", shortest_s=3.0, quietest_amplitude=5e-4, validation="tenth of all", drop_last=True,
            centre=False, checkpoint="best", gender_split="per gender", **_SHARED,
        ),
        "small": TrainingRecipe(
            name="small", width=64, aggregated=192, epochs=10, batch=64, schedule="warmup-cosine",
            base_learning_rate=0.0, peak_learning_rate=1e-3, half_cycle_steps=65_000, segment_s=3.0, crop_s=2.0,
            crop="segment", shortest_s=2.0, quietest_amplitude=0.0, validation="last segment", drop_last=True,
            centre=True, checkpoint="last", gender_split="pooled", **(_SHARED | {"embedding": 128, "attention": 64}),
        ),
        "x-vector": TrainingRecipe(
            name="x-vector", network="x-vector", width=512, aggregated=1500, embedding=512, attention=0, epochs=10,
            batch=128, weight_decay=2e-6, schedule="linear", base_learning_rate=1e-4, peak_learning_rate=1e-3,
            half_cycle_steps=65_000, margin=0.0, scale=1.0, segment_s=3.0, crop_s=3.0, crop="grid", shortest_s=0.1,
            quietest_amplitude=0.0, validation="tenth of each speaker", drop_last=True, centre=True,
            checkpoint="last", gender_split="pooled",
        ),
    }
)  # fmt: skip
_ADVERSARY: dict[str, Any] = {
    "zero_epochs": 6, "full_epochs": 1, "largest_weight": 0.0, "adversary_loss": "aam", "adversary_scale": 30.0,
    "adversary_steps": 1, "adversary_lr_multiplier": 1.0,
}  # fmt: skip
VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        one.name: one
        for one in (
            Variant("none", "no target classifier", "Sources alone are learned.", {"target_head": "none"} | _ADVERSARY),
            Variant(
                "measured",
                "baseline",
                "A target classifier measures how well the vector tells targets apart, and changes nothing.",
                {"target_head": "literal"} | _ADVERSARY,
            ),
            Variant(
                "literal",
                "adversarial, as published",
                "From epoch E on the recogniser is pushed away from what the target classifier uses, with one "
                "optimiser and the margin loss. Read its target error beside the fresh probe: far above chance it says "
                "that the classifier was misled, not that targets are gone.",
                {"target_head": "literal"} | _ADVERSARY | {"largest_weight": 1.0},
            ),
            Variant(
                "stabilised",
                "adversarial, stabilised",
                "The target classifier learns faster than the recogniser can mislead it: cross-entropy of scale 10, "
                "three steps of its own for each of the recogniser, five times the learning rate, weight 0.3.",
                {"target_head": "stabilised"}
                | _ADVERSARY
                | {
                    "largest_weight": 0.3, "adversary_loss": "ce", "adversary_scale": 10.0, "adversary_steps": 3,
                    "adversary_lr_multiplier": 5.0,
                },
            ),
        )
    }
)  # fmt: skip


def find_preset(name: str) -> TrainingRecipe:
    """The preset of a name.

    Raises:
        MetricInputError: an unknown name; says which there are.
    """
    if name not in PRESETS:
        raise MetricInputError(f"Expected a preset among {', '.join(PRESETS)}, found “{name}”.")
    return PRESETS[name]


def with_variant(recipe: TrainingRecipe, name: str) -> TrainingRecipe:
    """The recipe with a variant of the target classifier.

    The epochs before it acts are as many as published for ten, and in proportion for others.

    Raises:
        MetricInputError: an unknown name; says which there are.
    """
    if name not in VARIANTS:
        raise MetricInputError(f"Expected a variant among {', '.join(VARIANTS)}, found “{name}”.")
    values = dict(VARIANTS[name].values)
    values["zero_epochs"] = min(recipe.epochs, round(values["zero_epochs"] * recipe.epochs / 10))
    return recipe.changed(**values)
