"""Runs an anonymiser over data sets: creates the runs and their jobs, and is the body of those jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from django.db import transaction

from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import PseudoSpeaker, Role
from anonymization.methods.registry import Method, get_method
from anonymization.models import AnonymizationRun
from evaluation.formats.audio import AudioError
from evaluation.formats.problems import Problem
from portal.challenges.models import DataSet, Utterance
from portal.core import audit
from portal.core.audio import keep_audio, load_audio
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job
from portal.submissions.models import Submission, SubmittedFile

# A method compiles or loads what it needs at its first call; this one is shown as a stage of its own.
PREPARING = "Preparing the method (the first time on a machine takes some 15 s)"
SILENCE = (np.zeros(1600, np.int16), 16_000)


@transaction.atomic
def start_anonymization(
    *, submission: Submission, data_sets: Iterable[DataSet], method: str, seed: int, by: Any = None
) -> list[AnonymizationRun]:
    """One run and one job for each data set.

    Raises:
        MethodError: there is no such method.
    """
    recipe = get_method(method)
    runs = []
    for data_set in data_sets:
        run = AnonymizationRun.objects.create(
            submission=submission,
            data_set=data_set,
            method=recipe.name,
            recipe_version=recipe.version,
            code_version=code_version(),
            seed=seed,
        )
        run.job = create_job(
            kind="anonymize",
            title=f"Anonymise {data_set} · {submission.system}",
            parameters={"run": run.pk},
            by=by,
        )
        run.save(update_fields=["job"])
        audit.record("anonymization.started", run, actor=by, method=recipe.name, seed=seed)
        runs.append(run)
    return runs


def run_anonymization(context: JobContext) -> dict[str, Any]:
    """Body of the job: anonymise each utterance of the run's data set that has no file yet.

    The first utterance goes alone: when it fails, the others are not tried.
    """
    run = AnonymizationRun.objects.select_related("data_set", "submission").get(pk=context.parameters["run"])
    method = get_method(run.method)
    utterances = list(run.data_set.utterances.select_related("speaker").order_by("name"))
    _require_audio(run.data_set, utterances)
    kept = set(
        SubmittedFile.objects.filter(submission=run.submission, data_set=run.data_set).values_list(
            "utterance_id", flat=True
        )
    )
    missing = [utterance for utterance in utterances if utterance.pk not in kept]
    if kept and missing:
        context.note(f"{len(kept)} of {len(utterances)} utterances were anonymised before; continuing.")
    if missing:
        context.progress(PREPARING, 0, 0)
        method.anonymize(*SILENCE, pseudo_speaker_of(run, missing[0]))
    problems: list[Problem] = []
    for done, utterance in enumerate(missing, start=len(kept)):
        context.progress("Anonymising", done, len(utterances))
        try:
            _anonymize_one(run, method, utterance)
        except (AudioError, MethodError, OSError) as error:
            problems.append(_failed_utterance(utterance, error))
            if done == 0:
                break
    context.progress("Anonymising", len(utterances) - len(problems), len(utterances))
    if problems:
        raise JobFailure(
            f"{len(problems)} of {len(utterances)} utterances of {run.data_set} could not be anonymised"
            f"{', the first one among them, so the others were not tried' if len(problems) == 1 and not kept else ''}.",
            actor=Actor.ORGANIZER,
            remedy="The report names each with its reason. Mend the corpus or the method and run the job again.",
            problems=problems,
        )
    return {"utterances": len(utterances)}


def _anonymize_one(run: AnonymizationRun, method: Method, utterance: Utterance) -> None:
    samples, rate = load_audio(utterance.audio)
    output = method.anonymize(samples, rate, pseudo_speaker_of(run, utterance))
    SubmittedFile.objects.get_or_create(
        submission=run.submission,
        data_set=run.data_set,
        utterance=utterance,
        defaults={"audio": keep_audio(output, rate), "samples": output.size, "rate_hz": rate},
    )


def pseudo_speaker_of(run: AnonymizationRun, utterance: Utterance) -> PseudoSpeaker:
    """The voice that this utterance gets in this run; it follows from the run's seed and needs no storage."""
    return get_method(run.method).pseudo_speaker(
        seed=run.seed,
        role=cast("Role", run.data_set.role),
        split=run.data_set.split or "undivided",
        speaker=utterance.speaker.name,
        utterance=utterance.name,
    )


def _require_audio(data_set: DataSet, utterances: list[Utterance]) -> None:
    silent = [utterance for utterance in utterances if not utterance.audio]
    if silent or not utterances:
        raise JobFailure(
            f"{len(silent)} of {len(utterances)} utterances of {data_set} have no audio in the corpus.",
            actor=Actor.ORGANIZER,
            remedy="Import the corpus again with its audio; it is then added to what is there.",
        )


def _failed_utterance(utterance: Utterance, error: Exception) -> Problem:
    return Problem(
        code="not-anonymised",
        file=utterance.name,
        expected="audio that the method can anonymise",
        found=str(error),
        remedy="Mend the audio of this utterance in the corpus.",
    )
