"""Figures of an analysis: drawn from its tables for few and many systems, the same bytes each time, in words too."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from common.rounding import fixed
from evaluation.figures.det import spread_curves
from evaluation.figures.style import SMALL, draw_formats
from listening.analysis.boards.maps import make_map_tables
from listening.analysis.figures import list_figures
from listening.analysis.figures.labels import number, percent, short_group, slug
from listening.analysis.figures.view import SIMULATED
from listening.analysis.reading.inputs import Settings
from tests.evaluation.svg import SVG, assert_sound, title_and_description
from tests.listening.analysis.examples import LISTENERS, made_up_results
from tests.listening.analysis.made_up_boards import made_up_placements

MANY = tuple(f"T{place // 2 + 1:02}-{'pc'[place % 2]}1" for place in range(62))
LONG = ("An anonymiser with a very long name", "An anonymiser with a very long game", "日本語の匿名化", "$x_1$ <b> & é")
TASK = "naturalness"


@pytest.fixture(scope="module")
def few():
    return made_up_results()


@pytest.fixture(scope="module")
def figures(few):
    return {(figure.scores, figure.name): figure for figure in list_figures(few)}


def assert_sound_figure(figure):
    assert_sound(lambda theme, image_format: figure.draw([f"-{theme}.{image_format}"]).popitem()[1])


def overviews(results):
    """All figures but those of single systems."""
    return [figure for figure in list_figures(results) if not figure.system]


def painted(figure):
    """What is drawn, with the box that it covers, in pixels: words of keys, axes with theirs; the sheet; the SVG."""
    boxes, sheets = [], []

    class Measured:
        size = figure.plot.size

        def paint(self, canvas, palette):
            figure.plot.paint(canvas, palette)
            sheets.append(canvas)

    stamp = SIMULATED if figure.is_simulated else ""
    svg = draw_formats(Measured(), ["svg"], title="", description="", stamp=stamp)["svg"]
    [canvas] = sheets
    for legend in [*canvas.legends, *(axes.get_legend() for axes in canvas.axes if axes.get_legend())]:
        boxes += [(text.get_text(), text.get_window_extent()) for text in [legend.get_title(), *legend.get_texts()]]
    texts = [(text.get_text(), text.get_window_extent()) for text in canvas.texts]
    return boxes + texts + [("axes", one.get_tightbbox()) for one in canvas.axes], canvas.bbox, svg


def without(results, *paths):
    return replace(results, tables={path: table for path, table in results.tables.items() if path not in paths})


def without_scores(results, scores):
    return without(results, *(path for path in results.tables if path.startswith(f"{scores}/")))


def emptied(table, *columns):
    places = {table.columns.index(column) for column in columns}
    rows = (tuple(None if place in places else cell for place, cell in enumerate(row)) for row in table.rows)
    return replace(table, rows=tuple(rows))


def test_figures_are_those_of_a_challenge(figures):
    expected = {
        f"{kind}-{task}"
        for kind in ("violin", "eer", "det", "histogram", "significance")
        for task in ("verifiability", "naturalness", "intelligibility")
    }
    expected |= {"pairs-det", "pairs-eer", "eer-difference-verifiability"}
    expected |= {
        f"det-{task}-of-{system}"
        for task in ("verifiability", "naturalness", "intelligibility")
        for system in ("T01-p1", "T02-p1", "T02-c1", "T11-p1")
    }
    for scores in ("raw", "normalised"):
        assert {name for kind, name in figures if kind == scores} == expected
    common = {"grouping", "map-board-1", "transcription", "conditions-quality-mean"}
    assert {name for kind, name in figures if kind == "common"} == common


def assert_plain(figure, root):
    """As wide as it says, without styles and scripts."""
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(72 * figure.size.width_inches)
    assert not [one for one in root.iter() if "style" in one.attrib or one.tag in (f"{SVG}style", f"{SVG}script")]


@pytest.mark.filterwarnings("error")
def test_every_figure_is_drawn_without_a_warning_and_no_text_is_outside_of_it_or_too_small():
    systems = MANY[:9]
    for figure in overviews(without_scores(made_up_results(systems, ("verifiability",)), "normalised")):
        found, sheet, svg = painted(figure)
        assert found
        for text, box in found:
            inside = box.x0 >= -1 and box.x1 <= sheet.width + 1 and box.y0 >= -1 and box.y1 <= sheet.height + 1
            assert inside, (figure.name, text, box, sheet.width, sheet.height)
        root = ElementTree.fromstring(svg)
        assert_plain(figure, root)
        sizes = {float(one.get("font-size").removesuffix("px")) for one in root.iter(f"{SVG}text")}
        assert min(sizes) >= SMALL, figure.name


def test_figure_is_sound_and_gives_the_same_bytes_each_time(figures):
    figure = figures["raw", "histogram-verifiability"]
    assert_sound_figure(figure)
    [drawn] = figure.draw(["raw/histogram-verifiability-dark.svg"]).values()
    assert title_and_description(drawn) == (figure.title, figure.alt)


def test_no_figure_names_a_listener(figures):
    for figure in figures.values():
        assert not any(listener in figure.alt + figure.caption for listener in LISTENERS), figure.name


def test_figures_of_single_samples_are_for_organizers(few, figures):
    assert figures["common", "map-board-1"].is_for_organizers
    table = few.tables["common/map"]
    place = table.columns.index("slot")
    voices = replace(table, rows=tuple((*row[:place], "", *row[place + 1 :]) for row in table.rows))
    [averaged] = [
        one for one in list_figures(replace(few, tables={"common/map": voices})) if one.name.startswith("map")
    ]
    assert not averaged.is_for_organizers


def test_every_file_of_a_figure_is_drawn(plain_figures_of_studies):
    results = without_scores(made_up_results(("T01-p1", "T02-p1"), (TASK,)), "normalised")
    files = [path for figure in list_figures(results) for path in figure.files]
    assert set(files) == {path for figure in list_figures(results) for path in figure.draw(figure.files)}
    assert {"raw/det-naturalness-light.svg", "raw/det-naturalness-dark.svg", "common/grouping-light.svg"} < set(files)


@pytest.mark.parametrize("count", [6, 13])
def test_curves_are_spread_over_panels_that_hold_few(count):
    panels = spread_curves(count)
    assert [place for panel in panels for place in panel] == list(range(count))
    assert max(map(len, panels)) <= 6
    assert max(map(len, panels)) - min(map(len, panels)) <= 1


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", ""),
        ("abcdfg", "a–d fg"),
        ("x y z aa ab", "xyz aa ab"),
        ("acegikmoqs", "a c e g i…"),
    ],
)
def test_letters_of_a_group_are_shortened_by_joining_runs(letters, expected):
    assert short_group(letters) == expected


def test_map_of_all_boards_of_a_system_shows_voices(few):
    placements = made_up_placements(listeners=12, samples=16, speakers=4, dimensions=1)
    voices, fit = make_map_tables(placements, Settings())
    results = replace(few, tables={**few.tables, "common/map": voices, "common/map_fit": fit})
    figures = {figure.name: figure for figure in list_figures(results)}
    assert {name for name in figures if name.startswith("map")} == {"map-all-boards-of-T01", "map-all-boards-of-T02"}
    figure = figures["map-all-boards-of-T01"]
    assert figure.title.startswith("Linkability: averaged map of ")
    assert "board" not in figure.title
    assert "n = 8 voices of 4 speakers, 12 listeners. Averaged over 12 boards." in figure.caption
    assert figure.alt.startswith("8 voices of 4 speakers")
    assert len(figure.plot.points) == 8
    assert_sound_figure(figure)
    boxes, sheet, _ = painted(figure)
    for text, box in boxes:
        assert box.x0 >= sheet.x0, text
        assert box.x1 <= sheet.x1, text


def test_names_of_figures_are_short_enough_for_files_and_differ():
    assert slug("a/b c") == "a-b-c"
    assert slug("日本語") == "unnamed"
    long = [f"{'x' * 290}-{place}" for place in range(3)]
    found = list_figures(made_up_results(systems=long))
    files = [path for figure in found for path in figure.files]
    assert len(set(files)) == len(files)
    assert max(len(file.split("/")[-1]) for file in files) < 200


def test_numbers_of_figures_are_rounded_as_tables_round_them():
    assert [number(value) for value in (0.425, -0.125, -0.001, None)] == ["0.43", "−0.13", "0.00", "–"]
    assert percent(0.2925) == fixed(29.25, 1) == "29.3"
