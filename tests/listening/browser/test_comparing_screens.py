"""Trials that compare recordings, in a browser with real sound: each screen by mouse and by keyboard."""

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from listening.stimuli.making import write_wav
from portal.core.storage import store_bytes
from tests.browsing import sideways, wait_until
from tests.listening.browser.test_right_to_left import in_arabic
from tests.listening.browser.test_trials_device import SMALL
from tests.listening.browser.test_trials_looks import ENLARGE
from tests.listening.browser.trials import (
    EAR,
    draft_of,
    expect_heard,
    expect_number,
    expect_ready,
    expect_saved,
    listen,
    open_trials,
    plays_of,
    wait_for_rows,
)
from tests.listening.comparing_factories import make_comparing_study
from tests.listening.factories import make_session
from tests.portal.factories import make_organizer

pytestmark = pytest.mark.django_db(transaction=True)
# What is heard of a tone of 410 Hz while it is changed for itself every 0.3 s, from one slot to the next.
RENDER_CHANGES = """async (address) => {
  const { Player } = await import(address);
  const rate = 16000;
  const context = new OfflineAudioContext(1, 2 * rate, rate);
  const buffer = new AudioBuffer({ length: 4 * rate, sampleRate: rate });
  const tone = Float32Array.from({ length: 4 * rate }, (_, n) => 0.5 * Math.sin((2 * Math.PI * 410 * n) / rate));
  buffer.copyToChannel(tone, 0);
  const nothing = () => {};
  const player = new Player({ started: nothing, progress: nothing, ended: nothing, silent: nothing, event: nothing });
  Object.assign(player, { context, unlock: nothing });
  for (const [place, slot] of ["x", "a", "b", "x", "a", null].entries()) {
    context.suspend(0.1 + 0.3 * place).then(() => {
      if (slot) player.play(slot, buffer, { from: 0, to: 4 });
      else player.stop("stopped");
      context.resume();
    });
  }
  return Array.from((await context.startRendering()).getChannelData(0));
}"""


def answers_of(session, count):
    """By position of the trial what is stored of its answer, once there are so many."""
    wait_for_rows(session.answers, count, "answers")
    rows = session.answers.values_list("trial__position", "rating", "data")
    return {position: data["ratings"] if data else rating for position, rating, data in rows}


def choose(page, name):
    page.locator("label.point", has=page.get_by_role("radio", name=name, exact=True)).click()


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def recording(page, name):
    return page.get_by_role("button", name=name, exact=True)


def hear(page, *names):
    """Play each recording, one after the other, until enough of it was heard; pause."""
    for name in names:
        expect(recording(page, name)).to_have_attribute("aria-disabled", "false")
        recording(page, name).click()
        expect(recording(page, name)).to_have_attribute("data-heard", "")
    page.locator("#toggle").click()


def slider(page, number):
    return page.get_by_role("slider", name=f"Rating of recording {number}", exact=True)


def expect_incomplete(page):
    expect(page.locator("#next")).to_have_attribute("aria-disabled", "true")


def test_comparison_is_rated_above_and_below_nothing_by_mouse_and_by_keyboard(page):
    session = make_session(make_comparing_study("ccr", trials=4))
    open_trials(page, session)
    expect(page.locator(".point b")).to_have_text(["+3", "+2", "+1", "0", "−1", "−2", "−3"])
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    listen(page)
    choose(page, "−3 much worse")
    page.locator("#next").click()
    for number, keys in {2: ["-", "2"], 3: ["0"], 4: ["-", "a", "3"]}.items():
        expect_number(page, number)
        listen(page)
        page.locator("#trial-heading").focus()
        press(page, *keys, "Enter")
    assert answers_of(session, 4) == {1: -3, 2: -2, 3: 0, 4: 3}


def test_reference_comes_first_and_has_its_name(page):
    session = make_session(make_comparing_study("dcr"))
    open_trials(page, session)
    expect(page.get_by_role("group", name="Recordings").get_by_role("button")).to_have_text(
        ["Play Reference", "Play A"]
    )
    listen(page, "a")
    choose(page, "5 inaudible")
    expect_incomplete(page)
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to Reference to its end first.")
    listen(page, "r")
    page.locator("#next").click()
    expect_number(page, 2)
    expect_ready(page, "ra")
    press(page, "r")
    expect_heard(page, "r")
    press(page, "a")
    expect_heard(page, "a")
    press(page, "2", "Enter")
    assert answers_of(session, 2) == {1: 5, 2: 2}
    assert {play[0] for play in plays_of(session, "slot", "is_whole")} == {"r", "a"}


def test_one_of_two_is_told_to_be_x_by_mouse_and_by_keyboard(page):
    session = make_session(make_comparing_study("abx", seconds=2.5))
    open_trials(page, session)
    expect(page.get_by_role("group", name="Recordings").get_by_role("button")).to_have_text(["X", "A", "B", "Play X"])
    expect(page.locator("#form")).to_have_attribute("disabled", "")  # before anything was heard
    hear(page, "X", "A")
    expect(page.locator("#to-hear")).to_have_text("Not heard for two seconds yet: B")
    choose(page, "B")
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please listen to B for at least two seconds first.")
    hear(page, "B")
    page.locator("#next").click()

    expect_number(page, 2)
    expect(recording(page, "B")).to_have_attribute("aria-disabled", "false")
    for key in ("x", "a", "b"):
        expect(recording(page, key.upper())).to_have_attribute("aria-disabled", "false")
        press(page, key)
        expect(recording(page, key.upper())).to_have_attribute("aria-pressed", "true")
        expect(recording(page, key.upper())).to_have_attribute("data-heard", "")
    press(page, " ")
    expect(recording(page, "B")).to_have_attribute("aria-pressed", "false")
    press(page, " ")
    expect(recording(page, "B")).to_have_attribute("aria-pressed", "true")
    press(page, "1", "Enter")
    assert answers_of(session, 2) == {1: 2, 2: 1}
    plays = plays_of(session, "trial__position", "slot", "is_whole", "remarks")
    assert sorted(play[:2] for play in plays) == [(trial, slot) for trial in (1, 2) for slot in "abx"]
    assert [remarks for *_, remarks in plays] == [[]] * 6
    assert min(heard for (heard,) in plays_of(session, "heard_ms")) >= 1900


def test_right_answer_to_practice_stands_over_the_next_trial(page):
    study = make_comparing_study("abx", seconds=2.5)
    study.presentations.filter(key="trial-1").update(purpose="practice", expected={"identity": [1, 1]})
    open_trials(page, make_session(study))
    hear(page, "X", "A", "B")
    choose(page, "B")
    page.locator("#next").click()
    expect(page.locator("#notice")).to_have_text("Not quite: the right answer is A.")
    hear(page, "X", "A", "B")
    choose(page, "A")
    page.locator("#next").click()
    expect(page.locator("#notice")).to_be_hidden()


def test_every_recording_gets_a_slider_by_mouse_and_by_keyboard(page):
    session = make_session(make_comparing_study("mushra"))
    open_trials(page, session)
    for number in (1, 2, 3):
        expect(slider(page, number)).to_have_attribute("aria-valuetext", "not rated yet")
    slider(page, 1).click(force=True)  # before it was heard
    expect(slider(page, 1)).to_have_attribute("aria-valuetext", "not rated yet")
    hear(page, "Reference", "Recording 1", "Recording 2", "Recording 3")
    expect(page.locator("#to-hear")).to_be_empty()
    slider(page, 1).click()  # in its middle
    expect(slider(page, 1)).to_have_attribute("aria-valuetext", "50, Fair")
    width = slider(page, 2).bounding_box()["width"]
    slider(page, 2).click(position={"x": width - 1, "y": 20})
    expect(slider(page, 2)).to_have_attribute("aria-valuetext", "100, Excellent")
    expect_incomplete(page)
    page.locator("#next").click(force=True)
    expect(page.locator("#missing")).to_have_text("Please rate recording 3.")
    slider(page, 3).click(position={"x": 1, "y": 20})
    page.locator("#next").click()

    expect_number(page, 2)
    for key, name in {"r": "Reference", "1": "Recording 1", "2": "Recording 2", "3": "Recording 3"}.items():
        expect(recording(page, name)).to_have_attribute("aria-disabled", "false")
        press(page, key)
        expect(recording(page, name)).to_have_attribute("data-heard", "")
        if key == "1":
            expect(slider(page, 1)).to_be_focused()
            press(page, "ArrowRight", "ArrowRight")
        elif key == "2":
            press(page, "End")
        elif key == "3":
            press(page, "Home", " ")
    expect(recording(page, "Recording 3")).to_have_attribute("aria-pressed", "false")
    press(page, "Enter")
    assert answers_of(session, 2) == {1: {"1": 50, "2": 100, "3": 0}, 2: {"1": 52, "2": 100, "3": 0}}
    slots = [slot for _, slot in sorted(plays_of(session, "trial__position", "slot"))]
    assert slots == ["1", "2", "3", "r"] * 2


def tone_of(hertz, seconds=None, *, rate_hz=16000, sides=(1,)):
    """A stored tone, on both sides or on one of two."""
    wave = 8000 * np.sin(2 * math.pi * hertz * np.arange(round((seconds or 3) * rate_hz)) / rate_hz)
    content = write_wav(np.squeeze(np.int16(wave[:, None] * np.asarray(sides))), rate_hz)
    return {"file": store_bytes(content, ".wav"), "bytes": len(content), "duration_s": seconds or 3}


def test_change_from_one_recording_to_another_has_no_gap_and_no_jump(page):
    """All recordings are one tone: what is heard goes on as that tone, sample by sample, whatever is chosen."""
    open_trials(page, make_session(make_comparing_study("abx")))
    module = page.locator('link[href*="listening/switching"][rel=modulepreload]').get_attribute("href")
    heard = np.array(page.evaluate(RENDER_CHANGES, module))
    is_loud = np.flatnonzero(np.abs(heard) > 0.01)
    assert (is_loud[0], is_loud[-1]) == (pytest.approx(0.13 * 16000, abs=200), pytest.approx(1.6 * 16000, abs=200))
    steady = heard[is_loud[0] + 200 : is_loud[-1] - 200]  # without the fades at both ends
    # Of a tone each sample follows from the two before it, and it is as loud at any time.
    phase = 2 * math.pi * 410 / 16000
    assert np.abs(steady[2:] - 2 * math.cos(phase) * steady[1:-1] + steady[:-2]).max() < 0.001
    loudness = np.hypot(steady[1:-1], (steady[2:] - steady[:-2]) / (2 * math.sin(phase)))
    assert loudness.min() > 0.98 * loudness.max()


def test_place_is_kept_and_a_part_is_repeated(page):
    session = make_session(make_comparing_study("abx", seconds=4.0))
    open_trials(page, session)
    position = page.get_by_role("slider", name="Position")
    page.get_by_text("Repeat a part").click()
    page.get_by_role("slider", name="From").fill("1")
    page.get_by_role("slider", name="To").fill("2")
    expect(position).to_have_value("1")
    places = []

    def began_anew():
        places.append(float(position.input_value()))
        return len(places) > 1 and places[-1] < places[-2]

    for name in "XABX":
        expect(recording(page, name)).to_have_attribute("aria-disabled", "false")
        recording(page, name).click()
        wait_until(began_anew, "the part begins anew")
    assert all(0.99 <= place <= 2.01 for place in places)
    press(page, " ")
    expect(recording(page, "X")).to_have_attribute("aria-pressed", "false")
    stopped = position.input_value()
    recording(page, "B").click()
    expect(position).not_to_have_value(stopped)
    expect(position).to_have_attribute("aria-valuetext", re.compile(r"^\d\.\d s$"))
    position.fill("1.5")
    expect(recording(page, "B")).to_have_attribute("aria-pressed", "true")


def test_recordings_are_played_at_the_rate_and_on_the_sides_of_the_study(page):
    """A tone of 10 kHz in the left channel of 48 kHz: at 16 kHz nobody could hear it."""
    study = make_comparing_study(
        "dcr",
        rate_hz=48000,
        channels=2,
        make=lambda _, seconds: tone_of(10_000, seconds or 0.4, rate_hz=48000, sides=(1, 0)),
    )
    page.add_init_script(f"({EAR})()")
    open_trials(page, make_session(study))
    listen(page, "ra")
    ear = page.evaluate("() => ({ ...ear, contexts: ear.contexts.map(({ sampleRate }) => sampleRate) })")
    assert ear["contexts"] == [48000]
    assert ear["left"] > 100
    assert ear["right"] < ear["left"] / 1000


def test_sliders_outlive_a_reload_and_a_lost_connection(page):
    session = make_session(make_comparing_study("mushra"))
    open_trials(page, session)
    hear(page, "Reference", "Recording 1", "Recording 2", "Recording 3")
    slider(page, 1).fill("30")
    slider(page, 3).fill("70")
    assert draft_of(page)["kept"] == {"1": 30, "3": 70}
    page.reload()
    expect(slider(page, 1)).to_have_attribute("aria-valuetext", "30, Poor")
    expect(slider(page, 2)).to_have_attribute("aria-valuetext", "not rated yet")
    expect(slider(page, 3)).to_have_value("70")
    expect(page.locator("#to-hear")).to_be_empty()
    page.context.set_offline(True)
    slider(page, 2).fill("10")
    page.locator("#next").click()
    expect_number(page, 2)
    expect(page.locator("#saved")).to_have_attribute("data-state", "kept")
    page.context.set_offline(False)
    expect_saved(page)
    assert answers_of(session, 1) == {1: {"1": 30, "2": 10, "3": 70}}


@pytest.mark.parametrize("preset", ["ccr", "abx", "mushra"])
def test_screens_pass_the_check(page, check_page, preset):
    """Wide, on a phone, at 240 px and with text of twice the size; nothing is out of sight to the side."""
    open_trials(page, make_session(make_comparing_study(preset)))
    if preset == "mushra":
        hear(page, "Reference", "Recording 1", "Recording 2")
        slider(page, 1).fill("64")
    elif preset == "abx":
        hear(page, "X", "A")
        choose(page, "A")
    check_page(page, f"comparing-{preset}")
    page.evaluate("() => document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert page.evaluate(SMALL) == []
    for width, percent in ((1280, 200), (360, 200), (240, 100)):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(ENLARGE, percent)
        assert sideways(page) == []


def test_screens_are_mirrored_in_arabic(page, check_page):
    study = in_arabic(make_comparing_study("mushra", languages=["ar"]))
    open_trials(page, make_session(study, language="ar"))
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    check_page(page, "arabic-mushra")


def test_preview_shows_the_screen(new_page, check_page):
    study = make_comparing_study("mushra", state="draft")
    organizer = make_organizer()
    study.created_by = organizer
    study.save()
    page = new_page(organizer)
    page.goto(f"{study.get_absolute_url()}questions/en/")
    expect(page.get_by_text("Reference", exact=True).first).to_be_visible()
    expect(page.locator(".slider")).to_have_count(3)
    check_page(page, "preview-mushra")
