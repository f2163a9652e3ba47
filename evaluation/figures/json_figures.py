"""Draws a figure that is described as JSON, so that another process can have it without a plotting library of its own.

``python -m evaluation.figures.json_figures`` reads one description a line and answers each with its file, as
`evaluation.figures.drawing_process` says. Equal descriptions give equal bytes; `describe_tradeoff`, `describe_bars` and
`describe_det` write them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from evaluation.figures.bars import SystemBar, draw_system_bars
from evaluation.figures.det import TITLE, Curve, plot_curves, spread_systems
from evaluation.figures.drawing_process import answer_lines
from evaluation.figures.style import draw_plot
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff
from evaluation.metrics.catalogue import find_metric

VERSION = 12  # of the drawings: a new one makes every kept figure again


def describe_tradeoff(points: Sequence[SystemPoint], **look: Any) -> str:
    """Return the figure of `draw_tradeoff`; `look`: what that takes, the metric by its key and estimator."""
    return _describe("tradeoff", points, **look)


def describe_bars(bars: Sequence[SystemBar], **look: Any) -> str:
    """Return the figure of `draw_system_bars`; `look`: what that takes, the metric by its key and estimator."""
    return _describe("bars", bars, **look)


def describe_det(curves: Iterable[Curve], axis_words: tuple[str, str], **look: Any) -> str:
    """Describe DET curves of systems; `look`: theme and format as `draw_plot` takes them."""
    arrays = ("miss_rate", "false_alarm_rate")
    shown = [asdict(one) | {name: getattr(one, name).tolist() for name in arrays} for one in curves]
    return json.dumps({"figure": "det", "version": VERSION, "axes": axis_words, "shown": shown, "look": look})


def draw_described(description: str | bytes) -> bytes:
    """Return the file of a description.

    Raises:
        InputError: as the figure itself.
        KeyError: a description that this module did not write.
    """
    given = json.loads(description)
    if given["figure"] == "det":
        arrays = ("miss_rate", "false_alarm_rate")
        curves = [Curve(**one | {name: np.array(one[name]) for name in arrays}) for one in given["shown"]]
        plot = plot_curves(curves, given["axes"], *spread_systems(curves))
        return draw_plot(plot, title=TITLE, description=TITLE, **given["look"])
    metric = find_metric(given["metric"], given["estimator"])
    if given["figure"] == "bars":
        return draw_system_bars([SystemBar(**one) for one in given["shown"]], metric, **given["look"])
    points = [
        SystemPoint(**one | {name: one[name] and tuple(one[name]) for name in ("eer_interval", "utility_interval")})
        for one in given["shown"]
    ]
    return draw_tradeoff(points, metric=metric, **given["look"])


def main() -> int:
    """Answer until the input ends or nothing is asked for a while."""
    return answer_lines(draw_described)


def _describe(
    figure: str, shown: Sequence[SystemPoint | SystemBar], *, metric: str, estimator: str, **look: Any
) -> str:
    named = {"figure": figure, "version": VERSION, "metric": metric, "estimator": estimator, "look": look}
    return json.dumps(named | {"shown": [asdict(one) for one in shown]}, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())
