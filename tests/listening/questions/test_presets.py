"""Presets are files: each asks what it says, in every shipped language, and begins a study that holds together."""

from dataclasses import replace

import pytest

from common.errors import ProblemsError
from listening.app.models import Study
from listening.questions import (
    OF_CORPUS,
    find_preset,
    list_presets,
    list_question_problems,
    load_preset,
    order_questions,
    parse_question,
)
from listening.texts import SHIPPED_LANGUAGES
from tests.listening.rated import ASKED

PRESETS = {one.name: one for one in list_presets()}


@pytest.mark.parametrize("name", PRESETS)
def test_preset_has_its_words_in_every_shipped_language_and_settings_that_a_study_takes(name):
    preset = PRESETS[name]
    assert preset.title
    assert preset.about
    assert preset.source
    for one in preset.questions:
        assert set(one.wording) == set(SHIPPED_LANGUAGES)
        assert len({len(words.labels) for words in one.wording.values()}) == 1
        assert all(words.question and words.consent for words in one.wording.values())
        assert parse_question(one.as_data(), name) == one
    for field, value in preset.study.items():
        Study._meta.get_field(field).clean(value, None)


@pytest.mark.parametrize(
    "name", [name for name, one in PRESETS.items() if OF_CORPUS.isdisjoint(q.screen for q in one.questions)]
)
def test_preset_is_recognised_in_other_words_and_not_on_another_scale(name):
    preset = PRESETS[name]
    changed = [replace(one, wording={"en": replace(one.wording["en"], question="Well?")}) for one in preset.questions]
    assert find_preset(changed) == preset
    assert find_preset([replace(one, points=one.points + 2) for one in changed]) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"points": 11}, "expected 2 to 10 points, found 11"),
        ({"points": 5}, "expected a label for each of the 5 points or for the two ends, found 4"),
        ({"key": "No key"}, "expected a key of small letters"),
        ({"screen": "board"}, "a scale cannot be asked on the screen board"),
        ({"wording": {}}, "expected its wording in at least one language"),
    ],
)
def test_question_that_cannot_be_asked_is_refused(change, sentence):
    wrong = replace(ASKED["similarity"], **change)
    assert sentence in " ".join(list_question_problems([wrong]))
    with pytest.raises(ProblemsError, match=sentence):
        parse_question(wrong.as_data(), "study.json")


@pytest.mark.parametrize("labels", [("A", "A ", "Neither"), ("A", "B", "")])
def test_choices_have_labels_that_differ(labels):
    asked = load_preset("ab").questions[0]
    wrong = replace(asked, wording={"en": replace(asked.wording["en"], labels=labels)})
    [problem] = list_question_problems([wrong])
    assert "expected choices that differ, found" in problem


def test_questions_that_do_not_go_together_are_refused():
    assert list_question_problems([]) == ["A listening test asks at least one question. Add one."]
    many = [replace(ASKED["quality"], key=f"quality-{number}") for number in range(13)]
    assert list_question_problems(many) == ["Expected at most 12 questions, found 13."]
    twice = list_question_problems([ASKED["quality"], ASKED["quality"]])
    assert twice == ["Two questions are called quality. Rename one of them."]
    mixed = list_question_problems([ASKED["quality"], ASKED["transcription"]])
    assert mixed == ["Only scales and choices stand together. Ask any other question alone."]


def test_words_of_a_language_that_a_question_lacks_are_english():
    words = ASKED["naturalness"].words
    assert (words("fr-ca"), words("de")) == (words("fr"), words("en"))


def test_questions_change_places_in_one_block_of_each_two_and_never_where_there_are_only_two():
    asked = PRESETS["p835"].questions
    orders = [order_questions(asked, "swap-first-two", block=block, seed=7) for block in range(1, 41)]
    swapped = [keys != asked for keys in orders]
    assert all(first != second for first, second in zip(swapped[::2], swapped[1::2], strict=True))
    assert len({tuple(swapped[place : place + 2]) for place in range(0, 40, 2)}) == 2
    assert {keys[-1].key for keys in orders} == {"overall"}
    assert order_questions(asked[:2], "swap-first-two", block=1, seed=7) == asked[:2]
    assert [order_questions(asked, "as-listed", block=block, seed=7) for block in (1, 2)] == [asked, asked]
