"""A crossed listening test as one TOML file, with which it is repeated: of one's own recordings, or of an edition.

Only the title is needed, and the edition whose systems are heard; what is left out is as the page has it. Its tables
are groups of the fields of one form. Questions whose wording is not that of a preset stand at its end as tables
``[[questions]]``, as presets have them, and texts that were changed as ``[texts.KIND]``. Neither the recordings nor
codes of Prolific are in the file. ``docs/listening.md`` has an example.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from django import forms

from common.errors import ProblemsError
from listening.app.models import Condition, Study, StudyText
from listening.app.recordings.choosing import TABLES, AnchorsField, ChosenTestForm, NamesField
from listening.app.recordings.services import PRESETS
from listening.app.studies.forms import SOUND, LanguagesField, read_initial
from listening.app.studies.selectors import heard_submissions, newest_text, shipped_text
from listening.questions import AskedQuestion, load_preset
from portal.challenges.models import Role

LARGEST_TEST_FILE = 256 << 10
LONGEST_SENTENCE = 500
MOST_OF_A_NUMBER = 10**18
# The types of values of a file by the field that takes them, the first that fits, and how they are called.
TYPES: tuple[tuple[Any, tuple[type, ...], str], ...] = (
    (forms.BooleanField, (bool,), "true or false"),
    ((AnchorsField, NamesField, LanguagesField, forms.MultipleChoiceField), (list,), "a list"),
    ((forms.IntegerField, forms.TypedChoiceField), (int, float), "a number"),
    (forms.Field, (str,), "a text"),
)


def read_test_file(text: str, **instead: str) -> ChosenTestForm:
    """Return the valid form that a file fills in.

    Args:
        instead: values of fields that are not as in the file.

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
    if any("\0" in one for one in _list_texts(read)):
        raise ProblemsError(["The file of the test has the character U+0000. Leave it out."])
    data: dict[str, Any] = {"asked": read.pop("questions", None), "texts": read.pop("texts", None)}
    tables = [("", {name: value for name, value in read.items() if not isinstance(value, dict)})]
    tables += [(name, value) for name, value in read.items() if isinstance(value, dict)]
    problems = []
    for place, (table, values) in enumerate(tables):
        if table not in TABLES or (place and not table):
            problems.append(f"[{table}]: there is no such table; there are: {', '.join(filter(None, TABLES))}, texts.")
            continue
        for name, value in values.items():
            if problem := _find_wrong_type(table, name, value):
                problems.append(problem)
            else:
                data[name] = value
    form = ChosenTestForm(data | instead)
    places = {name: _name_place(table, name) for table, names in TABLES.items() for name in names}
    for name, sentences in form.errors.items():
        problems += [f"{places[name]}: {one}" if name in places else str(one) for one in sentences]
    if problems:
        raise ProblemsError([one[:LONGEST_SENTENCE] for one in problems])
    return form


def _list_texts(value: Any) -> Iterator[str]:
    """Yield every text of a file, names among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in chain(value, value.values() if isinstance(value, dict) else ()):
            yield from _list_texts(one)


def _find_wrong_type(table: str, name: str, value: Any) -> str:
    place = _name_place(table, name[:60])
    if name not in TABLES[table]:
        return f"{place}: there is no such field; there are: {', '.join(TABLES[table])}."
    field = ChosenTestForm.base_fields[name]
    types, expected = next((types, words) for kind, types, words in TYPES if isinstance(field, kind))
    is_fit = type(value) in types and not (isinstance(value, int) and abs(value) > MOST_OF_A_NUMBER)
    return "" if is_fit else f"{place}: expected {expected}, found {str(value)[:60]!r}."


def _name_place(table: str, name: str) -> str:
    return f"[{table}] {name}" if table else name


def write_test_file(study: Study) -> str:
    """Return the file with which the test can be repeated on the same recordings."""
    conditions = list(study.conditions.order_by("code"))
    has_original = any(one.kind == Condition.Kind.ORIGINAL for one in conditions)
    preset = next((name for name in PRESETS if load_preset(name).questions == study.asked), "")
    values: dict[str, Any] = read_initial(study) | {
        "name": "",
        "preset": preset,
        "original": study.original_name if has_original else "",
        "references": [one.code for one in conditions if one.kind == Condition.Kind.REFERENCE] or "",
        "anchors": [one.low_pass_hz for one in conditions if one.low_pass_hz] if has_original else "",
        "edition": study.edition.name if study.edition else "",
        "systems": [str(one.system) for one in heard_submissions(study).values()] or "",
        "data_sets": sorted(study.data_sets.filter(role=Role.TRIAL).values_list("name", flat=True)) or "",
        "languages": study.languages,
        "native_languages": list(study.screening.get("native_languages", ())),
        "plays_at_most": study.plays_at_most or 0,
        "pay_per_hour": float(study.pay_per_hour),
    }
    values |= dict.fromkeys(SOUND, "") if study.edition else {}
    tables = {table: {name: values[name] for name in names} for table, names in TABLES.items()}
    for kind in StudyText.Kind.values:
        newest = {one: newest_text(study, kind, one) for one in study.languages}
        tables[f"texts.{kind}"] = {
            _in_toml(language): row.text
            for language, row in newest.items()
            if row is not None and (kind == StudyText.Kind.WORDS or row.text != shipped_text(study, kind, language))
        }
    lines = []
    for table, given in tables.items():
        of_table = [*_write_lines(given)]
        lines += ["", f"[{table}]"] if table and of_table else []
        lines += of_table
    for question in () if preset else study.asked:
        lines += _write_question(question)
    return "\n".join(lines) + "\n"


def _write_question(question: AskedQuestion) -> Iterator[str]:
    values = {name: value for name, value in question.as_data().items() if value}
    wording, results = values.pop("wording"), values.pop("results", {})
    yield from ("", "[[questions]]", *_write_lines(values))
    if results:
        yield from ("", "[questions.results]", *_write_lines({_in_toml(name): one for name, one in results.items()}))
    for language, words in wording.items():
        yield from ("", f"[questions.wording.{_in_toml(language)}]")
        yield from _write_lines({name: value for name, value in words.items() if value})


def _write_lines(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name} = {_in_toml(value)}" for name, value in values.items() if value not in (None, ""))


def _in_toml(value: Any) -> str:
    """Return a text, number, truth or list of these, as JSON writes it too but for one character and long texts."""
    if isinstance(value, str) and "\n" in value:
        return '"""\n{}"""'.format("\n".join(_in_toml(line)[1:-1] for line in value.split("\n")))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
