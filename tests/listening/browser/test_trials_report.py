"""A recording that plays but sounds wrong: said in a few taps, with or without a skip, and never counted twice."""

import re

import pytest
from playwright.sync_api import expect

from tests.listening.browser.trials import (
    events_of,
    expect_number,
    listen,
    open_trials,
    rate,
    send,
    stored,
)
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)
REPORT = re.compile(r"/report$")


@pytest.fixture
def session():
    return make_session(make_study(trials=3))


def choose(page, slot, what):
    page.locator("#wrong summary").click()
    page.select_option("#wrong-slot", slot)
    page.select_option("#wrong-what", what)


def test_note_is_sent_once_it_is_said_what_is_wrong_and_the_trial_goes_on(page, session):
    open_trials(page, session)
    page.locator("#wrong summary").click()
    page.click("#wrong-tell")
    expect(page.locator("#wrong-what")).to_be_focused()
    missing = page.locator("#wrong").get_by_text("Please choose what is wrong first.")
    expect(missing).to_be_visible()
    page.select_option("#wrong-what", "noise")
    expect(missing).to_be_hidden()
    page.select_option("#wrong-what", "")
    page.locator("#wrong summary").click()
    listen(page)
    rate(page)
    choose(page, "b", "cut-off")
    page.click("#wrong-tell")
    expect(page.locator("#notice")).to_have_text("Thank you, that was noted. Please go on.")
    expect(page.locator("#wrong-tell")).to_be_hidden()
    choose(page, "b", "cut-off")
    page.click("#wrong-tell")
    expect(page.locator("#wrong-tell")).to_be_hidden()
    (told,) = events_of(session, "clip-remark")
    assert (told["position"], told["slot"], told["what"]) == (1, "b", "cut-off")
    expect_number(page, 1)
    send(page)
    expect_number(page, 2)
    expect(page.locator("#wrong-what")).to_have_value("")
    stored(session, 3)
    session.refresh_from_db()
    assert session.skips == []


def test_criterion_04_skip_whose_reply_is_lost_counts_once(page, session):
    def lose(route):
        route.fetch()
        route.abort()

    page.route(REPORT, lose, times=1)
    open_trials(page, session)
    choose(page, "a", "noise")
    page.click("#wrong-skip")
    expect(page.locator("#notice")).to_contain_text("This could not be sent")
    page.click("#wrong-skip")
    expect(page.locator("#notice")).to_contain_text("The trial was skipped.")
    session.refresh_from_db()
    assert session.skips == [1]
    events_of(session, "clip-broken")
