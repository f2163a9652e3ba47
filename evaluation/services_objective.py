"""Computes the objective numbers of a submission: creates its runs and their jobs, and is the body of the last of them.

One run stands for the whole submission. It waits for the measures of the audio, one run for each data set, because the
averages of ρF0 rest on them. A run is never changed: who evaluates again gets a new one.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from evaluation.formats.claims import AttackModel, ClaimIdentity, Gender
from evaluation.formats.recomputation import MeasuredTest
from evaluation.models import EvaluationRun, MetricValue, ScoreSet
from evaluation.objective.compute import Objective, compute_objective
from evaluation.objective.values import Number
from evaluation.objective_figures import draw_det_figures
from evaluation.organizer_sources import sources_of
from evaluation.protocols.recipes import FOLDER, Recipe
from evaluation.selectors import finished_runs
from evaluation.services import RECIPE_VERSION, start_evaluation
from portal.accounts.notice_kinds import NoticeKind
from portal.challenges.models import DataSet, Edition
from portal.core import audit
from portal.core.storage import replace_named, store_bytes
from portal.core.version import code_version
from portal.jobs.models import Job, State
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job
from portal.submissions.documents import lay_out
from portal.submissions.intake.documents import read_submitted_results
from portal.submissions.models import Submission
from portal.submissions.services import change_state
from portal.teams.notices import notify_team

KIND = "objective"
METHOD_VERSION = "1"
BATCH = 500
_GENDER = {
    Gender.ALL: MetricValue.Gender.ALL,
    Gender.FEMALE: MetricValue.Gender.FEMALE,
    Gender.MALE: MetricValue.Gender.MALE,
    Gender.MIXED: MetricValue.Gender.MIXED,
}


@transaction.atomic
def start_objective(*, submission: Submission, by: Any = None) -> EvaluationRun:
    """The measures of each data set that has audio and no measures yet, then the numbers of the whole submission.

    The jobs follow each other, for the last rests on all of them.
    """
    edition = _edition_of(submission)
    last: Job | None = None
    for data_set in _unmeasured(submission):
        last = start_evaluation(submission=submission, data_set=data_set, after=last, by=by).job
    run = EvaluationRun.objects.create(
        submission=submission,
        kind=EvaluationRun.Kind.OBJECTIVE,
        recipe=f"objective-{edition.recipe.edition}"[:40],
        recipe_version=f"{METHOD_VERSION}-{_recipe_hash(edition)}",
        code_version=code_version(),
    )
    run.job = create_job(
        kind=KIND,
        title=f"Objective numbers of {submission}",
        parameters={"run": run.pk},
        edition=submission.system.edition_name,
        by=by,
        after=last,
    )
    run.save(update_fields=["job"])
    change_state(submission=submission, state=Submission.State.EVALUATING, actor=by)
    audit.record("evaluation.started", run, actor=by)
    return run


def run_objective(context: JobContext) -> dict[str, Any]:
    """Body of the job: compute everything, then write it at once; what an interrupted attempt left is replaced."""
    run = EvaluationRun.objects.select_related("submission__system__edition__corpus").get(pk=context.parameters["run"])
    submission = run.submission
    edition = _edition_of(submission)
    if submission.state == Submission.State.FAILED:  # somebody lets the job run again
        change_state(submission=submission, state=Submission.State.EVALUATING)
    context.progress("Reading the results", 0, 0)
    score_sets: list[ScoreSet] = []
    with tempfile.TemporaryDirectory(prefix="objective-") as place:
        folder = Path(place)
        lay_out(submission.documents.all(), folder)
        paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
        systems = read_submitted_results(folder, paths, edition.recipe)
        objective = compute_objective(
            folder,
            max(systems, key=lambda one: one.system) if systems else None,
            sources_of(submission, edition),
            kept=lambda test: score_sets.append(score_set_of(run, test, edition.recipe)),
            progress=context.progress,
        )
    context.problems += objective.problems
    write_objective(run, objective, score_sets)
    draw_det_figures(run, edition.recipe, context.progress)
    return {
        "values": len(objective.numbers),
        "recomputed": sum(number.is_recomputed for number in objective.numbers.values()),
        "disagreements": objective.disagreements,
        "score_files": len(score_sets),
        "missing": [asdict(one) for one in objective.missing],
    }


@transaction.atomic
def write_objective(run: EvaluationRun, objective: Objective, score_sets: list[ScoreSet]) -> None:
    """Store the numbers of a run, its scores, and the resampled averages for paired comparisons."""
    run.values.all().delete()
    run.score_sets.all().delete()
    MetricValue.objects.bulk_create(
        (row_of(run, one) for one in objective.numbers.values() if np.isfinite(one.value)), batch_size=BATCH
    )
    ScoreSet.objects.bulk_create(score_sets)
    averages = {
        replicates_name(identity): found.resampled
        for identity, found in objective.replicates.items()
        if identity.data_set.startswith("average_")
    }
    if averages:
        packed = io.BytesIO()
        np.savez_compressed(packed, allow_pickle=False, **averages)
        replace_named(replicates_key(run.pk), packed.getvalue())


def row_of(run: EvaluationRun, number: Number) -> MetricValue:
    """The row of a number."""
    identity = number.identity
    return MetricValue(
        run=run,
        data_set=identity.data_set,
        metric=identity.metric,
        estimator=identity.estimator,
        gender=_GENDER[identity.gender],
        attack_model=identity.attack_model or "",
        training=identity.training or "",
        enrolment=identity.enrolment or "",
        speech=identity.speech,
        basis=number.basis,
        value=number.value,
        spread=number.spread,
        low=number.low,
        high=number.high,
        n=number.n,
        claimed=number.claimed if number.claimed is not None and np.isfinite(number.claimed) else None,
        claimed_text=number.claimed_text[:60],
        claimed_in=number.claimed_in[:400],
        agrees=number.agrees,
    )


@transaction.atomic
def settle_objective(job: Job) -> None:
    """Carry a submission on once the job of its newest objective run has ended, and tell its team."""
    run = EvaluationRun.objects.select_related("submission__system__team__edition").filter(job=job).first()
    if run is None or _is_superseded(run):
        return
    submission = run.submission
    if job.state == State.SUCCEEDED:
        if submission.evaluated_at is None:
            submission.evaluated_at = timezone.now()
            submission.save(update_fields=["evaluated_at"])
        event = change_state(submission=submission, state=Submission.State.EVALUATED, note=_found_in_words(job))
    else:
        event = change_state(submission=submission, state=Submission.State.FAILED, note=_cause(job).failure)
    was_stopped = _cause(job).state == State.CANCELLED
    if event is not None and submission.system.team is not None and not was_stopped:
        _tell_team(submission, job)


def _cause(job: Job) -> Job:
    """The job that failed, where this one was cancelled because it follows others."""
    before: Job | None = job
    while before is not None:
        if before.state == State.FAILED:
            return before
        before = before.after
    return job


def _tell_team(submission: Submission, job: Job) -> None:
    team = submission.system.team
    assert team is not None  # noqa: S101
    if job.state == State.SUCCEEDED:
        notify_team(
            team=team,
            kind=NoticeKind.FINISHED,
            subject=f"{submission} has been evaluated",
            lines=[f"The numbers of {submission} are ready. {_found_in_words(job)}", "Every number, and your claims:"],
            url=submission.system.get_absolute_url(),
        )
    else:
        notify_team(
            team=team,
            kind=NoticeKind.FAILED,
            subject=f"The evaluation of {submission} failed",
            lines=[_cause(job).failure, "The organizer sees this too. What was accepted is kept. The submission:"],
            url=submission.get_absolute_url(),
        )


def _found_in_words(job: Job) -> str:
    """Such as ``864 of 900 numbers were recomputed; 2 are claimed otherwise; 1 is missing.``"""
    found = job.result
    values, recomputed, unlike = (found.get(key, 0) for key in ("values", "recomputed", "disagreements"))
    missing = len(found.get("missing", []))
    parts = [f"{recomputed:,} of {values:,} numbers were recomputed"]
    if unlike:
        parts.append(f"{unlike:,} {'is' if unlike == 1 else 'are'} claimed otherwise")
    if missing:
        parts.append(f"{missing:,} that the recipe asks for {'is' if missing == 1 else 'are'} missing")
    return "; ".join(parts) + "."


def replicates_key(run: int) -> str:
    """Where the resampled averages of a run lie."""
    return f"derived/objective/{run}/averages.npz"


def replicates_name(identity: ClaimIdentity) -> str:
    """Name of an average in that file, such as ``average_test eer kaldi semi-informed``."""
    attack: AttackModel | str = identity.attack_model or identity.speech
    return f"{identity.data_set} {identity.metric} {identity.estimator} {attack}"


def _edition_of(submission: Submission) -> Edition:
    edition = submission.system.edition
    if edition is None:
        raise ValueError(f"{submission} belongs to no edition, so no recipe says which numbers it has.")
    return edition


def _unmeasured(submission: Submission) -> list[DataSet]:
    """Data sets with audio in submission and corpus that this version of the measures has not seen."""
    seen = {run.measured_set.pk for run in finished_runs(submission) if run.recipe_version == RECIPE_VERSION}
    with_audio = submission.files.exclude(utterance__audio="").order_by().values("data_set")
    return list(DataSet.objects.filter(pk__in=with_audio).exclude(pk__in=seen).order_by("name"))


def _recipe_hash(edition: Edition) -> str:
    text = edition.recipe_text or (FOLDER / f"{edition.protocol}.toml").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_superseded(run: EvaluationRun) -> bool:
    newer = EvaluationRun.objects.filter(submission=run.submission_id, kind=run.kind, pk__gt=run.pk)
    return newer.exists()


def score_set_of(run: EvaluationRun, test: MeasuredTest, recipe: Recipe) -> ScoreSet:
    """The scores of a test, sorted and stored."""
    targets, nontargets = np.sort(test.joined.target_scores), np.sort(test.joined.nontarget_scores)
    packed = io.BytesIO()
    np.savez_compressed(packed, targets=targets, nontargets=nontargets)
    file = test.file
    gender = Gender(recipe.data_sets[file.data_set].gender)
    identity = ClaimIdentity(file.data_set, gender, "eer", "kaldi", file.training, file.enrolment, file.speech)
    return ScoreSet(
        run=run,
        data_set=file.data_set,
        gender=_GENDER[gender],
        attack_model=identity.attack_model or "",
        training=file.training,
        enrolment=file.enrolment,
        speech=file.speech,
        target_count=targets.size,
        nontarget_count=nontargets.size,
        key=store_bytes(packed.getvalue(), ".npz"),
    )
