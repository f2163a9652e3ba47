"""The description of a recipe's fields: it holds every field of the reader, and its examples are TOML."""

import tomllib
from types import SimpleNamespace

import pytest

from evaluation.protocols import schema


def test_every_field_of_the_reader_is_described_once():
    tables = {one.key: one for one in schema.describe_recipe()}
    assert [one.name for one in tables["evaluation"].fields] == ["by", "attackers", "recognizer", "training"]
    role = tables["data_set"].fields[0]
    assert (role.name, role.is_required) == ("role", True)
    assert role.type.startswith("text: enrolment, trial")
    language = next(one for one in tables["data_set"].fields if one.name == "language")
    assert (language.default, language.example) == ('"en"', 'language = "en"')


def test_every_example_is_toml_and_every_meaning_a_sentence():
    for table in schema.describe_recipe():
        for one in table.fields:
            assert tomllib.loads(one.example), one.name
            assert one.meaning.endswith("."), one.name


def test_field_that_stands_in_one_place_alone_is_refused():
    known = SimpleNamespace(a=1, b=2)
    with pytest.raises(LookupError, match="expected the same fields"):
        schema._compare("x", {"a": {}}, vars(known))
