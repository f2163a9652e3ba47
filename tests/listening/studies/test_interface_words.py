"""Words of buttons and hints in a language that ships none: listed, filled in, checked, kept and read by evaluators."""

import csv
import html
import io
import re

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
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


def test_file_that_was_downloaded_and_filled_in_gives_the_same_words():
    given = everything("ar") | {("Next", 0): "=التالي", ("Pause", 0): "'استراحة"}
    text = write_words("ar", given)
    assert "'=التالي" in text  # no spreadsheet runs it
    assert read_words(("\ufeff" + text).encode(), "words.csv", "ar") == given
    rows = list(csv.reader(io.StringIO(text)))
    for delimiter in (";", "\t"):
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter).writerows(rows)
        assert read_words(file.getvalue().encode(), "words.csv", "ar") == given
    empty = write_words("ar", {})
    assert len(list(csv.reader(io.StringIO(empty)))) == 1 + len(list_words("ar"))
    assert read_words(empty.encode(), "words.csv", "ar") == {}


def test_file_tells_everything_that_is_wrong_by_line():
    lines = ["source,form,numbers,translation", "Next,,,<b>", "Nothing like it,,,x", "Pause,,,a", "Pause,,,b"]
    with pytest.raises(ProblemsError) as refused:
        read_words("\n".join([*lines, "%(n)d speaker,9,,x"]).encode(), "my.csv", "ar")
    assert [one.partition(":")[0] for one in refused.value.problems] == [f"my.csv, line {n}" for n in (2, 3, 5, 6)]
    assert "“%(n)d speaker”, form 9 is not among the words" in refused.value.problems[3]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1: expected the columns"),
        ("source,form,numbers,translation\nNext,,,Début\n".encode("latin-1"), "line 2: expected UTF-8."),
        (b"x" * (interface_words.LARGEST_FILE + 1), "expected at most 1 MB, found more."),
        (b'source,form,translation\n"' + b"x" * 200_000 + b'",,\n', "expected a CSV table"),
    ],
)
def test_file_that_is_no_such_table_is_refused(data, told):
    with pytest.raises(ProblemsError, match=told):
        read_words(data, "my.csv", "ar")


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


def test_file_goes_out_and_comes_back(client, study):
    answer = client.get(page_of(study, "words-file"))
    assert answer["Content-Disposition"] == f'attachment; filename="{study.name}-words-ar.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    for row in rows:
        row["translation"] = "ابدأ" if row["source"] == "Begin" else ""
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    sent = {"upload": "1", "file": SimpleUploadedFile("words.csv", file.getvalue().encode())}
    assert client.post(page_of(study), sent).status_code == 302
    assert interface_words.translations_of(study, "ar") == {BEGIN: "ابدأ"}
    assert AuditEvent.objects.get(action="study.text_changed").data["kind"] == "words"
    wrong = SimpleUploadedFile("words.csv", b"source,form,translation\nBegin,,<b>\n")
    refused = client.post(page_of(study), {"upload": "1", "file": wrong})
    assert refused.status_code == 422
    assert "words.csv, line 2: Expected words without" in read_page(refused)
    assert client.post(page_of(study), {"upload": "1"}).status_code == 422
    assert interface_words.translations_of(study, "ar") == {BEGIN: "ابدأ"}


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


def test_only_languages_of_the_study_that_ship_no_words_have_the_page(client, study):
    assert [client.get(page_of(study, language=one)).status_code for one in ("ar", "en", "de")] == [200, 404, 404]
    assert client.get(page_of(study, "words-file", "en")).status_code == 404


def test_translated_words_are_part_of_no_text_that_a_launch_needs(study):
    with pytest.raises(ValidationError) as refused:
        services.launch_study(study=study, by=None, now=timezone.now())
    assert sum("is empty in the language ar" in one for one in refused.value.messages) == 4
    assert "words" not in " ".join(refused.value.messages)
