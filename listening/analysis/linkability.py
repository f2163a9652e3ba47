"""Linkability of the pair task: can a listener tell from two samples on a board whether one speaker speaks both?

Every pair of samples on a board is a trial: a target where both are of one speaker, and its score is the closeness of
the two, minus their distance. Pairs of two anonymised samples, of two originals, and of one of each are separate tests;
the last one is what an attacker does who links anonymised speech to known voices (VoicePrivacy 2020 evaluation plan,
6.2.2). Originals among themselves show whether listeners can do the task at all.

Conventions: closeness is not positive, near 0 for samples that lie together; raw it is minus the distance in shares of
the board's diagonal, normalised minus the rank of the distance within the filled board. A higher EER is more private.
Intervals resample listeners with all their boards, and with these all pairs, which share samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from listening.analysis.contents import PAIR_DET, PAIR_DETECTION
from listening.analysis.draws import listener_draws, percentile_interval
from listening.analysis.inputs import ORIGINAL, Flags, Floats, Ints, Placements, Texts
from listening.analysis.placed_boards import FilledBoard, filled_boards, pairs_of
from listening.analysis.settings import Settings
from listening.analysis.tables import Table
from listening.analysis.weighted_histograms import areas, equal_error_rates, listener_histograms, of_resamples

PAIRS = ("original-original", "anonymised-anonymised", "original-anonymised")
ALL = "all"
_CURVE_POINTS = 300  # more cannot be told apart in a figure; distances take thousands of values


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """One row a pair of samples on a filled board.

    Attributes:
        closeness: shape (pairs,), the score.
        is_target: both samples are of one speaker.
        kind: place in `PAIRS`.
        system: of the anonymised samples; empty where both are original, or by two systems.
        listener: number of the listener. `board`: number of the filled board.
        listeners: how many there are.
    """

    closeness: Floats
    is_target: Flags
    kind: Ints
    system: Texts
    listener: Ints
    board: Ints
    listeners: int

    @property
    def systems(self) -> list[str]:
        return [str(name) for name in np.unique(self.system) if name]


def linkability_tables(placements: Placements, settings: Settings, kind: str) -> list[Table]:
    """How well listeners link samples by closeness: ``pair_detection`` and ``pair_det``.

    Args:
        kind: ``raw`` or ``normalised`` distances.

    Raises:
        AnalysisInputError: boards that cannot be read, see `placed_boards.filled_boards`.
    """
    boards = filled_boards(placements)
    pairs = scored_pairs(boards, settings, kind)
    draws = listener_draws(pairs.listeners, settings)
    detection, curves = [], []
    for named, chosen in _tests(pairs):
        detection.append(named | _detection(pairs, chosen, draws, settings))
        curves += [named | point for point in _curve(pairs, chosen)]
    return [PAIR_DETECTION.table(detection), PAIR_DET.table(curves)]


def scored_pairs(boards: Sequence[FilledBoard], settings: Settings, kind: str) -> ScoredPairs:
    """Every pair of samples of every board."""
    listeners = sorted({board.listener for board in boards})
    number_of = {name: number for number, name in enumerate(listeners)}
    counts = [board.slot.size * (board.slot.size - 1) // 2 for board in boards]
    parts = [_pairs_of_board(board) for board in boards]
    closeness = [-board.distances_as(kind, settings) for board in boards]
    return ScoredPairs(
        closeness=np.concatenate(closeness) if closeness else np.empty(0),
        is_target=np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.bool_),
        kind=np.concatenate([part[1] for part in parts]) if parts else np.empty(0, np.int64),
        system=np.concatenate([part[2] for part in parts]) if parts else np.empty(0, np.str_),
        listener=np.repeat(np.array([number_of[board.listener] for board in boards], np.int64), counts),
        board=np.repeat(np.arange(len(boards)), counts),
        listeners=len(listeners),
    )


def _pairs_of_board(board: FilledBoard) -> tuple[Flags, Ints, Texts]:
    """Whether both are of one speaker, which kind of pair it is, and the system of what is anonymised."""
    first, second = pairs_of(board.slot.size)
    originals = board.is_original[first].astype(np.int64) + board.is_original[second]
    kind = np.array([1, 2, 0])[originals]  # by the number of originals in the pair, as `PAIRS` stand
    one, other = board.system[first], board.system[second]
    system = np.where(one == ORIGINAL, other, one)
    system = np.where((originals == 2) | ((originals == 0) & (one != other)), "", system)
    return np.asarray(board.speaker[first] == board.speaker[second]), kind, system


def _tests(pairs: ScoredPairs) -> Iterator[tuple[dict[str, str], Flags]]:
    """Each kind of pairs, of all systems and of each."""
    for kind, name in enumerate(PAIRS):
        of_kind = pairs.kind == kind
        if of_kind.any():
            yield {"pairs": name, "system": ALL}, of_kind
        for system in pairs.systems:
            chosen = of_kind & (pairs.system == system)
            if chosen.any():
                yield {"pairs": name, "system": system}, chosen


def _detection(pairs: ScoredPairs, chosen: Flags, draws: Ints | None, settings: Settings) -> dict[str, Any]:
    """What a row of ``pair_detection`` says of the chosen pairs."""
    is_target = pairs.is_target[chosen]
    listeners = int(np.unique(pairs.listener[chosen]).size)
    row: dict[str, Any] = {
        "n_target": int(is_target.sum()),
        "n_nontarget": int((~is_target).sum()),
        "listeners": listeners,
        "boards": int(np.unique(pairs.board[chosen]).size),
    }
    if is_target.all() or not is_target.any():
        missing = "two speakers" if is_target.all() else "one speaker"
        return row | {"remark": f"No pair of {missing}, so there is nothing to tell apart."}
    target, nontarget = _histograms(pairs, chosen)
    row["eer"] = equal_error_rates(*_pooled(target, nontarget))[0]
    row["auc"] = areas(*_pooled(target, nontarget))[0]
    if draws is None or listeners < settings.least_clusters:
        return row | {"remark": f"Fewer than {settings.least_clusters} listeners: no interval."}
    rates, curves = of_resamples(draws.astype(np.float64), target, nontarget, equal_error_rates, areas)
    row["eer_low"], row["eer_high"] = percentile_interval(rates, settings.level)
    row["auc_low"], row["auc_high"] = percentile_interval(curves, settings.level)
    return row


def _histograms(pairs: ScoredPairs, chosen: Flags) -> tuple[Floats, Floats]:
    """Targets and nontargets of each listener at each distinct closeness, shape (listeners, values) each."""
    values, value = np.unique(pairs.closeness[chosen], return_inverse=True)
    listener, is_target = pairs.listener[chosen], pairs.is_target[chosen]
    size = {"listeners": pairs.listeners, "values": values.size}
    return (
        listener_histograms(listener[is_target], value[is_target], **size),
        listener_histograms(listener[~is_target], value[~is_target], **size),
    )


def _pooled(target: Floats, nontarget: Floats) -> tuple[Floats, Floats]:
    return target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True)


def _curve(pairs: ScoredPairs, chosen: Flags) -> list[dict[str, float]]:
    """The corners of the DET curve, thinned where they are more than a figure can show, both ends kept.

    No curve where there are no targets, or no nontargets.
    """
    from evaluation.metrics.detection import det_curve

    closeness, is_target = pairs.closeness[chosen], pairs.is_target[chosen]
    if is_target.all() or not is_target.any():
        return []
    curve = det_curve(closeness[is_target], closeness[~is_target]).corners()
    kept = _evenly_along(curve.miss_rate, curve.false_alarm_rate, 0.5 / is_target.size)
    return [
        {
            "threshold": float(curve.thresholds[point]),
            "miss_rate": float(curve.miss_rate[point]),
            "false_alarm_rate": float(curve.false_alarm_rate[point]),
        }
        for point in kept
    ]


def _evenly_along(miss_rate: Floats, false_alarm_rate: Floats, least: float) -> Ints:
    """Which points to keep: as even as can be along the curve on probit axes that are clipped at `least`."""
    if miss_rate.size <= _CURVE_POINTS:
        return np.arange(miss_rate.size)
    from scipy.special import ndtri

    steps = [np.abs(np.diff(ndtri(np.clip(rate, least, 1 - least)))) for rate in (miss_rate, false_alarm_rate)]
    along = np.concatenate(([0.0], np.cumsum(steps[0] + steps[1])))
    kept = np.searchsorted(along, np.linspace(0, along[-1], _CURVE_POINTS))
    return np.unique(np.concatenate(([0], np.minimum(kept, along.size - 1), [along.size - 1])))
