"""The original speech of an edition, evaluated as its systems are, before any of them has its numbers.

The leaderboard then says from the first day what the attacker and the recogniser reach on speech that nobody
anonymised. Vectors and words are kept by content, so no system has them computed again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.app.attacks import handlers as attacks
from evaluation.app.models import EvaluationRun
from evaluation.app.objective_results.selectors import ORIGINALS
from evaluation.app.recognition import handlers as recognition
from evaluation.app.runs.context import EvaluationContext, list_recordings
from evaluation.app.runs.feature_cache import EnginePace, Extractor, extract, vector_cache
from evaluation.app.runs.kinds import ATTACK, RECOGNITION
from evaluation.app.runs.portal_results import PortalResults
from evaluation.app.submission_evaluation.services import key_of_engine, list_parts
from evaluation.formats.results import AttackModel, Speech
from evaluation.objective_results.attack import average_models, choose_scorer, list_pairs, score_trials_into
from evaluation.objective_results.compute import compute_objective
from evaluation.objective_results.results.folders import ScoreFile
from evaluation.objective_results.values import ATTACKS, AVERAGE
from evaluation.protocols.recipes import DataSet
from portal.jobs.kinds import JobFailure, job_kind
from portal.jobs.models import Actor, Queue
from portal.jobs.runner import JobContext
from portal.submissions.models import Submission


@job_kind(ORIGINALS, title="Original speech of an edition", queue=Queue.CPU, memory_mb=1000)
def evaluate_originals(context: JobContext) -> dict[str, Any]:
    """Unprotected EER or word error rate as the edition averages it; what cannot be computed is left out."""
    submission = Submission.objects.select_related("system__edition__corpus").get(pk=context.parameters["submission"])
    evaluation = EvaluationContext(submission)
    by = evaluation.recipe.evaluation
    parts, scores, words = list_parts(context.parameters), list[ScoreFile](), None
    with tempfile.TemporaryDirectory(prefix="originals-") as place:
        folder = Path(place)
        if ATTACK.job in parts:
            attack = ATTACK.make_run(submission, recipe="attack", engine=by.attackers[0])
            attack.parameters = {"engine_key": key_of_engine(ATTACK, attack.engine)}
            scores += _attack(context, evaluation, attack, folder)
        if RECOGNITION.job in parts and by.recognizer:
            words = RECOGNITION.make_run(submission, recipe="recognition", engine=by.recognizer)
            rule = evaluation.text_rule.name
            words.parameters = {"engine_key": key_of_engine(RECOGNITION, words.engine), "rule": rule}
            for language, names in _by_language(evaluation).items():
                _extract(context, evaluation, recognition.make_extractor(words, language), names)
        results = PortalResults(evaluation, (), words)
        system = replace(results.write(folder), scores=tuple(scores))
        sources = replace(evaluation.sources, find_references=results.find_references)
        objective = compute_objective(folder, system, sources, progress=context.progress)
    averages = [
        {"metric": key.metric, "estimator": key.estimator, "data_set": key.data_set}
        | {"value": one.value, "low": one.low, "high": one.high}
        for key, one in objective.numbers.items()
        if key.data_set.startswith(AVERAGE) and key.speech is Speech.ORIGINAL
    ]
    if not averages:
        raise JobFailure(
            "No average of the original speech could be computed.",
            remedy="Import the trial lists, transcripts and recordings that the edition requires, then run this again.",
            actor=Actor.ORGANIZER,
        )
    return {"recipe": context.parameters["recipe"], "averages": averages}


def _by_language(evaluation: EvaluationContext) -> dict[str, list[str]]:
    """Return the data sets that are recognised."""
    found: dict[str, list[str]] = {}
    for one in evaluation.recipe.sets("recognition"):
        for part in evaluation.find_parts(one):
            found.setdefault(evaluation.language_of(part.name), []).append(part.name)
    return found


def _attack(
    context: JobContext, evaluation: EvaluationContext, run: EvaluationRun, folder: Path
) -> Iterator[ScoreFile]:
    """Yield the scores of the unprotected test of every trial set that has its speech and its trials."""
    sets = [one for one in evaluation.recipe.sets("trial") if {one.name, one.enrolment} <= set(evaluation.data_sets)]
    names = dict.fromkeys(name for one in sets for name in (one.enrolment, one.name))
    _extract(context, evaluation, attacks.make_extractor(run), list(names))
    for one in sets:
        if (path := _score(evaluation, run, one, folder)) is not None:
            yield ScoreFile(path, path.name, one.name, *ATTACKS[AttackModel.UNPROTECTED])


def _score(evaluation: EvaluationContext, run: EvaluationRun, one: DataSet, folder: Path) -> Path | None:
    trials = evaluation.sources.read_trials(one)
    if trials is None:
        return None
    stored, path = vector_cache(run.parameters["engine_key"]), folder / one.name / "scores"
    enrolled, tested = (
        list_recordings(run.submission, evaluation.data_sets[name], Speech.ORIGINAL)
        for name in (one.enrolment, one.name)
    )
    pairs, speakers = list_pairs(trials), {recording.utterance: recording.speaker for recording in enrolled}
    models = average_models(stored.read(enrolled), speakers, {model for model, _ in pairs})
    score_trials_into(path, models, stored.read(tested), pairs, choose_scorer(run.engine, ""))
    return path


def _extract(context: JobContext, evaluation: EvaluationContext, extractor: Extractor[Any], names: list[str]) -> None:
    """What is not there yet of the originals of these data sets."""
    for name in names:
        originals = list_recordings(evaluation.submission, evaluation.data_sets[name], Speech.ORIGINAL)
        stage = f"{extractor.stage} of {name}"[:80]
        context.problems += extract(context, extractor, originals, stage, EnginePace(extractor.cache.engine))
