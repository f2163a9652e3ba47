"""Averaged maps of boards: where samples lie when placings of one board, or all boards of a system, are averaged.

**What is averaged.** Each listener turns and stretches a board at will, so placings are averaged as distances: those of
a filled board are ranked within it.

**A map of a board** that several listeners filled: means over listeners for each pair, laid out by classical scaling.
**A map of a system**, where boards have one listener each, as where everybody gets other recordings, and there is
nothing to average on a board: voices, original speakers and speakers as the system anonymised them, with means over all
boards and listeners of the distances of two voices, laid out by stress majorisation, as not all pairs of voices need
have been on a board together.

**Stress majorisation** (`majorise_stress`) finds places whose distances are near those that are known. Each step is a
Guttman transform X ← V⁺ B(X) X; the raw stress Σ (δ − d)² over the known pairs never rises. Nothing is drawn at random,
so equal input gives equal places; the result is a local minimum, near where the start lies.

Conventions: distances have shape (samples, samples), symmetric, NaN where a pair is not known. Axes are in units of the
averaged ranks, the centre of the points at (0, 0). A map has no direction of its own: that of a board is turned, and
mirrored if need be, onto the placing that it resembles most (orthogonal Procrustes), that of a system has its longest
axis first, so that equal input gives equal output. Kruskal's stress-1 says how far distances on the map are from the
order of the averages: never negative, 0 is perfect, by Kruskal 0.05 good, 0.1 fair, 0.2 poor.

Sources: Torgerson, "Multidimensional scaling: I", Psychometrika 17 (1952) (classical scaling); for stress majorisation
de Leeuw, "Applications of convex analysis to multidimensional scaling", in Recent Developments in Statistics (1977),
133-145, with weights as in Borg & Groenen, Modern Multidimensional Scaling (2005), section 8.6; Kruskal,
"Multidimensional scaling by optimizing goodness of fit to a nonmetric hypothesis", Psychometrika 29 (1964) (stress-1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from common.arrays import Floats
from common.tables import DataTable
from listening.analysis.boards.linkability import FilledBoard, index_pairs, read_boards
from listening.analysis.reading.inputs import NORMALISED, ORIGINAL, Placements, Settings
from listening.analysis.tables import Row, make_table

_STEPS_AT_MOST = 2_000
_STANDS_STILL = 1e-11  # share of the squared distances by which a step lowers the stress at the end
_ONE_POINT = 1e-9  # share of the longest distance


def is_connected(distances: Floats) -> bool:
    """Return whether known distances lead from every sample to every other one; else parts could lie anywhere."""
    from scipy.sparse.csgraph import connected_components

    return bool(connected_components(np.isfinite(distances), directed=False)[0] <= 1)


def add_shortest_paths(distances: Floats) -> Floats:
    """Return known distances, and for each pair that is not known the shortest way over known ones.

    Args:
        distances: connected, see `is_connected`.
    """
    from scipy.sparse.csgraph import csgraph_from_dense, floyd_warshall

    ways = floyd_warshall(csgraph_from_dense(distances, null_value=np.nan))  # a distance of 0 is one, too
    return np.where(np.isfinite(distances), distances, ways)


def majorise_stress(distances: Floats, start: Floats) -> Floats:
    """Return the places of least raw stress over the known pairs, weighted 1 each, pairs that are not known 0.

    Args:
        distances: connected, see `is_connected`; the diagonal is not looked at.
        start: shape (samples, dimensions), not all at one point.

    Returns:
        Shape (samples, dimensions), centred.
    """
    samples = len(distances)
    weights = np.isfinite(distances).astype(np.float64)
    np.fill_diagonal(weights, 0)
    asked = np.where(weights > 0, distances, 0.0)
    # V is singular along a shift of all places alone, so this is V⁺ on centred places.
    inverse = np.linalg.inv(np.diag(weights.sum(1)) - weights + 1 / samples) - 1 / samples
    places = _apart(start, asked)
    places = places - places.mean(0)
    total, before = float((weights * asked**2).sum()), np.inf
    for _ in range(_STEPS_AT_MOST):
        away = np.sqrt(((places[:, None] - places[None]) ** 2).sum(2))
        stress = float((weights * (asked - away) ** 2).sum())
        if before - stress <= _STANDS_STILL * total:
            break
        before = stress
        ratios = np.divide(asked, away, out=np.zeros_like(asked), where=away > 0)
        places = inverse @ (np.diag(ratios.sum(1)) - ratios) @ places
    return np.asarray(places)


def _apart(places: Floats, asked: Floats) -> Floats:
    """Return places, those that should be apart but coincide a little shifted: no step would ever part them."""
    away = np.sqrt(((places[:, None] - places[None]) ** 2).sum(2))
    if not (away[asked > 0] < _ONE_POINT * away.max()).any():
        return places
    numbers = np.arange(1.0, len(places) + 1)
    return np.asarray(places + 1e-3 * away.max() * np.sin(np.outer(numbers, np.arange(1, places.shape[1] + 1))))


# Coordinates are the square roots of sums that cancel: the last digits differ between machines, and a zero is 1e-17.
_DECIMALS = 9
_NOTHING_TO_MAP = "All distances are equal, so there is nothing to map."
# A speaker, and whether anonymised: originals come first.
_Voice = tuple[str, bool]


def make_map_tables(placements: Placements, settings: Settings) -> list[DataTable]:
    """Make the tables ``map`` and ``map_fit``: boards of several listeners by name, then systems on boards of one.

    Raises:
        ProblemsError: boards that cannot be read, see `read_boards`.
    """
    boards = sorted(read_boards(placements), key=lambda board: board.board)
    made: list[tuple[list[Row], Row]] = []  # the points and the fit of each map
    alone: set[str] = set()
    for _, group in groupby(boards, key=lambda board: board.board):
        together = list(group)
        if len({board.listener for board in together}) == 1:
            alone |= _systems_of(together[0])
        else:
            made.append(_make_map(together, settings))
    made += [
        _map_of_system(system, [board for board in boards if system in _systems_of(board)], settings)
        for system in sorted(alone, key=lambda name: (name != ORIGINAL, name))
    ]
    points = [point for placed, _ in made for point in placed]
    return [make_table("map", points), make_table("map_fit", [fit for _, fit in made])]


def scale_classically(distances: Floats, dimensions: int) -> Floats:
    """Return the places whose distances are near the given ones, by Torgerson's double centring.

    Args:
        distances: shape (samples, samples), symmetric, zeros on the diagonal, finite.

    Returns:
        Shape (samples, dimensions), centred, the longest axis first; what distances leave imaginary is 0.
    """
    samples = len(distances)
    squares = distances**2
    centred = squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    largest = np.argsort(values)[::-1][:dimensions]
    places = np.zeros((samples, dimensions))
    places[:, : largest.size] = vectors[:, largest] * np.sqrt(np.maximum(values[largest], 0))
    return places


def turn_onto(places: Floats, reference: Floats) -> tuple[Floats, float]:
    """Turn or mirror places onto a reference, and tell how unlike both are then.

    Source: Schönemann, "A generalized solution of the orthogonal Procrustes problem", Psychometrika 31 (1966).

    Args:
        places: shape (samples, dimensions), centred. `reference`: of the same shape.

    Returns:
        The turned places, and the Procrustes disparity in [0, 1]: the squared difference that remains when both have
        unit size; 1 where one of them is a single point.
    """
    centred = reference - reference.mean(0)
    left, lengths, right = np.linalg.svd(places.T @ centred)
    sizes = np.sqrt((places**2).sum() * (centred**2).sum())
    disparity = 1.0 if sizes == 0 else 1 - (lengths.sum() / sizes) ** 2
    return places @ (left @ right), float(disparity)


def stress_1(dissimilarities: Floats, distances: Floats) -> float:
    """Return Kruskal's stress-1: how far distances are from rising with the dissimilarities, ties free to be broken.

    sqrt(Σ (d − d̂)² / Σ d²), d̂ the monotone regression of d on the order of the dissimilarities, ties in the order
    that fits best (Kruskal's primary approach).

    Args:
        dissimilarities, distances: shape (pairs,).

    Returns:
        Not negative; NaN where all distances are 0.
    """
    from scipy.optimize import isotonic_regression

    total = float((distances**2).sum())
    if not total:
        return float("nan")
    in_order = distances[np.lexsort((distances, dissimilarities))]
    fitted = isotonic_regression(in_order).x
    return float(np.sqrt(((in_order - fitted) ** 2).sum() / total))


def _make_map(boards: Sequence[FilledBoard], settings: Settings) -> tuple[list[Row], Row]:
    """Return the places and the fit of one board, from all its placings."""
    slots = max((board.slot for board in boards), key=len)
    whole = [board for board in boards if np.array_equal(board.slot, slots)]
    dimensions = min(board.dimensions for board in whole)
    listeners = len({board.listener for board in whole})
    fit: Row = {"board": boards[0].board, "dimensions": dimensions, "samples": slots.size}
    fit |= {"listeners": listeners, "remark": _note(len(boards) - len(whole), listeners)}
    # Rounded, so that averages that are mathematically equal are tied in any order.
    normalised = np.array([board.distances_as(NORMALISED, settings) for board in whole])
    averages = np.asarray(np.round(normalised.mean(0), _DECIMALS))
    if averages.size == 0 or np.ptp(averages) == 0:
        return [], fit | {"remark": _NOTHING_TO_MAP}
    places = _laid_out(averages, whole, dimensions)
    first, second = index_pairs(slots.size)
    fit["stress"] = stress_1(averages, np.sqrt(((places[first] - places[second]) ** 2).sum(1)))
    return _points(whole[0], places, listeners), fit


def _laid_out(averages: Floats, boards: Sequence[FilledBoard], dimensions: int) -> Floats:
    """Scale averaged distances classically and turn them onto the placing most alike; the first of equal ones."""
    samples = boards[0].slot.size
    first, second = index_pairs(samples)
    distances = np.zeros((samples, samples))
    distances[first, second] = distances[second, first] = averages
    places = scale_classically(distances, dimensions)
    turned = [turn_onto(places, board.place[:, :dimensions]) for board in boards]
    nearest, _ = min(turned, key=lambda one: round(one[1], _DECIMALS))
    return np.asarray(np.round(nearest, _DECIMALS))


def _points(board: FilledBoard, places: Floats, listeners: int) -> list[Row]:
    """Return a row of ``map`` for each sample; y stays empty in one dimension."""
    names = ("slot", "system", "utterance", "speaker")
    samples = zip(*(getattr(board, name).tolist() for name in names), strict=True)
    return [
        {"board": board.board, "listeners": listeners}
        | dict(zip(names, sample, strict=True))
        | dict(zip(("x", "y"), place, strict=False))
        for sample, place in zip(samples, places.tolist(), strict=True)
    ]


def _note(incomplete: int, listeners: int) -> str:
    notes = []
    if incomplete:
        notes.append(f"{incomplete} placing{'' if incomplete == 1 else 's'} left out that lack samples.")
    if listeners == 1:
        notes.append("One listener only: nothing is averaged.")
    return " ".join(notes)


def _systems_of(board: FilledBoard) -> set[str]:
    """Return the systems whose map a board tells something of: those that anonymised some of it, else the original."""
    return set(board.system.tolist()) - {ORIGINAL} or {ORIGINAL}


def _map_of_system(system: str, boards: Sequence[FilledBoard], settings: Settings) -> tuple[list[Row], Row]:
    """Return the places and the fit of the voices of one system, from all boards that hold it."""
    listeners: dict[_Voice, set[str]] = defaultdict(set)
    for board in boards:
        for voice in filter(None, _voices_of(board, system)):
            listeners[voice].add(board.listener)
    voices = sorted(listeners)
    averages = _averages(system, boards, voices, settings)
    first, second = index_pairs(len(voices))
    known = np.isfinite(averages[first, second])
    dimensions = min(board.dimensions for board in boards)
    fit: Row = {"board": f"all boards of {system}", "dimensions": dimensions, "samples": len(voices)}
    fit["listeners"] = len({board.listener for board in boards})
    asked = averages[first, second][known]
    if asked.size == 0 or np.ptp(asked) == 0:
        return [], fit | {"remark": _NOTHING_TO_MAP}
    if not is_connected(averages):
        return [], fit | {"remark": "Some voices were never on a board with the others, so there is no map of all."}
    places = _on_axes(majorise_stress(averages, scale_classically(add_shortest_paths(averages), dimensions)))
    away = np.sqrt(((places[first] - places[second]) ** 2).sum(1))[known]
    fit |= {"stress": stress_1(asked, away), "remark": _averaged_over(len(boards), int((~known).sum()), known.size)}
    columns = {"board": fit["board"], "slot": "", "utterance": ""}
    return [
        columns
        | {"system": system if voice[1] else ORIGINAL, "speaker": voice[0], "listeners": len(listeners[voice])}
        | dict(zip(("x", "y"), place, strict=False))
        for voice, place in zip(voices, places.tolist(), strict=True)
    ], fit


def _voices_of(board: FilledBoard, system: str) -> list[_Voice | None]:
    """Return the voice of each sample; None of a sample of another system."""
    samples = zip(board.speaker.tolist(), board.system.tolist(), strict=True)
    return [(speaker, of != ORIGINAL) if of in (ORIGINAL, system) else None for speaker, of in samples]


def _averages(system: str, boards: Sequence[FilledBoard], voices: Sequence[_Voice], settings: Settings) -> Floats:
    """Return mean ranked distances of each two voices, shape (voices, voices); 0 to itself, NaN if never together."""
    place = {voice: number for number, voice in enumerate(voices)}
    sums, counts = np.zeros((2, len(voices), len(voices)))
    for board in boards:
        of_sample = np.array([-1 if voice is None else place[voice] for voice in _voices_of(board, system)])
        first, second = (of_sample[side] for side in index_pairs(of_sample.size))
        chosen = (first >= 0) & (second >= 0) & (first != second)
        cells = np.minimum(first, second)[chosen], np.maximum(first, second)[chosen]
        np.add.at(sums, cells, board.distances_as(NORMALISED, settings)[chosen])
        np.add.at(counts, cells, 1)
    with np.errstate(invalid="ignore"):
        # Rounded, so that the order in which boards are summed says nothing.
        averages = np.round((sums + sums.T) / (counts + counts.T), _DECIMALS)
    np.fill_diagonal(averages, 0)
    return np.asarray(averages)


def _on_axes(places: Floats) -> Floats:
    """Turn places so that the longest axis is first, and on each what lies furthest from the middle is positive."""
    axes = np.linalg.svd(places - places.mean(0), full_matrices=False)[2]
    turned = np.round((places - places.mean(0)) @ axes.T, _DECIMALS)
    furthest = turned[np.abs(turned).argmax(0), np.arange(turned.shape[1])]
    return np.asarray(turned * np.where(furthest < 0, -1.0, 1.0) + 0.0)  # no zero with a sign


def _averaged_over(boards: int, unknown: int, pairs: int) -> str:
    averaged = f"Averaged over {boards} board{'' if boards == 1 else 's'}."
    if not unknown:
        return averaged
    return f"{averaged} {unknown} of {pairs} pairs of voices were never on one together."
