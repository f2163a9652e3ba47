"""Fields that more than one part of the portal asks for, of forms and of rows, and the answer of a page with a form."""

from __future__ import annotations

import hashlib
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.forms.boundfield import BoundWidget
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import Truncator

from common.line_texts import line_problem
from common.seeds import find_wrong_seeds, read_seeds

NAME_LETTERS = "letters a to z, digits, hyphens and underscores"


def posted(request: HttpRequest) -> Any:
    """Return what a form is bound to: what was sent, or nothing."""
    return request.POST if request.method == "POST" else None


def show_form(request: HttpRequest, template: str, form: forms.BaseForm, **context: Any) -> HttpResponse:
    """Return the page of a form; with status 422 where it has errors."""
    return render(request, template, {"form": form, **context}, status=422 if form.errors else 200)


def describe_errors(form: forms.BaseForm) -> str:
    """Return the errors of a form as text, a line for each field: for commands."""
    return "\n".join(f"{field}: {' '.join(map(str, sentences))}" for field, sentences in form.errors.items())


class LineField(forms.CharField):
    """One line of text: line ends and other control characters would break mails and tables.

    What is too long is said; a browser that knows the limit would cut what is pasted without a word.
    """

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {name: value for name, value in super().widget_attrs(widget).items() if name != "maxlength"}

    def clean(self, value: Any) -> str:
        text = " ".join((super().clean(value) or "").split())
        validate_line(text)
        return text


def validate_line(text: str) -> None:
    """Refuse a line that holds a sign that nobody sees.

    Raises:
        ValidationError: with the sentence that says which.
    """
    if sentence := line_problem(text):
        raise ValidationError(sentence)


class LineText(models.CharField):
    """One line of text in a row; forms ask for it by a `LineField`, the API by its own."""

    default_validators = [validate_line]

    def formfield(self, **options: Any) -> Any:
        return super().formfield(**{"form_class": LineField} | options)


class RadioField(forms.ChoiceField):
    """One of a list, by radio buttons.

    Args:
        what: what is chosen, such as ``a method``, for the sentence that asks for it; Django's own where it is empty.
    """

    widget = forms.RadioSelect

    def __init__(self, label: str, what: str = "", **options: Any) -> None:
        sentences = dict.fromkeys(("required", "invalid_choice"), f"Choose {what} of this list.") if what else None
        super().__init__(label=label, error_messages=sentences, **options)

    def clean(self, value: Any) -> Any:
        """Return what is left out is what was chosen at first."""
        return super().clean(value) or self.initial or ""


class RowField(forms.ModelChoiceField):
    """A row of a table; a number that no database can hold is none of the list."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise ValidationError(str(self.error_messages["invalid_choice"])) from None


class RowsField(RowField, forms.ModelMultipleChoiceField):
    """Rows that are ticked. `what`: one of them, such as ``data set``."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, label: str, what: str, **options: Any) -> None:
        sentences = dict.fromkeys(("invalid_choice", "invalid_pk_value"), f"Choose {what}s of this list.")
        sentences["required"] = f"Choose at least one {what}."
        super().__init__(None, label=label, error_messages=sentences, **options)


class SeedsField(forms.CharField):
    """Seeds of a training, at most so many."""

    def __init__(self, most: int, **options: Any) -> None:
        sentences = {"required": f"Give 1 to {most} seeds, such as 1, 2, 3."}
        super().__init__(label="Seeds", max_length=120, error_messages=sentences, **options)
        self._most = most

    def clean(self, value: Any) -> list[int]:
        try:
            seeds = read_seeds(super().clean(value))
        except ValueError as error:
            raise ValidationError(str(error)) from error
        if sentence := find_wrong_seeds(seeds, self._most):
            raise ValidationError(sentence)
        return seeds


class SharedForm(forms.Form):
    """A form of what several people edit: what somebody else saved since the page was opened is not replaced unseen.

    Its page holds `state_seen`, marks of the values that it showed; a form that is sent without is taken as it is. The
    page with the errors holds the marks of the values as they are then, so that saving again replaces them.
    """

    STATE = "state_seen"

    def state_seen(self) -> str:
        """Return a hidden input with a mark of each value as it is now."""
        return forms.HiddenInput().render(self.STATE, " ".join(map(":".join, self._marks().items())))

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        for name in self._find_changed_by_others():
            now = self.initial[name]
            told = f" It is now “{Truncator(now).chars(200)}”." if now and isinstance(now, str) else ""
            self.add_error(name, f"Somebody changed this after you opened the page.{told} Save again to replace it.")
        return given

    def _marks(self) -> dict[str, str]:
        shown = {name: repr(value) for name, value in self.initial.items() if name in self.fields}
        return {name: hashlib.sha256(value.encode()).hexdigest()[:8] for name, value in shown.items()}

    def _find_changed_by_others(self) -> list[str]:
        """Return the fields whose value is neither what the page showed nor what is sent now."""
        seen = dict(one.partition(":")[::2] for one in self.data.get(self.STATE, "").split())
        changed = [name for name, mark in self._marks().items() if seen.get(name, mark) != mark]
        return [
            name
            for name in changed
            if not self.fields[name].disabled and self.fields[name].has_changed(self.initial[name], self[name].data)
        ]


def disable(button: BoundWidget) -> None:
    """Show a radio button or a box that cannot be chosen."""
    button.data["attrs"] = button.data["attrs"] | {"disabled": True}
