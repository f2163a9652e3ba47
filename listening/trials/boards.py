"""What an evaluator sends of a board: whether it is whole, and what is kept of it.

A point is a list of one or two coordinates in [0, 1], as many as the study's board has dimensions: the first from the
left edge to the right one, the second from the top edge to the bottom one. Both edges are equally long, so distances
on a board of two dimensions are those on a unit square, whose diagonal is √2. Times are ms since the board appeared,
by the browser's clock.

What is kept (`Answer.data`): ``{"speakers", "samples": {slot: sample}, "moves", "left_out"}``, and of each sample
``{"at", "group", "plays", "moves", "first", "first_ms", "last_ms"}``, where `moves` is their number. `first` and the
times are read off the moves here and not taken from the browser. `left_out` counts moves beyond those that are kept.
Public: `validate_board`, `BoardError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

GROUPS = "ABCDEFGHIJKLMNOP"
MOVES_AT_MOST = 2000
LONGEST_MS = 24 * 3600 * 1000
WAYS = frozenset({"drag", "tap", "keys", "list"})
DECIMALS = 4


class BoardError(ValueError):
    """The board cannot be taken as an answer; `sentences` tell the evaluator why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


@dataclass(frozen=True)
class Move:
    """One change of place. `start` is None when the sample came from beside the board."""

    slot: str
    at_ms: int
    way: str
    start: list[float] | None
    end: list[float]

    def as_json(self) -> dict[str, object]:
        return {"slot": self.slot, "ms": self.at_ms, "by": self.way, "from": self.start, "to": self.end}


def validate_board(given: object, *, slots: Sequence[str], dimensions: int, has_groups: bool) -> dict[str, object]:
    """The board as it is stored.

    Args:
        given: ``{"speakers": 4, "samples": {"1": {"at": [0.2, 0.7], "group": "A", "plays": 2}, …}, "moves": [{"slot":
            "1", "ms": 1200, "by": "drag" | "tap" | "keys" | "list", "from": null | [x, y], "to": [x, y]}, …],
            "left_out": 0}``, decoded from JSON; ``group`` only where the study lets groups be drawn.
        slots: those of the trial's samples.
        dimensions: 1 or 2.

    Raises:
        BoardError: with everything that is wrong, for the evaluator to read.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("samples"), Mapping):
        raise BoardError([_("This is not a board.")])
    faults: list[str] = []
    placed = _samples(given["samples"], slots, dimensions, has_groups, faults)
    speakers = _speakers(given.get("speakers"), len(slots), faults)
    moves = _moves(given.get("moves"), slots, dimensions, faults)
    left_out = _whole(given.get("left_out", 0), 10**6)
    if left_out is None:
        faults.append(_("The number of moves left out is not a whole number."))
    if not faults and has_groups:
        faults += _group_faults(placed, speakers)
    if not faults and not left_out:
        faults += _trail_faults(placed, moves)
    if faults:
        raise BoardError(faults)
    trails = {slot: [move for move in moves if move.slot == slot] for slot in slots}
    return {
        "speakers": speakers,
        "samples": {slot: _with_trail(placed[slot], trails[slot]) for slot in slots},
        "moves": [move.as_json() for move in moves],
        "left_out": left_out,
    }


def _samples(
    given: Mapping[str, object], slots: Sequence[str], dimensions: int, has_groups: bool, faults: list[str]
) -> dict[str, dict[str, object]]:
    missing = [slot for slot in slots if slot not in given]
    if missing:
        faults.append(
            ngettext("Sample %(names)s is not placed yet.", "Samples %(names)s are not placed yet.", len(missing))
            % {"names": ", ".join(missing)}
        )
    if set(given) - set(slots):
        faults.append(_("The board names samples that are not on it."))
    placed = {}
    for slot in slots:
        if slot in given:
            placed[slot] = _sample(slot, given[slot], dimensions, has_groups, faults)
    return placed


def _sample(slot: str, given: object, dimensions: int, has_groups: bool, faults: list[str]) -> dict[str, object]:
    given = given if isinstance(given, Mapping) else {}
    at, plays, group = _point(given.get("at"), dimensions), _whole(given.get("plays"), 1000), given.get("group", "")
    if at is None:
        faults.append(_("Sample %(name)s has no place on the board.") % {"name": slot})
    if not plays:
        faults.append(_("Sample %(name)s has not been listened to yet.") % {"name": slot})
    if has_groups and not _is_group(group):
        faults.append(_("Sample %(name)s belongs to no group yet.") % {"name": slot})
    elif not has_groups and group not in ("", None):
        faults.append(_("No groups are drawn in this study."))
    return {"at": at, "group": group if has_groups else "", "plays": plays}


def _speakers(given: object, samples: int, faults: list[str]) -> int:
    speakers = _whole(given, samples)
    if not speakers:
        faults.append(
            _("Say how many different speakers you hear: a whole number from 1 to %(most)d.") % {"most": samples}
        )
    return speakers or 0


def _moves(given: object, slots: Sequence[str], dimensions: int, faults: list[str]) -> list[Move]:
    if not isinstance(given, list) or len(given) > MOVES_AT_MOST:
        faults.append(_("The record of moves is missing or too long."))
        return []
    moves = [_move(one, slots, dimensions) for one in given]
    known = [move for move in moves if move is not None]
    times = [move.at_ms for move in known]
    if len(known) < len(moves) or times != sorted(times):
        faults.append(_("The record of moves cannot be read."))
    return known


def _move(given: object, slots: Sequence[str], dimensions: int) -> Move | None:
    if not isinstance(given, Mapping):
        return None
    slot, way, at_ms = given.get("slot"), given.get("by"), _whole(given.get("ms"), LONGEST_MS)
    start, end = given.get("from"), _point(given.get("to"), dimensions)
    come_from = None if start is None else _point(start, dimensions)
    is_known = isinstance(slot, str) and slot in slots and isinstance(way, str) and way in WAYS
    if not is_known or at_ms is None or end is None or (start is not None and come_from is None):
        return None
    return Move(str(slot), at_ms, str(way), come_from, end)


def _group_faults(placed: Mapping[str, Mapping[str, object]], speakers: int) -> list[str]:
    drawn = len({sample["group"] for sample in placed.values()})
    if drawn == speakers:
        return []
    groups = ngettext("%(n)d group", "%(n)d groups", drawn) % {"n": drawn}
    heard = ngettext("%(n)d speaker", "%(n)d speakers", speakers) % {"n": speakers}
    return [_("You drew %(groups)s, but say that you hear %(speakers)s.") % {"groups": groups, "speakers": heard}]


def _trail_faults(placed: Mapping[str, Mapping[str, object]], moves: Sequence[Move]) -> list[str]:
    """A whole record of moves ends where the samples lie."""
    last = {move.slot: move.end for move in moves}
    astray = [slot for slot, sample in placed.items() if last.get(slot) != sample["at"]]
    return [_("The record of moves does not lead to where the samples lie.")] if astray else []


def _with_trail(sample: Mapping[str, object], trail: Sequence[Move]) -> dict[str, object]:
    known = {"first": trail[0].end, "first_ms": trail[0].at_ms, "last_ms": trail[-1].at_ms} if trail else {}
    return {"at": sample["at"], "group": sample["group"], "plays": sample["plays"], "moves": len(trail)} | known


def _point(given: object, dimensions: int) -> list[float] | None:
    if not isinstance(given, list) or len(given) != dimensions:
        return None
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in given):
        return None
    if not all(0 <= value <= 1 for value in given):  # which no NaN passes
        return None
    return [round(float(value), DECIMALS) for value in given]


def _whole(given: object, most: int) -> int | None:
    is_whole = isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= most
    return int(given) if is_whole else None  # type: ignore[call-overload]


def _is_group(given: object) -> bool:
    return isinstance(given, str) and len(given) == 1 and given in GROUPS
