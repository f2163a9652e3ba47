"""What the pages show on which things are put away: what is archived, what was deleted, and what would go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse

from common.memory import format_size
from common.tables import Cell, Column, Table, plain_table
from portal.core.labels import MISSING, moment_cell
from portal.core.models import AuditEvent
from portal.core.removal import Preview, RemovableKind, count_named, find_kind, find_rows, find_thing, list_kinds
from portal.removal.services import find_archiving_problem

SHOWN = 100


@dataclass(frozen=True)
class Managed:
    """A thing as a person may manage it; `is_owner`: not only its names."""

    kind: RemovableKind
    thing: Any
    is_owner: bool = True

    @property
    def is_archived(self) -> bool:
        return self.kind.archives and self.thing.archived_at is not None

    @property
    def key(self) -> str:
        """As addresses hold it."""
        return str(getattr(self.thing, self.kind.lookup))

    @property
    def short_name(self) -> str:
        """Return the name by which it is told from another of the same title; empty where it is its title."""
        return "" if self.key == str(self.thing) or self.kind.lookup == "pk" else self.key

    @property
    def edition(self) -> Any:
        """Return the edition that it is part of, or None."""
        edition = self.kind.edition(self.thing)
        return None if edition == self.thing else edition

    @property
    def archiving_note(self) -> str:
        """What else leaves lists while it is archived, or what stays public."""
        return self.kind.archiving_note(self.thing)

    @property
    def edit(self) -> str:
        """The address of the form that changes its names, where it has one."""
        return self.kind.edit(self.thing)

    @property
    def name_problem(self) -> str:
        """Why that form cannot change the name in its address, or its only name, any more."""
        return self.kind.name_problem(self.thing)

    @property
    def trail(self) -> Sequence[tuple[str, str]]:
        """The pages above its own, each with its name and address."""
        return self.kind.trail(self.thing)

    @property
    def address(self) -> str:
        return reverse("removal:thing", args=[self.kind.name, self.key])


def find_managed(user: Any, kind: str, key: str) -> Managed:
    """A thing that this person may manage, or "not found"."""
    found = find_kind(kind)
    return Managed(found, *find_thing(found, user, key))


def archiving(found: Managed) -> dict[str, Any]:
    """What a page says before a thing is archived."""
    problem = find_archiving_problem(kind=found.kind, thing=found.thing)
    belonging = count_named(
        {model: rows for model, rows in find_rows(found.thing).items() if model is not found.kind.model}
    )
    return {
        "question": f"Archive {found.thing}?",
        "trail": [*found.trail, (str(found.thing), found.thing.get_absolute_url()), ("Manage", found.address)],
        "problems": [problem] if problem else [],
        "sentences": [
            f"The {found.kind.word} leaves the lists and cannot be chosen. {found.archiving_note}",
            "Its address still works for everybody who may see it, nothing is deleted, and you can restore it.",
        ],
        "facts_title": "What belongs to it and stays",
        "are_counts": True,
        "facts": _facts({words: count for words, count in belonging.items() if count}, 0, 0, is_estimated=False),
        "action": "Archive",
        "kind": "",
        "back": found.address,
    }


def preview_facts(found: Preview) -> list[tuple[str, str]]:
    """What goes with a thing, as (label, value) pairs."""
    return _facts(dict(found.counts), found.files, found.bytes, is_estimated=found.is_estimated)


def _facts(counts: dict[str, int], files: int, size: int, *, is_estimated: bool) -> list[tuple[str, str]]:
    facts = [(words.capitalize(), f"{count:,}") for words, count in counts.items()]
    if files:
        about = "about " if is_estimated else ""
        facts.append(("Stored files", f"{files:,}, {about}{format_size(size)}"))
    return facts


# What is archived, what was deleted ----------------------------------------------------------------


def archived_table(user: Any) -> Table | None:
    """What this person archived or may bring back; None where there is nothing."""
    found = [
        Managed(kind, thing)
        for kind in list_kinds()
        if kind.archives
        for thing in kind.owned(user).filter(archived_at__isnull=False).order_by("-archived_at").distinct()[:SHOWN]
    ]
    rows: list[list[Cell | str]] = [
        [Cell(str(one.thing), link=one.address), one.kind.word, moment_cell(one.thing.archived_at)] for one in found
    ]
    columns = [Column(head.lower(), head) for head in ("Name", "Kind", "Archived")]
    return plain_table("What is archived", columns, rows, is_caption_hidden=True) if rows else None


def receipts_for(user: Any) -> QuerySet[AuditEvent]:
    """What was deleted by this person or in the editions that they organise; for the operator everything."""
    deleted = AuditEvent.objects.filter(action__endswith=".deleted").select_related("actor")
    if user.is_staff:
        return deleted
    keys = list(user.organized_editions.values_list("pk", flat=True))  # names are free again after a deletion
    return deleted.filter(Q(actor=user) | Q(data__edition_pk__in=keys))


def receipt_for(user: Any, pk: int) -> AuditEvent:
    return get_object_or_404(receipts_for(user), pk=pk)


def receipts_table(receipts: Iterable[AuditEvent]) -> Table:
    columns = [Column(head.lower(), head) for head in ("Name", "Kind", "Deleted (UTC)", "By")]
    rows: list[list[Cell | str]] = [
        [
            Cell(one.subject, link=reverse("removal:receipt", args=[one.pk])),
            one.data.get("word", MISSING),
            moment_cell(one.at, "%Y-%m-%d %H:%M"),
            str(one.actor or MISSING),
        ]
        for one in receipts
    ]
    return plain_table("What was deleted", columns, rows, is_caption_hidden=True)


def receipt_facts(receipt: AuditEvent) -> list[tuple[str, str]]:
    """What a receipt says was deleted."""
    data = receipt.data
    return _facts(
        data.get("counts", {}), data.get("files", 0), data.get("bytes", 0), is_estimated=data.get("is_estimated", False)
    )
