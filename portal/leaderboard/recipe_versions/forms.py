"""The form of a version of the recipe."""

from __future__ import annotations

from typing import Any

from django import forms

from common.toml_files import LARGEST_TOML_BYTES
from portal.challenges.models import Edition, RecipeVersion
from portal.challenges.selectors import export_recipe
from portal.core.fields import LineField
from portal.editions.forms import RecipeFileForm
from portal.leaderboard.services import LeaderboardError, VersionError, propose_version


class VersionForm(RecipeFileForm):
    """A version of the recipe, which starts from the adopted one."""

    recipe_file = forms.FileField(
        label="The recipe as a file",
        help_text="TOML; it replaces the text below.",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".toml"}),
    )
    recipe_text = forms.CharField(
        label="The recipe",
        help_text="Averages, their weights and estimators, metrics, conditions and minima can change; data sets, "
        "attack models and engines cannot.",
        required=False,
        strip=False,
        max_length=LARGEST_TOML_BYTES,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "code"}),
    )
    note = LineField(
        label="Why",
        max_length=300,
        error_messages={"required": "Say why, in a sentence for readers of the leaderboard."},
    )

    def __init__(self, *args: Any, edition: Edition, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"initial": {"recipe_text": export_recipe(edition)}})
        self.edition = edition

    def propose(self, *, by: Any) -> RecipeVersion | None:
        """The draft of a valid form; None, with errors at the recipe, where it cannot be."""
        place = "recipe_file" if self.cleaned_data["recipe_file"] else "recipe_text"
        text = (self.cleaned_data["recipe_file"] or self.cleaned_data["recipe_text"]).replace("\r\n", "\n")
        try:
            return propose_version(
                edition=self.edition, text=text.replace("\0", ""), note=self.cleaned_data["note"], by=by
            )
        except VersionError as error:
            self.add_error(place, list(error.problems))
        except LeaderboardError as error:
            self.add_error(None, str(error))
        return None
