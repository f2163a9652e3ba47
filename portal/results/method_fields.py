"""The methods of the form that runs an anonymiser: what each says of itself, and the fields of its options.

An option is a field of its own, named after method and option, so that the form works without JavaScript; those of the
methods that were not chosen are not looked at. A field that is left out has the default of its option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField, BoundWidget

from anonymization.estimates import Pace
from anonymization.methods.contract import Anonymizer, Option, OptionValue
from anonymization.methods.errors import MethodError
from anonymization.selectors import label_of

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
