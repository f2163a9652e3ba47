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


def test_name_of_a_point_that_lies_on_another_stays_beside_it():
    points = [(100.0, 100.0), (101.0, 99.0), (250.0, 250.0)]
    boxes = place_names(points, [(8.0, 11.0)] * 3, 9.0, [], (90.0, 90.0, 400.0, 330.0))
    assert all(math.hypot(max(left - 100, 0), max(bottom - 100, 0)) < 18 for left, bottom, *_ in boxes[:2])


def test_line_to_a_name_crosses_no_other_point():
    """Two systems with wide intervals, between the dashed lines of the conditions."""
    points = [(138.2, 108.0), (189.2, 123.5)]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    taken += [(20.4, 107.0, 280.5, 109.0), (137.2, 25.0, 139.2, 225.0)]
    taken += [(51.0, 122.5, 319.2, 124.5), (188.2, 18.1, 190.2, 262.9)]
    taken += [(x - 2, 0.0, x + 2, 340.0) for x in (51.0, 102.0, 153.0, 204.0)]
    boxes = place_names(points, [(42.0, 12.0), (17.0, 12.0)], 9.0, taken, (0.0, 0.0, 446.0, 340.0))
    for own, other, (left, bottom, right, top) in zip(points, points[::-1], boxes, strict=True):
        ends = np.array([own, ((left + right) / 2, (bottom + top) / 2)])
        way = ends[0] + np.linspace(0, 1, 50)[:, None] * (ends[1] - ends[0])
        assert np.hypot(*(way - other).T).min() > 6, boxes


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
