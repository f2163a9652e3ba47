"""Names beside crowded points, and what a figure in a page tells and where it leads."""

import itertools
import math
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from evaluation.figures import style
from evaluation.figures.label_placement import place_names
from evaluation.figures.style import PALETTES, for_page, place_systems
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff

TOKENS = Path(__file__).resolve().parents[3] / "static/portal/tokens.css"
SVG = "{http://www.w3.org/2000/svg}"
POINTS = [
    SystemPoint("T01-p1", 21.0, 7.4, words="T01-p1: EER < 22 %", link="/systems/a/"),
    SystemPoint("B1.a", 11.8, 8.3, kind="published", words="B1.a: published"),
]


def test_names_of_twenty_points_close_to_each_other_do_not_collide():
    spread = 0.0
    random = np.random.default_rng(7)
    points = [(float(x), float(y)) for x, y in 200 + spread * random.random((20, 2))]
    boxes = place_names(points, [(36.0, 11.0)] * 20, 9.0, [], (0.0, 0.0, 400.0, 330.0))
    for one, other in itertools.combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    assert all(left >= 0 and bottom >= 0 and right <= 400 and top <= 330 for left, bottom, right, top in boxes)


def test_name_is_nearest_to_its_own_point():
    points = [(100.0, 100.0), (130.0, 100.0), (115.0, 118.0)]
    for own, (left, bottom, right, top) in zip(
        points, place_names(points, [(36.0, 11.0)] * 3, 9.0, [], (0.0, 0.0, 400.0, 330.0)), strict=True
    ):
        away = {(x, y): math.hypot(max(left - x, x - right, 0), max(bottom - y, y - top, 0)) for x, y in points}
        assert min(points, key=away.__getitem__) == own


def test_system_has_one_place_by_the_order_of_labels():
    assert place_systems(["T02-p1", "B2", "T01-p1", "B2"]) == {"B2": 0, "T01-p1": 1, "T02-p1": 2}


@pytest.fixture(scope="module")
def drawn():
    return draw_tradeoff(POINTS, minimum_eers=(15,))


def test_points_tell_and_lead_on(drawn):
    root = ElementTree.fromstring(for_page(drawn, "one", "Two points"))
    links = {(one.get("href"), one.findtext(f"{SVG}title")) for one in root.iter(f"{SVG}a")}
    assert links == {("/systems/a/", "T01-p1: EER < 22 %")}
    told = [one.text for one in root.iter(f"{SVG}title")]
    assert told.count("B1.a: published") == 2  # the point and its name
    assert (root.get("role"), root.get("aria-label")) == ("group", "Two points")


def test_figures_of_one_page_share_no_ids(drawn):
    pages = [for_page(drawn, name, "Two points") for name in ("one", "other")]
    ids = [set(re.findall(r' id="([^"]+)"', page)) for page in pages]
    assert ids[0]
    assert not ids[0] & ids[1]
    for page, own in zip(pages, ids, strict=True):
        used = set(re.findall(r'(?:url\(|href=")#([^")]+)', page))
        assert used <= own


def test_figure_in_a_page_has_the_colours_of_its_style_sheet_and_no_style(drawn):
    page = for_page(drawn, "one", "Two points")
    assert not re.search(r"<style|<script| style=| on\w+=", page)
    assert not set(re.findall(r"#[0-9a-f]{6}", page)) & set(style._flatten(PALETTES["light"]))
    light, dark = TOKENS.read_text(encoding="utf-8").split("@media screen and (prefers-color-scheme: dark)")
    palettes = tomllib.loads(Path(style.__file__).with_name("palettes.toml").read_text(encoding="utf-8"))
    for theme, css in (("light", light), ("dark", dark)):
        told = dict(re.findall(r"(--figure-[\w-]+): (#[0-9a-f]{6});", css))
        assert told == dict(zip(style.FIGURE_COLOURS, style._flatten(PALETTES[theme]), strict=True))
        assert told["--figure-ink"] == palettes[theme]["ink"]
