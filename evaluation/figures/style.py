"""How our figures look, how they are laid out, and how they become bytes.

One palette for each theme, distinguishable without colour vision and in grey print; the background is transparent, and
text stays text in the reader's own sans-serif. matplotlib's constrained layout makes room for names, axes and the key.
The same figure always gives the same bytes, and an SVG holds no script and no style, as a strict content security
policy asks. Texts are at least `SMALL` points high, so that they stay readable when a figure shrinks to the width of a
phone.
"""

from __future__ import annotations

import io
import json
import re
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from xml.etree import ElementTree

from common.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Theme = Literal["light", "dark"]
ImageFormat = Literal["svg", "png", "pdf"]
Look = dict[str, Any]  # of an artist, as matplotlib takes it

# In which a figure is kept, on a light background; for dark pages as SVG, too.
KEPT: tuple[ImageFormat, ...] = ("svg", "png", "pdf")
PNG_DOTS_PER_INCH = 300
CSS_PIXELS_PER_INCH = 96
TEXT, SMALL = 9.0, 8.5
STAMP_INCHES = 0.25
SYNTHETIC = "SYNTHETIC SPEECH: no person speaks"
# Of lines and points that share their axes: distinguishable without colours.
MARKERS = "osD^vPX*"
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (7, 2, 1.5, 2), (1.5, 1.5))
LIMIT_DASHES = (4, 3)
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_PLACES = re.compile(rb' (?:d|x|y)="[^"]*"')
_DECIMALS = re.compile(rb"(\.\d\d)\d+")
_MARK = "mark:"
_LINK = "data-link"
FIGURE_COLOURS = (
    *(f"--figure-{name}" for name in ("ink", "muted", "line", "grid", "warning")),
    *(f"--figure-series-{number}" for number in range(1, 7)),
)
_COLOURS = re.compile(rb'(?<=fill="|roke=")#[0-9a-f]{6}(?=")')

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


_TABLES = tomllib.loads(Path(__file__).with_name("palettes.toml").read_text(encoding="utf-8"))
PALETTES: dict[Theme, Palette] = {
    theme: Palette(**_TABLES[theme] | {"series": tuple(_TABLES[theme]["series"])}) for theme in ("light", "dark")
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


class Plot(Protocol):
    """What can be drawn. Its size is known without a plotting library; artists with a label stand in the key."""

    @property
    def size(self) -> Size: ...

    def paint(self, figure: Figure, palette: Palette) -> None: ...


@contextmanager
def drawing(theme: Theme) -> Iterator[Palette]:
    """Make and render a figure in here; matplotlib's own settings are back afterwards."""
    import matplotlib

    palette = PALETTES[theme]
    settings: dict[Any, Any] = {"text.color": palette.ink, "axes.edgecolor": palette.line}
    settings |= {"axes.labelcolor": palette.ink, "grid.color": palette.grid}
    for axis in ("xtick", "ytick"):
        settings |= {f"{axis}.color": palette.line, f"{axis}.labelcolor": palette.muted}
    with _drawing_lock, matplotlib.rc_context(settings, Path(__file__).with_name("portal.mplstyle")):
        yield palette


def draw_formats(
    plot: Plot,
    formats: Iterable[ImageFormat],
    *,
    title: str,
    description: str,
    theme: Theme = "light",
    stamp: str = "",
) -> dict[ImageFormat, bytes]:
    """Return a figure as files, painted and laid out once; equal figures give equal bytes.

    Args:
        formats: ``svg``, ``png`` or ``pdf``.
        title: what the figure shows, read aloud in place of the picture.
        description: the finding in words, with the numbers.
        theme: for a light or a dark page.
        stamp: a warning inside of the picture, above all else; the figure is `STAMP_INCHES` higher for it.
    """
    with drawing(theme) as palette:
        figure = _lay_out(plot, palette, stamp)
        return {one: _render(figure, one, title, description) for one in formats}


def draw_plot(
    plot: Plot,
    *,
    title: str,
    description: str,
    theme: Theme = "light",
    image_format: ImageFormat = "svg",
    stamp: str = "",
) -> bytes:
    """Return a figure as one file, as `draw_formats`."""
    words = {"title": title, "description": description, "stamp": stamp}
    return draw_formats(plot, [image_format], theme=theme, **words)[image_format]


def draw_files(
    plot: Plot, *, title: str, description: str, dark: Plot | None = None, stamp: str = ""
) -> dict[tuple[Theme, ImageFormat], bytes]:
    """Return a figure as it is kept, by theme and format: for pages and for print, painted and laid out once.

    Args:
        dark: what is drawn for dark pages, where that is more than the same in other colours.
    """
    words: Look = {"title": title, "description": description, "stamp": stamp}
    drawn = draw_formats(plot, KEPT, **words)
    found: dict[tuple[Theme, ImageFormat], bytes] = {("light", one): content for one, content in drawn.items()}
    if dark is None:
        return found | {("dark", "svg"): darken(drawn["svg"])}
    return found | {("dark", "svg"): draw_plot(dark, theme="dark", **words)}


def make_figure(plot: Plot, theme: Theme = "light") -> Figure:
    """Return a figure as an object of matplotlib, to go on with by its own means."""
    with drawing(theme) as palette:
        return _lay_out(plot, palette, "")


def mark_artist(artist: Artist, words: str, link: str = "") -> None:
    """What an SVG tells of an artist when somebody hovers over it, and where a click on it leads within a page.

    Args:
        link: an address, or what `for_page` makes one of.
    """
    if words or link:
        artist.set_gid(_MARK + json.dumps([words, link]))


def place_systems(labels: Iterable[str]) -> dict[str, int]:
    """Return the place of each system among colours, markers and dashes, by the order of the labels: one in every
    figure."""
    return {label: place for place, label in enumerate(sorted(set(labels)))}


def for_page(svg: bytes, name: str, words: str, find_address: Callable[[str], str] = str) -> str:
    """Return an SVG in the light palette as a part of a page, whose style sheet gives the colours of its theme.

    Links inside of it lead somewhere, which those of an image do not. It holds no script and no style.

    Args:
        name: begins its ids, so that two figures in a page do not clash.
        words: what it shows, for those who cannot see it.
        find_address: the address of a link that `mark_artist` took; empty for none.
    """
    root = ElementTree.fromstring(svg)  # noqa: S314 (drawn here and kept in our own storage)
    colours = dict(zip(_flatten(PALETTES["light"]), FIGURE_COLOURS, strict=True))
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key in (f"{{{_XLINK}}}href", "href") and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif value.startswith("url(#"):
                element.set(key, f"url(#{name}-{value[5:]}")
            elif value in colours:
                element.set(key, f"var({colours[value]})")
    reached: set[str] = set()
    for group in [one for one in root.iter() if _LINK in one.attrib]:
        if address := find_address(group.attrib.pop(_LINK)):
            _lead(group, address, is_again=address in reached)
            reached.add(address)
    for child in list(root):
        if child.tag in (f"{{{_SVG}}}title", f"{{{_SVG}}}desc"):  # a tooltip over everything would hide the others
            root.remove(child)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "group", "aria-label": words, "class": "drawn"}
    return str(_write_svg(root, encoding="unicode"))


def leads_anywhere(svg: bytes) -> bool:
    """Return whether something in an SVG tells of itself and leads on within a page (`mark_artist`)."""
    return f" {_LINK}=".encode() in svg


def darken(svg: bytes) -> bytes:
    """Return the dark form of an SVG that was drawn in the light palette alone."""
    light, dark = (_flatten(PALETTES[theme]) for theme in ("light", "dark"))
    colours = {old.encode(): new.encode() for old, new in zip(light, dark, strict=True)}
    return _COLOURS.sub(lambda found: colours.get(found[0], found[0]), svg)


def fit_legend(figure: Figure, handles: Sequence[Artist], labels: Sequence[str], **look: Any) -> Legend:
    """Return a legend in as many columns as the figure is wide."""
    for columns in range(len(handles), 1, -1):
        made = figure.legend(handles, labels, ncols=columns, **look)
        if made.get_window_extent().width <= figure.bbox.width:
            return made
        made.remove()
    return figure.legend(handles, labels, **look)


def draw_limit(
    axes: Axes, value: float, palette: Palette, words: str = "", *, label: str = "", side: str = "center"
) -> None:
    """A dashed line across what is drawn, with its words above the axes or, as a label, in the key."""
    axes.axvline(value, color=palette.warning, linewidth=1.1, dashes=LIMIT_DASHES, zorder=1, label=label or None)
    if words:
        look: Look = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "xytext": (0, 3)}
        axes.annotate(words, (value, 1), ha=side, va="bottom", color=palette.warning, **look)


def raise_limits(axes: Axes) -> None:
    """Lift the words of limits above those that they would cover; the layout has to be made before and after."""
    from matplotlib.text import Annotation

    limits = sorted((one for one in axes.texts if isinstance(one, Annotation)), key=lambda one: one.xy[0])
    ends: list[float] = []  # of the words in each line, from the lowest line up
    for one in limits:
        box = one.get_window_extent()
        line = next((number for number, end in enumerate(ends) if end < box.x0), len(ends))
        ends[line : line + 1] = [box.x1 + box.height / 2]
        one.set_position((0, 3 + line * 1.1 * 72 * box.height / one.figure.dpi))


def hold_spans(points: Iterable[float], spans: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the lower and upper limit of an axis that holds points and their intervals, in the unit of its values.

    One interval that would make the axis more than twice as long as the others need is cut there; a mark says so
    (`mark_cut`).

    Args:
        points: at least one, also where there is no interval.
        spans: lower and upper end of each interval.
    """
    held = list(points)

    def limits(kept: Iterable[tuple[float, float]]) -> tuple[float, float]:
        values = [*held, *chain.from_iterable(kept)]
        return min(values), max(values)

    low, high = limits(spans)
    for place in range(len(spans)) if len(spans) > 2 else ():
        inner = limits([*spans[:place], *spans[place + 1 :]])
        if high - low > 2 * (inner[1] - inner[0]) > 0:
            return inner
    return low, high


def mark_cut(axes: Axes, places: Iterable[tuple[float, float, str]], palette: Palette) -> None:
    """Draw an arrowhead at each end of an interval that the axes cut: x, y, and the marker of its direction."""
    for x, y, marker in places:
        axes.plot([x], [y], marker, color=palette.ink, markersize=5, zorder=2.6, clip_on=False)


def validate_finite(values: Iterable[tuple[str, float]], what: str) -> None:
    """Refuse what cannot be drawn.

    Args:
        values: each with the name of whose it is.
        what: they are.

    Raises:
        InputError: no value, or one that is not finite.
    """
    held = list(values)
    wrong = next(((name, value) for name, value in held if not abs(value) < float("inf")), None)
    if not held or wrong:
        found = f"{wrong[1]} of {wrong[0]}" if wrong else "none"
        raise InputError(f"Expected finite values of {what}, at least one, found {found}.")


def _lay_out(plot: Plot, palette: Palette, stamp: str) -> Figure:
    from matplotlib.figure import Figure

    width, height = plot.size.inches
    figure = Figure(figsize=(width, height + (STAMP_INCHES if stamp else 0)), layout="constrained")
    plot.paint(figure, palette)
    if engine := figure.get_layout_engine():
        _add_key(figure, stamp, palette)
        engine.execute(figure)
        figure.set_layout_engine(None)
    return figure


def _add_key(figure: Figure, stamp: str, palette: Palette) -> None:
    """All artists with a label, once each, above the axes; the stamp is the heading of the key."""
    found: Look = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if found or stamp:
        look: Look = {"loc": "outside upper left", "title": stamp or None, "alignment": "left"}
        look |= {"title_fontproperties": {"weight": "bold", "size": TEXT}}
        fit_legend(figure, list(found.values()), list(found), **look).get_title().set_color(palette.warning)


def _flatten(palette: Palette) -> list[str]:
    *single, series = astuple(palette)
    return [*single, *series]


def _render(figure: Figure, image_format: ImageFormat, title: str, description: str) -> bytes:
    buffer = io.BytesIO()
    if image_format == "svg":
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        named = _without_styles(buffer.getvalue(), title=title, description=description)
        # Coordinates to a hundredth of a point, which halves the file.
        return _PLACES.sub(lambda places: _DECIMALS.sub(rb"\1", places[0]), named)
    if image_format == "pdf":
        metadata = {"CreationDate": None, "Creator": None, "Producer": None, "Title": title}
        with _glyphs_only():
            figure.savefig(buffer, format="pdf", metadata=metadata)
    else:
        metadata = {"Software": None, "Title": title, "Description": description}
        figure.savefig(buffer, format="png", dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    return buffer.getvalue()


@contextmanager
def _glyphs_only() -> Iterator[None]:
    """Embed fonts in a PDF without their layout tables (GDEF, GPOS, GSUB, kern): the text is laid out already, and to
    subset them takes two fifths of the time of a PDF.

    It replaces the function by which matplotlib loads a font; `draw_plot` draws one figure at a time.
    """
    from fontTools import subset

    load_font = subset.load_font

    def load_glyphs(*given: Any, **more: Any) -> Any:
        font = load_font(*given, **more)
        for table in {"GDEF", "GPOS", "GSUB", "kern"} & set(font.keys()):
            del font[table]
        return font

    subset.load_font = load_glyphs
    try:
        yield
    finally:
        subset.load_font = load_font


def _write_svg(root: ElementTree.Element, **form: Any) -> Any:
    """As `ElementTree.tostring`. The names of the process are set each time, for other libraries set others."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, **form)


def _tell(group: ElementTree.Element, name: str) -> None:
    """Words and link of an artist that `mark_artist` marked."""
    if not name.startswith(_MARK):
        return
    words, link = json.loads(name.removeprefix(_MARK))
    if link:
        group.set(_LINK, link)
    told = ElementTree.Element(f"{{{_SVG}}}title")
    told.text = words
    group.insert(0, told)


def _lead(group: ElementTree.Element, address: str, *, is_again: bool) -> None:
    """Put what a group holds into a link. `is_again`: another one leads there, so that the keyboard skips this."""
    words = group.findtext(f"{{{_SVG}}}title") or ""
    inner = ElementTree.Element(f"{{{_SVG}}}a", {"href": address, "aria-label": words})
    if is_again:
        inner.set("tabindex", "-1")
    inner.extend(list(group))
    for child in list(group):
        group.remove(child)
    group.append(inner)


def _without_styles(svg: bytes, *, title: str, description: str) -> bytes:
    """matplotlib's SVG with attributes in place of styles, and with a name for screen readers."""
    root = ElementTree.fromstring(svg)  # noqa: S314 (matplotlib wrote it a moment ago)
    for element in list(root.iter()):
        for child in list(element):
            if child.tag == f"{{{_SVG}}}style" or child.tag.endswith("}metadata"):
                element.remove(child)
        if element.tag == f"{{{_SVG}}}g":
            # Nothing refers to it, and two figures in a page would clash.
            _tell(element, element.attrib.pop("id", ""))
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, value = (part.strip() for part in declaration.split(":", 1))
            element.set(name, "sans-serif" if name == "font-family" else value)
    root.attrib |= {"role": "img", "aria-label": title, "stroke-linejoin": "round"}
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        named = ElementTree.Element(f"{{{_SVG}}}{tag}")
        named.text = text
        root.insert(position, named)
    return bytes(_write_svg(root, encoding="utf-8", xml_declaration=True))
