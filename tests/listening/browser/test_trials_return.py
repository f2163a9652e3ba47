"""Coming back to the page of the trials: after a reload, a crash, a way back, and from a second tab."""

import pytest
from playwright.sync_api import expect

from listening.app.models import Session
from tests.browsing import wait_until
from tests.listening import factories
from tests.listening.browser.test_trials_network import crash
from tests.listening.browser.trials import (
    answer,
    events_of,
    expect_clips,
    expect_number,
    expect_ready,
    expect_saved,
    listen,
    open_trials,
    player,
    plays_of,
    rate,
    send,
    stored,
)
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)


# How many pages and workers the browser keeps.
KEPT = """() => Promise.all([caches.keys(), navigator.serviceWorker.getRegistrations()])
  .then((found) => found.flat().length)"""


def test_page_is_there_again_without_a_connection_until_the_session_ends(new_page, session):
    page = open_trials(new_page(), session)
    answer(page)
    expect_number(page, 2)
    expect_saved(page)
    page.wait_for_function("() => navigator.serviceWorker.ready.then(({ active }) => active.state === 'activated')")
    page.context.set_offline(True)
    page.reload()
    expect(page.locator("#connecting-words")).to_be_visible()
    page.context.set_offline(False)
    expect_number(page, 2)
    page.reload()
    expect_number(page, 2)
    Session.objects.filter(pk=session.pk).update(state=Session.State.EXPIRED, step="end")
    page.reload()
    wait_until(lambda: page.evaluate(KEPT) == 0, "that nothing is kept")


@pytest.fixture
def session(transactional_db):
    return make_session(make_study(trials=4))


def trials_of(page):
    """What the portal tells of the trials ahead: their order, and the addresses of their clips."""
    state = page.request.get(page.url + "state").json()
    return [(trial["position"], [sample["address"] for sample in trial["samples"]]) for trial in state["trials"]]


def begin_second_trial(page, session):
    """Trial 1 is answered; of trial 2 both samples were heard and one question was answered."""
    open_trials(page, session)
    answer(page)
    expect_number(page, 2)
    expect_saved(page)
    listen(page)
    rate(page, 4, ["verifiability"])
    return trials_of(page)


def expect_begun(page, before):
    """The same trial with what was begun of it."""
    expect_number(page, 2)
    assert trials_of(page) == before
    expect(page.locator("input[type=radio]:checked")).to_have_count(1)
    expect(page.locator('fieldset[data-task="verifiability"] input:checked')).to_have_value("4")
    expect(player(page, "b")).to_have_attribute("data-heard", "")


def finish_second_trial(page, session):
    """The session can be gone through from where it is."""
    rate(page, 9, ["naturalness", "intelligibility"])
    send(page)
    expect_number(page, 3)
    second = {task: rating for (position, task), rating in stored(session, 6).items() if position == 2}
    assert second == {"verifiability": 4, "naturalness": 9, "intelligibility": 9}
    expect_saved(page)
    plays = session.plays.filter(trial__position=2, is_whole=True).values_list("slot", flat=True)
    assert sorted(plays) == ["a", "b"]


def test_criterion_06_reload_crash_and_closed_page_return_to_the_trial_that_was_begun(page, session):
    before = begin_second_trial(page, session)
    page.reload()
    expect_begun(page, before)
    crash(page)
    page = open_trials(page.context.new_page(), session)
    expect_begun(page, before)
    page.close()
    page = open_trials(page.context.new_page(), session)
    expect_begun(page, before)
    finish_second_trial(page, session)


def test_criterion_06_back_button_and_another_language_return_to_the_trial_that_was_begun(page, session):
    before = begin_second_trial(page, session)
    page.get_by_role("link", name="Withdraw and delete my answers").click()
    expect(page.locator("#trials")).to_have_count(0)
    page.go_back()
    expect(page.locator("#trial-panel")).to_be_visible()
    expect_begun(page, before)
    for language, code in (("Français", "fr"), ("English", "en")):
        page.get_by_role("button", name=language).click()
        expect(page.locator("html")).to_have_attribute("lang", code)
    expect(page.locator("#trial-panel")).to_be_visible()
    expect_begun(page, before)
    finish_second_trial(page, session)


def test_criterion_06_second_tab_takes_over_and_freezes_the_first(page, session):
    before = begin_second_trial(page, session)
    second = page.context.new_page()
    open_trials(second, session)
    expect(page.locator("#frozen-heading")).to_be_focused()
    expect(page.locator("#frozen-panel")).to_contain_text("It can only go on in one place, so this one has stopped.")
    expect(page.locator("#trial-panel")).to_be_hidden()
    expect_begun(second, before)
    finish_second_trial(second, session)
    page.bring_to_front()
    page.click("#here")
    expect_number(page, 3)
    expect(second.locator("#frozen-panel")).to_be_visible()
    answer(page)
    expect_number(page, 4)
    stored(session, 9)
    expect_saved(page)
    events_of(session, "taken-over", 2)


def test_criterion_06_other_device_takes_over_and_the_first_learns_it_from_the_portal(page, new_page, session):
    """Two browsers that know nothing of each other; the answer of the one that lost the session is not taken."""
    for one in (page, other := new_page()):  # heartbeats tell nothing: only the answers of each do
        one.route("**/alive", lambda route: route.fulfill(json={}))
    begin_second_trial(page, session)
    open_trials(other, session)
    expect_number(other, 2)
    expect(page.locator("#frozen-panel")).to_be_hidden()
    rate(page, 9, ["naturalness", "intelligibility"])
    send(page)
    expect(page.locator("#frozen-panel")).to_be_visible()
    stored(session, 3)
    page.click("#here")
    expect_number(page, 3)
    stored(session, 6)
    expect_saved(page)
    expect(other.locator("#frozen-panel")).to_be_hidden()  # it learns it with its answer
    answer(other)
    expect(other.locator("#frozen-panel")).to_be_visible()
    stored(session, 6)


def test_where_nothing_can_be_kept_the_page_says_so_and_the_session_goes_on(page, session):
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })")
    open_trials(page, session)
    expect_clips(page, 4)
    page.context.set_offline(True)
    answer(page)
    expect(page.locator("#saved")).to_have_text("No connection: keep this page open until it is saved")
    page.context.set_offline(False)
    stored(session, 3)
    expect_saved(page)


# Pauses as soon as something of B was heard, which no test outside of the page would be quick enough for.
PAUSE_IN_ITS_MIDST = """() => new Promise((resolve) => {
  const b = document.querySelector('#players [data-slot="b"]');
  const look = () => {
    if (b.querySelector("progress").value === 0) return setTimeout(look, 20);
    document.getElementById("pause").click();
    resolve();
  };
  b.querySelector("button").click();
  look();
})"""


def test_pause_stops_the_sound_and_the_clock_and_digits_rate_nothing(page, monkeypatch):
    page.clock.install()
    monkeypatch.setattr(factories, "SECONDS", 2)  # long enough to be met in its midst
    session = make_session(make_study(trials=2))
    open_trials(page, session)
    listen(page, "a")
    expect_ready(page, "b")
    page.evaluate(PAUSE_IN_ITS_MIDST)
    page.keyboard.press("5")
    page.clock.fast_forward("10:00")
    page.reload()
    expect(page.locator("#paused-panel")).to_be_visible()
    expect(page.locator("#trial-panel")).to_be_hidden()
    page.click("#resume")
    expect(page.locator("#trial-heading")).to_be_focused()
    expect(page.locator("fieldset[data-task] input:checked")).to_have_count(0)
    expect(player(page, "b")).not_to_have_attribute("data-heard", "")
    listen(page, "b")
    rate(page)
    send(page)
    stored(session, 3)
    plays = plays_of(session, "slot", "is_whole", "remarks")
    assert plays == [("a", True, []), ("b", False, ["stopped"]), ("b", True, [])]
    assert session.answers.first().client_ms < 600_000
    assert [len(events_of(session, kind)) for kind in ("pause", "resume")] == [1, 1]
