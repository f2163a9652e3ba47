"""Questions of an organizer's own, one on each line of a text, and back again.

    Do you work with speech? // Travaillez-vous avec la parole ? = yes // oui; no // non
    How many hours a day do you listen to music? = number
    What should we know? (optional) = text

What stands behind ``//`` is the same in the next language of the study. Behind ``=`` stand ``number``, ``text``, or
at least two choices with semicolons between them. The name of a question in exports is made of its first words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from listening.studies.plans import PlanError

KINDS = ("number", "text", "language")
OPTIONAL = "(optional)"
LONGEST_NAME = 40


def read_questions(text: str, *, languages: Sequence[str], taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The questions of a text as the questionnaire of a study holds them.

    Args:
        taken: names that other questions have.

    Raises:
        PlanError: a sentence for each line that is no question.
    """
    faults: list[str] = []
    names = set(taken)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        words, equals, answer = (part.strip() for part in line.rpartition("="))
        if not equals or not words or not answer:
            faults.append(f"Line {number}: expected a question, = and its answers, such as Do you sing? = yes; no.")
            continue
        is_optional = words.endswith(OPTIONAL)
        labels = _labels(words.removesuffix(OPTIONAL), languages)
        question: dict[str, Any] = {"name": _name(labels, names), "labels": labels, "required": not is_optional}
        names.add(question["name"])
        if answer in KINDS:
            found.append(question | {"kind": answer})
            continue
        choices = [part.strip() for part in answer.split(";") if part.strip()]
        if len(choices) < 2:
            faults.append(f"Line {number}: expected number, text or at least two choices behind =, found {answer}.")
            continue
        made = [_choice(_labels(one, languages)) for one in choices]
        found.append(question | {"kind": "choice", "choices": made})
    if faults:
        raise PlanError(faults)
    return found


def write_questions(questions: Iterable[Mapping[str, Any]], *, languages: Sequence[str]) -> str:
    """The lines that `read_questions` makes these questions of."""
    lines = []
    for question in questions:
        words = _joined(question["labels"], languages)
        optional = "" if question.get("required", True) else f" {OPTIONAL}"
        kind = question["kind"]
        answer = (
            "; ".join(_joined(one["labels"], languages) for one in question["choices"]) if kind == "choice" else kind
        )
        lines.append(f"{words}{optional} = {answer}")
    return "\n".join(lines)


def _labels(words: str, languages: Sequence[str]) -> dict[str, str]:
    parts = [part.strip() for part in words.split("//")]
    return {language: part for language, part in zip(languages, parts, strict=False) if part} or {languages[0]: words}


def _choice(labels: dict[str, str]) -> dict[str, Any]:
    """A choice, named by its words in the first language that has any."""
    return {"value": next(iter(labels.values()))[:60], "labels": labels}


def _joined(labels: Mapping[str, str], languages: Sequence[str]) -> str:
    return " // ".join(labels[language] for language in languages if language in labels)


def _name(labels: Mapping[str, str], taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", next(iter(labels.values())).lower()).strip("_")[: LONGEST_NAME - 4]
    base = plain if plain[:1].isalpha() else f"own_{plain}".rstrip("_")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
