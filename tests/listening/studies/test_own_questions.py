"""Questions of an organizer's own, as lines of a text."""

import pytest

from common.errors import ProblemsError
from listening.app.studies.settings import parse_questionnaire, read_questions, write_questions

TEXT = """Do you work with speech? // Travaillez-vous avec la parole ? = yes // oui; no // non
How many hours a day do you listen to music? = number
What should we know? (optional) = text"""


def test_lines_become_questions_that_a_study_takes():
    found = read_questions(TEXT, languages=["en", "fr"])
    work, hours, know = parse_questionnaire(found)
    assert (work.name, work.kind, work.is_required) == ("do_you_work_with_speech", "choice", True)
    assert work.labels == {"en": "Do you work with speech?", "fr": "Travaillez-vous avec la parole ?"}
    assert [(one.value, one.labels["fr"]) for one in work.choices] == [("yes", "oui"), ("no", "non")]
    assert (hours.kind, know.kind, know.is_required) == ("number", "text", False)


def test_questions_become_the_same_lines_again():
    assert write_questions(read_questions(TEXT, languages=["en", "fr"]), languages=["en", "fr"]) == TEXT


def test_every_faulty_line_is_told_at_once():
    with pytest.raises(ProblemsError) as refused:
        read_questions("Do you sing?\n\nHow old? = number\nWhich one? = this\nSure? = yes; yes", languages=["en"])
    assert refused.value.problems == [
        "Line 1: expected a question, = and its answers, such as Do you sing? = yes; no.",
        "Line 4: expected number, text or at least two choices behind =, found this.",
        "Line 5: there are two choices yes.",
    ]


def test_names_are_unlike_those_that_are_taken():
    found = read_questions("Age = number\nAge? = number\n123 = number", languages=["en"], taken=["age"])
    assert [one["name"] for one in found] == ["age_2", "age_3", "own_123"]
