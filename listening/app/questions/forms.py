"""The forms of a study's questions: one form each, with the wording in every language of the study."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.models import BaseModelFormSet, modelformset_factory

from listening.app.models import Question, Study
from listening.app.studies import services
from listening.app.studies.forms import or_errors
from listening.app.studies.pages import language_name
from listening.questions import MOST_QUESTIONS, SCREENS, AskedQuestion, Kind, Wording
from listening.texts import direction_of

LONGEST_QUESTION, LONGEST_WORDS = 400, 2000
MAIN_FIELDS = ("key", "kind", "screen", "points", "listen_again")
PARTS = ("question", "hint", "labels", "instructions", "consent")
RESULT_WORDS = {
    "title": ("Name in results", "Empty: made of the key."),
    "reading": ("How its table is read", ""),
    "worse": ("Said of a system below unprotected speech", "Such as “less natural”, before “than unprotected speech”."),
    "best": ("Said of the best system", "With its verb, such as “sounds most natural”."),
}
ANSWERS = {
    Kind.SCALE: "a point of a scale",
    Kind.CHOICE: "one of several labels",
    Kind.SLIDER: "a slider from 0 to 100 for each recording",
    Kind.TEXT: "text: what is heard is written down",
    Kind.PLACEMENT: "a placement of voices on a board",
}
SCREEN_WORDS = {
    "voices": "A and B: two voices",
    "single": "A alone",
    "reference": "the reference, then A",
    "pair": "A and B: two conditions of one recording",
    "triple": "X, A and B: X is A or B",
    "many": "the reference and all conditions of one recording at once",
    "board": "the samples of a board",
}


class QuestionForm(forms.ModelForm):
    """A question; the wording in each language of the study has fields of its own, such as `question_en`."""

    class Meta:
        model = Question
        fields = MAIN_FIELDS
        labels = {
            "key": "Key",
            "kind": "Answer",
            "screen": "What is heard",
            "points": "Points of the scale",
            "listen_again": "A can be played again beside the question",
        }
        help_texts = {"key": "Names it in exports: small letters, digits and hyphens, such as naturalness."}

    def __init__(self, *args: Any, study: Study, **more: Any) -> None:
        super().__init__(*args, **more)
        self.study = study
        self.fields["kind"].choices = list(ANSWERS.items())  # type: ignore[attr-defined]
        self.fields["screen"].choices = list(SCREEN_WORDS.items())  # type: ignore[attr-defined]
        if self.instance.pk is None:
            self.initial = {"kind": Kind.SCALE.value, "screen": "single", "points": 5}
        for language in study.languages:
            for name, field in self._wording_fields(language).items():
                self.fields[name] = field
        for name, (label, help_text) in RESULT_WORDS.items():
            initial = self.instance.results.get(name, "")
            self.fields[f"results_{name}"] = forms.CharField(
                label=label, help_text=help_text, initial=initial, required=False, max_length=LONGEST_WORDS
            )

    def _wording_fields(self, language: str) -> dict[str, forms.Field]:
        words = self.instance.wording.get(language, {})
        marks = {"lang": language, "dir": direction_of(language)}

        def area(rows: int) -> forms.Textarea:
            return forms.Textarea(attrs=marks | {"rows": rows})

        longest: dict[str, Any] = {"max_length": LONGEST_WORDS, "required": False}
        return {
            f"question_{language}": forms.CharField(
                label="Question",
                initial=words.get("question", ""),
                max_length=LONGEST_QUESTION,
                widget=area(2),
                error_messages={"required": f"Write the question in {language_name(language)}."},
            ),
            f"hint_{language}": forms.CharField(label="Hint", initial=words.get("hint", ""), widget=area(2), **longest),
            f"labels_{language}": forms.CharField(
                label="Labels",
                initial="\n".join(words.get("labels", ())),
                help_text="One on each line, from the lowest point to the highest: of the two ends, or of each.",
                widget=area(5),
                **longest,
            ),
            f"instructions_{language}": forms.CharField(
                label="Instructions before the trials",
                initial=words.get("instructions", ""),
                help_text="Markdown; {top} stands for the highest point.",
                widget=area(3),
                **longest,
            ),
            f"consent_{language}": forms.CharField(
                label="In the consent",
                initial=words.get("consent", ""),
                help_text="The end of “you will hear short recordings and say …”.",
                widget=area(1),
                **longest,
            ),
        }

    @property
    def languages(self) -> list[dict[str, Any]]:
        """Return the fields of the wording, language by language."""
        return [
            {"name": language_name(language), "fields": [self[f"{part}_{language}"] for part in PARTS]}
            for language in self.study.languages
        ]

    @property
    def main_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in MAIN_FIELDS]

    @property
    def result_fields(self) -> list[forms.BoundField]:
        return [self[f"results_{name}"] for name in RESULT_WORDS]

    def as_asked(self) -> AskedQuestion:
        """Return the question of a valid form; languages that the study has no more keep their wording."""
        given = self.cleaned_data
        kept = self.instance.as_asked().wording if self.instance.pk else {}
        wording = {
            language: Wording(
                question=given[f"question_{language}"],
                hint=given[f"hint_{language}"],
                labels=tuple(filter(None, (line.strip() for line in given[f"labels_{language}"].splitlines()))),
                instructions=given[f"instructions_{language}"],
                consent=given[f"consent_{language}"],
            )
            for language in self.study.languages
        }
        return AskedQuestion(
            key=given["key"],
            wording={**kept, **wording},
            kind=given["kind"],
            screen=given["screen"] if len(SCREENS[given["kind"]]) > 1 else SCREENS[given["kind"]][0].value,
            points=given["points"],
            listen_again=given["listen_again"],
            results={name: given[f"results_{name}"] for name in RESULT_WORDS if given[f"results_{name}"]},
        )


class BaseQuestionFormSet(BaseModelFormSet):
    """All questions of a study, in the order of asking."""

    def __init__(self, data: Any = None, *, study: Study) -> None:
        self.study = study
        super().__init__(data, queryset=study.questions.all(), form_kwargs={"study": study})

    def validate_unique(self) -> None:
        """Leave doubled keys to `list_question_problems`, which names them."""

    def save_for(self, by: Any) -> Study | None:
        """Return the changed study of a valid formset; None with errors where the questions do not go together."""
        questions = [form.as_asked() for form in self.ordered_forms]  # type: ignore[attr-defined]
        holder = forms.Form({})
        changed: Study | None = or_errors(
            holder, services.change_questions, study=self.study, by=by, questions=questions
        )
        self.non_form_errors().extend(holder.non_field_errors())
        return changed


QuestionFormSet = modelformset_factory(
    Question,
    form=QuestionForm,
    formset=BaseQuestionFormSet,
    extra=1,
    can_order=True,
    can_delete=True,
    max_num=MOST_QUESTIONS,
    validate_max=True,
)
