"""Forms and the API say the portal's own sentences where a field has none, not those of the libraries."""

from django import forms
from rest_framework import serializers

from tests.listening.translating import ROOT, catalogue_of, source_of

LOCALE = ROOT / "portal" / "core" / "locale"
LISTED = [("a", "A")]
LONG = "x" * 100_000
SHORTENED = f"Choose from the list; “{'x' * 60}” is not in it."


def test_compiled_sentences_fit_their_source():
    compiled = {key: value for key, value in catalogue_of("en", LOCALE).items() if key}
    assert compiled == {key: value for key, value in source_of("en", LOCALE).items() if key}


def test_fields_without_own_sentences_say_what_to_do():
    for field, value, sentence in (
        (forms.CharField(), "", "Fill in this field."),
        (forms.CharField(max_length=2), "abc", "Use at most 2 characters; these are 3."),
        (forms.CharField(), "\0", "Remove the null characters."),
        (forms.RegexField("a"), "b", "Use the form that this field asks for."),
        (forms.SlugField(), "a b", "Use letters a to z, digits, hyphens and underscores only."),
        (forms.EmailField(), "a", "Give an e-mail address, such as ada@university.example."),
        (forms.ChoiceField(choices=LISTED), LONG, SHORTENED),
        (forms.MultipleChoiceField(choices=LISTED), "a", "Choose from the list."),
        (forms.IntegerField(), "a", "Give a whole number, such as 10."),
        (forms.IntegerField(max_value=2), "3", "Give at most 2."),
        (forms.IntegerField(min_value=2), "1", "Give at least 2."),
        (forms.FloatField(), "a", "Give a number, such as 10 or 0.5."),
        (forms.DecimalField(decimal_places=1), "0.25", "Give at most 1 digit after the point."),
        (forms.DateTimeField(), "a", "Give a date and a time, such as 2026-12-01T12:00."),
        (serializers.ChoiceField(["a"]), LONG, SHORTENED),
    ):
        assert error_of(field, value) == sentence


def error_of(field, value):
    run = field.run_validation if isinstance(field, serializers.Field) else field.clean
    try:
        run(value)
    except (forms.ValidationError, serializers.ValidationError) as error:
        [sentence] = getattr(error, "messages", None) or error.detail
        return str(sentence)
    return ""
