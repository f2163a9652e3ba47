"""Photograph every page of a running portal that links lead to, as each of its people, and check each.

    .venv/bin/python -m tests.photographs --portal URL --to FOLDER [--start ADDRESS ...] [EMAIL:PASSWORD ...]

A visitor looks first, then whose accounts are given; a page that an earlier one saw with the same title is left out.
Pages are seen wide and light, then narrow and dark. What is wrong with them is printed: a page that scrolls sideways
or is too tall, what axe objects to, errors of the console, requests to other hosts. No form is sent but to log in.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.browsing import CHROMIUM, FLAGS, MOST_PX, axe_violations, settle, sideways, watch_page
from tests.golden.demo_reading import Page, Reader, crawl

LOOKS: Sequence[tuple[int, Any]] = ((1280, "light"), (360, "dark"))
TALLEST_PX = 16_000  # chromium draws nothing below


def find_pages(reader: Reader, starts: Sequence[str], seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the addresses of the pages that nobody has seen before, by plain address and title."""
    for address, known_as, answer in crawl(reader, ("/", *starts)):
        if answer is not None and answer.is_success and answer.headers["content-type"].startswith("text/html"):
            page = (known_as, Page(answer.text).title)
            if page not in seen:
                seen.add(page)
                yield address


def photograph(page: Any, address: str, picture: Path) -> Iterator[str]:
    """Keep the looks of a page; yield what is wrong with each."""
    for width, theme in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        if theme == LOOKS[0][1]:
            page.goto(address)
        settle(page)
        height = page.evaluate("document.documentElement.scrollHeight")
        shown: Any = {"x": 0, "y": 0, "width": width, "height": min(height, TALLEST_PX)}
        page.screenshot(path=picture.with_name(f"{picture.name}-{width}-{theme}.png"), full_page=True, clip=shown)
        told = [f"{height} px tall"] if height > MOST_PX[width] else []
        told += [*(f"scrolls sideways: {one}" for one in sideways(page)[:2]), *axe_violations(page)]
        yield from (f"{width} px, {theme}: {one}" for one in told)


def main() -> int:
    """Return the exit code: 1 where something is wrong with a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.photographs", description=__doc__.partition("\n")[0])
    parser.add_argument("--portal", required=True, metavar="URL", help="address of the running portal")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="where the pictures go")
    parser.add_argument("--start", nargs="+", default=(), metavar="ADDRESS", help="further addresses to begin at")
    parser.add_argument("accounts", nargs="*", metavar="EMAIL:PASSWORD", help="who looks beside a visitor")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    seen: set[tuple[str, str]] = set()
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for account in ("", *given.accounts):
            email, _, password = account.partition(":")
            reader = Reader(given.portal, email, password)
            context = browser.new_context(base_url=given.portal)
            context.add_cookies(
                [{"name": name, "value": value, "url": given.portal} for name, value in reader.client.cookies.items()]
            )
            page, problems = context.new_page(), list[str]()
            watch_page(page, problems, given.portal)
            for address in find_pages(reader, given.start, seen):
                role = email.partition("@")[0] or "visitor"
                name = re.sub(r"\W+", "-", f"{len(seen):04}-{role}-{address}")[:120].strip("-")
                problems += photograph(page, address, given.to / name)
                print(f"{name}: {len(problems) or 'nothing'} wrong", *problems, sep="\n  ", flush=True)
                wrong += len(problems)
                problems.clear()
            context.close()
        browser.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
