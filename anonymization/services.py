"""Runs an anonymiser over data sets: creates the runs and their jobs, is their body, and settles what follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from anonymization.methods.contract import Anonymizer, Options, complete_options, validate_voice
from anonymization.methods.errors import MethodError
from anonymization.methods.pseudo_speakers import VoicePlan
from anonymization.methods.registry import get_method, missing_of
from anonymization.models import AnonymizationRun
from anonymization.running import ANONYMISING, Extent, Work, extent_of, store_report, stored_problems
from anonymization.running import PREPARING as PREPARING
from anonymization.targets import TargetRequest as TargetRequest
from anonymization.targets import give_targets, prepared_for, require_targets
from anonymization.voice_checks import check_voices_of
from anonymization.voices import BY_ROLE, level_for, plan_for, planned_voices, stored_voices
from anonymization.voices import pseudo_speaker_of as pseudo_speaker_of
from portal.challenges.models import DataSet
from portal.core import audit
from portal.core.version import code_version
from portal.jobs.kinds import JobFailure
from portal.jobs.models import Actor, Job, State
from portal.jobs.runner import JobContext
from portal.jobs.services import create_job
from portal.submissions.models import Submission
from portal.submissions.services import change_state
from portal.submissions.signals import submission_accepted

# So many speakers are named where several lack a voice.
SPEAKERS_NAMED = 5


@transaction.atomic
def start_anonymization(
    *,
    submission: Submission,
    data_sets: Iterable[DataSet],
    method: str,
    seed: int,
    level: str = BY_ROLE,
    options: Options | None = None,
    targets: TargetRequest | None = None,
    by: Any = None,
) -> list[AnonymizationRun]:
    """One run and one job for each data set; runs at speaker level that share role and split share their voices.

    Args:
        level: speaker, utterance, or role: at utterance level for training sets, at speaker level for others.
        options: of the method; what is not named has its default.
        targets: for a method whose voices are those of target speakers, and for no other.

    Raises:
        MethodError: there is no such method, it lacks something here, or has no such option; training data at
            speaker level; or targets are missing, not wanted, or cannot be given as asked.
    """
    recipe = get_method(method)
    if missing := missing_of(recipe):
        raise MethodError(missing)
    settled = complete_options(recipe, options)
    require_targets(recipe, targets)
    plans: dict[tuple[str, str], VoicePlan] = {}
    runs = []
    for data_set in data_sets:
        run = AnonymizationRun(
            submission=submission,
            data_set=data_set,
            method=recipe.name,
            recipe_version=recipe.version,
            code_version=code_version(),
            seed=seed,
            level=level_for(data_set, level),
            options=settled,
        )
        if targets is not None:
            give_targets(run, targets, settled)
        elif run.level == AnonymizationRun.Level.SPEAKER:
            shared = (data_set.role, data_set.split)
            plan = plans[shared] if shared in plans else plan_for(recipe, data_set, seed)
            plans[shared] = plan
            _give_voices(run, plan)
        run.save()
        run.job = _job_of(run, recipe, by)
        run.save(update_fields=["job"])
        audit.record("anonymization.started", run, actor=by, method=recipe.name, seed=seed)
        runs.append(run)
    return runs


def _give_voices(run: AnonymizationRun, plan: VoicePlan) -> None:
    run.voices, run.voice_distance = stored_voices(plan), plan.distance


def _job_of(run: AnonymizationRun, method: Anonymizer, by: Any) -> Job:
    system = run.submission.system
    return create_job(
        kind="anonymize-gpu" if method.needs_gpu else "anonymize",
        title=f"Anonymise {run.data_set} · {system}",
        parameters={"run": run.pk},
        edition=system.edition_name,
        by=by,
    )


def run_anonymization(context: JobContext) -> dict[str, Any]:
    """Body of the job: anonymise each utterance of the run's data set that has no file yet.

    The first utterance goes alone: when it fails, the others are not tried.
    """
    run = AnonymizationRun.objects.select_related("data_set__corpus", "submission__system").get(
        pk=context.parameters["run"]
    )
    extent = extent_of(run)
    _require_audio(run.data_set, extent)
    method = _method_of(run, extent)
    _require_voices(run)
    _require_targets(run)
    method = prepared_for(run, method)
    work = Work(run, method, extent, context.check)
    if 0 < extent.kept < extent.total:
        context.note(f"{extent.kept} of {extent.total} utterances were anonymised before; continuing.")
    if extent.kept < extent.total:
        context.progress(PREPARING, 0, 0)
        work.prepare()
        context.progress(ANONYMISING, extent.kept, extent.total)
        work.go(lambda done: context.progress(ANONYMISING, done, extent.total))
    context.progress(ANONYMISING, work.done, extent.total)
    if work.failed:
        raise _failure(run, work)
    voices = check_voices_of(run)
    store_report(run, voices=voices.as_stored())
    context.problems += [*stored_problems(run), *voices.problems]
    return {"utterances": extent.total}


def _method_of(run: AnonymizationRun, extent: Extent) -> Anonymizer:
    """The method of a run, in the version that made what is there already; where nothing is, in the one at hand."""
    try:
        method = get_method(run.method)
        missing = missing_of(method)
    except MethodError as error:
        missing = str(error)
    if missing:
        raise JobFailure(missing, actor=Actor.OPERATOR, remedy="What was finished is kept: run the job again then.")
    if method.version != run.recipe_version and extent.kept:
        raise JobFailure(
            f"{extent.kept} of {extent.total} utterances of {run.data_set} were anonymised by {method.name} in version "
            f"{run.recipe_version}; this portal has version {method.version}, whose output may differ.",
            actor=Actor.ORGANIZER,
            remedy="Start the system anew, so that one version makes all of it.",
        )
    if method.version != run.recipe_version:
        _renew(run, method)
    return method


def _renew(run: AnonymizationRun, method: Anonymizer) -> None:
    """Let a run that made nothing yet begin with another version of its method, as if it were started now.

    Voices that this version can take stay, because other runs may share them.
    """
    try:
        run.options = complete_options(method, run.options)
    except MethodError as error:
        raise JobFailure(
            f"The options of this run were chosen for version {run.recipe_version} of {method.name}; this portal has "
            f"version {method.version}. {error}",
            actor=Actor.ORGANIZER,
            remedy="Start the system anew with the options of this version.",
        ) from error
    try:
        for _, voice in planned_voices(run):
            validate_voice(method, voice)
    except MethodError:
        _give_voices(run, plan_for(method, run.data_set, run.seed))
    run.recipe_version, run.code_version = method.version, code_version()
    run.save(update_fields=["recipe_version", "code_version", "options", "voices", "voice_distance"])


def _require_voices(run: AnonymizationRun) -> None:
    """The plan of a run has a voice for everybody in its data set."""
    if not run.voices:
        return
    speakers = run.data_set.utterances.order_by("speaker__name").values_list("speaker__name", flat=True).distinct()
    unplanned = [name for name in speakers if name not in run.voices]
    if unplanned:
        named = ", ".join(unplanned[:SPEAKERS_NAMED]) + (", …" if len(unplanned) > SPEAKERS_NAMED else "")
        raise JobFailure(
            f"{len(unplanned)} of {len(speakers)} speakers of {run.data_set} have no voice in this run, because they "
            f"came into the corpus after its voices were planned: {named}.",
            actor=Actor.ORGANIZER,
            remedy="Start the system anew, so that the voices of all speakers are planned together.",
        )


def _require_targets(run: AnonymizationRun) -> None:
    """The plan of a run with targets has one for everything in its data set."""
    if not run.target_selection:
        return
    column = "name" if run.level == AnonymizationRun.Level.UTTERANCE else "speaker__name"
    names = run.data_set.utterances.order_by(column).values_list(column, flat=True).distinct()
    if unplanned := [name for name in names if name not in run.targets]:
        named = ", ".join(unplanned[:SPEAKERS_NAMED]) + (", …" if len(unplanned) > SPEAKERS_NAMED else "")
        raise JobFailure(
            f"{len(unplanned)} of {len(names)} {run.level}s of {run.data_set} have no target in this run, because they "
            f"came into the corpus after its targets were planned: {named}.",
            actor=Actor.ORGANIZER,
            remedy="Start the system anew, so that the targets of all are planned together.",
        )


def _require_audio(data_set: DataSet, extent: Extent) -> None:
    if extent.without_audio or not extent.total:
        raise JobFailure(
            f"{extent.without_audio} of {extent.total} utterances of {data_set} have no audio in the corpus.",
            actor=Actor.ORGANIZER,
            remedy="Import the corpus again with its audio; it is then added to what is there.",
        )


def _failure(run: AnonymizationRun, work: Work) -> JobFailure:
    is_canary = not work.extent.kept and not work.done
    return JobFailure(
        f"{work.failed} of {work.extent.total} utterances of {run.data_set} could not be anonymised"
        f"{', the first one among them, so the others were not tried' if is_canary else ''}.",
        actor=Actor.ORGANIZER,
        remedy="The report names each with its reason. Mend the corpus or the method and run the job again.",
        problems=[*work.failures.report(), *stored_problems(run)],
    )


@transaction.atomic
def settle_anonymization(job: Job) -> None:
    """Accept a submission to an edition once all its runs have succeeded, or tell its timeline what ended otherwise.

    The submission is locked, so that of two runs that end at once the second sees the first.
    """
    run = AnonymizationRun.objects.select_related("submission__system__edition", "data_set").filter(job=job).first()
    if run is None or run.submission.system.edition_id is None:
        return
    submission = run.submission
    Submission.objects.select_for_update().filter(pk=submission.pk).first()
    submission.refresh_from_db(fields=["state"])
    if submission.state != Submission.State.RECEIVED:  # withdrawn, or accepted before
        return
    if job.state != State.SUCCEEDED:
        ended = "was cancelled." if job.state == State.CANCELLED else f"failed: {job.failure}"
        note = f"The run on {run.data_set} {ended} It can be run again; what was finished is kept."
        change_state(submission=submission, state=Submission.State.RECEIVED, note=note)
        return
    runs = submission.anonymization_runs.all()
    if runs.exclude(job__state=State.SUCCEEDED).exists():
        return
    files = submission.files.count()
    note = f"{files:,} utterances of {len(runs)} data sets were anonymised by {run.method}."
    if change_state(submission=submission, state=Submission.State.ACCEPTED, note=note) is not None:
        submission_accepted.send(sender=Submission, submission=submission)
