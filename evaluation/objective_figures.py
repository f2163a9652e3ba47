"""DET figures of a run's verification tests: one for each data set, its attack models over each other.

They are drawn once, when the scores are measured, and kept for light and dark pages and for print.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

import numpy as np
from django.core.files.storage import default_storage

from evaluation.figures.style import ImageFormat, Theme
from evaluation.formats.claims import AttackModel, Speech
from evaluation.metrics.detection import DetectionMetrics, Estimator, detection_metrics
from evaluation.models import EvaluationRun, ScoreSet
from evaluation.objective.values import ATTACKS
from evaluation.protocols.recipes import Recipe
from portal.core.storage import replace_named

FORMATS: tuple[tuple[Theme, ImageFormat], ...] = (
    ("light", "svg"), ("dark", "svg"), ("light", "png"), ("light", "pdf"),
)  # fmt: skip
ESTIMATORS: tuple[Estimator, ...] = ("kaldi", "speechbrain")


def det_key(run: int, data_set: str, theme: Theme = "light", image_format: ImageFormat = "svg") -> str:
    """Where a figure lies."""
    return f"derived/figures/{run}/det-{data_set}-{theme}.{image_format}"


def draw_det_figures(run: EvaluationRun, recipe: Recipe, progress: Callable[[str, int, int], None]) -> None:
    """Draw and keep the DET curves of every data set whose scores were measured."""
    by_set = curves_by_set(run.score_sets.all())
    estimator = estimator_of(recipe)
    for done, (data_set, score_sets) in enumerate(by_set.items()):
        progress("Drawing the DET curves", done, len(by_set))
        from evaluation.figures.det import draw_det

        tests = {attack: metrics_of(one) for attack, one in score_sets.items()}
        for theme, image_format in FORMATS:
            drawn = draw_det(tests, estimator=estimator, theme=theme, image_format=image_format)
            replace_named(det_key(run.pk, data_set, theme, image_format), drawn)
    progress("Drawing the DET curves", len(by_set), len(by_set))


def curves_by_set(score_sets: Iterable[ScoreSet]) -> dict[str, dict[str, ScoreSet]]:
    """The tests that a figure shows, by data set and attack model, from unprotected to semi-informed.

    Unprotected and ignorant tests exist with both evaluators; shown is the original one, as in the averages.
    """
    wanted = {_speeches(speeches): attack for attack, speeches in ATTACKS.items()}
    found: dict[str, dict[AttackModel, ScoreSet]] = {}
    for one in score_sets:
        attack = wanted.get((one.training, one.enrolment, one.speech))
        if attack is not None:
            found.setdefault(one.data_set, {})[attack] = one
    return {
        data_set: {str(attack): tests[attack] for attack in ATTACKS if attack in tests}
        for data_set, tests in sorted(found.items())
    }


def metrics_of(score_set: ScoreSet) -> DetectionMetrics:
    """All detection metrics of stored scores, their DET curve among them."""
    with default_storage.open(score_set.key) as file, np.load(io.BytesIO(file.read())) as packed:
        return detection_metrics(packed["targets"], packed["nontargets"])


def estimator_of(recipe: Recipe) -> Estimator:
    """The equal error rate that an edition averages by."""
    averages = (average for track in recipe.tracks.values() for average in track.averages)
    named = {average.estimator for average in averages if average.metric == "eer"}
    return next((one for one in ESTIMATORS if one in named), "kaldi")


def _speeches(speeches: tuple[Speech, Speech, Speech]) -> tuple[str, str, str]:
    training, enrolment, speech = speeches
    return str(training), str(enrolment), str(speech)
