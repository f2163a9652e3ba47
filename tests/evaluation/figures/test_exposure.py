"""The figure of what the EER hides: what it says in words, and that it is drawn for every theme and format."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import InputError
from evaluation.figures.exposure import TITLE, ExposedTest, describe, make_exposure_plot
from evaluation.figures.style import draw_files
from evaluation.metrics.detection import det_curve


def test_figure_holds_separable_scores_and_those_without_ranks():
    apart = ExposedTest("lazy-informed", det_curve([2.0, 3.0], [0.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 0.25]))
    alike = ExposedTest("ignorant", det_curve([1.0, 1.0], [1.0, 1.0]), np.zeros(0), np.zeros(0))
    words = describe([apart, alike])
    files = draw_files(make_exposure_plot([apart, alike]), title=TITLE, description=words)
    assert set(files) == {("light", "svg"), ("light", "png"), ("light", "pdf"), ("dark", "svg")}
    assert "lazy-informed: the true speaker first in 100.0 % of utterances, speakers' EERs 0.0 to 25.0 %." in words
    assert b"Privacy beyond the EER" in files["light", "svg"]
    with pytest.raises(InputError, match="1 to 8 tests"):
        make_exposure_plot([])
