"""People who do not listen: the page leaves them nothing to turn, and takes no answer that was not given."""

import pytest
from playwright.sync_api import expect

from tests.browsing import wait_until
from tests.listening import factories
from tests.listening.browser.trials import (
    draft_of,
    events_of,
    expect_heard,
    expect_number,
    expect_ready,
    listen,
    open_trials,
    player,
    plays_of,
    rate,
    send,
    stored,
)
from tests.listening.factories import make_session, make_study
from tests.listening.rated import RATED

pytestmark = pytest.mark.django_db(transaction=True)
CHANGED = (
    "const { start } = AudioBufferSourceNode.prototype;AudioBufferSourceNode.prototype.start = function (when) { %s };"
)
TRICKS = {
    "rate": CHANGED % "this.playbackRate.value = 4; start.call(this, when);",
    "seek": CHANGED % "start.call(this, when, 0.2);",
}


@pytest.fixture
def session(transactional_db):
    return make_session(make_study(trials=3))


def test_criterion_10_there_is_nothing_to_seek_in_to_speed_up_or_to_mute(page, session):
    open_trials(page, session)
    player(page, "a").locator("button").click()
    expect(page.locator("audio, video, input[type=range]")).to_have_count(0)
    for key in ("ArrowRight", "End", "PageUp", "m", ">"):
        page.keyboard.press(key)
    expect_heard(page, "a")
    player(page, "a").locator("progress").click(position={"x": 100, "y": 2})
    expect(player(page, "b")).not_to_have_attribute("data-heard", "")
    listen(page, "b")
    rate(page)
    send(page)
    stored(session, 3)
    plays = plays_of(session, "is_whole", "remarks", "heard_ms")
    assert [play[:2] for play in plays] == [(True, []), (True, [])]
    assert [heard_ms for *_, heard_ms in plays] == pytest.approx([1000 * factories.SECONDS] * 2, abs=50)


@pytest.mark.parametrize("trick", TRICKS)
def test_criterion_10_changed_browser_gets_no_further_and_is_noted(page, session, trick):
    page.add_init_script(TRICKS[trick])
    open_trials(page, session)
    for number, slot in enumerate("ab", 1):
        expect_ready(page, slot)
        player(page, slot).locator("button").click()
        wait_until(lambda count=number: len(draft_of(page)["plays"]) == count, "the end of a playback")
    rate(page)
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to A to its end first.")
    plays = draft_of(page)["plays"]
    assert [(play["is_whole"], trick in play["remarks"]) for play in plays] == [(False, True)] * 2
    assert stored(session, 0) == {}


def test_criterion_10_page_in_the_background_is_noted_and_what_ended_there_is_heard_again(page, session):
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.isAway === true })")
    open_trials(page, session)
    listen(page, "a")
    expect_ready(page, "b")
    # Away as soon as it plays, which no test outside of the page would be quick enough for; then back at once.
    player(page, "b").locator("button").evaluate(
        """(button) => button.addEventListener("click", () => {
          const isBack = window.isAway !== undefined;
          isAway = true;
          document.dispatchEvent(new Event("visibilitychange"));
          isAway = !isBack;
        })"""
    )
    player(page, "b").locator("button").click()
    notice = "The page was in the background when B ended. Please play it again."
    expect(page.locator("#notice")).to_have_text(notice)
    expect(player(page, "b")).not_to_have_attribute("data-heard", "")
    listen(page, "b")
    rate(page)
    send(page)
    stored(session, 3)
    plays = plays_of(session, "slot", "is_whole", "remarks")
    assert plays == [("a", True, []), ("b", False, ["hidden"]), ("b", True, ["hidden"])]
    events_of(session, "hidden", 2)


def requests_of(page):
    sent = []
    page.on("request", lambda request: sent.append(request) if request.url.endswith("/answers") else None)
    return sent


def test_criterion_11_nothing_is_chosen_beforehand_and_untouched_cannot_be_sent(page, session):
    sent = requests_of(page)
    open_trials(page, session)
    expect(page.locator("input[type=radio]")).to_have_count(30)
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    listen(page)
    next_button, missing = page.locator("#next"), page.locator("#missing")
    expect(next_button).to_have_attribute("aria-disabled", "true")

    # By keyboard.
    page.locator("#trial-heading").focus()
    page.keyboard.press("Enter")
    for key in ("Enter", "Space"):
        next_button.focus()
        page.keyboard.press(key)
    page.locator('input[name="naturalness"]').first.focus()
    page.keyboard.press("Enter")
    expect(missing).to_have_text("Please answer this question first.")

    # By a request of somebody's own.
    tab = session.__class__.objects.get(pk=session.pk).tab
    for answers in ({}, {"verifiability": 5}, dict.fromkeys(RATED), dict.fromkeys(RATED, 0), dict.fromkeys(RATED, "")):
        body = {"tab": tab, "position": 1, "answers": answers, "plays": [], "events": []}
        assert page.request.post(f"{session.get_absolute_url()}answers", data=body).status == 422

    # By pointer, with nothing or not everything answered.
    next_button.click(force=True)
    expect(missing).to_have_text("Please answer this question first.")
    expect(page.locator('input[name="verifiability"]').first).to_be_focused()
    rate(page, 5, RATED[:2])
    next_button.click(force=True)
    expect(page.locator('input[name="intelligibility"]').first).to_be_focused()
    page.evaluate("() => document.getElementById('trial-form').requestSubmit()")
    expect_number(page, 1)
    assert sent == []
    assert stored(session, 0) == {}


def test_page_that_stops_says_why_where_it_stops(page, session):
    """On a phone the button and what is missing are not on the screen at once."""
    page.set_viewport_size({"width": 360, "height": 640})
    open_trials(page, session)
    missing = page.locator("#missing")
    page.locator("#next").click(force=True)
    expect(missing).to_have_text("Please listen to A to its end first.")
    expect(missing).to_be_in_viewport()
    expect(player(page, "a")).to_have_attribute("data-missing", "")
    listen(page)
    expect(missing).to_have_text("")
    page.locator("#next").click(force=True)
    expect(missing).to_have_text("Please answer this question first.")
    expect(missing).to_be_in_viewport()
    question = page.locator("fieldset[data-missing]")
    expect(question).to_have_attribute("data-task", "verifiability")
    expect(question.locator("#missing")).to_have_count(1)
    rate(page)
    expect(page.locator("[data-missing]")).to_have_count(0)
    page.locator("#next").click()
    expect_number(page, 2)
