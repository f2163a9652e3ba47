"""Every state of the trial page at every width, in every scheme, with high contrast and from right to left."""

import re

import pytest
from playwright.sync_api import expect

from tests.listening.browser.test_trials_network import expect_broken
from tests.listening.browser.trials import listen, open_trials, player, rate
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)


def test_practice_of_a_trial_with_a_limit_passes_the_check(page, check_page):
    study = make_study(trials=3, plays_at_most=2, pages="separate")
    study.presentations.update(purpose="practice")
    open_trials(page, make_session(study))
    expect(page.locator("#practice")).to_be_visible()
    expect(page.locator("#trial-heading")).to_have_text("Practice trial 1 of 3 · question 1 of 3")
    listen(page, "a")
    expect(player(page, "a").locator("[data-note]")).to_have_text("heard · plays left: 1")
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to B to its end first.")
    check_page(page, "trial-separate")


# The answers of the first scale by the rows that they stand in; those that reach out of the window are left out.
ROWS = """() => {
  const rows = new Map();
  for (const point of document.querySelector(".scale").querySelectorAll(".point")) {
    const { top, left, right } = point.getBoundingClientRect();
    if (left >= 0 && right <= innerWidth) rows.set(top, [...(rows.get(top) ?? []), parseInt(point.textContent)]);
  }
  return [...rows.values()];
}"""
ENLARGE = "(percent) => document.documentElement.style.setProperty('font-size', `${percent}%`)"


def test_all_answers_of_a_scale_are_in_sight_in_equal_rows_on_a_phone_and_with_large_text(page):
    open_trials(page, make_session(make_study(trials=2)))
    found = {}
    for width, percent in ((1280, 100), (360, 100), (360, 200), (240, 100), (240, 200)):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(ENLARGE, percent)
        found[width, percent] = page.evaluate(ROWS)
    one_row, column = [[*range(1, 11)]], [[number] for number in range(1, 11)]
    two_rows = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert [*found.values()] == [one_row, two_rows, column, column, column]


def test_panels_pass_the_check(page, check_page):
    session = make_session(make_study(trials=4))
    open_trials(page, session)
    page.click("#pause")
    expect(page.locator("#paused-heading")).to_be_focused()
    check_page(page, "trial-paused")
    page.click("#resume")
    other = page.context.new_page()
    open_trials(other, session)
    expect(page.locator("#frozen-heading")).to_be_focused()
    page.bring_to_front()
    check_page(page, "trial-frozen")


def test_broken_recording_passes_the_check(page, check_page):
    page.clock.install()
    session = make_session(make_study(trials=4))
    page.route(re.compile("/clips/"), lambda route: route.fulfill(status=200, content_type="audio/wav", body="<html>"))
    open_trials(page, session)
    expect_broken(page)
    check_page(page, "trial-broken")


@pytest.mark.parametrize("media", [{"forced_colors": "active"}, {"contrast": "more"}], ids=["forced", "contrast"])
def test_choice_is_seen_in_high_contrast(page, media):
    open_trials(page, make_session(make_study(trials=2)))
    page.emulate_media(**media)
    listen(page, "a")
    rate(page, 10)
    page.keyboard.press("Tab")
    chosen, other = (
        page.locator(".point input[value='10'] + span").first,
        page.locator(".point input[value='9'] + span"),
    )
    background = "element => getComputedStyle(element).backgroundColor"
    assert chosen.evaluate(background) != other.first.evaluate(background)
