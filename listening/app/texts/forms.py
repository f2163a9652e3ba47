"""The forms of a study's texts: one text in one language, and the words of buttons and hints."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError

from listening.app.models import Study, StudyText
from listening.app.studies import interface_words, selectors, services
from listening.app.studies.forms import LONGEST_TEXT, or_errors
from listening.texts import direction_of


class TextForm(forms.Form):
    """One text in one language."""

    kind = forms.ChoiceField(choices=[(kind.value, kind.label) for kind in StudyText.READ], widget=forms.HiddenInput)
    language = forms.CharField(widget=forms.HiddenInput, max_length=8)
    text = forms.CharField(
        label="Text",
        help_text="Markdown: empty lines between paragraphs, - before the items of a list, ## before a heading.",
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 16}),
        error_messages={"required": "Write what evaluators will read."},
    )

    def __init__(self, data: Any = None, *, study: Study, kind: str, language: str) -> None:
        self.study = study
        newest = selectors.newest_text(study, kind, language)
        initial = {"kind": kind, "language": language, "text": newest.text if newest else ""}
        super().__init__(data, initial=initial, prefix=f"{kind}-{language}")

    def clean_text(self) -> str:
        return cast("str", self.cleaned_data["text"]).replace("\r\n", "\n").replace("\0", "").strip()

    def clean_language(self) -> str:
        language = cast("str", self.cleaned_data["language"])
        if language not in self.study.languages:
            raise ValidationError(f"The study has no language {language}. Add it on the page “Edit”.")
        return language

    def save(self, *, by: Any) -> StudyText | None:
        """Return the new version of a valid form; None where it says nothing new, or with an error of the form."""
        return or_errors(self, services.change_text, study=self.study, by=by, **self.cleaned_data)


class WordsForm(forms.Form):
    """The words of buttons and hints in a language, a field for each; an empty one stays English."""

    def __init__(self, data: Any = None, *, study: Study, language: str) -> None:
        self.study, self.language = study, language
        super().__init__(data)
        kept = interface_words.translations_of(study, language)
        marks = {"rows": 1, "lang": language, "dir": direction_of(language)}
        for word in interface_words.list_words(language):
            label = f"{word.english} [{word.numbers}]" if word.form else word.english
            field = forms.CharField(label=label, required=False, initial=kept.get(word.key, ""))
            field.widget = forms.Textarea(attrs=marks)
            self.fields[word.name] = field

    def clean(self) -> dict[str, Any]:
        given = cast("dict[str, Any]", super().clean())
        for word in interface_words.list_words(self.language):
            translation = given.get(word.name, "").replace("\r\n", "\n").replace("\0", "")
            if translation and (problem := interface_words.find_problem(word, translation)):
                self.add_error(word.name, problem)
            given[word.name] = translation
        return given

    def save(self, *, by: Any) -> StudyText | None:
        """Return the new version of a valid form; None where it says nothing new, or with an error of the form."""
        found = {word.key: self.cleaned_data[word.name] for word in interface_words.list_words(self.language)}
        return or_errors(
            self, services.change_words, study=self.study, language=self.language, translations=found, by=by
        )
