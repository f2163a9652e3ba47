"""Creates systems and their submissions, and carries a submission from state to state."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.text import slugify

from portal.challenges.models import Corpus, Edition
from portal.core import audit
from portal.jobs.models import Job
from portal.jobs.rules import can_cancel
from portal.jobs.services import NotPossible, create_job, request_cancel, run_again
from portal.submissions.models import Submission, SubmissionEvent, System
from portal.submissions.selectors import jobs_of
from portal.submissions.signals import submission_accepted
from portal.submissions.visibility import Relation
from portal.submissions.withdrawals import is_frozen, refusal_to_withdraw

CHECKABLE = {Submission.State.RECEIVED, Submission.State.CHECKING}
LONGEST_LABEL = 40
EVALUABLE = {Submission.State.ACCEPTED, Submission.State.EVALUATED, Submission.State.FAILED}


@transaction.atomic
def create_baseline(*, name: str, title: str, corpus: Corpus, by: Any = None) -> Submission:
    """A system of the organizer's own with its first, still empty submission."""
    system = System.objects.create(name=name, title=title, corpus=corpus, is_baseline=True, created_by=by)
    audit.record("system.created", system, actor=by)
    return Submission.objects.create(system=system, version=1)


@transaction.atomic
def create_edition_baseline(*, edition: Edition, label: str, title: str, by: Any = None) -> Submission:
    """A system of the organizers' own in an edition, with its first submission: received, and to be made by the portal.

    Args:
        label: under which the board shows it; `baseline_refusal` says which are none.
    """
    system = System.objects.create(
        name=new_name(edition, label),
        label=label,
        title=title,
        corpus_id=edition.corpus_id,
        edition=edition,
        is_baseline=True,
        created_by=by,
    )
    audit.record("system.created", system, actor=by)
    state = Submission.State.RECEIVED
    submission = Submission.objects.create(system=system, version=1, state=state, submitted_by=by)
    SubmissionEvent.objects.create(
        submission=submission, state=state, note="The portal itself makes its files.", actor=by
    )
    audit.record("submission.created", submission, actor=by, upload="", team="")
    return submission


def baseline_refusal(edition: Edition, label: str) -> str:
    """Why no new baseline of an edition can have this label; empty where it can."""
    if not slugify(label) or len(label) > LONGEST_LABEL:
        return (
            f"A baseline needs a title of {LONGEST_LABEL} characters at most, under which the board shows it, such as "
            "B1.b."
        )
    if System.objects.filter(edition=edition, label=label).exists():
        return f"The edition has a baseline “{label}” already. Choose it, or take another title."
    return ""


def new_name(edition: Edition, label: str) -> str:
    """A name for addresses that no system has yet, made of an edition's name and a label."""
    wanted = f"{edition.name}-{slugify(label.replace('.', '-'))}"[:56]
    name, number = wanted, 1
    while System.objects.filter(name=name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name


@transaction.atomic
def start_intake(*, submission: Submission, by: Any = None, run_here: bool = False) -> Job:
    """Create the job that reads the archive of a submission; `run_here` as in `create_job`."""
    job = create_job(
        kind="intake",
        title=f"Check of {submission}",
        edition=submission.system.edition_name,
        parameters={"submission": submission.pk},
        by=by,
        run_here=run_here,
    )
    submission.job = job
    submission.save(update_fields=["job"])
    audit.record("submission.intake_started", submission, actor=by)
    return job


@transaction.atomic
def change_state(
    *, submission: Submission, state: Submission.State, note: str = "", actor: Any = None
) -> SubmissionEvent | None:
    """Write the new state of a submission and what led to it as a step of its timeline.

    What was withdrawn stays so, whatever a job finds out afterwards: None then, and nothing is written.
    """
    standing = Submission.objects.filter(pk=submission.pk).exclude(state=Submission.State.WITHDRAWN)
    if not standing.update(state=state):
        submission.state = Submission.State.WITHDRAWN
        return None
    submission.state = state
    audit.record(f"submission.{state}", submission, actor=actor, **({"note": note} if note else {}))
    return SubmissionEvent.objects.create(submission=submission, state=state, note=note, actor=actor)


@transaction.atomic
def withdraw(*, submission: Submission, by: Any, relation: Relation, note: str = "") -> Submission:
    """Take a submission back: it counts for nothing any more, and its check ends if it is under way.

    Its files stay, because later versions may rest on them, and so does its row, because it did arrive.

    Raises:
        NotPossible: the rule of `withdrawals` forbids it.
    """
    submission = _locked(submission)
    if refusal := withdrawal_refused(submission, relation):
        raise NotPossible(refusal)
    for job in jobs_of(submission):
        if can_cancel(job):
            request_cancel(job, by=by)
    change_state(submission=submission, state=Submission.State.WITHDRAWN, note=note, actor=by)
    return submission


def withdrawal_refused(submission: Submission, relation: Relation) -> str:
    """Why this submission may not be withdrawn now; empty where it may."""
    edition = submission.system.edition
    return refusal_to_withdraw(
        relation,
        is_withdrawn=submission.state == Submission.State.WITHDRAWN,
        published_at=edition.published_at if edition else None,
        frozen_at=edition.frozen_at if edition else None,
        evaluated_at=submission.evaluated_at,
    )


@transaction.atomic
def check_again(*, submission: Submission, by: Any) -> Submission:
    """Let the check of an archive go on that failed or was cancelled.

    Raises:
        NotPossible: it has not, or the submission was withdrawn.
    """
    submission = _locked(submission)
    if submission.job is None or submission.state not in CHECKABLE:
        raise NotPossible(f"A submission that is {submission.get_state_display().lower()} is not checked again.")
    run_again(submission.job, by=by)
    return submission


@transaction.atomic
def evaluate_again(*, submission: Submission, by: Any) -> Submission:
    """Let an accepted submission be evaluated anew; what was computed before stays beside it.

    Raises:
        NotPossible: it was not accepted, its evaluation is under way, or a frozen board rests on what it gave.
    """
    submission = _locked(submission)
    edition = submission.system.edition
    if edition is None or submission.state not in EVALUABLE:
        raise NotPossible(f"A submission that is {submission.get_state_display().lower()} cannot be evaluated.")
    if is_frozen(frozen_at=edition.frozen_at, evaluated_at=submission.evaluated_at):
        raise NotPossible("The board of this edition was frozen with these numbers; lift that before computing others.")
    change_state(submission=submission, state=Submission.State.ACCEPTED, note="To be evaluated again.", actor=by)
    submission_accepted.send(sender=Submission, submission=submission)
    return submission


def _locked(submission: Submission) -> Submission:
    rows = Submission.objects.select_for_update(of=("self",)).select_related("system__edition", "system__team", "job")
    return rows.get(pk=submission.pk)
