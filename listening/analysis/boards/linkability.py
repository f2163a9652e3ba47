"""Linkability from boards, on which listeners placed samples so that distance says how unlike two voices sound.

**Boards** (`read_boards`). A board of one dimension is one long, one of two is a unit square, so its diagonal is √2.
Distances are shares of that length, hence in [0, 1]. Normalised, the distances of one filled board are ranked within
it: how much of the board a listener used then no longer matters, only which samples lie nearer to each other.

**The pair task** (`make_linkability_tables`): can a listener tell from two samples on a board whether one speaker
speaks both? Every pair of samples on a board is a trial: a target where both are of one speaker, and its score is the
closeness of the two. Pairs of two anonymised samples, of two originals, and of one of each are separate tests; the last
one is what an attacker does who links anonymised speech to known voices (VoicePrivacy 2020 evaluation plan, 6.2.2).
Originals among themselves show whether listeners can do the task at all. Intervals resample listeners with all their
boards, and with these all pairs, which share samples.

**The cluster task** (`make_grouping_table`): do the groups that listeners form hold one speaker each, and whole
speakers? Groups are those that a listener drew, or the samples of a board cut by average linkage of their distances
into as many groups as the listener declared speakers. They are always formed of all samples of a board; ``original``
and ``anonymised`` look at those samples of the groups only. A chance line tells how good groups look that know nothing
of the speakers: speakers are permuted among the samples of each board, with the groups as they are.

Conventions: a filled board is one listener's in one session; filled boards stand in the order of listener, session and
board, samples in the order of their slots, pairs in the order (0, 1), (0, 2), …, (1, 2), …, as scipy's ``pdist`` has
them, so the order of the input's rows changes nothing. Closeness is not positive, near 0 for samples that lie together:
raw it is minus the distance, normalised minus the rank of the distance within the filled board. A higher EER is more
private. Measures of groups are at most 1, computed on every filled board and averaged over boards; higher means that
speakers were distinguished better, so that a *lower* value is more private.

Sources: purity, inverse purity, BCubed: Amigó, Gonzalo, Artiles & Verdejo, "A comparison of extrinsic clustering
evaluation metrics based on formal constraints", Information Retrieval 12 (2009); adjusted Rand index: Hubert & Arabie,
"Comparing partitions", Journal of Classification 2 (1985).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.arrays import Flags, Floats, Ints, Texts
from common.errors import ProblemsError
from common.tables import DataTable
from evaluation.metrics.detection import det_curve, interpolated_eers
from listening.analysis.models.intervals import draw_listeners, percentile_interval
from listening.analysis.reading.inputs import NORMALISED, ORIGINAL, Placements, Settings
from listening.analysis.scoring.normalisation import normalise_ranks
from listening.analysis.scoring.resampled import count_by_class, measure_areas, measure_resamples
from listening.analysis.tables import Row, make_table

_DECIMALS = 12  # distances that are mathematically equal are equal after rounding
_PROBLEMS_AT_MOST = 20


@dataclass(frozen=True, eq=False)
class FilledBoard:
    """What one listener made of one board.

    Attributes:
        slot, system, utterance, speaker, group: shape (samples,).
        place: shape (samples, dimensions), in [0, 1].
        declared: how many speakers the listener counted; 0 unknown.
    """

    listener: str
    session: str
    board: str
    slot: Texts
    system: Texts
    utterance: Texts
    speaker: Texts
    group: Texts
    place: Floats
    declared: int

    @property
    def dimensions(self) -> int:
        return int(self.place.shape[1])

    @property
    def is_original(self) -> Flags:
        return np.asarray(self.system == ORIGINAL)

    @property
    def distances(self) -> Floats:
        """Return shares of the diagonal, shape (pairs,)."""
        first, second = index_pairs(self.slot.size)
        away = np.sqrt(((self.place[first] - self.place[second]) ** 2).sum(1) / self.dimensions)
        return np.asarray(np.round(away, _DECIMALS))

    def distances_as(self, kind: str, settings: Settings) -> Floats:
        """Return distances, shape (pairs,): ``raw``, or ranked within the board and ``normalised`` by that formula."""
        if kind != NORMALISED:
            return self.distances
        together = np.zeros(self.distances.size, np.int64)
        return normalise_ranks(self.distances, together, settings.normalisation).score


def index_pairs(samples: int) -> tuple[Ints, Ints]:
    """Return the places of the first and of the second sample of each pair, shape (pairs,) each."""
    first, second = np.triu_indices(samples, 1)
    return first, second


def read_boards(placements: Placements) -> list[FilledBoard]:
    """Return the boards that count, those of excluded sessions left out.

    Raises:
        ProblemsError: a sample lies twice on a filled board, has no place, or differs between listeners.
    """
    counting: Placements = placements.rows(placements.excluded == "")
    slot_length = np.char.str_len(counting.slot)
    order = np.lexsort((counting.slot, slot_length, counting.board, counting.session, counting.listener))
    rows: Placements = counting.rows(order)
    if problems := [*_twice(rows), *_misplaced(rows), *_different_samples(rows)]:
        raise ProblemsError(_first_of(problems))
    starts = np.flatnonzero(_changes(rows.listener, rows.session, rows.board))
    return [_filled(rows.rows(part)) for part in np.split(np.arange(len(rows)), starts[1:]) if part.size]


def _filled(rows: Placements) -> FilledBoard:
    is_flat = bool(np.isnan(rows.y).all())
    place = rows.x[:, None] if is_flat else np.column_stack((rows.x, rows.y))
    names: Row = {name: str(getattr(rows, name)[0]) for name in ("listener", "session", "board")}
    columns = {name: getattr(rows, name) for name in ("slot", "system", "utterance", "speaker", "group")}
    return FilledBoard(**names, **columns, place=place, declared=int(rows.declared.max()))


def _changes(*columns: Texts) -> Flags:
    """Return where sorted rows begin again in any of the columns."""
    begins = np.ones(columns[0].size, np.bool_)
    begins[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return begins


def _twice(rows: Placements) -> list[str]:
    again = ~_changes(rows.listener, rows.session, rows.board, rows.slot)
    return [
        f"Board {rows.board[row]} in session {rows.session[row]}: expected each sample once, found sample "
        f"{rows.slot[row]} again. Keep the last place of each sample only."
        for row in np.flatnonzero(again)
    ]


def _misplaced(rows: Placements) -> list[str]:
    """Return problems of coordinates beyond the board, or not alike on all samples of a filled board."""
    problems = []
    has_y = np.isfinite(rows.y)
    board = np.cumsum(_changes(rows.listener, rows.session, rows.board)) - 1
    is_mixed = (np.bincount(board, has_y) > 0)[board] & ~has_y if len(rows) else has_y
    within = (rows.x >= 0) & (rows.x <= 1) & (~has_y | ((rows.y >= 0) & (rows.y <= 1)))
    for row in np.flatnonzero(is_mixed | ~within):
        found = f"x {rows.x[row]:g}, y {rows.y[row]:g}"
        problems.append(
            f"Board {rows.board[row]} in session {rows.session[row]}, sample {rows.slot[row]}: expected a place in "
            f"[0, 1], with a second coordinate on all samples of a board or on none; found {found}."
        )
    return problems


def _different_samples(rows: Placements) -> list[str]:
    """Return where a slot of a board holds different samples, as sentences: such boards cannot be compared."""
    known: dict[tuple[str, str], tuple[str, str, str]] = {}
    problems = {}
    columns = (rows.board, rows.slot, rows.system, rows.utterance, rows.speaker)
    for board, slot, *sample in zip(*(column.tolist() for column in columns), strict=True):
        if known.setdefault((board, slot), tuple(sample)) != tuple(sample):
            problems[board, slot] = (
                f"Board {board}: expected sample {slot} to be the same for every listener, found different systems, "
                "utterances or speakers. Give boards with different samples different names."
            )
    return list(problems.values())


def _first_of(problems: list[str]) -> list[str]:
    more = len(problems) - _PROBLEMS_AT_MOST
    return [*problems[:_PROBLEMS_AT_MOST], f"{more} more of this kind."] if more > 0 else problems


PAIRS = ("original-original", "anonymised-anonymised", "original-anonymised")
ALL = "all"
_CURVE_POINTS = 300  # more cannot be distinguished in a figure; distances take thousands of values


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


def make_linkability_tables(placements: Placements, settings: Settings, kind: str) -> list[DataTable]:
    """Return how well listeners link samples by closeness: ``pair_detection`` and ``pair_det``.

    Args:
        kind: ``raw`` or ``normalised`` distances.

    Raises:
        ProblemsError: boards that cannot be read, see `read_boards`.
    """
    boards = read_boards(placements)
    pairs = score_pairs(boards, settings, kind)
    draws = draw_listeners(pairs.listeners, settings)
    detection, curves = [], []
    for named, chosen in _tests(pairs):
        detection.append(named | _detection(pairs, chosen, draws, settings))
        curves += [named | point for point in _curve(pairs, chosen)]
    return [make_table("pair_detection", detection), make_table("pair_det", curves)]


def score_pairs(boards: Sequence[FilledBoard], settings: Settings, kind: str) -> ScoredPairs:
    """Return every pair of samples of every board."""
    listeners = sorted({board.listener for board in boards})
    number_of = {name: number for number, name in enumerate(listeners)}
    counts = [board.slot.size * (board.slot.size - 1) // 2 for board in boards]
    nothing = np.empty(0), np.empty(0, np.bool_), np.empty(0, np.int64), np.empty(0, np.str_)
    parts = [(-board.distances_as(kind, settings), *_pairs_of_board(board)) for board in boards]
    closeness, is_target, kinds, system = (np.concatenate(columns) for columns in zip(nothing, *parts, strict=True))
    return ScoredPairs(
        closeness=closeness,
        is_target=is_target,
        kind=kinds,
        system=system,
        listener=np.repeat(np.array([number_of[board.listener] for board in boards], np.int64), counts),
        board=np.repeat(np.arange(len(boards)), counts),
        listeners=len(listeners),
    )


def _pairs_of_board(board: FilledBoard) -> tuple[Flags, Ints, Texts]:
    """Return whether both are of one speaker, which kind of pair it is, and the system of what is anonymised."""
    first, second = index_pairs(board.slot.size)
    originals = board.is_original[first].astype(np.int64) + board.is_original[second]
    kind = np.array([1, 2, 0])[originals]  # by the number of originals in the pair, as `PAIRS` stand
    one, other = board.system[first], board.system[second]
    system = np.where(one == ORIGINAL, other, one)
    system = np.where((originals == 2) | ((originals == 0) & (one != other)), "", system)
    return np.asarray(board.speaker[first] == board.speaker[second]), kind, system


def _tests(pairs: ScoredPairs) -> Iterator[tuple[dict[str, str], Flags]]:
    """Yield each kind of pairs, of all systems and of each."""
    for kind, name in enumerate(PAIRS):
        of_kind = pairs.kind == kind
        if of_kind.any():
            yield {"pairs": name, "system": ALL}, of_kind
        for system in pairs.systems:
            chosen = of_kind & (pairs.system == system)
            if chosen.any():
                yield {"pairs": name, "system": system}, chosen


def _detection(pairs: ScoredPairs, chosen: Flags, draws: Floats | None, settings: Settings) -> Row:
    """Return what a row of ``pair_detection`` says of the chosen pairs."""
    is_target = pairs.is_target[chosen]
    listeners = int(np.unique(pairs.listener[chosen]).size)
    row: Row = {"n_target": int(is_target.sum()), "n_nontarget": int((~is_target).sum())}
    row |= {"listeners": listeners, "boards": int(np.unique(pairs.board[chosen]).size)}
    if is_target.all() or not is_target.any():
        missing = "two speakers" if is_target.all() else "one speaker"
        return row | {"remark": f"No pair of {missing}, so there is no rate."}
    closeness, listener = pairs.closeness[chosen], pairs.listener[chosen]
    _, target, nontarget = count_by_class(closeness, is_target, listener, pairs.listeners)
    row["eer"] = interpolated_eers(*_pooled(target, nontarget))[0]
    row["auc"] = measure_areas(*_pooled(target, nontarget))[0]
    if draws is None or listeners < settings.least_clusters:
        return row | {"remark": f"Fewer than {settings.least_clusters} listeners: no interval."}
    rates, curves = measure_resamples(draws, target, nontarget, interpolated_eers, measure_areas)
    row["eer_low"], row["eer_high"] = percentile_interval(rates, settings.level)
    row["auc_low"], row["auc_high"] = percentile_interval(curves, settings.level)
    return row


def _pooled(target: Floats, nontarget: Floats) -> tuple[Floats, Floats]:
    return target.sum(0, keepdims=True), nontarget.sum(0, keepdims=True)


def _curve(pairs: ScoredPairs, chosen: Flags) -> list[dict[str, float]]:
    """Return the corners of the DET curve, thinned where they are more than a figure can show, both ends kept.

    No curve where there are no targets, or no nontargets.
    """
    closeness, is_target = pairs.closeness[chosen], pairs.is_target[chosen]
    if is_target.all() or not is_target.any():
        return []
    curve = det_curve(closeness[is_target], closeness[~is_target]).corners()
    kept = _evenly_along(curve.miss_rate, curve.false_alarm_rate, 0.5 / is_target.size)
    columns = {"threshold": curve.thresholds, "miss_rate": curve.miss_rate, "false_alarm_rate": curve.false_alarm_rate}
    return [{name: float(column[point]) for name, column in columns.items()} for point in kept]


def _evenly_along(miss_rate: Floats, false_alarm_rate: Floats, least: float) -> Ints:
    """Return which points to keep: as even as can be along the curve on probit axes that are clipped at `least`."""
    if miss_rate.size <= _CURVE_POINTS:
        return np.arange(miss_rate.size)
    from scipy.special import ndtri

    steps = [np.abs(np.diff(ndtri(np.clip(rate, least, 1 - least)))) for rate in (miss_rate, false_alarm_rate)]
    along = np.concatenate(([0.0], np.cumsum(steps[0] + steps[1])))
    kept = np.searchsorted(along, np.linspace(0, along[-1], _CURVE_POINTS))
    return np.unique(np.concatenate(([0], np.minimum(kept, along.size - 1), [along.size - 1])))


DRAWN, CUT = "drawn", "cut"
MEASURES = ("purity", "inverse purity", "F", "BCubed precision", "BCubed recall", "BCubed F", "adjusted Rand index")
SAMPLES: Mapping[str, Callable[[FilledBoard], Flags]] = {
    "all": lambda board: np.ones(board.slot.size, np.bool_),
    "original": lambda board: board.is_original,
    "anonymised": lambda board: ~board.is_original,
}
_TINY = 1e-12  # sums of the same numbers in another order differ by less


def make_grouping_table(placements: Placements, settings: Settings) -> DataTable:
    """Return the table ``grouping``.

    Raises:
        ProblemsError: boards that cannot be read, see `read_boards`.
    """
    boards = read_boards(placements)
    listeners = sorted({board.listener for board in boards})
    draws = draw_listeners(len(listeners), settings)
    rows: list[Row] = []
    for source, groups_of in ((DRAWN, drawn_groups), (CUT, cut_groups)):
        grouped = [(board, groups) for board in boards if (groups := groups_of(board)) is not None]
        for samples, chosen_of in SAMPLES.items():
            measured = _measure_boards(grouped, chosen_of, listeners, settings)
            if measured is not None:
                listener = measured[0]
                remark = _note(source, len(boards) - listener.size, np.unique(listener).size, settings)
                named = {"source": source, "samples": samples, "remark": remark}
                rows += [named | row for row in _rows(*measured, draws, settings)]
    return make_table("grouping", rows)


def drawn_groups(board: FilledBoard) -> Ints | None:
    """Return the group of each sample as the listener drew it, shape (samples,); None if some sample is in none."""
    if not board.group.size or (board.group == "").any():
        return None
    return np.unique(board.group, return_inverse=True)[1].astype(np.int64)


def cut_groups(board: FilledBoard) -> Ints | None:
    """Cut the average linkage of the distances into the declared number of groups, shape (samples,).

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


def measure_grouping(groups: Ints, speakers: Ints) -> Floats:
    """Measure groups against speakers by all `MEASURES`, for many labellings at once.

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
    """Return Hubert & Arabie's equation 5: pairs that agree, corrected for what fixed sizes let agree by chance."""
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
) -> tuple[Ints, Floats, Floats] | None:
    """Return measures, in the order of `MEASURES`, of the boards with at least two such samples; None without any.

    Returns:
        Number of the listener, shape (boards,); values, shape (boards, measures); what chance gives, means over boards,
        shape (permutations, measures).
    """
    numbers = np.random.default_rng(settings.seed)
    chance = np.zeros((settings.permutations, len(MEASURES)))
    values, listener = [], []
    for board, groups in grouped:
        chosen = chosen_of(board)
        if chosen.sum() < 2:
            continue
        of_chosen = np.unique(groups[chosen], return_inverse=True)[1].astype(np.int64)
        speakers = np.unique(board.speaker[chosen], return_inverse=True)[1].astype(np.int64)
        values.append(measure_grouping(of_chosen, speakers[None, :])[0])
        permuted = numbers.permuted(np.tile(speakers, (settings.permutations, 1)), axis=1)
        chance += measure_grouping(of_chosen, permuted)
        listener.append(listeners.index(board.listener))
    if not values:
        return None
    return np.array(listener), np.array(values), chance / len(values)


def _rows(listener: Ints, values: Floats, by_chance: Floats, draws: Floats | None, settings: Settings) -> list[Row]:
    """Return a row for each measure: mean over boards, its interval, and the chance line; see `_measure_boards`."""
    boards, listeners = listener.size, int(np.unique(listener).size)
    means, resampled = values.mean(0), None
    if draws is not None and listeners >= settings.least_clusters:
        every = draws.shape[1]
        counts = np.bincount(listener, minlength=every)
        sums = np.zeros((every, len(MEASURES)))
        np.add.at(sums, listener, values)
        with np.errstate(invalid="ignore"):
            resampled = (draws @ sums) / (draws @ counts)[:, None]
    rows = []
    for place, measure in enumerate(MEASURES):
        chance, value = by_chance[:, place], float(means[place])
        reached = int((chance >= value - _TINY).sum())
        row: Row = {"measure": measure, "boards": boards, "listeners": listeners, "value": value}
        row |= {"chance": float(chance.mean()), "chance_high": float(np.quantile(chance, 0.95))}
        row["p"] = (reached + 1) / (chance.size + 1)
        if resampled is not None:
            row["value_low"], row["value_high"] = percentile_interval(resampled[:, place], settings.level)
        rows.append(row)
    return rows


def _note(source: str, left: int, listeners: int, settings: Settings) -> str:
    """Return why boards or intervals are missing; empty if none are."""
    notes = []
    if left:
        why = "groups were not drawn" if source == DRAWN else "no usable number of speakers was declared"
        notes.append(f"{left} board{'' if left == 1 else 's'} left out: {why}, or fewer than two such samples.")
    if listeners < settings.least_clusters:
        notes.append(f"Fewer than {settings.least_clusters} listeners: no interval.")
    return " ".join(notes)
