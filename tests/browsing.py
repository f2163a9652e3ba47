"""A real browser on the portal with the test database: pages that log in, and one check that every page must pass.

Set SCREENSHOTS=<folder> to keep what the browser saw. Without chromium these tests skip; under CI=true they fail.
"""

import os
import shutil
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.portal.factories import make_operator, make_organizer

WIDTHS = (1280, 360)
SCHEMES = ("light", "dark")
SCREENSHOTS = os.environ.get("SCREENSHOTS")


@pytest.fixture(scope="session")
def browser():
    path = shutil.which("chromium")
    if path is None:
        sentence = "chromium is missing; install Debian's package of that name to run the browser tests."
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)

    # Playwright keeps an event loop in this thread; the tests use the database beside it, not in it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            yield chromium
            chromium.close()
    finally:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def faults():
    """What went wrong in each page: errors of the console, and requests to other machines."""
    return defaultdict(list)


@pytest.fixture
def new_page(browser, live_server, client, faults):
    """Opens a page in a context of its own: `new_page(user=None, **options of the context)`."""
    contexts = []

    def open_page(user=None, **options):
        context = browser.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 800}, **options)
        contexts.append(context)
        context.set_default_timeout(30_000)  # a busy machine is no fault
        if user is not None:
            client.force_login(user)
            cookie = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
        page = context.new_page()
        watch_page(page, faults[page], live_server.url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def watch_page(page, found, url):
    """Note every error of a page of the portal at this address, and every request to another host."""
    host = urlsplit(url).netloc

    def on_console(message):
        # The status of the page itself (422 of a form, 404) is what the test asked for.
        of_page = message.location["url"] == page.url and message.text.startswith("Failed to load resource")
        if message.type == "error" and not of_page:
            found.append(f"console: {message.text} {message.location['url']}")

    def on_request(request):
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.netloc != host:
            found.append(f"request to another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("request", on_request)


@pytest.fixture
def page(new_page):
    """A visitor's page."""
    return new_page()


@pytest.fixture
def organizer_page(new_page):
    return new_page(make_organizer())


@pytest.fixture
def operator_page(new_page):
    return new_page(make_operator())


@pytest.fixture
def check_page(faults):
    """`check_page(page, name)`: no error, no foreign request, no sideways scrolling, nothing that axe objects to.

    axe, which takes seconds, sees each width and each scheme once, not each with each.
    """

    def check(page, name, *, widths=WIDTHS, schemes=SCHEMES):
        for row, width in enumerate(widths):
            page.set_viewport_size({"width": width, "height": 800})
            for column, scheme in enumerate(schemes):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                _look(page, f"{name}-{width}-{scheme}")
                assert sideways(page) == [], f"{name} scrolls sideways at {width} px"
                if (row + column) % 2 == 0 or 1 in (len(widths), len(schemes)):
                    assert axe_violations(page) == [], f"axe objects to {name} at {width} px, {scheme}"
        assert faults[page] == []

    return check


def _look(page, name):
    """Let everything that loads late appear, and keep the picture where one is wanted."""
    page.wait_for_load_state("networkidle")
    for position in ("document.body.scrollHeight", "0"):
        page.evaluate(f"() => scrollTo(0, {position})")
        page.wait_for_timeout(50)
    page.wait_for_load_state("networkidle")
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", full_page=True)


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


def axe_violations(page):
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['failureSummary']} {node['html']}"
        for violation in violations
        for node in violation["nodes"]
    ]
