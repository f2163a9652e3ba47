"""Which jobs somebody sees, and what they are for: editions and corpora."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404

from portal.challenges.models import Edition
from portal.challenges.selectors import corpora_for
from portal.jobs.models import Job, JobEvent, JobState
from portal.jobs.selectors import DELETION

MAILS = ("send-notice",)
# Without an edition seen by who started them.
OF_TESTS = ("make-own-test", "design-study", "prepare-study", "analyse-study")


def jobs_for(user: Any) -> QuerySet[Job]:
    """Return the jobs that this person may see: the operator all, an organizer those of their editions and corpora.

    A deletion is seen by who started it.
    """
    jobs = Job.objects.select_related("created_by", "after")
    if user.is_staff:
        return jobs
    if not user.is_organizer:
        return jobs.none()
    of_corpora = Q(corpus="") | Q(corpus__in=corpora_for(user).order_by().values("name")) | Q(created_by=user)
    of_corpora &= ~Q(kind__in=OF_TESTS) | Q(created_by=user)
    others = Q(edition="") & of_corpora | Q(edition__in=user.organized_editions.values("name"))
    return jobs.filter(~Q(kind=DELETION) & others | Q(kind=DELETION, created_by=user))


def listed_jobs_for(user: Any, *, with_mails: bool = False) -> QuerySet[Job]:
    """Return those of them that the list shows: of the mails to people only what failed, unless all are asked for."""
    jobs = jobs_for(user)
    return jobs if with_mails else jobs.exclude(~Q(state=JobState.FAILED), kind__in=MAILS)


def list_purposes(jobs: QuerySet[Job]) -> dict[str, str]:
    """Return what jobs are for: by ``edition:NAME`` or ``corpus:NAME`` the title of the edition or the name of the
    corpus."""
    pairs = set(jobs.order_by().values_list("edition", "corpus").distinct())
    titles = find_titles(edition for edition, _ in pairs)
    purposes = {f"edition:{name}": title for name, title in titles.items()}
    purposes |= {f"corpus:{corpus}": f"Corpus {corpus}" for edition, corpus in pairs if corpus and not edition}
    return dict(sorted(purposes.items(), key=lambda pair: pair[1].lower()))


def find_titles(editions: Iterable[str]) -> dict[str, str]:
    """Return the titles of editions by their names; no query where there is none."""
    names = set(filter(None, editions))
    return dict(Edition.objects.filter(name__in=names).values_list("name", "title")) if names else {}


def job_for(user: Any, pk: Any) -> Job:
    return get_object_or_404(jobs_for(user), pk=pk)


def events_for(user: Any, job: Job) -> QuerySet[JobEvent]:
    """Return a job's history; technical detail is for the operator."""
    return job.events.all() if user.is_staff else job.events.exclude(level=JobEvent.Level.TRACE)
