"""What is kept of a figure is painted once, and yet the same as each file drawn alone."""

from __future__ import annotations

import re

import pytest

from evaluation.figures import det, similarity
from evaluation.figures.style import draw_files, draw_plot
from evaluation.metrics.detection import detection_metrics
from tests.evaluation.figures.test_tradeoff_and_similarity import voices

TESTS = {"lazy-informed": detection_metrics([1.0, 2.0, 3.0], [0.0, 1.5, 0.5])}
MARKS = re.compile(rb"\bm[0-9a-f]{10}\b")  # names of shapes in an SVG, which follow from their colour, too
GENDERS = {f"s{number}": "fm"[number % 2] for number in range(6)}
PLOTS = {
    "det": (det.make_det_plot(TESTS), None),
    "similarity": tuple(similarity.make_similarity_plot(voices(), GENDERS, theme) for theme in ("light", "dark")),
}


@pytest.mark.parametrize("name", PLOTS)
def test_kept_files_are_those_drawn_one_by_one(name):
    plot, dark = PLOTS[name]
    words = {"title": name, "description": "numbers"}
    found = draw_files(plot, dark=dark, **words)
    assert list(found) == [("light", "svg"), ("light", "png"), ("light", "pdf"), ("dark", "svg")]
    for (theme, image_format), content in found.items():
        own = dark if dark is not None and theme == "dark" else plot
        alone = draw_plot(own, **words, theme=theme, image_format=image_format)
        assert MARKS.sub(b"", content) == MARKS.sub(b"", alone), (theme, image_format)
