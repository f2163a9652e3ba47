"""What tests of results share."""

from dataclasses import replace

import pytest

from listening.analysis import figures
from listening.analysis.figures import view
from listening.app.results import handlers, selectors, services
from listening.app.results.selectors import figures_in
from tests.listening.results.answered import CHOSEN
from tests.quick_jobs import draw_plainly

KEPT = ("violin-naturalness", "significance-naturalness")


@pytest.fixture
def quick_analyses(request, monkeypatch):
    """Analyses of few resamples that have few figures, and those for pages only.

    They are drawn in the test whose name speaks of them: drawing takes longer than all the rest.
    """
    real, parse = figures.list_figures, services.parse_settings

    def few(results):
        return [replace(one, formats=("svg",)) for one in real(results) if one.name in KEPT]

    for reader in (handlers, selectors):
        monkeypatch.setattr(reader, "list_figures", few)
    monkeypatch.setattr(services, "parse_settings", lambda chosen: parse(CHOSEN | dict(chosen)))
    if "tables_and_figures" not in request.node.name:
        monkeypatch.setattr(view, "draw_formats", draw_plainly)
    figures_in.cache_clear()
    yield
    figures_in.cache_clear()
