"""What the form of a study is made of: kinds of fields, its sections, which fields a form of study has, its values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from listening.models import Study
from listening.studies import plans
from listening.studies.own_questions import write_questions
from listening.studies.study_rules import LOCKED_AFTER_LAUNCH

LONGEST_TEXT = 20_000
MOST_EVALUATORS, MOST_TRIALS = 1000, 200
NAME_ERRORS = {
    "required": "Give a short name, such as listening2026.",
    "invalid": "Use small letters a to z, digits, hyphens and underscores only, such as listening2026.",
}
SHIPPED_QUESTIONS = {one["name"]: one for one in plans.DEFAULT_QUESTIONNAIRE}
OUTCOME_WORDS = {
    "complete": "Completion code",
    "screened-out": "Code for who is screened out",
    "failed-attention": "Code for who misses the control trials",
    "technical": "Code for a technical fault",
}
PARAMETER_WORDS = {"person": "the person", "study": "the study", "session": "the session"}


@dataclass(frozen=True)
class FieldGroup:
    """Fields that stand one below the other, or side by side where they are narrow."""

    is_narrow: bool
    fields: list[forms.BoundField]


@dataclass(frozen=True)
class FormSection:
    """A part of the form with its heading; `name` is the id of the heading."""

    name: str
    title: str
    groups: list[FieldGroup]

    @property
    def names(self) -> set[str]:
        return {field.name for group in self.groups for field in group.fields}


class WholeField(forms.IntegerField):
    """A whole number of a range; every fault is one sentence that names the range."""

    def __init__(self, label: str, lowest: int, highest: int, help_text: str = "", **options: Any) -> None:
        sentence = f"Give a whole number from {lowest} to {highest}."
        errors = dict.fromkeys(("required", "invalid", "min_value", "max_value"), sentence)
        super().__init__(
            label=label, min_value=lowest, max_value=highest, help_text=help_text, error_messages=errors, **options
        )


class StudyNameField(forms.CharField):
    def __init__(self) -> None:
        super().__init__(
            label="Short name",
            help_text="Small letters, digits, hyphens and underscores; part of the address of its pages.",
            max_length=60,
            validators=[validate_slug],
            error_messages=NAME_ERRORS,
        )

    def clean(self, value: Any) -> str:
        name = super().clean(value)
        if name != name.lower():
            raise ValidationError(f"Expected small letters, found {name}.")
        return cast("str", name)


SAVED = (
    "title", "name", "tasks", "pages", "scale_points", "plays_at_most", "role_play", "languages", "evaluators",
    "trials_per_evaluator", "originals_per_evaluator", "practice_trials", "gold_trials", "bridge_trials",
    "board_samples", "board_dimensions", "board_groups", "relaxations", "seed", "pay_per_hour", "currency",
    "questionnaire",
    "screening", "platform", "platform_settings", "lease_minutes",
)  # fmt: skip
PLANNED = (
    "evaluators", "trials_per_evaluator", "originals_per_evaluator", "practice_trials", "gold_trials",
    "bridge_trials", "board_samples", "board_dimensions", "board_groups", "relaxations", "seed",
    "pay_per_hour", "currency",
)  # fmt: skip
# Short enough to stand side by side.
NARROW = frozenset(
    {
        "scale_points", "plays_at_most", "evaluators", "trials_per_evaluator", "originals_per_evaluator",
        "practice_trials", "gold_trials", "bridge_trials", "board_samples", "seed", "pay_per_hour", "currency",
        "parameter_person", "parameter_study", "parameter_session", "code_complete", "code_screened_out",
        "code_failed_attention", "code_technical",
    }
)  # fmt: skip
PLAN_SECTIONS = frozenset({"heard", "asked", "plan"})
SCREENED = ("sound", "headphones", "headphones_gate", "headphones_attempts", "native_languages", "gold_gate")
SECTIONS = (
    ("study", "The study", ("title", "name")),
    ("heard", "What is heard", ("systems", "data_sets")),
    ("asked", "What is asked", ("tasks", "pages", "scale_points", "plays_at_most", "role_play", "languages")),
    ("plan", "Evaluators and trials", PLANNED),
    ("before", "Before the trials", ("questions", "own_questions", *SCREENED)),
    (
        "platform",
        "Where evaluators come from",
        (
            "platform", "parameter_person", "parameter_study", "parameter_session", "code_complete",
            "code_screened_out", "code_failed_attention", "code_technical", "confirm_by_api", "lease_minutes",
        ),
    ),
)  # fmt: skip
ABSENT = {
    Study.Form.RATING: ("board_samples", "board_dimensions", "board_groups"),
    Study.Form.LINKABILITY: (
        "tasks", "pages", "scale_points", "originals_per_evaluator", "practice_trials", "gold_trials",
        "bridge_trials", "gold_gate", "relaxations",
    ),
    Study.Form.TRANSCRIPTION: (
        "tasks", "pages", "scale_points", "practice_trials", "gold_trials", "bridge_trials", "gold_gate",
        "board_samples", "board_dimensions", "board_groups", "relaxations",
    ),
}  # fmt: skip
FORM_FIELDS_FIXED_AFTER_LAUNCH = LOCKED_AFTER_LAUNCH | {"questions", "own_questions", *SCREENED}


def initial_of(study: Study) -> dict[str, Any]:
    """What the form of a study shows."""
    values: dict[str, Any] = {name: getattr(study, name) for name in SAVED}
    own = [one for one in study.questionnaire if one.get("name") not in SHIPPED_QUESTIONS]
    screening = plans.DEFAULT_SCREENING | study.screening
    settings = study.platform_settings
    values |= {name: screening[name] for name in SCREENED}
    values |= {f"parameter_{name}": settings.get("parameters", {}).get(name, "") for name in PARAMETER_WORDS}
    values |= {f"code_{name.replace('-', '_')}": settings.get("codes", {}).get(name, "") for name in OUTCOME_WORDS}
    return values | {
        "systems": list(study.systems.values_list("submission", flat=True)),
        "data_sets": list(study.data_sets.values_list("pk", flat=True)),
        "languages": ", ".join(study.languages),
        "native_languages": ", ".join(screening["native_languages"]),
        "board_dimensions": str(study.board_dimensions),
        "questions": [one["name"] for one in study.questionnaire if one.get("name") in SHIPPED_QUESTIONS],
        "own_questions": write_questions(own, languages=study.languages),
        "confirm_by_api": settings.get("confirm_by_api", False),
    }


def in_capitals(choices: Iterable[tuple[Any, Any]]) -> list[tuple[str, str]]:
    """Choices whose words begin with a capital, as labels do."""
    return [(str(value), str(words)[:1].upper() + str(words)[1:]) for value, words in choices]


def language_codes(text: str) -> list[str]:
    """Codes of languages with commas between them, each once."""
    codes = list(dict.fromkeys(text.lower().replace(";", ",").replace(",", " ").split()))
    if wrong := [code for code in codes if not plans.LANGUAGE.fullmatch(code) or len(code) > 8]:
        raise ValidationError([f"Expected a code of a language such as en or fr, found {code}." for code in wrong])
    return codes
