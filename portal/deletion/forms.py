"""The form by which a thing is deleted."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError


class DeletionForm(forms.Form):
    """The name of a thing, typed once more."""

    typed = forms.CharField(
        label="Type its name to delete it", error_messages={"required": "Type the name exactly as shown above."}
    )

    def __init__(self, data: Any, *, thing: Any) -> None:
        super().__init__(data)
        self.wanted = str(thing)
        self.fields["typed"].help_text = self.wanted

    def clean_typed(self) -> str:
        typed = " ".join(self.cleaned_data["typed"].split())
        if typed != " ".join(self.wanted.split()):
            raise ValidationError(f"Expected {self.wanted}, found {typed}.")
        return typed
