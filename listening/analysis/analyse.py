"""The whole analysis: inputs in, `Results` out. Each section computes its tables; this module only calls them in order.

Every section about ratings is computed twice, for raw and for normalised scores, which never meet. A section whose
input is absent is left out, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

import numpy as np

from common.errors import ProblemsError
from common.progress import Progress
from common.tables import DataTable
from listening.analysis.agreement.reliability import make_reliability_tables
from listening.analysis.answers.tables import make_answer_tables
from listening.analysis.boards.linkability import make_grouping_table, make_linkability_tables
from listening.analysis.boards.maps import make_map_tables
from listening.analysis.models.comparisons import make_comparison_tables
from listening.analysis.models.mixed_model import make_model_tables
from listening.analysis.post_screening.listeners import make_listener_tables
from listening.analysis.post_screening.rules import (
    count_missed_controls,
    make_effect_tables,
    make_screening_table,
    read_right_answers,
)
from listening.analysis.reading.answer_values import PAIRED_KINDS
from listening.analysis.reading.inputs import (
    NORMALISED,
    RAW,
    Answers,
    Inputs,
    Placements,
    Ratings,
    Settings,
    Transcripts,
    sort_rows,
)
from listening.analysis.scoring.detection import make_detection_tables
from listening.analysis.scoring.normalisation import count_left_out, score_ratings
from listening.analysis.scoring.objective import make_objective_tables
from listening.analysis.scoring.summary import make_summary_tables
from listening.analysis.tables import Results
from listening.analysis.transcription.transcripts import make_transcription_tables

# Raised whenever equal inputs and settings give other tables; it is part of the fingerprint of an analysis.
ANALYSIS_VERSION = "6"
KINDS = (RAW, NORMALISED)
_STEPS_OF_RATINGS = 9


def analyse(inputs: Inputs, settings: Settings, progress: Progress | None = None) -> Results:
    """Return everything that can be said about a study.

    Args:
        inputs: at least one of ratings, placements and transcripts, with something in it.
        progress: called with what is computed now, how many steps are done, and how many there are.

    Raises:
        ProblemsError: there is nothing to analyse.
    """
    inputs = sort_rows(inputs)
    run = _Run(inputs, settings, progress)
    if not run.sections:
        raise ProblemsError(
            f"{inputs.study.name}: expected ratings, boards, transcripts or answers, found none. "
            "Nobody has answered yet, or every answer was withdrawn."
        )
    with _one_thread():
        for section, part, _ in run.sections:
            section(part)
    run.tell("Done", run.steps)
    notes = tuple(dict.fromkeys(run.notes))
    versions = {"analysis": ANALYSIS_VERSION, "numpy": np.__version__, "scipy": version("scipy")}
    return Results(inputs.study.as_data(), settings.as_data(), run.counts, notes, versions, run.tables)


def _one_thread() -> AbstractContextManager[Any]:
    """Return one thread for linear algebra: how many share a sum changes its last digits, and the bytes of tables.

    It is quicker, too: the matrices are small, and threads would mostly wait for each other.
    """
    import scipy.linalg  # noqa: F401 – its library must be there before it can be limited
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limited


class _Run:
    """One analysis under way: the tables so far, what was counted and noted, and which step it is at."""

    def __init__(self, inputs: Inputs, settings: Settings, progress: Progress | None) -> None:
        self.inputs = inputs
        self.settings = settings
        self.tables: dict[str, DataTable] = {}
        self.counts: dict[str, int] = {}
        self.notes: list[str] = [str(one) for one in inputs.study.design.get("remarks", ())]
        self._progress = progress
        self._done = 0
        # What is computed of each part that is there, and in how many steps.
        all_sections: tuple[tuple[Callable[[Any], None], Any, int], ...] = (
            (self._about_ratings, inputs.ratings, 1 + _STEPS_OF_RATINGS * len(KINDS)),
            (self._about_placements, inputs.placements, 2 + len(KINDS)),
            (self._about_transcripts, inputs.transcripts, 1),
            (self._about_answers, inputs.answers, 1),
        )
        self.sections = [one for one in all_sections if one[1] is not None and len(one[1])]
        self.steps = sum(steps for *_, steps in self.sections)

    def tell(self, stage: str, done: int) -> None:
        """Tell how far the analysis is."""
        if self._progress is not None:
            self._progress(stage, done, self.steps)

    def _about_ratings(self, ratings: Ratings) -> None:
        told = count_left_out(ratings, self.settings)
        self.counts |= told.counts
        self.notes += told.notes
        gold = read_right_answers(self.inputs.study.design)
        scale = self.inputs.study.scale
        self.counts |= count_missed_controls(ratings, scale, self.settings, gold)
        given = (ratings, scale, self.settings, gold, self.inputs.study.comparing)
        [screening] = self._keep("Screening rules", "common", make_screening_table, *given)
        for kind in KINDS:
            self._about_scores(ratings, kind, screening)

    def _about_scores(self, ratings: Ratings, kind: str, screening: DataTable) -> None:
        settings, scale, comparing = self.settings, self.inputs.study.scale, self.inputs.study.comparing
        self._step(f"Scores, {kind}")
        scored = score_ratings(ratings, scale, settings, kind, comparing=comparing)
        with_excluded = score_ratings(ratings, scale, settings, kind, comparing=comparing, with_excluded=True)
        if not len(scored.ratings):
            self.notes.append(f"No ratings count for {kind} scores: every session is left out, or too short.")
            self._done += _STEPS_OF_RATINGS - 1
            return

        def keep(stage: str, make: Callable[..., DataTable | Sequence[DataTable]], *given: Any) -> Sequence[DataTable]:
            return self._keep(f"{stage}, {kind}", kind, make, *given)

        differences, _ = keep("Comparisons within listeners", make_comparison_tables, scored, settings)
        keep("Means and intervals", make_summary_tables, scored, settings, differences)
        keep("Equal error rates", make_detection_tables, scored, settings)
        keep("Mixed model", make_model_tables, scored, settings)
        keep("Reliability", make_reliability_tables, ratings, scored, settings)
        keep("Listeners", make_listener_tables, ratings, scored, with_excluded, screening)
        keep("Effect of exclusions", make_effect_tables, ratings, scale, settings, kind, screening, comparing)
        if self.inputs.objective is None:
            self.notes.append(
                "No objective measures were given, so there are no word errors of the recogniser and no pitch "
                "correlation to compare with."
            )
        keep("Objective and subjective measures", make_objective_tables, scored, self.inputs.objective, settings)

    def _about_placements(self, placements: Placements) -> None:
        counting = self._counting(placements, "placements", "boards")
        if not len(counting):
            return
        for kind in KINDS:
            self._keep(f"Pairs on boards, {kind}", kind, make_linkability_tables, counting, self.settings, kind)
        self._keep("Groups on boards", "common", make_grouping_table, counting, self.settings)
        self._keep("Averaged maps", "common", make_map_tables, counting, self.settings)

    def _about_transcripts(self, transcripts: Transcripts) -> None:
        counting = self._counting(transcripts, "transcripts", "transcripts")
        if not len(counting):
            return
        objective, language = self.inputs.objective, str(self.inputs.study.design.get("language", "en"))
        if objective is None:
            self.notes.append("No objective measures were given, so there is no recogniser to compare with.")
        make = make_transcription_tables
        original = self.inputs.study.original
        self._keep("Words understood", "common", make, counting, objective, self.settings, language, original)

    def _about_answers(self, answers: Answers) -> None:
        questions = self.inputs.study.answered
        paired = [name for name, about in questions.items() if about["kind"] in PAIRED_KINDS]
        at_once = [name for name, about in questions.items() if about["kind"] == "mushra"]
        is_counted = ~np.isin(answers.question, paired) | (answers.slot == "A")  # a comparison is one answer
        is_counted &= _is_first_of_trial(answers) | ~np.isin(answers.question, at_once)  # all sliders, too
        if len(self._counting(answers.rows(is_counted), "answers", "answers")):
            self._keep("Answers", "common", make_answer_tables, answers, questions, self.settings)

    def _step(self, stage: str) -> None:
        self.tell(stage, self._done)
        self._done += 1

    def _keep(
        self, stage: str, scores: str, make: Callable[..., DataTable | Sequence[DataTable]], *given: Any
    ) -> Sequence[DataTable]:
        """Make the tables of one step, and keep them."""
        self._step(stage)
        made = make(*given)
        tables = [made] if isinstance(made, DataTable) else made
        self.tables |= {f"{scores}/{table.name}": table for table in tables}
        return tables

    def _counting(self, read: Placements | Transcripts | Answers, what: str, called: str) -> Any:
        """Return what no rule in force leaves out, counted and noted; where there are ratings too, theirs stay."""
        counting: Placements | Transcripts | Answers = read.rows(read.excluded == "")
        counts = {f"{what}_read": len(read), what: len(counting), "left_out": len(read) - len(counting)}
        counts |= {"sessions": _sessions(counting), "listeners": int(np.unique(counting.listener).size)}
        counts["excluded_sessions"] = _sessions(read.rows(read.excluded != ""))
        self.counts = counts | self.counts
        if excluded := counts["excluded_sessions"]:
            self.notes.append(
                f"{excluded:,} session{'' if excluded == 1 else 's'} with {counts['left_out']:,} {what} "
                f"{'is' if excluded == 1 else 'are'} left out by rules in force: {_reasons(read)}."
            )
        if not len(counting):
            self.notes.append(f"No {called} count: every session is left out by a rule in force.")
        return counting


def _is_first_of_trial(answers: Answers) -> Any:
    """Return which rows are the first about their trial; where its position is unknown, all are."""
    is_repeated = answers.as_frame().duplicated(["session", "question", "position"]).to_numpy()
    return ~is_repeated | (answers.position == 0)


def _reasons(read: Placements | Transcripts | Answers) -> str:
    """Return each reason with its number of sessions, the most frequent first."""
    found: dict[str, set[tuple[str, str]]] = {}
    for reason, *session in zip(read.excluded.tolist(), read.listener.tolist(), read.session.tolist(), strict=True):
        if reason:
            found.setdefault(reason.strip().rstrip("."), set()).add((session[0], session[1]))
    ordered = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    return "; ".join(f"{len(sessions):,} “{reason}”" for reason, sessions in ordered)


def _sessions(part: Placements | Transcripts | Answers) -> int:
    return len(set(zip(part.listener.tolist(), part.session.tolist(), strict=True)))
