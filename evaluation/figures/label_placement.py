"""Positions of names next to crowded points: none on another, each as near to its point as can be.

Conventions: boxes are left, bottom, right, top in one unit, such as pixels; y grows upwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Box = tuple[float, float, float, float]

_RINGS = (1.0, 1.9, 3.0, 4.4, 6.0, 8.0, 10.5, 13.5)
_STEPS = tuple(step / 20 for step in range(1, 21))  # shares of the way from a point to its name
_ANGLES = tuple(math.radians(degrees) for degrees in (0, 180, 90, 270, 45, 315, 135, 225, 22, 338, 158, 202, 67, 113))
_NEAR = 2 * len(_ANGLES)  # places of the rings where a name needs no line to its point


def place_names(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    gap: float,
    taken: Sequence[Box],
    inside: Box,
) -> list[Box]:
    """Return a box for the name of each point.

    Args:
        points: x and y of each.
        sizes: width and height of each name.
        gap: from a point to the nearest place of its name.
        taken: what names should not cover, such as points and intervals.
        inside: where names should stay.
    """
    order = sorted(range(len(points)), key=lambda one: (-_count_near(points, one, 12 * gap), points[one]))
    placed: dict[int, Box] = {}
    for one in order:
        boxes = _list_places(points[one], sizes[one], gap)
        names = list(placed.values())
        costs = [
            30 * _cover(box, names)
            + 3 * _cover(box, taken)
            + 60 * _beyond(box, inside)
            + sizes[one][1] * (0.05 * rank + 10 * (rank >= _NEAR) + 4 * _is_nearer_to_another(points, one, box, gap))
            + 30 * sizes[one][1] * _line_crosses(points, one, box, gap, names)
            for rank, box in enumerate(boxes)
        ]
        placed[one] = boxes[costs.index(min(costs))]
    return [placed[one] for one in range(len(points))]


def _count_near(points: Sequence[tuple[float, float]], one: int, within: float) -> int:
    return sum(math.dist(points[one], other) < within for other in points)


def _is_nearer_to_another(points: Sequence[tuple[float, float]], one: int, box: Box, gap: float) -> bool:
    """Return whether another point than its own, or one that lies on its own, is nearest to a name there."""
    left, bottom, right, top = box
    apart = [other for other in points if math.dist(points[one], other) > gap / 2]
    away, *others = (
        math.hypot(max(left - x, x - right, 0), max(bottom - y, y - top, 0)) for x, y in [points[one], *apart]
    )
    return min(others, default=away) < away


def _line_crosses(points: Sequence[tuple[float, float]], one: int, box: Box, gap: float, names: Sequence[Box]) -> bool:
    """Return whether the straight way from a point to its name leads across another point or another name."""
    start, end = points[one], ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    steps = [(start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])) for share in _STEPS]
    marks = [other for other in points if math.dist(start, other) > gap]
    return any(
        any(math.dist(step, mark) < 0.7 * gap for mark in marks)
        or any(left < step[0] < right and bottom < step[1] < top for left, bottom, right, top in names)
        for step in steps
    )


def _list_places(point: tuple[float, float], size: tuple[float, float], gap: float) -> list[Box]:
    """Return places from the nearest to the furthest, the right side first."""
    (x, y), (width, height) = point, size
    found = []
    for ring in _RINGS:
        for angle in _ANGLES:
            across, up = math.cos(angle), math.sin(angle)
            left = x + ring * gap * across + width * (across - 1) / 2
            bottom = y + ring * gap * up + height * (up - 1) / 2
            found.append((left, bottom, left + width, bottom + height))
    return found


def _cover(box: Box, others: Sequence[Box]) -> float:
    left, bottom, right, top = box
    widths = (max(0.0, min(right, other[2]) - max(left, other[0])) for other in others)
    heights = (max(0.0, min(top, other[3]) - max(bottom, other[1])) for other in others)
    return sum(width * height for width, height in zip(widths, heights, strict=True))


def _beyond(box: Box, inside: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) - _cover(box, [inside])
