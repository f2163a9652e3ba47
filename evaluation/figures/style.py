"""How our figures look, and how they become bytes.

One palette for each theme, told apart without colour vision and in grey print; the background is
transparent, and text stays text in the reader's own sans-serif. The same figure always gives the
same bytes, and an SVG holds no script and no style, as a strict content security policy asks.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Theme = Literal["light", "dark"]
ImageFormat = Literal["svg", "png", "pdf"]

PNG_DOTS_PER_INCH = 160
CSS_PIXELS_PER_INCH = 96
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"

# matplotlib's settings belong to the whole process: one figure at a time.
_drawing_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of a theme.

    Attributes:
        ink: text and marks.
        muted: secondary text.
        line: axes.
        grid: grid lines.
        warning: thresholds.
        series: fills in the order of use; they differ in lightness as well as in hue.
    """

    ink: str
    muted: str
    line: str
    grid: str
    warning: str
    series: tuple[str, ...]


# Hues after Okabe and Ito (2008), "Color Universal Design"; lightness set for each background.
PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        ink="#1f2328",
        muted="#59636e",
        line="#8c959f",
        grid="#e4e7eb",
        warning="#a8361a",
        series=("#0b5c94", "#e39a2d", "#00876c", "#b5648f"),
    ),
    "dark": Palette(
        ink="#e8eaed",
        muted="#a3abb5",
        line="#6b7480",
        grid="#30363d",
        warning="#ff9b80",
        series=("#5db7ee", "#d18a26", "#35c3a3", "#d993ba"),
    ),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How large a figure is drawn."""

    width_inches: float
    height_inches: float

    @property
    def inches(self) -> tuple[float, float]:
        return self.width_inches, self.height_inches

    @property
    def width(self) -> int:
        """In pixels of a page, which keeps its place from that before the picture has come."""
        return round(CSS_PIXELS_PER_INCH * self.width_inches)

    @property
    def height(self) -> int:
        return round(CSS_PIXELS_PER_INCH * self.height_inches)


@contextmanager
def drawing(theme: Theme) -> Iterator[Palette]:
    """Make and render a figure in here; matplotlib's own settings are back afterwards."""
    import matplotlib

    palette = PALETTES[theme]
    settings: dict[Any, Any] = {
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": palette.ink,
        "text.parse_math": False,
        "axes.edgecolor": palette.line,
        "axes.labelcolor": palette.ink,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": palette.grid,
        "grid.linewidth": 0.8,
        "xtick.color": palette.line,
        "xtick.labelcolor": palette.muted,
        "ytick.color": palette.line,
        "ytick.labelcolor": palette.muted,
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "svg.fonttype": "none",
        "svg.hashsalt": "voiceprivacy-portal",
        "pdf.fonttype": 42,
        "path.simplify": False,
    }
    with _drawing_lock, matplotlib.rc_context(settings):
        yield palette


def render(
    figure: Figure, image_format: ImageFormat, *, title: str, description: str, dots_per_inch: int = PNG_DOTS_PER_INCH
) -> bytes:  # fmt: skip
    """The figure as a file; equal figures give equal bytes. To be called inside of `drawing`.

    Args:
        figure: made within the same `drawing` block.
        image_format: ``svg``, ``png`` or ``pdf``.
        title: what the figure shows, read aloud in place of the picture.
        description: the finding in words, with the numbers.
        dots_per_inch: of a PNG.
    """
    buffer = io.BytesIO()
    if image_format == "svg":
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return _without_styles(buffer.getvalue(), title=title, description=description)
    if image_format == "pdf":
        metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": title}
        figure.savefig(buffer, format="pdf", metadata=metadata)
    else:
        metadata = {"Software": None, "Title": title, "Description": description}
        figure.savefig(buffer, format="png", dpi=dots_per_inch, metadata=metadata)
    return buffer.getvalue()


def _without_styles(svg: bytes, *, title: str, description: str) -> bytes:
    """matplotlib's SVG with attributes in place of styles, and with a name for screen readers."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)  # noqa: S314 (matplotlib wrote it a moment ago)
    for element in list(root.iter()):
        for child in list(element):
            if child.tag == f"{{{_SVG}}}style" or child.tag.endswith("}metadata"):
                element.remove(child)
        if element.tag == f"{{{_SVG}}}g":
            element.attrib.pop("id", None)  # nothing refers to it; two figures in a page would clash
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, value = (part.strip() for part in declaration.split(":", 1))
            element.set(name, "sans-serif" if name == "font-family" else value)
    root.attrib |= {"role": "img", "aria-label": title, "stroke-linejoin": "round"}
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        named = ElementTree.Element(f"{{{_SVG}}}{tag}")
        named.text = text
        root.insert(position, named)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
