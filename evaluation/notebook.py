"""What a notebook needs, in one import: from files to numbers and figures.

Each name is documented where it comes from; nothing here computes anything but the file that a figure is saved to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from common.errors import MetricInputError
from evaluation.figures.det import det_numbers, draw_det
from evaluation.figures.style import ImageFormat, Theme
from evaluation.metrics.detection import DetectionMetrics, Estimator, detection_metrics
from evaluation.metrics.pitch import compare_pitch
from evaluation.scoring.recomputation import join_files, measure_scores
from evaluation.scoring.results.folders import read_results

__all__ = [
    "compare_pitch",
    "detection_metrics",
    "draw_det",
    "join_files",
    "measure_scores",
    "read_results",
    "save_det",
]
FIGURE_ENDINGS = ("svg", "pdf", "png", "csv")


def save_det(
    path: Path | str,
    tests: Mapping[str, DetectionMetrics],
    *,
    estimator: Estimator = "kaldi",
    theme: Theme = "light",
) -> None:
    """Save a DET figure of one to eight tests (`draw_det`), or with the ending ``csv`` the numbers beside it.

    Raises:
        MetricInputError: another ending than svg, pdf, png or csv; what `draw_det` refuses.
        OSError: the file cannot be written.
    """
    path = Path(path)
    ending = path.suffix[1:].lower()
    if ending not in FIGURE_ENDINGS:
        raise MetricInputError(f"{path}: expected a figure as {', '.join(FIGURE_ENDINGS)}, found “{path.suffix}”.")
    if ending == "csv":
        path.write_text(det_numbers(tests, estimator=estimator).csv(), encoding="utf-8")
    else:
        image_format = cast("ImageFormat", ending)
        path.write_bytes(draw_det(tests, estimator=estimator, theme=theme, image_format=image_format))
