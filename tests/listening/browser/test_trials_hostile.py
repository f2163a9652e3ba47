"""People who do not listen: the page leaves them nothing to turn, and takes no answer that was not given."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.listening.browser.trials import (
    RATED,
    events_of,
    expect_number,
    expect_saved,
    listen,
    open_trials,
    player,
    rate,
    send,
    stored,
)
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)
CHANGED = (
    "const { start } = AudioBufferSourceNode.prototype;AudioBufferSourceNode.prototype.start = function (when) { %s };"
)
TRICKS = {
    "rate": CHANGED % "this.playbackRate.value = 4; start.call(this, when);",
    "seek": CHANGED % "start.call(this, when, 0.5);",
}


@pytest.fixture
def session(transactional_db):
    return make_session(make_study(trials=3))


def test_criterion_10_there_is_nothing_to_seek_in_to_speed_up_or_to_mute(page, session):
    open_trials(page, session)
    player(page, "a").locator("button").click()
    assert page.locator("audio, video, input[type=range]").count() == 0
    for key in ("ArrowRight", "End", "PageUp", "m", ">"):
        page.keyboard.press(key)
    expect(player(page, "a")).to_have_attribute("data-heard", "")
    player(page, "a").locator("progress").click(position={"x": 100, "y": 2})
    expect(player(page, "b")).not_to_have_attribute("data-heard", "")
    listen(page, "b")
    rate(page)
    send(page)
    expect_saved(page)
    plays = list(session.plays.values_list("is_whole", "remarks", "heard_ms"))
    assert [play[:2] for play in plays] == [(True, []), (True, [])]
    assert all(550 <= heard_ms <= 650 for *_, heard_ms in plays)


@pytest.mark.parametrize("trick", TRICKS)
def test_criterion_10_changed_browser_gets_no_further_and_is_noted(page, session, trick):
    page.add_init_script(TRICKS[trick])
    open_trials(page, session)
    for slot in "ab":
        expect(player(page, slot)).to_have_attribute("data-state", "ready")
        player(page, slot).locator("button").click()
        expect(player(page, slot)).to_have_attribute("data-state", "playing")
        expect(player(page, slot)).to_have_attribute("data-state", "ready")
    rate(page)
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to A to its end first.")
    kept = page.evaluate("() => localStorage[Object.keys(localStorage).find((key) => key.endsWith('draft'))]")
    plays = json.loads(kept)["plays"]
    assert [(play["is_whole"], play["remarks"]) for play in plays] == [(False, [trick])] * 2
    assert stored(session) == {}


def test_criterion_10_page_in_the_background_is_noted(page, session):
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.isAway === true })")
    open_trials(page, session)
    listen(page, "a")
    player(page, "b").locator("button").click()
    page.evaluate("() => { isAway = true; document.dispatchEvent(new Event('visibilitychange')); isAway = false; }")
    expect(player(page, "b")).to_have_attribute("data-heard", "")
    rate(page)
    send(page)
    expect_saved(page)
    assert list(session.plays.values_list("slot", "remarks")) == [("a", []), ("b", ["hidden"])]
    assert len(events_of(session, "hidden")) == 1


def requests_of(page):
    sent = []
    page.on("request", lambda request: sent.append(request) if request.url.endswith("/answers") else None)
    return sent


def test_criterion_11_nothing_is_chosen_beforehand_and_untouched_cannot_be_sent_by_pointer(page, session):
    sent = requests_of(page)
    open_trials(page, session)
    expect(page.locator("input[type=radio]")).to_have_count(30)
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    listen(page)
    next_button = page.locator("#next")
    expect(next_button).to_have_attribute("aria-disabled", "true")
    next_button.click(force=True)
    expect(page.locator("#missing")).to_have_text("Please answer this question first.")
    expect(page.locator('input[name="verifiability"]').first).to_be_focused()
    rate(page, 5, RATED[:2])
    next_button.click(force=True)
    expect(page.locator('input[name="intelligibility"]').first).to_be_focused()
    page.evaluate("() => document.getElementById('trial-form').requestSubmit()")
    expect_number(page, 1)
    assert sent == []
    assert stored(session) == {}


def test_criterion_11_untouched_cannot_be_sent_by_keyboard(page, session):
    sent = requests_of(page)
    open_trials(page, session)
    listen(page)
    page.locator("#trial-heading").focus()
    page.keyboard.press("Enter")
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    page.locator("#next").focus()
    page.keyboard.press("Space")
    page.locator('input[name="naturalness"]').first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#missing")).to_have_text("Please answer this question first.")
    expect_number(page, 1)
    assert sent == []
    assert stored(session) == {}


def test_criterion_11_crafted_request_without_ratings_is_refused(page, session):
    open_trials(page, session)
    listen(page)
    tab = session.__class__.objects.get(pk=session.pk).tab
    for answers in ({}, {"verifiability": 5}, dict.fromkeys(RATED), dict.fromkeys(RATED, 0), dict.fromkeys(RATED, "")):
        body = {"tab": tab, "position": 1, "answers": answers, "plays": [], "events": []}
        assert page.request.post(f"{session.get_absolute_url()}answers", data=body).status == 422
    assert stored(session) == {}


def test_what_was_not_heard_cannot_be_rated_away(page, session):
    open_trials(page, session)
    rate(page)
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to A to its end first.")
    expect(player(page, "a").locator("button")).to_be_focused()
    listen(page, "a")
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to B to its end first.")
    assert stored(session) == {}


def test_plays_are_limited_and_cannot_be_cut_short(page):
    session = make_session(make_study(trials=2, plays_at_most=2))
    open_trials(page, session)
    listen(page, "a")
    expect(player(page, "a").locator("[data-remark]")).to_have_text("heard · plays left: 1")
    page.reload()
    expect(player(page, "a").locator("[data-remark]")).to_have_text("heard · plays left: 1")
    page.keyboard.press("a")
    expect(player(page, "a")).to_have_attribute("data-state", "playing")
    page.keyboard.press("a")
    expect(player(page, "a")).to_have_attribute("data-state", "used-up")
    expect(player(page, "a").locator("button")).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("a")
    expect(page.locator("button.again")).to_have_attribute("aria-disabled", "true")
    listen(page, "b")
    rate(page)
    send(page)
    expect_saved(page)
    assert [slot for slot, whole in session.plays.values_list("slot", "is_whole") if whole] == ["a", "a", "b"]


def test_separate_pages_ask_one_question_each_in_the_order_of_the_study(page):
    session = make_session(make_study(trials=2, pages="separate"))
    open_trials(page, session)
    listen(page)
    for number, task in enumerate(RATED, 1):
        expect(page.locator("#trial-heading")).to_have_text(f"Trial 1 of 2 · question {number} of 3")
        assert page.locator("fieldset").count() == 1
        rate(page, number, [task])
        send(page)
    expect(page.locator("#trial-heading")).to_have_text(re.compile("Trial 2 of 2"))
    expect_saved(page)
    assert stored(session) == {(1, task): number for number, task in enumerate(RATED, 1)}
