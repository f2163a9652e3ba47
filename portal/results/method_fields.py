"""The methods of the form that runs an anonymiser: what each says of itself, and the fields of its options.

An option is a field of its own, named after method and option, so that the form works without JavaScript; those of the
methods that were not chosen are not looked at. A field that is left out has the default of its option. A method whose
voices are those of target speakers has two fields more: whose speech lends them, and who gets which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField, BoundWidget

from anonymization.estimates import Pace
from anonymization.methods.contract import Anonymizer, Option, OptionValue, takes_targets
from anonymization.methods.errors import MethodError
from anonymization.methods.target_selection import DEFAULT_SELECTION, SELECTIONS
from anonymization.selectors import label_of
from anonymization.targets import TargetRequest
from portal.challenges.models import DataSet

YES, NO = "yes", "no"


@dataclass(frozen=True)
class MethodCard:
    """A method as the form offers it: its radio button, what it lacks here, its pace, and the fields of its options."""

    button: BoundWidget
    method: Anonymizer
    missing: str
    pace: Pace | None
    cost: float | None
    options: list[BoundField]

    @property
    def pace_text(self) -> str:
        """How many seconds of speech a second of work anonymises here, and what tells so; empty where nothing does."""
        if self.pace is None:
            return ""
        ratio = 1 / self.pace.work_per_second if self.pace.work_per_second else float("inf")
        source = "a trial" if self.pace.source == "trial" else f"{self.pace.n} run{'s' if self.pace.n > 1 else ''}"
        return f"{ratio:,.3g} s of speech in a second, by {source} here"


def option_name(method: Anonymizer, option: Option) -> str:
    """Name of the field of an option."""
    return f"{method.name}__{option.name}"


def option_fields(known: Iterable[Anonymizer]) -> dict[str, forms.Field]:
    """The fields of all options of these methods, by name."""
    return {option_name(method, option): _field(option) for method in known for option in method.options}


def target_field_names(method: Anonymizer) -> tuple[str, str]:
    """Names of the fields of a method with targets: their data set and their selection."""
    return f"{method.name}__target_set", f"{method.name}__target_selection"


def target_fields(known: Iterable[Anonymizer], data_sets: Sequence[DataSet]) -> dict[str, forms.Field]:
    """The fields of all methods with targets, by name. data_sets: what may lend them."""
    fields: dict[str, forms.Field] = {}
    for method in filter(takes_targets, known):
        of_set, of_selection = target_field_names(method)
        fields[of_set] = forms.ChoiceField(
            label="Targets come from",
            choices=[("", "Choose a data set"), *((str(one.pk), one.name) for one in data_sets)],
            required=False,
            error_messages={"invalid_choice": "Choose a data set of this list."},
            help_text="Its speakers lend their voices; people who are not anonymised themselves are best.",
        )
        fields[of_selection] = forms.ChoiceField(
            label="Who gets which target",
            choices=[(one.name, one.title) for one in SELECTIONS.values()],
            required=False,
            initial=DEFAULT_SELECTION,
            error_messages={"invalid_choice": "Choose a selection of this list."},
            help_text=" ".join(f"{one.title}: {one.meaning}" for one in SELECTIONS.values()),
        )
    return fields


def chosen_targets(
    method: Anonymizer, cleaned: Mapping[str, Any], data_sets: Iterable[DataSet]
) -> tuple[TargetRequest | None, dict[str, str]]:
    """The targets that a cleaned form chose for a method, and by field what is wrong."""
    if not takes_targets(method):
        return None, {}
    of_set, of_selection = target_field_names(method)
    chosen = next((one for one in data_sets if str(one.pk) == cleaned.get(of_set)), None)
    if chosen is None:
        return None, {of_set: "Choose the data set whose speakers lend their voices."} if of_set in cleaned else {}
    return TargetRequest(chosen, cleaned.get(of_selection) or DEFAULT_SELECTION), {}


def _field(option: Option) -> forms.Field:
    label, text = label_of(option.name), f"{option.meaning[:1].upper()}{option.meaning[1:]}."
    if option.choices:
        choices = [(choice, label_of(choice)) for choice in option.choices]
        return forms.ChoiceField(label=label, choices=choices, required=False, initial=option.default, help_text=text)
    if isinstance(option.default, bool):
        initial = YES if option.default else NO
        return forms.ChoiceField(
            label=label, choices=[(YES, "Yes"), (NO, "No")], required=False, initial=initial, help_text=text
        )
    unit = f", {option.unit.strip()}" if option.unit else ""
    return forms.FloatField(
        label=f"{label}{unit}",
        required=False,
        initial=option.default,
        min_value=option.low,
        max_value=option.high,
        help_text=text,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


def chosen_options(method: Anonymizer, cleaned: Mapping[str, Any]) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """The options that a cleaned form chose for a method, and by field what is wrong with others."""
    options: dict[str, OptionValue] = {}
    wrong: dict[str, str] = {}
    for option in method.options:
        name = option_name(method, option)
        value = cleaned.get(name)
        if value in (None, ""):
            continue
        if isinstance(option.default, bool):
            value = value == YES
        try:
            options[option.name] = option.validate(value)
        except MethodError as error:
            wrong[name] = str(error)
    return options, wrong
