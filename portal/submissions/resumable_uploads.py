"""Uploads from their first byte to the submission, the corpus or the listening test that they become.

The row is the truth: `offset` counts the bytes that are on disk, and reaches `size` only in the transaction that makes
the submission, starts the import, or writes down why there is none. A process that dies at any moment therefore leaves
an upload that its sender, or anybody else who may, simply continues.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Q, QuerySet, Sum
from django.db.models.functions import Least
from django.utils import timezone

from common.errors import NotPossible
from portal.challenges.models import Corpus, Edition
from portal.core import audit, upload_files
from portal.core.maintenance import find_seen
from portal.core.storage import StorageAway
from portal.corpora.services import import_problem, start_import
from portal.jobs.models import ACTIVE_STATES, Job, JobState
from portal.jobs.services import create_job
from portal.submissions import receiving, rules
from portal.submissions.leftovers import tidy_machine
from portal.submissions.models import TEST_JOB, Submission, System, Upload
from portal.submissions.receiving import Checksum, Read, UploadPart, UploadRefusal
from portal.submissions.services import baseline_problem, create_submission, create_system, start_intake
from portal.teams.models import Team

UNCOUNTED = (Submission.State.REFUSED, Submission.State.WITHDRAWN)
UNFINISHED = (Upload.State.RECEIVING, Upload.State.REFUSED)
log = logging.getLogger(__name__)
HASH_BYTES = 1 << 20
SUBMITTED, IMPORTED = "This upload is a submission already.", "This upload is imported already, see the list of jobs."


@dataclass(frozen=True)
class UploadPlan:
    """What an upload shall become: a further version of `system`, or a new system of `kind` with `title`."""

    edition: Edition
    team: Team | None
    system: System | None = None
    kind: str = System.Kind.PRIMARY
    title: str = ""


@dataclass(frozen=True)
class CorpusPlan:
    """What the archive of a corpus shall become: the corpus `name`, read with `options` (of `ImportOptions`)."""

    name: str
    options: Mapping[str, Any]


def upload_path(upload: Upload) -> Path:
    """Return where the bytes of a complete upload lie on this machine, once they are fetched."""
    return upload_files.readable_path(upload.pk)


def used_submissions(team: Team) -> int:
    """Return how many submissions of a team count against its quota; what was evaluated counts even if withdrawn."""
    counted = ~Q(state__in=UNCOUNTED) | Q(evaluated_at__isnull=False)
    return Submission.objects.filter(counted, system__team=team).count()


def unfinished_uploads(edition: Edition, team: Team | None) -> QuerySet[Upload]:
    """Return what this team, or the organizers with baselines, began to send and did not make a submission of."""
    found = Upload.objects.filter(edition=edition, team=team, state__in=UNFINISHED, expires_at__gt=timezone.now())
    return found.select_related("edition", "team", "system", "created_by")


def submission_problem(edition: Edition, team: Team | None, *, by: Any, now: datetime) -> str:
    """Return why `by` cannot submit for this team now; "" where all is well."""
    by_organizer = by is not None and edition.organizers.filter(pk=by.pk).exists()
    if team is not None and not by_organizer and not team.memberships.filter(user=by).exists():
        return f"Only members of the team “{team}” and the organizers of its edition can submit for it."
    used = used_submissions(team) if team is not None else 0
    return rules.refusal(edition, team, used=used, by_organizer=by_organizer, now=now)


@transaction.atomic
def create_upload(
    *, plan: UploadPlan, file_name: str, size: int, claimed_sha256: str = "", by: Any, now: datetime
) -> Upload:
    """Begin an upload, or find the one that this content has: unfinished, it becomes what `plan` says now.

    Content is known by the SHA-256 that its sender claims. What became a submission of the same plan, which stands, is
    found too, so that a sender who did not hear of it neither sends nor submits it twice.

    Raises:
        NotPossible: the archive could not become a submission, so that sending it would be in vain.
    """
    edition, team = _lock_owner(plan.edition.pk, plan.team.pk if plan.team else None)
    kind = plan.kind if team else ""
    asked = {"system": plan.system} if plan.system else {"system_kind": kind, "system_title": plan.title}
    target: dict[str, Any] = {"system": None, "system_kind": "", "system_title": ""} | asked
    content: dict[str, Any] = {"size": size, "claimed_sha256": claimed_sha256.lower()}
    unfinished = None
    if claimed_sha256:
        same = Upload.objects.filter(edition=edition, team=team, **content).order_by("-created_at")
        unfinished = same.filter(state__in=UNFINISHED, expires_at__gt=now).first()
        submitted = same.filter(state=Upload.State.COMPLETE, submission__isnull=False, **asked)
        if (standing := submitted.exclude(submission__state__in=UNCOUNTED).first()) is not None:
            return standing
    if plan.system is None and team is None:
        _require(baseline_problem(edition, plan.title), UploadRefusal.INVALID)
    if unfinished is not None:
        return _change(unfinished, target, by)
    _require(rules.name_problem(file_name), UploadRefusal.INVALID)
    _require(submission_problem(edition, team, by=by, now=now), UploadRefusal.FORBIDDEN)
    _require(rules.size_problem(edition, size), UploadRefusal.TOO_LARGE if size else UploadRefusal.INVALID)
    upload = Upload(edition=edition, team=team, **target)
    audited = {"edition": edition.name, "team": str(team or "")}
    return _begin(upload, file_name=file_name, **content, by=by, now=now, audited=audited)


@transaction.atomic
def create_corpus_upload(
    *, plan: CorpusPlan, file_name: str, size: int, claimed_sha256: str = "", by: Any, now: datetime
) -> Upload:
    """Begin the upload of a corpus, or find the one that this content has, as `create_upload`.

    Raises:
        NotPossible: the corpus could not be imported, so that sending it would be in vain.
    """
    wanted = {"name": plan.name, **plan.options}
    same = _find_same(by, size, claimed_sha256)
    standing = same.filter(state=Upload.State.COMPLETE, imported_as=wanted).first()
    if standing is not None and _is_imported(standing):
        return standing
    _require(_import_problem(by, wanted), UploadRefusal.FORBIDDEN)
    if (unfinished := same.filter(state__in=UNFINISHED, expires_at__gt=now).first()) is not None:
        return _change(unfinished, {"imported_as": wanted}, by)
    _require(rules.name_problem(file_name), UploadRefusal.INVALID)
    _require(rules.corpus_size_problem(size), UploadRefusal.TOO_LARGE if size else UploadRefusal.INVALID)
    content: dict[str, Any] = {"size": size, "claimed_sha256": claimed_sha256.lower()}
    upload = Upload(imported_as=wanted)
    return _begin(upload, file_name=file_name, **content, by=by, now=now, audited={"corpus": plan.name})


@transaction.atomic
def create_test_upload(
    *, test: Mapping[str, Any], title: str, file_name: str, size: int, claimed_sha256: str, by: Any, now: datetime
) -> Upload:
    """Begin the upload of own recordings for a listening test, or find the one that this content has.

    What has arrived and could not be used as its sender said before is used as they say now, without another sending.

    Args:
        test: what was sent of the form of the test, which its caller has found valid.

    Raises:
        NotPossible: no test could be made of it, so that sending it would be in vain.
    """
    wanted = {"test": {**test}, "name": title}
    _require(_import_problem(by, wanted), UploadRefusal.FORBIDDEN)
    same = _find_same(by, size, claimed_sha256)
    arrived = same.filter(state=Upload.State.COMPLETE, imported_as__has_key="test").first()
    if arrived is not None and upload_files.is_there(arrived.pk):
        if (job := find_import(arrived)) is None or job.has_ended:  # it failed: what was wrong is corrected now
            _import_upload(_change(arrived, {"imported_as": wanted}, by), by)
        elif arrived.imported_as != wanted:
            title = arrived.imported_as["name"]
            sentence = f"These recordings are being made into the test “{title}”. Wait until it is made."
            raise NotPossible(sentence, code=UploadRefusal.FORBIDDEN)
        return arrived
    if (unfinished := same.filter(state__in=UNFINISHED, expires_at__gt=now).first()) is not None:
        return _change(unfinished, {"imported_as": wanted}, by)
    _require(rules.name_problem(file_name), UploadRefusal.INVALID)
    _require(rules.recordings_size_problem(size), UploadRefusal.TOO_LARGE if size else UploadRefusal.INVALID)
    content: dict[str, Any] = {"size": size, "claimed_sha256": claimed_sha256.lower()}
    upload = Upload(imported_as=wanted)
    return _begin(upload, file_name=file_name, **content, by=by, now=now, audited={"test": title})


def _find_same(by: Any, size: int, claimed_sha256: str) -> QuerySet[Upload]:
    """Return what this person has sent of this content without an edition; none where nothing is claimed of it."""
    if not claimed_sha256:
        return Upload.objects.none()
    _lock_importer(by.pk)  # of two at once one begins it
    same = Upload.objects.filter(edition=None, created_by=by, size=size, claimed_sha256=claimed_sha256.lower())
    return same.order_by("-created_at")


def _change(upload: Upload, target: dict[str, Any], by: Any) -> Upload:
    """Let an unfinished upload become something else than what it was begun for; its bytes are the same."""
    other = {name: value for name, value in target.items() if getattr(upload, name) != value}
    if not other:
        return upload
    before = {name: getattr(upload, name) for name in other}
    for name, value in other.items():
        setattr(upload, name, value)
    upload.save(update_fields=list(other))
    audit.record("upload.changed", upload, actor=by, changes=audit.changes(before, other))
    return upload


def _begin(
    upload: Upload, *, file_name: str, size: int, claimed_sha256: str, by: Any, now: datetime, audited: dict[str, str]
) -> Upload:
    """Keep a new upload, of which nothing is here yet: it lapses soon unless something comes."""
    upload.file_name, upload.size, upload.claimed_sha256 = file_name, size, claimed_sha256
    upload.created_by, upload.created_at, upload.expires_at = by, now, now + rules.EMPTY_LASTS
    tidy_machine()
    _require_room(upload, now)
    upload.save(force_insert=True)
    upload.is_new = True
    audit.record("upload.begun", upload, actor=by, **audited, bytes=size)
    return upload


def unfinished_imports(user: Any) -> QuerySet[Upload]:
    """Return archives of corpora and own recordings that this person has begun to send and that became nothing yet."""
    found = Upload.objects.filter(edition=None, created_by=user, state__in=UNFINISHED, expires_at__gt=timezone.now())
    return found.select_related("created_by")


def list_failed_tests(user: Any) -> list[Upload]:
    """Return archives of own recordings of which this person could make no listening test yet, while they are here."""
    found = Upload.objects.filter(created_by=user, state=Upload.State.COMPLETE, imported_as__has_key="test")
    found = found.filter(expires_at__gt=timezone.now()).select_related("created_by")
    return [one for one in found if _is_failed_test(one) and upload_files.is_there(one.pk)]


def _is_failed_test(upload: Upload) -> bool:
    job = find_import(upload) if "test" in upload.imported_as else None
    return job is not None and job.has_ended and job.state != JobState.SUCCEEDED


def find_import(upload: Upload) -> Job | None:
    """Return the newest job that imports the corpus of an upload, or makes its listening test."""
    jobs = Job.objects.filter(kind__in=("import-corpus", TEST_JOB), parameters__upload=str(upload.pk))
    return jobs.order_by("-created_at").first()


def _is_imported(upload: Upload) -> bool:
    """Return whether a corpus is, or is just being, what this upload made of it."""
    name = upload.imported_as["name"]
    newest = Job.objects.filter(kind="import-corpus", parameters__name=name).order_by("-created_at").first()
    if newest is None or newest.parameters.get("upload") != str(upload.pk):
        return False
    is_there = newest.state == JobState.SUCCEEDED and Corpus.objects.filter(name=name).exists()
    return is_there or newest.state in ACTIVE_STATES


def _import_problem(by: Any, wanted: Mapping[str, Any]) -> str:
    if by is None or not by.is_organizer:
        return f"Only organizers {'make listening tests' if 'test' in wanted else 'import corpora'}."
    return "" if "test" in wanted else import_problem(wanted["name"], by)


def _require_room(upload: Upload, now: datetime) -> None:
    """Refuse an upload that the disk, or its sender's share of it, has no room for; the first of which bytes are here
    goes on nevertheless, so that unfinished ones do not block each other.

    Raises:
        NotPossible: with what to do.
    """
    if upload.edition is None:
        largest, own = rules.LARGEST_CORPUS_BYTES, unfinished_imports(upload.created_by)
    else:
        largest, own = upload.edition.largest_archive_bytes, unfinished_uploads(upload.edition, upload.team)
    if not _is_first(upload, own):
        others = own.exclude(pk=upload.pk).aggregate(count=Count("pk"), bytes=Sum("offset", default=0))
        refusal = rules.unfinished_problem(largest, upload.size, unfinished=others["count"], held=others["bytes"])
        _require(refusal, UploadRefusal.FORBIDDEN)
    free, promised = receiving.free_bytes(), _promised(upload, now)
    _require(rules.room_problem(upload.size - upload.offset, free=free, promised=promised), UploadRefusal.NO_ROOM)


def _is_first(upload: Upload, among: QuerySet[Upload]) -> bool:
    """Return whether something of this upload is here, and of none that was begun before it."""
    begun_before = Q(created_at__lt=upload.created_at) | Q(created_at=upload.created_at, pk__lt=upload.pk)
    return upload.offset > 0 and not among.filter(begun_before, offset__gt=0).exists()


def receive_part(
    *, upload: Upload, offset: int, read: Read, length: int | None = None, checksum: Checksum | None = None, by: Any
) -> Upload:
    """Take a part of an upload from where the last one ended; the last part of all makes the submission.

    Args:
        offset: where the sender believes that the part begins.
        read: gives at most so many of the next bytes, and none at the end.
        length: how many bytes the sender announced, where it did.
        by: who sends it.

    Raises:
        NotPossible: nothing may be added here, or every byte came but no submission may be made of them.
    """
    if upload.state == Upload.State.COMPLETE and offset == upload.size:
        return upload  # the sender did not hear that the last part had arrived
    require_unfinished(upload)
    if upload.state == Upload.State.REFUSED and offset == upload.size:
        return _finish(upload, timezone.now(), by)
    with receiving.held(upload.pk, is_new=upload.offset == 0) as file:
        upload.refresh_from_db()
        _require_receiving(upload)
        if offset != upload.offset:
            sentence = f"This part begins at byte {offset}, but {upload.offset} bytes are here. Continue from there."
            raise NotPossible(sentence, code=UploadRefusal.WRONG_OFFSET)
        if length is not None and length > upload.size - offset:
            raise NotPossible(
                f"The upload was announced with {upload.size} bytes; this is more.", code=UploadRefusal.TOO_LARGE
            )
        _require_room(upload, timezone.now())
        part = UploadPart(file, offset, upload.size)
        for end in part.receive(read) if checksum is None else part.receive_checked(read, checksum, length):
            _keep(upload, end)
            upload_files.send_on(upload.pk, end)
            _require_no_maintenance()
            _require_room(upload, timezone.now())  # others may have come meanwhile
        if part.is_last:
            _require_no_maintenance()
            _pass_on(upload)
            finished = _finish(upload, timezone.now(), by)
            upload_files.drop_received(upload.pk)
            return finished
    return upload


def _require_no_maintenance() -> None:
    """Stop what is being sent when maintenance begins: a copy made from then on holds all that was acknowledged.

    Raises:
        NotPossible: maintenance has begun.
    """
    if maintenance := find_seen():
        raise NotPossible(maintenance.sentence, code=UploadRefusal.AWAY)


def _pass_on(upload: Upload) -> None:
    """Have the whole upload where workers read it.

    Raises:
        NotPossible: the store of files is away; the last bytes are not acknowledged.
    """
    try:
        upload_files.complete(upload.pk, upload.size)
    except StorageAway as error:
        log.error("Upload %s is not complete: %s", upload.pk, error)
        sentence = "The portal's store of files does not answer just now. What was received is kept; continue later."
        raise NotPossible(sentence, code=UploadRefusal.AWAY) from error


def _keep(upload: Upload, end: int) -> None:
    """Acknowledge every byte before `end`."""
    now = timezone.now()
    upload.offset, upload.last_byte_at, upload.expires_at = end, now, now + rules.UNFINISHED_LASTS
    receiving_still = Upload.objects.filter(pk=upload.pk, state=Upload.State.RECEIVING)
    if not receiving_still.update(offset=end, last_byte_at=now, expires_at=upload.expires_at):
        raise NotPossible("This upload was discarded meanwhile. Upload the file again.", code=UploadRefusal.GONE)


def submit_again(*, upload: Upload, now: datetime, by: Any) -> Upload:
    """Ask once more for the submission of an upload of which every byte is here; may be repeated.

    Raises:
        NotPossible: bytes are missing, or no submission may be made, still; that is written down.
    """
    if upload.offset < upload.size:
        raise NotPossible(
            f"{upload.size - upload.offset} bytes of this upload have not come yet.", code=UploadRefusal.UNFINISHED
        )
    return _finish(upload, now, by)


def _finish(upload: Upload, now: datetime, by: Any) -> Upload:
    """Make a submission of an upload whose last byte is on disk, or write down why none may be made."""
    finished, refused = _settle(upload, now, by)
    if refused is not None:
        raise refused
    return finished


@transaction.atomic
def _settle(upload: Upload, now: datetime, by: Any) -> tuple[Upload, NotPossible | None]:
    # The owner first, as whoever looks for this content does: in the other order each would wait for the other.
    if upload.edition_id is not None:
        _lock_owner(upload.edition_id, upload.team_id)
    elif upload.created_by_id is not None:
        _lock_importer(upload.created_by_id)
    locked = Upload.objects.select_for_update(of=("self",)).get(pk=upload.pk)
    if locked.state == Upload.State.COMPLETE:
        return locked, None
    require_unfinished(locked)
    locked.offset, locked.completed_at = locked.size, now
    if locked.state == Upload.State.RECEIVING:
        locked.last_byte_at, locked.expires_at = now, now + rules.UNFINISHED_LASTS
        locked.save(update_fields=["offset", "completed_at", "last_byte_at", "expires_at"])
    try:
        if locked.edition_id is None:
            _import_upload(locked, by)
        else:
            submit_upload(upload=locked, now=now, by=by)
    except NotPossible as error:
        locked.state, locked.refusal = Upload.State.REFUSED, str(error)
        locked.save(update_fields=["state", "refusal"])
        audit.record("upload.refused", locked, actor=by, refusal=str(error))
        return locked, error
    return locked, None


@transaction.atomic
def submit_upload(*, upload: Upload, now: datetime, by: Any = None) -> Submission:
    """Return the submission of a complete upload, made unless it exists. `by`: who asks; None for who began it.

    Team or edition is locked meanwhile, so that of two that ask for the last place of a quota one gets it.

    Raises:
        NotPossible: none may be made (any more).
    """
    if upload.state == Upload.State.COMPLETE:
        return upload.submission
    by = by or upload.created_by
    edition, team = _lock_owner(upload.edition_id, upload.team_id)
    _require(submission_problem(edition, team, by=by, now=now), UploadRefusal.FORBIDDEN)
    _require(rules.size_problem(edition, upload.size), UploadRefusal.TOO_LARGE)
    upload.system = upload.system or _new_system(upload, edition, team, by)
    upload.state, upload.refusal = Upload.State.COMPLETE, ""
    upload.save(update_fields=["state", "refusal", "system"])
    is_late = team is not None and rules.is_late(edition, now)
    note = f"{upload.file_name} arrived{' after the deadline' if is_late else ''}."
    submission = create_submission(system=upload.system, upload=upload, note=note, by=by, is_late=is_late)
    start_intake(submission=submission, by=by)
    return submission


def _import_upload(upload: Upload, by: Any) -> None:
    """Start the import of a corpus, or the making of a listening test, whose archive is complete.

    Raises:
        NotPossible: it cannot be imported (any more).
    """
    by = by or upload.created_by
    wanted = upload.imported_as | {"upload": str(upload.pk), "sha256": upload.claimed_sha256}
    _require(_import_problem(by, wanted), UploadRefusal.FORBIDDEN)
    wanted |= {"folder": upload.file_name}
    try:
        if "test" in wanted:
            create_job(kind=TEST_JOB, title=f"Listening test “{wanted['name']}”", parameters=wanted, by=by)
        else:
            start_import(by=by, **wanted)
    except NotPossible as error:
        raise NotPossible(str(error), code=UploadRefusal.FORBIDDEN) from error
    upload.state, upload.refusal = Upload.State.COMPLETE, ""
    upload.save(update_fields=["state", "refusal"])


def _lock_owner(edition: Any, team: int | None) -> tuple[Edition, Team | None]:
    """Lock the team of an upload, or without one its edition; return both as they are now."""
    if team is None:
        return Edition.objects.select_for_update(no_key=True).get(pk=edition), None
    locked = Team.objects.select_for_update(of=("self",), no_key=True).select_related("edition").get(pk=team)
    return locked.edition, locked


def _lock_importer(user: int) -> None:
    """Lock who sends archives of corpora."""
    get_user_model().objects.select_for_update(no_key=True).get(pk=user)


def _new_system(upload: Upload, edition: Edition, team: Team | None, by: Any) -> System:
    if team is None:
        label = title = upload.system_title
        if made_meanwhile := System.objects.filter(edition=edition, team=None, label=label).first():
            return made_meanwhile
    else:
        taken = System.objects.filter(edition=edition).values_list("label", flat=True)
        label = rules.next_label(f"{team.label}-{upload.system_kind[0]}", taken)
        title = upload.system_title or label
    return create_system(edition=edition, label=label, title=title, team=team, kind=upload.system_kind, by=by)


@transaction.atomic
def abandon_upload(*, upload: Upload, by: Any) -> Upload:
    """Discard an upload that is unfinished or made no listening test, with everything that was received of it.

    Raises:
        NotPossible: it is a submission already, or gone.
    """
    locked = Upload.objects.select_for_update(of=("self",)).get(pk=upload.pk)
    if locked.state == Upload.State.COMPLETE and locked.edition_id is not None:
        raise NotPossible(f"{SUBMITTED} Withdraw the submission instead.", code=UploadRefusal.FINISHED)
    if not _is_failed_test(locked):
        require_unfinished(locked)
    locked.state = Upload.State.ABANDONED
    locked.save(update_fields=["state"])
    audit.record("upload.discarded", locked, actor=by)
    transaction.on_commit(lambda: upload_files.remove(locked.pk))
    return locked


def expire_uploads(now: datetime) -> int:
    """Give up what was not finished in time; how many uploads that were."""
    overdue = Upload.objects.filter(state__in=UNFINISHED, expires_at__lte=now)
    return sum(_expire(pk, now) for pk in list(overdue.values_list("pk", flat=True)))


@transaction.atomic
def _expire(pk: UUID, now: datetime) -> bool:
    # Asked again: its sender may have gone on meanwhile.
    overdue = Upload.objects.filter(pk=pk, state__in=UNFINISHED, expires_at__lte=now)
    if not overdue.update(state=Upload.State.EXPIRED):
        return False
    audit.record("upload.expired", Upload.objects.get(pk=pk))
    transaction.on_commit(lambda: upload_files.remove(pk))
    return True


def hash_upload(upload: Upload, progress: Callable[[int, int], None] = lambda *_: None) -> bool:
    """Store the SHA-256 of what came, once; whether it is what the sender claimed (true where nothing was claimed).

    Args:
        progress: told how many bytes of how many have been read.
    """
    if upload.sha256:
        return upload.claimed_sha256 in {"", upload.sha256}
    digest, done = hashlib.sha256(), 0
    with upload_path(upload).open("rb") as stream:
        while piece := stream.read(HASH_BYTES):
            digest.update(piece)
            done += len(piece)
            progress(done, upload.size)
    upload.sha256 = digest.hexdigest()
    upload.save(update_fields=["sha256"])
    return upload.claimed_sha256 in {"", upload.sha256}


def _promised(upload: Upload, now: datetime) -> int:
    """Return how many more bytes other uploads that are coming may need; the first waits for none.

    Each holds at most as much again as it has brought: one of which little came holds little, whatever it announced.
    """
    coming = Upload.objects.filter(state=Upload.State.RECEIVING, last_byte_at__gt=now - rules.COMING_LASTS)
    if _is_first(upload, coming):
        return 0
    rest = ExpressionWrapper(F("size") - F("offset"), output_field=BigIntegerField())
    held = Least(rest, F("offset"), output_field=BigIntegerField())
    return int(coming.exclude(pk=upload.pk).aggregate(bytes=Sum(held, default=0))["bytes"])


def _require(sentence: str, reason: UploadRefusal) -> None:
    if sentence:
        raise NotPossible(sentence, code=reason)


def _require_receiving(upload: Upload) -> None:
    require_unfinished(upload)
    if upload.state != Upload.State.RECEIVING:
        raise NotPossible("Every byte of this upload is here already.", code=UploadRefusal.FINISHED)


def require_unfinished(upload: Upload) -> None:
    """Refuse an upload that is over.

    Raises:
        NotPossible: it was discarded, has expired, is a submission, or imported.
    """
    if upload.state == Upload.State.COMPLETE:
        raise NotPossible(IMPORTED if upload.edition_id is None else SUBMITTED, code=UploadRefusal.FINISHED)
    if upload.state == Upload.State.ABANDONED:
        raise NotPossible("This upload was discarded. Upload the file again.", code=UploadRefusal.GONE)
    if upload.state == Upload.State.EXPIRED or upload.expires_at <= timezone.now():
        raise NotPossible(
            "This upload was not finished in time and has expired. Upload the file again.", code=UploadRefusal.GONE
        )
