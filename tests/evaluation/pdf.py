"""The texts of a PDF that matplotlib wrote, read as a viewer reads them: through the fonts inside of it."""

from __future__ import annotations

import io
import re
import zlib
from dataclasses import dataclass
from typing import Any

from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont

OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
SHOWN = re.compile(rb"/(F\d+) [\d.]+ Tf|\(((?:\\.|[^\\)])*)\)|(BT)", re.DOTALL)
ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


def outline(font: TTFont, glyph: str) -> list[Any]:
    """The curves of a glyph; none of a space."""
    pen = DecomposingRecordingPen(font.getGlyphSet())
    font.getGlyphSet()[glyph].draw(pen)
    return pen.value


@dataclass
class EmbeddedFont:
    """A font of a PDF: the text and the glyph of each code that is shown in it."""

    name: str
    font: TTFont
    texts: dict[int, str]
    glyphs: bytes

    def outline(self, code: int) -> list[Any]:
        place = int.from_bytes(self.glyphs[2 * code : 2 * code + 2], "big")
        return outline(self.font, self.font.getGlyphName(place))


def read_texts(pdf: bytes) -> list[list[tuple[EmbeddedFont, int]]]:
    """Every text with font and code of each of its signs."""
    objects = {int(number): body for number, body in OBJECT.findall(pdf)}
    held = objects[next(int(found[1]) for body in objects.values() if (found := re.search(rb"/Font (\d+) 0 R", body)))]
    fonts = {name.decode(): _font(objects, int(place)) for name, place in re.findall(rb"/(F\d+) (\d+) 0 R", held)}
    page = next(body for body in objects.values() if b"/Contents" in body)
    found: list[list[tuple[EmbeddedFont, int]]] = []
    for name, signs, begins in SHOWN.findall(_stream(objects, page, "Contents")):
        if begins:
            found.append([])
        elif name:
            font = fonts[name.decode()]
        else:
            plain = re.sub(rb"\\(.)", lambda sign: ESCAPED.get(sign[1], sign[1]), signs, flags=re.DOTALL)
            found[-1] += [(font, int.from_bytes(plain[at : at + 2], "big")) for at in range(0, len(plain), 2)]
    return found


def _reference(body: bytes, key: str) -> int:
    return int(re.search(rf"/{key} (?:\[ )?(\d+) 0 R".encode(), body)[1])


def _stream(objects: dict[int, bytes], body: bytes, key: str) -> bytes:
    packed = objects[_reference(body, key)].partition(b"stream\n")[2]
    return zlib.decompressobj().decompress(packed)


def _font(objects: dict[int, bytes], place: int) -> EmbeddedFont:
    body = objects[place]
    inner = objects[_reference(body, "DescendantFonts")]
    described = objects[_reference(inner, "FontDescriptor")]
    texts = {}
    for first, words in re.findall(rb"<(\w+)> <\w+> \[(.*?)\]", _stream(objects, body, "ToUnicode")):
        for number, word in enumerate(re.findall(r"\w+", words.decode())):
            texts[int(first, 16) + number] = bytes.fromhex(word).decode("utf-16-be")
    name = re.search(rb"/BaseFont /\w+\+(\S+)", body)[1].decode()
    embedded = TTFont(io.BytesIO(_stream(objects, described, "FontFile2")))
    return EmbeddedFont(name, embedded, texts, _stream(objects, inner, "CIDToGIDMap"))
