"""What tests of results share."""

from dataclasses import replace

import pytest

from listening.analysis import figures
from listening.results.selectors import figures_in

KEPT = ("violin-naturalness", "listeners-naturalness", "scatter-naturalness-intelligibility")


@pytest.fixture
def quick_analyses(monkeypatch, settings):
    """Analyses that draw few figures, and those for pages only: drawing takes longer than all the rest.

    No sign of life is written either, which would wait for the transaction of the test.
    """
    real = figures.figures_of

    def few(results):
        return [replace(one, formats=("svg",)) for one in real(results) if one.name in KEPT]

    monkeypatch.setattr(figures, "figures_of", few)
    settings.JOB_HEARTBEAT_S = 3600
    figures_in.cache_clear()
    yield
    figures_in.cache_clear()
