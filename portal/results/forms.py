"""The form that runs an anonymiser on a corpus."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms

from anonymization.methods.registry import methods
from portal.challenges.models import Corpus, DataSet
from portal.submissions.models import System


class BaselineForm(forms.Form):
    """Which method over which data sets of one corpus."""

    method = forms.ChoiceField(label="Method")
    data_sets = forms.ModelMultipleChoiceField(
        label="Data sets", queryset=DataSet.objects.none(), widget=forms.CheckboxSelectMultiple
    )
    name = forms.SlugField(
        label="Name of the system",
        max_length=60,
        help_text="Letters, digits and hyphens; it becomes part of addresses.",
    )
    seed = forms.IntegerField(
        label="Seed",
        min_value=0,
        max_value=2**63 - 1,
        help_text="The same seed gives every speaker the same pseudo-speaker again. Keep it secret while results count.",
    )

    def __init__(self, *args: Any, corpus: Corpus, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["method"].choices = [(method.name, method.title) for method in methods()]
        self.fields["data_sets"].queryset = corpus.data_sets.all()
        self.fields["data_sets"].initial = list(corpus.data_sets.all())
        self.fields["name"].initial = _free_name(f"b2-{corpus.name}")
        self.fields["seed"].initial = secrets.randbelow(10**9)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if System.objects.filter(name=name).exists():
            raise forms.ValidationError(
                f"There is a system {name} already. {_free_name(name)} is free."
            )
        return name


def _free_name(wanted: str) -> str:
    taken = set(System.objects.filter(name__startswith=wanted[:50]).values_list("name", flat=True))
    if wanted not in taken:
        return wanted
    return next(
        name
        for number in range(2, len(taken) + 3)
        if (name := f"{wanted[:50]}-{number}") not in taken
    )
