"""Words of buttons and hints in a language that ships none: listed, filled in, checked, kept and read by evaluators."""

import html
import re

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext

from common.errors import ProblemsError
from listening.app.models import Session
from listening.app.studies import interface_words, services
from listening.app.studies.interface_words import Word, find_problem, list_words, read_words, speak, write_words
from listening.app.studies.settings import DEFAULT_QUESTIONNAIRE
from portal.core.models import AuditEvent
from tests.listening.edition_factories import make_prepared
from tests.listening.factories import make_study
from tests.listening.visits import PLAIN, Visit, link_of, text_of, to_trials
from tests.pages import read_page

BEGIN = ("Begin", 0)


def keep(study, **translations):
    """Translate sentences, by the name of a source; the others as they were."""
    kept = interface_words.translations_of(study, "ar") | {(source, 0): text for source, text in translations.items()}
    services.change_words(study=study, language="ar", translations=kept, by=None)


def everything(language):
    """A translation of every word that holds its places and can be told from the English one."""
    return {word.key: f"«{word.english}»" for word in list_words(language)}


# The list -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "numbers"),
    [
        ("ha", ["1", "0, 2, 3, 4, 5, …"]),  # no rule is known: one, and all others
        ("ru", ["1, 21, 31, 41, 51, …", "2, 3, 4, 22, 23, …", "0, 5, 6, 7, 8, …"]),
    ],
)
def test_sentence_that_counts_has_a_row_for_each_plural_form_of_the_language(language, numbers):
    found = [word for word in list_words(language) if word.source == "%(n)d speaker"]
    assert [word.numbers for word in found] == numbers
    assert {word.english for word in found} <= {"%(n)d speaker", "%(n)d speakers"}


# Checks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("english", "translation", "told"),
    [
        ("Trial {n} of {total}", "المحاولة {n} من {total}", ""),
        ("Trial {n} of {total}", "المحاولة {n}", "{total} must stand in the translation as it is"),
        ("Next", "Weiter {n}", "{n} is not in the English words"),
        ("Next", "<b>Weiter</b>", "Expected words without <"),
        ("Next", 'Weiter "jetzt"', 'Expected words without "'),
        ("Next", "100 %", "Expected % in %(…) alone"),
        ("Next", "x" * 2001, "Expected at most 2000 characters, found 2001."),
        ("Next", "L’étape d'après", ""),
    ],
)
def test_translation_that_a_page_could_not_show_is_refused_with_a_sentence(english, translation, told):
    assert find_problem(Word(english, english), translation).startswith(told)
    assert bool(find_problem(Word(english, english), translation)) == bool(told)


def test_kept_text_gives_the_same_words():
    given = everything("ar")
    assert read_words(write_words(given), "words", "ar") == given
    assert write_words({BEGIN: ""}) == ""


def test_text_of_a_test_file_tells_everything_that_is_wrong():
    with pytest.raises(ProblemsError) as refused:
        read_words('[["Next", 0, "<b>"], ["Nothing like it", 0, "x"], ["Pause", 0, "a"]]', "[texts.words] ar", "ar")
    assert [one.partition(", form")[0] for one in refused.value.problems] == [
        "[texts.words] ar, “Next”",
        "[texts.words] ar, “Nothing like it”",
    ]
    with pytest.raises(ProblemsError, match="expected a JSON array"):
        read_words("Next", "[texts.words] ar", "ar")


# Reading ------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_words_of_a_study_are_spoken_within_its_requests_alone():
    study, other = make_study(languages=["ar"]), make_study(languages=["ar"])
    keep(study, Begin="ابدأ")
    with translation.override("fr"):
        with speak(study, "ar"):
            assert (gettext("Begin"), gettext("Next")) == ("ابدأ", "Next")
            assert translation.get_language() == "ar"
            assert translation.get_language_bidi()
            with speak(other, "ar"):
                assert gettext("Begin") == "Begin"
            assert gettext("Begin") == "ابدأ"
        assert gettext("Begin") == "Commencer"
    with translation.override("ar"):
        assert gettext("Begin") == "Begin"
    with speak(study, "fr"):
        assert gettext("Begin") == "Commencer"
    assert gettext("Begin") == "Begin"


@pytest.mark.django_db
def test_numbers_are_said_in_the_plural_forms_of_the_language():
    study = make_study(languages=["ru"])
    forms = {("%(n)d speaker", form): f"%(n)d {said}" for form, said in enumerate(("голос", "голоса", "голосов"), 1)}
    services.change_words(study=study, language="ru", translations=forms, by=None)
    with speak(study, "ru"):
        said = [ngettext("%(n)d speaker", "%(n)d speakers", n) % {"n": n} for n in (1, 3, 5, 21)]
        assert said == ["1 голос", "3 голоса", "5 голосов", "21 голос"]
        assert [ngettext("%(n)d group", "%(n)d groups", n) for n in (1, 2)] == ["%(n)d group", "%(n)d groups"]


@pytest.mark.django_db
def test_whole_session_is_in_the_words_of_the_study():
    """No English word of the catalogue is left on any page from the link to the end, errors of a form included."""
    study = make_study(screening=PLAIN, questionnaire=DEFAULT_QUESTIONNAIRE, languages=["ar"])
    services.change_words(study=study, language="ar", translations=everything("ar"), by=None)
    english = {word.english for word in list_words("ar") if not word.english.islower() or " " in word.english}
    pages = [Client().get(link_of(study))]
    visit = Visit(study)
    pages += [visit.page(), visit.post("consent")]
    visit.consent()
    pages += [visit.page(), visit.post("questions")]
    visit.post(
        "questions", age="30-39", gender="undisclosed", native_language="ar", hearing="no", headphones="headphones"
    )
    pages.append(visit.page())
    visit.post("role-play")
    pages += [visit.page(), visit.ask("get", reverse("listen:withdraw", args=[visit.token]))]
    pages.append(visit.ask("get", f"/listen/{visit.token}/nothing/"))
    pages.append(Client().get(reverse("listen:withdraw-by-code"), {"study": study.link_key}))
    for page in pages:
        text = page.content.decode()
        assert 'lang="ar" dir="rtl"' in text
        nodes = {html.unescape(node).strip() for node in re.findall(r"[>\"]([^<>\"]+)[<\"]", text)}
        assert nodes & english == set(), page.request["PATH_INFO"]
        assert "«Listening test»" in text
    assert "«Please answer this question.»" in text_of(pages[4])
    assert "«Your gender»" in text_of(pages[3])
    assert "«Skip this trial»" in pages[6].content.decode()
    seen = Session.objects.get().texts
    assert seen["words"] == {"language": "ar", "version": 1}


@pytest.mark.django_db
def test_refusal_of_an_answer_is_in_the_words_of_the_study():
    study = make_study(screening=PLAIN, questionnaire=[], languages=["ar"])
    keep(study, **{"The trials have not begun yet. Please reload this page.": "لم تبدأ بعد."})
    visit = to_trials(study)
    Session.objects.update(step="consent")
    body = {"tab": "t", "position": 1, "answers": dict.fromkeys(study.asked_keys, 3)}
    address = reverse("listen:answers", args=[visit.token])
    refused = visit.client.post(address, body, content_type="application/json")
    assert (refused.status_code, refused.json()["sentence"]) == (409, "لم تبدأ بعد.")


# The pages of the organizer ------------------------------------------------------------------------


def arabic_study():
    return make_prepared(languages=["en", "ar"])


@pytest.fixture
def study(once):
    return once(arabic_study)


@pytest.fixture
def client(study):
    client = Client()
    client.force_login(study.edition.organizers.get())
    return client


def page_of(study, name="words", language="ar"):
    return reverse(f"studies:{name}", args=[study.name, language])


def test_words_are_edited_on_the_page_and_keep_their_history(client, study):
    field = next(word.name for word in list_words("ar") if word.key == BEGIN)
    assert client.post(page_of(study), {field: "ابدأ"}).status_code == 302
    assert client.post(page_of(study), {field: "ابدأ"}).status_code == 302  # the same again is no new version
    refused = client.post(page_of(study), {field: "ابدأ <b>"})
    assert refused.status_code == 422
    assert client.post(page_of(study), {field: "انطلق"}).status_code == 302
    assert [one.version for one in study.texts.filter(kind="words")] == [2, 1]
    shown = read_page(client.get(page_of(study)))
    assert "Version 2" in shown
    assert interface_words.translations_of(study, "ar") == {BEGIN: "انطلق"}
    assert [one.data["kind"] for one in AuditEvent.objects.filter(action="study.text_changed")] == ["words"] * 2


def test_only_languages_of_the_study_that_ship_no_words_have_the_page(client, study):
    assert [client.get(page_of(study, language=one)).status_code for one in ("ar", "en", "de")] == [200, 404, 404]


def test_translated_words_are_part_of_no_text_that_a_launch_needs(study):
    with pytest.raises(ValidationError) as refused:
        services.launch_study(study=study, by=None, now=timezone.now())
    assert sum("is empty in the language ar" in one for one in refused.value.messages) == 4
    assert "words" not in " ".join(refused.value.messages)
