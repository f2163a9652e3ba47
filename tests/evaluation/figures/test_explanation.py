"""The figure of one instant: sound files, what it says, the numbers beside it, and the process that draws it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from evaluation.figures.explanation import (
    as_namespace,
    describe,
    draw_explanation,
    explanation_curves,
    explanation_numbers,
    size_of,
    write_explanation,
)
from tests.evaluation.svg import SVG, assert_sound, texts, title_and_description

ROOT = Path(__file__).resolve().parents[3]
HERTZ = np.linspace(0, 8000, 101)


@dataclass(frozen=True)
class Side:
    f0_hz: float
    level_dbfs: float
    spectrum_db: np.ndarray
    envelope_db: np.ndarray
    peaks_hz: np.ndarray
    peaks_db: np.ndarray
    wave: np.ndarray


@dataclass(frozen=True)
class Poles:
    alpha: float
    radii: np.ndarray
    angles_before: np.ndarray
    angles_after: np.ndarray


@dataclass(frozen=True)
class Warp:
    from_hz: np.ndarray
    to_hz: np.ndarray


@dataclass(frozen=True)
class Marks:
    before_s: np.ndarray
    after_s: np.ndarray


@dataclass(frozen=True)
class Instant:
    title: str
    at_s: float
    rate_hz: int
    frequencies_hz: np.ndarray
    original: Side
    anonymised: Side
    moves: tuple[tuple[float, float], ...]
    poles: Poles | None = None
    warp: Warp | None = None
    marks: Marks | None = None
    sentences: tuple[str, ...] = ("First <b>sentence</b>.", "Second & last.")


def side(f0_hz, peaks_hz):
    peaks_hz = np.array(peaks_hz, float)
    envelope = -30 - np.abs(HERTZ[:, None] - peaks_hz).min(axis=1, initial=4000) / 100
    wave = np.sin(2 * np.pi * 150 * np.arange(640) / 16000)
    return Side(f0_hz, -22.25, envelope - 5, envelope, peaks_hz, np.full(peaks_hz.size, -30.0), wave)


PLAIN = Instant(
    "B2",
    1.2,
    16000,
    HERTZ,
    side(118, [520, 1480, 2500]),
    side(0, [640, 1730, 4400]),
    ((520.0, 640.0), (1480.0, 1730.0)),
)
WITH_POLES = replace(PLAIN, poles=Poles(0.7, np.array([0.98, 0.9]), np.array([0.2, 2.0]), np.array([0.2, 2.0]) ** 0.7))
WITH_WARP = replace(PLAIN, warp=Warp(HERTZ, 0.9 * HERTZ))
WITH_MARKS = replace(PLAIN, warp=WITH_WARP.warp, marks=Marks(np.array([-0.01, 0.0]), np.array([-0.005, 0.003, 0.01])))
SILENT = replace(PLAIN, original=side(0, []), anonymised=side(0, []), moves=())
KINDS = {"plain": PLAIN, "poles": WITH_POLES, "warp": WITH_WARP, "marks": WITH_MARKS, "silent": SILENT}


@cache
def drawn(kind):
    """In the light theme, as SVG."""
    return draw_explanation(KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_explanation_is_a_sound_figure(kind):
    assert_sound(partial(draw_explanation, KINDS[kind]))


@pytest.mark.parametrize(
    ("kind", "panel"),
    [
        ("plain", "Waveforms"),
        ("poles", "Poles, φ becomes φ^0.7"),
        ("warp", "Mapping of frequencies"),
        ("marks", "Waveforms and pitch marks"),
    ],
)
def test_explanation_names_voices_instant_and_what_is_inside(kind, panel):
    found = texts(drawn(kind))
    assert {"Spectrum and envelope at 1.20 s", "original, F0 118 Hz", "anonymised, no F0", panel} <= set(found)
    assert len([text for text in found if text.startswith(("Poles", "Mapping", "Waveforms"))]) == 1


def test_explanation_is_described_in_its_own_sentences():
    described = "First <b>sentence</b>. Second & last."
    assert describe(PLAIN) == described
    assert title_and_description(drawn("plain")) == ("Original and anonymised voice at 1.20 s", described)


@pytest.mark.parametrize("narrow", [False, True])
def test_explanation_has_the_size_that_a_page_keeps_for_it(narrow):
    root = ElementTree.fromstring(draw_explanation(WITH_POLES, narrow=narrow))
    inches = [float(root.get(name).removesuffix("pt")) / 72 for name in ("width", "height")]
    assert inches == pytest.approx(size_of(narrow=narrow).inches)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_word_lies_inside_of_the_figure(kind, narrow):
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    drawn = []
    original = Figure.savefig
    try:
        Figure.savefig = lambda figure, *given, **named: (drawn.append(figure), original(figure, *given, **named))[1]
        draw_explanation(KINDS[kind], narrow=narrow)
    finally:
        Figure.savefig = original
    [figure] = drawn
    width, height = figure.bbox.size
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible():
            box = text.get_window_extent()
            assert box.x0 >= 0, text
            assert box.x1 <= width, text
            assert box.y0 >= 0, text
            assert box.y1 <= height, text


def test_resonances_that_move_are_joined_by_arrows():
    def arrows(kind):
        lines = ElementTree.fromstring(drawn(kind)).iter(f"{SVG}path")
        return sum(element.get("fill") == "#59636e" for element in lines)

    assert arrows("silent") == 0
    assert arrows("plain") == 2


def test_numbers_hold_pairs_lonely_resonances_and_poles():
    rows = explanation_numbers(WITH_POLES).rows
    assert rows[:2] == (("F0", "Hz", 118, None), ("level", "dBFS", -22.25, -22.25))
    assert [row[2:] for row in rows if row[0].startswith("resonance")] == [
        (520.0, 640.0),
        (1480.0, 1730.0),
        (2500.0, None),
        (None, 4400.0),
    ]
    to_hz = 16000 / (2 * np.pi)
    assert rows[-2][0] == "pole 2, angle"
    assert rows[-2][2:] == pytest.approx((2.0 * to_hz, 2.0**0.7 * to_hz))
    assert rows[-1] == ("pole 2, radius", "", 0.9, 0.9)


def test_numbers_and_curves_read_back_the_same():
    header, *rows = csv.reader(io.StringIO(explanation_curves(PLAIN).csv()))
    assert header == [
        "frequency_hz",
        "original_spectrum_db",
        "original_envelope_db",
        "anonymised_spectrum_db",
        "anonymised_envelope_db",
    ]
    columns = np.array(rows, float).T
    curves = (side.spectrum_db for side in (PLAIN.original, PLAIN.anonymised))
    np.testing.assert_array_equal(columns[0], HERTZ)
    np.testing.assert_array_equal(columns[[1, 3]], list(curves))
    assert "resonance 3,Hz,2500.0,\n" in explanation_numbers(PLAIN).csv()


# By another process --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_written_explanation_draws_the_same_picture(kind):
    text = write_explanation(KINDS[kind])
    assert draw_explanation(as_namespace(json.loads(text))) == drawn(kind)
    assert text == write_explanation(KINDS[kind])


def test_importing_the_figure_loads_no_plotting_library():
    program = (
        "import sys, evaluation.figures.explanation\n"
        "print('held', *sorted({'matplotlib', 'scipy', 'django'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "held"
