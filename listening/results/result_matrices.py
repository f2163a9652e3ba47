"""Which systems can be told apart, as a square: what stands in a row is higher than, lower than, or like the column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from listening.analysis.inputs import ORIGINAL
from listening.analysis.tables import Cell
from listening.results.result_tables import Shape
from listening.results.result_words import label_of, p_value, percent
from portal.core.wording import decimals

MOST_NAMES = 20  # more do not fit beside each other; the figure shows them
SIGNS = {"higher": "▲", "lower": "▽", "like": "="}


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """`kind`: higher, lower, like, or empty on the diagonal. `read`: what the read-out says."""

    kind: str
    sign: str
    read: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """`names`: of rows and columns alike. `rows`: name and cells. `apart`, `pairs`: how many are told apart, of all."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell, ...]], ...]
    apart: int
    pairs: int


def matrix_of(records: Sequence[Mapping[str, Cell]], shape: Shape, level: float, *, is_rate: bool) -> Matrix | None:
    """The square of a task's pairs; None where it would be too large, or nothing is known of any pair.

    Args:
        records: rows of ``differences``, told apart by the corrected permutation test; or with `is_rate` of
            ``eer_differences``, told apart by the corrected interval.
        level: of intervals; 1 less it is the limit of p-values.
    """
    labels = shape.labels or {}
    names = list(dict.fromkeys(str(row[side]) for row in records for side in ("first", "second")))
    names.sort(key=lambda name: name != ORIGINAL)
    if not names or len(names) > MOST_NAMES:
        return None
    pairs: dict[tuple[str, str], MatrixCell] = {}
    apart = 0
    for row in records:
        first, second = str(row["first"]), str(row["second"])
        told = _is_apart(row, level, is_rate=is_rate)
        apart += told
        for one, other, sign in ((first, second, 1), (second, first, -1)):
            pairs[one, other] = _cell(row, label_of(one, labels), label_of(other, labels), sign, told, is_rate)
    nothing = MatrixCell("", "", "")
    rows = tuple((label_of(one, labels), tuple(pairs.get((one, other), nothing) for other in names)) for one in names)
    return Matrix(tuple(label_of(name, labels) for name in names), rows, apart, len(records))


def _is_apart(row: Mapping[str, Cell], level: float, *, is_rate: bool) -> bool:
    if is_rate:
        return bool(row.get("is_told_apart"))
    p = row.get("permutation_adjusted")
    return isinstance(p, (int, float)) and p < 1 - level


def _cell(row: Mapping[str, Cell], one: str, other: str, sign: int, told: bool, is_rate: bool) -> MatrixCell:
    difference = row.get("difference")
    if not isinstance(difference, (int, float)):
        return MatrixCell("", "", f"{one} and {other}: not compared")
    kind = "like" if not told else "higher" if sign * difference > 0 else "lower"

    def show(value: float) -> str:
        plus = "+" if value > 0 else ""
        return plus + (percent(value) if is_rate else decimals(value, 3))

    limits = [row.get("difference_low"), row.get("difference_high")]
    known = [sign * float(limit) for limit in limits if isinstance(limit, (int, float))]
    interval = f" ({show(min(known))} to {show(max(known))})" if len(known) == 2 else ""
    p = row.get("permutation_adjusted")
    chance = f", p {_equal(p_value(float(p)))}" if isinstance(p, (int, float)) else ""
    verdict = {"higher": "is above", "lower": "is below", "like": "cannot be told from"}[kind]
    return MatrixCell(kind, SIGNS[kind], f"{one} {verdict} {other}: {show(sign * difference)}{interval}{chance}")


def _equal(p: str) -> str:
    return p if p.startswith("<") else f"= {p}"
