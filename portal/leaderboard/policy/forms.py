"""The forms of what a leaderboard computes and ranks by: its policy, and its whole recipe."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError

from common.errors import InputError, NotPossible
from evaluation.metrics.catalogue import find_metric
from evaluation.protocols.ranking.policy import LeaderboardPolicy, gate_in_words, make_policy
from portal.challenges.models import Edition
from portal.challenges.selectors import export_recipe
from portal.core.fields import RadioField
from portal.editions.forms import RecipeFileForm
from portal.leaderboard.services import change_recipe

PLAIN = ("policy", "late", "basis", "several_systems", "note_within")
CHANGEABLE = (
    "Averages, their weights and estimators, metrics, conditions and minima can change; data sets, attack models and "
    "engines cannot."
)
INCLUSIVE = {"yes": "meets it", "no": "does not meet it; it must be above"}


class PolicyForm(forms.Form):
    """What an organizer may decide about a leaderboard. A valid form has it as `chosen`.

    There is a field ``gate_<metric>`` for each further minimum of the recipe.
    """

    minimum_eers = forms.CharField(
        label="Minimum EERs of the conditions, in per cent",
        required=False,
        max_length=200,
        help_text="Ascending, with commas between them, such as 15, 20, 25, 30. Empty: nothing is ranked.",
    )
    policy = RadioField(
        "Where a system competes",
        choices=[
            ("cumulative", "cumulative: in every condition whose minimum it meets"),
            ("interval", "interval: only in the last condition that it meets"),
        ],
    )
    inclusive = RadioField("An average exactly at a minimum", choices=list(INCLUSIVE.items()))
    late = RadioField(
        "Late submissions",
        choices=[("unranked", "are listed without a rank"), ("ranked", "are ranked and marked late")],
    )
    basis = RadioField(
        "Numbers that only the team reported",
        choices=[
            ("recomputed", "are not ranked: recomputed numbers only"),
            ("claims", "are ranked too and marked as reported"),
        ],
    )
    several_systems = RadioField(
        "Several systems of one team in a condition",
        choices=[("best", "the best one is ranked, the others listed"), ("all", "every one is ranked")],
    )
    note_within = forms.FloatField(
        label="Mark averages near a minimum: how near, in percentage points", min_value=0, max_value=100
    )

    def __init__(self, *args: Any, edition: Edition, **kwargs: Any) -> None:
        self.chosen = edition.policy
        super().__init__(*args, **kwargs | {"initial": _initial(self.chosen)})
        self.edition = edition
        self._base = make_policy(edition.recipe, edition.track)
        for gate in self._base.gates:
            metric = find_metric(gate.metric, gate.estimator)
            self.fields[f"gate_{gate.metric}"] = forms.FloatField(
                label=f"Minimum: {metric.label}",
                required=False,
                help_text=f"In the recipe: {gate_in_words(gate)} Empty: no such minimum.",
            )

    def clean_minimum_eers(self) -> list[float]:
        """Return numbers with commas, semicolons or spaces between them."""
        parts = [part for part in re.split(r"[,;\s]+", self.cleaned_data["minimum_eers"].strip()) if part]
        try:
            return [float(part.removesuffix("%")) for part in parts if part != "%"]
        except ValueError:
            raise forms.ValidationError("Write numbers with commas between them, such as 15, 20, 25, 30.") from None

    def clean(self) -> dict[str, Any]:
        """Return the policy as a whole; what it cannot have is an error of its field."""
        cleaned = cast("dict[str, Any]", super().clean())
        if self.errors:
            return cleaned
        try:
            self.chosen = make_policy(self.edition.recipe, self.edition.track, self._changes(cleaned))
        except InputError as error:
            field, _, words = str(error).partition(": ")
            name = field.replace("gates.", "gate_")
            sentence = words[:1].upper() + words[1:]
            self.add_error(name if name in self.fields else None, sentence if name in self.fields else str(error))
        return cleaned

    def _changes(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        changes = {name: cleaned[name] for name in ("minimum_eers", *PLAIN)} | {
            "inclusive": cleaned["inclusive"] == "yes"
        }
        return changes | {"gates": {gate.metric: cleaned[f"gate_{gate.metric}"] for gate in self._base.gates}}


class RecipeForm(RecipeFileForm):
    """Another recipe of an edition, which starts from the one of now."""

    def __init__(self, *args: Any, edition: Edition, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"initial": {"recipe_text": export_recipe(edition)}})
        self.fields["recipe_text"].label = "The recipe"
        self.fields["recipe_text"].help_text = CHANGEABLE
        self.edition = edition

    def save(self, *, now: datetime, by: Any) -> Edition | None:
        """Change the recipe as a valid form says; None, with errors of the form, where it cannot be."""
        text = (self.cleaned_data["recipe_file"] or self.cleaned_data["recipe_text"]).replace("\r\n", "\n")
        try:
            return change_recipe(edition=self.edition, text=text.replace("\0", ""), now=now, by=by)
        except ValidationError as error:
            place = "recipe_file" if self.cleaned_data["recipe_file"] else "recipe_text"
            self.add_error(place, error.message_dict["recipe_text"])
        except NotPossible as error:
            self.add_error(None, str(error))
        return None


def _initial(policy: LeaderboardPolicy) -> dict[str, Any]:
    gates = {f"gate_{gate.metric}": gate.minimum for gate in policy.gates}
    plain = {name: getattr(policy, name) for name in PLAIN}
    minima = ", ".join(f"{limit:g}" for limit in policy.minimum_eers)
    return gates | plain | {"minimum_eers": minima, "inclusive": "yes" if policy.inclusive else "no"}
