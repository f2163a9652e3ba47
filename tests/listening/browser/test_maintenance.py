"""What evaluators see while the portal is under maintenance, before and within the trials."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from listening.app.studies.settings import DEFAULT_QUESTIONNAIRE
from portal.core import maintenance
from portal.operations.maintenance import begin_maintenance, end_maintenance
from tests.browsing import leap_until
from tests.listening.browser.trials import (
    answer,
    expect_clips,
    expect_number,
    expect_saved,
    open_trials,
    player,
    stored,
)
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def off_afterwards():
    yield
    maintenance._known.maintenance = None


def begin():
    begin_maintenance(message="", now=timezone.now())
    maintenance.look()


def end():
    end_maintenance(now=timezone.now())
    maintenance.look()


def test_trials_on_show_are_answered_meanwhile_and_sent_by_the_same_page_afterwards(page, check_page, problems):
    page.clock.install()
    session = make_session(make_study(trials=4))
    open_trials(page, session)
    expect_clips(page, 6)
    answer(page, 4)
    expect_saved(page)
    expect_clips(page, 8)
    begin()
    answer(page, 6)
    expect_number(page, 3)
    words = "The test is unavailable just now: saved on this device"
    expect(page.locator("#saved")).to_have_text(words)
    problems[page].clear()  # the answer with status 503
    check_page(page, "trial-maintenance")
    answer(page, 8)
    answer(page, 3)
    expect(page.locator("#waiting-heading")).to_be_focused()
    expect(page.locator("#waiting-panel .saved")).to_have_text(words)
    end()
    assert session.answers.count() == 3
    leap_until(page, lambda: page.locator("#trials").count() == 0, "the end of the session")
    assert sorted({position for position, _ in stored(session, 12)}) == [1, 2, 3, 4]


def test_trial_whose_recordings_did_not_come_waits_for_them(page):
    page.clock.install()
    session = make_session(make_study(trials=2))
    page.route(re.compile("/clips/"), lambda route: route.abort())
    open_trials(page, session)
    page.unroute_all()
    begin()
    leap_until(page, lambda: page.locator("#saved").inner_text(), "a word on the connection")
    expect(page.locator("#saved")).to_have_text(
        "The test is unavailable just now: go on, answers are kept on this device"
    )
    end()
    leap_until(page, lambda: player(page, "a").get_attribute("data-state") == "ready", "the recording")
    answer(page, 4)
    expect_number(page, 2)
    expect_saved(page)


def test_steps_before_the_trials_stay_and_keep_what_was_entered(page, check_page, problems):
    session = make_session(make_study(questionnaire=DEFAULT_QUESTIONNAIRE), step="questions")
    page.goto(session.get_absolute_url())
    page.locator("[name=age]").nth(2).check()
    begin()
    for leave in (page.locator("main .button.wide"), page.locator(".foot a")):
        page.evaluate("() => { document.getElementById('unavailable').hidden = true; }")
        leave.click()
        expect(page.get_by_role("alert")).to_contain_text("The test is unavailable just now.")
    problems[page].clear()  # the answers with status 503
    check_page(page, "listen-questions-maintenance")
    end()
    page.locator("main .button.wide").click()
    expect(page.locator(".errorlist").first).to_be_visible()  # it was sent, as it was filled in
    expect(page.locator("[name=age]").nth(2)).to_be_checked()
    expect(page.locator("#unavailable")).to_be_hidden()
