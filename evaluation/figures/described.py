"""Draws a figure that is described as JSON, so that another process can have it without a plotting library of its own.

``python -m evaluation.figures.described`` reads the description from standard input and writes the file to standard
output. Equal descriptions give equal bytes; `describe_tradeoff` and `describe_bars` write them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evaluation.figures.style import ImageFormat, Theme
from evaluation.figures.system_bars import SystemBar, draw_system_bars
from evaluation.figures.tradeoff import SystemPoint, draw_tradeoff
from evaluation.metrics.catalogue import find_metric

VERSION = 4  # of the drawings: a new one makes every kept figure anew


def describe_tradeoff(
    points: Sequence[SystemPoint],
    *,
    metric: str,
    estimator: str,
    minimum_eers: Sequence[float],
    narrow: bool = False,
    theme: Theme,
    image_format: ImageFormat,
) -> str:
    """The figure of `draw_tradeoff`."""
    return _described(
        "tradeoff", theme, image_format, points=[asdict(one) for one in points], metric=metric, estimator=estimator,
        minimum_eers=list(minimum_eers), narrow=narrow,
    )  # fmt: skip


def describe_bars(
    bars: Sequence[SystemBar],
    *,
    metric: str,
    estimator: str,
    minimum: float | None,
    theme: Theme,
    image_format: ImageFormat,
) -> str:
    """The figure of `draw_system_bars`."""
    return _described(
        "bars", theme, image_format, bars=[asdict(one) for one in bars], metric=metric, estimator=estimator,
        minimum=minimum,
    )  # fmt: skip


def draw_described(description: str) -> bytes:
    """The file of a description.

    Raises:
        MetricInputError: as the figure itself.
        KeyError: a description that this module did not write.
    """
    given = json.loads(description)
    return _FIGURES[given["figure"]](given)


def main() -> int:
    """Standard input to standard output."""
    sys.stdout.buffer.write(draw_described(sys.stdin.read()))
    return 0


def _described(figure: str, theme: str, image_format: str, **content: Any) -> str:
    named = {"figure": figure, "version": VERSION, "theme": theme, "format": image_format}
    return json.dumps(named | content, sort_keys=True)


def _tradeoff(given: Mapping[str, Any]) -> bytes:
    points = [
        SystemPoint(**one | {name: one[name] and tuple(one[name]) for name in ("eer_interval", "utility_interval")})
        for one in given["points"]
    ]
    return draw_tradeoff(
        points,
        metric=find_metric(given["metric"], given["estimator"]),
        minimum_eers=given["minimum_eers"],
        narrow=given["narrow"],
        theme=given["theme"],
        image_format=given["format"],
    )


def _bars(given: Mapping[str, Any]) -> bytes:
    return draw_system_bars(
        [SystemBar(**one) for one in given["bars"]],
        find_metric(given["metric"], given["estimator"]),
        minimum=given["minimum"],
        theme=given["theme"],
        image_format=given["format"],
    )


_FIGURES: dict[str, Callable[[Mapping[str, Any]], bytes]] = {"tradeoff": _tradeoff, "bars": _bars}

if __name__ == "__main__":
    sys.exit(main())
