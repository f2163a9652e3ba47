"""A session on the page of the trials, from the first trial to the end, and what the page contains."""

import re

import pytest
from django.conf import settings
from playwright.sync_api import expect

from listening.app.models import Session
from tests.listening.browser.trials import (
    answer,
    events_of,
    expect_number,
    expect_saved,
    listen,
    open_trials,
    rate,
    stored,
)
from tests.listening.factories import make_session, make_study
from tests.listening.sessions.test_time_left import shown_s

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPTS = settings.BASE_DIR / "static" / "listening"
TEMPLATES = settings.BASE_DIR / "templates" / "listening" / "sessions"


def test_session_by_pointer_is_stored_trial_by_trial(page, problems):
    session = make_session(make_study(trials=2))
    open_trials(page, session)
    expect_number(page, 1)
    listen(page)
    rate(page, 3)
    page.locator("#next").dblclick()
    expect_number(page, 2)
    expect(page.locator("#missing")).to_be_empty()  # the second tap was not meant for this trial
    assert set(stored(session, 3).values()) == {3}
    expect_saved(page)
    expect(page.locator("#done")).to_have_js_property("value", 1)
    answer(page, 8)
    expect(page.locator("#trials")).to_have_count(0)
    assert sorted(stored(session, 6).values()) == [3, 3, 3, 8, 8, 8]
    session.refresh_from_db()
    assert session.state == Session.State.FINISHED
    assert session.plays.filter(is_whole=True).count() == 4
    assert [event["state"] for event in events_of(session, "audio")] == ["running"]
    assert problems[page] == []
    assert page.evaluate("() => Object.keys(localStorage)") == []


def test_time_left_is_that_of_the_tested_formula(page):
    open_trials(page, make_session(make_study(trials=2)))
    expect(page.locator("#time-left")).to_have_text("about a minute left")
    module = page.locator('link[href*="listening/screen"]').get_attribute("href")
    for paces in ([], [2], [30, 2], [0.1, 0.8, 1.2]):
        effort = {"left_s": 600, "paces": paces}
        ask = "([module, effort]) => import(module).then(({ timeLeft_s }) => timeLeft_s(effort))"
        assert page.evaluate(ask, [module, effort]) == pytest.approx(shown_s(effort))


def test_page_without_script_says_what_it_needs(new_page):
    page = new_page(java_script_enabled=False)
    page.goto(make_session(make_study(trials=2)).get_absolute_url())
    assert "This listening test needs JavaScript." in page.inner_text("noscript")
    expect(page.get_by_text("Your trials are being loaded.").first).to_be_hidden()


def words_of(path):
    return set(re.findall(r'data-word="([\w-]+)"', path.read_text()))


@pytest.mark.parametrize("form", ["rating", "board", "transcription", "sliders"])
def test_every_word_of_the_script_stands_in_the_page(form):
    """What the script says is translated with the page, so none of its words may be missing there."""
    own = {"board", "rating", "transcription", "sliders", "screening", "copy", "monitor"}
    scripts = [path for path in SCRIPTS.glob("*.js") if path.stem == form or path.stem not in own]
    calls = r'\b(?:word|tell|showNotice|showSaved)\("([\w-]+)"'
    asked = {name for path in scripts for name in re.findall(calls, path.read_text())}
    assert len(asked) >= 15
    assert asked - words_of(TEMPLATES / "trials.html") - words_of(TEMPLATES / f"_{form}.html") == set()
