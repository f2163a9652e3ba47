"""How a recogniser is trained: every choice of the published recipes in one frozen value that is checked as a whole.

**Presets.** `spane` and `vpc24` train as the public code of SpAnE and of the VoicePrivacy 2024 evaluation does,
`x-vector` is SpAnE's other network with SpeechBrain's recipe for it, `2022` and `2020` compare its vectors by LDA and
PLDA as the evaluators of these challenges do, and `small` and `2022-small` are what two processor cores can do. A
variant adds the target classifier of Franzreb et al. to any of them. What comes after the training is ours: every EER
is Kaldi's, and no waveform is brought to one loudness or trimmed, as 2024's scoring does.

**Schedules.** `learning_rate` follows the ``CyclicLRScheduler`` of SpeechBrain (triangular, after Smith), and
`target_weights`, how strong the target classifier is, its ``LinearScheduler`` (section 4.3 of Franzreb et al.).

Conventions: durations in seconds; epochs are counted from 1, steps from 0, and the learning rate of step 0 is the one
that the first update uses; target weights are one for each epoch; error rates are shares.

Sources: C. Franzreb et al., "Improving the Speaker Anonymization Evaluation's Robustness to Target Speakers with
Adversarial Learning"; B. Desplanques et al., "ECAPA-TDNN", Interspeech 2020, and D. Snyder et al., "X-vectors", ICASSP
2018 (recognisers); L. Smith, "Cyclical learning rates for training neural networks", WACV 2017.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_type_hints

from common.errors import InputError
from common.packages import missing_packages

TRAINING_ENGINE = "attacker-training"  # what a worker has that can train
Network = Literal["ecapa-tdnn", "x-vector"]
Schedule = Literal["cyclic-literal", "warmup-cosine", "linear"]
Crop = Literal["grid", "segment", "utterance"]
Validation = Literal["tenth of each speaker", "tenth of all", "last segment"]
Kept = Literal["last", "best"]
GenderSplit = Literal["pooled", "per gender"]
TargetHead = Literal["none", "literal", "stabilised"]
AdversaryLoss = Literal["aam", "ce"]
Comparison = Literal["cosine", "plda"]

_UNNAMED: Network = "ecapa-tdnn"
_UNNAMED_BACK_END: Mapping[str, Any] = {"back_end": "cosine", "lda_dimensions": 200, "loading": 0.0}
MOST_EPOCHS, MOST_STEPS_OF_ADVERSARY = 1000, 100
# The branches of an SE-Res2 block share the channels equally.
RES2_SCALE = 8
NETWORK_TITLES: dict[Network, str] = {"ecapa-tdnn": "ECAPA-TDNN", "x-vector": "x-vector TDNN"}
MEL_BANDS: dict[Network, int] = {"ecapa-tdnn": 80, "x-vector": 24}


@dataclass(frozen=True)
class TrainingRecipe:
    """Everything that decides a training besides the speech and the seed.

    Attributes:
        name: of the preset that it comes from.
        width: channels of the recogniser's convolutions, a multiple of 8 in ECAPA-TDNN.
        aggregated: channels after the blocks are joined; of the x-vector's last frame layer.
        embedding: dimension of a speaker vector.
        attention: channels of the attention in the pooling; 0 with the x-vector, which has none.
        epochs: passes over the training segments.
        batch: segments of one step.
        weight_decay: L2 penalty of Adam.
        schedule: ``cyclic-literal`` climbs from the base to the peak in `half_cycle_steps` and down again;
            ``warmup-cosine`` climbs over the first twentieth of all steps and falls as half a cosine to the base;
            ``linear`` begins at the peak and falls by equal steps, one after each epoch, to the base in the last.
        base_learning_rate, peak_learning_rate: ends of the schedule.
        half_cycle_steps: of ``cyclic-literal``.
        margin: additive angular margin in radians; 0 with the x-vector, whose classifier has a plain softmax.
        scale: of the cosines within the softmax; 1 with the x-vector.
        segment_s: length of the pieces that an utterance is cut into.
        crop_s: length of what the recogniser hears in training.
        crop: ``grid`` takes the pieces as they are, ``segment`` draws a window within a piece, ``utterance`` draws it
            anywhere in the utterance, as many times as it has pieces.
        shortest_s: pieces below are left out; longer ones below `crop_s` are padded with silence.
        quietest_amplitude: pieces with a lower mean absolute amplitude (full scale 1) are left out.
        validation: what is held out: a tenth of each speaker's recordings, rounded down; a tenth of all; or the last
            piece of each source; always in every conversion of it.
        drop_last: whether the last batch of an epoch is left out where it is not full.
        centre: whether the mean vector of the training is taken off before scoring.
        checkpoint: the weights after the ``last`` epoch, or after the one with the ``best`` source error.
        gender_split: whether the toolkit that the recipe comes from scores trials across genders (``pooled``) or not
            (``per gender``). It tells what its published EERs compare with; here the list of trials decides.
        target_head: ``none``; ``literal`` trains it with the rest by one optimiser, as published; ``stabilised`` gives
            it an optimiser and steps of its own.
        zero_epochs: E, the epochs before the target classifier acts on the recogniser.
        full_epochs: `n_epochs_max`, the last epochs at the largest weight.
        largest_weight: of the reversed gradient; 0 only measures.
        adversary_loss: margin loss as the source classifier's, or plain cross-entropy of scaled cosines.
        adversary_scale: scale of the target classifier's cosines.
        adversary_steps: its updates for each one of the recogniser (``stabilised``).
        adversary_lr_multiplier: of its learning rate (``stabilised``).
        network: the recogniser, and with it its features and its classifier of sources.
        back_end: how an attack compares vectors: by cosine, or by LDA and PLDA that are fitted on the vectors of the
            training utterances (Kaldi's evaluator of 2020 and 2022).
        lda_dimensions: of PLDA's vectors, at most; never more than speakers less one.
        loading: added to covariances on their diagonal, in parts of their mean; PLDA needs it where there are fewer
            utterances than dimensions.
    """

    name: str
    width: int
    aggregated: int
    embedding: int
    attention: int
    epochs: int
    batch: int
    weight_decay: float
    schedule: Schedule
    base_learning_rate: float
    peak_learning_rate: float
    half_cycle_steps: int
    margin: float
    scale: float
    segment_s: float
    crop_s: float
    crop: Crop
    shortest_s: float
    quietest_amplitude: float
    validation: Validation
    drop_last: bool
    centre: bool
    checkpoint: Kept
    gender_split: GenderSplit
    target_head: TargetHead = "none"
    zero_epochs: int = 6
    full_epochs: int = 1
    largest_weight: float = 0.0
    adversary_loss: AdversaryLoss = "aam"
    adversary_scale: float = 30.0
    adversary_steps: int = 1
    adversary_lr_multiplier: float = 1.0
    network: Network = "ecapa-tdnn"
    back_end: Comparison = "cosine"
    lda_dimensions: int = 200
    loading: float = 0.0

    def __post_init__(self) -> None:
        problems = [*_type_problems(self)] or [*_range_problems(self), *_adversary_problems(self)]
        if problems:
            raise InputError(" ".join(problems))

    @property
    def mel_bands(self) -> int:
        """Bands of the features that the network hears."""
        return MEL_BANDS[self.network]

    @property
    def network_title(self) -> str:
        """Return the network, for people."""
        return NETWORK_TITLES[self.network]

    def changed(self, **values: Any) -> TrainingRecipe:
        """Return the same recipe with other values.

        Raises:
            InputError: an unknown name, or values that make no sense; says all at once.
        """
        unknown = sorted(set(values) - {field.name for field in fields(self)})
        if unknown:
            known = ", ".join(field.name for field in fields(self))
            raise InputError(f"Expected values named {known}, found {', '.join(unknown)}.")
        return replace(self, **values)

    def to_json(self) -> str:
        """Return all values, in the order of the class; ECAPA-TDNN and the cosine go unnamed.

        So it reads as it did before there was another network or back end, and trainings begun then go on.
        """
        values = asdict(self)
        if self.network == _UNNAMED:
            del values["network"]
        if self.back_end == _UNNAMED_BACK_END["back_end"]:
            for name in _UNNAMED_BACK_END:
                del values[name]
        return json.dumps(values, ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> TrainingRecipe:
        """Return a recipe from `to_json`; ECAPA-TDNN and the cosine where no network and no back end is named.

        Raises:
            InputError: no JSON object, names that are missing or unknown, values that make no sense.
        """
        try:
            given = json.loads(text)
        except ValueError as error:
            raise InputError(f"Expected a training recipe as JSON, found other text ({error}).") from error
        if not isinstance(given, dict):
            raise InputError(f"Expected a training recipe as a JSON object, found {type(given).__name__}.")
        names = {field.name for field in fields(cls)}
        values: dict[str, Any] = {"network": _UNNAMED, **_UNNAMED_BACK_END} | given
        if set(values) != names:
            missing, unknown = sorted(names - set(values)), sorted(set(values) - names)
            found = "; ".join(
                f"{what} {', '.join(some)}" for what, some in (("without", missing), ("with", unknown)) if some
            )
            raise InputError(f"Expected a training recipe with all of its values, found one {found}.")
        return cls(**values)


def _type_problems(recipe: TrainingRecipe) -> list[str]:
    """Return a sentence for each value that is not of its kind; whole numbers count as real ones."""
    problems = []
    for name, kind in get_type_hints(TrainingRecipe).items():
        value = getattr(recipe, name)
        if choices := get_args(kind):
            if value not in choices:
                problems.append(f"{name}: expected one of {', '.join(choices)}, found {value!r}.")
        elif kind is float and isinstance(value, int) and not isinstance(value, bool):
            object.__setattr__(recipe, name, float(value))
        elif type(value) is not kind:
            problems.append(f"{name}: expected a value of type {kind.__name__}, found {value!r}.")
        elif kind is float and not abs(value) < float("inf"):
            problems.append(f"{name}: expected a finite number, found {value}.")
    return problems


def _range_problems(recipe: TrainingRecipe) -> list[str]:
    ranges: tuple[tuple[str, float, float], ...] = (
        ("width", RES2_SCALE, 4096), ("aggregated", 1, 16384), ("embedding", 2, 4096),
        ("epochs", 1, MOST_EPOCHS), ("batch", 2, 65536), ("weight_decay", 0, 1), ("base_learning_rate", 0, 1),
        ("peak_learning_rate", 1e-12, 1), ("half_cycle_steps", 1, 1e9), ("margin", 0, 1.5), ("scale", 0.1, 1000),
        ("segment_s", 0.1, 600), ("crop_s", 0.1, 600), ("shortest_s", 0.025, 600), ("quietest_amplitude", 0, 1),
        ("lda_dimensions", 1, 4096), ("loading", 0, 1),
    )  # fmt: skip
    problems = [*(_range_problem(recipe, *one) for one in ranges), *_network_problems(recipe)]
    if recipe.base_learning_rate > recipe.peak_learning_rate:
        problems.append(
            f"base_learning_rate: expected at most the peak, {recipe.peak_learning_rate:g}, "
            f"found {recipe.base_learning_rate:g}."
        )
    if recipe.crop == "grid" and recipe.crop_s != recipe.segment_s:
        problems.append(f"crop_s: expected {recipe.segment_s:g} as segment_s on a grid, found {recipe.crop_s:g}.")
    if recipe.crop != "grid" and recipe.crop_s > recipe.segment_s:
        problems.append(f"crop_s: expected at most segment_s, {recipe.segment_s:g}, found {recipe.crop_s:g}.")
    if recipe.crop == "utterance" and recipe.validation == "last segment":
        problems.append(
            "validation: expected whole utterances held out with windows anywhere in an utterance, found last segment, "
            "which training would hear."
        )
    if recipe.back_end == "cosine":
        problems += [
            f"{name}: expected {value} with the cosine, which has none, found {getattr(recipe, name)}."
            for name, value in _UNNAMED_BACK_END.items()
            if getattr(recipe, name) != value
        ]
    elif recipe.centre:
        problems.append("centre: expected false with PLDA, whose LDA subtracts a mean itself, found true.")
    if recipe.shortest_s > recipe.segment_s:
        problems.append(f"shortest_s: expected at most segment_s, {recipe.segment_s:g}, found {recipe.shortest_s:g}.")
    return [problem for problem in problems if problem]


def _network_problems(recipe: TrainingRecipe) -> list[str]:
    if recipe.network == "x-vector":
        return [
            f"{name}: expected {value:g} with the x-vector, which has none, found {getattr(recipe, name):g}."
            for name, value in (("attention", 0), ("margin", 0), ("scale", 1))
            if getattr(recipe, name) != value
        ]
    problems = [_range_problem(recipe, "attention", 1, 4096)]
    if recipe.width % RES2_SCALE:
        problems.append(f"width: expected a multiple of {RES2_SCALE}, found {recipe.width}.")
    return problems


def _adversary_problems(recipe: TrainingRecipe) -> list[str]:
    # Where the classifier does not act on the recogniser, it does not matter when it would.
    acts = recipe.target_head != "none" and recipe.largest_weight > 0
    last = recipe.epochs if acts else MOST_EPOCHS
    ranges: tuple[tuple[str, float, float], ...] = (
        ("zero_epochs", 0, last),
        ("full_epochs", 0, max(1, last - recipe.zero_epochs)),
        ("largest_weight", 0, 100),
        ("adversary_scale", 0.1, 1000),
        ("adversary_steps", 1, MOST_STEPS_OF_ADVERSARY),
        ("adversary_lr_multiplier", 0.01, 1000),
    )
    problems = [_range_problem(recipe, *one) for one in ranges]
    if recipe.target_head == "literal" and (recipe.adversary_steps != 1 or recipe.adversary_lr_multiplier != 1):
        problems.append(
            "target_head: expected stabilised where adversary_steps or adversary_lr_multiplier is not 1, found "
            "literal, which has one optimiser for everything."
        )
    return [problem for problem in problems if problem]


def _range_problem(recipe: TrainingRecipe, name: str, lowest: float, highest: float) -> str:
    value = getattr(recipe, name)
    if lowest <= value <= highest:
        return ""
    return f"{name}: expected a number from {lowest:g} to {highest:g}, found {value:g}."


WARM_UP_SHARE = 0.05  # of all steps


def learning_rate(recipe: TrainingRecipe, step: int, steps: int) -> float:
    """Return the learning rate of a step.

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
    """Return the weight w_T of the reversed gradient in each epoch: 0 for E epochs, then in equal steps to the largest.

    With E = 6, one epoch at the maximum 1 and ten epochs: six times 0, then 0.25, 0.5, 0.75, 1. With no epoch at the
    maximum the climb would arrive one epoch after the end: 0.2, 0.4, 0.6, 0.8.

    Source: `n_epochs_zero`, `n_epochs_max` and `max_weight` of the published code; section 4.3 of the paper.
    """
    if recipe.target_head == "none":
        return (0.0,) * recipe.epochs
    climb = max(1, recipe.epochs - recipe.zero_epochs - recipe.full_epochs + 1)
    steps = (max(0, epoch - recipe.zero_epochs + 1) for epoch in range(recipe.epochs))
    return tuple(recipe.largest_weight * min(1.0, step / climb) for step in steps)


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


_TABLES = tomllib.loads(Path(__file__).with_name("recipes.toml").read_text(encoding="utf-8"))


def _preset_values(name: str) -> dict[str, Any]:
    """Return the values of a preset in the file; `like` names another one whose values it changes."""
    own = dict(_TABLES["presets"][name])
    other = own.pop("like", None)
    return _preset_values(other) | own if other else own


PRESETS: Mapping[str, TrainingRecipe] = MappingProxyType(
    {name: TrainingRecipe(name=name, **_preset_values(name)) for name in _TABLES["presets"]}
)
VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        name: Variant(name, one["title"], one["description"], _TABLES["adversary"] | one["values"])
        for name, one in _TABLES["variants"].items()
    }
)


def find_preset(name: str) -> TrainingRecipe:
    """Return the preset of a name.

    Raises:
        InputError: an unknown name; says which there are.
    """
    if name not in PRESETS:
        raise InputError(f"Expected one of the presets {', '.join(PRESETS)}, found “{name}”.")
    return PRESETS[name]


def with_variant(recipe: TrainingRecipe, name: str) -> TrainingRecipe:
    """Return the recipe with a variant of the target classifier.

    The epochs before it acts are as many as published for ten, and in proportion for others.

    Raises:
        InputError: an unknown name; says which there are.
    """
    if name not in VARIANTS:
        raise InputError(f"Expected one of the variants {', '.join(VARIANTS)}, found “{name}”.")
    values = dict(VARIANTS[name].values)
    values["zero_epochs"] = min(recipe.epochs, round(values["zero_epochs"] * recipe.epochs / 10))
    return recipe.changed(**values)


def find_missing_libraries() -> str:
    """Return what this machine lacks to train anything, a sentence; empty where it lacks nothing."""
    return missing_packages("Training an attacker", "torch", "safetensors")
