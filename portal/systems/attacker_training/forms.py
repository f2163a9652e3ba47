"""The form that starts the training of an attacker: on which speech, by which recipe, with which seeds, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.forms.boundfield import BoundWidget
from django.utils.functional import cached_property

from anonymization.methods.contract import MethodError
from common.errors import InputError, NotPossible
from evaluation.app.attacker_training.selectors import Material, TrainingCost, estimate_cost, list_material
from evaluation.app.attacker_training.services import (
    MOST_SEEDS,
    explain_no_training,
    find_problem,
    train_and_attack,
)
from evaluation.app.models import EvaluationRun
from evaluation.attackers.training.recipe import PRESETS, SEEDS, VARIANTS, TrainingRecipe, Variant, with_variant
from evaluation.formats.results import Speech
from portal.challenges.models import DataSet
from portal.core.clock import read_clock
from portal.core.fields import RadioField, RowsField, SeedsField, disable
from portal.core.labels import roughly
from portal.jobs.workers import has_card
from portal.submissions.models import Submission
from speech.encoders.contract import Device

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
    "2022": (
        "VoicePrivacy 2020 and 2022",
        "The x-vector network, then LDA to 200 dimensions and PLDA of whole utterances. Needs 512 more utterances than "
        "speakers.",
    ),
    "2022-small": (
        "VoicePrivacy 2022, small",
        "128 channels, LDA to 64 dimensions and PLDA with diagonal loading, for at least 10 speakers. Weaker than the "
        "published one.",
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
            return f"{self.cost.steps:,} steps; the first training shows how long they take on this card"
        told = "by earlier trainings here" if self.cost.is_from_here else "by measurements on two cores elsewhere"
        return f"{self.cost.steps:,} steps, {roughly(self.cost.seconds)} {told}"


class TrainingForm(forms.Form):
    """`material`: the training sets with what the submission has of each."""

    data_sets = RowsField(
        "Training data",
        "training set",
        help_text="The attacker is trained to recognise the speakers of these sets in their anonymised speech.",
    )
    preset = RadioField("Recipe", "a recipe", initial=USUAL_PRESET)
    variant = RadioField("Target classifier", "a variant", required=False, initial=USUAL_VARIANT)
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
    seeds = SeedsField(
        MOST_SEEDS,
        initial=", ".join(map(str, SEEDS)),
        help_text="Whole numbers with commas between them. Each is one training; the spread between them shows the "
        "effect of chance.",
    )
    device = RadioField("Where", "a place", choices=DEVICES, initial="cpu", required=False)
    originals = forms.BooleanField(
        label="Train on the original speech of these sets, too",
        required=False,
        help_text="Gives the evaluator of the unprotected, ignorant and lazy-informed attacks by the same recipe.",
    )
    attack = forms.BooleanField(label="Attack the trial sets with each seed afterwards", required=False, initial=True)

    def __init__(self, *args: Any, submission: Submission, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.submission, self.by = submission, by
        self.material = list_material(submission)
        self.missing = explain_no_training()
        held = [one.data_set.pk for one in self.material]
        fields: Any = self.fields
        fields["data_sets"].queryset = DataSet.objects.filter(pk__in=held).select_related("corpus")
        fields["data_sets"].initial = [one.data_set.pk for one in self.usable]
        fields["preset"].choices = [(name, title) for name, (title, _) in PRESET_TEXTS.items()]
        fields["device"].choices = [(name, words) for name, words in DEVICES if name == "cpu" or self.has_gpu]
        fields["variant"].choices = [(name, one.title) for name, one in VARIANTS.items()]

    # What the page shows -----------------------------------------------------------------------------

    @property
    def can_make(self) -> bool:
        """Return whether the portal's own method made this submission, so that missing training data can be made,
        too."""
        return self.submission.anonymization_runs.exists()

    @cached_property
    def usable(self) -> list[Material]:
        """Return the sets that can be trained on, now or once they are anonymised."""
        return [one for one in self.material if not one.problem or (self.can_make and not one.is_complete)]

    @cached_property
    def knows_targets(self) -> bool:
        """Return whether targets are known of at least one of the sets, or will be once it is made."""
        if any(one.targets for one in self.material):
            return True
        like = self.submission.anonymization_runs.order_by("pk").first()
        return like is not None and like.target_set_id is not None

    @cached_property
    def has_gpu(self) -> bool:
        """Return whether a living worker has a graphics card."""
        return has_card(read_clock())

    def set_choices(self) -> Iterator[tuple[BoundWidget, Material]]:
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        for one in self.material:
            button = buttons[one.data_set.pk]
            if one not in self.usable:
                disable(button)
            yield button, one

    def preset_choices(self) -> Iterator[PresetCard]:
        speech_s = sum(one.seconds or one.corpus_seconds for one in self.usable)
        device = cast("Device", self["device"].value() or "cpu")
        for button, (name, (title, text)) in zip(self["preset"], PRESET_TEXTS.items(), strict=True):
            cost = estimate_cost(PRESETS[name], speech_s, seeds=len(SEEDS), device=device)
            yield PresetCard(button, title, text, cost)

    def variant_choices(self) -> Iterator[tuple[BoundWidget, Variant]]:
        for button, variant in zip(self["variant"], VARIANTS.values(), strict=True):
            if variant.values["target_head"] != "none" and not self.knows_targets:
                disable(button)
            yield button, variant

    # What it takes -----------------------------------------------------------------------------------

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
            preset = PRESETS[cleaned["preset"]].changed(**changes)
            self.recipe: TrainingRecipe = with_variant(preset, cleaned["variant"])
            names = ("zero_epochs", "largest_weight") if self.recipe.largest_weight else ()
            chosen = {name: cleaned[name] for name in names if cleaned.get(name) is not None}
            self.recipe = self.recipe.changed(**chosen)
        except InputError as error:
            raise forms.ValidationError(str(error)) from error
        chosen_sets = list(cleaned["data_sets"])
        incomplete = [one for one in self.material if one.data_set in chosen_sets and not one.is_complete]
        will_be_made = self.can_make and bool(incomplete)
        if self.recipe.target_head != "none" and will_be_made and not self.knows_targets:
            raise forms.ValidationError("The method that makes the training data has no targets to classify.")
        problem = find_problem(self.submission, chosen_sets, self.recipe, cleaned["seeds"], is_made_first=will_be_made)
        if not problem and cleaned.get("originals"):
            seeds = cleaned["seeds"]
            problem = find_problem(self.submission, chosen_sets, self.recipe, seeds, trained_on=Speech.ORIGINAL)
        if problem:
            raise forms.ValidationError(problem)

    # What comes of it --------------------------------------------------------------------------------

    def start(self) -> EvaluationRun | None:
        """Start what a valid form asks for, or find it under way; None with an error of the form where it cannot be."""
        names = ("data_sets", "seeds", "variant", "device")
        asked = {name: self.cleaned_data[name] for name in names}
        asked |= {"with_attack": self.cleaned_data["attack"], "with_originals": self.cleaned_data["originals"]}
        try:
            return train_and_attack(submission=self.submission, recipe=self.recipe, by=self.by, **asked)
        except NotPossible as reason:
            if reason.under_way:
                return cast("EvaluationRun", reason.under_way)
            self.add_error(None, str(reason))
        except MethodError as error:
            self.add_error(None, str(error))
        return None
