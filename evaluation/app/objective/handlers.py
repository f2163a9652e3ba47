"""The objective numbers of a submission as a job: everything that its files, the corpus and the audio give."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from evaluation.app.measures.selectors import list_finished_runs
from evaluation.app.models import EvaluationRun, ScoreSet, UtteranceMeasure
from evaluation.app.objective.services import draw_det_figures, edition_of, settle_objective
from evaluation.app.runs.context import EvaluationContext, track_of
from evaluation.app.runs.services import make_score_set, store_objective
from evaluation.scoring.compute import compute_objective
from evaluation.scoring.sources import PitchOfSet, Sources
from portal.intake.documents import read_submitted_results
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import Submission
from portal.submissions.services import change_state
from portal.submissions.staging import copy_documents


@job_kind("objective", title="Objective numbers of a submission", queue=Queue.CPU, on_end=settle_objective)
def compute_numbers(context: JobContext) -> dict[str, Any]:
    """Compute everything, then write it at once; what an interrupted attempt left is replaced."""
    run = EvaluationRun.objects.select_related("submission__system__edition__corpus").get(pk=context.parameters["run"])
    submission = run.submission
    edition = edition_of(submission)
    if submission.state == Submission.State.FAILED:  # somebody lets the job run again
        change_state(submission=submission, state=Submission.State.EVALUATING)
    context.progress("Reading the results", 0, 0)
    score_sets: list[ScoreSet] = []
    with tempfile.TemporaryDirectory(prefix="objective-") as place:
        folder = Path(place)
        copy_documents(submission.documents.all(), folder)
        paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        systems = read_submitted_results(folder, paths, edition.recipe)
        objective = compute_objective(
            folder,
            max(systems, key=lambda one: one.system) if systems else None,
            _find_sources(submission),
            kept=lambda test: score_sets.append(make_score_set(run, test, edition.recipe)),
            progress=context.progress,
        )
    context.problems += objective.problems
    store_objective(run, objective, score_sets)
    draw_det_figures(run, edition.recipe, context.progress)
    return {
        "values": len(objective.numbers),
        "recomputed": sum(number.is_recomputed for number in objective.numbers.values()),
        "disagreements": objective.disagreements,
        "score_files": len(score_sets),
        "missing": [asdict(one) for one in objective.missing],
    }


def _find_sources(submission: Submission) -> Sources:
    """Everything that the numbers of a submission may rest on besides its own files."""
    edition = edition_of(submission)
    if edition.corpus is None:
        return Sources(edition.recipe, track_of(edition))
    return replace(
        EvaluationContext(submission).sources,
        pitch={run.measured_set.name: _read_pitch(run) for run in list_finished_runs(submission)},
        scores_required=edition.scores_required,
        audio_required=edition.audio_required,
    )


def _read_pitch(run: EvaluationRun) -> PitchOfSet:
    rows = list(
        UtteranceMeasure.objects.filter(run=run, pitch_correlation__isnull=False)
        .order_by("file__utterance__name")
        .values_list("pitch_correlation", "file__utterance__speaker__name")
    )
    expected = run.measured_set.utterances.count()
    return PitchOfSet([value for value, _ in rows if value is not None], [speaker for _, speaker in rows], expected)
