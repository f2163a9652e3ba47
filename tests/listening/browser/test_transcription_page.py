"""Writing down what is heard: only what is typed counts, and two plays are enough."""

import pytest
from playwright.sync_api import expect

from tests.listening.browser.trials import (
    events_of,
    expect_heard,
    expect_number,
    expect_ready,
    expect_saved,
    open_trials,
    player,
    wait_for_rows,
)
from tests.listening.factories import make_session
from tests.listening.form_factories import make_transcription_study

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session():
    return make_session(make_transcription_study())


def text_of(page):
    return page.get_by_label("Write down what you hear")


def only_answer(session):
    """The answer, once the portal has it."""
    wait_for_rows(session.answers, 1, "answer")
    return session.answers.get()


def refusal(page):
    return page.locator('[data-part="refused"]')


def hear(page, times=1):
    for number in range(1, times + 1):
        expect_ready(page, "a")
        player(page, "a").locator("button").click()
        expect_heard(page, "a")
        expect(player(page, "a").locator("[data-note]")).to_contain_text(f"plays left: {2 - number}")
        expect(player(page, "a")).to_have_attribute("data-state", "ready" if number < 2 else "used-up")
        expect(player(page, "a").locator("[data-label]")).to_have_text("Play" if number < 2 else "No plays left")


def test_criterion_21_what_is_typed_by_keyboard_alone_is_stored_as_it_is(page, session, problems):
    open_trials(page, session)
    expect_ready(page, "a")
    page.keyboard.press("a")
    expect_heard(page, "a")
    for _ in range(10):
        page.keyboard.press("Tab")
        if text_of(page).evaluate("element => element === document.activeElement"):
            break
    page.keyboard.type("  He said: a bad apple, 3 times\nOh  ")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#next")).to_be_focused()
    page.keyboard.press("Enter")
    expect_number(page, 2)
    answer = only_answer(session)
    expect_saved(page)
    assert (answer.task, answer.text) == ("transcription", "  He said: a bad apple, 3 times\nOh  ")
    assert answer.data == {"nothing": False}
    assert session.plays.count() == 1
    assert problems[page] == []


def test_a_sample_plays_twice_and_no_more_also_after_a_reload(page, session):
    open_trials(page, session)
    hear(page, times=2)
    page.reload()
    expect(player(page, "a")).to_have_attribute("data-state", "used-up")
    player(page, "a").locator("button").click(force=True)
    page.keyboard.press("a")
    text_of(page).fill("words")
    page.locator("#next").click()
    expect_number(page, 2)
    only_answer(session)
    assert session.plays.count() == 2


def test_an_empty_answer_must_be_said(page, session):
    open_trials(page, session)
    hear(page)
    page.locator("#next").click(force=True)
    missing = page.locator(".field[data-missing] + #missing")
    expect(missing).to_have_text("Write what you heard, or say that you understood nothing.")
    expect(text_of(page)).to_be_focused()
    text_of(page).fill("   ")
    expect(page.locator("#next")).to_have_attribute("aria-disabled", "true")
    assert session.answers.count() == 0
    page.get_by_label("I understood nothing").check()
    page.locator("#next").click()
    expect_number(page, 2)
    answer = only_answer(session)
    expect_saved(page)
    assert (answer.text, answer.data) == ("", {"nothing": True})


def test_saying_that_nothing_was_understood_can_be_taken_back_and_what_was_begun_outlives_a_reload(page, session):
    open_trials(page, session)
    expect(text_of(page)).to_be_disabled()  # before something was heard
    hear(page)
    text_of(page).fill("a bad apple")
    page.get_by_label("I understood nothing").check()
    expect(text_of(page)).to_have_value("")
    expect(text_of(page)).not_to_be_editable()
    page.get_by_label("I understood nothing").uncheck()
    expect(text_of(page)).to_have_value("a bad apple")
    expect(text_of(page)).to_be_editable()
    page.reload()
    expect(text_of(page)).to_have_value("a bad apple")


def test_pasting_and_dropping_are_refused_and_noted_without_their_content(new_page, session):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    open_trials(page, session)
    hear(page)
    page.evaluate("navigator.clipboard.writeText('pasted secret')")
    text_of(page).press_sequentially("own words")
    text_of(page).press("Control+v")
    expect(refusal(page)).to_contain_text("Nothing can be pasted here")
    expect(text_of(page)).to_have_value("own words")
    text_of(page).evaluate(
        """area => {
          const data = new DataTransfer();
          data.setData("text", "dropped");
          area.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    expect(refusal(page)).to_contain_text("Nothing can be dropped here")
    text_of(page).press_sequentially("!")
    expect(refusal(page)).to_be_hidden()
    page.locator("#next").click()
    expect_number(page, 2)
    assert only_answer(session).text == "own words!"
    assert [event["characters"] for event in events_of(session, "paste-refused")] == [13]
    assert [event["characters"] for event in events_of(session, "drop-refused")] == [7]
    assert not any("secret" in str(event.data) for event in session.events.all())


def test_corrections_are_off_and_noted_where_a_browser_makes_them_all_the_same(page, session):
    open_trials(page, session)
    for name, value in {
        "autocorrect": "off",
        "autocapitalize": "off",
        "spellcheck": "false",
        "autocomplete": "off",
    }.items():
        expect(text_of(page)).to_have_attribute(name, value)
    hear(page)
    text_of(page).press_sequentially("teh")
    is_refused = text_of(page).evaluate(
        """area => {
          const what = { inputType: "insertReplacementText", data: "the", cancelable: true, bubbles: true };
          return !area.dispatchEvent(new InputEvent("beforeinput", what));
        }"""
    )
    assert is_refused
    expect(refusal(page)).to_contain_text("The correction was not taken")
    text_of(page).evaluate(
        """area => {
          area.value = "the";
          area.dispatchEvent(new InputEvent("input", { inputType: "insertReplacementText", bubbles: true }));
        }"""
    )
    page.locator("#next").click()
    expect_number(page, 2)
    expect_saved(page)
    events_of(session, "correction-refused")
    events_of(session, "correction-done")


def test_transcription_page_passes_at_every_width_and_scheme(page, session, check_page):
    open_trials(page, session)
    hear(page)
    text_of(page).fill("a bad apple")
    text_of(page).evaluate(
        "area => area.dispatchEvent(new ClipboardEvent('paste', { cancelable: true, bubbles: true }))"
    )
    expect(refusal(page)).to_contain_text("Nothing can be pasted here")
    check_page(page, "transcription")
