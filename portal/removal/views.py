"""Pages on which a thing is renamed, archived, brought back or deleted, and the receipts of what was deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.accounts.access import member_action, member_page, member_read, operator_page
from portal.core.clock import read_clock
from portal.core.fields import posted
from portal.core.removal import find_problems
from portal.jobs.models import Job
from portal.jobs.selectors import jobs_for
from portal.jobs.services import NotPossible
from portal.removal import pages, services
from portal.removal.forms import DeletionForm, RenameForm
from portal.removal.pages import Managed

RECEIPTS_SHOWN = 100


@member_read
def index(request: HttpRequest) -> HttpResponse:
    """What is archived and what was deleted, as far as this person may know."""
    receipts = list(pages.receipts_for(request.user)[:RECEIPTS_SHOWN])
    context = {
        "archived": pages.archived_table(request.user),
        "has_demo": request.user.is_staff and bool(services.find_demo()),
        "deleted": pages.receipts_table(receipts) if receipts else None,
    }
    return render(request, "removal/index.html", context)


@member_page
def manage(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """What can be done with a thing; takes other names of it."""
    found = pages.find_managed(request.user, kind, key)
    form = RenameForm(posted(request), kind=found.kind, thing=found.thing) if found.kind.rename else None
    if form is not None and form.is_valid() and found.kind.rename is not None:
        changed = _done(request, found.kind.rename, thing=found.thing, **form.cleaned_data)
        if changed is not None:
            messages.success(request, "The changes are saved.")
            return redirect(Managed(found.kind, changed).address)
    status = 422 if form is not None and form.is_bound else 200
    context = {"managed": found, "form": form} | _removal(request, found)
    return render(request, "removal/thing.html", context, status=status)


@member_page
def archive(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """What belongs to a thing, and why it cannot be archived; archives it."""
    found = _owned(request, kind, key)
    if request.method != "POST":
        return render(request, "confirm.html", pages.archiving(found))
    if _done(request, services.archive, kind=found.kind, thing=found.thing, now=read_clock()) is not None:
        messages.success(request, f"{found.thing} is archived. Its address still works. {found.archiving_note}".strip())
    return redirect(found.address)


@member_action
def restore(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    found = _owned(request, kind, key)
    if _done(request, services.restore, kind=found.kind, thing=found.thing) is not None:
        messages.success(request, f"{found.thing} is back in all lists.")
    return redirect(found.address)


@member_page
def delete(request: HttpRequest, kind: str, key: str) -> HttpResponse:
    """What goes with a thing, and why it cannot be deleted; deletes it."""
    found = _owned(request, kind, key)
    preview = services.preview(kind=found.kind, thing=found.thing)
    form = DeletionForm(posted(request), thing=found.thing) if preview.is_big else None
    if request.method == "POST" and (form is None or form.is_valid()):
        removal = _done(request, services.start_removal, kind=found.kind, thing=found.thing)
        if isinstance(removal, Job):
            if _sees(request, removal):
                return redirect(removal)
            messages.info(request, f"{found.thing} is being deleted.")
            return redirect(found.address)
        return redirect("removal:receipt", removal.pk) if removal is not None else redirect(request.path)
    root = found.kind.root(found.thing)
    context = {
        "managed": found,
        "form": form,
        "problems": find_problems(found.thing),
        "needed_by": found.kind.needed_by(found.thing, request.user),
        "facts": pages.preview_facts(preview),
        "has_files": bool(preview.files),
        "root": root if root != found.thing else None,
    } | _removal(request, found)
    return render(request, "removal/delete.html", context, status=422 if form is not None and form.errors else 200)


@member_read
def receipt(request: HttpRequest, pk: int) -> HttpResponse:
    """What was deleted, when and by whom."""
    found = pages.receipt_for(request.user, pk)
    return render(request, "removal/receipt.html", {"receipt": found, "facts": pages.receipt_facts(found)})


@operator_page
@require_POST
def remove_demo(request: HttpRequest) -> HttpResponse:
    """Delete what `make demo` made."""
    if _done(request, services.remove_demo) is not None:
        messages.success(request, "The demo data is deleted. Its accounts stay; deactivate them on the page “People”.")
    return redirect("removal:index")


def _sees(request: HttpRequest, job: Job) -> bool:
    return jobs_for(request.user).filter(pk=job.pk).exists()


def _removal(request: HttpRequest, found: Managed) -> dict[str, Any]:
    """What the pages of a thing say on the job that has to delete it."""
    removal = services.find_removal(kind=found.kind, thing=found.thing)
    return {"removal": removal, "sees_removal": removal is not None and _sees(request, removal)}


def _owned(request: HttpRequest, kind: str, key: str) -> Managed:
    found = pages.find_managed(request.user, kind, key)
    if not found.is_owner:
        raise Http404
    return found


def _done(request: HttpRequest, service: Callable[..., Any], /, **given: Any) -> Any:
    """What came of it; None where it was not possible, which the next page says."""
    try:
        return service(by=request.user, **given)
    except NotPossible as reason:
        messages.error(request, str(reason))
        return None
