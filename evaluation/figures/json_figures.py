"""Draws a figure that is described as JSON, so that another process can have it without a plotting library of its own.

``python -m evaluation.figures.json_figures`` reads one description a line and answers each with its file, as
`evaluation.figures.drawing_process` says. Equal descriptions give equal bytes; `describe_tradeoff`, `describe_bars` and
`describe_plot` write them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evaluation.figures.bars import SystemBar, draw_system_bars
from evaluation.figures.drawing_process import answer_lines
from evaluation.figures.row_plots import Rows, Violin, ViolinPlot
from evaluation.figures.scatter_plots import Cloud, ScatterPlot
from evaluation.figures.style import draw_formats
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff
from evaluation.metrics.catalogue import find_metric

VERSION = 10  # of the drawings: a new one makes every kept figure again


def describe_tradeoff(points: Sequence[SystemPoint], **look: Any) -> str:
    """The figure of `draw_tradeoff`; `look`: what that takes, the metric by its key and estimator."""
    return _describe("tradeoff", points, **look)


def describe_bars(bars: Sequence[SystemBar], **look: Any) -> str:
    """The figure of `draw_system_bars`; `look`: what that takes, the metric by its key and estimator."""
    return _describe("bars", bars, **look)


def describe_plot(plot: ViolinPlot | ScatterPlot, **look: Any) -> str:
    """A figure of ratings; `look`: title, description, theme, stamp, image format, as `style.draw_formats` has them."""
    kind = "violins" if isinstance(plot, ViolinPlot) else "scatter"
    return json.dumps({"figure": kind, "version": VERSION, "plot": asdict(plot), "look": look}, sort_keys=True)


def draw_described(description: str | bytes) -> bytes:
    """The file of a description.

    Raises:
        MetricInputError: as the figure itself.
        KeyError: a description that this module did not write.
    """
    given = json.loads(description)
    if given["figure"] in ("violins", "scatter"):
        look, made = given["look"], _read_plot(given["figure"], given["plot"])
        image_format = look.pop("image_format")
        return draw_formats(made, [image_format], **look)[image_format]
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


def _read_plot(kind: str, given: dict[str, Any]) -> ViolinPlot | ScatterPlot:
    if kind == "violins":
        parts = {"rows": Rows(**given["rows"]), "violins": [Violin(**one) for one in given["violins"]]}
        return ViolinPlot(**given | parts)
    return ScatterPlot(**given | {"clouds": [Cloud(**one) for one in given["clouds"]]})


def _describe(
    figure: str, shown: Sequence[SystemPoint | SystemBar], *, metric: str, estimator: str, **look: Any
) -> str:
    named = {"figure": figure, "version": VERSION, "metric": metric, "estimator": estimator, "look": look}
    return json.dumps(named | {"shown": [asdict(one) for one in shown]}, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())
