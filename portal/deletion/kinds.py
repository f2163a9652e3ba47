"""What people can archive and delete: of each kind, as addresses call it, what this person may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from anonymization.app.network_training.selectors import managed_trainings_for
from listening.app.models import Study
from listening.app.studies.selectors import studies_for
from portal.challenges.models import Edition
from portal.challenges.selectors import managed_corpora_for, managed_editions_for
from portal.submissions.models import Submission
from portal.submissions.selectors import managed_systems_for
from portal.teams.models import Team
from portal.teams.selectors import managed_teams_for


def _editions(user: Any) -> QuerySet[Any]:
    return Edition.objects.all() if user.is_staff else managed_editions_for(user)


def _teams(user: Any) -> QuerySet[Any]:
    return Team.objects.select_related("edition") if user.is_staff else managed_teams_for(user)


def _submissions(user: Any) -> QuerySet[Any]:
    found = Submission.objects.filter(system__in=managed_systems_for(user).order_by().values("pk"))
    return found.select_related("system__edition", "system__corpus", "system__team")


def _studies(user: Any) -> QuerySet[Any]:
    return Study.objects.select_related("edition") if user.is_staff else studies_for(user)


KINDS: dict[str, Callable[[Any], QuerySet[Any]]] = {
    "editions": _editions,
    "corpora": managed_corpora_for,
    "systems": managed_systems_for,
    "submissions": _submissions,
    "teams": _teams,
    "studies": _studies,
    "network-trainings": managed_trainings_for,
}


def find_thing(user: Any, kind: str, pk: int) -> Any:
    """Return a thing that this person may archive and delete; Http404 for any other."""
    if kind not in KINDS:
        raise Http404
    return get_object_or_404(KINDS[kind](user), pk=pk)
