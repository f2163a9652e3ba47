"""What every figure must be: an SVG that a strict page may show, and the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from evaluation.figures.style import PALETTES

SVG = "{http://www.w3.org/2000/svg}"


def assert_sound(draw: Callable[..., bytes]) -> None:
    """`draw` takes theme and image_format."""
    themes = {theme: draw(theme=theme, image_format="svg") for theme in PALETTES}
    for svg in themes.values():
        root = ElementTree.fromstring(svg)
        assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
        for element in root.iter():
            assert element.tag not in {f"{SVG}script", f"{SVG}style", f"{SVG}image", f"{SVG}foreignObject"}
            assert not [name for name in element.attrib if name == "style" or name.startswith("on")]
        assert {one.get("font-family") for one in root.iter(f"{SVG}text")} == {"sans-serif"}
    assert themes["light"].startswith(b"<?xml")
    assert themes["light"] != themes["dark"]
    assert themes["light"] == draw(theme="light", image_format="svg")


def assert_sound_for_print(draw: Callable[..., bytes]) -> None:
    """The formats that are saved rather than shown; `draw` takes theme and image_format."""
    for image_format, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        first = draw(theme="light", image_format=image_format)
        assert first.startswith(start)
        assert first == draw(theme="light", image_format=image_format)


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def title_and_description(svg: bytes) -> tuple[str | None, str | None]:
    root = ElementTree.fromstring(svg)
    return root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")


def fills(svg: bytes, colour: str) -> int:
    """How many shapes have a colour."""
    return sum(element.get("fill") == colour for element in ElementTree.fromstring(svg).iter())
