"""What a study asks before its trials and where its evaluators come from, read from the study's JSON fields.

Each `parse_…` turns what an organizer's form or a stored field holds into a frozen dataclass, or raises `ProblemsError`
with every problem at once. Nothing below this door checks these fields again.

    screening          {"sound": true, "headphones": "none|huggins|woods|both", "headphones_gate": "flag|gate",
                        "headphones_attempts": 2, "native_languages": ["en"], "gold_gate": "flag|gate"}
    questionnaire      [{"name": "age", "kind": "choice|number|text|language", "labels": {"en": "Your age"},
                        "choices": [{"value": "18-29", "labels": {"en": "18 to 29"}}], "required": true}]
    platform_settings  {"parameters": {"person": …, "study": …, "session": …}, "codes": {"complete": …},
                        "confirm_by_api": false}

In forms questions are lines of a text, which `read_questions` takes and `write_questions` gives:

    Do you work with speech? // Travaillez-vous avec la parole ? = yes // oui; no // non
    How many hours a day do you listen to music? = number
    What should we know? (optional) = text

What stands behind ``//`` is the same in the next language of the study. Behind ``=`` stand ``number``, ``text``, or
at least two choices with semicolons between them. The name of a question in exports consists of its first words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from common.errors import ProblemsError
from listening.app.models import Study
from listening.texts import shipped_questionnaire

HEADPHONE_TESTS = {"none": (), "huggins": ("huggins",), "woods": ("woods",), "both": ("huggins", "woods")}
GATES = ("flag", "gate")
QUESTION_KINDS = ("choice", "number", "text", "language")
NATIVE_LANGUAGE = "native_language"
HEADPHONES = "headphones"  # a question that a headphone check answers better
OUTCOMES = ("complete", "screened-out", "failed-attention", "technical")
ATTEMPTS_AT_MOST = 5
QUESTIONS_AT_MOST = 30
CHOICES_AT_MOST = 40
CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})?")
PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
# On an own link the organizers choose the ids: besides letters, digits and spaces what e-mail addresses and random ids
# may have.
OWN_SIGNS = "._-+@:~='’/"
LONGEST_OWN_ID = 120


class Problems(list[str]):
    """A sentence for everything that is wrong with what is read."""

    def unless(self, is_right: object, sentence: str) -> bool:
        """Add the sentence unless something is right; whether it is."""
        if not is_right:
            self.append(sentence)
        return bool(is_right)

    def refuse(self) -> None:
        """Raise `ProblemsError` with all of them, if there are any."""
        if self:
            raise ProblemsError(self)


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
        """Return the headphone checks in the order of their asking."""
        return HEADPHONE_TESTS[self.headphones]


@dataclass(frozen=True)
class AnswerChoice:
    """One answer to choose; `labels` by language."""

    value: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BackgroundQuestion:
    """A question of the questionnaire; `labels` by language. `lowest` and `highest` bound a number."""

    name: str
    kind: str
    labels: Mapping[str, str]
    choices: tuple[AnswerChoice, ...] = ()
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


def label_in(labels: Mapping[str, str], language: str) -> str:
    """Return the label in this language, else the first one there is."""
    return labels.get(language) or next(iter(labels.values()), "")


# Screening ----------------------------------------------------------------------------------------

# What a new study begins with.
DEFAULT_SCREENING: dict[str, Any] = asdict(Screening(headphones="huggins")) | {"native_languages": []}


def parse_screening(given: Any) -> Screening:
    """Return the screening of a study; what is not given is as `Screening` says.

    Raises:
        ProblemsError: names every field that cannot be used.
    """
    if not isinstance(given, Mapping):
        raise ProblemsError([f"The screening: expected an object, found {_kind(given)}."])
    problems = _unknown(given, DEFAULT_SCREENING, "The screening")
    sound = _flag(given, "sound", True, "The sound test", problems)
    headphones = _one_of(given, "headphones", HEADPHONE_TESTS, "none", "The headphone check", problems)
    gate = _one_of(given, "headphones_gate", GATES, "flag", "The consequence of the headphone check", problems)
    gold = _one_of(given, "gold_gate", GATES, "flag", "The consequence of missed control trials", problems)
    attempts = given.get("headphones_attempts", 2)
    are_few = type(attempts) is int and 1 <= attempts <= ATTEMPTS_AT_MOST
    problems.unless(are_few, f"Attempts at the headphone check: expected 1 to {ATTEMPTS_AT_MOST}, found {attempts!r}.")
    languages = given.get("native_languages", [])
    are_codes = isinstance(languages, list | tuple) and all(_matches(LANGUAGE, one) for one in languages)
    problems.unless(are_codes, f"Native languages: expected a list of codes such as en or fr, found {languages!r}.")
    problems.refuse()
    return Screening(sound, headphones, gate, attempts, tuple(dict.fromkeys(languages)), gold)


# Questionnaire ------------------------------------------------------------------------------------

DEFAULT_QUESTIONNAIRE = shipped_questionnaire()
_NATIVE_LANGUAGE_QUESTION = next(one for one in DEFAULT_QUESTIONNAIRE if one["name"] == NATIVE_LANGUAGE)


def parse_questionnaire(given: Any, *, screening: Screening | None = None) -> tuple[BackgroundQuestion, ...]:
    """The questions of a study; where the screening asks for native languages, that question is always among them, and
    none about headphones where it checks them.

    Raises:
        ProblemsError: names every question that cannot be asked.
    """
    if not isinstance(given, list | tuple):
        raise ProblemsError([f"The questionnaire: expected a list of questions, found {_kind(given)}."])
    problems = Problems()
    too_many = f"The questionnaire: expected at most {QUESTIONS_AT_MOST} questions, found {len(given)}."
    problems.unless(len(given) <= QUESTIONS_AT_MOST, too_many)
    read = [_question(one, place, problems) for place, one in enumerate(given[:QUESTIONS_AT_MOST], 1)]
    found = [one for one in read if one]
    problems += [f"Question {name!r}: there are two of this name." for name in _twice(one.name for one in found)]
    is_asked_rightly = all(one.kind == "language" for one in found if one.name == NATIVE_LANGUAGE)
    kept_for = f"Question {NATIVE_LANGUAGE!r}: expected the kind 'language', which this name is kept for."
    problems.unless(is_asked_rightly, kept_for)
    problems.refuse()
    if screening and screening.headphone_tests:
        found = [one for one in found if one.name != HEADPHONES]
    if screening and screening.native_languages:
        found = [replace(one, is_required=True) if one.name == NATIVE_LANGUAGE else one for one in found]
        if all(one.name != NATIVE_LANGUAGE for one in found):
            found += filter(None, [_question(_NATIVE_LANGUAGE_QUESTION, 0, problems)])
    return tuple(found)


def _question(given: Any, place: int, problems: Problems) -> BackgroundQuestion | None:
    where = f"Question {place}"
    if not problems.unless(isinstance(given, Mapping), f"{where}: expected an object, found {_kind(given)}."):
        return None
    before = len(problems)
    problems += _unknown(given, {"name", "kind", "labels", "choices", "required", "lowest", "highest"}, where)
    name, kind = given.get("name"), given.get("kind")
    is_name = _matches(NAME, name)
    problems.unless(is_name, f"{where}: expected a name of small letters, digits and _, found {name!r}.")
    kinds = ", ".join(QUESTION_KINDS)
    problems.unless(kind in QUESTION_KINDS, f"{where}: expected a kind out of {kinds}, found {kind!r}.")
    labels = _labels(given.get("labels"), where, problems)
    choices = _choices(given.get("choices", []), where, problems)
    are_enough = kind != "choice" or len(choices) >= 2
    problems.unless(are_enough, f"{where}: expected at least two choices, found {len(choices)}.")
    required = _flag(given, "required", True, f"{where}, required", problems)
    limits = given.get("lowest", BackgroundQuestion.lowest), given.get("highest", BackgroundQuestion.highest)
    are_limits = all(type(one) is int for one in limits) and limits[0] <= limits[1]
    problems.unless(are_limits, f"{where}: expected whole numbers as its lowest and highest answer, in this order.")
    if len(problems) > before:
        return None
    return BackgroundQuestion(str(name), str(kind), labels, choices, required, *limits)


def _choices(given: Any, where: str, problems: Problems) -> tuple[AnswerChoice, ...]:
    is_list = isinstance(given, list | tuple) and len(given) <= CHOICES_AT_MOST
    if not problems.unless(is_list, f"{where}: expected a list of at most {CHOICES_AT_MOST} choices."):
        return ()
    found = []
    for place, one in enumerate(given, 1):
        value = one.get("value") if isinstance(one, Mapping) else None
        is_value = isinstance(value, str) and 0 < len(value) <= 60
        if problems.unless(is_value, f"{where}, choice {place}: expected a value of 1 to 60 characters."):
            found.append(AnswerChoice(str(value), _labels(one.get("labels"), f"{where}, choice {place}", problems)))
    problems += [f"{where}: there are two choices {value!r}." for value in _twice(one.value for one in found)]
    return tuple(found)


def _labels(given: Any, where: str, problems: Problems) -> dict[str, str]:
    are_there = isinstance(given, Mapping) and given
    if not problems.unless(are_there, f"{where}: expected labels by language, such as en: Your age."):
        return {}
    are_texts = all(_matches(LANGUAGE, code) and isinstance(text, str) and text.strip() for code, text in given.items())
    wrong = f"{where}: expected a code of a language and a text for each label, found {dict(given)!r}."
    return {str(code): text.strip()[:300] for code, text in given.items()} if problems.unless(are_texts, wrong) else {}


# Platform -----------------------------------------------------------------------------------------

DEFAULT_PARAMETERS = {
    "own": {"person": "person", "study": "study", "session": "session"},
    "prolific": {"person": "PROLIFIC_PID", "study": "STUDY_ID", "session": "SESSION_ID"},
    # Mechanical Turk names its parameters itself.
    "mturk": {"person": "workerId", "study": "hitId", "session": "assignmentId"},
}


def parse_platform(study: Study) -> PlatformPlan:
    """Return where the evaluators of a study come from, by its `platform` and `platform_settings`.

    Raises:
        ProblemsError: names every field that cannot be used.
    """
    given = study.platform_settings
    if study.platform not in DEFAULT_PARAMETERS:
        raise ProblemsError([f"The platform: expected {', '.join(DEFAULT_PARAMETERS)}, found {study.platform!r}."])
    if not isinstance(given, Mapping):
        raise ProblemsError([f"The settings of the platform: expected an object, found {_kind(given)}."])
    problems = _unknown(given, {"parameters", "codes", "confirm_by_api"}, "The settings of the platform")
    parameters = _parameters(study.platform, given.get("parameters", {}), problems)
    codes = _codes(study.platform, given.get("codes", {}), problems)
    confirm = _flag(given, "confirm_by_api", False, "Confirmation by API", problems)
    may_confirm = not confirm or study.platform == "prolific"
    problems.unless(may_confirm, "Confirmation by API: only Prolific can confirm a submission.")
    problems.refuse()
    return PlatformPlan(study.platform, parameters, codes, confirm)


def _parameters(platform: str, given: Any, problems: Problems) -> dict[str, str]:
    defaults, where = DEFAULT_PARAMETERS[platform], "The parameters of the address"
    if not problems.unless(isinstance(given, Mapping), f"{where}: expected an object, found {_kind(given)}."):
        return dict(defaults)
    problems += _unknown(given, defaults, where)
    known = {name: value for name, value in given.items() if name in defaults}
    for name, value in known.items():
        expected = f"expected a name such as {defaults[name]}, found {value!r}"
        problems.unless(_matches(PARAMETER, value), f"The parameter for the {name}: {expected}.")
    found = defaults | known
    is_own = platform != "mturk" or found == defaults
    problems.unless(is_own, f"{where}: Mechanical Turk names them itself; leave them as they are.")
    problems.unless(not _twice(map(str, found.values())), f"{where}: expected three different names.")
    return found


def _codes(platform: str, given: Any, problems: Problems) -> dict[str, str]:
    where, is_prolific = "The completion codes", platform == "prolific"
    if not problems.unless(isinstance(given, Mapping), f"{where}: expected an object, found {_kind(given)}."):
        return {}
    problems += _unknown(given, OUTCOMES, where)
    codes = {name: value for name, value in given.items() if name in OUTCOMES and value != ""}
    for name, value in codes.items():
        expected = f"expected letters, digits, - and _, at most 64, found {value!r}"
        problems.unless(_matches(CODE, value), f"The code for {name}: {expected}.")
    made = f"{where}: only Prolific's are set by hand; all others are made for each person."
    problems.unless(is_prolific or not codes, made)
    shown = "The code for complete: expected the completion code that Prolific shows for the study."
    problems.unless(not is_prolific or "complete" in codes, shown)
    problems.unless(not _twice(map(str, codes.values())), f"{where}: expected a different code for each outcome.")
    return codes


# Small parts --------------------------------------------------------------------------------------


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _twice(values: Iterable[str]) -> list[str]:
    """Those that are there more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def _unknown(given: Mapping[Any, Any], known: Collection[str], where: str) -> Problems:
    expected = ", ".join(sorted(known))
    return Problems(f"{where}: there is no {name!r}; expected {expected}." for name in given if name not in known)


def _flag(given: Mapping[str, Any], name: str, default: bool, where: str, problems: Problems) -> bool:
    value = given.get(name, default)
    problems.unless(isinstance(value, bool), f"{where}: expected true or false, found {value!r}.")
    return bool(value)


def _one_of(
    given: Mapping[str, Any], name: str, among: Collection[str], default: str, where: str, problems: Problems
) -> str:
    value = given.get(name, default)
    is_one = isinstance(value, str) and value in among
    return value if problems.unless(is_one, f"{where}: expected {', '.join(among)}, found {value!r}.") else default


# Questions as lines of a text ---------------------------------------------------------------------

OPTIONAL = "(optional)"
LONGEST_NAME = 40


def read_questions(text: str, *, languages: Sequence[str], taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return the questions of a text as the questionnaire of a study holds them.

    Args:
        taken: names that other questions have.

    Raises:
        ProblemsError: a sentence for each line that is no question.
    """
    problems, found, names = Problems(), [], set(taken)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        words, equals, answer = (part.strip() for part in line.rpartition("="))
        expected = f"Line {number}: expected a question, = and its answers, such as Do you sing? = yes; no."
        if not problems.unless(equals and words and answer, expected):
            continue
        labels = _read_labels(words.removesuffix(OPTIONAL), languages)
        question: dict[str, Any] = {"name": _name(labels, names), "labels": labels}
        question["required"] = not words.endswith(OPTIONAL)
        names.add(question["name"])
        if answer in QUESTION_KINDS[1:]:
            found.append(question | {"kind": answer})
            continue
        choices = [_read_labels(part.strip(), languages) for part in answer.split(";") if part.strip()]
        expected = f"Line {number}: expected number, text or at least two choices behind =, found {answer}."
        problems.unless(len(choices) >= 2, expected)
        # A choice is named by its words in the first language that has any.
        made = [{"value": next(iter(one.values()))[:60], "labels": one} for one in choices]
        found.append(question | {"kind": "choice", "choices": made})
    problems.refuse()
    return found


def write_questions(questions: Iterable[Mapping[str, Any]], *, languages: Sequence[str]) -> str:
    """Return the lines that `read_questions` makes these questions of."""
    lines = []
    for question in questions:
        optional = "" if question.get("required", True) else f" {OPTIONAL}"
        answer = question["kind"]
        if answer == "choice":
            answer = "; ".join(_joined(one["labels"], languages) for one in question["choices"])
        lines.append(f"{_joined(question['labels'], languages)}{optional} = {answer}")
    return "\n".join(lines)


def _read_labels(words: str, languages: Sequence[str]) -> dict[str, str]:
    parts = [part.strip() for part in words.split("//")]
    return {language: part for language, part in zip(languages, parts, strict=False) if part} or {languages[0]: words}


def _joined(labels: Mapping[str, str], languages: Sequence[str]) -> str:
    return " // ".join(labels[language] for language in languages if language in labels)


def _name(labels: Mapping[str, str], taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", next(iter(labels.values())).lower()).strip("_")[: LONGEST_NAME - 4]
    base = plain if plain[:1].isalpha() else f"own_{plain}".rstrip("_")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
