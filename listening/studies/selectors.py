"""The only door to studies for organizers' pages: an organizer sees the studies of the editions they organise.

Anything else looks exactly like a study that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import Http404

from listening.models import Study
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_editions_for
from portal.jobs.services import NotPossible

TAKING_PART = Q(sessions__is_preview=False)


def studies_for(user: Any) -> QuerySet[Study]:
    """The studies of the editions that this person organises, newest first."""
    return Study.objects.filter(edition__in=managed_editions_for(user)).select_related("edition", "edition__corpus")


def study_for(user: Any, name: str) -> Study:
    """One of them by the name in its address; Http404 for any other."""
    study = studies_for(user).select_related("job").filter(name=name).first()
    if study is None:
        raise Http404
    return study


def editions_to_study(user: Any) -> QuerySet[Edition]:
    """The editions with a corpus that this person organises; "not found" for who is no organizer of anything."""
    managed = managed_editions_for(user)
    if not user.is_organizer and not managed.exists():
        raise Http404
    return managed.filter(corpus__isnull=False)


def edition_to_study(user: Any, name: str) -> Edition:
    """One of them by its name, which may come from anywhere; Http404 for any other."""
    if "\0" in name:  # which PostgreSQL takes in no text
        raise Http404
    edition = editions_to_study(user).filter(name=name).first()
    if edition is None:
        raise Http404
    return edition


def studies_with_counts(user: Any, edition: Edition | None = None) -> QuerySet[Study]:
    """The studies for a list: `blocks_made`, `blocks_finished` and `sessions_begun` beside each, in one query."""
    studies = studies_for(user) if edition is None else studies_for(user).filter(edition=edition)
    return studies.annotate(
        blocks_made=Count("blocks", distinct=True),
        blocks_finished=Count("blocks", filter=Q(blocks__is_finished=True), distinct=True),
        sessions_begun=Count("sessions", filter=TAKING_PART, distinct=True),
    ).order_by("-created_at", "-pk")


def locked_study(study: Study, states: Iterable[str], deed: str) -> Study:
    """The row of a study, held until the end of the transaction.

    Raises:
        NotPossible: it is in none of these states.
    """
    row = Study.objects.select_for_update(of=("self",)).select_related("edition").get(pk=study.pk)
    refuse_unless(row, states, deed)
    return row


def refuse_unless(study: Study, states: Iterable[str], deed: str) -> None:
    """Refuse a deed where the state does not allow it.

    Raises:
        NotPossible: it is in none of these states.
    """
    if study.state not in set(states):
        raise NotPossible(f"A study of the state “{study.get_state_display().lower()}” cannot be {deed}.")
