"""The form that runs an anonymiser on a corpus."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, cast

from django import forms
from django.db import IntegrityError
from django.utils.functional import cached_property

from anonymization.methods.contract import Anonymizer, takes_targets
from anonymization.methods.errors import MethodError
from anonymization.models import AnonymizationRun
from anonymization.trials import start_trials
from anonymization.voices import BY_ROLE
from portal.challenges.models import Corpus, DataSet, Edition, Role
from portal.challenges.selectors import DataSetRow
from portal.jobs.models import Job
from portal.results.baseline_offer import editions_for, offer_on
from portal.results.method_fields import (
    MethodCard,
    chosen_options,
    chosen_targets,
    option_fields,
    option_name,
    target_field_names,
    target_fields,
)
from portal.results.services import start_baseline, start_edition_baseline
from portal.submissions.models import System
from portal.submissions.services import LONGEST_LABEL, baseline_refusal

LEVELS = (
    (BY_ROLE, "As the role of each set asks"),
    (AnonymizationRun.Level.SPEAKER.value, "Speaker level"),
    (AnonymizationRun.Level.UTTERANCE.value, "Utterance level"),
)
NO_EDITION = "No edition"


class _OfThisList(forms.ModelChoiceField):
    """A choice of rows that also refuses numbers that no database can hold."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise forms.ValidationError(str(self.error_messages["invalid_choice"])) from None


class _DataSetsField(_OfThisList, forms.ModelMultipleChoiceField):
    pass


class _EditionField(_OfThisList):
    pass


class BaselineForm(forms.Form):
    """Which method, with which options, over which data sets of one corpus; by itself or as a baseline of an edition.

    `offer`: what there is to choose from.
    """

    method = forms.ChoiceField(
        label="Method",
        widget=forms.RadioSelect,
        error_messages=dict.fromkeys(("required", "invalid_choice"), "Choose a method of this list."),
    )
    data_sets = _DataSetsField(
        label="Data sets",
        queryset=DataSet.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one data set."}
        | dict.fromkeys(("invalid_choice", "invalid_pk_value"), "Choose data sets of this list."),
        help_text="Each becomes two jobs: one anonymises, the next measures. Trial sets are what the protocol judges.",
    )
    level = forms.ChoiceField(
        label="Who gets a voice",
        widget=forms.RadioSelect,
        choices=LEVELS,
        initial=BY_ROLE,
        required=False,
        error_messages={"invalid_choice": "Choose a level of this list."},
    )
    edition = _EditionField(
        label="Edition",
        queryset=Edition.objects.none(),
        widget=forms.RadioSelect,
        required=False,
        blank=True,
        empty_label=NO_EDITION,
        error_messages={"invalid_choice": "Choose an edition of this list."},
    )
    label = forms.CharField(
        label="Title on the board",
        max_length=LONGEST_LABEL,
        required=False,
        help_text="For a baseline of an edition, such as B2. Its address is made of the edition's and this title.",
        error_messages={"max_length": "Use at most %(limit_value)s characters; this title has %(show_value)s."},
    )
    incomplete = forms.BooleanField(label="Start without the data sets that are missing", required=False)
    name = forms.SlugField(
        label="Name of the system",
        max_length=60,
        required=False,
        help_text="Letters, digits, hyphens and underscores; it becomes part of addresses. "
        "Left empty, it is made of method and corpus.",
        error_messages={
            "invalid": "Use letters, digits, hyphens and underscores only, such as b2-speech.",
            "max_length": "Use at most %(limit_value)s characters; this name has %(show_value)s.",
        },
    )
    seed = forms.IntegerField(
        label="Seed",
        min_value=0,
        max_value=2**63 - 1,
        help_text="The same seed gives every speaker the same pseudo-speaker again. "
        "Who knows it can undo the choice of voices: keep it secret while results count.",
        error_messages={
            "required": "Give a seed: any whole number from 0 on.",
            "invalid": "A seed is a whole number from 0 on, such as 2022.",
            "min_value": "A seed is 0 or more.",
            "max_value": "A seed is at most %(limit_value)s.",
        },
    )

    def __init__(self, *args: Any, corpus: Corpus, by: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.corpus, self.by = corpus, by
        self.offer = offer_on(corpus, by)
        ready = [row.data_set.pk for row in self.offer.ready]
        method_field = cast("forms.ChoiceField", self.fields["method"])
        method_field.choices = [(method.name, method.title) for method in self.offer.known.values()]
        method_field.initial = next((name for name, missing in self.offer.missing.items() if not missing), None)
        sets_field = cast("forms.ModelMultipleChoiceField", self.fields["data_sets"])
        sets_field.queryset = corpus.data_sets.filter(pk__in=ready).select_related("corpus")
        sets_field.initial = ready
        edition_field = cast("forms.ModelChoiceField", self.fields["edition"])
        edition_field.queryset = editions_for(corpus, by)
        self.fields["seed"].initial = secrets.randbelow(10**9)
        self.fields |= option_fields(self.offer.known.values())
        self.fields |= target_fields(self.offer.known.values(), self._lenders)

    @property
    def _lenders(self) -> list[DataSet]:
        """The data sets whose speakers may be targets."""
        return [row.data_set for row in self.offer.ready]

    # What the page shows -----------------------------------------------------------------------------

    def method_choices(self) -> Iterator[MethodCard]:
        """Each method's radio button, disabled where it cannot run here, with all that is known of it."""
        for button, method in zip(self["method"], self.offer.known.values(), strict=True):
            missing = self.offer.missing[method.name]
            if missing:
                button.data["attrs"] = button.data["attrs"] | {"disabled": True}
            pace = self.offer.paces.get(method.name)
            fields = [self[name] for name in _field_names(method)]
            yield MethodCard(button, method, missing, pace, self.offer.cost_of(method.name), fields)

    def data_set_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, DataSetRow]]:
        """Each ready data set's checkbox with its numbers, in the order of the corpus page."""
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        yield from ((buttons[row.data_set.pk], row) for row in self.offer.ready)

    def edition_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, Edition | None, str]]:
        """Each edition's radio button, none first, with the names of the data sets that its teams anonymise."""
        for button, edition in zip(self["edition"], [None, *self.offer.editions], strict=True):
            yield button, edition, ", ".join(self.offer.asked_by(edition)) if edition else ""

    @property
    def cost(self) -> float | None:
        """Of the chosen method."""
        return self.offer.cost_of(str(self["method"].value() or ""))

    def extent(self) -> str:
        """How much the chosen data sets are, and how long it will take; app.js keeps it true while boxes are ticked."""
        return self.offer.extent({str(pk) for pk in self["data_sets"].value() or []}, self.cost)

    @property
    def asks_about_missing(self) -> bool:
        """Whether data sets of the edition's lists are missing among those chosen."""
        return bool(self.is_bound and self.errors and self.missing_sets)

    # What it takes -----------------------------------------------------------------------------------

    def clean_method(self) -> str:
        name: str = self.cleaned_data["method"]
        if missing := self.offer.missing[name]:
            raise forms.ValidationError(missing)
        return name

    def clean_level(self) -> str:
        return self.cleaned_data["level"] or BY_ROLE

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if System.objects.filter(name=name).exists():
            raise forms.ValidationError(_taken(name))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        self._clean_options(cleaned)
        self._clean_level(cleaned)
        if cleaned.get("edition") is not None:
            self._clean_edition(cleaned)
        elif "method" in cleaned and not cleaned.get("name") and "name" not in self.errors:
            cleaned["name"] = _free_name(f"{cleaned['method']}-{self.corpus.name}"[:60])
        return cleaned

    def _clean_options(self, cleaned: dict[str, Any]) -> None:
        """Only what belongs to the chosen method counts."""
        chosen = self.offer.known.get(cleaned.get("method", ""))
        for method in self.offer.known.values():
            for name in () if method is chosen else _field_names(method):
                self.errors.pop(name, None)
        if chosen is not None:
            self.options, wrong = chosen_options(chosen, cleaned)
            self.targets, missing = chosen_targets(chosen, cleaned, self._lenders)
            for name, sentence in (wrong | missing).items():
                self.add_error(name, sentence)

    def _clean_level(self, cleaned: dict[str, Any]) -> None:
        at_speaker_level = cleaned.get("level") == AnonymizationRun.Level.SPEAKER
        training = [one.name for one in cleaned.get("data_sets", ()) if one.role == Role.TRAINING]
        if at_speaker_level and training:
            sentence = f"Training data is anonymised at utterance level only: {', '.join(training)}."
            self.add_error("level", f"{sentence} Leave it out, or choose another level.")

    def _clean_edition(self, cleaned: dict[str, Any]) -> None:
        edition: Edition = cleaned["edition"]
        self.errors.pop("name", None)  # the system is named after its title
        cleaned["name"] = ""
        if "label" in cleaned and (refusal := baseline_refusal(edition, cleaned["label"])):
            self.add_error("label", refusal)
        if self.missing_sets and not cleaned.get("incomplete") and "data_sets" in cleaned:
            names = ", ".join(self.missing_sets)
            self.add_error(
                "data_sets",
                f"{edition} asks its teams for these, too: {names}. Choose them, or say below that it shall start "
                "without; numbers that rest on them will be missing.",
            )

    @cached_property
    def missing_sets(self) -> list[str]:
        """Data sets of the lists of the chosen edition that were not chosen."""
        edition = self.cleaned_data.get("edition") if self.is_bound else None
        if edition is None:
            return []
        chosen = {data_set.name for data_set in self.cleaned_data.get("data_sets", ())}
        return [name for name in self.offer.asked_by(edition) if name not in chosen]

    # What comes of it --------------------------------------------------------------------------------

    def start(self) -> System | None:
        """Start what a valid form asks for; None with an error of the form where the name was taken meanwhile."""
        asked = {key: self.cleaned_data[key] for key in ("data_sets", "method", "seed", "level")}
        asked |= {"options": self.options, "targets": self.targets, "by": self.by}
        edition, label, name = (self.cleaned_data[key] for key in ("edition", "label", "name"))
        try:
            if edition is not None:
                return start_edition_baseline(edition=edition, label=label, **asked)
            return start_baseline(corpus=self.corpus, name=name, **asked)
        except MethodError as error:
            self.add_error("method", str(error))
        except IntegrityError:
            if edition is not None and (refusal := baseline_refusal(edition, label)):
                self.add_error("label", refusal)
            elif edition is None and System.objects.filter(name=name).exists():
                self.add_error("name", _taken(name))
            else:
                raise
        return None

    def start_trial(self) -> Job | None:
        """Let the methods of unknown pace be tried on one utterance; None where there is none."""
        if not self.offer.untried or not self.offer.ready:
            return None
        return start_trials(corpus=self.corpus, methods=self.offer.untried, by=self.by)


def _field_names(method: Anonymizer) -> list[str]:
    """Of the fields that belong to a method alone."""
    targets = target_field_names(method) if takes_targets(method) else ()
    return [*targets, *(option_name(method, option) for option in method.options)]


def _taken(name: str) -> str:
    return f"There is a system {name} already. {_free_name(name)} is free."


def _free_name(wanted: str) -> str:
    taken = set(System.objects.filter(name__startswith=wanted[:50]).values_list("name", flat=True))
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted[:50]}-{number}") not in taken)
