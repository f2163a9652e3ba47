"""Archives things, restores them, or deletes them with everything that goes with them.

A small thing is gone with the transaction that writes the receipt into the audit log. A large one is archived and then
deleted by a job, in batches of a transaction each: whatever ends the job, the next attempt deletes the rest. Stored
files follow (`portal.deletion.files`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model, RestrictedError

from listening.app.models import Study
from listening.app.studies.rules import study_archiving_problem, study_deletion_problem
from listening.app.studies.selectors import was_published as were_results_published
from portal.accounts.rules import NotificationKind
from portal.challenges.models import Corpus, Edition
from portal.challenges.rules import PUBLISHED
from portal.challenges.selectors import was_published
from portal.challenges.services import DEMO
from portal.core import audit
from portal.core.clock import read_clock
from portal.core.mail import render_mail
from portal.core.models import AuditEvent
from portal.corpora.services import DEMO_CORPUS
from portal.deletion.derived_data import delete_derived_data
from portal.deletion.files import clean_up_files, list_files, note_files
from portal.deletion.rows import Rows, count_named, count_rows, find_blockers, find_jobs, find_rows
from portal.jobs.models import ACTIVE_STATES, Job, JobState
from portal.jobs.selectors import DELETION
from portal.jobs.services import NotPossible, cancel_those, create_job, run_again
from portal.submissions.models import Submission, Upload
from portal.submissions.rules import deletion_problem
from portal.submissions.selectors import ACCEPTED
from portal.teams.models import Team
from portal.teams.notifications import notify_team

AT_ONCE_AT_MOST = 2_000  # rows: a request deletes so many in a second or two
BATCH = 500
PATIENCE_S, PATIENCE_OF_JOB_S = 5.0, 300.0  # with jobs that were told to stop
LOOK_EVERY_S = 0.2
CLEAN_UP_S = 5.0  # of a request's time for files; the scheduler deletes the others


@transaction.atomic
def archive(*, thing: Any, by: Any, now: datetime, notifies: bool = True) -> None:
    """Take a thing out of all lists and choices; its address still leads to it.

    Args:
        notifies: whether the teams of an edition get a mail about it.

    Raises:
        NotPossible: it is archived already, cannot be archived, or takes answers.
    """
    thing = _lock(thing)
    if not hasattr(thing, "archived_at"):
        raise NotPossible(f"A {thing._meta.verbose_name} cannot be archived.")
    if thing.archived_at is not None:
        raise NotPossible("It is archived already.")
    if isinstance(thing, Study) and (problem := study_archiving_problem(thing)):
        raise NotPossible(problem)
    if notifies:
        _tell_teams(thing, "archived", by=by)
    _set_archived(thing, now, by)


@transaction.atomic
def restore(*, thing: Any, by: Any) -> None:
    """Bring an archived thing back.

    Raises:
        NotPossible: it is not archived, or its deletion is under way or has deleted a part.
    """
    thing = _lock(thing)
    if getattr(thing, "archived_at", None) is None:
        raise NotPossible("It is not archived.")
    if job := find_deletion(thing):
        job = Job.objects.select_for_update().get(pk=job.pk)
        if not job.has_ended or count_rows(find_rows_of(thing)) != job.parameters["rows"]:
            raise NotPossible(f"The deletion of this {thing._meta.verbose_name} has begun: it can only be finished.")
        job.delete()
    else:
        _tell_teams(thing, "restored", by=by)
    _set_archived(thing, None, by)


def _lock(thing: Any) -> Any:
    return type(thing)._default_manager.select_for_update(of=("self",)).get(pk=thing.pk)


def _set_archived(thing: Any, at: datetime | None, by: Any) -> None:
    thing.archived_at = at
    thing.save(update_fields=["archived_at"])
    audit.record(f"{thing._meta.model_name}.{'archived' if at else 'restored'}", thing, actor=by)


def _tell_teams(thing: Any, what: str, *, by: Any) -> None:
    if isinstance(thing, Edition):
        mail, url = render_mail("deletion/mail/edition.txt", {"edition": thing, "what": what}), thing.get_absolute_url()
        for team in thing.teams.filter(state=Team.State.APPROVED, archived_at=None).select_related("edition"):
            notify_team(team=team, kind=NotificationKind.PUBLISHED, mail=mail, url=url, besides=by)


# What goes, and what stands in the way -----------------------------------------------------------


def find_rows_of(thing: Model) -> Rows:
    """Return the rows that are deleted with a thing, by their model; its own first."""
    return find_rows(type(thing)._default_manager.filter(pk=thing.pk))


def preview(thing: Model) -> dict[str, Any]:
    """Return what goes with a thing: `counts` by what rows are to a reader, itself left out, and how many `files`."""
    rows = find_rows_of(thing)
    others = {model: found for model, found in rows.items() if model is not type(thing)}
    return {"counts": count_named(others), "files": len(set(list_files(rows)))}


def find_problems(thing: Any, *, is_demo: bool = False) -> list[str]:
    """Return every sentence for which a thing cannot be deleted.

    Args:
        is_demo: it may have been published, because nothing in it is anybody's.
    """
    rows = find_rows_of(thing)
    problems = [] if is_demo else _find_results(thing, rows)
    if names := sorted({_name(row) for row in find_blockers(rows)}):
        it, word = "it" if len(names) == 1 else "them", thing._meta.verbose_name
        problems.append(f"Needed by {', '.join(names)}. Delete {it} first, or let {it} do without this {word}.")
    return list(dict.fromkeys(filter(None, problems)))


def _find_results(thing: Any, rows: Rows) -> list[str]:
    """Return why results that would go have to stay."""
    editions = rows.get(Edition, Edition.objects.none())
    problems = [PUBLISHED.format("it") for edition in editions if was_published(edition)]
    for study in rows.get(Study, Study.objects.none()):
        problem = study_deletion_problem(study, was_published=were_results_published(study))
        problems.append(problem if study == thing or not problem else f"The listening test “{study}”: {problem}")
    accepted = rows.get(Submission, Submission.objects.none()).filter(state__in=ACCEPTED).order_by()
    is_published = any(map(was_published, Edition.objects.filter(systems__submissions__in=accepted).distinct()))
    archived = "its system" if isinstance(thing, Submission) else "it"
    of_teams = accepted if is_published else accepted.filter(system__team__isnull=False)
    problems.append(
        deletion_problem(accepted=of_teams.count(), is_of_team=True, is_published=is_published, archived=archived)
    )
    return problems


def _name(row: Any) -> str:
    """Return what a row that needs a thing is called: by the test or the submission that it is part of."""
    row = getattr(row, "study", None) or getattr(row, "submission", None) or row
    return f"the {row._meta.verbose_name} “{row}”"


# Deleting ------------------------------------------------------------------------------------------


def start_deletion(*, thing: Any, by: Any) -> AuditEvent | Job:
    """Delete a thing with everything that goes with it: the receipt, or the job that deletes a large one.

    Raises:
        NotPossible: a rule forbids it, or a job of it still runs.
    """
    _refuse(find_problems(thing))
    count = count_rows(find_rows_of(thing))
    if count <= AT_ONCE_AT_MOST and find_deletion(thing) is None:
        return delete(thing=thing, by=by)
    with transaction.atomic():
        thing = _lock(thing)
        if begun := find_deletion(thing):
            return run_again(begun, by=by) if begun.has_ended else begun
        if getattr(thing, "archived_at", thing) is None:
            archive(thing=thing, by=by, now=read_clock(), notifies=False)
        named = {"thing": thing._meta.label_lower, "number": thing.pk, "rows": count, "deletes": preview(thing)}
        title = f"Delete the {thing._meta.verbose_name} {thing}"
        return create_job(kind=DELETION, title=title[:200], parameters=named, by=by)


def find_deletion(thing: Model) -> Job | None:
    """Return the job that has to delete this thing: under way, failed or cancelled."""
    named = Job.objects.filter(parameters__thing=thing._meta.label_lower, parameters__number=thing.pk)
    return named.filter(kind=DELETION).exclude(state=JobState.SUCCEEDED).first()


def delete(*, thing: Any, by: Any, patience_s: float = PATIENCE_S, is_demo: bool = False) -> AuditEvent:
    """Delete a thing at once with everything that goes with it, and return the receipt.

    Its jobs are cancelled first; one that runs stops at its next file.

    Args:
        patience_s: how long jobs that run may take to stop, in seconds.
        is_demo: nothing in it is anybody's, so that it may have been published.

    Raises:
        NotPossible: a rule forbids it, or a job of it still runs.
    """
    _refuse(find_problems(thing, is_demo=is_demo))
    _stop_jobs(thing, by, patience_s)
    return _delete_with_receipt(thing, by, preview(thing), is_demo=is_demo)


def delete_in_batches(
    *, thing: Any, by: Any, total: int, counted: dict[str, Any], progress: Callable[[str, int, int], None]
) -> AuditEvent:
    """Delete a large thing, its rows in batches and the rest with the receipt; continues where it was stopped.

    Args:
        total: how many rows there were before the first batch.
        counted: what the receipt tells of them.
        progress: called with the stage, how many are done and of how many; what it raises leaves the rest.

    Raises:
        NotPossible: as `delete`.
    """
    _refuse(find_problems(thing))
    _stop_jobs(thing, by, PATIENCE_OF_JOB_S, check=lambda: progress("Stopping its jobs", 0, 0))
    rows = find_rows_of(thing)
    done = max(0, total - count_rows(rows))
    for model, found in reversed(rows.items()):
        while model is not type(thing) and (keys := list(found.order_by("-pk").values_list("pk", flat=True)[:BATCH])):
            try:
                with transaction.atomic():
                    delete_rows({model: model._default_manager.filter(pk__in=keys)})
            except RestrictedError:  # by rows that go as well: they go together, at the end
                break
            done += len(keys)
            progress("Deleting", min(done, total), total)
    progress("Deleting", total, total)
    return _delete_with_receipt(thing, by, counted)


def find_demo() -> list[Any]:
    """Return what `make demo` made: its edition with all in it, then its corpus of synthetic speech.

    Nothing where there is no such edition: its corpus alone may have been imported for another challenge.
    """
    corpora = Corpus.objects.filter(name=DEMO, is_synthetic=True, source=str(DEMO_CORPUS))
    editions = Edition.objects.filter(name=DEMO, corpus__in=corpora)
    return [*editions, *corpora] if editions else []


def delete_demo(*, by: Any) -> None:
    """Delete what `make demo` made, published results included, but for its accounts.

    Raises:
        NotPossible: a job of it still runs, or somebody else's edition runs on its corpus.
    """
    for thing in find_demo():
        delete(thing=thing, by=by, is_demo=True)


def _refuse(problems: list[str]) -> None:
    if problems:
        raise NotPossible(" ".join(problems))


def _stop_jobs(thing: Any, by: Any, patience_s: float, check: Callable[[], None] = lambda: None) -> None:
    active = find_jobs(find_rows_of(thing)).filter(state__in=ACTIVE_STATES)
    check()
    cancel_those(active.order_by("-created_at"), by=by)  # what follows first, so that nothing starts meanwhile
    until = time.monotonic() + patience_s
    while running := active.count():
        if time.monotonic() >= until:
            jobs = "A job of it still runs" if running == 1 else f"{running} of its jobs still run"
            raise NotPossible(f"{jobs} and was told to stop. Delete it again in a minute.")
        check()
        time.sleep(LOOK_EVERY_S)


@transaction.atomic
def _delete_with_receipt(thing: Any, by: Any, counted: dict[str, Any], *, is_demo: bool = False) -> AuditEvent:
    thing = _lock(thing)
    _refuse(find_problems(thing, is_demo=is_demo))
    edition = _find_edition(thing)
    receipt = audit.record(
        f"{thing._meta.model_name}.deleted",
        thing,
        actor=by,
        word=str(thing._meta.verbose_name),
        edition=edition.name if edition else "",
        edition_pk=edition.pk if edition else None,
        **counted,
    )
    delete_rows(find_rows_of(thing))
    transaction.on_commit(lambda: clean_up_files(CLEAN_UP_S), robust=True)
    return receipt


def _find_edition(thing: Any) -> Edition | None:
    """Return the edition whose audit log tells of a thing."""
    if isinstance(thing, Edition):
        return thing
    return getattr(thing.system if isinstance(thing, Submission) else thing, "edition", None)


def delete_rows(rows: Rows) -> None:
    """Delete the first of these rows, and with them the others, their jobs, uploads, files and derived data.

    In a transaction; files and derived data follow it.
    """
    note_files(list_files(rows))
    delete_derived_data(rows)
    jobs = list(find_jobs(rows).values_list("pk", flat=True))
    submissions = rows.get(Submission, Submission.objects.none()).order_by()
    uploads = list(submissions.exclude(upload=None).values_list("upload", flat=True))
    next(iter(rows.values())).delete()
    Job.objects.filter(pk__in=jobs).delete()
    Upload.objects.filter(pk__in=uploads).delete()
