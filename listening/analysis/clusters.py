"""Linkability of the cluster task: do the groups that listeners form hold one speaker each, and whole speakers?

Groups are those that a listener drew, or the samples of a board cut by average linkage of their distances into as many
groups as the listener declared speakers. A chance line tells how good groups look that know nothing of the speakers:
speakers are permuted among the samples of each board, with the groups as they are.

Conventions: all measures are at most 1, higher means that speakers were told apart better, so that a *lower* value is
more private; each is computed on every filled board and averaged over boards. Groups are always formed of all samples
of a board; ``original`` and ``anonymised`` look at those samples of the groups only.
Sources: purity, inverse purity, BCubed: Amigó, Gonzalo, Artiles & Verdejo, "A comparison of extrinsic clustering
evaluation metrics based on formal constraints", Information Retrieval 12 (2009); adjusted Rand index: Hubert & Arabie,
"Comparing partitions", Journal of Classification 2 (1985).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from listening.analysis.contents import GROUPING
from listening.analysis.draws import listener_draws, percentile_interval
from listening.analysis.inputs import Flags, Floats, Ints, Placements
from listening.analysis.placed_boards import FilledBoard, filled_boards
from listening.analysis.settings import Settings
from listening.analysis.tables import Table

DRAWN, CUT = "drawn", "cut"
MEASURES = (
    "purity", "inverse purity", "F", "BCubed precision", "BCubed recall", "BCubed F", "adjusted Rand index",
)  # fmt: skip
SAMPLES: Mapping[str, Callable[[FilledBoard], Flags]] = {
    "all": lambda board: np.ones(board.slot.size, np.bool_),
    "original": lambda board: board.is_original,
    "anonymised": lambda board: ~board.is_original,
}
_TINY = 1e-12  # sums of the same numbers in another order differ by less


@dataclass(frozen=True, eq=False)
class _Measured:
    """Measures of boards, in the order of `MEASURES`.

    Attributes:
        listener: shape (boards,), number of the listener.
        value: shape (boards, measures).
        chance: shape (permutations, measures), means over boards.
    """

    listener: Ints
    value: Floats
    chance: Floats


def grouping_table(placements: Placements, settings: Settings) -> Table:
    """The table ``grouping``.

    Raises:
        AnalysisInputError: boards that cannot be read, see `placed_boards.filled_boards`.
    """
    boards = filled_boards(placements)
    listeners = sorted({board.listener for board in boards})
    draws = listener_draws(len(listeners), settings)
    rows: list[dict[str, Any]] = []
    for source, groups_of in ((DRAWN, drawn_groups), (CUT, cut_groups)):
        grouped = [(board, groups) for board in boards if (groups := groups_of(board)) is not None]
        for samples, chosen_of in SAMPLES.items():
            measured = _measure_boards(grouped, chosen_of, listeners, settings)
            if measured is not None:
                left = len(boards) - measured.listener.size
                named = {"source": source, "samples": samples, "remark": _remark(source, left, measured, settings)}
                rows += [named | row for row in _rows(measured, draws, settings)]
    return GROUPING.table(rows)


def drawn_groups(board: FilledBoard) -> Ints | None:
    """The group of each sample as the listener drew it, shape (samples,); None if some sample is in none."""
    if not board.group.size or (board.group == "").any():
        return None
    return np.unique(board.group, return_inverse=True)[1].astype(np.int64)


def cut_groups(board: FilledBoard) -> Ints | None:
    """Average linkage of the distances, cut into the declared number of groups, shape (samples,).

    None where the listener declared no number, or more speakers than there are samples. Of clusters that are equally
    near the ones merged first are those of the earlier slots.
    """
    samples = board.slot.size
    if samples < 2 or not 1 <= board.declared <= samples:
        return None
    from scipy.cluster.hierarchy import average

    members = {number: [number] for number in range(samples)}
    merges = average(board.distances)[: samples - board.declared, :2].astype(int)
    for step, (one, other) in enumerate(merges.tolist()):
        members[samples + step] = members.pop(one) + members.pop(other)
    groups = np.empty(samples, np.int64)
    for number, inside in enumerate(sorted(map(sorted, members.values()))):
        groups[inside] = number
    return groups


def grouping_measures(groups: Ints, speakers: Ints) -> Floats:
    """All `MEASURES` of groups against speakers, for many labellings at once.

    Args:
        groups: shape (samples,), numbers from 0.
        speakers: shape (labellings, samples), numbers from 0.

    Returns:
        Shape (labellings, measures). F measures are harmonic means. Where groups and speakers are both one, or both
        all single samples, the adjusted Rand index is 0 / 0 and taken as 1, as they agree.
    """
    labellings, samples = speakers.shape
    n_groups, n_speakers = int(groups.max()) + 1, int(speakers.max()) + 1
    cells = (np.arange(labellings)[:, None] * n_groups + groups) * n_speakers + speakers
    counts = np.bincount(cells.ravel(), minlength=labellings * n_groups * n_speakers).astype(np.float64)
    counts = counts.reshape(labellings, n_groups, n_speakers)
    of_group, of_speaker = counts.sum(2), counts.sum(1)
    squares = counts**2
    purity, inverse = counts.max(2).sum(1) / samples, counts.max(1).sum(1) / samples
    precision = (squares.sum(2) / np.maximum(of_group, 1)).sum(1) / samples
    recall = (squares.sum(1) / np.maximum(of_speaker, 1)).sum(1) / samples
    rand = _adjusted_rand(counts, of_group, of_speaker, samples)
    return np.column_stack(
        (purity, inverse, _harmonic(purity, inverse), precision, recall, _harmonic(precision, recall), rand)
    )


def _harmonic(first: Floats, second: Floats) -> Floats:
    return np.asarray(2 * first * second / (first + second))


def _adjusted_rand(counts: Floats, of_group: Floats, of_speaker: Floats, samples: int) -> Floats:
    """Hubert & Arabie's equation 5: pairs that agree, corrected for what fixed sizes let agree by chance."""
    together, grouped, spoken = _pairs(counts).sum((1, 2)), _pairs(of_group).sum(1), _pairs(of_speaker).sum(1)
    expected = grouped * spoken / max(samples * (samples - 1) / 2, 1)
    above, room = together - expected, (grouped + spoken) / 2 - expected
    return np.where(np.abs(room) < _TINY, 1.0, above / np.where(np.abs(room) < _TINY, 1.0, room))


def _pairs(counts: Floats) -> Floats:
    return np.asarray(counts * (counts - 1) / 2)


def _measure_boards(
    grouped: Sequence[tuple[FilledBoard, Ints]],
    chosen_of: Callable[[FilledBoard], Flags],
    listeners: Sequence[str],
    settings: Settings,
) -> _Measured | None:
    """Measures of the boards with at least two such samples; None where there is none."""
    numbers = np.random.default_rng(settings.seed)
    chance = np.zeros((settings.permutations, len(MEASURES)))
    values, listener = [], []
    for board, groups in grouped:
        chosen = chosen_of(board)
        if chosen.sum() < 2:
            continue
        of_chosen = np.unique(groups[chosen], return_inverse=True)[1].astype(np.int64)
        speakers = np.unique(board.speaker[chosen], return_inverse=True)[1].astype(np.int64)
        values.append(grouping_measures(of_chosen, speakers[None, :])[0])
        permuted = numbers.permuted(np.tile(speakers, (settings.permutations, 1)), axis=1)
        chance += grouping_measures(of_chosen, permuted)
        listener.append(listeners.index(board.listener))
    if not values:
        return None
    return _Measured(np.array(listener), np.array(values), chance / len(values))


def _rows(measured: _Measured, draws: Ints | None, settings: Settings) -> list[dict[str, Any]]:
    """A row for each measure: mean over boards, its interval, and the chance line."""
    boards, listeners = measured.listener.size, int(np.unique(measured.listener).size)
    means, resampled = measured.value.mean(0), None
    if draws is not None and listeners >= settings.least_clusters:
        every = draws.shape[1]
        counts = np.bincount(measured.listener, minlength=every)
        sums = np.zeros((every, len(MEASURES)))
        np.add.at(sums, measured.listener, measured.value)
        with np.errstate(invalid="ignore"):
            resampled = (draws @ sums) / (draws @ counts)[:, None]
    rows = []
    for place, measure in enumerate(MEASURES):
        chance, value = measured.chance[:, place], float(means[place])
        reached = int((chance >= value - _TINY).sum())
        row: dict[str, Any] = {
            "measure": measure,
            "boards": boards,
            "listeners": listeners,
            "value": value,
            "chance": float(chance.mean()),
            "chance_high": float(np.quantile(chance, 0.95)),
            "p": (reached + 1) / (chance.size + 1),
        }
        if resampled is not None:
            row["value_low"], row["value_high"] = percentile_interval(resampled[:, place], settings.level)
        rows.append(row)
    return rows


def _remark(source: str, left: int, measured: _Measured, settings: Settings) -> str:
    """Why boards or intervals are missing; empty if none are."""
    remarks = []
    if left:
        why = "groups were not drawn" if source == DRAWN else "no usable number of speakers was declared"
        remarks.append(f"{left} board{'' if left == 1 else 's'} left out: {why}, or fewer than two such samples.")
    if np.unique(measured.listener).size < settings.least_clusters:
        remarks.append(f"Fewer than {settings.least_clusters} listeners: no interval.")
    return " ".join(remarks)
