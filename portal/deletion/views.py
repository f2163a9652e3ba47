"""Pages on which a thing is archived, restored or deleted, and the receipts of what was deleted."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from portal.accounts.access import member_action, member_page, member_read, operator_action
from portal.challenges.job_pages.selectors import jobs_for
from portal.core.clock import read_clock
from portal.core.fields import posted
from portal.core.models import AuditEvent
from portal.deletion import services
from portal.deletion.forms import DeletionForm
from portal.deletion.kinds import KINDS, find_thing
from portal.jobs.models import Job
from portal.jobs.services import NotPossible
from portal.submissions.models import Submission

SHOWN = 100


@member_read
def index(request: HttpRequest) -> HttpResponse:
    """Show what is archived and what was deleted, as far as this person may know."""
    archived = []
    for kind, managed in KINDS.items():
        things = managed(request.user)
        if hasattr(things.model, "archived_at"):
            found = things.filter(archived_at__isnull=False).order_by("-archived_at").distinct()
            archived += [(kind, thing, thing._meta.verbose_name) for thing in found[:SHOWN]]
    context = {
        "archived": archived,
        "deleted": receipts_for(request.user)[:SHOWN],
        "has_demo": request.user.is_staff and bool(services.find_demo()),
    }
    return render(request, "deletion/index.html", context)


@member_page
def manage(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """Show what can be done with a thing, what goes with it, and why it cannot be deleted; delete it."""
    thing = find_thing(request.user, kind, pk)
    if isinstance(thing, Submission) and not thing.system.submissions.exclude(pk=pk).exists():
        return redirect("deletion:thing", "systems", thing.system_id)  # which has no page without any submission
    form = DeletionForm(posted(request), thing=thing)
    if form.is_valid():
        try:
            deletion = services.start_deletion(thing=thing, by=request.user)
        except NotPossible as reason:
            messages.error(request, str(reason))
            return redirect(request.path)
        if isinstance(deletion, AuditEvent):
            return redirect("deletion:receipt", deletion.pk)
        if _sees(request, deletion):
            return redirect(deletion)
        messages.info(request, f"{thing} is being deleted.")
        return redirect(request.path)
    job = services.find_deletion(thing)
    context = services.preview(thing) | {
        "kind": kind,
        "thing": thing,
        "word": thing._meta.verbose_name,
        "can_be_archived": hasattr(thing, "archived_at"),
        "form": form,
        "problems": services.find_problems(thing),
        "deletion": job,
        "sees_deletion": job is not None and _sees(request, job),
    }
    return render(request, "deletion/thing.html", context, status=422 if form.errors else 200)


@member_action
def archive(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    thing = find_thing(request.user, kind, pk)
    try:
        services.archive(thing=thing, by=request.user, now=read_clock())
        messages.success(request, f"{thing} is archived. Its address still works.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("deletion:thing", kind, pk)


@member_action
def restore(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    thing = find_thing(request.user, kind, pk)
    try:
        services.restore(thing=thing, by=request.user)
        messages.success(request, f"{thing} is back in all lists.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("deletion:thing", kind, pk)


@member_read
def receipt(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what was deleted, when and by whom."""
    found = get_object_or_404(receipts_for(request.user), pk=pk)
    return render(request, "deletion/receipt.html", {"receipt": found})


@operator_action
def delete_demo(request: HttpRequest) -> HttpResponse:
    """Delete what `make demo` made."""
    try:
        services.delete_demo(by=request.user)
        messages.success(request, "The demo data is deleted. Its accounts stay; deactivate them on the page “People”.")
    except NotPossible as reason:
        messages.error(request, str(reason))
    return redirect("deletion:index")


def receipts_for(user: Any) -> QuerySet[AuditEvent]:
    """Return what was deleted by this person or in the editions that they organise; for the operator everything."""
    deleted = AuditEvent.objects.filter(action__endswith=".deleted").select_related("actor")
    if user.is_staff:
        return deleted
    keys = list(user.organized_editions.values_list("pk", flat=True))  # names are free again after a deletion
    return deleted.filter(Q(actor=user) | Q(data__edition_pk__in=keys))


def _sees(request: HttpRequest, job: Job) -> bool:
    return jobs_for(request.user).filter(pk=job.pk).exists()
