"""The form that trains a network: by which recipe, on which speech, with which seeds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundWidget
from django.utils.functional import cached_property

from anonymization.app.models import NetworkSeed, NetworkTraining
from anonymization.app.network_training.selectors import TrainingSet, list_decoders, list_material
from anonymization.app.network_training.services import (
    MOST_SEEDS,
    explain_no_training,
    find_missing_texts,
    find_wrong_decoder,
    find_wrong_sets,
    find_wrong_values,
    needs_card,
    start_training,
)
from anonymization.network_training.recipe import Recipe, explain_values, read_recipes
from portal.challenges.models import Corpus, DataSet
from portal.core.clock import read_clock
from portal.core.fields import LineField, RadioField, RowField, RowsField, SeedsField, disable
from portal.jobs.services import NotPossible
from portal.jobs.workers import has_card

# What the listed values of a recipe leave out.
_OF_ALL = {"name", "title", "shape"}
READERS = [one.name for one in read_recipes().values() if one.reads_decoder]


@dataclass(frozen=True)
class RecipeCard:
    """A recipe as the form offers it. values: with which it trains where nothing else is asked for."""

    button: BoundWidget
    recipe: Recipe
    values: str
    needs_card: bool


class NetworkTrainingForm(forms.Form):
    """`material`: the training sets of the corpus. `like`: a training of it whose choices are chosen at first; else
    `decoder`, by its key as an address has it."""

    recipe = RadioField("Network", "a network")
    data_sets = RowsField(
        "Speech to learn from",
        "training set",
        help_text="Training sets of the corpus. Speech of enrolment and trials is for evaluation only.",
    )
    decoder = RowField(
        NetworkSeed.objects.none(),
        label="Decoder",
        required=False,
        empty_label="The one that ships",
        help_text=f"Whose content {', '.join(READERS)} learn from. A method then runs with both networks.",
        error_messages={"invalid_choice": "Choose a decoder of this list."},
    )
    seeds = SeedsField(
        MOST_SEEDS,
        initial="1",
        help_text=f"Whole numbers, at most {MOST_SEEDS}, such as 1, 2, 3. Each is a training of its own; the spread "
        "between them shows the effect of chance.",
    )
    licence = LineField(
        label="Licence of the speech",
        max_length=400,
        required=False,
        help_text="With whom to name. It stands in the card beside the weights.",
    )
    changes = forms.CharField(
        label="Other values of the recipe",
        max_length=400,
        required=False,
        help_text="NAME=VALUE with spaces between them, such as steps=500 batch=8; size=full is the size of the "
        "papers, for a graphics card. Left empty, as the recipe has them.",
    )

    def __init__(
        self,
        *args: Any,
        corpus: Corpus,
        by: Any,
        like: NetworkTraining | None = None,
        decoder: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.corpus, self.by = corpus, by
        self.missing = explain_no_training()
        self.recipes = read_recipes()
        fields: Any = self.fields
        fields["recipe"].choices = [(one.name, one.title) for one in self.recipes.values()]
        # All of them, so that what is asked for beyond the training sets is told why it is not possible.
        fields["data_sets"].queryset = DataSet.objects.filter(corpus=corpus).select_related("corpus").order_by("name")
        fields["data_sets"].initial = [one.data_set.pk for one in self.material if not one.problem]
        fields["licence"].initial = corpus.licence
        fields["decoder"].queryset = list_decoders(by)
        fields["decoder"].label_from_instance = lambda one: f"{one}, on {one.training.corpus}"
        fields["decoder"].initial = decoder
        if like is not None:
            self._choose_as(like)

    def _choose_as(self, like: NetworkTraining) -> None:
        self.initial.update(
            recipe=like.recipe,
            data_sets=[one.data_set.pk for one in self.material if one.data_set.name in like.data_sets],
            decoder=like.decoder_id,
            seeds=" ".join(str(one.seed) for one in like.seeds.all()),
            licence=like.licence,
            changes=" ".join(f"{name}={value}" for name, value in like.changes.items()),
        )

    # What the page shows -----------------------------------------------------------------------------

    @cached_property
    def material(self) -> list[TrainingSet]:
        return list_material(self.corpus)

    @cached_property
    def has_card(self) -> bool:
        """Return whether a living worker has a graphics card."""
        return has_card(read_clock())

    def recipe_cards(self) -> Iterator[RecipeCard]:
        for button, recipe in zip(self["recipe"], self.recipes.values(), strict=True):
            values = ((name, value) for name, value in recipe.as_dict().items() if name not in _OF_ALL)
            told = ", ".join(f"{name}={value:g}" for name, value in values if isinstance(value, int | float))
            yield RecipeCard(button, recipe, told, needs_card(recipe) is True)

    value_meanings = staticmethod(explain_values)

    def set_choices(self) -> Iterator[tuple[BoundWidget, TrainingSet]]:
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        for one in self.material:
            button = buttons[one.data_set.pk]
            if one.problem:
                disable(button)
            yield button, one

    # What it takes -----------------------------------------------------------------------------------

    def clean_data_sets(self) -> list[DataSet]:
        chosen = list(self.cleaned_data["data_sets"])
        if wrong := find_wrong_sets(self.corpus, chosen):
            raise forms.ValidationError(wrong)
        return chosen

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.missing:
            raise forms.ValidationError(self.missing)
        if "changes" in cleaned:
            self._clean_changes(cleaned)
        if {"recipe", "decoder"} <= set(cleaned) and (
            wrong := find_wrong_decoder(cleaned["recipe"], cleaned["decoder"])
        ):
            self.add_error("decoder", wrong)
        if {"recipe", "data_sets"} <= set(cleaned) and (
            missing := find_missing_texts(cleaned["data_sets"], cleaned["recipe"], cleaned.get("changes", {}))
        ):
            self.add_error("data_sets", missing)
        return cleaned

    def _clean_changes(self, cleaned: dict[str, Any]) -> None:
        """The values by name; all that is wrong with them is said at once."""
        parts = [part.partition("=") for part in cleaned["changes"].replace(",", " ").split()]
        wrong = [f"Expected NAME=VALUE, found “{''.join(part)}”." for part in parts if not (part[0] and part[2])]
        changes = {name: value for name, _, value in parts if name and value}
        wrong.append(find_wrong_values(cleaned["recipe"], changes) if "recipe" in cleaned else "")
        cleaned["changes"] = changes
        if said := list(filter(None, wrong)):
            self.add_error("changes", forms.ValidationError(said))

    # What comes of it --------------------------------------------------------------------------------

    def start(self) -> NetworkTraining | None:
        """Start what a valid form asks for; None with an error of the form where it became impossible meanwhile."""
        try:
            return start_training(corpus=self.corpus, by=self.by, **self.cleaned_data)
        except NotPossible as error:
            self.add_error(None, str(error))
        return None
