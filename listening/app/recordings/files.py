"""A crossed listening test as one TOML file, with which it is repeated: of one's own recordings, or of an edition.

Only the title is needed, and the edition whose systems are heard; what is left out is as the page has it.
Questions whose wording is not that of a preset stand at its end as tables ``[[questions]]``, as presets have them. The
recordings are not in the file. ``docs/listening.md`` has an example.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from common.errors import ProblemsError
from listening.app.models import LOUDNESS, Condition, Study
from listening.app.recordings.services import PRESETS, OwnTest
from listening.app.studies.forms import HIGHEST_PAY, MOST_EVALUATORS, MOST_ITEMS, MOST_TRIALS
from listening.app.studies.rules import GOLD_AT_MOST, PRACTICE_AT_MOST, RATES_HZ
from listening.app.studies.selectors import free_study_name, heard_submissions
from listening.app.studies.services import find_unfit_questions
from listening.app.studies.settings import (
    DEFAULT_SCREENING,
    LANGUAGES,
    SCREENING,
    Check,
    Problems,
    check_fields,
    matching,
    one_of,
    text,
    texts,
    whole,
)
from listening.questions import AskedQuestion, list_question_problems, load_preset, parse_question
from listening.stimuli.anchors import ANCHORS_HZ

LONGEST_TEXT = 200
LARGEST_TEST_FILE = 256 << 10


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= HIGHEST_PAY and round(value, 2) == value


def _is_list_of_anchors(value: Any) -> bool:
    is_list = isinstance(value, list) and all(type(one) is int and one in ANCHORS_HZ for one in value)
    return is_list and len(value) == len(set(value))


# By table the fields of a file, each with what it may be; "" for those in front of the first table.
TABLES: dict[str, Mapping[str, Check]] = {
    "": {
        "title": text(120),
        "name": matching(re.compile("[a-z0-9_-]{1,60}"), "a short name"),
        "preset": one_of(*PRESETS),
        "original": text(40),
        "references": texts(40),
        "against": text(40),
        "anchors": (_is_list_of_anchors, f"a list of frequencies in Hz, of {', '.join(map(str, ANCHORS_HZ))}"),
        "edition": text(60),
        "systems": texts(LONGEST_TEXT),
        "data_sets": texts(LONGEST_TEXT),
        "questions": (
            lambda value: isinstance(value, list) and value != [] and all(isinstance(one, dict) for one in value),
            "tables [[questions]]",
        ),
    },
    "sound": {
        "rate_hz": one_of(*RATES_HZ),
        "channels": one_of(1, 2),
        "loudness": one_of(*(name for name, _ in LOUDNESS)),
    },
    "sessions": {
        "evaluators": whole(1, MOST_EVALUATORS),
        "trials": whole(1, MOST_TRIALS),
        "items_at_most": whole(1, MOST_ITEMS),
        "practice_trials": whole(0, PRACTICE_AT_MOST),
        "gold_trials": whole(0, GOLD_AT_MOST),
        "half_width": (lambda value: type(value) in (int, float) and 0.001 <= value <= 100, "a number, 0.001 to 100"),
        "most_evaluators": whole(1, MOST_EVALUATORS),
        "pages": one_of(*Study.Pages.values),
        "orders": one_of(*(name for name, _ in Study.ORDERS)),
        "seed": whole(0, 2**31 - 1),
        "plays_at_most": whole(0, 20),  # 0: no limit
        "role_play": one_of(*Study.RolePlay.values),
        "languages": LANGUAGES,
        "pay_per_hour": (_is_amount, f"an amount from 0 to {HIGHEST_PAY}, such as 12 or 12.5"),
        "currency": matching(re.compile("[A-Z]{3}"), "a currency such as EUR"),
    },
    "consent": {
        "responsible": text(LONGEST_TEXT),
        "contact": text(LONGEST_TEXT),
        "keep_months": whole(1, 1200),
    },
    "screening": SCREENING,
}
CHOSEN = {one.name for one in fields(OwnTest)}


def read_test_file(text: str) -> tuple[OwnTest, dict[str, Any]]:
    """Return what a file chooses, and the further fields of its `Study`.

    Raises:
        ProblemsError: with everything that is wrong with it.
    """
    try:
        read = tomllib.loads(text.removeprefix("\ufeff"))
        str(read)  # fails where a problem could not quote a value
    except tomllib.TOMLDecodeError as error:
        raise ProblemsError([f"The file of the test is no TOML: {error}."]) from None
    except (RecursionError, ValueError):
        sentence = "The file of the test cannot be read: a number is too long, or lists are nested too deeply."
        raise ProblemsError([f"{sentence} Take the file that the page of a test gives."]) from None
    found: dict[str, Any] = {}
    problems = _read(read, found)
    if not found.get("title", "").strip():
        problems.append('The file of the test has no title. Begin it with: title = "My test".')
    problems += _read_questions(found)
    if problems:
        raise ProblemsError(problems)
    found.setdefault("name", free_study_name(found["title"]))
    for name in {"references", "anchors", "systems", "data_sets"} & found.keys():
        found[name] = tuple(found[name])
    if "pay_per_hour" in found:
        found["pay_per_hour"] = Decimal(str(found["pay_per_hour"]))
    if "plays_at_most" in found:
        found["plays_at_most"] = found["plays_at_most"] or None
    chosen = {name: value for name, value in found.items() if name in CHOSEN}
    return OwnTest(**chosen), {name: value for name, value in found.items() if name not in CHOSEN}


def _read(read: dict[str, Any], found: dict[str, Any]) -> Problems:
    tables = {"": {name: value for name, value in read.items() if not isinstance(value, dict)}}
    tables |= {name: value for name, value in read.items() if isinstance(value, dict)}
    problems = Problems()
    for table, values in tables.items():
        if table in TABLES:
            given = check_fields(values, TABLES[table], f"[{table}] " if table else "", problems)
            found |= {"screening": DEFAULT_SCREENING | given} if table == "screening" else given
        else:
            problems.append(f"[{table}]: there is no such table; there are: {', '.join(filter(None, TABLES))}.")
    return problems


def _read_questions(found: dict[str, Any]) -> list[str]:
    """Put the questions of a file in the place of its tables, and return what is wrong with them."""
    tables, questions, problems = found.pop("questions", []), list[AskedQuestion](), list[str]()
    for number, table in enumerate(tables, 1):
        try:
            questions.append(parse_question(table, f"[[questions]] {number}"))
        except ProblemsError as error:
            problems += error.problems
    problems = problems or (list_question_problems(questions) if questions else [])
    if questions and not problems:
        problems = find_unfit_questions(questions, is_own=not found.get("edition"))
    found |= {"questions": tuple(questions)}
    return problems


def write_test_file(study: Study) -> str:
    """Return the file with which the test can be repeated on the same recordings."""
    conditions = list(study.conditions.order_by("code"))
    has_original = any(one.kind == Condition.Kind.ORIGINAL for one in conditions)
    preset = next((name for name in PRESETS if load_preset(name).questions == study.asked), "")
    values: dict[str, Any] = {
        "title": study.title,
        "name": "",
        "preset": preset,
        "original": study.original_name if has_original else "",
        "references": [one.code for one in conditions if one.kind == Condition.Kind.REFERENCE] or "",
        "anchors": [one.low_pass_hz for one in conditions if one.low_pass_hz] if has_original else "",
        "edition": study.edition.name if study.edition else "",
        "systems": [str(one.system) for one in heard_submissions(study).values()] or "",
        "data_sets": sorted(study.data_sets.values_list("name", flat=True)) or "",
        "questions": "",
        "trials": study.trials_per_evaluator,
        "plays_at_most": study.plays_at_most or 0,
        "pay_per_hour": float(study.pay_per_hour),
    }
    values |= dict.fromkeys(TABLES["sound"], "") if study.edition else {}
    values |= {name: study.screening.get(name) for name in SCREENING}
    names = (name for table in TABLES.values() for name in table)
    values = {name: values[name] if name in values else getattr(study, name) for name in names}
    return _write(values, () if preset else study.asked)


def write_chosen(chosen: OwnTest, fields: Mapping[str, Any]) -> str:
    """Return the file that `read_test_file` reads as these."""
    values: dict[str, Any] = {**vars(chosen), **fields, **fields.get("screening", {}), "questions": ""}
    if "pay_per_hour" in values:
        values["pay_per_hour"] = float(values["pay_per_hour"])
    return _write(values, chosen.questions)


def _write(values: Mapping[str, Any], questions: Iterable[AskedQuestion]) -> str:
    lines = []
    for table, names in TABLES.items():
        of_table = [_line(name, values[name]) for name in names if values.get(name) not in (None, "")]
        lines += ["", f"[{table}]"] if table and of_table else []
        lines += of_table
    for question in questions:
        lines += _write_question(question)
    return "\n".join(lines) + "\n"


def _write_question(question: AskedQuestion) -> Iterator[str]:
    values = {name: value for name, value in question.as_data().items() if value}
    wording, results = values.pop("wording"), values.pop("results", {})
    yield from ("", "[[questions]]", *(_line(name, value) for name, value in values.items()))
    if results:
        yield from ("", "[questions.results]", *(_line(_in_toml(name), value) for name, value in results.items()))
    for language, words in wording.items():
        yield from ("", f"[questions.wording.{_in_toml(language)}]")
        yield from (_line(name, value) for name, value in words.items() if value)


def _line(name: str, value: Any) -> str:
    return f"{name} = {_in_toml(value)}"


def _in_toml(value: Any) -> str:
    """Return a text, number, truth or list of these, as JSON writes it too but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
