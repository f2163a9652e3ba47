"""Opens pages in browsers, photographs each in every look and checks what can be checked without a reader.

A page is loaded once: its width and its theme change while it is open. Then its folds are opened for two further looks,
which axe sees instead.
"""

from __future__ import annotations

import queue
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Error, Page, Response, sync_playwright

from tests.browsing import CHROMIUM, FLAGS, MOST_PX, axe_violations, settle, sideways, watch_page

LOOKS = ((1280, "light"), (1280, "dark"), (360, "dark"), (360, "light"))
UNFOLDED_LOOKS = ((360, "dark"), (1280, "light"))
WITH_AXE = {(1280, "light"), (360, "dark")}
UNFOLDED = "unfolded"
TALLEST_PX = 16_000  # chromium draws nothing below
PATIENCE_MS = 60_000
TOLD_EVERY_S = 30
FOLDS = "document.querySelectorAll('main details:not([open])').length"
# Figures in the middle of a long page would be loaded only when somebody scrolls there.
OPEN_FOLDS = """() => {
  document.querySelectorAll("main details").forEach((one) => { one.open = true; });
  document.querySelectorAll("img[loading=lazy]").forEach((one) => { one.loading = "eager"; });
}"""


@dataclass(frozen=True)
class Shot:
    """A page to open. `act` does something there and yields the name of each state that is to be photographed."""

    number: int
    pattern: str
    address: str
    role: str
    act: Callable[[Page], Iterator[str]] | None = None


@dataclass
class Look:
    """One photograph and what was found there: a line of the report."""

    number: int
    pattern: str
    address: str
    role: str
    state: str
    width: int = 0
    theme: str = ""
    status: int = 0
    height: int = 0
    limit: int = 0
    sideways: list[str] = field(default_factory=list)
    axe: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    csp: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # answers with a status from 500 on, and what stopped this tool
    picture: str = ""

    @property
    def is_too_tall(self) -> bool:
        return bool(self.limit) and self.height > self.limit

    def note(self, problem: str) -> None:
        """Keep what `watch_page` tells."""
        if problem.startswith("request to another host"):
            self.hosts.append(problem)
        elif "Content Security Policy" in problem:
            self.csp.append(problem)
        else:
            self.console.append(problem)


class Photographer(threading.Thread):
    """Works on tasks in a browser of its own until none is left; what it saw is in `looks`."""

    def __init__(self, tasks: queue.Queue[Shot], portal: str, cookies: dict[str, str], folder: Path) -> None:
        super().__init__(daemon=True)
        self.tasks, self.portal, self.cookies, self.folder = tasks, portal, cookies, folder
        self.looks: list[Look] = []
        self.contexts: dict[str, BrowserContext] = {}

    def run(self) -> None:
        with sync_playwright() as playwright:
            browser: Browser | None = None
            while True:
                try:
                    task = self.tasks.get_nowait()
                except queue.Empty:
                    break
                if browser is None or not browser.is_connected():
                    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                    self.contexts = {}
                try:
                    self._work(browser, task)
                except (Error, AssertionError, ValueError) as error:
                    failure = f"not photographed: {str(error).splitlines()[0]}"
                    told = (task.number, task.pattern, task.address, task.role)
                    self.looks.append(Look(*told, state="", failed=[failure]))
            if browser is not None:
                browser.close()

    def _context(self, browser: Browser, role: str) -> BrowserContext:
        if role not in self.contexts:
            context = browser.new_context(base_url=self.portal, reduced_motion="reduce")
            context.set_default_timeout(PATIENCE_MS)
            if cookie := self.cookies.get(role):
                context.add_cookies([{"name": "sessionid", "value": cookie, "url": self.portal}])
            self.contexts[role] = context
        return self.contexts[role]

    def _work(self, browser: Browser, task: Shot) -> None:
        page = self._context(browser, task.role).new_page()
        try:
            problems: list[str] = []
            failed: list[str] = []
            watch_page(page, problems, self.portal)

            def on_response(answer: Response) -> None:
                if answer.status >= 500:
                    failed.append(f"{answer.status} {answer.url}")

            page.on("response", on_response)
            _show(page, *LOOKS[0])
            answer = page.goto(task.address)
            status = answer.status if answer else 0

            def photograph(
                state: str, looks: tuple[tuple[int, str], ...], *, has_limit: bool, with_axe: bool = True
            ) -> None:
                for width, theme in looks:
                    told = (task.number, task.pattern, task.address, task.role, state, width, theme, status)
                    look = Look(*told, limit=MOST_PX[width] if has_limit else 0)
                    self._look(page, look, with_axe=with_axe and (width, theme) in WITH_AXE)
                    for problem in problems:
                        look.note(problem)
                    look.failed = list(failed)
                    problems.clear()
                    failed.clear()
                    self.looks.append(look)

            if task.act is not None:
                for state in task.act(page):
                    photograph(state, LOOKS, has_limit=True)
                    _show(page, *LOOKS[0])
                return
            has_folds = page.evaluate(FOLDS) > 0
            photograph("", LOOKS, has_limit=True, with_axe=not has_folds)
            if has_folds:
                page.evaluate(OPEN_FOLDS)
                photograph(UNFOLDED, UNFOLDED_LOOKS, has_limit=False)
        finally:
            page.close()

    def _look(self, page: Page, look: Look, *, with_axe: bool) -> None:
        _show(page, look.width, look.theme)
        settle(page)
        look.height = page.evaluate("document.documentElement.scrollHeight")
        look.sideways = sideways(page)
        words = [f"{look.number:04}", look.role, look.pattern, look.address, look.state]
        name = re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, words)).lower())[:120].strip("-")
        look.picture = f"{name}-{look.width}-{look.theme}.png"
        seen: Any = {"x": 0, "y": 0, "width": look.width, "height": min(look.height, TALLEST_PX)}
        page.screenshot(path=self.folder / look.picture, full_page=True, clip=seen)
        if with_axe:
            look.axe = axe_violations(page)


def _show(page: Page, width: int, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    if page.viewport_size is None or page.viewport_size["width"] != width:
        page.set_viewport_size({"width": width, "height": 800})


def photograph_all(
    tasks: list[Shot],
    *,
    portal: str,
    cookies: dict[str, str],
    folder: Path,
    browsers: int,
    tell: Callable[[list[Look], int], None],
) -> list[Look]:
    """What all of them saw, in the order of the tasks; one object of each pattern is photographed before further ones.

    Args:
        tell: is given now and then what was seen until then, and how many tasks are waiting. Ctrl-C ends the rest.
    """
    waiting: queue.Queue[Shot] = queue.Queue()
    met: Counter[tuple[str, str]] = Counter()
    ranks = {}
    for task in tasks:
        ranks[task] = met[task.pattern, task.role] if task.act is None else 0
        met[task.pattern, task.role] += task.act is None
    for task in sorted(tasks, key=ranks.__getitem__):
        waiting.put(task)
    people = [Photographer(waiting, portal, cookies, folder) for _ in range(browsers)]
    for one in people:
        one.start()

    def collect() -> list[Look]:
        return sorted((look for one in people for look in list(one.looks)), key=lambda look: look.number)

    while any(one.is_alive() for one in people):
        try:
            for one in people:
                one.join(TOLD_EVERY_S / browsers)
            tell(collect(), waiting.qsize())
        except KeyboardInterrupt:
            waiting.queue.clear()
    return collect()
