"""Figures of an analysis: drawn from its tables for few and many systems, the same bytes each time, in words too."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from common.tables import DataTable
from evaluation.figures.det import Curve, spread_curves
from evaluation.figures.style import SMALL, draw_formats
from listening.analysis.boards.maps import make_map_tables
from listening.analysis.figures import draw_files, list_figures
from listening.analysis.figures.labels import number, short_group, short_names, slug
from listening.analysis.figures.view import SIMULATED
from listening.analysis.reading.inputs import Settings
from listening.analysis.tables import Results, make_table
from tests.evaluation.svg import SVG, assert_sound, assert_sound_for_print, texts, title_and_description
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
        for kind in ("violin", "eer", "det", "histogram", "significance", "listeners", "exclusions")
        for task in ("verifiability", "naturalness", "intelligibility")
    }
    expected |= {"scatter-naturalness-wer", "scatter-intelligibility-wer", "scatter-naturalness-intelligibility"}
    expected |= {"pairs-det", "pairs-eer"}
    expected |= {f"exclusions-standing-{task}" for task in ("verifiability", "naturalness", "intelligibility")}
    expected |= {
        f"det-{task}-of-{system}"
        for task in ("verifiability", "naturalness", "intelligibility")
        for system in ("T01-p1", "T02-p1", "T02-c1", "T11-p1")
    }
    for scores in ("raw", "normalised"):
        assert {name for kind, name in figures if kind == scores} == expected
    assert {name for kind, name in figures if kind == "common"} == {"grouping", "map-board-1", "transcription"}


def test_figures_are_listed_without_a_plotting_library():
    code = (
        "import sys; from tests.listening.analysis.examples import made_up_results\n"
        "from listening.analysis.figures import list_figures\n"
        "found = list_figures(made_up_results())\n"
        "assert [len(one.numbers.rows) for one in found] and not {'matplotlib', 'scipy', 'django'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_curves_of_pairs_lead_to_their_system_where_a_board_has_but_one(few):
    path = "normalised/pair_det"
    rows = [row | {"system": "T01-p1"} for row in few.tables[path].records()]
    single = replace(few, tables=few.tables | {path: make_table("pair_det", rows)})
    for results, link in ((few, ""), (single, "T01-p1")):
        [figure] = [one for one in list_figures(results) if (one.scores, one.name) == ("normalised", "pairs-det")]
        assert {curve.link for curve in figure.plot.curves} == {link}
        assert all(curve.told.endswith(" %") for curve in figure.plot.curves)
        called = ("both unprotected", "both anonymised", "unprotected and anonymised")  # as in tables
        assert all(curve.told.startswith(called) for curve in figure.plot.curves)


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
    name = "histogram-verifiability"
    figure = figures["raw", name]
    assert_sound(figure.draw)
    if name == "violin-naturalness":
        assert_sound_for_print(figure.draw)
    assert title_and_description(figure.draw("dark", "svg")) == (figure.title, figure.alt)


def test_equal_results_read_back_give_the_same_figures(few):
    again = overviews(Results.from_json(few.as_json()))
    for first, second in zip(overviews(few), again, strict=True):
        assert (first.name, first.caption, first.alt, first.numbers) == (
            second.name,
            second.caption,
            second.alt,
            second.numbers,
        )
    assert again[0].draw("light", "svg") == overviews(few)[0].draw("light", "svg")


def test_captions_say_scores_n_listeners_seed_and_resamples(few):
    rows = few.table("raw", "summary").records(task=TASK)
    by_name = {(one.scores, one.name): one.caption for one in list_figures(few)}
    caption = by_name["raw", "violin-naturalness"]
    assert caption.startswith("Raw ratings, 1 to 10.")
    n, listeners = sum(row["n"] for row in rows), max(row["listeners"] for row in rows)
    assert f"n = {n:,} ratings by {listeners} listeners (the clusters)." in caption
    assert "95 % intervals: 2,000 resamples of listeners with all their ratings, seed 2022." in caption
    assert by_name["normalised", "eer-naturalness"].startswith(
        "Ratings normalised to ranks within each listener (rank01/avg), 0 to 1."
    )
    assert "corrected over all 10 pairs (Holm)" in by_name["raw", "significance-naturalness"]
    for figure in overviews(few):
        assert "listeners" in figure.caption
        assert "n = " in figure.caption


@pytest.mark.parametrize("scores", ["raw", "normalised"])
def test_numbers_are_those_of_the_tables(few, figures, scores):
    def cells(name, columns):
        table = figures[scores, name].numbers
        places = [table.columns.index(column) for column in columns]
        return {tuple(row[place] for place in places) for row in table.rows}

    def expected(table, columns, **equal):
        return {tuple(row[column] for column in columns) for row in few.table(scores, table).records(**equal)}

    columns = ("system", "n", "mean", "mean_low", "mean_high", "median", "q1", "q3")
    assert cells("violin-naturalness", columns) == expected("summary", columns, task=TASK)
    columns = ("system", "kind", "mean", "mean_low")
    assert cells("violin-verifiability", columns) == {
        row for row in expected("summary", columns, task="verifiability") if row[1] != "all"
    }
    columns = ("system", "eer", "eer_low", "eer_high", "group")
    assert cells("eer-naturalness", columns) == expected("detection", columns, task=TASK)
    columns = ("system", "threshold", "miss_rate", "false_alarm_rate")
    assert cells("det-naturalness", columns) == expected("det", columns, task=TASK)
    assert cells("det-naturalness-of-T01-p1", columns) == expected("det", columns, task=TASK, system="T01-p1")
    assert cells("det-verifiability-of-T01-p1", columns) == expected(
        "det", columns, task="verifiability", system="T01-p1"
    ) | expected("det", columns, task="verifiability", system="original")
    columns = ("system", "kind", "lower", "upper", "count", "share")
    assert cells("histogram-naturalness", columns) == expected("histogram", columns, task=TASK)
    columns = ("first", "second", "difference", "permutation_p", "permutation_adjusted")
    assert cells("significance-naturalness", columns) == expected("differences", columns, task=TASK)
    columns = ("listener", "mean", "sd", "correlation")
    assert cells("listeners-naturalness", columns) == expected("listeners", columns, task=TASK)


def test_scatter_counts_every_anonymised_utterance_once(few, figures):
    held = [row for row in few.table("raw", "utterances").records() if row["system"] != "original"]
    assert sum(row[-1] for row in figures["raw", "scatter-naturalness-wer"].numbers.rows) == len(held)
    table = figures["raw", "scatter-naturalness-intelligibility"].numbers
    assert table.columns[0] == "intelligibility_from"
    for x_from, x_to, y_from, y_to, count in table.rows:
        found = [row for row in held if x_from <= row["intelligibility"] < x_to and y_from <= row["naturalness"] < y_to]
        assert len(found) == count


def test_scatter_of_recognised_words_ends_at_1_and_shows_what_is_below_0(few):
    table = few.tables["raw/utterances"]
    place = table.columns.index("one_minus_wer")
    first, second, *_ = (number for number, row in enumerate(table.records()) if row["system"] == "T11-p1")
    recognised = {first: 1.0, second: -1.5}
    rows = tuple(
        (*row[:place], recognised.get(number, row[place]), *row[place + 1 :]) for number, row in enumerate(table.rows)
    )
    changed = replace(few, tables=few.tables | {"raw/utterances": replace(table, rows=rows)})
    shown = {one.name: one for one in list_figures(changed) if one.scores == "raw"}["scatter-naturalness-wer"]
    limits = [row[:2] for row in shown.numbers.rows]
    assert (min(limits)[0], max(limits)) == (-1.5, (1, 1))
    assert "Left of 0: 1 with more errors than words, down to −1.50." in shown.caption


def test_rows_are_sorted_with_the_original_first(few, figures):
    rows = few.table("raw", "summary").records(task=TASK)
    means = {row["system"]: row["mean"] for row in rows}
    systems = sorted((name for name in means if name != "original"), key=lambda name: -means[name])
    table = figures["raw", "violin-naturalness"].numbers
    assert [row[0] for row in table.rows] == ["original", *systems]


def test_alt_says_the_finding_with_numbers(few, figures):
    row = few.table("raw", "summary").records(task=TASK, system="T11-p1")[0]
    alt = figures["raw", "violin-naturalness"].alt
    wanted = f"T11-p1 mean {row['mean']:.2f} ({row['mean_low']:.2f} to {row['mean_high']:.2f})"
    assert wanted in alt
    rates = few.table("raw", "detection").records(task=TASK, system="T11-p1")[0]
    assert f"T11-p1 {100 * rates['eer']:.1f} %" in figures["raw", "det-naturalness"].alt
    pairs = few.table("raw", "differences").records(task=TASK)
    apart = sum(row["permutation_adjusted"] <= 0.05 for row in pairs)
    assert f"{apart} of {len(pairs)} pairs differ at 5 %." in figures["raw", "significance-naturalness"].alt


def test_only_list_figures_listeners_name_listeners(figures):
    for figure in figures.values():
        found = str(figure.numbers.rows) + figure.alt + figure.caption
        assert figure.is_about_listeners == any(listener in found for listener in LISTENERS), figure.name
    assert {name for (_, name), one in figures.items() if one.is_about_listeners} == {
        f"listeners-{task}" for task in ("verifiability", "naturalness", "intelligibility")
    }


def test_list_figures_rules_and_of_single_samples_are_for_organizers(few, figures):
    for task in ("verifiability", "naturalness", "intelligibility"):
        every, standing = figures["raw", f"exclusions-{task}"], figures["raw", f"exclusions-standing-{task}"]
        assert (every.is_for_organizers, standing.is_for_organizers) == (True, False)
        assert {row[0] for row in every.numbers.rows} == {"disagrees", "standing"}
        assert {row[0] for row in standing.numbers.rows} == {"standing"}
        assert "disagrees" not in standing.alt + standing.caption + " ".join(texts(standing.draw("light", "svg")))
    assert figures["common", "map-board-1"].is_for_organizers
    table = few.tables["common/map"]
    place = table.columns.index("slot")
    voices = replace(table, rows=tuple((*row[:place], "", *row[place + 1 :]) for row in table.rows))
    [averaged] = [
        one for one in list_figures(replace(few, tables={"common/map": voices})) if one.name.startswith("map")
    ]
    assert not averaged.is_for_organizers


def test_a_figure_of_standing_exclusions_alone_is_for_everybody(few):
    table = few.tables["raw/exclusion_effect"]
    rows = tuple(row for row in table.rows if row[table.columns.index("rule")] == "standing")
    found = list_figures(replace(few, tables={**few.tables, "raw/exclusion_effect": replace(table, rows=rows)}))
    of_raw = [one for one in found if one.scores == "raw" and one.name.startswith("exclusions")]
    tasks = ("verifiability", "naturalness", "intelligibility")
    assert {one.name for one in of_raw} == {f"exclusions-standing-{task}" for task in tasks}
    assert not any(one.is_for_organizers for one in of_raw)


def test_results_without_tables_give_no_figure(few):
    assert list_figures(replace(few, tables={})) == []
    empty = {path: DataTable(table.columns, (), table.name) for path, table in few.tables.items()}
    assert list_figures(replace(few, tables=empty)) == []


def test_results_without_listeners_have_no_figure_of_them(few):
    found = list_figures(without(few, "raw/listeners", "normalised/listeners"))
    assert not [figure for figure in found if figure.is_about_listeners]


def test_values_without_intervals_are_drawn_and_the_caption_says_why(few):
    tables = dict(few.tables)
    tables["raw/detection"] = emptied(tables["raw/detection"], "eer_low", "eer_high", "group")
    tables["raw/summary"] = emptied(tables["raw/summary"], "mean_low", "mean_high", "group")
    found = {(one.scores, one.name): one for one in list_figures(replace(few, tables=tables))}
    for name in ("eer-naturalness", "violin-naturalness"):
        figure = found["raw", name]
        assert "No intervals: they need at least 10 listeners." in figure.caption
        assert "share a letter" not in figure.caption
        assert figure.draw("light", "svg").startswith(b"<?xml")
        assert "(" not in figure.alt.split(":")[1]


def test_long_names_are_cut_and_full_in_the_numbers():
    figure = next(one for one in list_figures(made_up_results(LONG, (TASK,))) if one.name == "eer-naturalness")
    drawn = texts(figure.draw("light", "svg"))
    assert LONG[0] not in drawn
    assert {"An anony…g name", "An anony…g game"} < set(drawn)
    assert set(LONG) == {row[0] for row in figure.numbers.rows}


def test_list_figures_systems_with_like_names_have_addresses_of_their_own():
    found = list_figures(made_up_results(("a b", "a-b", "ä!"), (TASK,)))
    names = [(one.scores, one.name) for one in found]
    assert len(names) == len(set(names))
    assert {"det-naturalness-of-a-b", "det-naturalness-of-a-b-2"} <= {name for _, name in names}


def test_every_file_is_drawn_and_its_progress_told():
    results = without_scores(made_up_results(("T01-p1", "T02-p1"), (TASK,)), "normalised")
    told = []
    drawn = dict(draw_files(list_figures(results), ("svg",), lambda *step: told.append(step)))
    expected = {file.path for figure in list_figures(results) for file in figure.files(("svg",))}
    assert set(drawn) == expected
    assert {"raw/det-naturalness-light.svg", "raw/det-naturalness-dark.svg", "common/grouping-light.svg"} < expected
    assert all(content.startswith(b"<?xml") for content in drawn.values())
    figures = len(list_figures(results))
    assert [done for _, done, _ in told] == list(range(figures + 1))
    assert {total for *_, total in told} == {figures}


def test_files_for_print_are_light(figures):
    figure = figures["raw", "eer-naturalness"]
    files = dict(draw_files([figure]))
    assert list(files) == sorted(
        [
            "raw/eer-naturalness-light.svg",
            "raw/eer-naturalness.pdf",
            "raw/eer-naturalness.png",
            "raw/eer-naturalness-dark.svg",
        ],
        key=lambda path: list(files).index(path),
    )
    assert files["raw/eer-naturalness.png"] == figure.draw("light", "png")
    assert files["raw/eer-naturalness-dark.svg"] == figure.draw("dark", "svg")


def test_det_curve_ends_where_trials_end_and_bends_between_operating_points():
    from scipy.special import ndtri

    from evaluation.figures.det import _thin_out

    curve = Curve("x", np.array([0.0, 0.0, 0.25, 1.0]), np.array([1.0, 0.5, 0.0, 0.0]), 0.2, (0.01, 0.02))
    x, y = _thin_out(curve, 1 / 100)
    assert (y[0], x[-1]) == pytest.approx((ndtri(0.01), ndtri(0.02)))
    assert x[0] == pytest.approx(ndtri(0.5))
    inner = (y > y[0] + 0.05) & (x > x[-1] + 0.05)
    # Straight in rates: from (0.5, 0) to (0, 0.25).
    from scipy.special import ndtr

    assert ndtr(y[inner]) == pytest.approx(0.25 * (1 - ndtr(x[inner]) / 0.5), abs=1e-9)


@pytest.mark.parametrize("count", [1, 6, 7, 13, 62])
def test_curves_are_spread_over_panels_that_hold_few(count):
    panels = spread_curves(count)
    assert [place for panel in panels for place in panel] == list(range(count))
    assert max(map(len, panels)) <= 6
    assert max(map(len, panels)) - min(map(len, panels)) <= 1


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", ""),
        ("a", "a"),
        ("abc", "abc"),
        ("abcd", "a–d"),
        ("abcdfg", "a–d fg"),
        ("z aa ab", "z aa ab"),
        ("x y z aa ab", "xyz aa ab"),
        ("acegikmoqs", "a c e g i…"),
    ],
)
def test_letters_of_a_group_are_shortened_by_joining_runs(letters, expected):
    assert short_group(letters) == expected


def test_short_names_differ_and_are_printable():
    long = {f"name-{place}": f"The same beginning {place} and the same end" for place in range(12)}
    short = short_names(long | {"日本語": "日本語"})
    assert len(set(short.values())) == 13
    assert max(map(len, short.values())) <= 15
    assert short["日本語"] == "system 13"


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [number(value) for value in (-0.004, -1.5, None)] == ["0.00", "−1.50", "–"]


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
    assert "slot" not in figure.numbers.columns
    assert len(figure.numbers.rows) == 8
    assert_sound(figure.draw)
    boxes, sheet, _ = painted(figure)
    for text, box in boxes:
        assert box.x0 >= sheet.x0, text
        assert box.x1 <= sheet.x1, text


def test_maps_of_boards_with_like_names_have_addresses_of_their_own(few):
    """The second “a/b” would be called like the third board."""
    row = few.tables["common/map"].records()[0]
    names = ("a b 3", "a/b", "a b", "a-b")
    table = make_table("map", [row | {"board": board, "slot": slot} for board in names for slot in ("1", "2")])
    results = replace(few, tables={"common/map": table})
    found = [figure.name for figure in list_figures(results) if figure.name.startswith("map")]
    assert len(found) == len(set(found)) == 4


def test_names_of_figures_are_short_enough_for_files_and_differ():
    assert slug("a/b c") == "a-b-c"
    assert slug("日本語") == "unnamed"
    long = [f"{'x' * 290}-{place}" for place in range(3)]
    found = list_figures(made_up_results(systems=long))
    files = [file.path for figure in found for file in figure.files()]
    assert len(set(files)) == len(files)
    assert max(len(file.split("/")[-1]) for file in files) < 200
