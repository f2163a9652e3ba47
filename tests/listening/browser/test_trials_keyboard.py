"""The page of the trials without a pointer, and what a screen reader is told."""

import re

import pytest
from playwright.sync_api import expect

from listening.app.models import Session
from tests.browsing import axe_violations, wait_until
from tests.listening.browser.trials import (
    expect_heard,
    expect_number,
    expect_ready,
    expect_saved,
    listen,
    open_trials,
    player,
    rate,
    stored,
)
from tests.listening.factories import make_session, make_study
from tests.listening.rated import RATED

pytestmark = pytest.mark.django_db(transaction=True)
SPOKEN = """() => addEventListener("DOMContentLoaded", () => {
  window.spoken = [];
  const region = document.getElementById("spoken");
  const tell = () => region.textContent && spoken.push(region.textContent);
  new MutationObserver(tell).observe(region, { childList: true });
})"""


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def test_criterion_21_session_by_keyboard_alone(page):
    """On a screen as small as a phone's; every page of it is sound for axe."""
    session = make_session(make_study(trials=3))
    page.set_viewport_size({"width": 360, "height": 640})
    open_trials(page, session)
    expect(page.locator("#trial-heading")).to_be_focused()
    assert axe_violations(page) == []
    expect_ready(page)

    # With Tab, Space, arrows and Enter.
    press(page, "Tab", "Tab", "Space")
    expect_heard(page, "a")
    press(page, "Tab", "Enter")
    expect_heard(page, "b")
    press(page, "Tab", "Space", "ArrowRight", "ArrowRight")
    press(page, "Tab", "Space")
    press(page, "Tab", "Tab", "Space", "ArrowLeft")
    press(page, "Tab")
    expect(page.locator("#next")).to_be_focused()
    press(page, "Enter")

    # With letters and digits: 0 stands for ten.
    expect_number(page, 2)
    expect(page.locator("#trial-heading")).to_be_focused()
    expect_ready(page)
    press(page, "a")
    expect_heard(page, "a")
    press(page, "B")
    expect_heard(page, "b")
    press(page, "7", "0", "1", "Enter")

    # A digit rates the question that has the focus.
    expect_number(page, 3)
    expect_ready(page)
    press(page, "a")
    expect_heard(page, "a")
    press(page, "b")
    expect_heard(page, "b")
    press(page, "2", "3", "4", "Tab", "Tab", "Tab", "Tab", "9")
    assert axe_violations(page) == []
    press(page, "Enter")
    expect(page.locator("#trials")).to_have_count(0)
    by_trial = {1: [3, 1, 10], 2: [7, 10, 1], 3: [9, 3, 4]}
    given = stored(session, 9)
    session.refresh_from_db()
    assert session.state == Session.State.FINISHED
    assert {trial: [given[trial, task] for task in RATED] for trial in by_trial} == by_trial


def test_criterion_21_questions_are_groups_and_play_state_and_saved_are_announced_once(page):
    page.add_init_script(f"({SPOKEN})()")
    open_trials(page, make_session(make_study(trials=2)))
    group = page.get_by_role("group", name="Do A and B come from the same speaker?")
    expect(group).to_have_accessible_description(re.compile("^A voice may be disguised: .* the same person speaks"))
    expect(group.get_by_role("radio")).to_have_count(10)
    expect(group.get_by_role("radio").first).to_have_accessible_name("1 surely different speakers")
    expect(group.get_by_role("radio").last).to_have_accessible_name("10 surely the same speaker")
    expect(page.get_by_role("radio", name="10 perfectly understandable")).to_have_count(1)
    expect(page.get_by_role("group", name="Recordings").get_by_role("button")).to_have_count(2)
    expect(page.locator("#spoken")).to_have_attribute("role", "status")
    said = ["A plays", "A has ended", "B plays", "B has ended", "Saved"]
    for slot, count in (("a", 2), ("b", 4)):
        listen(page, slot)
        wait_until(lambda heard=said[:count]: page.evaluate("() => spoken") == heard, "what is spoken")
    rate(page)
    page.locator("#next").click()
    expect_number(page, 2)
    expect_saved(page)
    wait_until(lambda: page.evaluate("() => spoken") == said, "what is spoken")


def test_digits_are_announced_with_their_question_and_beyond_the_scale_do_nothing(page):
    page.add_init_script(f"({SPOKEN})()")
    open_trials(page, make_session(make_study(trials=2, points=5)))
    listen(page, "a")
    said = ["A plays", "A has ended"]
    wait_until(lambda: page.evaluate("() => spoken") == said, "what is spoken")
    press(page, "6", "0", "5")
    said += ["Do A and B come from the same speaker? 5 is chosen"]
    wait_until(lambda: page.evaluate("() => spoken") == said, "what is spoken")
    expect(page.locator("input[type=radio]:checked")).to_have_count(1)


def test_keys_can_be_switched_off_for_good(page):
    open_trials(page, make_session(make_study(trials=2)))
    page.get_by_text("Keys", exact=True).click()
    page.get_by_label("Use these keys").uncheck()
    page.locator("#trial-heading").focus()
    expect_ready(page, "a")
    press(page, "a", "5")
    expect(player(page, "a")).to_have_attribute("data-state", "ready")
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    page.reload()
    expect(page.locator("#keys")).not_to_be_checked()


def test_keys_work_on_other_keyboards(page):
    """Arabic letters and digits, and French digits, by the place of the key."""
    open_trials(page, make_session(make_study(trials=2)))
    listen(page)
    for key, code in (("٧", "Digit7"), ("&", "Digit1"), ("ش", "KeyA")):
        page.evaluate(
            "([key, code]) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, code, bubbles: true }))",
            [key, code],
        )
    checked = page.locator("input[type=radio]:checked")
    expect(checked).to_have_count(2)
    assert [one.input_value() for one in checked.all()] == ["7", "1"]
    expect(player(page, "a")).to_have_attribute("data-state", "playing")


def test_focus_is_never_hidden_beneath_the_players(page):
    page.set_viewport_size({"width": 360, "height": 640})
    open_trials(page, make_session(make_study(trials=2)))
    listen(page, "a")
    rate(page, 3)
    page.locator("#next").focus()
    for _ in range(4):
        page.keyboard.press("Shift+Tab")
        top, bottom = page.evaluate(
            """() => [
              document.activeElement.getBoundingClientRect().top,
              document.getElementById("players").getBoundingClientRect().bottom,
            ]"""
        )
        assert top >= bottom - 1
