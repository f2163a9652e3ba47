"""What the EER hides, in three panels: targets found at few false alarms, ranks of the true speaker, speakers alone.

Conventions: shares in per cent; false alarms on a logarithmic axis down to 0.01 %, where a curve ends that rests on too
few trials; attack models are distinguished by colour, dashes and marker together; dashed grey lines are chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from common.arrays import Floats
from common.errors import InputError
from common.rounding import fixed, range_in_words
from evaluation.figures import style
from evaluation.figures.det import LOW_PERCENT
from evaluation.metrics.detection import DetCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Privacy beyond the EER"
LOWEST_PERCENT = 0.01
MOST_TESTS = 8
SIZE = style.Size(4.4, 7.4)
_MOST_TICKS = 8


@dataclass(frozen=True, slots=True, eq=False)
class ExposedTest:
    """One test as it is drawn.

    Attributes:
        label: such as its attack model.
        det: its curve.
        rank_chances: shape (speakers,), chance of each rank, the most similar first; empty where there are no ranks.
        speaker_eers: shape (speakers,), shares, the most exposed first.
    """

    label: str
    det: DetCurve
    rank_chances: Floats
    speaker_eers: Floats


@dataclass(frozen=True, slots=True)
class ExposurePlot:
    """Three panels, a line for each test in each."""

    tests: Sequence[ExposedTest]

    @property
    def size(self) -> style.Size:
        return SIZE

    def paint(self, figure: Figure, palette: style.Palette) -> None:
        found, ranks, speakers = figure.subplots(3, 1)
        for place, test in enumerate(self.tests):
            dashes = style.DASHES[(place + place // len(palette.series)) % len(style.DASHES)]
            look: style.Look = {"color": palette.series[place % len(palette.series)], "linewidth": 1.6}
            look |= {"dashes": dashes} if dashes else {}
            marks: style.Look = {"marker": style.MARKERS[place % len(style.MARKERS)], "markersize": 4.5}
            alarms, hits = _found(test.det)
            found.plot(alarms, hits, drawstyle="steps-post", label=test.label, **look)
            if test.rank_chances.size:
                places = np.arange(1, test.rank_chances.size + 1)
                ranks.plot(places, 100 * test.rank_chances, **look, **marks)
            speakers.plot(np.arange(1, test.speaker_eers.size + 1), 100 * test.speaker_eers, **look, **marks)
        found.axvspan(LOWEST_PERCENT, LOW_PERCENT, color=palette.line, alpha=0.3, linewidth=0, zorder=0)
        _frame(found, f"False alarms, % (shaded: at most {LOW_PERCENT:g})", "Targets found, %")
        _frame(ranks, "Rank of the true speaker", "Utterances, %")
        _frame(speakers, "Speakers, the most exposed first", "EER, %")
        along = np.geomspace(LOWEST_PERCENT, 100, 100)
        chance: style.Look = {"color": palette.muted, "linewidth": 1.1, "dashes": (5, 3), "zorder": 1}
        found.plot(along, along, label="chance", **chance)
        found.set(xscale="log", xlim=(LOWEST_PERCENT, 100), ylim=(-3, 103))
        found.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        found.minorticks_off()
        sizes = [test.rank_chances.size for test in self.tests if test.rank_chances.size]
        if sizes:
            ranks.axhline(100 / max(sizes), **chance)
            _number_axis(ranks, max(sizes))
        ranks.set_ylim(bottom=0)
        speakers.axhline(50, **chance)
        speakers.set_ylim(0, 103)
        _number_axis(speakers, max(1, *(test.speaker_eers.size for test in self.tests)))


def make_exposure_plot(tests: Sequence[ExposedTest]) -> ExposurePlot:
    """The figure before it is drawn.

    Raises:
        InputError: no test, or more than eight.
    """
    if not 1 <= len(tests) <= MOST_TESTS:
        raise InputError(f"Expected 1 to {MOST_TESTS} tests in a figure, found {len(tests)}.")
    return ExposurePlot(tests)


def describe(tests: Sequence[ExposedTest]) -> str:
    """Return the figure in words, for those who cannot see it."""
    return " ".join(f"{test.label}: {', '.join(_facts(test))}." for test in tests)


def _facts(test: ExposedTest) -> Iterator[str]:
    alarms, hits = _found(test.det)
    low = hits[alarms <= 1]
    if low.size:
        yield f"{fixed(low.max(), 1)} % of targets found at 1 % false alarms"
    if test.rank_chances.size:
        yield f"the true speaker first in {fixed(100 * test.rank_chances[0], 1)} % of utterances"
    if test.speaker_eers.size:
        ends = (fixed(100 * test.speaker_eers[place], 1) for place in (0, -1))
        yield f"speakers' EERs {range_in_words(*ends)} %"


def _found(det: DetCurve) -> tuple[Floats, Floats]:
    """False alarms and targets found, in per cent, ascending, from one accepted nontarget on: fewer show no rate."""
    shown = det.false_alarm_rate > 0
    line = DetCurve(det.thresholds[shown], det.miss_rate[shown], det.false_alarm_rate[shown]).corners()
    return np.maximum(100 * line.false_alarm_rate[::-1], LOWEST_PERCENT), 100 * (1 - line.miss_rate[::-1])


def _number_axis(axes: Axes, last: int) -> None:
    """Whole numbers from 1, the last one among them."""
    axes.set_xticks(sorted({*range(1, last + 1, -(-last // _MOST_TICKS)), last}))


def _frame(axes: Axes, along: str, up: str) -> None:
    axes.set(xlabel=along, ylabel=up)
    axes.grid(visible=True)
