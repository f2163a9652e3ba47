"""The page of the trials on bad lines: slow, cut off, or with recordings that do not come."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from django.core.files.storage import default_storage
from playwright.sync_api import Error, expect

from listening.app.models import Session
from listening.app.sessions.clip_urls import clip_address
from listening.stimuli.making import write_wav
from portal.core.storage import store_bytes
from tests.browsing import leap_until, wait_until
from tests.listening.browser.trials import (
    answer,
    draft_of,
    events_of,
    expect_clips,
    expect_number,
    expect_ready,
    expect_saved,
    listen,
    open_trials,
    player,
    rate,
    send,
    stored,
)
from tests.listening.factories import RATE_HZ, make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)
CLIP_S = 2.1  # what a slow link is to its recordings does not depend on how long they are
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 400_000 / 8, "uploadThroughput": 400_000 / 8}

# For each trial how long one of its players showed that it was loading, in ms.
WATCH = """() => {
  window.spinners = {};
  setInterval(() => {
    if (document.querySelector("#trial-panel")?.hidden !== false) return;
    const trial = document.querySelector("#trial-heading").textContent;
    spinners[trial] ??= { from: performance.now(), until: 0 };
    if (document.querySelector('#players [data-state="loading"]')) {
      spinners[trial].until = performance.now() - spinners[trial].from;
    }
  }, 20);
}"""


def make_long_clips(study, seconds):
    """Recordings of that length, all of one size as stimuli are."""
    for number, stimulus in enumerate(study.stimulus_files.order_by("pk")):
        noise = np.random.default_rng(number).normal(0, 1600, int(seconds * RATE_HZ))
        content = write_wav(np.rint(noise).astype(np.int16))
        stimulus.file, stimulus.bytes = store_bytes(content, ".wav"), len(content)
        stimulus.duration_s = seconds
        stimulus.save()


def watch_flights(page):
    """The most clips that were on their way at once, counted from now on."""
    flying, most = set(), [0]

    def begin(request):
        if "/clips/" in request.url:
            flying.add(request)
            most[0] = max(most[0], len(flying))

    page.on("request", begin)
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda request: flying.discard(request))
    return most


@pytest.mark.slow  # 20 s of waiting
def test_criterion_03_no_later_trial_waits_for_its_clips_on_a_slow_link(page):
    study = make_study(trials=4, evaluators=1)
    make_long_clips(study, CLIP_S)
    session = make_session(study)
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.send("Network.emulateNetworkConditions", SLOW)
    most = watch_flights(page)
    page.add_init_script(f"({WATCH})()")
    page.set_default_timeout(60_000)
    open_trials(page, session)
    expect_ready(page)
    for number in (1, 2, 3):
        expect_number(page, number)
        answer(page)
    expect_number(page, 4)
    listen(page, "a")
    loading_ms = {trial: found["until"] for trial, found in page.evaluate("() => spinners").items()}
    assert loading_ms.pop("Trial 1 of 4") > 1000  # the watch does see one
    assert len(loading_ms) == 3
    assert max(loading_ms.values()) < 1000, loading_ms
    assert most[0] == 2
    stored(session, 9)
    assert min(session.answers.values_list("client_ms", flat=True)) >= 2000 * CLIP_S
    # 256 kbit/s, as all stimuli have
    assert min(study.stimulus_files.values_list("bytes", flat=True)) >= 32_000 * CLIP_S


BROKEN = {
    "404": {"status": 404, "body": "Not found"},
    "500": {"status": 500, "body": "<h1>Server Error (500)</h1>", "content_type": "text/html"},
    "html": {"status": 200, "body": "<!doctype html><p>Please log in", "content_type": "text/html"},
    "truncated": {"status": 200, "content_type": "audio/wav"},
}


@dataclass
class Broken:
    """A clip that is answered with this; how often it was asked for."""

    address: re.Pattern
    reply: dict
    asked: int = 0

    def __call__(self, route):
        self.asked += 1
        route.fulfill(**self.reply)


def break_clip(page, session, position, slot, kind):
    """Let the clip be answered like this."""
    trial = session.block.trials.get(position=position)
    reply = dict(BROKEN[kind])
    if kind == "truncated":
        with default_storage.open(trial.presentation.samples.get(slot=slot).stimulus.file) as file:
            reply["body"] = file.read()[:-1500]
    broken = Broken(re.compile(re.escape(clip_address(session, trial, slot))), reply)
    page.route(broken.address, broken)
    return broken


def expect_broken(page):
    leap_until(page, page.locator("#broken").is_visible, "what is on show is given up")


def skip(page):
    """Skip what is given up. A tap within half a second of the one before would count as the same one."""
    page.clock.fast_forward(1000)
    page.click("#skip")


# When each address was fetched, in ms of the page's clock.
FETCHED = """() => {
  window.fetched = [];
  const { fetch } = window;
  window.fetch = (address, ...more) => {
    fetched.push([String(address), performance.now()]);
    return fetch(address, ...more);
  };
}"""


def test_criterion_04_broken_clip_is_retried_skipped_flagged_and_comes_again(page):
    """Each kind of brokenness has a trial of its own."""
    page.clock.install()
    page.add_init_script(f"({FETCHED})()")
    session = make_session(make_study(trials=4))
    clips = [break_clip(page, session, position, "b", kind) for position, kind in enumerate(BROKEN, 1)]
    open_trials(page, session)
    expect(page.locator("#broken")).to_be_visible()
    times_ms = [at_ms for address, at_ms in page.evaluate("() => fetched") if clips[0].address.search(address)]
    assert len(times_ms) == 4
    assert np.all(np.diff(times_ms) > [490, 1490, 3990])
    for position, clip in enumerate(clips, 1):
        expect_broken(page)
        assert clip.asked in (4, 5)  # once more where it was given up before its turn
        page.unroute(clip.address)
        skip(page)
        wait_until(lambda following=position % 4 + 1: draft_of(page)["position"] == following, "the next trial")
        expect(page.locator("#notice")).to_have_text("The trial was skipped. It may come once more at the end.")
    session.refresh_from_db()
    assert session.skips == [1, 2, 3, 4]
    told = events_of(session, "clip-broken", 4)
    assert [(one["position"], one["slot"], one["what"]) for one in told] == [(n, "b", "clip") for n in range(1, 5)]
    for number in (1, 2, 3, 4):
        expect_number(page, number)
        answer(page)
    expect(page.locator("#trials")).to_have_count(0)
    assert [position for position, _ in stored(session, 12)][::3] == [1, 2, 3, 4]
    session.refresh_from_db()
    assert session.state == Session.State.FINISHED
    asked = sum(clip.asked for clip in clips)
    told = Counter(event["attempt"] for event in events_of(session, "clip-retry", asked))
    assert told == {1: 4, 2: 4, 3: 4, 4: asked - 12}


def test_criterion_04_clip_that_stays_broken_is_given_up_and_the_session_ends_well(page):
    page.clock.install()
    session = make_session(make_study(trials=3))
    break_clip(page, session, 2, "a", "404")
    open_trials(page, session)
    answer(page)
    expect_number(page, 2)
    expect_broken(page)
    skip(page)
    expect_number(page, 2)
    expect(page.locator("#broken")).to_be_hidden()
    answer(page)
    expect_number(page, 3)
    expect_broken(page)
    skip(page)
    expect(page.locator("#trials")).to_have_count(0)
    assert {position for position, _ in stored(session, 6)} == {1, 3}
    session.refresh_from_db()
    assert session.state == Session.State.FINISHED


def test_clips_that_the_connection_cut_off_are_not_broken(page):
    page.clock.install()
    session = make_session(make_study(trials=2))
    gate, asked = {"is_open": False}, Counter[str]()

    def pass_or_abort(route):
        asked[route.request.url] += 1
        return route.continue_() if gate["is_open"] else route.abort()

    page.route(re.compile("/(clips/|alive)"), pass_or_abort)
    open_trials(page, session)
    often = lambda: min((count for url, count in asked.items() if "/clips/" in url), default=0) > 4  # noqa: E731
    leap_until(page, often, "more attempts than a broken clip has")
    expect(page.locator("#broken")).to_be_hidden()
    expect(player(page, "a")).to_have_attribute("data-state", "loading")
    gate["is_open"] = True
    is_ready = page.locator('#players [data-slot="a"][data-state="ready"]').is_visible
    leap_until(page, is_ready, "the recording")
    answer(page)
    stored(session, 3)
    events_of(session, "clip-retry", 0)


def test_criterion_05_two_minutes_offline_in_mid_trial_lose_no_answer(page):
    """The clock of the page leaps over most of the two minutes; what is heard is heard in real time."""
    page.clock.install()
    session = make_session(make_study(trials=5))
    open_trials(page, session)
    expect(page.locator("#saved")).to_be_empty()
    answer(page, 2)
    expect_number(page, 2)
    expect_saved(page)
    expect_clips(page, 8)
    listen(page, "a")
    page.context.set_offline(True)
    expect(page.locator("#saved")).to_have_text("No connection: go on, answers are kept on this device")
    listen(page, "b")
    rate(page, 4)
    send(page)
    expect(page.locator("#saved")).to_have_text("No connection: saved on this device")
    expect_number(page, 3)
    answer(page, 6)
    expect_number(page, 4)
    page.clock.fast_forward("02:00")
    listen(page)
    expect(page.locator("#saved")).to_have_text("No connection: saved on this device")
    stored(session, 3)
    order = []
    page.on("request", lambda request: order.append(request.post_data_json) if "/answers" in request.url else None)
    page.context.set_offline(False)
    stored(session, 9)
    expect_saved(page)
    assert list(dict.fromkeys(body["position"] for body in order if body["is_late"])) == [2, 3]
    rate(page, 8)
    send(page)
    expect_number(page, 5)
    ratings = stored(session, 12)
    expect_saved(page)
    assert {key[0]: rating for key, rating in ratings.items()} == {1: 2, 2: 4, 3: 6, 4: 8}
    late = dict(session.answers.values_list("trial__position", "is_late"))
    assert late == {1: False, 2: True, 3: True, 4: False}
    assert [event["ms"] >= 0 for event in events_of(session, "offline")] == [True]


def test_answers_kept_on_this_device_survive_a_crash_of_the_page(page):
    session = make_session(make_study(trials=4))
    open_trials(page, session)
    page.route(re.compile("/(answers|alive)"), lambda route: route.abort())
    answer(page, 5)
    expect(page.locator("#saved")).to_have_text("No connection: saved on this device")
    expect_number(page, 2)
    crash(page)
    assert stored(session, 0) == {}
    again = page.context.new_page()
    open_trials(again, session)
    expect_number(again, 2)
    assert set(stored(session, 3).values()) == {5}
    expect_saved(again)


def crash(page):
    """Take the process of the page away, so that nothing of it can say good-bye; another page does not wait for it."""
    with pytest.raises(Error, match="crash"):
        page.goto("chrome://crash", timeout=5000)
    page.close()


def test_answer_that_comes_too_early_waits_and_is_sent_again(page):
    session = make_session(make_study(trials=3))
    refused, is_early = [], [True]

    def refuse(route):
        if is_early:
            refused.append(route)
            return route.fulfill(status=425, json={"problem": "too-early", "retry_after_s": 0.2})
        return route.continue_()

    page.route("**/answers", refuse)
    open_trials(page, session)
    answer(page, 9)
    expect_number(page, 2)
    wait_until(lambda: len(refused) >= 3, "three refusals")
    expect(page.locator("#saved")).to_have_text("Saving …")
    assert stored(session, 0) == {}
    is_early.clear()
    assert set(stored(session, 3).values()) == {9}
    expect_saved(page)


def test_end_of_the_session_elsewhere_leads_to_its_page(page):
    session = make_session(make_study(trials=3))
    open_trials(page, session)
    listen(page)
    rate(page)
    Session.objects.filter(pk=session.pk).update(state=Session.State.EXPIRED, step="end")
    send(page)
    expect(page.locator("#trials")).to_have_count(0)
    assert page.url.endswith(session.get_absolute_url())
    assert stored(session, 0) == {}
