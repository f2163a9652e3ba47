"""Take the pictures of the manual and of README from the demo.

    .venv/bin/python -m tests.pictures [FOLDER]

The demo runs without models on a data folder: a new one, or FOLDER, where a finished demo is continued in seconds.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import django
from PIL import Image

from tests.browsing import CHROMIUM, FLAGS, settle, watch_page
from tests.golden.demo import ROOT, started_demo
from tests.golden.demo_reading import Reader

FOLDER = ROOT / "docs" / "pictures"
WIDE: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 360, "height": 740}
MOST_COLOURS = 128  # of a file, which stays small


class Picture(NamedTuple):
    """What a picture shows: a page as somebody sees it, from its top or one element of it."""

    name: str
    who: str
    address: str
    height: int = 800
    part: str = ""


PICTURES = (
    Picture("leaderboard", "", "/editions/demo/leaderboard/", height=1180),
    Picture("det", "", "/systems/demo-t01-p1/", part="figure"),
    Picture("results", "", "/studies/demo-ratings/results/", height=1400),
    Picture("edition", "organizer", "/editions/demo/"),
    Picture("new-challenge", "organizer", "/editions/new/", height=900),
    Picture("new-test", "organizer", "/studies/new/", height=900),
    Picture("report", "hasty", "/submissions/6/", height=900),
    Picture("operations", "operator", "/operations/", height=900),
)


def keep(name: str, screenshot: bytes) -> None:
    """Write a picture with few colours, as a PNG file."""
    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(MOST_COLOURS, dither=Image.Dither.NONE)
    image.save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size // 1000} kB", flush=True)


def take_pictures(browser: Any, base: str, passwords: dict[str, str]) -> None:
    """Take the pictures of pages, each as the account that sees it."""
    for picture in PICTURES:
        email = f"{picture.who}@demo.example" if picture.who else ""
        cookies = Reader(base, email, passwords.get(email, "")).client.cookies
        context = browser.new_context(base_url=base, viewport=WIDE, reduced_motion="reduce")
        context.add_cookies([{"name": name, "value": value, "url": base} for name, value in cookies.items()])
        page, problems = context.new_page(), list[str]()
        watch_page(page, problems, base)
        page.goto(picture.address)
        page.set_viewport_size(WIDE | {"height": picture.height})
        settle(page)
        keep(picture.name, page.locator(picture.part).first.screenshot() if picture.part else page.screenshot())
        context.close()


def take_trial(browser: Any, base: str, link: str) -> None:
    """Take part in the listening test on a phone up to the first trial, and take a picture of it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from tests.listening.browser.evaluators import Evaluator  # it needs the models

    evaluator = Evaluator(base, link, seed=0)
    evaluator.options = {"viewport": PHONE, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
    evaluator.browser = browser
    evaluator.open_context()
    evaluator.page.goto(link)
    for step in ("begin", "agree", "tell_about", "test_sound", "read_role_play", "expect_trials", "listen"):
        getattr(evaluator, step)()
    keep("trial", evaluator.page.screenshot())
    evaluator.context.close()


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="data folder of a finished demo")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as temporary, started_demo(given.folder or Path(temporary)) as (base, lines):
        passwords = dict(re.findall(r"\b(\w+@demo\.example) ([a-z2-7]{12})\b", "\n".join(lines)))
        [link] = {found[1] for line in lines if (found := re.search(r"http://[^/]+(/listen/join/\S+)", line))}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            take_pictures(browser, base, passwords)
            take_trial(browser, base, link)
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
