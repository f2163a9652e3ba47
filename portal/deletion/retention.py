"""Deletes the submitted speech of an edition on the date that its organizers chose, and tells them two weeks before.

What goes: the anonymised recordings of its systems with their speaker vectors and recognised words that
engines keep, released samples, archives of speech to download, and the stimuli of its closed listening tests. Rows,
numbers, figures, documents and answers stay, and so does the corpus, which may be of others. Nothing goes before the
mail of two weeks ago, while a listening test can still be heard, or while a job of the edition is under way. A crash
loses nothing: each piece is a transaction, and what is left goes the next time.
"""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Q, QuerySet

from listening.app.models import Stimulus, Study
from portal.challenges.job_pages.selectors import MAILS
from portal.challenges.models import DataFile, Edition
from portal.challenges.rules import SPEECH_NOTICE, speech_deletion_time
from portal.core import audit
from portal.core.mail import absolute, render_mail
from portal.core.models import AuditEvent
from portal.deletion.derived_data import delete_results
from portal.deletion.files import note_files
from portal.jobs.models import ACTIVE_STATES, Job
from portal.submissions.models import SharedPart, SubmittedFile

log = logging.getLogger(__name__)
ANNOUNCED, DELETED = "edition.speech_deletion_announced", "edition.speech_deleted"
AT_ONCE = 500
HEARD = Study.State.PREPARING, Study.State.OPEN, Study.State.PAUSED


def _planned() -> QuerySet[Edition]:
    """Return editions with a date for their speech at which it was not deleted yet."""
    waiting = Q(speech_deleted_at=None) | Q(speech_deleted_at__lt=F("speech_kept_until"))
    return Edition.objects.filter(waiting, speech_kept_until__isnull=False).order_by("pk")


def announce_deletions(now: datetime) -> int:
    """Mail the organizers of editions whose speech is deleted within two weeks; how many editions were announced."""
    due = _planned().filter(speech_kept_until__lte=now + SPEECH_NOTICE)
    return sum(_announce(one, now) for one in due if _find_announcement(one) is None)


def _find_announcement(edition: Edition) -> datetime | None:
    """Return when the organizers were told of the date that the edition has now."""
    events = AuditEvent.objects.filter(
        action=ANNOUNCED, subject_type=edition._meta.label_lower, subject_id=str(edition.pk)
    )
    found = (event.at for event in events if event.data.get("until") == _until(edition))
    return next(found, None)


def _until(edition: Edition) -> str:
    return edition.speech_kept_until.isoformat() if edition.speech_kept_until else ""


def _announce(edition: Edition, now: datetime) -> bool:
    """Return whether its organizers are told; where a mail fails, it is tried again the next time, and nothing is
    deleted."""
    readers = [person.email for person in edition.organizers.filter(is_active=True)]
    if not readers or edition.speech_kept_until is None:
        return False
    context = {
        "edition": edition,
        "at": speech_deletion_time(edition.speech_kept_until, now),
        "address": absolute(edition.get_absolute_url()),
    }
    mail = render_mail("deletion/mail/speech.txt", context)
    try:
        EmailMessage(mail.subject, f"{mail.text}\n", bcc=readers).send()
    except Exception:
        log.exception("The organizers of %s could not be told that its speech will be deleted", edition.name)
        return False
    audit.record(ANNOUNCED, edition, until=_until(edition))
    return True


def delete_due_speech(now: datetime) -> int:
    """Delete the speech of every edition whose time has come; of how many."""
    count = 0
    for edition in _planned().filter(speech_kept_until__lte=now):
        kept_until = edition.speech_kept_until
        at = speech_deletion_time(kept_until, _find_announcement(edition)) if kept_until else None
        if at is not None and at <= now and not _is_in_use(edition):
            delete_speech(edition, now)
            count += 1
    return count


def _is_in_use(edition: Edition) -> bool:
    """Return whether somebody can hear it, or a job works with it; then it waits for the next time."""
    jobs = Job.objects.filter(edition=edition.name, state__in=ACTIVE_STATES).exclude(kind__in=MAILS)
    return edition.studies.filter(state__in=HEARD).exists() or jobs.exists()


def delete_speech(edition: Edition, now: datetime) -> Counter[str]:
    """Delete the submitted speech of an edition at once; how many of what. The files follow within two days."""
    done: Counter[str] = Counter()
    files = SubmittedFile.objects.filter(submission__system__edition=edition).exclude(audio="")
    while some := list(files.order_by("pk").values_list("pk", "audio")[:AT_ONCE]):
        _empty(dict(some))
        done["anonymised recordings"] += len(some)
    heard = Stimulus.objects.filter(study__edition=edition).exclude(file="")
    while some := list(heard.order_by("pk").values_list("pk", "file")[:AT_ONCE]):
        with transaction.atomic():
            note_files(key for _, key in some)
            Stimulus.objects.filter(pk__in=[pk for pk, _ in some]).update(file="")
        done["stimuli"] += len(some)
    with transaction.atomic():
        edition = Edition.objects.select_for_update(of=("self",)).get(pk=edition.pk)
        archives = edition.data_files.filter(kind=DataFile.Kind.SPEECH)
        done["archives of speech"] = archives.count()
        note_files(archives.values_list("key", flat=True))
        archives.delete()
        edition.speech_deleted_at, edition.shares_data = now, False
        edition.save(update_fields=["speech_deleted_at", "shares_data"])
        audit.record(DELETED, edition, rows={words: count for words, count in done.items() if count})
    return done


@transaction.atomic
def _empty(some: dict[int, str]) -> None:
    """Take the recordings from these files, with what was made of them alone."""
    note_files(some.values())
    SharedPart.objects.filter(file__in=some).delete()
    SubmittedFile.objects.filter(pk__in=some).update(audio="")
    delete_results(set(some.values()))
