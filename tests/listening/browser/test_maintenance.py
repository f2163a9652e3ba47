"""What evaluators see while the portal is under maintenance, before and within the trials."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from portal.core import maintenance
from portal.operations.maintenance import begin_maintenance, end_maintenance
from tests.browsing import leap_until
from tests.listening.browser.trials import (
    answer,
    expect_clips,
    expect_number,
    expect_saved,
    open_trials,
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
