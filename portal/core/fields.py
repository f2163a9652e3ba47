"""Fields of forms that more than one part of the portal asks for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator


class LineField(forms.CharField):
    """One line of text: line ends and other control characters would break mails and tables.

    What is too long is said; a browser that knows the limit would cut what is pasted without a word.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.max_length is not None and "max_length" not in (options.get("error_messages") or {}):
            for validator in self.validators:
                if isinstance(validator, MaxLengthValidator):
                    validator.message = f"Use at most {self.max_length} characters; these are %(show_value)d."

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {name: value for name, value in super().widget_attrs(widget).items() if name != "maxlength"}

    def clean(self, value: Any) -> str:
        text = " ".join((super().clean(value) or "").split())
        if not text.isprintable():
            raise ValidationError("Use letters, digits and signs only; found a character that cannot be seen.")
        return text
