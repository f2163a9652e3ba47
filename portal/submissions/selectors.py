"""The only door to systems for pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from portal.submissions.models import SubmittedFile, System


def systems_for(user: Any) -> QuerySet[System]:
    """The systems that this person may see: until results are published, organizers only."""
    if user.is_authenticated and user.is_organizer:
        return System.objects.select_related("corpus", "created_by")
    return System.objects.none()


def system_for(user: Any, name: str) -> System:
    system = systems_for(user).filter(name=name).first()
    if system is None:
        raise Http404
    return system


def file_for(user: Any, system: str, pk: int) -> SubmittedFile:
    files = SubmittedFile.objects.select_related(
        "submission__system__corpus", "data_set__corpus", "utterance__speaker"
    ).filter(submission__system__in=systems_for(user))
    file = files.filter(submission__system__name=system, pk=pk).first()
    if file is None:
        raise Http404
    return file
