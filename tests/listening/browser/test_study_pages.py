"""Studies in a browser: every page at both widths and schemes, and the way from an edition to a launched study."""

import pytest
from django.urls import reverse
from django.utils import timezone

from listening.app.studies import services
from tests.browsing import too_long
from tests.listening.edition_factories import make_designed, make_draft, make_edition_with_speech, make_prepared
from tests.listening.factories import make_session
from tests.portal.factories import make_organizer


@pytest.fixture
def organizer(transactional_db):
    return make_organizer(name="Olga Organizer")


@pytest.fixture
def edition(organizer):
    return make_edition_with_speech(organizer=organizer, title="VoicePrivacy 2022, once more")


@pytest.fixture
def page(new_page, organizer):
    return new_page(organizer)


def address(name, study):
    return reverse(f"studies:{name}", args=[study.name])


def launch(study):
    services.launch_study(study=study, by=None, now=timezone.now())
    study.refresh_from_db()
    return study


def test_list_and_new(page, check_page, edition, organizer):
    page.goto("/studies/")
    page.get_by_role("link", name="Make the first listening test").click()
    check_page(page, "study-new")
    make_draft(edition, title="A first hearing")
    study = launch(make_prepared(edition, title="Naturalness and verifiability of the primary systems"))
    make_session(study)
    page.goto("/studies/")
    check_page(page, "studies")


def test_edit_and_planner(page, check_page, edition):
    study = make_draft(edition)
    page.goto(address("edit", study))
    check_page(page, "study-edit")
    page.get_by_label("Trials of each evaluator").fill("190")
    page.get_by_label("Trials of each evaluator").press("Tab")
    page.locator("#planner strong", has_text="No design is possible for this plan").wait_for()  # the script asked
    page.get_by_label("Title").fill("")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    check_page(page, "study-edit-faulty")


def test_questions_are_a_list_that_unfolds(page, check_page, edition):
    page.goto(f"{make_draft(edition).get_absolute_url()}questions/")
    assert too_long(page) == {}
    page.get_by_role("heading", name="Question 2").click()
    check_page(page, "study-questions")


def test_states_of_a_study(page, check_page, edition):
    study = make_draft(edition)
    page.goto(study.get_absolute_url())
    check_page(page, "study-draft")
    study = launch(make_prepared(edition))
    page.goto(study.get_absolute_url())
    check_page(page, "study-open")
    page.goto(address("extend", study))
    check_page(page, "study-extend")


def test_design_and_texts(page, check_page, edition):
    study = make_designed(edition)
    page.goto(address("design", study))
    check_page(page, "study-design")
    page.goto(address("texts", study))
    check_page(page, "study-texts")
