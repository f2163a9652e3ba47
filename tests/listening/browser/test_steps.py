"""The pages before and after the trials in a real browser: by touch, by keyboard, without cookies, in a frame."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from listening.app.models import Session
from listening.app.sessions.block_leases import end_session
from listening.app.studies.settings import DEFAULT_QUESTIONNAIRE, DEFAULT_SCREENING
from tests.browsing import watch_page
from tests.listening.factories import make_session, make_study
from tests.listening.visits import WORKER, link_of

pytestmark = pytest.mark.django_db(transaction=True)
FRAME = 'width="400" height="600" allow="local-network-access"'
PHONE = {"width": 360, "height": 640}
EVERYTHING = DEFAULT_SCREENING | {"headphones": "both", "headphones_gate": "gate"}
AFTER_P808 = {"bandwidth": "flag", "environment": "gate"}
ABOUT = ("30 to 39", "I would rather not say", "No")
# Heights of what a finger has to hit; links within a sentence are not meant.
SMALL_TARGETS = """() => [...document.querySelectorAll("button, select, .choice, input[type=text], .foot a")]
  .filter((one) => one.checkVisibility() && !one.ariaHidden)
  .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
  .filter(([, box]) => box.height < 44 || box.width < 44)
  .map(([name, box]) => `${name} ${box.width}x${box.height}`)"""

# Each round of a headphone check lasts seconds, and has to be played to its end.
TWENTY_TIMES_AS_FAST = """const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function () { this.playbackRate.value = 20; start.call(this); };"""
# How much of a sound is left out at its end.
UNPLAYED = """const { start } = AudioBufferSourceNode.prototype;
  AudioBufferSourceNode.prototype.start = function (when, from, duration) {
    window.unplayed_s = this.buffer.duration - duration;
    start.call(this, when, from, duration);
  };"""


def make_full(**fields):
    return make_study(**{"screening": EVERYTHING, "questionnaire": DEFAULT_QUESTIONNAIRE} | fields)


def latest():
    return Session.objects.latest("pk")


def answers_to_open_test():
    return latest().screening_results.get(is_passed=None).secret["right"]


def continue_(page):
    with page.expect_navigation():
        page.locator("main form .button.wide").click()


def answer_about(page):
    for label in ABOUT:
        page.get_by_label(label, exact=True).first.check()
    page.get_by_label("I would rather not say").nth(1).check()
    page.get_by_label("No", exact=True).check()
    page.get_by_label("Your native language").select_option("en")
    if page.locator("[name=headphones]").count():  # where none are checked
        page.get_by_label("Yes, headphones or earphones").check()


def hear_all(page):
    """As if every sound had been played to its end, which takes half a minute: fetched, and the answers offered."""
    page.evaluate(
        """() => Promise.all([...document.querySelectorAll("[data-sound]")].map((one) => fetch(one.dataset.sound)))
        .then(() => document.querySelectorAll("input[type=radio]").forEach((one) => { one.disabled = false; }))"""
    )


def choose(page, answers):
    hear_all(page)
    for place, answer in enumerate(answers, 1):
        page.locator(f"#field-answer{place} input[value='{answer}']").check()


def play(page, button):
    button.click()
    button.locator("xpath=following-sibling::p[1]").get_by_text("Played").wait_for()


def test_criterion_19_and_22_steps_by_touch_on_a_phone(new_page, check_page, live_server):
    page = new_page(has_touch=True)
    page.add_init_script(UNPLAYED)
    page.set_viewport_size(PHONE)
    study = make_full(screening=EVERYTHING | AFTER_P808)
    page.goto(link_of(study))
    check_page(page, "listen-welcome")
    page.get_by_role("button", name="Begin").dblclick()
    page.wait_for_selector("input[name=agrees]")
    assert Session.objects.count() == 1
    check_page(page, "listen-consent")
    page.get_by_label("I have read this and agree").check()
    continue_(page)
    check_page(page, "listen-questions")
    continue_(page)
    expect(page.locator(".errorlist")).to_have_count(4)
    answer_about(page)
    continue_(page)
    check_page(page, "listen-sound")
    assert page.evaluate(SMALL_TARGETS) == []
    fetched = []
    page.on("request", lambda request: fetched.append(request.url) if "/sounds/" in request.url else None)
    button = page.get_by_role("button", name="Test my sound")
    button.dblclick()
    button.locator("xpath=following-sibling::p[1]").get_by_text("Played").wait_for()
    assert len(fetched) == 1
    assert page.evaluate("unplayed_s") > 1  # of the silence that makes all files equally long
    choose(page, answers_to_open_test())
    continue_(page)
    assert latest().device["context_state"] == "running"
    check_page(page, "listen-huggins")
    assert page.evaluate(SMALL_TARGETS) == []
    play(page, page.get_by_role("button", name="Play round 1"))
    wrong = [one % 3 + 1 for one in answers_to_open_test()]
    choose(page, wrong)
    continue_(page)
    expect(page.get_by_text("attempt 2 of 2")).to_be_visible()
    page.get_by_role("button", name="Français").click()
    page.get_by_role("heading", name="Vérification du casque").wait_for()
    choose(page, answers_to_open_test())
    continue_(page)
    for kind in ("woods", "bandwidth", "environment"):
        check_page(page, f"listen-{kind}")
        assert page.evaluate(SMALL_TARGETS) == []
        choose(page, answers_to_open_test())
        continue_(page)
    check_page(page, "listen-role-play")
    scores = list(latest().screening_results.values_list("kind", "attempt", "score", "is_passed"))
    assert scores[:3] == [("sound", 1, 2, True), ("huggins", 1, 0, False), ("huggins", 2, 6, True)]
    assert scores[3:] == [("woods", 1, 6, True), ("bandwidth", 1, 5, True), ("environment", 1, 4, True)]
    with page.expect_navigation():
        page.get_by_role("button", name="J'ai lu ce texte").click()
    assert latest().step == "trials"


def press_to(page, name, key="Tab"):
    """Go on with the keyboard until an element of this name or value has the focus."""
    for _ in range(60):
        page.keyboard.press(key)
        focused = page.evaluate(
            "() => { const one = document.activeElement; return [one.innerText, one.value, one.name].join('|'); }"
        )
        if name in focused:
            return
    raise AssertionError(f"{name} is not reached by the keyboard")


def choose_by_keyboard(page, place, number):
    press_to(page, f"answer{place}")
    page.keyboard.press("Space")
    for _ in range(number - 1):
        page.keyboard.press("ArrowRight")


def test_criterion_21_steps_by_keyboard_alone(new_page):
    page = new_page()
    page.add_init_script(TWENTY_TIMES_AS_FAST)
    page.set_viewport_size(PHONE)
    study = make_full(screening=EVERYTHING | {"headphones": "huggins"})
    page.goto(link_of(study))
    press_to(page, "Begin")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    press_to(page, "agrees")
    page.keyboard.press("Space")
    press_to(page, "Continue")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    for name in ("age", "gender"):
        press_to(page, f"|{name}")
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
    press_to(page, "native_language")
    page.keyboard.type("English")
    press_to(page, "|hearing")
    page.keyboard.press("Space")
    press_to(page, "Continue")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert latest().questionnaire == {"age": "30-39", "gender": "male", "native_language": "en", "hearing": "no"}
    press_to(page, "Test my sound")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Played")).to_have_count(1)
    for place, answer in enumerate(answers_to_open_test(), 1):
        choose_by_keyboard(page, place, answer)
    press_to(page, "Continue")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    for place, answer in enumerate(answers_to_open_test(), 1):
        press_to(page, f"Play round {place}")
        expect(page.locator(f"[name=answer{place}]").first).to_be_disabled()
        page.keyboard.press("Enter")
        expect(page.get_by_text("Played")).to_have_count(place)
        choose_by_keyboard(page, place, answer)
    press_to(page, "Continue")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    press_to(page, "I have read this")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert latest().step == "trials"


def test_problems_of_a_form_are_told_and_lead_to_their_fields(new_page):
    page = new_page()
    page.goto(make_session(make_full(), step="questions").get_absolute_url())
    continue_(page)
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("link", name=re.compile("Your age")).click()
    expect(page.locator("#field-age")).to_be_focused()


def test_without_a_connection_pages_stay_and_keep_what_was_entered(new_page):
    page = new_page()
    session = make_session(make_full(), step="questions", language="fr")
    page.goto(session.get_absolute_url())
    page.locator("[name=age]").nth(2).check()
    page.context.set_offline(True)
    english = page.get_by_role("button", name="English")
    for leave in (page.locator("main .button.wide"), english, page.locator(".foot a")):
        page.evaluate("() => { document.getElementById('offline').hidden = true; }")
        leave.click()
        expect(page.get_by_role("alert")).to_contain_text("Pas de connexion.")
    expect(page.locator("[name=age]").nth(2)).to_be_checked()
    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    english.click()
    page.locator("html[lang=en]").wait_for()
    expect(page.locator("[name=age]").nth(2)).to_be_checked()
    page.locator(".foot a").click()
    page.get_by_role("link", name="Go back").click()
    page.get_by_role("heading", name="About you").wait_for()


def test_criterion_20_every_end_has_its_page_and_a_code_can_be_copied(new_page, check_page):
    codes = {"complete": "ALLDONE1", "screened-out": "NOTTHIS2", "failed-attention": "NOGOLD3", "technical": "OURS4"}
    study = make_study(evaluators=6, platform="prolific", platform_settings={"codes": codes})
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    for state in ("finished", "screened-out", "failed-attention", "technical", "expired", "withdrawn"):
        session = make_session(study)
        end_session(session, state, timezone.now())
        page.goto(session.get_absolute_url())
        if state in ("finished", "expired", "withdrawn"):
            check_page(page, f"listen-end-{state}")
        shown = [code for code in codes.values() if code in page.content()]
        assert shown == ([codes[{"finished": "complete"}.get(state, state)]] if session.completion_code else [])
    session = make_session(make_study())
    end_session(session, "finished", timezone.now())
    page.goto(session.get_absolute_url())
    page.get_by_role("button", name="Copy Your completion code").click()
    expect(page.get_by_role("status")).to_have_text(["Copied", ""])
    session.refresh_from_db()
    assert page.evaluate("navigator.clipboard.readText()") == session.completion_code


def test_criterion_23_withdrawal_from_a_page_and_by_code(new_page, check_page):
    study = make_study(evaluators=2)
    now, later = make_session(study), make_session(study)
    end_session(later, "finished", timezone.now())
    page = new_page()
    page.goto(now.get_absolute_url() + "withdraw/")
    check_page(page, "listen-withdraw")
    page.get_by_role("button", name="Withdraw and delete my answers").click()
    page.get_by_role("heading", name="Your answers are deleted").wait_for()
    page.goto(later.get_absolute_url())
    page.get_by_role("link", name="The page for withdrawing by code").click()
    page.get_by_label("Withdrawal code", exact=True).fill("wrong")
    page.get_by_role("button", name="Withdraw and delete my answers").click()
    page.get_by_text("There is no such code").wait_for()
    check_page(page, "listen-withdraw-by-code")
    page.get_by_label("Withdrawal code", exact=True).fill(later.withdrawal_code)
    page.get_by_role("button", name="Withdraw and delete my answers").click()
    page.get_by_role("heading", name="Your answers are deleted").wait_for()
    assert set(Session.objects.values_list("state", flat=True)) == {"withdrawn"}


def test_criterion_20_steps_work_in_a_frame_of_mechanical_turk_with_cookies_blocked(browser, live_server, traffic):
    """A page of the platform's own host shows the study in a frame; nothing of ours may keep or read a cookie."""
    study = make_study(platform="mturk", screening=EVERYTHING | {"headphones": "none"})
    context = browser.new_context()
    context.grant_permissions(["local-network-access"])  # a platform's page may reach this machine in this test
    page = context.new_page()
    query = "&".join(f"{name}={value}" for name, value in WORKER.items())
    posted = []

    def platform(route):
        if route.request.url.endswith("/mturk/externalSubmit"):
            posted.append((route.request.method, route.request.post_data))
            route.fulfill(content_type="text/html", body="<p>handed in</p>")
        else:
            frame = f'<iframe src="{live_server.url}{link_of(study)}?{query}" {FRAME}></iframe>'
            route.fulfill(content_type="text/html", body=f"<!doctype html><title>Task</title>{frame}")

    context.route("https://*.mturk.com/**", platform)
    context.route(f"{live_server.url}/**", _without_cookies)
    page.goto("https://workersandbox.mturk.com/task")
    frame = page.frame_locator("iframe")
    frame.get_by_label("I have read this and agree").check()
    frame.get_by_role("button", name="Continue").click()
    frame.get_by_role("button", name="Test my sound").click()
    frame.get_by_text("Played").wait_for()
    for place, answer in enumerate(answers_to_open_test(), 1):
        frame.locator(f"#field-answer{place}").get_by_label(str(answer), exact=True).check()
    frame.get_by_role("button", name="Continue").click()
    frame.get_by_role("button", name="I have read this").wait_for()
    end_session(latest(), "finished", timezone.now())
    page.reload()
    frame.get_by_role("button", name="Submit on Mechanical Turk").click()
    frame.get_by_text("handed in").wait_for()
    assert posted == [("POST", f"assignmentId={WORKER['assignmentId']}&code={latest().completion_code}")]
    assert context.cookies() == []
    context.close()


def _without_cookies(route):
    headers = {name: value for name, value in route.request.headers.items() if name != "cookie"}
    route.continue_(headers=headers)


def test_criterion_22_right_to_left_page_is_mirrored_and_nothing_hangs_out(new_page, check_page):
    study = make_full(languages=["en", "ar"])
    page = new_page(locale="en")
    page.goto(link_of(study))
    page.get_by_role("button", name="Begin").click()
    page.get_by_label("I have read this and agree").check()
    left = page.locator(".top-name").bounding_box()["x"]
    page.get_by_role("button", name="العربيّة").click()
    page.wait_for_selector("html[dir=rtl]")
    right = page.locator(".top-name").bounding_box()
    assert right["x"] > left + 200
    check_page(page, "listen-consent-arabic")
    page.locator("input[name=agrees]").check()
    continue_(page)


def test_high_contrast_and_forced_colours_pass_the_same_checks(new_page, check_page):
    session = make_session(make_full(), step="questions")
    page = new_page(contrast="more")
    page.goto(session.get_absolute_url())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in {"rgb(255, 255, 255)", "rgb(0, 0, 0)"}
    check_page(page, "listen-contrast", widths=(360,))
    forced = new_page(forced_colors="active")
    forced.goto(session.get_absolute_url())
    check_page(forced, "listen-forced", widths=(360,), schemes=("light",))


def test_sound_test_works_without_script_by_the_browsers_own_player(browser, live_server, traffic, problems):
    session = make_session(make_full(), step="sound")
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    watch_page(page, problems[page], live_server.url)
    page.goto(session.get_absolute_url())
    expect(page.locator("audio[controls]")).to_have_count(1)
    assert page.request.get(page.locator("audio").get_attribute("src")).ok  # what its play button fetches
    for place, answer in enumerate(answers_to_open_test(), 1):
        page.locator(f"#field-answer{place}").get_by_label(str(answer), exact=True).check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="Headphone check").wait_for()
    expect(page.locator("audio[controls]")).to_have_count(6)
    context.close()
