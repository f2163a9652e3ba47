"""Starts anonymisers over data sets and trials of their speed, and settles what follows when a job ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from anonymization.app import voice_assignment
from anonymization.app.models import AnonymizationRun, NetworkSeed
from anonymization.app.networks import make_method
from anonymization.app.selectors import TRIAL, list_unfinished_trials
from anonymization.methods.content_decoder.retrained import find_retrained
from anonymization.methods.contract import Anonymizer, MethodError, Options, complete_options
from anonymization.methods.registry import explain_missing, get_method
from anonymization.methods.voices.assignment import Voices
from portal.challenges.models import Corpus, DataSet
from portal.core import audit
from portal.core.version import code_version
from portal.jobs.models import Job, JobState
from portal.jobs.services import create_job
from portal.jobs.workers import lacking
from portal.submissions.models import Submission
from portal.submissions.services import accept_submission, change_state


@transaction.atomic
def start_anonymization(
    *,
    submission: Submission,
    data_sets: Iterable[DataSet],
    method: str,
    seed: int,
    level: str = voice_assignment.BY_ROLE,
    options: Options | None = None,
    targets: voice_assignment.TargetRequest | None = None,
    network: NetworkSeed | None = None,
    by: Any = None,
) -> list[AnonymizationRun]:
    """Return one run and one job for each data set; runs at speaker level that share role and split share their voices.

    Args:
        level: speaker, utterance, or role: at utterance level for training sets, at speaker level for others.
        options: of the method; what is not named has its default.
        targets: for a method whose voices are those of target speakers, and for no other.
        network: of a training in the portal that has ended, which the method reads in place of its own, with the
            decoder that it was trained for.

    Raises:
        MethodError: there is no such method, it lacks something here, or has no such option; training data at
            speaker level; targets are missing, not wanted, or cannot be given as asked; or it cannot read the network.
    """
    recipe = make_method(method, network)
    hashes = dict(find_retrained(recipe))
    if missing := lacking({recipe.name: explain_missing(recipe)})[recipe.name]:
        raise MethodError(missing)
    settled = complete_options(recipe, options)
    voice_assignment.require_targets(recipe, targets)
    plans: dict[tuple[str, str], Voices] = {}
    runs = []
    for data_set in data_sets:
        run = AnonymizationRun(
            submission=submission,
            data_set=data_set,
            method=recipe.name,
            recipe_version=recipe.version,
            code_version=code_version(),
            seed=seed,
            level=voice_assignment.choose_level(data_set, level),
            options=settled,
            network=network,
            retrained=hashes,
        )
        if targets is not None:
            voice_assignment.give_targets(run, targets, settled)
        elif run.level == AnonymizationRun.Level.SPEAKER and not voice_assignment.is_planned_in_job(run, recipe):
            shared = (data_set.role, data_set.split)
            plans[shared] = plans.get(shared) or voice_assignment.plan_run_voices(recipe, run)
            voice_assignment.give_voices(run, plans[shared])
        run.save()
        run.job = _create_job(run, recipe, by)
        run.save(update_fields=["job"])
        about: dict[str, Any] = {"retrained": hashes} if hashes else {}
        about |= dict(zip(("network", "decoder"), map(str, run.networks), strict=False))
        audit.record("anonymization.started", run, actor=by, method=recipe.name, seed=seed, **about)
        runs.append(run)
    return runs


def _create_job(run: AnonymizationRun, method: Anonymizer, by: Any) -> Job:
    system = run.submission.system
    return create_job(
        kind="anonymize",
        card=method.needs_gpu,
        title=f"Anonymise {run.data_set} · {system}",
        parameters={"run": run.pk},
        engine=method.name,
        by=by,
        **system.place_of_work,
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
    if job.state != JobState.SUCCEEDED:
        ended = "was cancelled." if job.state == JobState.CANCELLED else f"failed: {job.failure}"
        note = f"The run on {run.data_set} {ended} It can be run again; what was finished is kept."
        change_state(submission=submission, state=Submission.State.RECEIVED, note=note)
        return
    runs = submission.anonymization_runs.all()
    if runs.exclude(job__state=JobState.SUCCEEDED).exists():
        return
    files = submission.files.count()
    note = f"{files:,} utterances of {len(runs)} data sets were anonymised with {run.method_title}."
    accept_submission(submission=submission, note=note)


@transaction.atomic
def start_trials(*, corpus: Corpus, methods: list[str], by: Any = None) -> Job:
    """Return a job that tries these methods on one utterance of the corpus, and one for those that need a graphics
    card.

    Returns:
        The first of them; of both the one under way, where there is one.
    """
    by_need: dict[bool, list[str]] = {}
    for name in methods:
        by_need.setdefault(_needs_card(name), []).append(name)
    under_way = {job.needs_card: job for job in list_unfinished_trials(corpus)}
    jobs = [
        under_way.get(needs_card)
        or create_job(
            kind=TRIAL,
            title=f"Trial of anonymisers on one utterance of {corpus}",
            parameters={"corpus": corpus.name, "methods": names},
            corpus=corpus.name,
            card=needs_card,
            by=by,
        )
        for needs_card, names in sorted(by_need.items())
    ]
    return jobs[0]


def _needs_card(name: str) -> bool:
    try:
        return get_method(name).needs_gpu
    except MethodError:  # its trial tells
        return False
