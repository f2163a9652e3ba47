"""The form that starts the training of an attacker: on which speech, by which recipe, with which seeds, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.forms.boundfield import BoundWidget
from django.utils.functional import cached_property

from anonymization.methods.errors import MethodError
from evaluation.attackers.contract import Device
from evaluation.attackers.training.presets import PRESETS, SEEDS, VARIANTS, Variant, with_variant
from evaluation.attackers.training.recipe import TrainingRecipe
from evaluation.metrics.errors import MetricInputError
from evaluation.models import EvaluationRun
from evaluation.selectors_training import Material, material_of
from evaluation.services_training import LARGEST_SEED, MOST_SEEDS, missing_here, refusal_of, start_chain
from evaluation.training_estimates import TrainingCost, cost_of
from portal.challenges.models import DataSet
from portal.core.wording import roughly
from portal.jobs.selectors import queue_states
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

USUAL_PRESET, USUAL_VARIANT = "small", "none"
PRESET_TEXTS = {
    "small": (
        "Small, for processors",
        "64 channels, pieces of 2 s. It learns in minutes and is weaker than the published attackers: what it cannot "
        "link, a larger one may.",
    ),
    "vpc24": ("VoicePrivacy 2024", "512 channels, pieces of 3 s drawn at random, the recipe of the 2024 toolkit."),
    "spane": ("SpAnE", "1024 channels, pieces of 3 s on a grid: the evaluation that the adversarial paper builds on."),
    "x-vector": (
        "x-vector, SpAnE",
        "The other network of SpAnE: 512 channels, a plain softmax, pieces of 3 s on a grid. Older than ECAPA-TDNN and "
        "less than half as costly at the same width.",
    ),
}
DEVICES: tuple[tuple[Device, str], ...] = (("cpu", "On processors"), ("cuda", "On a graphics card"))


@dataclass(frozen=True)
class PresetCard:
    """A preset as the form offers it, with what it costs on the training sets that were chosen."""

    button: BoundWidget
    title: str
    text: str
    cost: TrainingCost

    @property
    def cost_text(self) -> str:
        if self.cost.seconds is None:
            return f"{self.cost.steps:,} steps; how long they take on this card the first training tells"
        told = "by earlier trainings here" if self.cost.is_from_here else "by measurements on two cores elsewhere"
        return f"{self.cost.steps:,} steps, {roughly(self.cost.seconds)} {told}"


class TrainingForm(forms.Form):
    """`material`: the training sets with what the submission has of each."""

    data_sets = forms.ModelMultipleChoiceField(
        label="Training data",
        queryset=DataSet.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one training set."}
        | dict.fromkeys(("invalid_choice", "invalid_pk_value"), "Choose training sets of this list."),
        help_text="The attacker learns from the anonymised speech of these sets who speaks, whatever the voice.",
    )
    preset = forms.ChoiceField(
        label="Recipe",
        widget=forms.RadioSelect,
        initial=USUAL_PRESET,
        error_messages=dict.fromkeys(("required", "invalid_choice"), "Choose a recipe of this list."),
    )
    variant = forms.ChoiceField(
        label="Target classifier",
        widget=forms.RadioSelect,
        required=False,
        initial=USUAL_VARIANT,
        error_messages={"invalid_choice": "Choose a variant of this list."},
    )
    zero_epochs = forms.IntegerField(
        label="Epochs before the gradient is reversed, E",
        required=False,
        min_value=0,
        help_text="Left empty, as the recipe has it: 6 of 10. Only for the adversarial variants.",
    )
    largest_weight = forms.FloatField(
        label="Largest weight of the reversed gradient, w_T",
        required=False,
        min_value=0.0,
        help_text="Left empty, as the variant has it. Only for the adversarial variants.",
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    epochs = forms.IntegerField(
        label="Epochs", required=False, min_value=1, help_text="Left empty, as the recipe has it: 10."
    )
    seeds = forms.CharField(
        label="Seeds",
        max_length=120,
        initial=", ".join(map(str, SEEDS)),
        help_text="Whole numbers with commas between them. Each is trained anew; the spread between them says how much "
        "is luck.",
        error_messages={"required": f"Give 1 to {MOST_SEEDS} seeds, such as 1, 2, 3."},
    )
    device = forms.ChoiceField(
        label="Where",
        widget=forms.RadioSelect,
        choices=DEVICES,
        initial="cpu",
        required=False,
        error_messages={"invalid_choice": "Choose a place of this list."},
    )
    attack = forms.BooleanField(
        label="Attack the trial sets with each seed afterwards",
        required=False,
        initial=True,
    )

    def __init__(self, *args: Any, submission: Submission, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.submission, self.by = submission, by
        self.material = material_of(submission)
        self.missing = missing_here()
        sets = cast("forms.ModelMultipleChoiceField", self.fields["data_sets"])
        sets.queryset = DataSet.objects.filter(pk__in=[one.data_set.pk for one in self.material]).select_related(
            "corpus"
        )
        sets.initial = [one.data_set.pk for one in self.usable]
        cast("forms.ChoiceField", self.fields["preset"]).choices = [
            (name, text[0]) for name, text in PRESET_TEXTS.items()
        ]
        cast("forms.ChoiceField", self.fields["variant"]).choices = [
            (name, one.title) for name, one in VARIANTS.items()
        ]

    # What the page shows -----------------------------------------------------------------------------

    @property
    def can_make(self) -> bool:
        """Whether the portal's own method made this submission, so that missing training data can be made, too."""
        return self.submission.anonymization_runs.exists()

    @cached_property
    def usable(self) -> list[Material]:
        """The sets that can be trained on, now or once they are anonymised."""
        return [one for one in self.material if not one.refusal or (self.can_make and not one.is_complete)]

    @cached_property
    def knows_targets(self) -> bool:
        """Whether targets are known of at least one of the sets, or will be once it is made."""
        if any(one.targets for one in self.material):
            return True
        like = self.submission.anonymization_runs.order_by("pk").first()
        return like is not None and like.target_set_id is not None

    @cached_property
    def has_gpu(self) -> bool:
        """Whether a living worker serves the queue of graphics cards."""
        return any(state.living for state in queue_states() if state.name == "gpu")

    def set_choices(self) -> Iterator[tuple[BoundWidget, Material]]:
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        for one in self.material:
            button = buttons[one.data_set.pk]
            if one not in self.usable:
                button.data["attrs"] = button.data["attrs"] | {"disabled": True}
            yield button, one

    def preset_choices(self) -> Iterator[PresetCard]:
        speech_s = sum(one.seconds or one.corpus_seconds for one in self.usable)
        device = cast("Device", self["device"].value() or "cpu")
        for button, (name, (title, text)) in zip(self["preset"], PRESET_TEXTS.items(), strict=True):
            yield PresetCard(button, title, text, cost_of(PRESETS[name], speech_s, seeds=len(SEEDS), device=device))

    def variant_choices(self) -> Iterator[tuple[BoundWidget, Variant]]:
        for button, variant in zip(self["variant"], VARIANTS.values(), strict=True):
            if variant.values["target_head"] != "none" and not self.knows_targets:
                button.data["attrs"] = button.data["attrs"] | {"disabled": True}
            yield button, variant

    # What it takes -----------------------------------------------------------------------------------

    def clean_variant(self) -> str:
        return self.cleaned_data["variant"] or USUAL_VARIANT

    def clean_device(self) -> Device:
        return cast("Device", self.cleaned_data["device"] or "cpu")

    def clean_seeds(self) -> list[int]:
        parts = self.cleaned_data["seeds"].replace(",", " ").split()
        if not all(part.isascii() and part.isdecimal() and len(part) <= len(str(LARGEST_SEED)) for part in parts):
            raise forms.ValidationError("Seeds are whole numbers from 0 on with commas between them, such as 1, 2, 3.")
        return [int(part) for part in parts]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.missing:
            raise forms.ValidationError(self.missing)
        if {"preset", "variant", "seeds", "data_sets"} <= set(cleaned) and not self.errors:
            self._clean_recipe(cleaned)
        return cleaned

    def _clean_recipe(self, cleaned: dict[str, Any]) -> None:
        """The recipe that was asked for, and what speaks against it."""
        changes = {"epochs": cleaned["epochs"]} if cleaned.get("epochs") is not None else {}
        try:
            self.recipe: TrainingRecipe = with_variant(
                PRESETS[cleaned["preset"]].changed(**changes), cleaned["variant"]
            )
            names = ("zero_epochs", "largest_weight") if self.recipe.largest_weight else ()
            chosen = {name: cleaned[name] for name in names if cleaned.get(name) is not None}
            self.recipe = self.recipe.changed(**chosen)
        except MetricInputError as error:
            raise forms.ValidationError(str(error)) from error
        chosen_sets = list(cleaned["data_sets"])
        incomplete = [one for one in self.material if one.data_set in chosen_sets and not one.is_complete]
        will_be_made = self.can_make and bool(incomplete)
        if self.recipe.target_head != "none" and will_be_made and not self.knows_targets:
            raise forms.ValidationError("The method that makes the training data has no targets to classify.")
        if refusal := refusal_of(
            self.submission, chosen_sets, self.recipe, cleaned["seeds"], is_made_first=will_be_made
        ):
            raise forms.ValidationError(refusal)

    # What comes of it --------------------------------------------------------------------------------

    def start(self) -> EvaluationRun | None:
        """Start what a valid form asks for; None with an error of the form where it became impossible meanwhile."""
        cleaned = self.cleaned_data
        try:
            return start_chain(
                submission=self.submission, data_sets=cleaned["data_sets"], recipe=self.recipe, seeds=cleaned["seeds"],
                variant=cleaned["variant"], device=cleaned["device"], with_attack=cleaned["attack"], by=self.by,
            )  # fmt: skip
        except (NotPossible, MethodError) as error:
            self.add_error(None, str(error))
        return None
