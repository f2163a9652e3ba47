"""Archives things, restores them, or deletes them permanently with everything that depends on them.

A small thing is gone with the transaction that writes the receipt into the audit log. A large one is archived and then
deleted by a job, in pieces of a transaction each: whatever ends the job, the next attempt deletes the rest. Stored
files follow: their keys are kept in the transaction that deletes their rows, and a file is deleted once no other row
names it and nobody stored it for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from portal.accounts.rules import NotificationKind
from portal.challenges.models import Corpus, Edition
from portal.challenges.services import DEMO
from portal.core import audit
from portal.core.clock import read_clock
from portal.core.mail import render_mail
from portal.core.models import AuditEvent, UnneededFile
from portal.core.removal import (
    Preview,
    RemovableKind,
    Rows,
    count_rows,
    delete_rows,
    delete_unheld_files,
    find_kind,
    find_owned,
    find_problems,
    find_rows,
    list_files,
    list_separable,
    preview_removal,
    take_pieces,
)
from portal.corpora.services import DEMO_CORPUS
from portal.jobs.models import ACTIVE_STATES, Job
from portal.jobs.selectors import REMOVAL, removals_of
from portal.jobs.services import NotPossible, cancel_those, create_job, run_again
from portal.teams.models import Team
from portal.teams.notifications import notify_team

AT_ONCE_AT_MOST = 2_000  # rows and files: a request deletes so many in a second or two
PATIENCE_S, PATIENCE_OF_JOB_S = 5.0, 300.0  # with jobs that were told to stop
LOOK_EVERY_S = 0.2
FILES_AT_ONCE = 500
SECONDS_KEPT = 86_400.0  # an import or a check may rest on a file and write its rows only at its end
REQUEST_S = 5.0  # of a request's time for files; the scheduler deletes the others


@transaction.atomic
def archive(*, kind: RemovableKind, thing: Any, by: Any, now: datetime, notifies: bool = True) -> Any:
    """Take a thing out of all lists and choices; its address still leads to it.

    Args:
        notifies: whether the teams of an edition get a mail about it.

    Raises:
        NotPossible: it is archived already, or something stands in the way.
    """
    thing = kind.model._default_manager.select_for_update(of=("self",)).get(pk=thing.pk)
    if problem := find_archiving_problem(kind=kind, thing=thing):
        raise NotPossible(problem)
    if notifies:
        _tell_teams(thing, "archived", by=by)
    return _set_archived(thing, now, by)


def find_archiving_problem(*, kind: RemovableKind, thing: Any) -> str:
    """Why a thing cannot be archived now; empty where it can."""
    if not kind.archives:
        return f"A {kind.word} cannot be archived, only its system."
    return "It is archived already." if thing.archived_at is not None else kind.archiving_problem(thing)


@transaction.atomic
def restore(*, kind: RemovableKind, thing: Any, by: Any) -> Any:
    """Bring an archived thing back.

    Raises:
        NotPossible: it is not archived, or its deletion is under way or has deleted a part.
    """
    thing = kind.model._default_manager.select_for_update(of=("self",)).get(pk=thing.pk)
    if not kind.archives or thing.archived_at is None:
        raise NotPossible("It is not archived.")
    if removal := find_removal(kind=kind, thing=thing):
        removal = Job.objects.select_for_update().get(pk=removal.pk)
        rows = removal.parameters["rows"]
        if not removal.has_ended or (removal.started_at and count_rows(find_rows(kind.root(thing))) != rows):
            raise NotPossible(f"The deletion of this {kind.word} has begun: it can only be finished.")
        removal.delete()
    else:
        _tell_teams(thing, "restored", by=by)
    return _set_archived(thing, None, by)


def _set_archived(thing: Any, at: datetime | None, by: Any) -> Any:
    thing.archived_at = at
    thing.save(update_fields=["archived_at"])
    audit.record(f"{thing._meta.model_name}.{'archived' if at else 'restored'}", thing, actor=by)
    return thing


def _tell_teams(thing: Any, what: str, *, by: Any) -> None:
    if isinstance(thing, Edition):
        mail, url = render_mail("removal/mail/edition.txt", {"edition": thing, "what": what}), thing.get_absolute_url()
        for team in thing.teams.filter(state=Team.State.APPROVED, archived_at=None).select_related("edition"):
            notify_team(team=team, kind=NotificationKind.PUBLISHED, mail=mail, url=url, besides=by)


def preview(*, kind: RemovableKind, thing: Any) -> Preview:
    """What `remove` would delete with a thing."""
    return preview_removal(find_rows(kind.root(thing)))


def start_removal(*, kind: RemovableKind, thing: Any, by: Any) -> AuditEvent | Job:
    """Delete a thing with everything that cannot be without it: the receipt, or the job that deletes a large one.

    Raises:
        NotPossible: a rule forbids it, or a job of it still runs.
    """
    _refuse(find_problems(thing))
    rows = find_rows(kind.root(thing))
    found = preview_removal(rows)
    if count_rows(rows) + found.files <= AT_ONCE_AT_MOST and find_removal(kind=kind, thing=thing) is None:
        return remove(kind=kind, thing=thing, by=by)
    with transaction.atomic():
        thing = kind.model._default_manager.select_for_update(of=("self",)).get(pk=thing.pk)
        if begun := find_removal(kind=kind, thing=thing):
            return run_again(begun, by=by) if begun.has_ended else begun
        if kind.archives and thing.archived_at is None:
            archive(kind=kind, thing=thing, by=by, now=read_clock(), notifies=False)
        told = {"thing": kind.name, "number": thing.pk, "rows": count_rows(rows), "deletes": _told(found)}
        return create_job(kind=REMOVAL, title=f"Delete the {kind.word} {thing}"[:200], parameters=told, by=by)


def find_removal(*, kind: RemovableKind, thing: Any) -> Job | None:
    """The job that has to delete this thing, under way or stopped."""
    return removals_of(**{kind.name: thing.pk}).first()


def remove_in_pieces(
    *,
    kind: RemovableKind,
    thing: Any,
    by: Any,
    total: int,
    counted: dict[str, Any],
    progress: Callable[[str, int, int], None],
) -> AuditEvent:
    """Delete a large thing, its rows piece by piece and the rest with the receipt; continues where it was stopped.

    Args:
        total: how many rows there were before the first piece.
        counted: what a receipt tells of them.
        progress: called with the stage, how many are done and of how many; what it raises leaves the rest.

    Raises:
        NotPossible: a rule forbids it, or a job of it still runs.
    """
    _refuse(find_problems(thing))
    progress("Stopping its jobs", 0, 0)
    _stop_jobs(kind, thing, by, PATIENCE_OF_JOB_S, check=lambda: progress("Stopping its jobs", 0, 0))
    rows = find_rows(kind.root(thing))
    done = max(0, total - count_rows(rows))
    for piece in take_pieces(list_separable(rows)):
        count = count_rows(piece)
        with transaction.atomic():
            _note_files(piece)
            for found in piece.values():
                found.delete()
        done += count
        progress("Deleting", min(done, total), total)
    progress("Deleting", total, total)
    return _delete(kind, thing, by, is_demo=False, counted=counted)


def remove(
    *, kind: RemovableKind, thing: Any, by: Any, patience_s: float = PATIENCE_S, is_demo: bool = False
) -> AuditEvent:
    """Delete a thing at once with everything that cannot be without it; the receipt.

    Its jobs are cancelled first; one that runs stops at its next file.

    Args:
        patience_s: how long jobs that run may take to stop, in seconds.
        is_demo: nothing in it is anybody's, so that no rule holds.

    Raises:
        NotPossible: a rule forbids it, or a job of it still runs.
    """
    if not is_demo:
        _refuse(find_problems(thing))
    _stop_jobs(kind, thing, by, patience_s)
    receipt = _delete(kind, thing, by, is_demo=is_demo)
    transaction.on_commit(lambda: delete_unneeded_files(REQUEST_S), robust=True)
    return receipt


def find_demo() -> list[tuple[str, Any]]:
    """What `make demo` made, each with its kind: its edition with all in it, then its corpus of synthetic speech.

    Nothing where there is no such edition: its corpus alone may have been imported for another challenge.
    """
    corpora = Corpus.objects.filter(name=DEMO, is_synthetic=True, source=str(DEMO_CORPUS))
    editions = Edition.objects.filter(name=DEMO, corpus__in=corpora)
    if not editions:
        return []
    return [*(("editions", one) for one in editions), *(("corpora", one) for one in corpora)]


def remove_demo(*, by: Any, patience_s: float = PATIENCE_S) -> list[AuditEvent]:
    """Delete what `make demo` made, published results included, but for its accounts; the receipts.

    Raises:
        NotPossible: a job of it still runs, or somebody else's edition runs on its corpus.
    """
    receipts = []
    for name, thing in find_demo():
        is_edition = name == "editions"
        receipts.append(remove(kind=find_kind(name), thing=thing, by=by, patience_s=patience_s, is_demo=is_edition))
    return receipts


def delete_unneeded_files(limit_s: float | None = None) -> int:
    """Delete stored files of what was deleted, unless another row names them; how many are settled.

    Those that were stored, or found again by who stores the same, within a day wait.

    Args:
        limit_s: no further files are begun after so many seconds.
    """
    began, count, last = time.monotonic(), 0, 0
    before = time.time() - SECONDS_KEPT
    while limit_s is None or time.monotonic() - began < limit_s:
        found = UnneededFile.objects.filter(pk__gt=last).order_by("pk")
        rows = dict(found.values_list("key", "pk")[:FILES_AT_ONCE])
        if not rows:
            break
        settled = delete_unheld_files(rows, before)
        UnneededFile.objects.filter(pk__in=[rows[key] for key in settled]).delete()
        count, last = count + len(settled), max(rows.values())
    return count


def _refuse(problems: list[str]) -> None:
    if problems:
        raise NotPossible(" ".join(problems))


def _jobs(kind: RemovableKind, thing: Any) -> Q:
    owned = find_owned(find_rows(kind.root(thing))).get(Job)
    named = Q(pk__in=owned.values("pk")) if owned is not None else Q(pk__in=[])
    return named | kind.jobs(thing) if kind.jobs else named


def _stop_jobs(
    kind: RemovableKind, thing: Any, by: Any, patience_s: float, check: Callable[[], None] = lambda: None
) -> None:
    ours = Job.objects.filter(_jobs(kind, thing), state__in=ACTIVE_STATES)
    cancel_those(ours.order_by("-created_at"), by=by)  # what follows first, so that nothing starts meanwhile
    until = time.monotonic() + patience_s
    while running := ours.count():
        if time.monotonic() >= until:
            jobs = "A job of it still runs" if running == 1 else f"{running} of its jobs still run"
            raise NotPossible(f"{jobs} and was told to stop. Delete it again in a minute.")
        check()
        time.sleep(LOOK_EVERY_S)


@transaction.atomic
def _delete(
    kind: RemovableKind, thing: Any, by: Any, *, is_demo: bool, counted: dict[str, Any] | None = None
) -> AuditEvent:
    thing = kind.model._default_manager.select_for_update(of=("self",)).get(pk=thing.pk)
    if not is_demo:
        _refuse(find_problems(thing))
    root = kind.root(thing)
    rows = find_rows(root)
    owned = find_owned(rows)
    jobs = set(Job.objects.filter(_jobs(kind, thing)).values_list("pk", flat=True))
    edition = kind.edition(thing)
    receipt = audit.record(
        f"{thing._meta.model_name}.deleted",
        thing,
        actor=by,
        word=kind.word,
        edition=edition.name if edition else "",
        edition_pk=edition.pk if edition else None,
        **(counted or _told(preview_removal(rows))),
    )
    _note_files(rows)
    delete_rows(rows)
    for model, ours in owned.items():
        if model is not Job:
            delete_rows({model: ours})
    Job.objects.filter(after__in=jobs).exclude(pk__in=jobs).update(after=None)
    delete_rows({Job: Job.objects.filter(pk__in=jobs)})
    return receipt


def _told(found: Preview) -> dict[str, Any]:
    """What was counted, as a receipt keeps it."""
    return asdict(found) | {"counts": dict(found.counts)}


def _note_files(rows: Rows) -> None:
    keys = (UnneededFile(key=key) for key in sorted(set(list_files(rows))))
    UnneededFile.objects.bulk_create(keys, batch_size=FILES_AT_ONCE, ignore_conflicts=True)
