"""The form that runs an anonymiser on a corpus."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, cast

from django import forms
from django.db import IntegrityError
from django.db.models import QuerySet

from anonymization.methods.registry import Method, methods
from portal.challenges.models import Corpus, DataSet
from portal.challenges.selectors import DataSetRow, data_set_table
from portal.core.wording import roughly
from portal.results.pages import work_per_second
from portal.results.services import start_baseline
from portal.submissions.models import System


class _DataSetsField(forms.ModelMultipleChoiceField):
    def clean(self, value: Any) -> QuerySet[DataSet]:
        try:
            return super().clean(value)
        except OverflowError:  # a number that no database can hold
            raise forms.ValidationError("Choose data sets of this list.") from None


class BaselineForm(forms.Form):
    """Which method over which data sets of one corpus.

    `ready` and `without_audio`: the data sets that can be anonymised, and those that lack audio. `cost`: seconds of
    work for a second of speech, None where nothing tells.
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
    name = forms.SlugField(
        label="Name of the system",
        max_length=60,
        help_text="Letters, digits, hyphens and underscores; it becomes part of addresses.",
        error_messages={
            "required": "Give the system a name, such as b2-speech.",
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

    def __init__(self, *args: Any, corpus: Corpus, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.corpus = corpus
        rows = data_set_table(corpus)
        self.ready = [row for row in rows if 0 < row.utterances == row.with_audio]
        self.without_audio = [row for row in rows if row not in self.ready]
        self.cost = work_per_second()
        ready = [row.data_set.pk for row in self.ready]
        cast("forms.ChoiceField", self.fields["method"]).choices = [(method.name, method.title) for method in methods()]
        self.fields["method"].initial = methods()[0].name
        cast("forms.ModelMultipleChoiceField", self.fields["data_sets"]).queryset = corpus.data_sets.filter(
            pk__in=ready
        )
        self.fields["data_sets"].initial = ready
        self.fields["name"].initial = _free_name(f"b2-{corpus.name}"[:60])
        self.fields["seed"].initial = secrets.randbelow(10**9)

    def method_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, Method]]:
        """Each method's radio button with what the method says of itself."""
        yield from zip(self["method"], methods(), strict=True)

    def data_set_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, DataSetRow]]:
        """Each ready data set's checkbox with its numbers, in the order of the corpus page."""
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        yield from ((buttons[row.data_set.pk], row) for row in self.ready)

    def extent(self) -> str:
        """How much the chosen data sets are, and how long it will take; app.js keeps it true while boxes are ticked."""
        wanted = {str(pk) for pk in self["data_sets"].value() or []}
        chosen = [row for row in self.ready if str(row.data_set.pk) in wanted]
        if not chosen:
            return "No data set chosen."
        seconds = sum(row.seconds for row in chosen)
        sets = f"{len(chosen)} data set{'s' if len(chosen) > 1 else ''}, {roughly(seconds)} of speech"
        return f"{sets}; the work takes {roughly(seconds * self.cost)}." if self.cost else f"{sets}."

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if System.objects.filter(name=name).exists():
            raise forms.ValidationError(_taken(name))
        return name

    def start(self, *, by: Any) -> System | None:
        """Start what a valid form asks for; None with an error of the form where the name was taken meanwhile."""
        name = self.cleaned_data["name"]
        try:
            return start_baseline(corpus=self.corpus, by=by, **self.cleaned_data)
        except IntegrityError:
            if not System.objects.filter(name=name).exists():
                raise
            self.add_error("name", _taken(name))
            return None


def _taken(name: str) -> str:
    return f"There is a system {name} already. {_free_name(name)} is free."


def _free_name(wanted: str) -> str:
    taken = set(System.objects.filter(name__startswith=wanted[:50]).values_list("name", flat=True))
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted[:50]}-{number}") not in taken)
