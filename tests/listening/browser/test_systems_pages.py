"""A listening test of an edition's systems in a browser: from the page of the edition to an evaluator's answer."""

import pytest
from playwright.sync_api import expect

from listening.app.models import Study
from tests.listening.browser.trials import open_trials, wait_for_rows
from tests.listening.edition_factories import make_edition_with_speech
from tests.listening.factories import make_session
from tests.listening.own_factories import run_jobs
from tests.portal.factories import make_organizer


@pytest.fixture
def organizer(transactional_db):
    return make_organizer(name="Olga Organizer")


def test_edition_becomes_a_test_of_some_of_its_systems_that_somebody_answers(organizer, new_page, check_page):
    edition = make_edition_with_speech(
        organizer=organizer, with_audio=True, speakers=4, utterances=4, systems=3, published_at="2026-01-01T00:00Z"
    )
    page = new_page(organizer)
    page.goto(edition.get_absolute_url())
    page.locator("main").get_by_role("link", name="Listening tests").first.click()
    page.get_by_role("link", name="New listening test").first.click()
    page.get_by_label("MUSHRA:").check()
    page.get_by_label("T02-p1").uncheck()
    page.get_by_label("small:").check()
    page.get_by_label("Responsible body").fill("Test University")
    check_page(page, "systems-new")
    page.get_by_role("button", name="Make the listening test").click()
    page.get_by_role("heading", name="Next").wait_for()
    run_jobs()
    page.reload()
    check_page(page, "systems-prepared")
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Utterances at most").wait_for()
    check_page(page, "systems-edit")
    page.go_back()
    page.get_by_role("link", name="Launch").click()
    page.get_by_role("button", name="Launch").click()
    page.get_by_text("Give evaluators this link").wait_for()
    study = Study.objects.get()
    session = make_session(study)
    evaluator = open_trials(new_page(None), session)
    samples = {one.slot: one for one in session.block.trials.get(position=1).presentation.samples.all()}
    assert len(samples) == 1 + study.conditions.count() == 5
    for slot in samples:
        evaluator.locator(f"[data-hear='{slot}'][aria-disabled='false']").click()
        expect(evaluator.locator(f"[data-hear='{slot}']")).to_have_attribute("data-heard", "")
    for slider in evaluator.locator(".slider input").all():
        slider.fill("40")
    check_page(evaluator, "systems-trial")
    assert not [one for one in ("T01", "T03", "anchor", "System") if one in evaluator.content()]
    evaluator.locator("#next").click()
    wait_for_rows(session.answers, 1, "answers")
    assert set(session.answers.get().data["ratings"]) == {"1", "2", "3", "4"}
