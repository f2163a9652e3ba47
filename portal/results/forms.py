"""The form that runs an anonymiser on a corpus."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, cast

from django import forms

from anonymization.methods.registry import Method, methods
from portal.challenges.models import Corpus, DataSet
from portal.challenges.selectors import DataSetRow, data_set_table
from portal.submissions.models import System


class BaselineForm(forms.Form):
    """Which method over which data sets of one corpus.

    `ready` and `without_audio`: the data sets that can be anonymised, and those that lack audio.
    """

    method = forms.ChoiceField(label="Method", widget=forms.RadioSelect)
    data_sets = forms.ModelMultipleChoiceField(
        label="Data sets",
        queryset=DataSet.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one data set."},
        help_text="Each becomes two jobs: one anonymises, the next measures. Trial sets are what the protocol judges.",
    )
    name = forms.SlugField(
        label="Name of the system",
        max_length=60,
        help_text="Letters, digits, hyphens and underscores; it becomes part of addresses.",
        error_messages={"invalid": "Use letters, digits, hyphens and underscores only, such as b2-speech."},
    )
    seed = forms.IntegerField(
        label="Seed",
        min_value=0,
        max_value=2**63 - 1,
        help_text="The same seed gives every speaker the same pseudo-speaker again. "
        "Who knows it can undo the choice of voices: keep it secret while results count.",
    )

    def __init__(self, *args: Any, corpus: Corpus, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = data_set_table(corpus)
        self.ready = [row for row in rows if 0 < row.utterances == row.with_audio]
        self.without_audio = [row for row in rows if row not in self.ready]
        ready = [row.data_set.pk for row in self.ready]
        cast("forms.ChoiceField", self.fields["method"]).choices = [(method.name, method.title) for method in methods()]
        self.fields["method"].initial = methods()[0].name
        cast("forms.ModelMultipleChoiceField", self.fields["data_sets"]).queryset = corpus.data_sets.filter(
            pk__in=ready
        )
        self.fields["data_sets"].initial = ready
        self.fields["name"].initial = _free_name(f"b2-{corpus.name}")
        self.fields["seed"].initial = secrets.randbelow(10**9)

    def method_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, Method]]:
        """Each method's radio button with what the method says of itself."""
        yield from zip(self["method"], methods(), strict=True)

    def data_set_choices(self) -> Iterator[tuple[forms.boundfield.BoundWidget, DataSetRow]]:
        """Each ready data set's checkbox with its numbers, in the order of the corpus page."""
        buttons = {int(str(button.data["value"])): button for button in self["data_sets"]}
        yield from ((buttons[row.data_set.pk], row) for row in self.ready)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if System.objects.filter(name=name).exists():
            raise forms.ValidationError(f"There is a system {name} already. {_free_name(name)} is free.")
        return name


def _free_name(wanted: str) -> str:
    taken = set(System.objects.filter(name__startswith=wanted[:50]).values_list("name", flat=True))
    if wanted not in taken:
        return wanted
    return next(name for number in range(2, len(taken) + 3) if (name := f"{wanted[:50]}-{number}") not in taken)
