"""What pages and API read of systems, submissions and their files; `rules` says who may see which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When
from django.http import Http404
from django.shortcuts import get_object_or_404

from portal.challenges.models import Edition, Role
from portal.challenges.selectors import corpora_for, may_see_corpus
from portal.core.clock import read_clock
from portal.core.storage import read_stored
from portal.intake.report import IntakeReport
from portal.jobs.models import Job, JobState
from portal.jobs.workers import served_queues
from portal.submissions.models import SharedPart, Submission, SubmittedDocument, SubmittedFile, System, Upload
from portal.submissions.rules import SAMPLES_AT_MOST, Relation, SystemPart, is_on_leaderboard, may_see
from portal.teams.models import Membership
from portal.teams.selectors import team_of

# Which utterances of a submission nobody may hear on pages, because a listening test that is under way plays them.
PROPOSED_SAMPLES = 4
_PROPOSED_S = 5.0  # long enough to judge a voice
# Once evaluated, until withdrawn: while it is evaluated again, the numbers of before stand.
# Jobs of the portal's attacks and recognition before the last one.
OF_ENGINES = ("vectors", "hypotheses", "phone-training")
STANDING = [state for state in Submission.State if state != Submission.State.WITHDRAWN]
# Passed the check and not taken back.
ACCEPTED = (
    Submission.State.ACCEPTED,
    Submission.State.EVALUATING,
    Submission.State.EVALUATED,
    Submission.State.FAILED,
)
# Under way no longer: the run that makes a submission, or its check, failed or was cancelled.
_ENDED = (JobState.FAILED, JobState.CANCELLED)
STOPPED = Q(state=Submission.State.RECEIVED, anonymization_runs__job__state__in=_ENDED) | Q(
    state__in=(Submission.State.RECEIVED, Submission.State.CHECKING), job__state__in=_ENDED
)
IS_STOPPED = Exists(Submission.objects.filter(STOPPED, pk=OuterRef("pk")))
ON_LEADERBOARD = Q(
    submissions__evaluated_at__isnull=False, submissions__state__in=STANDING, submissions__is_held=False
) & (Q(edition__frozen_at=None) | Q(submissions__evaluated_at__lte=F("edition__frozen_at")))
ON_LEADERBOARD &= Q(edition__recipe_changed_at=None) | Q(submissions__evaluated_at__lte=F("edition__recipe_changed_at"))


def _own(user: Any) -> Q:
    """Match systems whose organizer or team member this person is."""
    if not user.is_authenticated:
        return Q(pk__in=[])
    own = Q(edition__organizers=user) | Q(team__memberships__user=user)
    return own | Q(edition=None, corpus__in=corpora_for(user)) if user.is_organizer else own


def systems_for(user: Any, part: SystemPart = SystemPart.SPEECH) -> QuerySet[System]:
    """Return the systems of which this person may see `part`."""
    seen = _own(user)
    if may_see(part, Relation.OTHER, is_published=True):
        seen |= Q(edition__published_at__isnull=False) & ON_LEADERBOARD
    found = System.objects.filter(pk__in=System.objects.filter(seen).values("pk"))
    return found.select_related("corpus", "created_by", "edition", "team")


def listed_systems_for(user: Any, part: SystemPart = SystemPart.SPEECH) -> QuerySet[System]:
    """Return those of them that lists show, newest first: neither they nor their editions are archived."""
    found = systems_for(user, part).filter(archived_at=None).exclude(edition__archived_at__isnull=False)
    return found.order_by("-created_at", "-pk")


def system_for(user: Any, name: str, part: SystemPart = SystemPart.SPEECH) -> System:
    return get_object_or_404(systems_for(user, part), name=name)


def corrected_system_for(user: Any, edition: Edition, name: str) -> System:
    """Return a system of an edition, by name or label, of whose files this person may know."""
    if "\0" in name:  # which PostgreSQL takes in no text
        raise Http404
    found = systems_for(user, SystemPart.FILES).filter(Q(name=name) | Q(label__iexact=name), edition=edition)
    return get_object_or_404(found[:1])


def managed_systems_for(user: Any) -> QuerySet[System]:
    """Return the systems that this person may delete: not all baselines of a corpus that they may see."""
    found = System.objects.select_related("edition", "corpus", "team")
    if user.is_staff:
        return found
    if not user.is_authenticated:
        return found.none()
    of_corpora = Q(edition=None, team=None) & (Q(created_by=user) | Q(corpus__created_by=user))
    return found.filter(Q(edition__in=user.organized_editions.values("pk")) | of_corpora)


def editable_systems_for(user: Any) -> QuerySet[System]:
    """Return the systems that this person may give other names: those, and as an owner the systems of their team."""
    owned = user.memberships.filter(role=Membership.Role.OWNER).values("team")
    managed = managed_systems_for(user)
    return managed | System.objects.select_related("edition", "corpus", "team").filter(team__in=owned)


def relation_to(user: Any, system: System) -> Relation:
    """Return what this person is to a system: who organizes its edition and belongs to its team is an organizer."""
    return relations_to(user, system)[0]


def relations_to(user: Any, system: System) -> tuple[Relation, ...]:
    """Return everything that this person is to a system, what allows most first."""
    return relations_and_ownership(user, system)[0]


def relations_and_ownership(user: Any, system: System) -> tuple[tuple[Relation, ...], bool]:
    """Return everything that this person is to a system, what allows most first, and whether they own its team."""
    if not user.is_authenticated:
        return (Relation.OTHER,), False
    if system.edition is None and system.team is None:
        return (Relation.ORGANIZER if may_see_corpus(user, system.corpus) else Relation.OTHER,), False
    memberships = user.memberships.filter(team=system.team_id)
    holds = (
        Exists(user.organized_editions.filter(pk=system.edition_id)),
        Exists(memberships),
        Exists(memberships.filter(role=Membership.Role.OWNER)),
    )
    is_organizer, is_member, is_owner = System.objects.filter(pk=system.pk).values_list(*holds).get()
    found = ((Relation.ORGANIZER, is_organizer), (Relation.TEAM, is_member))
    return tuple(relation for relation, held in found if held) or (Relation.OTHER,), is_owner


def shown_submission(
    system: System, relation: Relation, submissions: Sequence[Submission] | None = None
) -> Submission | None:
    """Return the submission whose numbers somebody meets: the newest evaluated; for others, that on the leaderboard.

    While none has been evaluated, team and organizer meet the newest, one that was withdrawn last.

    Args:
        submissions: of the system, the newest first, where they are at hand.
    """
    if submissions is None:
        submissions = list(system.submissions.order_by("-version"))
    evaluated = [one for one in submissions if one.evaluated_at and one.state != Submission.State.WITHDRAWN]
    if relation is not Relation.OTHER:
        standing = [one for one in submissions if one.state != Submission.State.WITHDRAWN]
        return next(iter([*evaluated, *standing, *submissions]), None)
    edition = system.edition
    if edition is None:
        return None
    times = {"published_at": edition.published_at, "frozen_at": edition.frozen_at}
    shown = (one for one in evaluated if is_on_leaderboard(**times, evaluated_at=one.evaluated_at, is_held=one.is_held))
    return next(shown, None)


def find_shown(systems: Iterable[System]) -> dict[int, Submission]:
    """Find submissions as `shown_submission` for its own people, by the key of each system, in one query."""
    withdrawn, evaluated = Q(state=Submission.State.WITHDRAWN), Q(evaluated_at__isnull=False)
    rank = Case(When(withdrawn, then=2), When(evaluated, then=0), default=1)
    found: dict[int, Submission] = {}
    for one in Submission.objects.filter(system__in=list(systems)).order_by("system", rank, "-version"):
        found.setdefault(one.system_id, one)
    return found


def with_stopped(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Add `is_stopped` to each: nothing goes on with it until somebody starts its check or anonymisation again."""
    return submissions.annotate(is_stopped=IS_STOPPED)


def with_what_can_be_offered(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    """Add `has_files` and `has_description`, which can be offered to readers, and `has_offers` that wait."""
    descriptions = SubmittedDocument.objects.filter(kind=SubmittedDocument.Kind.DESCRIPTION)
    return submissions.annotate(
        has_files=Exists(SubmittedFile.objects.filter(submission=OuterRef("pk"))),
        has_description=Exists(descriptions.filter(submission=OuterRef("pk"))),
        has_offers=Exists(SharedPart.objects.filter(submission=OuterRef("pk"), released_at=None)),
    )


def submissions_for(user: Any, part: SystemPart = SystemPart.REPORT) -> QuerySet[Submission]:
    """Return the submissions of which this person may see a part that is never public."""
    if part is SystemPart.NUMBERS:
        raise ValueError("Numbers are seen by system: use systems_for.")
    found = Submission.objects.filter(system__in=systems_for(user, part))
    return with_stopped(found).select_related(
        "system__edition",
        "system__team",
        "system__corpus",
        "upload__created_by",
        "submitted_by",
        "job",
        "inherits__system",
    )


def submission_for(user: Any, pk: int) -> Submission:
    return get_object_or_404(submissions_for(user), pk=pk)


def managed_submission_for(user: Any, pk: int) -> Submission:
    """Return a submission of an edition that this person organises, or of a baseline of the organizers."""
    submission = submission_for(user, pk)
    if relation_to(user, submission.system) is not Relation.ORGANIZER:
        raise Http404
    return submission


def load_stored_report(submission: Submission) -> bytes:
    """Return the whole report of what was found in the archive as JSON; "not found" until there is one."""
    content = read_stored(submission.report) if submission.report else None
    if content is None:
        raise Http404
    return content


def load_report(submission: Submission) -> IntakeReport:
    """Return the report as an object; reading a very long one takes seconds."""
    return IntakeReport.from_json(load_stored_report(submission))


def edition_submissions_for(user: Any, edition: Edition) -> QuerySet[Submission]:
    """Return the submissions to an edition that this person may see, the newest first: all, or those of their team.

    Those who neither organise it nor take part get "not found".
    """
    is_organized = edition.organizers.filter(pk=user.pk).exists()
    if not is_organized and team_of(user, edition) is None:
        raise Http404
    return submissions_for(user).filter(system__edition=edition).order_by("-created_at", "-pk")


def list_jobs(submission: Submission) -> QuerySet[Job]:
    """List the jobs that made the files of a submission or checked its archive, then those that computed from them."""
    of_runs = Q(pk__in=submission.anonymization_runs.values("job")) | Q(pk__in=submission.evaluation_runs.values("job"))
    runs = list(submission.evaluation_runs.values_list("pk", flat=True))
    chained = Q(pk__in=list_chained_jobs(runs).values("pk"))
    jobs = Job.objects.filter(Q(pk=submission.job_id) | of_runs | chained)
    return jobs.order_by("created_at", "pk")


def list_chained_jobs(runs: Iterable[int]) -> QuerySet[Job]:
    """List jobs of attacks, recognition and trainings, by the keys of their runs, that come before each one's last."""
    return Job.objects.filter(kind__in=OF_ENGINES, parameters__run__in=list(runs))


def list_stopped(edition: Edition) -> list[tuple[Submission, str]]:
    """List accepted submissions whose evaluation stopped, oldest first, each with what is missing: for organizers."""
    found = Submission.objects.filter(system__edition=edition, state=Submission.State.FAILED)
    shown = found.select_related("system__team").prefetch_related("events").order_by("created_at", "pk")
    return [(one, _last_note(one)) for one in shown]


def _last_note(submission: Submission) -> str:
    notes = [one.note for one in submission.events.all() if one.state == Submission.State.FAILED]
    return notes[-1] if notes else ""


def explain_hold(submission: Submission) -> str:
    """Return what keeps the evaluation of a submission from going on and what to do, in words; else empty."""
    if submission.state == Submission.State.FAILED:
        return _last_note(submission)
    if submission.state != Submission.State.EVALUATING:
        return ""
    ready = list_jobs(submission).filter(Q(after=None) | Q(after__state=JobState.SUCCEEDED), state=JobState.WAITING)
    served = served_queues(read_clock())
    held = next((job for job in ready if job.queue not in served), None)
    if held is None:
        return ""
    return f"“{held.title}” waits: no worker serves the queue {held.queue}. The operator has to start one that does."


def count_mismatches(submissions: Iterable[Submission], as_of: datetime | None = None) -> dict[int, int]:
    """Return how many numbers each submission reports otherwise than its files give, where it does: one query.

    As its newest finished evaluation says, or the newest that had finished by a time.
    """
    jobs = Job.objects.filter(
        kind="objective", state=JobState.SUCCEEDED, evaluation_run__submission__in=[one.pk for one in submissions]
    )
    if as_of is not None:
        jobs = jobs.filter(finished_at__lte=as_of)
    counted = jobs.order_by("evaluation_run__pk").values_list("evaluation_run__submission", "result__disagreements")
    return {submission: count for submission, count in dict(counted).items() if count}


def document_for(user: Any, submission: int, pk: int) -> SubmittedDocument:
    """Return a document of a submission of which this person may see the files."""
    documents = SubmittedDocument.objects.filter(submission__in=submissions_for(user, SystemPart.FILES))
    return get_object_or_404(documents.select_related("submission__system"), submission__pk=submission, pk=pk)


def uploads_for(user: Any) -> QuerySet[Upload]:
    """Return the uploads of this person's teams and editions; of an organizer their own corpora, too."""
    if not user.is_authenticated:
        return Upload.objects.none()
    own = Q(edition__organizers=user) | Q(team__memberships__user=user)
    if user.is_organizer:
        own |= Q(edition=None, created_by=user)
    found = Upload.objects.filter(pk__in=Upload.objects.filter(own).values("pk"))
    return found.select_related("edition", "team", "system")


def upload_for(user: Any, pk: UUID) -> Upload:
    return get_object_or_404(uploads_for(user), pk=pk)


def file_for(user: Any, system: str, pk: int) -> SubmittedFile:
    files = SubmittedFile.objects.select_related(
        "submission__system__corpus", "submission__system__edition", "data_set__corpus", "utterance__speaker"
    ).filter(submission__system__in=systems_for(user, SystemPart.SPEECH))
    return get_object_or_404(files, submission__system__name=system, pk=pk)


def list_parts(submission: Submission) -> list[SharedPart]:
    """List what is offered of a submission or released, with files: samples first, each set and speaker in turn."""
    return list_parts_and_descriptions(submission)[0]


def list_parts_and_descriptions(submission: Submission) -> tuple[list[SharedPart], list[SharedPart]]:
    """List as `list_parts`, and the released descriptions of all versions of its system, the newest first."""
    related = ("file__utterance__speaker", "file__data_set", "document", "submission__system")
    of_system = Q(submission__system=submission.system_id, document__isnull=False, released_at__isnull=False)
    found = SharedPart.objects.filter(Q(submission=submission) | of_system).select_related(*related)
    parts = list(found.order_by("document", "file__data_set", "pk"))
    released = (one for one in parts if one.document and one.released_at)
    standing = [one for one in released if one.submission.state != Submission.State.WITHDRAWN]
    standing.sort(key=lambda one: one.submission.version, reverse=True)
    return [one for one in parts if one.submission_id == submission.pk], standing


def list_offered(submission: Submission) -> list[SharedPart]:
    """Return what waits for its release by an organizer."""
    return [part for part in list_parts(submission) if part.released_at is None]


def count_offered(submissions: Iterable[Submission]) -> int:
    """Return how many parts of these wait for their release."""
    return SharedPart.objects.filter(submission__in=[one.pk for one in submissions], released_at=None).count()


def count_released(submissions: Iterable[Submission]) -> int:
    """Return how many parts of submissions everybody hears or reads while these stand on a published leaderboard."""
    return SharedPart.objects.filter(submission__in=[one.pk for one in submissions], released_at__isnull=False).count()


def find_description(submission: Submission) -> SubmittedDocument | None:
    """Return the system description that came with a submission."""
    return submission.documents.filter(kind=SubmittedDocument.Kind.DESCRIPTION).order_by("path").first()


def propose_samples(submission: Submission) -> list[SubmittedFile]:
    """Propose utterances of trial sets, each of another speaker, and the same ones for every system of a corpus."""
    files = submission.files.select_related("utterance", "data_set")
    chosen = files.filter(data_set__role=Role.TRIAL)
    found = sorted(
        chosen if chosen.exists() else files,
        key=lambda one: (abs((one.utterance.duration_s or 0.0) - _PROPOSED_S), one.utterance.name),
    )
    sets = len({one.data_set_id for one in found}) or 1
    in_set, speakers, proposed = dict.fromkeys({one.data_set_id for one in found}, 0), set[int](), list[SubmittedFile]()
    for one in found:
        is_new = one.utterance.speaker_id not in speakers and in_set[one.data_set_id] < -(-PROPOSED_SAMPLES // sets)
        if is_new and len(proposed) < min(PROPOSED_SAMPLES, SAMPLES_AT_MOST):
            proposed.append(one)
            speakers.add(one.utterance.speaker_id)
            in_set[one.data_set_id] += 1
    return proposed
