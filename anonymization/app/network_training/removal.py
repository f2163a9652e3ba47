"""How trainings are deleted: with their corpus, whose voices they learnt, or by who started them."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from anonymization.app.models import NetworkSeed, NetworkTraining
from portal.core.removal import RemovableKind, declare_kind, declare_rows


def _own_trainings(user: Any) -> QuerySet[NetworkTraining]:
    rows = NetworkTraining.objects.select_related("corpus")
    if user.is_staff:
        return rows
    return rows.filter(Q(created_by=user) | Q(corpus__created_by=user)) if user.is_organizer else rows.none()


declare_rows(NetworkTraining, "trainings of networks")
declare_rows(NetworkSeed, files=("files",))
declare_kind(
    RemovableKind(
        name="network-trainings",
        word="training",
        model=NetworkTraining,
        owned=_own_trainings,
        lookup="pk",
        archives=False,
        trail=lambda _: [("Systems", reverse("systems:list")), ("Trainings", reverse("network-trainings:list"))],
    )
)
