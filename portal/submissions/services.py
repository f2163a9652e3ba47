"""Creates systems and their submissions, and carries a submission from state to state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import count
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.text import slugify

from common.line_texts import fold_line
from portal.challenges.models import Corpus, Edition
from portal.core import audit
from portal.jobs.models import Job
from portal.jobs.selectors import list_things_being_deleted
from portal.jobs.services import NotPossible, cancel_those, create_job, run_again
from portal.submissions.models import (
    SharedPart,
    Submission,
    SubmissionEvent,
    SubmittedDocument,
    SubmittedFile,
    System,
    Upload,
)
from portal.submissions.notifications import tell_offered, tell_released, tell_withdrawn
from portal.submissions.rules import (
    SAMPLES_AT_MOST,
    Relation,
    is_frozen,
    release_problem,
    sharing_problem,
    withdrawing_problem,
)
from portal.submissions.selectors import ACCEPTED, list_jobs, list_offered
from portal.submissions.signals import submission_accepted
from portal.teams.models import Team

CHECKABLE = {Submission.State.RECEIVED, Submission.State.CHECKING}
LONGEST_LABEL = 40
EVALUABLE = {Submission.State.ACCEPTED, Submission.State.EVALUATED, Submission.State.FAILED}
# What follows an acceptance.


@transaction.atomic
def create_baseline(*, name: str, title: str, corpus: Corpus, by: Any = None) -> Submission:
    """Create a system of the organizer's own with its first, still empty submission."""
    system = System.objects.create(name=name, title=title, corpus=corpus, is_baseline=True, created_by=by)
    audit.record("system.created", system, actor=by)
    return Submission.objects.create(system=system, version=1)


@transaction.atomic
def create_edition_baseline(*, edition: Edition, label: str, title: str, by: Any = None) -> Submission:
    """Create a system of the organizers' own in an edition, with its first submission: received, the portal makes it.

    Args:
        label: under which the leaderboard shows it; `baseline_problem` says which are none.
    """
    system = create_system(edition=edition, label=label, title=title, by=by)
    audit.record("system.created", system, actor=by)
    return create_submission(system=system, note="The portal itself makes its files.", by=by)


def create_system(
    *, edition: Edition, label: str, title: str, team: Team | None = None, kind: str = "", by: Any
) -> System:
    """Create a system in an edition; without a team a baseline of the organizers. Within a transaction."""
    return System.objects.create(
        name=new_name(edition, label),
        label=label,
        title=title,
        corpus_id=edition.corpus_id,
        edition=edition,
        team=team,
        kind=kind,
        is_baseline=team is None,
        created_by=by,
    )


@transaction.atomic
def rename_system(*, system: System, by: Any, **names: str) -> None:
    """Give a system another `title`, and a baseline without an edition another short `name`, too."""
    before = System.objects.select_for_update(of=("self",)).filter(pk=system.pk).values(*names).get()
    System.objects.filter(pk=system.pk).update(**names)
    audit.record("system.renamed", system, actor=by, changes=audit.changes(before, names))


def create_submission(*, system: System, upload: Upload | None = None, note: str, by: Any, **fields: Any) -> Submission:
    """Create the next version of a system, received; `note` is the first step of its timeline. In a transaction."""
    last, state = system.submissions.order_by("-version").first(), Submission.State.RECEIVED
    submission = Submission.objects.create(
        system=system, version=last.version + 1 if last else 1, state=state, upload=upload, submitted_by=by, **fields
    )
    SubmissionEvent.objects.create(submission=submission, state=state, note=note, actor=by)
    sent = {"upload": str(upload.pk) if upload else "", "team": str(system.team or "")}
    audit.record("submission.created", submission, actor=by, **sent)
    return submission


def baseline_problem(edition: Edition, label: str) -> str:
    """Return why no new baseline of an edition can have this label; empty where it can."""
    if not slugify(label) or len(label) > LONGEST_LABEL:
        return (
            f"A baseline needs a title of {LONGEST_LABEL} characters at most, as the leaderboard shows it, such as "
            "B1.b."
        )
    labels = System.objects.filter(edition=edition).values_list("label", flat=True)
    if same := next((one for one in labels if fold_line(one) == fold_line(label)), ""):
        return f"The edition has a system “{same}” already. Choose it, or take another title."
    return ""


def propose_label(edition: Edition, wanted: str) -> str:
    """Return the wanted label of a new baseline, with a number where the edition has it already: B2, B2-2, B2-3."""
    taken = {fold_line(one) for one in System.objects.filter(edition=edition).values_list("label", flat=True)}
    labels = (f"{wanted[: LONGEST_LABEL - 4]}{f'-{number}' if number > 1 else ''}" for number in count(1))
    return next(label for label in labels if fold_line(label) not in taken)


def new_name(edition: Edition, label: str) -> str:
    """Return a name for addresses that no system has yet, made of an edition's name and a label."""
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
        parameters={"submission": submission.pk},
        by=by,
        run_here=run_here,
        **submission.system.place_of_work,
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
def accept_submission(*, submission: Submission, note: str = "", actor: Any = None) -> SubmissionEvent | None:
    """Accept a submission and, where it belongs to an edition, start its evaluation; None when it was withdrawn."""
    event = change_state(submission=submission, state=Submission.State.ACCEPTED, note=note, actor=actor)
    if event is not None and submission.system.edition_id is not None:
        submission_accepted.send(Submission, submission=submission, by=actor)
    return event


@transaction.atomic
def withdraw(*, submission: Submission, by: Any, relation: Relation, note: str = "") -> Submission:
    """Take a submission back: it counts for nothing any more, and its check ends if it is under way.

    Its files stay, because later versions may rest on them, and so does its row, because it did arrive.

    Raises:
        NotPossible: `withdrawal_problem` forbids it.
    """
    submission = _locked(submission)
    if refusal := withdrawal_problem(submission, relation):
        raise NotPossible(refusal)
    change_state(submission=submission, state=Submission.State.WITHDRAWN, note=note, actor=by)
    cancel_those(list_jobs(submission), by=by)  # then: what ends is no failure of the submission
    tell_withdrawn(submission, by=by)
    return submission


def withdrawal_problem(submission: Submission, relation: Relation) -> str:
    """Return why this submission may not be withdrawn now; empty where it may."""
    edition = submission.system.edition
    return withdrawing_problem(
        relation,
        is_withdrawn=submission.state == Submission.State.WITHDRAWN,
        published_at=edition.published_at if edition else None,
        frozen_at=edition.frozen_at if edition else None,
        evaluated_at=submission.evaluated_at,
        is_held=submission.is_held,
    )


@transaction.atomic
def release(*, submission: Submission, by: Any) -> Submission:
    """Let a submission that was held back stand on the leaderboard.

    Raises:
        NotPossible: it is not held back, has no numbers, or a frozen leaderboard would change.
    """
    submission = _locked(submission)
    edition = submission.system.edition
    problem = release_problem(
        is_held=submission.is_held,
        is_evaluated=submission.state == Submission.State.EVALUATED,
        frozen_at=edition.as_published().frozen_at if edition else None,
        evaluated_at=submission.evaluated_at,
    )
    if problem:
        raise NotPossible(problem)
    submission.is_held = False
    submission.save(update_fields=["is_held"])
    audit.record("submission.released", submission, actor=by)
    tell_released(submission, "released", by=by)
    return submission


@transaction.atomic
def check_again(*, submission: Submission, by: Any) -> Submission:
    """Let the check of an archive go on that failed or was cancelled.

    Raises:
        NotPossible: it has not, or the submission was withdrawn or is being deleted.
    """
    submission = _locked(submission)
    refuse_deleted([submission])
    if submission.job is None or submission.state not in CHECKABLE:
        raise NotPossible(f"A submission that is {submission.get_state_display().lower()} is not checked again.")
    run_again(submission.job, by=by)
    return submission


def evaluation_problem(submission: Submission) -> str:
    """Return why this submission may not be evaluated again now; empty where it may."""
    edition = submission.system.edition
    if edition is None or submission.state not in EVALUABLE:
        return f"A submission that is {submission.get_state_display().lower()} cannot be evaluated."
    if is_frozen(frozen_at=edition.frozen_at, evaluated_at=submission.evaluated_at):
        return "The leaderboard of this edition was frozen with these numbers; unfreeze it before computing others."
    return _explain_no_speech(submission)


@transaction.atomic
def evaluate_again(*, submission: Submission, by: Any) -> Submission:
    """Let an accepted submission be evaluated again; what was computed before stays beside it.

    Raises:
        NotPossible: it was not accepted, is being deleted or its recordings were, its evaluation is under way, or a
            frozen leaderboard rests on what it gave.
    """
    submission = _locked(submission)
    refuse_deleted([submission])
    if problem := evaluation_problem(submission):
        raise NotPossible(problem)
    edition = submission.system.edition
    stays = edition and is_frozen(frozen_at=edition.as_published().frozen_at, evaluated_at=submission.evaluated_at)
    if edition is not None and edition.holds_evaluations and not stays:
        submission.is_held = True
        submission.save(update_fields=["is_held"])
    accept_submission(submission=submission, note="To be evaluated again.", actor=by)
    return submission


@transaction.atomic
def offer_parts(
    *,
    submission: Submission,
    parts: Collection[SubmittedFile | SubmittedDocument],
    by: Any,
    relations: Collection[Relation],
    now: datetime,
) -> None:
    """Offer samples and the description to everybody; those of a baseline are released with that.

    Raises:
        NotPossible: others offer it, it was not accepted or is being deleted, or these are too many samples.
    """
    submission = _locked(submission)
    is_baseline, is_accepted = submission.system.team_id is None, submission.state in ACCEPTED
    if problem := sharing_problem(relations, is_baseline=is_baseline, is_accepted=is_accepted):
        raise NotPossible(problem)
    if not parts:
        return
    refuse_deleted([submission])
    released = {"released_at": now} if is_baseline else {}
    for part in parts:
        field = "file" if isinstance(part, SubmittedFile) else "document"
        SharedPart.objects.get_or_create(**{field: part}, defaults={"submission": submission} | released)
    if submission.shared_parts.filter(document=None).count() > SAMPLES_AT_MOST:
        raise NotPossible(f"A system has {SAMPLES_AT_MOST} samples at most. Take one of them back first.")
    audit.record("submission.parts_offered", submission, actor=by, parts=[str(part) for part in parts])
    tell_offered(submission, by=by)


@transaction.atomic
def carry_offers(*, submission: Submission) -> None:
    """Carry what was offered of the version before on to an accepted one with the same recording or document.

    What waits for its release moves; what is released stays with the version that others meet meanwhile, too.
    """
    earlier = SharedPart.objects.filter(
        submission__system=submission.system_id, submission__version__lt=submission.version
    ).exclude(submission__state=Submission.State.WITHDRAWN)
    newest = earlier.order_by("-submission__version").values("submission")[:1]
    carried: list[str] = []
    for part in earlier.filter(submission__in=newest).select_related("file", "document"):
        same = _same_part(part, submission)
        if same is None:
            continue
        part.submission, carried = submission, [*carried, str(same)]
        part.file, part.document = (same, None) if isinstance(same, SubmittedFile) else (None, same)
        if part.released_at is not None:
            part.pk, part._state.adding = None, True
        part.save()
    if carried:
        audit.record("submission.offers_carried", submission, parts=carried)


def _same_part(part: SharedPart, submission: Submission) -> SubmittedFile | SubmittedDocument | None:
    """Return the same recording of the same utterance, or the same document, in another version."""
    if part.file is not None:
        of_file = {"data_set": part.file.data_set_id, "utterance": part.file.utterance_id, "audio": part.file.audio}
        return submission.files.filter(**of_file).first()
    if part.document is None:
        return None
    return submission.documents.filter(kind=part.document.kind, key=part.document.key).first()


@transaction.atomic
def take_part_back(*, part: SharedPart, by: Any, relations: Collection[Relation]) -> None:
    """Take this part back: nobody else hears or reads it, nor does it wait for release; its team may offer it again.

    The same recording or document of other versions is taken back with it, and with a released description those of
    earlier versions, which would be public again.

    Raises:
        NotPossible: the submission is none of theirs.
    """
    submission, name = part.submission, str(part)
    if Relation.OTHER in relations:
        raise NotPossible(sharing_problem(relations, is_baseline=False, is_accepted=True))
    others = SharedPart.objects.filter(submission__system=submission.system_id)
    if part.file is not None:
        others = others.filter(file__data_set=part.file.data_set_id, file__utterance=part.file.utterance_id)
        others.filter(file__audio=part.file.audio).delete()
    elif part.document is not None:
        also = Q(document__key=part.document.key)
        if part.released_at is not None:
            also |= Q(submission__version__lt=submission.version)
        others.filter(also, document__kind=part.document.kind).delete()
    audit.record("submission.part_taken_back", submission, actor=by, part=name)


@transaction.atomic
def release_parts(*, submissions: Iterable[Submission], by: Any, now: datetime, notifies: bool = True) -> int:
    """Let everybody hear and read what teams offered of these submissions; how many parts that are.

    Args:
        notifies: whether the teams get a mail about it; not where another one says so.

    Raises:
        NotPossible: one of them is being deleted.
    """
    released = 0
    for submission in submissions:
        offered = list_offered(submission)
        if offered:
            refuse_deleted([submission])
            SharedPart.objects.filter(pk__in=[one.pk for one in offered]).update(released_at=now)
            audit.record("submission.parts_released", submission, actor=by, parts=[str(one) for one in offered])
            released += len(offered)
            if notifies:
                tell_released(submission, "parts_released", by=by)
    return released


def refuse_deleted(submissions: Iterable[Submission]) -> None:
    """Refuse to begin to use what a job is deleting. The submissions come with their systems.

    Raises:
        NotPossible: one of them is being deleted, or what it belongs to is.
    """
    removed = list_things_being_deleted()
    for submission in sorted(submissions, key=lambda one: one.pk) if removed else ():
        system = submission.system
        owners: dict[str, int | None] = {"submissions.submission": submission.pk, "submissions.system": system.pk}
        owners |= {"teams.team": system.team_id, "challenges.edition": system.edition_id}
        owners |= {"challenges.corpus": system.corpus_id}
        if not removed.isdisjoint(owners.items()):
            raise NotPossible(f"{submission} is being deleted.")


def refuse_without_speech(submissions: Iterable[Submission]) -> None:
    """Refuse to compute from recordings that are gone, or hear them. The submissions come with their systems.

    Raises:
        NotPossible: the speech of their edition was deleted on the date that its organizers chose.
    """
    for submission in submissions:
        if why := _explain_no_speech(submission):
            raise NotPossible(why)


def _explain_no_speech(submission: Submission) -> str:
    """Say that the recordings of a submission were deleted; empty where they were not."""
    edition = submission.system.edition
    if edition is None or not edition.speech_deleted_at or not submission.files.filter(audio="").exists():
        return ""
    return f"The recordings of {submission} were deleted on {edition.speech_deleted_at:%Y-%m-%d}. Its numbers stay."


def _locked(submission: Submission) -> Submission:
    rows = Submission.objects.select_for_update(of=("self",)).select_related("system__edition", "system__team", "job")
    return rows.get(pk=submission.pk)
