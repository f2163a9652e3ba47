"""How editions are put away: who may, what goes with them, and why one of them must stay."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from portal.challenges import rules, services
from portal.challenges.models import DataFile, Edition
from portal.challenges.selectors import has_submissions, was_published
from portal.core.removal import RemovableKind, declare_kind, declare_rows, declare_rule


def _own_editions(user: Any) -> QuerySet[Edition]:
    return Edition.objects.all() if user.is_staff else Edition.objects.filter(organizers=user)


def _edition_problem(edition: Edition) -> str:
    return rules.edition_removal_problem(was_published=was_published(edition))


def edition_trail(edition: Edition | None) -> list[tuple[str, str]]:
    """The list of editions, and the one above a page where there is one."""
    above = [] if edition is None else [(str(edition), edition.get_absolute_url())]
    return [("Editions", reverse("editions:list")), *above]


declare_rows(DataFile, "files to download", files=("key",))
declare_rule(Edition, _edition_problem)
declare_kind(
    RemovableKind(
        name="editions",
        word="edition",
        model=Edition,
        owned=_own_editions,
        edit=lambda edition: reverse("editions:edit", args=[edition.name]),
        name_problem=lambda edition: rules.name_problem(has_submissions=has_submissions(edition)),
        names=lambda _: {"title": "Title"},
        rename=services.rename_edition,
        jobs=lambda edition: Q(edition=edition.name),
        archiving_note=lambda _: (
            "Its systems and listening tests leave the lists with it. Home tells organizers and teams "
            "that it is archived; jobs and the audit log still name it."
        ),
        edition=lambda edition: edition,
        trail=lambda _: edition_trail(None),
    )
)
