"""A real browser on the portal with the test database: pages that log in, and one check that every page must pass.

A page goes on by itself after every act: whatever it leads to is waited for, by `expect` of Playwright or `wait_until`.
Set SCREENSHOTS=<folder> to keep what the browser saw, and SLOW_ANSWERS=1 for a portal that answers late: a test
that fails there does not wait for what it asks. Without chromium these tests skip; under CI=true they fail.
"""

import inspect
import os
import random
import shutil
import threading
import time
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.signals import request_finished, request_started
from django.test import Client

WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")
SCREENSHOTS = os.environ.get("SCREENSHOTS")
EVERY_LOOK = os.environ.get("TEST_LOOKS") == "all" or bool(SCREENSHOTS)
PATIENCE_S = 60  # a busy machine is no problem
# htmx tells it as an error that somebody left a page while it asked for news; every other end has a line of its own.
LEFT_WHILE_ASKED = ("htmx:sendAbort", "htmx:afterRequest")
_turning: list[Any] = []  # a page of the browser by which its events are heard while a test waits for something else


def wait_until(condition, what="what is waited for", *, seconds=PATIENCE_S):
    """The first true value of `condition`; every page goes on meanwhile."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        if _turning:
            _turning[0].wait_for_timeout(20)
        else:
            time.sleep(0.02)
    return value


def leap_until(page, condition, what="what a page shows"):
    """Wait until it holds on a page whose clock was installed; the clock leaps over its pauses."""

    def look():
        if condition():
            return True
        page.wait_for_timeout(100)
        page.clock.fast_forward(1000)
        return condition()

    wait_until(look, what)


def expect_drawn(page, name):
    """The picture of this name has come, and is one."""
    picture = page.get_by_role("img", name=name)
    picture.scroll_into_view_if_needed()
    wait_until(lambda: picture.evaluate("(image) => image.complete && image.naturalWidth > 100"), name)


# The shell has no window around its pages and takes half of the time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
# All pages of a context share a process, none is kept in reserve, and graphics have none of their own; no script runs
# for long enough to be worth optimising.
FLAGS = ["--no-sandbox", "--renderer-process-limit=1", "--in-process-gpu", "--js-flags=--no-opt"]
VIEWPORT = {"width": 1280, "height": 800}
MOST_PX = {360: 6000, 1280: 4000}  # of a page before anything is unfolded, by its width


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        sentence = "chromium is missing; install Debian's package chromium-headless-shell to run the browser tests."
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE_S)

    # Playwright keeps an event loop in this thread; the tests use the database beside it, not in it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            _turning.append(chromium.new_page())
            yield chromium
            chromium.close()
    finally:
        _turning.clear()
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def problems():
    """What went wrong in each page: errors of the console, and requests to other machines."""
    return defaultdict(list)


class Traffic:
    """The requests that a portal in this process has not finished."""

    def __init__(self):
        self.under_way, self.lock = 0, threading.Lock()
        request_started.connect(self.begin)
        request_finished.connect(self.end)

    def begin(self, **_):
        with self.lock:
            self.under_way += 1

    def end(self, **_):
        with self.lock:
            self.under_way -= 1

    def stop(self):
        """Wait for the end of all of them: the next test has a database of its own."""
        end = time.monotonic() + 10
        while self.under_way > 0 and time.monotonic() < end:
            time.sleep(0.01)
        request_started.disconnect(self.begin)
        request_finished.disconnect(self.end)


if os.environ.get("SLOW_ANSWERS") == "1":
    answer = StaticFilesHandler.__call__

    def answer_late(handler, environ, start_response):
        """By up to a second, so that some answers are overtaken by later ones."""
        time.sleep(random.random())
        return answer(handler, environ, start_response)

    setattr(StaticFilesHandler, "__call__", answer_late)  # noqa: B010 - a method, to mypy


@pytest.fixture
def traffic(live_server):
    traffic = Traffic()
    yield traffic
    traffic.stop()


class LastingContext:
    """A context that tests use one after the other, emptied in between: its process has compiled the scripts, and axe
    runs there in a third of the time that it takes in a new one. A page that stays open keeps the process."""

    HARMLESS = ("add_cookies", "clear_cookies", "close", "cookies", "new_page", "set_default_timeout", "storage_state")
    CLOCK = ("fast_forward", "install", "pause_at", "resume", "run_for", "set_fixed_time", "set_system_time")

    def __init__(self, browser, url):
        self.url = url
        self.context = browser.new_context(base_url=url, viewport=VIEWPORT)
        self.first = self.context.new_page()
        self.first.route("**", lambda route: route.fulfill(content_type="text/html", body=""))
        self.first.goto(url)
        self.session = self.context.new_cdp_session(self.first)
        self.is_changed = False
        changes = {name for name in dir(type(self.context)) if not name.startswith("_")} - set(self.HARMLESS)
        for owner, names in ((self.context, changes), (self.context.clock, self.CLOCK)):
            for name in names:
                if inspect.isroutine(inspect.getattr_static(owner, name)):
                    setattr(owner, name, self._noted(getattr(owner, name)))

    def _noted(self, method):
        def change(*args, **options):
            self.is_changed = True
            return method(*args, **options)

        return change

    def empty(self):
        """Close its pages, and forget what they and the portal left here; whether that was possible."""
        from playwright.sync_api import Error

        try:
            self._empty()
        except Error:  # its process has crashed
            return False
        return True

    def _empty(self):
        for page in self.context.pages:
            if page is not self.first:
                page.close()
        self.context.clear_cookies()
        self.session.send("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": "all"})
        self.session.send("Network.clearBrowserCache")
        for is_disabled in (True, False):  # which empties the memory of the process, too
            self.session.send("Network.setCacheDisabled", {"cacheDisabled": is_disabled})


@pytest.fixture(scope="session")
def lasting_contexts():
    """Those that no test uses."""
    return []


@pytest.fixture
def new_page(request, browser, lasting_contexts, live_server, traffic, problems):
    """Opens a page in a context that nobody else uses: `new_page(user=None, **options of the context)`.

    It is new for a test without `check_page`, with options, or after a test that changed more than its pages.
    """
    contexts, lasting = [], []

    def new_context(options):
        if options or "check_page" not in request.fixturenames:
            contexts.append(browser.new_context(base_url=live_server.url, viewport=VIEWPORT, **options))
            return contexts[-1]
        lasting.append(lasting_contexts.pop() if lasting_contexts else LastingContext(browser, live_server.url))
        return lasting[-1].context

    def open_page(user=None, **options):
        context = new_context(options)
        context.set_default_timeout(1000 * PATIENCE_S)
        if user is not None:
            client = Client()  # of their own: to log somebody else in would log them out
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        watch_page(page, problems[page], live_server.url)
        return page

    yield open_page
    for one in lasting:
        if one.is_changed or not one.empty():
            contexts.append(one.context)
        else:
            lasting_contexts.append(one)
    for context in contexts:
        context.close()


def watch_page(page, found, url):
    """Note the errors of a page of the portal at this address, its requests to other hosts, and what is under way."""
    host = urlsplit(url).netloc
    page.flying = set()

    def on_console(message):
        # The status of the page itself (422 of a form, 404) is what the test asked for.
        of_page = message.location["url"] == page.url and message.text.startswith("Failed to load resource")
        of_page = of_page and "a status of 500" not in message.text
        if message.type == "error" and not of_page and not message.text.startswith(LEFT_WHILE_ASKED):
            found.append(f"console: {message.text} {message.location['url']}")

    def on_request(request):
        page.flying.add(request)
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.netloc != host:
            found.append(f"request to another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("request", on_request)
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda request: page.flying.discard(request))


@pytest.fixture
def page(new_page):
    """A visitor's page."""
    return new_page()


@pytest.fixture
def organizer_page(new_page):
    from tests.portal.factories import make_organizer

    return new_page(make_organizer())


@pytest.fixture
def operator_page(new_page):
    from tests.portal.factories import make_operator

    return new_page(make_operator())


@pytest.fixture
def check_page(problems):
    """`check_page(page, name)`: no error, no foreign request, no sideways scrolling, nothing that axe objects to.

    A page is seen wide and light, then narrow and dark, and axe, which takes long, sees the first; without axe where it
    has seen the same template in the same state, in another language or with other names. With TEST_LOOKS=all (`make
    test-slow`) each width is seen in each scheme, and axe sees each of both once.
    """

    def check(page, name, *, widths=WIDTHS, schemes=SCHEMES, with_axe=True):
        looks = [(width, scheme) for width in widths for scheme in schemes]
        every = looks if EVERY_LOOK else [looks[0], looks[-1]][: len(looks)]
        for width, scheme in every:
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            _look(page, f"{name}-{width}-{scheme}")
            assert sideways(page) == [], f"{name} scrolls sideways at {width} px"
            is_first = (width, scheme) == looks[0]
            if (with_axe and is_first) or (EVERY_LOOK and (is_first or (width, scheme) == looks[-1])):
                found = axe_violations(page)
                assert found == [], f"axe objects to {name} at {width} px, {scheme}: {found}"
        assert problems[page] == [], problems[page]

    return check


def settle(page):
    """Let everything that loads late appear."""
    page.wait_for_load_state("load")
    page.evaluate(
        """async () => {
          for (const top of [document.body.scrollHeight, 0]) {
            scrollTo(0, top);
            for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
          }
        }"""
    )
    wait_for_calm(page)


def _look(page, name):
    """Let everything appear, and keep the picture where one is wanted."""
    settle(page)
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


def wait_for_calm(page, *, most_s=5, looks=3):
    """Nothing was under way at so many looks; what a test holds back on purpose is not waited for longer than this."""
    end, calm = time.monotonic() + most_s, 0
    while calm < looks and time.monotonic() < end:
        page.wait_for_timeout(20)
        calm = 0 if page.flying else calm + 1


def sideways(page):
    """The elements that reach out of the window to the right, if the page can be scrolled there."""
    return page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const right = (element) => element.getBoundingClientRect().right;
          const wide = [...document.body.querySelectorAll("*")].filter((element) => right(element) > width + 1);
          const names = wide.map((element) => element.outerHTML.slice(0, 120));
          return [`${document.documentElement.scrollWidth} px`, ...names];
        }"""
    )


def too_long(page):
    """The heights of a page by width, where they are above the limit."""
    heights = {}
    for width in MOST_PX:
        page.set_viewport_size({"width": width, "height": 800})
        heights[width] = page.evaluate("document.documentElement.scrollHeight")
    return {width: height for width, height in heights.items() if height > MOST_PX[width]}


@cache
def axe_script():
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    return Axe().axe_script


# Marks what has the structure of something that passed, among ancestors of the same structure: names and classes of
# elements, states that their attributes tell, whether they hold text and are seen, and the heading before them. Gives
# back the hashes of the others. What elements say, and where they lead, is no part of it.
MARK_PASSED = """(passed) => {
  const known = new Set(passed), fresh = [], own = new Map(), whole = new Map();
  const hash = (text) => {
    let [high, low] = [0xdeadbeef, 0x41c6ce57];
    for (let at = 0; at < text.length; at += 1) {
      high = Math.imul(high ^ text.charCodeAt(at), 2654435761);
      low = Math.imul(low ^ text.charCodeAt(at), 1597334677);
    }
    return `${(high >>> 0).toString(36)}.${(low >>> 0).toString(36)}`;
  };
  let heading = "";
  const tell = (element) => {
    const attributes = [...element.attributes].map(({ name, value }) =>
      name === "class" || name === "style" || /^[a-z-]{1,20}$/i.test(value) ? `${name}=${value}` : name);
    const isHeading = /^H[1-6]$/.test(element.tagName);
    const states = [element.textContent.trim() !== "", element.checkVisibility(), element.checked, element.disabled];
    own.set(element, hash([element.tagName, isHeading && heading, ...states, ...attributes].join()));
    if (isHeading) heading = element.tagName;
    const inner = new Set([...element.children].map(tell));
    whole.set(element, hash([own.get(element), ...inner].join()));
    return whole.get(element);
  };
  const mark = (element, path) => {
    const key = hash(path + whole.get(element));
    if (known.has(key)) return element.setAttribute("data-passed", "");
    known.add(key);
    fresh.push(key);
    for (const child of element.children) mark(child, hash(path + own.get(element)));
  };
  tell(document.body);
  for (const child of document.body.children) mark(child, getComputedStyle(document.body).color + innerWidth);
  return fresh;
}"""
RUN_AXE = """async () => {
  const passed = [...document.querySelectorAll("[data-passed]")];
  const context = passed.length ? { exclude: [["[data-passed]"]] } : document;
  const results = await axe.run(context, { reporter: "no-passes", selectors: false });
  passed.forEach((element) => element.removeAttribute("data-passed"));
  return results.violations;
}"""
_passed: set[str] = set()


def axe_violations(page):
    """What axe objects to; what passes and where each element is found is neither computed nor sent.

    Where an element of the same structure has passed in this process, in the same place, it is not looked at again, but
    with TEST_LOOKS=all.
    """
    if page.evaluate("window.axe === undefined"):
        page.evaluate(axe_script())
    fresh = [] if EVERY_LOOK else page.evaluate(MARK_PASSED, [*_passed])
    found = page.evaluate(RUN_AXE) if fresh or EVERY_LOOK else []
    if not found:
        _passed.update(fresh)
    told = []
    for violation in found:
        for node in violation["nodes"]:
            reasons = [one["message"] for kind in ("any", "all", "none") for one in node[kind]]
            told.append(f"{violation['id']}: {'; '.join(reasons)} {node['html']}")
    return told
