"""Contact sheets: pages side by side with their addresses, each sheet small enough to be looked at as it is.

A page runs down a column and goes on in the next one. Most pages of 1280 px take half of a column or one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.photographs.taking import Look

SHEET = (1312, 876)  # 1.15 megapixels
GAP, CAPTION = 8, 16  # px
COLUMNS = {1280: 4, 360: 7}
GROUND, INK = "#d8d8d8", "#202020"


@dataclass
class Place:
    column: int
    top: int


def make_sheets(looks: Sequence[Look], pages: Path, folder: Path) -> int:
    """Sheets of each width and theme; how many there are."""
    groups: dict[str, list[Look]] = defaultdict(list)
    for look in looks:
        if look.picture:
            groups[f"{look.width}-{look.theme}" + ("-unfolded" if look.state == "unfolded" else "")].append(look)

    def save(name: str) -> int:
        number = 0
        for number, sheet in enumerate(_fill(groups[name], pages), 1):
            sheet.save(folder / f"{name}-{number:03}.png")
        return number

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(save, groups))


def _fill(looks: Sequence[Look], pages: Path) -> Iterator[Image.Image]:
    columns = COLUMNS[looks[0].width]
    width = (SHEET[0] - GAP * (columns + 1)) // columns
    font = ImageFont.load_default(size=11)
    sheet, place = Image.new("RGB", SHEET, GROUND), Place(0, GAP)
    for look in looks:
        with Image.open(pages / look.picture) as picture:
            scale = width / picture.width
            small = picture.convert("RGB").resize((width, max(1, round(picture.height * scale))), Image.Resampling.BOX)
        room = SHEET[1] - 2 * GAP - CAPTION
        needed = -(-small.height // room)
        if place.top > GAP and (needed > 1 or place.top + CAPTION + small.height > SHEET[1] - GAP):
            place = Place(place.column + 1, GAP)
        if place.column and place.column + min(needed, columns) > columns:
            yield sheet
            sheet, place = Image.new("RGB", SHEET, GROUND), Place(0, GAP)
        for part in range(needed):
            if place.column == columns:
                yield sheet
                sheet, place = Image.new("RGB", SHEET, GROUND), Place(0, GAP)
            strip = small.crop((0, part * room, width, min(small.height, (part + 1) * room)))
            left = GAP + place.column * (width + GAP)
            part_of = f"({part + 1})" if part else ""
            words = " ".join(filter(None, (str(look.number), part_of, look.role, look.state, look.address)))
            ImageDraw.Draw(sheet).text((left, place.top), _shorten(words, width, font), fill=INK, font=font)
            sheet.paste(strip, (left, place.top + CAPTION))
            bottom = place.top + CAPTION + strip.height + GAP
            place = Place(place.column + 1, GAP) if part + 1 < needed else Place(place.column, bottom)
    yield sheet


def _shorten(words: str, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    if font.getlength(words) <= width:
        return words
    while words and font.getlength(words + "…") > width:
        words = words[:-1]
    return words + "…"
