"""Boards as listeners left them: samples placed so that distance says how unlike two voices sound.

A board of one dimension is one long, one of two is a unit square, so its diagonal is √2. Distances are shares of that
length, hence in [0, 1]. Normalised, the distances of one filled board are ranked within it: how much of the board a
listener used then no longer matters, only which samples lie nearer to each other than which others.

Conventions: a filled board is one listener's in one session; filled boards stand in the order of listener, session and
board, samples in the order of their slots, pairs in the order (0, 1), (0, 2), …, (1, 2), …, as scipy's ``pdist`` has
them. So the order of the input's rows changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from listening.analysis.errors import AnalysisInputError
from listening.analysis.inputs import ORIGINAL, Flags, Floats, Ints, Placements, Texts
from listening.analysis.normalisation import normalised_ranks
from listening.analysis.scoring import NORMALISED
from listening.analysis.settings import Settings

_DECIMALS = 12  # distances that are equal on paper are equal in the machine
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
        """Shape (pairs,), shares of the diagonal."""
        first, second = pairs_of(self.slot.size)
        away = np.sqrt(((self.place[first] - self.place[second]) ** 2).sum(1) / self.dimensions)
        return np.asarray(np.round(away, _DECIMALS))

    def distances_as(self, kind: str, settings: Settings) -> Floats:
        """Distances, shape (pairs,): ``raw``, or ranked within this board and ``normalised`` by the named formula."""
        if kind != NORMALISED:
            return self.distances
        together = np.zeros(self.distances.size, np.int64)
        return normalised_ranks(self.distances, together, settings.normalisation).score


def pairs_of(samples: int) -> tuple[Ints, Ints]:
    """Places of the first and of the second sample of each pair, shape (pairs,) each."""
    first, second = np.triu_indices(samples, 1)
    return first, second


def filled_boards(placements: Placements) -> list[FilledBoard]:
    """The boards that count, those of excluded sessions left out.

    Raises:
        AnalysisInputError: a sample lies twice on a filled board, has no place, or differs between listeners.
    """
    counting: Placements = placements.rows(placements.excluded == "")
    slot_length = np.char.str_len(counting.slot)
    order = np.lexsort((counting.slot, slot_length, counting.board, counting.session, counting.listener))
    rows: Placements = counting.rows(order)
    if problems := [*_twice(rows), *_misplaced(rows), *_different_samples(rows)]:
        raise AnalysisInputError(_first_of(problems))
    starts = np.flatnonzero(_changes(rows.listener, rows.session, rows.board))
    return [_filled(rows.rows(part)) for part in np.split(np.arange(len(rows)), starts[1:]) if part.size]


def _filled(rows: Placements) -> FilledBoard:
    is_flat = bool(np.isnan(rows.y).all())
    place = rows.x[:, None] if is_flat else np.column_stack((rows.x, rows.y))
    return FilledBoard(
        listener=str(rows.listener[0]),
        session=str(rows.session[0]),
        board=str(rows.board[0]),
        slot=rows.slot,
        system=rows.system,
        utterance=rows.utterance,
        speaker=rows.speaker,
        group=rows.group,
        place=place,
        declared=int(rows.declared.max()),
    )


def _changes(*columns: Texts) -> Flags:
    """Where sorted rows begin anew in any of the columns."""
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
    """Both coordinates within the board, on all samples of a filled board alike."""
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
    """A slot of a board holds the same sample for everybody, or boards cannot be compared."""
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
