"""The histogram of ρF0: sound files, the same bytes each time, the numbers in words."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from common.errors import InputError
from evaluation.figures.histogram import MINIMUM_PITCH_CORRELATION, Threshold, describe, make_pitch_plot
from evaluation.figures.style import PALETTES, draw_plot
from evaluation.metrics.averages import distribute

VALUES = {"Female": [0.61, 0.7, 0.72, 0.75], "Male": [0.25, 0.33, 0.6]}
SVG = "{http://www.w3.org/2000/svg}"


def draw(values, **look):
    plot, words = make_pitch_plot(values, MINIMUM_PITCH_CORRELATION)
    return draw_plot(plot, **words, **look)


def parse(svg: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in parse(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("theme", PALETTES)
def test_histogram_is_an_svg_without_script_and_style(theme):
    root = parse(draw(VALUES, theme=theme))
    assert root.tag == f"{SVG}svg"
    for element in root.iter():
        assert element.tag not in {f"{SVG}script", f"{SVG}style", f"{SVG}image"}
        assert not [name for name in element.attrib if name == "style" or name.startswith("on")]
        assert element.get("fill", "none") != "#ffffff"


def test_histogram_keeps_text_as_text_in_a_generic_font():
    svg = draw(VALUES)
    assert {"Female", "Male", "Pitch correlation ρF0", "2022 minimum", "Share of utterances, %"} < set(texts(svg))
    assert "n = 4, ▼ mean 0.6950" in texts(svg)
    assert "n = 3, ▼ mean 0.3933" in texts(svg)
    assert {element.get("font-family") for element in parse(svg).iter(f"{SVG}text")} == {"sans-serif"}


def test_histogram_has_a_name_and_a_description():
    root = parse(draw(VALUES))
    assert (root.get("role"), root.findtext(f"{SVG}title")) == ("img", "Histogram of Pitch correlation ρF0")
    assert root.findtext(f"{SVG}desc") == (
        "Female: n = 4, mean 0.6950, standard deviation 0.0522. "
        "Male: n = 3, mean 0.3933, standard deviation 0.1497. "
        "Dashed line: 2022 minimum, 0.3."
    )


def test_bars_are_shares_of_their_group():
    svg = draw({"few": [0.52, 0.62, 0.72], "many": [0.52, 0.62, 0.72] * 50})
    few, many = (bars(svg, colour) for colour in PALETTES["light"].series[:2])
    assert few == pytest.approx(many, abs=0.02)
    assert len(few) == 3


def bars(svg, colour):
    """Heights of the bars of a colour: the horizontal parts of its outline above the lowest."""
    found = []
    for path in parse(svg).iter(f"{SVG}path"):
        if path.get("fill") == colour:
            numbers = [float(word) for word in path.get("d", "").split() if word[-1].isdigit()]
            points = list(zip(numbers[::2], numbers[1::2], strict=True))
            floor = max(numbers[1::2])
            found += [floor - y for (x, y), (other, z) in pairwise(points) if y == z < floor and x != other]
    return found


def test_histogram_without_values_is_refused():
    with pytest.raises(InputError):
        draw({"Female": []})


def test_histogram_without_a_threshold_says_nothing_of_one():
    distribution = distribute({"all": [-3.0, 2.0]}, bins_per_unit=1, lower=-5, upper=5)
    assert "Dashed" not in describe(distribution)
    assert describe(distribution, Threshold(1.0, "limit")).endswith("Dashed line: limit, 1.")


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first: str, second: str) -> float:
    darker, lighter = sorted([luminance(first), luminance(second)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("theme", "page"), [("light", "#ffffff"), ("dark", "#14181d")])
def test_palette_has_enough_contrast(theme, page):
    palette = PALETTES[theme]
    for text in (palette.ink, palette.muted, palette.warning):
        assert contrast(text, page) >= 4.5
    for fill in palette.series[:2]:
        assert contrast(fill, page) >= 2.2
    assert contrast(palette.series[0], palette.series[1]) >= 1.25
