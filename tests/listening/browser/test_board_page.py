"""The board: placed by pointer, by taps, by keys and by numbers, with every move and play noted."""

import re

import pytest
from playwright.sync_api import expect

from listening.app.models import Session
from tests.browsing import wait_until
from tests.listening.browser.trials import expect_number, expect_saved, open_trials
from tests.listening.factories import make_session
from tests.listening.form_factories import SAMPLES, make_board_study

pytestmark = pytest.mark.django_db(transaction=True)
SLOTS = [str(number) for number in range(1, SAMPLES + 1)]


def token(page, slot):
    return page.locator(f'.board-token[data-slot="{slot}"]')


def row(page, slot):
    return page.locator(f'[data-part="list"] > [data-slot="{slot}"]')


def board_of(session, position=1):
    """The board of a trial, once the portal has it."""
    return wait_until(session.answers.filter(trial__position=position).first, "a board").data


def expect_ready(page, slots):
    """Their recordings have come: what is asked for before plays nothing."""
    for slot in slots:
        expect(token(page, slot)).to_have_attribute("data-state", re.compile("^(not-)?heard$"))


def hear(page, slots=SLOTS):
    """Choose and hear each sample to its end."""
    for slot in slots:
        expect_ready(page, [slot])
        token(page, slot).click()
        expect_heard(page, slot)


def expect_heard(page, slot):
    """The page itself waits for it, which knows at once."""
    page.evaluate(
        """(slot) => new Promise((resolve, reject) => {
          const end = performance.now() + 60_000;
          const look = () => {
            const { state } = document.querySelector(`.board-token[data-slot="${slot}"]`).dataset;
            if (state === "heard") resolve();
            else if (performance.now() > end) reject(new Error(state));
            else setTimeout(look, 15);
          };
          look();
        })""",
        slot,
    )


def go_to(page, target, *, most=80):
    """Press the tab key until the focus is there."""
    for _ in range(most):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"the tab key does not lead to {target}")


def in_map(page, x, y):
    """Place of the window where the middle of a sample at x and y is."""
    box = page.locator(".board-map").bounding_box()
    size = page.locator(".board-token").first.bounding_box()["width"]
    inner = box["width"] - 4 - size, box["height"] - 4 - size
    return box["x"] + 2 + size / 2 + x * inner[0], box["y"] + 2 + size / 2 + y * inner[1]


def drag(page, slot, x, y):
    page.locator(".board-map").evaluate("map => map.scrollIntoView({ block: 'end' })")
    box = token(page, slot).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(*in_map(page, 0.5, 0.9), steps=4)
    page.mouse.move(*in_map(page, x, y), steps=4)
    page.mouse.up()


def test_board_is_placed_by_dragging_and_every_move_and_play_is_stored(page, problems):
    session = make_session(make_board_study())
    open_trials(page, session)
    hear(page)
    for number, slot in enumerate(SLOTS):
        drag(page, slot, 0.15 * number, 0.3)
    drag(page, "1", 0.8, 0.8)
    page.get_by_label("How many different speakers").select_option("3")
    page.locator("#next").click()
    expect_number(page, 2)
    board = board_of(session)
    expect_saved(page)
    assert board["speakers"] == 3
    assert [(move["slot"], move["by"]) for move in board["moves"]] == [(slot, "drag") for slot in [*SLOTS, "1"]]
    first = board["samples"]["1"]
    assert first["first"] == pytest.approx([0, 0.3], abs=0.01)
    assert first["at"] == pytest.approx([0.8, 0.8], abs=0.01)
    assert first["moves"] == 2
    assert 0 < first["first_ms"] < first["last_ms"]
    assert board["samples"]["3"]["at"] == pytest.approx([0.3, 0.3], abs=0.01)
    assert all(sample["plays"] == 1 for sample in board["samples"].values())
    assert session.plays.filter(is_whole=True).count() == len(SLOTS)
    assert problems[page] == []


def test_criterion_21_board_is_done_without_drag_by_choosing_and_tapping(new_page, problems):
    page = new_page(has_touch=True)
    page.set_viewport_size({"width": 360, "height": 640})
    session = make_session(make_board_study(boards=1))
    open_trials(page, session)
    for number, slot in enumerate(SLOTS):
        expect_ready(page, [slot])
        token(page, slot).tap()
        expect_heard(page, slot)
        expect(token(page, slot)).to_have_attribute("aria-pressed", "true")
        page.locator(".board-map").scroll_into_view_if_needed()
        page.touchscreen.tap(*in_map(page, 0.19 * number, 0.5))
        expect(page.locator(".board-map").locator(f'[data-slot="{slot}"]')).to_have_count(1)
    page.get_by_label("How many different speakers").select_option("2")
    page.locator("#next").tap()
    expect(page.locator("#trials")).to_have_count(0)
    assert {move["by"] for move in board_of(session)["moves"]} == {"tap"}
    assert board_of(session)["samples"]["3"]["at"] == pytest.approx([0.38, 0.5], abs=0.01)
    assert problems[page] == []


def test_criterion_21_board_is_done_by_keyboard_alone(page, problems):
    session = make_session(make_board_study(boards=1))
    open_trials(page, session)
    for number, slot in enumerate(SLOTS):
        expect_ready(page, [slot])
        go_to(page, token(page, slot))
        page.keyboard.press("Enter")
        expect_heard(page, slot)
        page.keyboard.press("ArrowUp")
        for _ in range(number):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowDown")
        expect(token(page, slot)).to_be_focused()
        expect(token(page, slot)).to_have_accessible_name(f"Sample {slot}, {50 + 5 * number} across, 51 down, heard")
        expect(page.locator("#spoken")).to_have_text(f"Sample {slot}, {50 + 5 * number} across, 51 down, heard")
    go_to(page, page.get_by_label("How many different speakers"))
    page.keyboard.press("2")
    go_to(page, page.locator("#next"))
    page.keyboard.press("Enter")
    expect(page.locator("#trials")).to_have_count(0)
    board = board_of(session)
    assert board["speakers"] == 2
    assert [sample["at"] for sample in board["samples"].values()] == [[0.5 + 0.05 * n, 0.51] for n in range(SAMPLES)]
    assert {move["by"] for move in board["moves"]} == {"keys"}
    assert Session.objects.get(pk=session.pk).state == Session.State.FINISHED
    assert problems[page] == []


def test_criterion_21_board_is_done_by_the_list_with_coordinates(page, problems):
    session = make_session(make_board_study(boards=1, board_groups=True))
    open_trials(page, session)
    go_to(page, page.get_by_text("All samples as a list"))
    page.keyboard.press("Enter")
    for number, slot in enumerate(SLOTS):
        expect_ready(page, [slot])
        go_to(page, row(page, slot).get_by_role("button", name=f"Play sample {slot}"))
        page.keyboard.press("Enter")
        expect_heard(page, slot)
        go_to(page, row(page, slot).get_by_label(f"Sample {slot} across, 0 to 100"))
        page.keyboard.type(str(10 * number))
        go_to(page, row(page, slot).get_by_label(f"Sample {slot} down, 0 to 100"))
        page.keyboard.type("33.3")
        page.keyboard.press("Enter")
        expect(page.locator("#spoken")).to_contain_text(f"Sample {slot}, {10 * number} across, 33.3 down")
        go_to(page, row(page, slot).get_by_label(f"Group of sample {slot}"))
        page.keyboard.press("AB"[number % 2])
    go_to(page, page.get_by_label("How many different speakers"))
    page.keyboard.press("2")
    go_to(page, page.locator("#next"))
    page.keyboard.press("Enter")
    expect(page.locator("#trials")).to_have_count(0)
    board = board_of(session)
    assert [sample["at"] for sample in board["samples"].values()] == [[n / 10, 0.333] for n in range(SAMPLES)]
    assert [sample["group"] for sample in board["samples"].values()] == ["A", "B"] * 2
    assert {move["by"] for move in board["moves"]} == {"list"}
    assert problems[page] == []


def test_board_is_sent_only_when_all_is_heard_and_placed_and_the_speakers_are_told(page):
    session = make_session(make_board_study(boards=1))
    open_trials(page, session)
    send, missing = page.locator("#next"), page.locator("#missing")
    expect(send).to_have_attribute("aria-disabled", "true")
    send.click(force=True)
    expect(page.locator(".board-tray[data-missing] + #missing")).to_have_text("Still to listen to: 1, 2, 3, 4.")
    hear(page)
    expect(missing).to_have_text("")
    send.click(force=True)
    expect(page.locator(".board-tray[data-missing] + #missing")).to_have_text("Still to put on the board: 1, 2, 3, 4.")
    for slot in SLOTS:
        token(page, slot).press("ArrowLeft")
    send.click(force=True)
    expect(page.locator(".board-speakers[data-missing] + #missing")).to_have_text(
        "Say how many different speakers you hear."
    )
    assert session.answers.count() == 0
    page.get_by_label("How many different speakers").select_option("1")
    expect(send).to_have_attribute("aria-disabled", "false")
    send.click()
    expect(page.locator("#trials")).to_have_count(0)
    assert session.answers.count() == 1


def test_a_reload_keeps_what_lies_on_the_board(page):
    session = make_session(make_board_study(boards=1, board_groups=True))
    open_trials(page, session)
    hear(page, ["1", "2"])
    token(page, "1").press("ArrowLeft")
    token(page, "1").press("ArrowLeft")
    token(page, "1").press("b")
    page.reload()
    expect(page.locator("#trial-panel")).to_be_visible()
    expect(token(page, "1")).to_have_accessible_name("Sample 1, 45 across, 50 down, group B, heard")
    expect(token(page, "2")).to_have_accessible_name("Sample 2, not on the board yet, heard")
    hear(page, SLOTS[2:])
    for slot in SLOTS[1:]:
        token(page, slot).press("ArrowDown")
        token(page, slot).press("a")
    page.get_by_label("How many different speakers").select_option("2")
    page.locator("#next").click()
    expect(page.locator("#trials")).to_have_count(0)
    board = board_of(session)
    assert [move["slot"] for move in board["moves"]] == ["1", *SLOTS[:1], *SLOTS[1:]]
    assert [sample["group"] for sample in board["samples"].values()] == ["B", *"AAA"]


def test_a_finger_drags_a_sample_without_scrolling_the_page(new_page):
    page = new_page(has_touch=True)
    page.set_viewport_size({"width": 360, "height": 640})
    open_trials(page, make_session(make_board_study(boards=1)))
    expect_ready(page, SLOTS)
    page.locator(".board-map").evaluate("map => map.scrollIntoView({ block: 'end' })")
    scrolled = page.evaluate("scrollY")
    box = token(page, "2").bounding_box()
    finger = page.context.new_cdp_session(page)
    places = [(box["x"] + 22, box["y"] + 22), in_map(page, 0.5, 0.1), in_map(page, 0.5, 0.5), in_map(page, 0.75, 0.25)]
    for kind, (x, y) in zip(["touchStart", "touchMove", "touchMove", "touchMove"], places, strict=True):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator(".board-map").locator('[data-slot="2"]')).to_have_accessible_name(
        re.compile(r"^Sample 2, (74\.|75)\S* across, (24\.|25)\S* down")
    )
    assert page.evaluate("scrollY") == scrolled
    expect(token(page, "2")).to_have_attribute("data-state", "not-heard")


# Before a page begins: as if sample 1 had been moved to and fro until this device kept so many moves.


@pytest.mark.parametrize(("dimensions", "samples"), [pytest.param(2, 16, marks=pytest.mark.slow), (1, 8)])
def test_criterion_21_board_page_passes_at_every_width_and_scheme(page, check_page, dimensions, samples):
    study = make_board_study(boards=1, samples=samples, board_dimensions=dimensions, board_groups=True)
    open_trials(page, make_session(study))
    check_page(page, f"board-{dimensions}-begin")
    for number in range(1, samples - 2):
        token(page, str(number)).press("ArrowUp")
        page.locator(".board-list").evaluate("list => (list.open = true)")
        field = row(page, str(number)).locator("input").first
        field.fill(str((37 * number) % 101))
        field.press("Enter")
        if dimensions == 2:
            field = row(page, str(number)).locator("input").last
            field.fill(str((61 * number) % 101))
            field.press("Enter")
        row(page, str(number)).locator("select").select_option("ABCDEFG"[number % 7])
    hear(page, ["1"])
    check_page(page, f"board-{dimensions}")
