"""From consent to the trials: in order, once, in any language, with nothing heard before consent."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from listening import texts
from listening.app.models import Session, StudyText
from listening.app.sessions.clip_urls import clip_address
from listening.app.studies.settings import (
    DEFAULT_QUESTIONNAIRE,
    DEFAULT_SCREENING,
    Screening,
    parse_questionnaire,
)
from tests.listening.factories import make_session, make_study
from tests.listening.rated import ASKED, questions_of
from tests.listening.visits import PLAIN, Visit, link_of, text_of
from tests.pages import read_page

pytestmark = pytest.mark.django_db
ABOUT = {"age": "30-39", "gender": "undisclosed", "native_language": "en", "hearing": "no"}


def make_full(**fields):
    everything = DEFAULT_SCREENING | {"headphones": "both", "headphones_gate": "gate"}
    return make_study(**{"screening": everything, "questionnaire": DEFAULT_QUESTIONNAIRE} | fields)


def walk(visit):
    """Every step of a full study with its page, up to the trials."""
    steps = [("consent", lambda: visit.consent()), ("questions", lambda: visit.post("questions", **ABOUT))]
    steps += [("sound", lambda: visit.answer_test("sound"))]
    steps += [("headphones", lambda: visit.answer_test("headphones"))] * 2
    steps += [("role-play", lambda: visit.post("role-play"))]
    for step, take in steps:
        assert visit.session.step == step
        yield step, visit.page()
        assert take().status_code == 302


def test_steps_without_anything_to_do_are_left_out_and_counted_rightly():
    visit = Visit(make_study(screening=PLAIN))
    assert "Before the test: step 1 of 2" in visit.text()
    visit.consent()
    assert visit.session.step == "role-play"
    assert "Before the test: step 2 of 2" in visit.text()


def test_no_step_can_be_jumped_to_or_taken_twice():
    visit = Visit(make_full())
    for step in ("trials", "role-play", "sound", "end", "again", "nonsense"):
        assert visit.post(step).status_code in {302, 403}
        assert visit.session.step == "consent"
    visit.consent()
    consented = visit.session.consented_at
    visit.consent()
    visit.post("questions", **ABOUT)
    visit.post("questions", **ABOUT | {"age": "60+"})
    assert (visit.session.consented_at, visit.session.questionnaire) == (consented, ABOUT)
    for step in ("sound", "headphones"):
        visit.post(step)
    assert visit.session.block is None


def test_criterion_23_no_audio_before_consent():
    study = make_full()
    visit = Visit(study)
    session = visit.session
    assert visit.sounds() == []
    Session.objects.filter(pk=session.pk).update(block=study.blocks.first(), step="trials")
    session.refresh_from_db()
    trial = session.block.trials.first()
    addresses = [clip_address(session, trial, "a"), reverse("listen:sound", args=[session.token, "0" * 32])]
    assert {Client().get(address).status_code for address in addresses} <= {403, 404, 410}
    for address in (link_of(study), session.get_absolute_url()):
        page = Client().get(address, follow=True).content.decode() if address != session.get_absolute_url() else ""
        assert "<audio" not in page
    assert session.consented_at is None


def test_criterion_23_consent_is_ticked_by_the_person_and_by_nobody_else():
    visit = Visit(make_study(screening=PLAIN))
    assert b"checked" not in visit.page().content
    refused = visit.post("consent")
    assert (refused.status_code, visit.session.step, visit.session.block) == (422, "consent", None)
    assert "Please tick the box if you agree." in text_of(refused)


def test_questionnaire_asks_what_is_missing_all_at_once_and_keeps_what_was_given():
    visit = Visit(make_full())
    visit.consent()
    answer = visit.post("questions", age="30-39", gender="dragon")
    page = answer.content.decode()
    assert answer.status_code == 422
    assert page.count("Please answer this question.") == 4  # beside each of two fields, and in the summary
    assert "dragon" in page
    assert re.search(r'value="30-39"[^>]* checked', page)
    assert visit.session.questionnaire == {}


def test_questions_may_be_optional_numbers_and_texts():
    own = [
        {"name": "years", "kind": "number", "labels": {"en": "Years of training"}},
        {"name": "note", "kind": "text", "labels": {"en": "A note", "fr": "Une note"}, "required": False},
    ]
    visit = Visit(make_study(screening=PLAIN, questionnaire=own))
    visit.consent()
    assert visit.post("questions", years="many").status_code == 422
    assert visit.post("questions", years="7").status_code == 302
    assert visit.session.questionnaire == {"years": 7}


@pytest.mark.parametrize(("headphones", "asked"), [("none", True), ("huggins", False)])
def test_headphones_are_asked_about_where_they_are_not_checked(headphones, asked):
    questions = parse_questionnaire(DEFAULT_QUESTIONNAIRE, screening=Screening(headphones=headphones))
    assert [question.name for question in questions] == ["age", "gender", "native_language", "hearing"] + [
        "headphones"
    ] * asked


def test_criterion_22_language_changes_without_losing_the_place():
    visit = Visit(make_full())
    pages = {}
    for step, page in walk(visit):
        assert 'lang="en"' in page.content.decode().partition("<head>")[0], step
        before = visit.session
        visit.ask("post", reverse("listen:language", args=[visit.token]), {"language": "fr"})
        french = visit.page()
        assert 'lang="fr"' in french.content.decode().partition("<head>")[0]
        after = visit.session
        assert (after.step, after.consented_at, after.block_id) == (before.step, before.consented_at, before.block_id)
        pages[step] = text_of(page), text_of(french)
        visit.ask("post", reverse("listen:language", args=[visit.token]), {"language": "en"})
    assert all(english != french for english, french in pages.values())
    assert visit.session.screening_results.count() == 3
    visit.ask("post", reverse("listen:language", args=[visit.token]), {"language": "xx"})
    assert visit.session.language == "en"


def test_criterion_22_texts_are_versioned_and_stored_with_the_session():
    study = make_study(screening=PLAIN)
    for version in (1, 2):
        study.texts.create(kind="consent", language="en", version=version, text=f"Wording number {version}")
    study.texts.create(kind="consent", language="fr", version=1, text="Texte français")
    study.texts.create(kind="role-play", language="en", version=1, text="**Play** this role")
    visit = Visit(study)
    assert "Wording number 2" in visit.text()
    assert visit.session.texts == {"consent": {"language": "en", "version": 2}}
    visit.ask("post", reverse("listen:language", args=[visit.token]), {"language": "fr"})
    assert "Texte français" in visit.text()
    visit.consent()
    page = read_page(visit.page())
    assert '<div class="text" lang="en" dir="ltr"><p><strong>Play</strong> this role</p>' in page
    assert visit.session.texts == {
        "consent": {"language": "fr", "version": 1},
        "role-play": {"language": "en", "version": 1},
        "instructions": {"language": "fr", "version": 0},
    }
    study.texts.create(kind="consent", language="fr", version=2, text="Nouveau")
    assert visit.session.texts["consent"]["version"] == 1


@pytest.mark.parametrize(("language", "role_play"), [("en", "broadcaster"), ("fr", "call-centre")])
def test_every_wording_is_shipped_in_every_language(language, role_play):
    found = [texts.shipped_text(kind, role_play, language) for kind in StudyText.READ]
    assert not [one for text in found for one in text.split("\n\n") if "\n" in one]  # no breaks of the files
    stories = {texts.shipped_text("role-play", role_play, language, questions=[one]) for one in ASKED.values()}
    assert len(stories) == 3  # of ratings, of voice maps, of transcriptions
    found += stories
    assert min(map(len, found)) > 100
    assert "{" not in "".join(found)
    rated = questions_of(points=7)
    told = texts.shipped_text("instructions", role_play, language, questions=[*rated, ASKED["transcription"]])
    assert (told.count("**"), "7" in told, "10" in told) == (8, True, False)
    for one in rated:
        words = one.words(language)
        for asked in (words.question, words.hint, *words.labels):  # as the page of a trial asks it
            assert asked.replace("\u00a0", " ") in told.replace("\u00a0", " ")
    assert texts.shipped_text("role-play", "own", language) == ""


def test_wording_can_carry_no_script_picture_or_address():
    page = texts.render_markdown(
        "<script>x</script> ![a](http://example.org/a.png) [b](http://example.org) *c* <b>d</b>"
    )
    assert "<script" not in page
    assert "<img" not in page
    assert "<a " not in page
    assert "<em>c</em>" in page


def test_criterion_12_pages_of_the_steps_name_no_system_study_team_or_class():
    study = make_full(title="Secretive title", name="secretive-name")
    visit = Visit(study)
    told = [Client().get(link_of(study)), visit.joined]
    for _step, page in walk(visit):
        told.append(page)
        told += [visit.ask("get", address) for address in visit.sounds()]
    told += [visit.ask("get", f"{visit.address}withdraw/"), visit.ask("get", reverse("listen:withdraw-by-code"))]
    hidden = ["secretive", "Secretive", study.edition.name, study.edition.title, study.edition.corpus.name]
    hidden += list(study.edition.corpus.speakers.values_list("name", flat=True))
    hidden += ["is_target", "nontarget", "condition"]
    everything = b"".join(one.content + repr(sorted(one.headers.items())).encode() for one in told).decode("latin-1")
    assert [word for word in hidden if word in everything] == []
    assert len(told) > 15


def test_simulated_study_says_so_on_every_page():
    visit = Visit(make_study(screening=PLAIN, is_simulated=True))
    for take in (visit.consent, lambda: visit.post("role-play")):
        assert "the other answers in this study are simulated" in visit.text()
        take()
    assert visit.session.is_simulated


def test_address_of_a_form_that_is_loaded_again_leads_to_the_page_of_the_session(client):
    session = make_session(make_study())
    for where in ("language/", "step/consent/", "step/again/"):
        for ask in (client.get, client.head):
            assert ask(f"/listen/{session.token}/{where}").url == session.get_absolute_url()
        assert client.put(f"/listen/{session.token}/{where}").status_code == 405
    assert client.get("/listen/nobody/language/").status_code == 404


def test_address_that_is_none_says_so_in_the_language_of_its_session(client):
    session = make_session(make_study(languages=["en", "fr"]), language="fr")
    browser = {"accept": "text/html", "accept-language": "fr-CA,en;q=0.5"}
    for address, status, back in (
        (f"/listen/{session.token}/nowhere/", 404, f'href="/listen/{session.token}/">Retour au test'),
        (f"/listen/{session.token}/report", 405, f'href="/listen/{session.token}/">Retour au test'),
        ("/listen/nobody/", 404, "Vérifiez le lien que vous avez reçu."),
        ("/listen/a%00b/", 404, "Vérifiez le lien que vous avez reçu."),
    ):
        response = client.get(address, headers=browser)
        text = response.content.decode()
        assert (response.status_code, '<html lang="fr"' in text, back in text) == (status, True, True), address
        assert "Cette page est introuvable" in text, address
