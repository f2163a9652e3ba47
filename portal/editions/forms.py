"""The forms of an edition: all of its fields, and a copy of it under another name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar, cast

from django import forms
from django.core.exceptions import ValidationError

from common.errors import ProblemsError
from common.toml_files import LARGEST_TOML_BYTES
from evaluation.protocols.recipes import load_recipe, shipped_editions
from portal.accounts.models import User
from portal.accounts.selectors import find_organizers
from portal.challenges import rules, services
from portal.challenges.models import EDITION_FIELDS, GIGABYTE, LARGEST_GB, Corpus, Edition
from portal.challenges.selectors import corpora_for_edition, explain_terms, export_recipe, has_submissions
from portal.core.fields import SharedForm

OWN = "own"
DATES = (
    *("registration_opens_at", "registration_closes_at", "submissions_open_at", "submissions_close_at", "late_until"),
    "speech_kept_until",
)
ASKED_OTHERWISE = ("protocol", "recipe_text", "corpus", "largest_archive_bytes")  # fields of the form ask for these
MOST_ORGANIZERS = 50
NUMBER_ERRORS = ("required", "invalid", "min_value", "max_value", "max_decimal_places")
NAME_ERRORS = {
    "required": "Give a short name, such as vpc2026.",
    "invalid": "Use small letters a to z, digits, hyphens and underscores only, such as vpc2026.",
    "max_length": "Use at most 40 characters.",
}


def shipped_recipes() -> list[tuple[str, str]]:
    """Name and title of each recipe that comes with the portal, oldest first."""
    return [(name, load_recipe(name).title) for name in shipped_editions()]


class MomentField(forms.DateTimeField):
    """A date and time in UTC, chosen with the browser's own calendar."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(**options, widget=widget)


class RecipeFileForm(forms.Form):
    """A form with a recipe as the field `recipe_text`, or as the file `recipe_file`, which replaces it."""

    recipe_file = forms.FileField(
        label="Custom recipe as a file",
        help_text="TOML, as the shipped ones; it replaces the text below.",
        required=False,
        widget=forms.FileInput(attrs={"accept": ".toml"}),
    )
    recipe_text = forms.CharField(
        label="Custom recipe as text",
        required=False,
        strip=False,
        max_length=LARGEST_TOML_BYTES,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "class": "code"}),
    )

    def clean_recipe_file(self) -> str:
        """Return the text of the file, empty where none was sent."""
        file = self.cleaned_data["recipe_file"]
        if not file:
            return ""
        if file.size > LARGEST_TOML_BYTES:
            raise ValidationError(f"Expected at most {LARGEST_TOML_BYTES // 1024} KiB, found {file.size:,} bytes.")
        try:
            text = file.read().decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise ValidationError(f"{file.name}: expected text in UTF-8, found the byte {error.start}.") from error
        # A browser forgets the file that was chosen; with its text below nobody has to choose it again.
        self.data = dict(self.data.items()) | {"recipe_text": text}
        return text


class EditionFields:
    """How forms ask for the fields of an edition; their names, limits and texts are those of the model."""

    model = Edition
    fields: tuple[str, ...] = ("title", "name")
    error_messages: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "title": {"required": "Give the edition a title."},
        "name": NAME_ERRORS,
        "submissions_per_team": dict.fromkeys(NUMBER_ERRORS, "Give a whole number from 1 to 10,000."),
    }


class EditionForm(RecipeFileForm, SharedForm, forms.ModelForm):
    """A new edition, or the fields of one that exists; what can no longer change is no field: `fixed`."""

    class Meta(EditionFields):
        fields = tuple(name for name in EDITION_FIELDS if name not in ASKED_OTHERWISE)
        field_classes: ClassVar = dict.fromkeys(DATES, MomentField)
        widgets: ClassVar = {
            "description": forms.Textarea(attrs={"rows": 5}),
            "data_terms": forms.Textarea(attrs={"rows": 4}),
        }

    protocol = forms.ChoiceField(
        label="Recipe",
        help_text="Which data sets, metrics, averages and conditions apply.",
        widget=forms.RadioSelect,
        error_messages={"required": "Choose a recipe."},
    )
    corpus: forms.ModelChoiceField[Corpus] = forms.ModelChoiceField(
        queryset=Corpus.objects.none(),
        to_field_name="name",
        required=False,
        empty_label="none: scores and results only, no speech",
        help_text="The original speech that teams anonymise.",
    )
    largest_archive_gb = forms.DecimalField(
        label="Largest archive (GB)",
        min_value=0,
        max_value=LARGEST_GB,
        decimal_places=3,
        initial=20,
        error_messages=dict.fromkeys(NUMBER_ERRORS, f"Give a number up to {LARGEST_GB}, such as 20 or 0.5."),
    )
    organizers = forms.CharField(
        help_text="E-mail addresses of accounts, one on each line. They approve teams and see everything.",
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Give the e-mail address of at least one organizer."},
    )
    field_order = (
        *("title", "name", "description", "protocol", "recipe_file", "recipe_text", "track", "corpus", *DATES),
        *("submissions_per_team", "largest_archive_gb", "audio_required", "scores_required", "description_required"),
        *("shares_data", "data_terms", "holds_evaluations", "organizers", "is_listed"),
    )

    has_recipe = True  # False where there is none yet that could be held against the corpus

    def __init__(self, data: Any = None, files: Any = None, *, user: Any, edition: Edition | None = None) -> None:
        self.user, self.edition = user, edition
        super().__init__(data, files, initial=_initial(edition, user), instance=copy(edition))
        own = (OWN, "Custom recipe")
        cast("forms.ChoiceField", self.fields["protocol"]).choices = [*shipped_recipes(), own]
        self.fields["corpus"].queryset = corpora_for_edition(user, edition)  # type: ignore[attr-defined]
        submitted = edition is not None and has_submissions(edition)
        self.locked = rules.locked_fields(has_submissions=submitted)
        self._show_terms(edition.corpus if edition else None)
        disabled = self.locked | ({"recipe_file"} if self.locked else set())
        if edition is not None and _is_evaluated_here(edition):
            disabled |= {"scores_required"}
        for name in disabled:
            self.fields[name].disabled = True

    @property
    def fixed(self) -> list[tuple[str, str]]:
        """Return what can no longer change, as (label, value) pairs."""
        if self.edition is None or not self.locked:
            return []
        shipped = dict(shipped_recipes())
        found = {
            "Short name": self.edition.name,
            "Recipe": "Custom recipe" if self.edition.recipe_text else shipped[self.edition.protocol],
            "Track": self.edition.track,
            "Corpus": str(self.edition.corpus or "none: scores and results only, no speech"),
        }
        return [(label, value) for label, value in found.items() if value]

    def _show_terms(self, corpus: Corpus | None) -> None:
        """Say which text teams accept beside the field that lets them download the speech."""
        told = explain_terms(corpus, str(self["data_terms"].value() or ""))
        self.fields["shares_data"].help_text = f"{told} {self.base_fields['shares_data'].help_text}"

    def clean_largest_archive_gb(self) -> int:
        """Return the limit in bytes."""
        size = int(self.cleaned_data["largest_archive_gb"] * GIGABYTE)
        if size < 1:
            raise ValidationError("Give a size above 0.")
        return size

    def clean_organizers(self) -> list[User]:
        """Return the accounts of the addresses that were given."""
        addresses = list(dict.fromkeys(self.cleaned_data["organizers"].lower().replace(",", " ").split()))
        if len(addresses) > MOST_ORGANIZERS:
            raise ValidationError(f"Expected at most {MOST_ORGANIZERS} addresses, found {len(addresses)}.")
        present = self.edition.organizers.all() if self.edition else ()
        try:
            return find_organizers(addresses, by=self.user, present=present)
        except ProblemsError as error:
            raise ValidationError(error.problems) from None

    def clean_title(self) -> str:
        """Refuse an equal title together with all other errors; the services ask again."""
        title: str = self.cleaned_data["title"]
        is_new = self.edition is None or title != self.edition.title
        if is_new and (sentence := services.title_problem(title, by=self.user, besides=self.edition)):
            raise ValidationError(sentence)
        return title

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if self.locked:
            given |= {name: getattr(self.edition, name) for name in self.locked}
        else:
            given |= self._recipe_fields(given)
        given["largest_archive_bytes"] = given.pop("largest_archive_gb", None)
        for field, sentences in services.find_problems(given, with_recipe=self.has_recipe and not self.locked).items():
            field = self._field_of(field, given)
            if field not in self.errors and not (field == "protocol" and self._own_is_wrong()):
                self.add_error(field, sentences)
        return given

    def _own_is_wrong(self) -> bool:
        return bool({"recipe_file", "recipe_text"} & self.errors.keys())

    def _field_of(self, problem: str, given: dict[str, Any]) -> str:
        """Return where a problem stands: that of a custom recipe at the field by which it was given."""
        return "recipe_file" if problem == "recipe_text" and given.get("recipe_file") else problem

    def validate_unique(self) -> None:
        """Leave it to the services to ask whether a name is taken."""

    def _recipe_fields(self, given: dict[str, Any]) -> dict[str, str]:
        """Protocol and text of the recipe: a shipped one has no text of its own."""
        if given.get("protocol") != OWN:
            return {"protocol": given.get("protocol", ""), "recipe_text": ""}
        text = (given.get("recipe_file") or given.get("recipe_text") or "").replace("\r\n", "\n").replace("\0", "")
        if not text.strip() and not self._own_is_wrong():
            self.add_error("recipe_text", "Give the text of the recipe, or choose its file.")
        return {"protocol": "", "recipe_text": text}

    def save(self) -> Edition | None:  # type: ignore[override]
        """Return the edition of a valid form; None with errors of the form where it does not hold together."""
        fields = {name: self.cleaned_data[name] for name in EDITION_FIELDS}
        fields |= {"organizers": self.cleaned_data["organizers"], "by": self.user}
        if self.edition is None:
            return _saved(self, services.create_edition, **fields)
        return _saved(self, services.change_edition, edition=self.edition, **fields)


class CopyForm(forms.ModelForm):
    """The name and title of a copy."""

    class Meta(EditionFields):
        pass

    def validate_unique(self) -> None:
        """Leave it to the services to ask whether a name is taken."""

    def save(self, *, edition: Edition, by: Any) -> Edition | None:  # type: ignore[override]
        """Return the copy; None with errors of the form where its name is taken."""
        return _saved(self, services.copy_edition, edition=edition, by=by, **self.cleaned_data)


def _saved(form: forms.BaseForm, service: Callable[..., Edition], **given: Any) -> Edition | None:
    """Return what the service makes of a valid form; None with errors of the form where it does not hold together."""
    try:
        return service(**given)
    except ValidationError as invalid:
        for field, sentences in invalid.update_error_dict({}).items():
            form.add_error(field if field in form.fields else None, sentences)
        return None


def _is_evaluated_here(edition: Edition) -> bool:
    """Return whether the portal makes the scores; of a recipe that cannot be read this is not known."""
    try:
        return not edition.recipe.evaluation.by_teams
    except ProblemsError:
        return False


def _initial(edition: Edition | None, user: Any) -> dict[str, Any]:
    if edition is None:
        return {"organizers": user.email, "protocol": "2022"}
    gb = f"{edition.largest_archive_bytes / GIGABYTE:.3f}".rstrip("0").rstrip(".")
    people = "\n".join(edition.organizers.order_by("email").values_list("email", flat=True))
    text = export_recipe(edition) if edition.recipe_text and edition.leaderboard_policy else edition.recipe_text
    recipe = {"protocol": OWN if edition.recipe_text else edition.protocol, "recipe_text": text}
    return recipe | {"corpus": edition.corpus, "largest_archive_gb": gb, "organizers": people}
