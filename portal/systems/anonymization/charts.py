"""The pipeline of a method as a drawing: what each part is, what it works on, and what it hands on.

Content and prosody stand in the left column below the original speech, the voice in the right one below the seed; all
lead to the synthesis. Conventions: a unit is a CSS pixel at full size; x goes right, y goes down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from anonymization.methods.contract import Anonymizer, Block
from anonymization.methods.measured import SHORTFALLS, find_measured, read_measurements
from common.tables import Cell, Column, number_table, plain_table

_WIDTH, _COLUMN, _GAP = 320, 148, 24
_LINE, _TOP, _PAD, _EDGE = 14, 17, 9, 8
_LETTERS = 23
STATES = {
    "frozen": "frozen weights",
    "trained": "trained here",
    "retrained": "trained again",
    "drawn": "drawn for each speaker",
    "computed": "no weights",
}


@dataclass(frozen=True)
class Box:
    """A rectangle with a heading and lines; kind: how it is drawn (end or part)."""

    kind: str
    x: int
    y: int
    width: int
    height: int
    heading: str
    lines: tuple[tuple[int, str], ...]  # height of each, and its words

    @property
    def middle(self) -> int:
        return self.x + self.width // 2

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def heading_y(self) -> int:
        return self.y + _TOP


def draw_pipeline(method: Anonymizer | None) -> dict[str, Any] | None:
    """Return what the template draws; None of a method that is not put together of parts."""
    parts: Sequence[Block] = getattr(method, "pipeline", ())
    if method is None or not parts:
        return None
    by_slot = {part.slot: part for part in parts}
    right = _EDGE + _COLUMN + _GAP - 2 * _EDGE
    boxes: list[Box] = []
    arrows: list[str] = []
    ends = {
        "original": _box("end", _EDGE, _EDGE, _COLUMN, "Original speech", ()),
        "seed": _box("end", right, _EDGE, _COLUMN, "Seed and speaker", ()),
    }
    boxes += ends.values()
    last = ends["original"]
    for slot in ("content", "prosody"):
        if slot in by_slot:
            box = _part(by_slot[slot], _EDGE, last.bottom + _GAP)
            arrows.append(_down(last, box))
            boxes.append(box)
            last = box
    voice = _part(by_slot["voice"], right, ends["seed"].bottom + _GAP) if "voice" in by_slot else ends["seed"]
    if voice is not ends["seed"]:
        boxes.append(voice)
        arrows.append(_down(ends["seed"], voice))
    wide = _WIDTH - 2 * _EDGE
    synthesis = _part(by_slot["synthesis"], _EDGE, max(last.bottom, voice.bottom) + _GAP, wide)
    output = _box("end", _EDGE, synthesis.bottom + _GAP, wide, "Anonymised speech", ())
    arrows += [_to(last.middle, last.bottom, synthesis.y), _to(voice.middle, voice.bottom, synthesis.y)]
    arrows.append(_to(output.middle, synthesis.bottom, output.y))
    fidelity = getattr(method, "fidelity", "")
    told = "lite: it has lighter or other parts than the published system" if fidelity == "lite" else fidelity
    return {
        "width": _WIDTH,
        "height": output.bottom + _EDGE,
        "boxes": [*boxes, synthesis, output],
        "arrows": arrows,
        "alt": "; ".join(f"{part.slot}: {part.title}, {STATES[part.state]}" for part in parts),
        "fidelity": told,
        "table": plain_table(
            "Parts of the method",
            [Column("slot", "Part"), Column("title", "What"), Column("state", "State"), Column("licence", "Licence")],
            ([part.slot, part.title, STATES[part.state], part.licence or "none needed"] for part in parts),
        ),
    }


def _part(part: Block, x: int, y: int, width: int = _COLUMN) -> Box:
    words = wrap(part.title, _LETTERS if width == _COLUMN else 2 * _LETTERS)
    return _box("part", x, y, width, part.slot.capitalize(), (*words, STATES[part.state]))


def _box(kind: str, x: int, y: int, width: int, heading: str, lines: Sequence[str]) -> Box:
    placed = tuple((y + _TOP + _LINE * (number + 1), line) for number, line in enumerate(lines))
    return Box(kind, x, y, width, _TOP + _LINE * len(lines) + _PAD, heading, placed)


def _down(upper: Box, lower: Box) -> str:
    return _to(upper.middle, upper.bottom, lower.y)


def _to(x: int, start: int, end: int) -> str:
    """Return the path of an arrow that points down."""
    return f"M{x} {start}V{end - 1}M{x - 4} {end - 6}l4 5l4 -5"


def list_measured(method: Anonymizer | None) -> dict[str, Any] | None:
    """Return what was measured of the method on real speech, beside the original speech; None where nobody measured
    it."""
    found = find_measured(method) if method else None
    if method is None or found is None:
        return None
    whole = read_measurements()
    kinds = {"Original": whole.original, "Copies by HiFi-GAN": whole.copied, "This method": found}
    rows: Iterable[Iterable[Cell | str]] = zip(whole.heads, *(whole.row(one) for one in kinds.values()), strict=True)
    caption = f"Measured on real speech, {whole.date}"
    told = "".join(f"{mark.capitalize()}: {SHORTFALLS[mark]}. " for mark in whole.find_shortfalls(found))
    return {
        "table": number_table("Measured on real speech", ["Measure", *kinds], rows, caption=caption),
        "about": f"{told}{whole.describe_speech()}Work: processor time for a second of speech.",
    }
