"""What a study asks before its trials and where its evaluators come from, read from the study's JSON fields.

Each `parse_…` turns what an organizer's form or a stored field holds into a frozen dataclass, or raises `PlanError`
with every fault at once. Nothing below this door checks these fields again.

    screening          {"sound": true, "headphones": "none|huggins|woods|both", "headphones_gate": "flag|gate",
                        "headphones_attempts": 2, "native_languages": ["en"], "gold_gate": "flag|gate"}
    questionnaire      [{"name": "age", "kind": "choice|number|text|language", "labels": {"en": "Your age"},
                        "choices": [{"value": "18-29", "labels": {"en": "18 to 29"}}], "required": true}]
    platform_settings  {"parameters": {"person": …, "study": …, "session": …}, "codes": {"complete": …},
                        "confirm_by_api": false}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

HEADPHONE_TESTS = {"none": (), "huggins": ("huggins",), "woods": ("woods",), "both": ("huggins", "woods")}
GATES = ("flag", "gate")
QUESTION_KINDS = ("choice", "number", "text", "language")
NATIVE_LANGUAGE = "native_language"
OUTCOMES = ("complete", "screened-out", "failed-attention", "technical")
ATTEMPTS_AT_MOST = 5
QUESTIONS_AT_MOST = 30
CHOICES_AT_MOST = 40
CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})?")
PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")


class PlanError(ValueError):
    """What is wrong with a plan; `problems` holds a sentence for each fault."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Screening:
    """The tests before the trials. A gate turns away who fails; a flag lets them go on and keeps the score."""

    sound: bool = True
    headphones: str = "none"
    headphones_gate: str = "flag"
    headphones_attempts: int = 2
    native_languages: tuple[str, ...] = ()
    gold_gate: str = "flag"

    @property
    def headphone_tests(self) -> tuple[str, ...]:
        """The headphone checks in the order of their asking."""
        return HEADPHONE_TESTS[self.headphones]


@dataclass(frozen=True)
class Choice:
    """One answer to choose; `labels` by language."""

    value: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """A question of the questionnaire; `labels` by language. `lowest` and `highest` bound a number."""

    name: str
    kind: str
    labels: Mapping[str, str]
    choices: tuple[Choice, ...] = ()
    is_required: bool = True
    lowest: int = 0
    highest: int = 1_000_000


@dataclass(frozen=True)
class PlatformPlan:
    """Where evaluators come from. `parameters`: names in the address; `codes`: by outcome, where the study has them."""

    platform: str
    parameters: Mapping[str, str]
    codes: Mapping[str, str]
    confirm_by_api: bool = False


class HasPlatform(Protocol):
    platform: str
    platform_settings: Any


def label_in(labels: Mapping[str, str], language: str) -> str:
    """The label in this language, else the first one there is."""
    return labels.get(language) or next(iter(labels.values()), "")


# Screening ----------------------------------------------------------------------------------------

DEFAULT_SCREENING: dict[str, Any] = {
    "sound": True,
    "headphones": "huggins",
    "headphones_gate": "flag",
    "headphones_attempts": 2,
    "native_languages": [],
    "gold_gate": "flag",
}


def parse_screening(given: Any) -> Screening:
    """The screening of a study; what is not given is as `Screening` says.

    Raises:
        PlanError: names every field that cannot be used.
    """
    if not isinstance(given, Mapping):
        raise PlanError([f"The screening: expected an object, found {_kind(given)}."])
    faults = _unknown(given, set(DEFAULT_SCREENING), "The screening")
    sound = _of_type(given, "sound", bool, True, "The sound test", "true or false", faults)
    headphones = _one_of(given, "headphones", HEADPHONE_TESTS, "none", "The headphone check", faults)
    gate = _one_of(given, "headphones_gate", GATES, "flag", "The consequence of the headphone check", faults)
    gold = _one_of(given, "gold_gate", GATES, "flag", "The consequence of missed control trials", faults)
    attempts = given.get("headphones_attempts", 2)
    if not _is_whole(attempts) or not 1 <= attempts <= ATTEMPTS_AT_MOST:
        faults.append(f"Attempts at the headphone check: expected 1 to {ATTEMPTS_AT_MOST}, found {attempts!r}.")
    languages = given.get("native_languages", [])
    if not isinstance(languages, list | tuple) or not all(_matches(LANGUAGE, one) for one in languages):
        faults.append(f"Native languages: expected a list of codes such as en or fr, found {languages!r}.")
        languages = []
    if faults:
        raise PlanError(faults)
    return Screening(sound, headphones, gate, attempts, tuple(dict.fromkeys(languages)), gold)


# Questionnaire ------------------------------------------------------------------------------------

DEFAULT_QUESTIONNAIRE: list[dict[str, Any]] = [
    {
        "name": "age",
        "kind": "choice",
        "labels": {"en": "Your age", "fr": "Votre âge"},
        "choices": [
            {"value": "18-29", "labels": {"en": "18 to 29", "fr": "18 à 29 ans"}},
            {"value": "30-39", "labels": {"en": "30 to 39", "fr": "30 à 39 ans"}},
            {"value": "40-49", "labels": {"en": "40 to 49", "fr": "40 à 49 ans"}},
            {"value": "50-59", "labels": {"en": "50 to 59", "fr": "50 à 59 ans"}},
            {"value": "60+", "labels": {"en": "60 or older", "fr": "60 ans ou plus"}},
            {"value": "undisclosed", "labels": {"en": "I would rather not say", "fr": "Je préfère ne pas répondre"}},
        ],
    },
    {
        "name": "gender",
        "kind": "choice",
        "labels": {"en": "Your gender", "fr": "Votre genre"},
        "choices": [
            {"value": "female", "labels": {"en": "Female", "fr": "Femme"}},
            {"value": "male", "labels": {"en": "Male", "fr": "Homme"}},
            {"value": "other", "labels": {"en": "Another", "fr": "Autre"}},
            {"value": "undisclosed", "labels": {"en": "I would rather not say", "fr": "Je préfère ne pas répondre"}},
        ],
    },
    {
        "name": NATIVE_LANGUAGE,
        "kind": "language",
        "labels": {"en": "Your native language", "fr": "Votre langue maternelle"},
    },
    {
        "name": "hearing",
        "kind": "choice",
        "labels": {
            "en": "Do you have any difficulty in hearing that you know of?",
            "fr": "Avez-vous, à votre connaissance, des difficultés à entendre ?",
        },
        "choices": [
            {"value": "no", "labels": {"en": "No", "fr": "Non"}},
            {"value": "yes", "labels": {"en": "Yes", "fr": "Oui"}},
            {"value": "undisclosed", "labels": {"en": "I would rather not say", "fr": "Je préfère ne pas répondre"}},
        ],
    },
]
_NATIVE_LANGUAGE_QUESTION = next(one for one in DEFAULT_QUESTIONNAIRE if one["name"] == NATIVE_LANGUAGE)


def parse_questionnaire(given: Any, *, screening: Screening | None = None) -> tuple[Question, ...]:
    """The questions of a study; where the screening asks for native languages, that question is always among them.

    Raises:
        PlanError: names every question that cannot be asked.
    """
    if not isinstance(given, list | tuple):
        raise PlanError([f"The questionnaire: expected a list of questions, found {_kind(given)}."])
    faults: list[str] = []
    if len(given) > QUESTIONS_AT_MOST:
        faults.append(f"The questionnaire: expected at most {QUESTIONS_AT_MOST} questions, found {len(given)}.")
    questions = [_question(one, place, faults) for place, one in enumerate(given[:QUESTIONS_AT_MOST], 1)]
    names = [one.name for one in questions if one]
    faults += [
        f"Question {name!r}: there are two of this name." for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if any(one and one.name == NATIVE_LANGUAGE and one.kind != "language" for one in questions):
        faults.append(f"Question {NATIVE_LANGUAGE!r}: expected the kind 'language', which this name is kept for.")
    if faults:
        raise PlanError(faults)
    found = [one for one in questions if one]
    if screening and screening.native_languages:
        found = [_required(one) if one.name == NATIVE_LANGUAGE else one for one in found]
        if NATIVE_LANGUAGE not in names:
            asked = _question(_NATIVE_LANGUAGE_QUESTION, 0, faults)
            found += [asked] if asked else []
    return tuple(found)


def _required(question: Question) -> Question:
    return Question(question.name, question.kind, question.labels, question.choices, True)


def _question(given: Any, place: int, faults: list[str]) -> Question | None:
    where = f"Question {place}"
    if not isinstance(given, Mapping):
        faults.append(f"{where}: expected an object, found {_kind(given)}.")
        return None
    before = len(faults)
    faults += _unknown(given, {"name", "kind", "labels", "choices", "required", "lowest", "highest"}, where)
    name, kind = given.get("name"), given.get("kind")
    if not _matches(NAME, name):
        faults.append(f"{where}: expected a name of small letters, digits and _, found {name!r}.")
    if kind not in QUESTION_KINDS:
        faults.append(f"{where}: expected a kind out of {', '.join(QUESTION_KINDS)}, found {kind!r}.")
    labels = _labels(given.get("labels"), where, faults)
    choices = _choices(given.get("choices", []), where, faults)
    if kind == "choice" and len(choices) < 2:
        faults.append(f"{where}: expected at least two choices, found {len(choices)}.")
    required = _of_type(given, "required", bool, True, f"{where}, required", "true or false", faults)
    lowest, highest = given.get("lowest", 0), given.get("highest", 1_000_000)
    if not _is_whole(lowest) or not _is_whole(highest) or lowest > highest:
        faults.append(f"{where}: expected whole numbers as its lowest and highest answer, in this order.")
    if len(faults) > before:
        return None
    return Question(str(name), str(kind), labels, choices, required, lowest, highest)


def _choices(given: Any, where: str, faults: list[str]) -> tuple[Choice, ...]:
    if not isinstance(given, list | tuple) or len(given) > CHOICES_AT_MOST:
        faults.append(f"{where}: expected a list of at most {CHOICES_AT_MOST} choices.")
        return ()
    found = []
    for place, one in enumerate(given, 1):
        value = one.get("value") if isinstance(one, Mapping) else None
        if not isinstance(value, str) or not 0 < len(value) <= 60:
            faults.append(f"{where}, choice {place}: expected a value of 1 to 60 characters.")
        else:
            found.append(Choice(value, _labels(one.get("labels"), f"{where}, choice {place}", faults)))
    values = [one.value for one in found]
    faults += [
        f"{where}: there are two choices {value!r}." for value in dict.fromkeys(values) if values.count(value) > 1
    ]
    return tuple(found)


def _labels(given: Any, where: str, faults: list[str]) -> dict[str, str]:
    if not isinstance(given, Mapping) or not given:
        faults.append(f"{where}: expected labels by language, such as en: Your age.")
        return {}
    if not all(_matches(LANGUAGE, code) and isinstance(text, str) and text.strip() for code, text in given.items()):
        faults.append(f"{where}: expected a code of a language and a text for each label, found {dict(given)!r}.")
        return {}
    return {str(code): str(text).strip()[:300] for code, text in given.items()}


# Platform -----------------------------------------------------------------------------------------

DEFAULT_PARAMETERS = {
    "own": {"person": "person", "study": "study", "session": "session"},
    "prolific": {"person": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
    # Mechanical Turk names its parameters itself.
    "mturk": {"person": "workerId", "study": "hitId", "session": "assignmentId"},
}


def parse_platform(study: HasPlatform) -> PlatformPlan:
    """Where the evaluators of a study come from, by its `platform` and `platform_settings`.

    Raises:
        PlanError: names every field that cannot be used.
    """
    given = study.platform_settings
    if study.platform not in DEFAULT_PARAMETERS:
        raise PlanError([f"The platform: expected {', '.join(DEFAULT_PARAMETERS)}, found {study.platform!r}."])
    if not isinstance(given, Mapping):
        raise PlanError([f"The settings of the platform: expected an object, found {_kind(given)}."])
    faults = _unknown(given, {"parameters", "codes", "confirm_by_api"}, "The settings of the platform")
    parameters = _parameters(study.platform, given.get("parameters", {}), faults)
    codes = _codes(study.platform, given.get("codes", {}), faults)
    confirm = _of_type(given, "confirm_by_api", bool, False, "Confirmation by API", "true or false", faults)
    if confirm and study.platform != "prolific":
        faults.append("Confirmation by API: only Prolific can confirm a submission.")
    if faults:
        raise PlanError(faults)
    return PlatformPlan(study.platform, parameters, codes, confirm)


def _parameters(platform: str, given: Any, faults: list[str]) -> dict[str, str]:
    defaults = DEFAULT_PARAMETERS[platform]
    if not isinstance(given, Mapping):
        faults.append(f"The parameters of the address: expected an object, found {_kind(given)}.")
        return dict(defaults)
    faults += _unknown(given, set(defaults), "The parameters of the address")
    for name, value in given.items():
        if name in defaults and not _matches(PARAMETER, value):
            faults.append(f"The parameter for the {name}: expected a name such as {defaults[name]}, found {value!r}.")
    found = defaults | {name: value for name, value in given.items() if name in defaults}
    if platform == "mturk" and found != defaults:
        faults.append("The parameters of the address: Mechanical Turk names them itself; leave them as they are.")
    if len(set(map(str, found.values()))) < len(found):
        faults.append("The parameters of the address: expected three different names.")
    return found


def _codes(platform: str, given: Any, faults: list[str]) -> dict[str, str]:
    if not isinstance(given, Mapping):
        faults.append(f"The completion codes: expected an object, found {_kind(given)}.")
        return {}
    faults += _unknown(given, set(OUTCOMES), "The completion codes")
    codes = {name: value for name, value in given.items() if name in OUTCOMES and value != ""}
    for name, value in codes.items():
        if not _matches(CODE, value):
            faults.append(f"The code for {name}: expected letters, digits, - and _, at most 64, found {value!r}.")
    if platform != "prolific" and codes:
        faults.append("The completion codes: only Prolific's are set by hand; all others are made for each person.")
    if platform == "prolific" and "complete" not in codes:
        faults.append("The code for complete: expected the completion code that Prolific shows for the study.")
    if len(set(map(str, codes.values()))) < len(codes):
        faults.append("The completion codes: expected a different code for each outcome.")
    return codes


# Small parts --------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _unknown(given: Mapping[Any, Any], known: set[str], where: str) -> list[str]:
    return [
        f"{where}: there is no {name!r}; expected {', '.join(sorted(known))}." for name in given if name not in known
    ]


def _of_type(
    given: Mapping[str, Any], name: str, kind: type, default: Any, where: str, expected: str, faults: list[str]
) -> Any:
    value = given.get(name, default)
    if not isinstance(value, kind):
        faults.append(f"{where}: expected {expected}, found {value!r}.")
    return value


def _one_of(given: Mapping[str, Any], name: str, among: Any, default: str, where: str, faults: list[str]) -> str:
    value = given.get(name, default)
    if not isinstance(value, str) or value not in among:
        faults.append(f"{where}: expected {', '.join(among)}, found {value!r}.")
        return default
    return value
