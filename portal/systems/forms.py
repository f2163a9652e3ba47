"""The form by which a system gets other names."""

from __future__ import annotations

from typing import Any

from django import forms

from portal.core.fields import LineField
from portal.submissions.models import System


class SystemForm(forms.ModelForm):
    """The title of a system, and of a baseline without an edition the short name."""

    class Meta:
        model = System
        fields = ("title", "name")
        field_classes = {"title": LineField}
        labels = {"name": "Short name"}
        help_texts = {"name": "Part of its address: links to the present one stop working."}
        error_messages = {"name": {"unique": "This name is taken; choose another name."}}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.edition_id is not None:
            del self.fields["name"]
