"""The figures of a leaderboard: drawn by another process when first asked for, then kept by what they show.

A figure is known by its slug: ``tradeoff-`` and the utility, ``det-`` with condition and data set, or the metric of its
bars. Equal leaderboards have equal figures, so nothing is drawn again when a leaderboard is published, frozen or looked
at by somebody else.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from django.http import Http404
from django.urls import reverse
from django.utils.safestring import mark_safe

from common.errors import NotPossible
from evaluation.app.models import ScoreSet
from evaluation.app.objective_results.selectors import read_det_curve
from evaluation.figures import det, tradeoff
from evaluation.figures.bars import SystemBar, format_value, size_of_system_bars
from evaluation.figures.json_figures import VERSION, describe_bars, describe_det, describe_tradeoff
from evaluation.figures.style import SYNTHETIC, ImageFormat, Size, Theme, for_page, place_systems
from evaluation.figures.tradeoff import SystemPoint
from evaluation.formats.results import AttackModel
from evaluation.objective_results.leaderboard_entries import ShownAverage
from evaluation.objective_results.values import ATTACKS
from evaluation.protocols.ranking.entries import LeaderboardEntry
from evaluation.protocols.ranking.ranking import check_gate
from evaluation.protocols.recipes import Gate
from portal.core.drawing import BUSY, DrawingProcess
from portal.core.labels import decimals
from portal.core.storage import read_stored, replace_named
from portal.leaderboard.selectors import Leaderboard

FORMATS: dict[str, ImageFormat] = {"svg": "svg", "png": "png", "pdf": "pdf"}
THEMES: dict[str, Theme] = {"light": "light", "dark": "dark"}
FOLDER = "derived/boards"
NARROW = "narrow"
SHAPES = ("", NARROW)
DRAWING_S = 60
# Visitors of a new leaderboard wait here: together they ask for more figures than may wait for the drawing process, and
# for the same ones.
_one_at_a_time = threading.Lock()
# What could not be drawn is not tried again at once: by key, until when and why.
FORGOTTEN_AFTER_S = 60
_not_drawn: dict[str, tuple[float, str]] = {}
# Tests that look at no figure need not wait for one.
draws_in_pages = True
_drawing_process = DrawingProcess("evaluation.figures.json_figures", draws_within_s=DRAWING_S)


@dataclass(frozen=True)
class ShownTest:
    """Hold the test of a system whose DET curve is drawn; `scores` is the key of its stored scores."""

    label: str
    scores: str
    targets: int
    nontargets: int
    place: int | None = None
    link: str = ""

    @property
    def is_original(self) -> bool:
        return self.place is None


@dataclass(frozen=True)
class Drawing:
    """Hold what a figure shows: points of the trade-off, bars of an average with its minimum, or tests on a data set.

    `minimum`: of the average in bars, or the lowest EER of the condition that the tests meet. `further`: curves beside
    those of the tests, with plain lists in place of arrays. `stamp`: of files.
    """

    slug: str
    column: ShownAverage
    tests: tuple[ShownTest, ...] = ()
    data_set: str = ""
    points: tuple[SystemPoint, ...] = ()
    bars: tuple[SystemBar, ...] = ()
    limits: tuple[float, ...] = ()
    minimum: float | None = None
    stamp: str = ""
    further: tuple[Mapping[str, Any], ...] = ()

    @property
    def key(self) -> list[tuple[str, SystemPoint]]:
        """Return the points of its narrow form by their letters; none where these have their names."""
        letters = tradeoff.letters_for(self.points)
        return list(zip(letters, self.points, strict=True)) if letters else []

    def size(self, *, narrow: bool = False) -> Size:
        """Return how large it is drawn."""
        if self.tests:
            none = np.zeros(0)
            curves = [det.Curve(one.label, none, none, None, is_anchor=one.is_original) for one in self.tests]
            curves += [det.Curve(one["words"], none, none, None) for one in self.further]
            return det.plot_curves(curves, det.ATTACKER_AXES, *det.spread_systems(curves)).size
        if self.points:
            return tradeoff.size_of(len(self.points), narrow=narrow)
        return size_of_system_bars(len(self.bars), narrow=narrow)

    def description(
        self, image_format: ImageFormat = "svg", theme: Theme = "light", *, narrow: bool = False, linked: bool = False
    ) -> str:
        """Return all of it, as the process that draws it reads it. `linked`: whether its points lead somewhere."""
        look: dict[str, Any] = {"theme": theme, "image_format": image_format}
        look |= {} if linked else {"stamp": self.stamp}  # the page says it itself
        if self.tests:
            tests = [astuple(test if linked else replace(test, link="")) for test in self.tests]
            named = {"tests": tests, "estimator": self.column.estimator, "version": VERSION, "look": look}
            return json.dumps(named | ({"further": self.further} if self.further else {}))
        look |= {"metric": self.column.metric_name, "estimator": self.column.estimator, "narrow": narrow}
        if self.points:
            points = self.points if linked else tuple(replace(point, link="") for point in self.points)
            return describe_tradeoff(points, minimum_eers=self.limits, **look)
        bars = self.bars if linked else tuple(replace(bar, link="") for bar in self.bars)
        return describe_bars(bars, minimum=self.minimum, **look)


def describe_figure(
    drawing: Drawing, words: dict[str, Any], address: Callable[..., str], *, is_drawn: bool = True
) -> dict[str, Any]:
    """Return a drawing as `components/figure.html` takes it.

    Args:
        words: title, caption, alt and numbers.
        address: `address(extension, **query)` is where it is drawn as a file.
        is_drawn: as a part of the page, and not as an image only.
    """
    parts = drawn_in_page(drawing, words["alt"]) if is_drawn else {}
    return words | {
        "drawn": {name: mark_safe(svg) for name, svg in parts.items()},  # noqa: S308
        "slug": drawing.slug,
        "key": drawing.key,
        "size": drawing.size(),
        "image": address("svg"),
        "dark": address("svg", theme="dark"),
        "narrow": None
        if drawing.tests
        else {
            "size": drawing.size(narrow=True),
            "image": address("svg", shape=NARROW),
            "dark": address("svg", shape=NARROW, theme="dark"),
        },
        "downloads": [{"url": address(one), "label": one.upper()} for one in ("svg", "pdf", "png")],
    }


def list_drawings(leaderboard: Leaderboard) -> dict[str, Drawing]:
    """Return the figures that a leaderboard has something to show in, by slug."""
    found = {}
    for column in (column for column in leaderboard.averages if column.is_utility):
        points = _points(leaderboard, column)
        if any(point.kind != "original" for point in points):
            slug = f"tradeoff-{column.key}".replace("_", "-")
            found[slug] = Drawing(slug, column, points=tuple(points), limits=leaderboard.policy.minimum_eers)
    for column in leaderboard.averages:
        if column.is_privacy or column.is_utility:
            continue
        one = next((one for one in leaderboard.policy.gates if one.metric == column.key), None)
        bars = _bars(leaderboard, column, one)
        if bars:
            slug = column.key.replace("_", "-")
            found[slug] = Drawing(slug, column, bars=tuple(bars), minimum=one.minimum if one else None)
    found |= {one.slug: one for one in _list_det_drawings(leaderboard)}
    corpus = leaderboard.edition.corpus
    stamp = SYNTHETIC if corpus and corpus.is_synthetic else ""
    return {slug: replace(one, stamp=stamp) for slug, one in found.items()}


def _list_det_drawings(leaderboard: Leaderboard) -> Iterator[Drawing]:
    """Yield for each condition and data set the tests of the systems that meet the condition, and of the originals."""
    column = next(one for one in leaderboard.averages if one.is_privacy)
    conditions: dict[float | None, set[str]] = {
        table.minimum: {row.entry.key for row in table.rows} for table in leaderboard.table.tables
    } or {None: {entry.key for entry in leaderboard.entries}}
    for data_set, tests in _read_tests(leaderboard).items():
        for minimum, met in conditions.items():
            shown = tuple(one for key, one in tests.items() if key in met or one.is_original)
            if any(not one.is_original for one in shown):
                words = [data_set] if minimum is None else [f"{minimum:g}", data_set]
                slug = "-".join(["det", *words]).replace("_", "-").replace(".", "-")
                yield Drawing(slug, column, shown, data_set, minimum=minimum)


def _read_tests(leaderboard: Leaderboard) -> dict[str, dict[str, ShownTest]]:
    """Return by data set and name of the entry the tests behind the EER that decides, of which scores are stored."""
    runs = {run for entry in leaderboard.entries for run in entry.tests.values()}
    names = ("run", "data_set", "training", "enrolment", "speech")
    rows = ScoreSet.objects.filter(run__in=runs).values_list(*names, "key", "target_count", "nontarget_count")
    stored = {tuple(map(str, row[:5])): row[5:] for row in rows}
    places, found = list_places(leaderboard), dict[str, dict[str, ShownTest]]()
    for entry in leaderboard.entries:
        is_original = entry.kind == "original"
        attack = AttackModel.UNPROTECTED if is_original else AttackModel(leaderboard.policy.attack_model)
        for data_set, run in entry.tests.items():
            scores = stored.get((str(run), data_set, *map(str, ATTACKS[attack])))
            if scores is not None:
                place = None if is_original else places.get(entry.label, 0)
                key, targets, nontargets = scores
                test = ShownTest(entry.label, key, targets, nontargets, place, link_of(entry))
                found.setdefault(data_set, {})[entry.key] = test
    return found


def draw_file(drawing: Drawing | None, extension: str, theme: str = "light", shape: str = "") -> bytes:
    """Return a figure as a file, or "not found"; the shape ``narrow`` is for phones."""
    if drawing is None or extension not in FORMATS or theme not in THEMES or shape not in SHAPES:
        raise Http404
    description = drawing.description(FORMATS[extension], THEMES[theme], narrow=shape == NARROW)
    return _keep(figure_key(description, extension), lambda: _drawn(description))


def drawn_in_page(drawing: Drawing, words: str) -> dict[str, str]:
    """Return a figure as parts of a page, ``wide`` and ``narrow``: SVG whose points and bars tell and lead on.

    Nothing where it cannot be drawn just now, so that the page shows it as an image, which may be asked for again.

    Args:
        words: what it shows, for those who cannot see it.
    """
    found = {}
    for name, narrow in (("wide", False), *[("narrow", True)] * (not drawing.tests)):
        description = drawing.description(narrow=narrow, linked=True)
        found[name] = draw_part(description, f"{drawing.slug}-{name}", words)
    return found if all(found.values()) else {}


def draw_part(description: str, name: str, words: str) -> str:
    """Return a figure as SVG within a page, with ids that begin with its name; empty where it cannot be drawn now."""
    if not draws_in_pages:
        return ""
    key = figure_key(description + words, "page.svg")
    try:
        return _keep(key, lambda: for_page(_drawn(description), name, words).encode(), waits=False).decode()
    except NotPossible:
        return ""


def _keep(key: str, make: Callable[[], bytes], *, waits: bool = True) -> bytes:
    """Return a kept file, made when it is first asked for.

    Raises:
        NotPossible: it could not be made just now or a moment ago, or without `waits` another one is being made.
    """
    kept = read_stored(key)
    if kept is None:
        _refuse_failed(key)
        if not _one_at_a_time.acquire(blocking=waits):
            raise NotPossible(BUSY)
        try:
            kept = read_stored(key)
            if kept is None:
                _refuse_failed(key)  # meanwhile
                kept = make()
                replace_named(key, kept)
        except NotPossible as error:
            _not_drawn.setdefault(key, (time.monotonic() + FORGOTTEN_AFTER_S, str(error)))
            raise
        finally:
            _one_at_a_time.release()
    return kept


def _refuse_failed(key: str) -> None:
    now = time.monotonic()
    for old in [one for one, (until, _) in list(_not_drawn.items()) if until < now]:
        _not_drawn.pop(old, None)
    if found := _not_drawn.get(key):
        raise NotPossible(found[1])


def figure_key(description: str, extension: str) -> str:
    return f"{FOLDER}/{hashlib.sha256(description.encode()).hexdigest()}.{extension}"


def _points(leaderboard: Leaderboard, column: ShownAverage) -> list[SystemPoint]:
    """EER and a utility of whatever can be ranked and of the references."""
    unrankable = {one.entry.key for one in leaderboard.table.unrankable}
    places = list_places(leaderboard)
    return [
        SystemPoint(
            name=entry.label,
            eer=entry.privacy.value,
            utility=utility.value,
            kind=entry.kind,
            team=entry.team,
            eer_interval=entry.privacy.interval,
            utility_interval=utility.interval,
            words=_point_words(entry.label, entry.team_name, entry.privacy.value, utility.value, column),
            link=link_of(entry),
            place=places.get(entry.label),
        )
        for entry in leaderboard.entries
        if entry.key not in unrankable and entry.privacy and (utility := entry.utilities.get(column.key))
    ]


def list_places(leaderboard: Leaderboard) -> dict[str, int]:
    """Of each system among the colours: the same in every figure of the page, and of a study with all systems."""
    return place_systems(entry.label for entry in leaderboard.entries if entry.kind != "original")


def link_of(entry: LeaderboardEntry) -> str:
    return "" if entry.kind == "original" else reverse("systems:detail", args=[entry.key])


def _point_words(label: str, of: str, eer: float, utility: float, column: ShownAverage) -> str:
    """Such as ``T01-p1 (Alder): EER 22.5 %, WER 8.3 %``."""
    unit = f" {column.metric.unit}" if column.metric.unit else ""
    numbers = f"EER {decimals(eer, 1)} %, {column.metric.label} {decimals(utility, 1)}{unit}"
    return f"{label}{f' ({of})' if of else ''}: {numbers}"


def _bars(leaderboard: Leaderboard, column: ShownAverage, one: Gate | None) -> list[SystemBar]:
    """Return an average that decides no rank, of each system and baseline, the highest first."""
    found = [(entry, measured) for entry in leaderboard.entries if (measured := entry.averages.get(column.key))]
    found.sort(key=lambda pair: (-pair[1].value, pair[0].label))
    places, unit = list_places(leaderboard), f" {column.metric.unit}" if column.metric.unit else ""
    return [
        SystemBar(
            entry.label,
            measured.value,
            measured.low,
            measured.high,
            _least(entry, one, measured.value) if one else None,
            is_baseline=entry.kind == "baseline",
            place=places.get(entry.label, 0),
            words=f"{entry.label} ({entry.team_name or entry.kind}): {format_value(measured.value)}{unit}",
            link=link_of(entry),
        )
        for entry, measured in found
    ]


def _least(entry: LeaderboardEntry, one: Gate, average: float) -> float | None:
    """Return the lowest group of a gate; None where a data set is missing, or the only group has the average that is
    shown."""
    values = {name: found.value for name, found in entry.gate_values.get(one.metric, {}).items()}
    if any(name not in values for group in one.groups for name in group):
        return None
    means = [mean.value for mean in check_gate(values, one.groups, one.minimum)]
    return None if len(means) == 1 and math.isclose(means[0], average) else min(means)


def _drawn(description: str) -> bytes:
    """Drawn elsewhere: the web process holds no plotting library.

    Raises:
        NotPossible: nothing was drawn.
    """
    return _drawing_process.draw(_with_curves(description).encode() + b"\n")


def _with_curves(description: str) -> str:
    """Replace stored tests by their DET curves, the highest EER first.

    Raises:
        NotPossible: scores are missing in the storage.
    """
    given = json.loads(description)
    if "tests" not in given:
        return description
    arrays = ("miss_rate", "false_alarm_rate")
    further = [det.Curve(**one | {name: np.array(one[name]) for name in arrays}) for one in given.get("further", ())]
    curves = [(True, -(curve.eer or 0), curve.words, curve) for curve in further]
    for test in (ShownTest(*one) for one in given["tests"]):
        try:
            corners, eer = read_det_curve(test.scores, given["estimator"])
        except FileNotFoundError as error:
            raise NotPossible(f"The scores of {test.label} are missing, so its DET curve cannot be drawn.") from error
        curve = det.Curve(
            words=f"{test.label}{': EER' if further else ''} {decimals(100 * eer, 1)} %",
            miss_rate=corners.miss_rate,
            false_alarm_rate=corners.false_alarm_rate,
            eer=eer,
            least=(0.5 / test.targets, 0.5 / test.nontargets),
            is_anchor=test.is_original,
            place=test.place,
            told=f"{test.label}: EER {decimals(100 * eer, 1)} %",
            link=test.link,
        )
        curves.append((not test.is_original, -eer, test.label, curve))
    ordered = [curve for *_, curve in sorted(curves, key=lambda one: one[:3])]
    return describe_det(ordered, det.ATTACKER_AXES, **given["look"])
