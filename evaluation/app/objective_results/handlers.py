"""The objective numbers of a submission as a job: everything that its files, the corpus and the audio give.

Who computes them says the recipe: from the documents of the team, from what the portal's own attacks and recognition
left, or from these with the team's beside them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from common.progress import ignore_progress
from evaluation.app.audio_measures.selectors import list_finished_runs
from evaluation.app.models import EvaluationRun, ScoreSet, UtteranceMeasure
from evaluation.app.objective_results.selectors import list_parts
from evaluation.app.objective_results.services import draw_det_figures, edition_of, resume_objective, settle_objective
from evaluation.app.runs.context import EvaluationContext
from evaluation.app.runs.kinds import ATTACK, RECOGNITION
from evaluation.app.runs.portal_results import PortalResults
from evaluation.app.runs.services import make_score_set, store_objective
from evaluation.formats.results import Gender, NumberIdentity, Speech
from evaluation.metrics.catalogue import (
    PITCH_CORRELATION_REALIGNED,
    PITCH_CORRELATION_UNRELATED,
)
from evaluation.objective_results.compute import Objective, compute_objective, put_beside
from evaluation.objective_results.recomputation import MeasuredTest
from evaluation.objective_results.sources import Sources, UtteranceValues
from evaluation.objective_results.values import PREDICTED
from evaluation.protocols.recipes import Recipe
from portal.challenges.models import Role
from portal.intake.documents import read_submitted_results
from portal.jobs.kinds import job_kind
from portal.jobs.models import Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import Submission
from portal.submissions.staging import copy_documents

# Field of the utterances' measures, metric, its estimator, and the speech that it is of.
_FURTHER = (
    ("realigned_pitch_correlation", PITCH_CORRELATION_REALIGNED.key, "praat", Speech.ANONYMISED),
    ("unrelated_pitch_correlation", PITCH_CORRELATION_UNRELATED.key, "praat", Speech.ANONYMISED),
    ("predicted_naturalness", *PREDICTED, Speech.ANONYMISED),
    ("predicted_original", *PREDICTED, Speech.ORIGINAL),
)


@job_kind(
    "objective",
    title="Objective numbers of a submission",
    queue=Queue.CPU,
    memory_mb=1000,
    on_end=settle_objective,
    on_again=resume_objective,
)
def compute_numbers(context: JobContext) -> dict[str, Any]:
    """Compute everything, then write it at once; what an interrupted attempt left is replaced."""
    run = EvaluationRun.objects.select_related("submission__system__edition__corpus").get(pk=context.parameters["run"])
    submission = run.submission
    edition = edition_of(submission)
    recipe = edition.recipe
    context.progress("Reading the results", 0, 0)
    sources = _find_sources(submission)
    score_sets: list[ScoreSet] = []

    def keep(test: MeasuredTest) -> None:
        score_sets.append(make_score_set(run, test, recipe))

    objective = _compute(context, run, sources, keep)
    context.problems += objective.problems
    store_objective(run, objective, score_sets)
    draw_det_figures(run, recipe, context.progress)
    return _describe(objective) | {"score_files": len(score_sets), "recipe_number": edition.recipe_number}


def _compute(
    context: JobContext, run: EvaluationRun, sources: Sources, keep: Callable[[MeasuredTest], None]
) -> Objective:
    """By whom the recipe says."""
    if not sources.recipe.evaluation.by_portal:
        return _compute_by_team(context, run.submission, sources, keep)
    objective = _compute_by_portal(context, run, sources, keep)
    if sources.recipe.evaluation.by_teams:
        objective = put_beside(objective, _compute_by_team(context, run.submission, sources), sources)
    return objective


def _describe(objective: Objective) -> dict[str, Any]:
    return {
        "values": len(objective.numbers),
        "recomputed": sum(number.is_recomputed for number in objective.numbers.values()),
        "disagreements": objective.disagreements,
        "missing": [asdict(one) for one in objective.missing],
    }


def _compute_by_team(
    context: JobContext,
    submission: Submission,
    sources: Sources,
    kept: Callable[[MeasuredTest], None] = ignore_progress,
) -> Objective:
    """Return what the documents of the team give."""
    with tempfile.TemporaryDirectory(prefix="objective-") as place:
        folder = Path(place)
        copy_documents(submission.documents.all(), folder)
        paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        systems = read_submitted_results(folder, paths, sources.recipe)
        system = max(systems, key=lambda one: one.system) if systems else None
        return compute_objective(folder, system, sources, kept=kept, progress=context.progress)


def _compute_by_portal(
    context: JobContext, run: EvaluationRun, sources: Sources, kept: Callable[[MeasuredTest], None]
) -> Objective:
    """Return what the portal's own attacks and recognition of the submission give."""
    rests_on = {one.pk: one for one in EvaluationRun.objects.filter(pk__in=list_parts(run))}
    parts = [rests_on[pk] for pk in list_parts(run) if pk in rests_on]
    results = PortalResults(
        EvaluationContext(run.submission),
        attacks=tuple(one for one in parts if one.kind == ATTACK.kind),
        recognition=next((one for one in parts if one.kind == RECOGNITION.kind), None),
    )
    sources = replace(
        sources,
        find_references=results.find_references,
        partial_voices=results.partial_voices,
        scores_required=True,
    )
    with tempfile.TemporaryDirectory(prefix="objective-") as place:
        folder = Path(place)
        system = results.write(folder)
        return compute_objective(folder, system, sources, kept=kept, progress=context.progress)


def _find_sources(submission: Submission) -> Sources:
    """Return everything that the numbers of a submission may rest on besides its own files."""
    edition = edition_of(submission)
    if edition.corpus is None:
        return Sources(edition.recipe, edition.ranked_track)
    runs = list_finished_runs(submission)
    return replace(
        EvaluationContext(submission).sources,
        pitch={run.measured_set.name: _read_pitch(run) for run in runs},
        audio={identity: found for run in runs for identity, found in _read_audio(run, edition.recipe)},
        scores_required=edition.scores_required,
        audio_required=edition.audio_required,
    )


def _read_pitch(run: EvaluationRun) -> UtteranceValues:
    rows = list(
        UtteranceMeasure.objects.filter(run=run, pitch_correlation__isnull=False)
        .order_by("file__utterance__name")
        .values_list("pitch_correlation", "file__utterance__speaker__name")
    )
    expected = run.measured_set.utterances.count()
    return UtteranceValues(
        [value for value, _ in rows if value is not None], [speaker for _, speaker in rows], expected
    )


def _read_audio(run: EvaluationRun, recipe: Recipe) -> Iterator[tuple[NumberIdentity, UtteranceValues]]:
    """Yield what else was measured on the audio of a trial set."""
    data_set = recipe.data_sets.get(run.measured_set.name)
    if data_set is None or run.measured_set.role != Role.TRIAL:
        return
    for name, metric, estimator, speech in _FURTHER:
        rows = UtteranceMeasure.objects.filter(run=run, **{f"{name}__isnull": False}).order_by("file__utterance__name")
        found = list(rows.values_list(name, "file__utterance__speaker__name"))
        if found:
            identity = NumberIdentity(data_set.name, Gender(data_set.gender), metric, estimator, speech=speech)
            yield identity, UtteranceValues([value for value, _ in found], [who for _, who in found], len(found))
