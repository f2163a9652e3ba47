"""The forms before the trials. Nothing is chosen beforehand in any of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.conf.locale import LANG_INFO
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from listening.app.sessions.pre_screening import CHECKS, FEWEST_TONES, MOST_TONES, Kind
from listening.app.studies.settings import ATTEMPTS_AT_MOST, BackgroundQuestion, label_in

MISSING = gettext_lazy("Please answer this question.")
# By their own names, where Django has English ones, other forms or none that many evaluators of crowd platforms speak.
HIGHEST_NUMBER = 1_000_000
LANGUAGES = (
    {"zh": "中文", "cs": "Čeština", "eu": "Euskara", "mn": "Монгол", "pa": "ਪੰਜਾਬੀ", "ka": "ქართული", "th": "ไทย"}
    | {"tl": "Filipino (Tagalog)", "gu": "ગુજરાતી", "am": "አማርኛ", "ha": "Hausa", "yo": "Yorùbá", "zu": "isiZulu"}
    | {"xh": "isiXhosa", "jv": "Basa Jawa", "si": "සිංහල", "so": "Soomaali", "mt": "Malti", "ku": "Kurdî", "ps": "پښتو"}
    | {"kn": "ಕನ್ನಡ", "km": "ភាសាខ្មែរ", "lt": "Lietuvių", "sk": "Slovenčina", "kk": "Қазақша", "ar": "العربية"}
)
AUXILIARY = {"ia", "io"}  # Interlingua and Ido have no native speakers
LONGEST_TEXT = 500


class ConsentForm(forms.Form):
    agrees = forms.BooleanField(
        label="", error_messages={"required": gettext_lazy("Please tick the box if you agree.")}
    )


class QuestionsForm(forms.Form):
    """The questionnaire of a study in one language."""

    def __init__(
        self, data: Any, *, questions: tuple[BackgroundQuestion, ...], language: str, languages: tuple[str, ...]
    ) -> None:
        super().__init__(data)
        for question in questions:
            field = _make_field(question, language, languages)
            field.label = _label(question.labels, language)
            field.required = question.is_required
            field.error_messages["required"] = MISSING
            field.widget.is_required = False  # the server says it, in the page's language and for all at once
            self.fields[question.name] = field

    @property
    def answers(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


def _label(labels: Mapping[str, str], language: str) -> str:
    """Return the label in this language; another one is translated where the words of the study know it."""
    return labels.get(language) or _(label_in(labels, language))


def _make_field(question: BackgroundQuestion, language: str, languages: tuple[str, ...]) -> forms.Field:
    if question.kind == "choice":
        choices = [(one.value, _label(one.labels, language)) for one in question.choices]
        return forms.ChoiceField(choices=choices, widget=forms.RadioSelect)
    if question.kind == "language":
        unsaid = [] if languages else [("undisclosed", _("I would rather not say"))]
        return forms.ChoiceField(choices=[*language_choices(languages), *unsaid])
    if question.kind == "number":
        return forms.IntegerField(min_value=0, max_value=HIGHEST_NUMBER)
    return forms.CharField(max_length=LONGEST_TEXT)


def language_choices(further: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """List languages by their own names, those of the study's gate among them, and one for all others."""
    known = {code: facts["name_local"] for code, facts in LANG_INFO.items() if "name_local" in facts and len(code) == 2}
    asked = {one.partition("-")[0] for one in further}
    names = {code: name[:1].upper() + name[1:] for code, name in known.items()} | LANGUAGES
    names = {code: code for code in asked} | {
        code: name for code, name in names.items() if code not in AUXILIARY - asked
    }
    by_name = sorted(names.items(), key=lambda pair: _without_marks(pair[1]))
    return [("", _("Choose a language")), *by_name, ("other", _("Another language"))]


def _without_marks(name: str) -> str:
    """Return a name as lists sort it: Čeština among those with C."""
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(one for one in letters if not unicodedata.combining(one))


_ONE_OF_THREE = [(number, str(number)) for number in (1, 2, 3)]
CHOICES: Mapping[str, list[tuple[int, Any]]] = {
    Kind.SOUND: [(number, str(number)) for number in range(FEWEST_TONES - 1, MOST_TONES + 2)],
    Kind.HUGGINS: _ONE_OF_THREE,
    Kind.WOODS: _ONE_OF_THREE,
    Kind.BANDWIDTH: [(1, gettext_lazy("The same")), (2, gettext_lazy("Different"))],
    Kind.ENVIRONMENT: [
        (1, gettext_lazy("The first")),
        (2, gettext_lazy("The second")),
        (3, gettext_lazy("I hear no difference")),
    ],
}


class CheckForm(forms.Form):
    """Answers to a check before the trials, each one out of a few numbers."""

    def __init__(self, data: Any = None, *, kind: str, unheard: Collection[int] = ()) -> None:
        """Take `unheard`: places from 1 on whose sound was never fetched, so that nobody can have heard it."""
        super().__init__(data)
        self.kind, self.unheard, self.places = kind, unheard, range(1, CHECKS[kind].rounds + 1)
        numbers = [(number, number) for number in range(1, ATTEMPTS_AT_MOST + 1)]
        self.fields["attempt"] = forms.TypedChoiceField(choices=numbers, coerce=int, widget=forms.HiddenInput)
        for place in self.places:
            self.fields[f"answer{place}"] = forms.TypedChoiceField(
                label=self.label_of(place),
                choices=CHOICES[kind],
                coerce=int,
                widget=forms.RadioSelect,
                error_messages={"required": MISSING},
            )

    def clean(self) -> dict[str, Any]:
        is_sound = self.kind == Kind.SOUND
        told = _("Press “Test my sound” first.") if is_sound else _("Please listen to the whole recording first.")
        for place in self.unheard:
            self.errors.pop(f"answer{place}", None)  # its answers are locked: no use to ask for one
            self.add_error(f"answer{place}", told)
        return self.cleaned_data

    def label_of(self, place: int) -> str:
        if self.kind == Kind.SOUND:
            return _("First group") if place == 1 else _("Second group")
        return _("Round %(number)s") % {"number": place}

    @property
    def rounds(self) -> list[forms.BoundField]:
        return [self[f"answer{place}"] for place in self.places]

    @property
    def given(self) -> list[int]:
        return [self.cleaned_data[f"answer{place}"] for place in self.places]


class LanguageForm(forms.Form):
    """`is_withdrawing`: chosen on the page that asks before it deletes, which comes again."""

    language = forms.CharField(max_length=8)
    is_withdrawing = forms.BooleanField(required=False)


class WithdrawalForm(forms.Form):
    code = forms.CharField(
        max_length=60, error_messages={"required": gettext_lazy("Please enter your withdrawal code.")}
    )
