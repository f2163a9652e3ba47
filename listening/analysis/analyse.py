"""The whole analysis: inputs in, `Results` out. Each section computes its tables; this module only calls them in order.

Every section about ratings is computed twice, for raw and for normalised scores, which never meet. A section whose
input is absent is left out, and a remark says so. Sections are imported where they are called, because a web process
reads results and never computes any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from listening.analysis.errors import AnalysisInputError
from listening.analysis.inputs import Inputs, Placements, Ratings, Transcripts
from listening.analysis.row_order import in_one_order
from listening.analysis.scoring import NORMALISED, RAW, left_out, scored_ratings
from listening.analysis.settings import Settings
from listening.analysis.tables import Results, Table

# Raised whenever equal inputs and settings give other tables; it is part of the fingerprint of an analysis.
ANALYSIS_VERSION = "1"
KINDS = (RAW, NORMALISED)
_STEPS_OF_RATINGS = 9
Progress = Callable[[str, int, int], None]


def analyse(inputs: Inputs, settings: Settings, progress: Progress | None = None) -> Results:
    """Everything that can be said about a study.

    Args:
        inputs: at least one of ratings, placements and transcripts, with something in it.
        progress: called with what is computed now, how many steps are done, and how many there are.

    Raises:
        AnalysisInputError: there is nothing to analyse.
    """
    parts = (inputs.ratings, inputs.placements, inputs.transcripts)
    if not any(part is not None and len(part) for part in parts):
        raise AnalysisInputError(
            f"{inputs.study.name}: expected ratings, boards or transcripts, found none. "
            "Nobody has answered yet, or every answer was withdrawn."
        )
    inputs = in_one_order(inputs)
    run = _Run(inputs, settings, progress)
    with _one_thread():
        if inputs.ratings is not None and len(inputs.ratings):
            run.about_ratings(inputs.ratings)
        if inputs.placements is not None and len(inputs.placements):
            run.about_placements(inputs.placements)
        if inputs.transcripts is not None and len(inputs.transcripts):
            run.about_transcripts(inputs.transcripts)
    run.finish()
    return Results(
        inputs.study.as_data(),
        settings.as_data(),
        run.counts,
        tuple(dict.fromkeys(run.remarks)),
        versions(),
        run.tables,
    )


def versions() -> dict[str, str]:
    """Of the analysis, and of the libraries whose numbers it rests on."""
    return {"analysis": ANALYSIS_VERSION, "numpy": np.__version__, "scipy": _version_of("scipy")}


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _one_thread() -> AbstractContextManager[Any]:
    """One thread for linear algebra: how many share a sum changes its last digits, and with them the bytes of tables.

    It is quicker, too: the matrices are small, and threads would mostly wait for each other.
    """
    import scipy.linalg  # noqa: F401 – its library must be there before it can be limited
    from threadpoolctl import threadpool_limits

    limited: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limited


class _Run:
    """One analysis under way: the tables so far, what was counted and remarked, and which step it is at."""

    def __init__(self, inputs: Inputs, settings: Settings, progress: Progress | None) -> None:
        self.inputs = inputs
        self.settings = settings
        self.tables: dict[str, Table] = {}
        self.counts: dict[str, int] = {}
        self.remarks: list[str] = [str(one) for one in inputs.study.design.get("remarks", ())]
        self._progress = progress
        self._done = 0
        self._steps = sum(
            steps
            for part, steps in (
                (inputs.ratings, 1 + _STEPS_OF_RATINGS * len(KINDS)),
                (inputs.placements, 2 + len(KINDS)),
                (inputs.transcripts, 1),
            )
            if part is not None and len(part)
        )

    def about_ratings(self, ratings: Ratings) -> None:
        from listening.analysis.screening import right_answers, screening_table

        told = left_out(ratings, self.settings)
        self.counts |= told.counts
        self.remarks += told.remarks
        self._step("Screening rules")
        study = self.inputs.study
        screening = screening_table(ratings, study.scale, self.settings, right_answers(study.design))
        self._keep("common", [screening])
        for kind in KINDS:
            self._about_scores(ratings, kind, screening)

    def _about_scores(self, ratings: Ratings, kind: str, screening: Table) -> None:
        from listening.analysis.comparisons import comparison_tables
        from listening.analysis.detection import detection_tables
        from listening.analysis.listeners import listener_tables
        from listening.analysis.mixed_model import model_tables
        from listening.analysis.objective import objective_tables
        from listening.analysis.reliability import reliability_tables
        from listening.analysis.screening import effect_tables
        from listening.analysis.summary import summary_tables

        settings, scale = self.settings, self.inputs.study.scale
        self._step(f"Scores, {kind}")
        scored = scored_ratings(ratings, scale, settings, kind)
        with_excluded = scored_ratings(ratings, scale, settings, kind, with_excluded=True)
        if not len(scored.ratings):
            self.remarks.append(f"No ratings count for {kind} scores: every session is left out, or too short.")
            self._done += _STEPS_OF_RATINGS - 1
            return
        self._step(f"Comparisons within listeners, {kind}")
        compared = comparison_tables(scored, settings)
        self._keep(kind, compared)
        self._step(f"Means and intervals, {kind}")
        differences = next(table for table in compared if table.name == "differences")
        self._keep(kind, summary_tables(scored, settings, differences))
        self._step(f"Equal error rates, {kind}")
        self._keep(kind, detection_tables(scored, settings))
        self._step(f"Mixed model, {kind}")
        self._keep(kind, model_tables(scored, settings))
        self._step(f"Reliability, {kind}")
        self._keep(kind, reliability_tables(ratings, scored, settings))
        self._step(f"Listeners, {kind}")
        self._keep(kind, listener_tables(ratings, scored, with_excluded, settings, screening))
        self._step(f"Effect of exclusions, {kind}")
        self._keep(kind, effect_tables(ratings, scale, settings, kind, screening))
        self._step(f"Objective beside subjective, {kind}")
        if self.inputs.objective is None:
            self.remarks.append(
                "No objective measures were given, so ratings stand alone, without the recogniser's word errors and "
                "the pitch correlation."
            )
        self._keep(kind, objective_tables(scored, self.inputs.objective, settings))

    def about_placements(self, placements: Placements) -> None:
        from listening.analysis.clusters import grouping_table
        from listening.analysis.linkability import linkability_tables
        from listening.analysis.maps import map_tables

        counting: Placements = placements.rows(placements.excluded == "")
        self._count(placements, counting, "placements")
        if not len(counting):
            self.remarks.append("No boards count: every session is left out by a standing rule.")
            return
        for kind in KINDS:
            self._step(f"Pairs on boards, {kind}")
            self._keep(kind, linkability_tables(counting, self.settings, kind))
        self._step("Groups on boards")
        self._keep("common", [grouping_table(counting, self.settings)])
        self._step("Averaged maps")
        self._keep("common", map_tables(counting, self.settings))

    def about_transcripts(self, transcripts: Transcripts) -> None:
        from listening.analysis.transcription import transcription_tables

        counting: Transcripts = transcripts.rows(transcripts.excluded == "")
        self._count(transcripts, counting, "transcripts")
        if not len(counting):
            self.remarks.append("No transcripts count: every session is left out by a standing rule.")
            return
        self._step("Words understood")
        if self.inputs.objective is None:
            self.remarks.append("No objective measures were given, so listeners stand without the recogniser.")
        language = str(self.inputs.study.design.get("language", "en"))
        self._keep("common", transcription_tables(counting, self.inputs.objective, self.settings, language))

    def finish(self) -> None:
        if self._progress is not None:
            self._progress("Done", self._steps, self._steps)

    def _step(self, stage: str) -> None:
        if self._progress is not None:
            self._progress(stage, self._done, self._steps)
        self._done += 1

    def _keep(self, scores: str, tables: Iterable[Table]) -> None:
        self.tables |= {f"{scores}/{table.name}": table for table in tables}

    def _count(self, read: Placements | Transcripts, counting: Placements | Transcripts, what: str) -> None:
        """Counts and a remark for the forms without ratings; where ratings stand beside them, theirs stay."""
        counts = {
            f"{what}_read": len(read),
            what: len(counting),
            "sessions": _sessions(counting),
            "listeners": int(np.unique(counting.listener).size),
            "left_out": len(read) - len(counting),
            "excluded_sessions": _sessions(read.rows(read.excluded != "")),
        }
        self.counts = counts | self.counts
        if excluded := counts["excluded_sessions"]:
            self.remarks.append(
                f"{excluded:,} session{'' if excluded == 1 else 's'} with {counts['left_out']:,} {what} "
                f"{'is' if excluded == 1 else 'are'} left out by standing rules: {_reasons(read)}."
            )


def _reasons(read: Placements | Transcripts) -> str:
    """Each reason with its number of sessions, the most frequent first."""
    found: dict[str, set[tuple[str, str]]] = {}
    for reason, *session in zip(read.excluded.tolist(), read.listener.tolist(), read.session.tolist(), strict=True):
        if reason:
            found.setdefault(reason.strip().rstrip("."), set()).add((session[0], session[1]))
    ordered = sorted(found.items(), key=lambda one: (-len(one[1]), one[0]))
    return "; ".join(f"{len(sessions):,} “{reason}”" for reason, sessions in ordered)


def _sessions(part: Placements | Transcripts) -> int:
    return len(set(zip(part.listener.tolist(), part.session.tolist(), strict=True)))
