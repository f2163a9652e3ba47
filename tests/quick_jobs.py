"""Fixtures that make the jobs and the pages of a test quicker."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from xml.sax.saxutils import escape

import pytest
from django.http import HttpResponse

from evaluation.app.runs import services
from evaluation.figures import style
from evaluation.metrics import naturalness
from evaluation.objective_results import sources
from listening.analysis.figures import view
from listening.app.models import Study
from listening.app.studies import planning, sizes
from portal.core import errors
from portal.leaderboard import figures
from portal.submissions import handlers

SVG = "http://www.w3.org/2000/svg"


def draw_plainly(_: object, formats: Iterable[str], *, title: str, description: str, **__: object) -> dict[str, bytes]:
    """In place of a figure its title and what it shows, in one colour of the light palette."""
    ink = style.PALETTES["light"].ink
    svg = f'<svg xmlns="{SVG}" fill="{ink}"><title>{escape(title)}</title><desc>{escape(description)}</desc></svg>'
    return dict.fromkeys(formats, svg.encode())


@pytest.fixture
def plain_figures_of_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis keeps every file of every figure, and draws none: that takes longer than all the rest."""
    monkeypatch.setattr(view, "draw_formats", draw_plainly)


@pytest.fixture
def quick_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take longer than all the rest of a job: a test draws them where its name says that they are drawn, and
    without the forms for print where it speaks of figures."""
    if "_drawn" in request.node.name:
        return
    if "figures" in request.node.name:
        monkeypatch.setattr(style, "KEPT", ("svg",))
        return
    files = {("light", one): b"<svg/>" for one in style.KEPT} | {("dark", "svg"): b"<svg/>"}
    monkeypatch.setattr(services, "draw_files", lambda *_, **__: files)


@pytest.fixture
def figures_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs draw figures as pages show them, without the forms for print: they take most of the time."""
    monkeypatch.setattr(style, "KEPT", ("svg",))


@pytest.fixture(autouse=True)
def pages_without_drawings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaderboard's page draws its figure, which no test waits for but those whose name says that it is drawn."""
    monkeypatch.setattr(figures, "_not_drawn", {})
    if "_drawn" not in request.node.name:
        monkeypatch.setattr(figures, "draws_in_pages", False)


@pytest.fixture
def plain_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is its status alone: what its page says is the same whatever was asked for, and asked for elsewhere."""
    monkeypatch.setattr(errors, "error_page", lambda _, status, *_words: HttpResponse(status=status))


@pytest.fixture(autouse=True)
def designs_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small design is found in the request on a busy machine, too; tests of the limit have a clock of their own."""
    monkeypatch.setattr(planning, "thread_time", float)
    monkeypatch.setattr(sizes, "thread_time", float)
    # Whether a search ends depends on the seed, too, which a new study draws.
    seeds = itertools.count(2022)
    monkeypatch.setattr(Study._meta.get_field("seed"), "_get_default", lambda: next(seeds))


@pytest.fixture(autouse=True)
def archives_unheard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of an archive listens to a sample by a network, which takes longer than all the rest: it does so in
    a test whose name says what recordings sound like."""
    if "sound_like" not in request.node.name:
        monkeypatch.setattr(handlers, "_broken_warnings", lambda *_: ())


@pytest.fixture
def quick_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network that predicts naturalness takes longer than all other measures."""
    monkeypatch.setattr(naturalness, "missing", lambda: "Naturalness is not predicted in this test.")


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from a fiftieth of the usual resamples; programs in processes of their own make all of them."""
    monkeypatch.setattr(sources, "RESAMPLES", 20)
