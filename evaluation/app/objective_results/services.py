"""Starts the objective numbers of a submission, draws their DET curves, and carries the submission on at the end.

One run stands for the whole submission. It waits for the measures of the audio, one run for each data set, because the
averages of ρF0 rest on them. A run is never changed: who evaluates again gets a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.urls import reverse

from evaluation.app.audio_measures.selectors import list_finished_runs
from evaluation.app.audio_measures.services import start_measures
from evaluation.app.models import EvaluationRun, ScoreSet
from evaluation.app.objective_results.selectors import (
    ReadExtent,
    det_key,
    exposure_key,
    find_known,
    group_curves,
    measure_scores,
    read_exposed_test,
    read_objective_values,
    recipe_number_of,
)
from evaluation.app.runs.kinds import MEASURES, OBJECTIVE, describe_engine
from evaluation.app.runs.selectors import list_newest_finished, read_numbers
from evaluation.app.runs.services import start_run, store_figure
from evaluation.figures import det, exposure
from evaluation.formats.results import AttackModel
from evaluation.objective_results.track_averages import estimator_of
from evaluation.objective_results.values import ObjectiveValues, read_missing
from evaluation.protocols.ranking.policy import make_policy
from evaluation.protocols.recipes import Recipe
from portal.accounts.rules import NotificationKind
from portal.challenges.models import DataSet, Edition
from portal.challenges.selectors import recipe_hash
from portal.core.clock import read_clock
from portal.core.mail import absolute, render_mail
from portal.jobs.models import Actor, Job, JobState
from portal.submissions.models import Submission
from portal.submissions.selectors import find_description, list_parts_and_descriptions
from portal.submissions.services import change_state
from portal.teams.models import Team
from portal.teams.notifications import notify_team
from portal.teams.services import lock_edition

NAMED_MISSING = 3  # numbers that are missing, in a mail; the page of the system has all


@transaction.atomic
def start_objective(
    *, submission: Submission, parts: Sequence[EvaluationRun] = (), after: Job | None = None, by: Any = None
) -> EvaluationRun:
    """Return the numbers of a whole submission; its last measures or `after` have to succeed before.

    Args:
        parts: the portal's own attacks, those that rank, and its recognition, where the recipe asks for them.
        after: the last job of these parts.
    """
    after = after or start_missing_measures(submission=submission, by=by)
    change_state(submission=submission, state=Submission.State.EVALUATING, actor=by)
    return _start_run(submission, describe_parts(parts) if parts else {}, after=after, by=by)


@transaction.atomic
def start_again(*, submissions: Iterable[Submission], by: Any = None) -> None:
    """Compute evaluated submissions by a changed recipe, from the same files and runs.

    Their states stay, and nobody is notified. A job that has not begun reads the recipe of then.
    """
    given = list(submissions)
    jobs = EvaluationRun.objects.filter(kind=OBJECTIVE.kind, submission__in=given, job__state=JobState.WAITING)
    waiting = set(jobs.values_list("submission", flat=True))
    for run in list_newest_finished(OBJECTIVE, given):
        if run.submission_id not in waiting:
            _start_run(run.submission, run.parameters, by=by)


def _start_run(
    submission: Submission, parameters: dict[str, Any], *, after: Job | None = None, by: Any = None
) -> EvaluationRun:
    edition = edition_of(submission)
    run = EvaluationRun(
        submission=submission,
        kind=OBJECTIVE.kind,
        recipe=f"objective-{edition.recipe.edition}"[:40],
        recipe_version=f"{OBJECTIVE.version}-{recipe_hash(edition)}",
        parameters=parameters,
    )
    return start_run(run, job=OBJECTIVE.job, title=f"Objective numbers of {submission}", after=after, by=by)


def start_missing_measures(*, submission: Submission, by: Any = None) -> Job | None:
    """Return the measures of each data set that has audio and no measures yet, one after another; the last of their
    jobs."""
    last: Job | None = None
    for data_set in _unmeasured(submission):
        last = start_measures(submission=submission, data_set=data_set, after=last, by=by).job
    return last


def describe_parts(parts: Sequence[EvaluationRun]) -> dict[str, Any]:
    """The portal's own runs that an objective run rests on, and their engines by key, as the run keeps them."""
    engines = {describe_engine(one).key: describe_engine(one).title for one in parts}
    return {"parts": [one.pk for one in parts], "engines": engines}


def _find_newest(job: Job) -> EvaluationRun | None:
    """Return the objective run of this job; None where another run has taken its place."""
    run = EvaluationRun.objects.select_related("submission__system__team__edition").filter(job=job).first()
    if run is None or EvaluationRun.objects.filter(submission=run.submission, kind=run.kind, pk__gt=run.pk).exists():
        return None
    return run


def resume_objective(job: Job) -> None:
    """Say of a submission whose evaluation failed that it is evaluated again, once somebody lets the job run again."""
    run = _find_newest(job)
    if run is not None and run.submission.state == Submission.State.FAILED:
        change_state(submission=run.submission, state=Submission.State.EVALUATING)


@transaction.atomic
def settle_objective(job: Job) -> None:
    """Carry a submission on once the job of its newest objective run has ended, and tell its team.

    What was computed while the recipe was changed is computed again. Nothing else follows from a run of a submission
    that was evaluated before (`start_again`).
    """
    run = _find_newest(job)
    if run is None:
        return
    submission, cause = run.submission, job
    edition = lock_edition(edition_of(submission))
    if job.state == JobState.SUCCEEDED and recipe_number_of(job) != edition.recipe_number:
        start_again(submissions=[submission])
    if submission.state == Submission.State.EVALUATED:
        return
    if job.state == JobState.SUCCEEDED:
        if submission.evaluated_at is None:
            submission.evaluated_at = read_clock()
            submission.is_held = edition.holds_evaluations
            submission.save(update_fields=["evaluated_at", "is_held"])
        event = change_state(submission=submission, state=Submission.State.EVALUATED, note=describe_found(job))
    else:
        cause = _cause(job)
        note = f"{cause.failure} {cause.failure_remedy}".strip()
        if cause.state == JobState.CANCELLED:
            note = f"“{cause.title}” was cancelled. An organizer can let it run again."
        event = change_state(submission=submission, state=Submission.State.FAILED, note=note)
    team = submission.system.team
    if event is not None and team is not None and cause.state != JobState.CANCELLED:
        _tell_team(submission, team, job, cause)


def _cause(job: Job) -> Job:
    """Return the job that failed or was cancelled, where this one was cancelled because it follows others."""
    cause, before = job, job.after
    while before is not None:
        if before.state in (JobState.FAILED, JobState.CANCELLED):
            cause = before
        before = before.after
    return cause


def _tell_team(submission: Submission, team: Team, job: Job, cause: Job) -> None:
    told: dict[str, Any]
    if job.state == JobState.SUCCEEDED:
        kind, template, url = NotificationKind.FINISHED, "evaluated", submission.system.get_absolute_url()
        leaderboard = absolute(reverse("leaderboard:detail", args=[team.edition.name]))
        told = {"found": describe_found(job), "averages": describe_averages(submission), "leaderboard": leaderboard}
        parts, released = list_parts_and_descriptions(submission)
        if find_description(submission) and not any(one.document for one in parts):
            earlier = (one.submission.version for one in released if one.submission.version < submission.version)
            told["described"] = next(earlier, None)
    else:
        kind, template, url = NotificationKind.FAILED, "evaluation_failed", submission.get_absolute_url()
        told = {"failure": cause.failure, "is_held": cause.failure_actor == Actor.OPERATOR}
    mail = render_mail(f"submissions/mail/{template}.txt", {"submission": submission, **told})
    notify_team(team=team, kind=kind, mail=mail, url=url)


def describe_found(job: Job) -> str:
    """Such as ``All 900 numbers were computed; 2 reported numbers differ from ours; 1 is missing.``"""
    found = job.result
    values, recomputed, unlike = (found.get(key, 0) for key in ("values", "recomputed", "disagreements"))
    lacking = read_missing(found.get("missing", []))
    missing = len(lacking)
    if not values:
        parts = ["No number was computed"]
    elif values == 1:
        parts = [f"The one number was {'computed' if recomputed else 'not recomputed'}"]
    elif recomputed < values:
        parts = [f"{recomputed:,} of {values:,} numbers were recomputed"]
    else:
        parts = [f"All {values:,} numbers were computed"]
    if unlike:
        parts.append(f"{unlike:,} reported number{' differs' if unlike == 1 else 's differ'} from ours")
    if missing:
        number, verb = ("number", "is") if missing == 1 else ("numbers", "are")
        named = "; ".join(f"{one.what} ({one.reason})" for one in lacking[:NAMED_MISSING])
        more = f"; and {missing - NAMED_MISSING:,} more" if missing > NAMED_MISSING else ""
        parts.append(f"{missing:,} {number} that the recipe requires {verb} missing: {named}{more}")
    return "; ".join(parts) + "."


def describe_averages(submission: Submission) -> list[str]:
    """Return the averages that rank a system, such as ``EER (Kaldi), semi-informed attacker: 22.5 % (22.1 to
    22.9)``."""
    edition = edition_of(submission)
    policy = make_policy(edition.recipe, edition.track)
    values = read_objective_values([submission], extent=ReadExtent.RANKED)[submission.pk]
    attack, decides, lines = AttackModel(policy.attack_model), policy.privacy, []
    found = [values.average(decides.metric, decides.estimator, split=policy.split, attack_model=attack)]
    found += [
        values.average(one.metric, one.estimator, split=policy.split, attack_model=attack) for one in policy.utilities
    ]
    for number in filter(None, found):
        unit, of = number.metric.unit, number.identity.attack_model
        value, around = number.rounded()
        named = f"{number.metric.label}, {of} attacker" if of else number.metric.label
        lines.append(f"{named}: {value} {unit}".rstrip() + (f" (95 % interval {around})" if around else ""))
    return lines


def edition_of(submission: Submission) -> Edition:
    edition = submission.system.edition
    if edition is None:
        raise ValueError(f"{submission} belongs to no edition, so no recipe says which numbers it has.")
    return edition


def _unmeasured(submission: Submission) -> list[DataSet]:
    """Return data sets with audio in submission and corpus that this version of the measures has not seen."""
    seen = {run.measured_set.pk for run in list_finished_runs(submission) if run.recipe_version == MEASURES.version}
    with_audio = submission.files.exclude(utterance__audio="").order_by().values("data_set")
    return list(DataSet.objects.filter(pk__in=with_audio).exclude(pk__in=seen).order_by("name"))


def draw_det_figures(run: EvaluationRun, recipe: Recipe, progress: Callable[[str, int, int], None]) -> None:
    """Draw and keep the DET curves of every data set whose scores were measured, its attack models over each other."""
    by_set = group_curves(run.score_sets.all())
    estimator = estimator_of(recipe)
    values = ObjectiveValues(run.submission_id, run.pk, None, read_numbers([run]).get(run.pk, {}))
    for done, (data_set, score_sets) in enumerate(by_set.items()):
        progress("Drawing the DET curves", done, len(by_set))
        known, name = find_known(values, estimator, data_set, score_sets)
        if known:
            tests = {attack: measure_scores(score_sets[attack]) for attack in known}
            words = {"title": det.TITLE, "description": det.describe(tests, estimator=estimator)}
            store_figure(run, partial(det_key, run.pk, name), det.make_det_plot(tests, estimator), **words)
            _draw_exposure(run, name, [score_sets[attack] for attack in known])
    progress("Drawing the DET curves", len(by_set), len(by_set))


def _draw_exposure(run: EvaluationRun, name: str, score_sets: Sequence[ScoreSet]) -> None:
    exposed = [read_exposed_test(one) for one in score_sets]
    words = {"title": exposure.TITLE, "description": exposure.describe(exposed)}
    store_figure(run, partial(exposure_key, run.pk, name), exposure.make_exposure_plot(exposed), **words)
