"""The figures that a challenge publishes of its listeners, drawn from nothing but the tables of an analysis.

`list_figures` lists them with their words and numbers; `StudyFigure.draw` makes the files.
"""

from __future__ import annotations

from listening.analysis.figures import answers, boards, detection, ratings
from listening.analysis.figures.view import ResultsView, StudyFigure
from listening.analysis.tables import Results, Scores

__all__ = ["StudyFigure", "list_figures"]

BY_SCORES: tuple[Scores, ...] = ("raw", "normalised")
_OF_A_TASK = (
    *(ratings.violin_figures, detection.eer_figures, detection.det_figures, ratings.histogram_figures),
    *(detection.eer_difference_figures, ratings.significance_figures),
)
_OF_SCORES = (detection.pair_eer_figures, detection.pair_det_figures)
_COMMON = (boards.grouping_figures, boards.map_figures, detection.transcription_figures, answers.answer_figures)


def list_figures(results: Results) -> list[StudyFigure]:
    """List every figure that the tables give, in the order of a page: raw scores, normalised ones, then the others.

    Cheap: nothing is drawn and no plotting library is imported before `StudyFigure.draw`. A table that is missing or
    empty gives no figure.
    """
    view = ResultsView(results)
    figures: list[StudyFigure] = []
    for scores in BY_SCORES:
        figures += [one for task in view.tasks(scores) for make in _OF_A_TASK for one in make(view, scores, task)]
        figures += [one for make in _OF_SCORES for one in make(view, scores)]
    return figures + [one for make in _COMMON for one in make(view)]
