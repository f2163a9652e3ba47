"""Trade-off and similarity matrices: sound files, and numbers equal to the results they draw."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from common.errors import InputError
from evaluation.figures.similarity import describe as describe_similarity
from evaluation.figures.similarity import make_similarity_plot
from evaluation.figures.style import PALETTES, draw_plot, hold_spans
from evaluation.figures.tradeoff import SystemPoint, _TradeoffPlot, draw_tradeoff
from evaluation.metrics.catalogue import WER
from evaluation.metrics.voice_similarity import voice_distinctiveness_of_embeddings
from tests.evaluation.svg import texts, title_and_description

POINTS = (
    SystemPoint("Original", 3.8, 8.5, "original"),
    SystemPoint("B2", 7.8, 9.0, "baseline"),
    SystemPoint("T11-p1", 21.0, 7.4, team="T11", rank=1),
    SystemPoint("T11-p3", 31.5, 9.4, team="T11", rank=2),
    SystemPoint("T04-p1", 21.3, 7.5, team="T04"),
)


def voices(speakers: int = 6):
    random = np.random.default_rng(3)
    names = [f"s{n}" for n in range(speakers) for _ in range(4)]
    own = np.repeat(random.normal(size=(speakers, 12)), 4, axis=0)
    original = own + 0.3 * random.normal(size=own.shape)
    anonymised = own @ random.normal(size=(12, 12)) + random.normal(size=own.shape)
    return voice_distinctiveness_of_embeddings(original, anonymised, names)


def test_tradeoff_names_systems_ranks_and_conditions():
    svg = draw_tradeoff(POINTS, minimum_eers=(15, 20, 25, 30))
    assert {"Original", "B2", "T11-p1", "T11-p3", "minimum 15 %", "20 %", "25 %", "30 %"} < set(texts(svg))
    assert title_and_description(svg)[1] == (
        "Original: EER 3.80 %, WER 8.50 %. B2: EER 7.80 %, WER 9.00 %. T11-p1: EER 21.00 %, WER 7.40 %. "
        "T11-p3: EER 31.50 %, WER 9.40 %. T04-p1: EER 21.30 %, WER 7.50 %. "
        "Dashed lines: minimum EER of each condition, 15, 20, 25, 30 %."
    )


@pytest.mark.parametrize("point", [SystemPoint("x", np.nan, 1), SystemPoint("x", 101, 1)])
def test_tradeoff_refuses_what_is_no_rate(point):
    with pytest.raises(InputError, match="x: expected an EER of 0 to 100"):
        draw_tradeoff([point])
    with pytest.raises(InputError, match="at least one system"):
        draw_tradeoff([])


def draw_similarity(voices, genders=None):
    plot = make_similarity_plot(voices, genders)
    return draw_plot(plot, title="Similarity", description=describe_similarity(voices))


def test_similarity_tells_dominance_and_groups():
    found = voices()
    svg = draw_similarity(found, genders={f"s{n}": "fm"[n > 1] for n in range(6)})
    assert {"M_oo", "M_op", "M_pp", "2 female", "4 male", "similarity"} < set(texts(svg))
    assert f"diagonal dominance {found.oo.diagonal_dominance:.3f}" in texts(svg)
    assert title_and_description(svg)[1] == describe_similarity(found)
    assert f"G_VD: {found.gain_db:.2f} dB" in describe_similarity(found)
    assert "6 speakers" in texts(draw_similarity(found))


def test_similarity_needs_the_gender_of_every_speaker():
    with pytest.raises(InputError, match="found none for 5, such as s1"):
        draw_similarity(voices(), genders={"s0": "f"})


def test_limits_that_lie_near_each_other_and_a_name_at_the_edge_can_be_read():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 4.4), layout="constrained")
    points = [SystemPoint("Original", 0.0, 14.0, kind="original"), SystemPoint("B2", 80.0, 60.0, kind="baseline")]
    _TradeoffPlot(points, WER, (20, 5, 10), True).paint(figure, PALETTES["light"])
    figure.draw_without_rendering()
    [axes] = figure.axes
    limits = [text for text in axes.texts if text.get_text().removeprefix("minimum ").rstrip(" %").isdecimal()]
    boxes = [text.get_window_extent() for text in limits]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    [name] = [text for text in axes.texts if text.get_text() == "Original"]
    assert name.arrow_patch is None, "it stands beside its point"


def test_one_far_interval_is_cut_with_an_arrowhead_and_does_not_squeeze_the_others():
    from matplotlib.figure import Figure

    utilities = {"B2": (12.0, 10.0, 14.0), "T1": (14.0, 11.0, 17.0), "T2": (15.0, 12.0, 160.0)}
    points = [
        SystemPoint(name, 30.0, utility, utility_interval=(low, high))
        for name, (utility, low, high) in utilities.items()
    ]
    figure = Figure()
    _TradeoffPlot(points, WER, (10,), False).paint(figure, PALETTES["light"])
    [axes] = figure.axes
    bottom, top = axes.get_ylim()
    assert (bottom < 10, 17 < top < 25) == (True, True)
    assert [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "^"] == [[[30.0, top]]]
    assert axes.get_xlim()[0] < 10, "the condition has its line"


def test_an_axis_holds_all_intervals_where_no_single_one_is_far():
    assert hold_spans([1, 2, 3], [(0, 2), (1, 9), (2, 10)]) == (0, 10)
    assert hold_spans([1, 9], [(0, 2), (8, 30)]) == (0, 30)
    assert hold_spans([5, 5, 5], [(5, 5), (5, 5), (4, 9)]) == (4, 9), "the others need no room at all"
