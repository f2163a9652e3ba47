"""Bars of many systems, and figures drawn from their description in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from common.errors import InputError
from evaluation.figures.bars import SystemBar, describe_systems, draw_system_bars
from evaluation.figures.drawing_process import LENGTH_BYTES
from evaluation.figures.json_figures import describe_bars, describe_tradeoff, draw_described
from evaluation.figures.style import PALETTES
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff
from evaluation.metrics.catalogue import GAIN_OF_VOICE_DISTINCTIVENESS, PITCH_CORRELATION
from tests.evaluation.svg import fills, texts, title_and_description

WER = {"metric": "wer", "estimator": "tglarge"}
BARS = (SystemBar("T01-p1", 0.71, 0.68, 0.74, 0.52), SystemBar("B2", 0.62, is_baseline=True))
POINTS = (
    SystemPoint("Original", 3.8, 8.5, "original"),
    SystemPoint("T11-p1", 21.0, 7.4, team="T11", eer_interval=(18.0, 24.0), utility_interval=(6.9, 7.9)),
)


def test_system_bars_name_systems_values_and_minimum():
    svg = draw_system_bars(BARS, PITCH_CORRELATION, minimum=0.3)
    assert {"T01-p1", "B2", "0.71", "0.62", "minimum 0.3"} <= set(texts(svg))
    assert title_and_description(svg) == (
        "Pitch correlation ρF0 of each system",
        "T01-p1: 0.71. B2: 0.62. Dashed line: minimum of 0.3.",
    )
    assert fills(svg, PALETTES["light"].series[0]) == 1


def test_negative_bars_go_to_the_left():
    bars = [SystemBar("A", -10.1, -11.0, -9.0), SystemBar("B", -1.6)]
    assert {"−10.1", "−1.60"} <= set(texts(draw_system_bars(bars, GAIN_OF_VOICE_DISTINCTIVENESS)))
    assert describe_systems(bars, GAIN_OF_VOICE_DISTINCTIVENESS) == "A: −10.1 dB. B: −1.60 dB."


@pytest.mark.parametrize(("bars", "found"), [((), "none"), ((SystemBar("A", float("nan")),), "nan of A")])
def test_bars_without_a_finite_value_are_refused(bars, found):
    with pytest.raises(InputError, match=found):
        draw_system_bars(bars, PITCH_CORRELATION)


def test_described_figures_are_drawn_by_a_process_one_line_after_another():
    lines = [
        describe_tradeoff(POINTS, **WER, minimum_eers=(15,), theme="light", image_format="svg"),
        describe_bars(
            BARS, metric="pitch_correlation", estimator="praat", minimum=0.3, theme="dark", image_format="pdf"
        ),
    ]
    command = [sys.executable, "-m", "evaluation.figures.json_figures"]
    answer = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, check=True, timeout=120)
    files = [draw_described(line) for line in lines]
    assert answer.stdout == b"".join(len(each).to_bytes(LENGTH_BYTES, "big") + each for each in files)


def test_tradeoff_takes_another_utility_and_says_which_way_is_better():
    points = [SystemPoint("A", 20.0, 0.61, utility_interval=(0.5, 0.7)), SystemPoint("B", 30.0, 0.42)]
    svg = draw_tradeoff(points, metric=PITCH_CORRELATION)
    assert "Utility: Pitch correlation ρF0  (up is better)" in texts(svg)
    assert "A: EER 20.00 %, Pitch correlation ρF0 0.61." in (title_and_description(svg)[1] or "")
    text = describe_tradeoff(
        points, metric="pitch_correlation", estimator="praat", minimum_eers=(), theme="light", image_format="svg"
    )
    assert draw_described(text) == draw_tradeoff(points, metric=PITCH_CORRELATION)
