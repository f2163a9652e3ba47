"""Which systems do not differ significantly, as letters: two systems share a letter exactly if no test parts them.

Sources: Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", Journal of Computational
and Graphical Statistics 13 (2004): columns are the largest sets within which nothing differs. They are found as
Bron & Kerbosch do ("Algorithm 457: finding all cliques of an undirected graph", Communications of the ACM 16, 1973),
with a pivot. There can be exponentially many of them (Moon & Moser 1965: 3^(n/3)); above `MOST_COLUMNS` every pair that
does not differ gets a set grown greedily around it instead, which keeps the meaning and needs a few letters more.

Conventions: sets of systems are bit masks, bit i is the i-th name; a column is such a set and becomes one letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from string import ascii_lowercase

MOST_COLUMNS = 400


def assign_letters(ordered_names: Sequence[str], is_apart: Callable[[str, str], bool]) -> dict[str, str]:
    """Return the letters of each system; a is where the first names stand.

    Letters are written one after the other, ``ab``. Where more than 26 are needed, they go on as aa, ab, … and blanks
    separate all of them, ``z aa ab``.

    Args:
        ordered_names: different names, best first; the order decides which letter comes first and nothing else.
        is_apart: whether two differ significantly; asked once for each pair, the earlier name first.

    Raises:
        ValueError: a name occurs twice.

    Example:
        >>> assign_letters(["T03", "T01", "T02"], lambda first, second: {first, second} == {"T03", "T02"})
        {'T03': 'a', 'T01': 'ab', 'T02': 'b'}
    """
    names = list(ordered_names)
    if len(set(names)) != len(names):
        raise ValueError("Expected different names, found one twice.")
    apart = _apart_masks(names, is_apart)
    columns = _largest_sets(apart)
    if columns is None:
        columns = _greedy_cover(apart)
    columns = sorted(_without_needless(columns), key=lambda column: _members(column))
    separator = "" if len(columns) <= len(ascii_lowercase) else " "
    return {
        name: separator.join(letter(place) for place, column in enumerate(columns) if column >> bit & 1)
        for bit, name in enumerate(names)
    }


def letter(number: int) -> str:
    """Return the letter of a column from 0: a to z, aa, ab, …, as columns of a spreadsheet are named.

    Example:
        >>> letter(0), letter(25), letter(26), letter(27), letter(702)
        ('a', 'z', 'aa', 'ab', 'aaa')
    """
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_lowercase))
        text = ascii_lowercase[place] + text
    return text


def _apart_masks(names: list[str], is_apart: Callable[[str, str], bool]) -> list[int]:
    """Return for each name those that it differs from."""
    masks = [0] * len(names)
    for first in range(len(names)):
        for second in range(first + 1, len(names)):
            if is_apart(names[first], names[second]):
                masks[first] |= 1 << second
                masks[second] |= 1 << first
    return masks


def _largest_sets(apart: list[int]) -> list[int] | None:
    """Return all largest sets within which nothing differs significantly; None where over `MOST_COLUMNS` of them."""
    everything = (1 << len(apart)) - 1
    alike = [everything & ~mask & ~(1 << bit) for bit, mask in enumerate(apart)]

    def grow(column: int, open_to: int, done: int) -> Iterator[int]:
        """Yield those that hold a column and further members of `open_to` alone; what is `done` was tried before."""
        if not open_to | done:
            yield column
            return
        pivot = max(_members(open_to | done), key=lambda one: (alike[one] & open_to).bit_count())
        for member in _members(open_to & ~alike[pivot]):
            yield from grow(column | 1 << member, open_to & alike[member], done & alike[member])
            open_to, done = open_to & ~(1 << member), done | 1 << member

    found = list(islice(grow(0, everything, 0), MOST_COLUMNS + 1))
    return found if len(found) <= MOST_COLUMNS else None


def _greedy_cover(apart: list[int]) -> list[int]:
    """Return a set around each pair that no earlier one holds, and each system alone: at most n² / 2 sets."""
    count = len(apart)
    columns: list[int] = []
    joined = [0] * count  # for each system those that it shares a column with
    for first in range(count):
        for second in range(first, count):
            if apart[first] >> second & 1 or joined[first] >> second & 1:
                continue
            column, excluded = 1 << first | 1 << second, apart[first] | apart[second]
            for other in range(count):
                if not (excluded >> other & 1 or column >> other & 1):
                    column |= 1 << other
                    excluded |= apart[other]
            columns.append(column)
            for member in _members(column):
                joined[member] |= column
    return columns


def _without_needless(columns: list[int]) -> list[int]:
    """Leave out columns whose every pair is joined by another one too, smallest first."""
    kept = list(columns)
    for column in sorted(columns, key=lambda one: (one.bit_count(), one)):
        others = [other for other in kept if other != column]
        if _is_joined(column, others):
            kept = others
    return kept


def _is_joined(column: int, others: list[int]) -> bool:
    """Return whether each two members share one of the other columns, and a single member has one."""
    for member in _members(column):
        reached = 0
        for other in others:
            if other >> member & 1:
                reached |= other
        if column & ~reached:
            return False
    return True


def _members(column: int) -> tuple[int, ...]:
    """Return the places of the bits that are set."""
    return tuple(bit for bit in range(column.bit_length()) if column >> bit & 1)
