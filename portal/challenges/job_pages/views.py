"""Pages that list and show jobs. They refresh themselves by htmx until the job has ended."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from portal.accounts.access import staff_page, staff_read
from portal.challenges.job_pages import selectors
from portal.core.downloads import problem_response
from portal.jobs import services
from portal.jobs.kinds import find_obstacle
from portal.jobs.models import Job, JobState
from portal.jobs.pages import HTMX_STOP_POLLING, group_jobs, job_facts, result_facts
from portal.jobs.rules import MAX_ATTEMPTS, can_cancel, can_run_again
from portal.jobs.selectors import with_estimates

PAGE_SIZE = 25


@staff_read
def job_list(request: HttpRequest) -> HttpResponse:
    """Show all jobs, newest first, by state and by what they are for on request."""
    return render(request, "jobs/list.html", _list_context(request))


@staff_read
def job_table(request: HttpRequest) -> HttpResponse:
    """Return the table of `job_list` alone; tells htmx to stop when nothing is under way any more."""
    context = _list_context(request)
    return render(request, "jobs/_table.html", context, status=200 if context["any_active"] else HTMX_STOP_POLLING)


@staff_read
def job_detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    job = selectors.job_for(request.user, pk)
    return render(request, "jobs/detail.html", _job_context(request, job))


@staff_read
def job_status(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Return the live part of `job_detail`; tells htmx to stop when the job has ended."""
    job = selectors.job_for(request.user, pk)
    context = _job_context(request, job) | {"is_update": True}
    return render(request, "jobs/_status.html", context, status=HTMX_STOP_POLLING if job.has_ended else 200)


@staff_read
def problems_csv(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Return the complete problem report of a job."""
    job = selectors.job_for(request.user, pk)
    return problem_response(f"problems-{job.pk}.csv", job.problems)


@staff_page
@require_POST
def cancel_job(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _act(request, pk, services.request_cancel)


@staff_page
@require_POST
def run_job_again(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _act(request, pk, services.run_again)


def _act(request: HttpRequest, pk: UUID, service: Any) -> HttpResponse:
    """Change a job; its page then shows the state it has come to, which no message could know."""
    job = selectors.job_for(request.user, pk)
    try:
        service(job, by=request.user)
    except services.NotPossible as reason:
        messages.error(request, str(reason))
    return redirect(job)


def _list_context(request: HttpRequest) -> dict[str, Any]:
    with_mails = "mails" in request.GET
    jobs = selectors.listed_jobs_for(request.user, with_mails=with_mails)
    purposes = selectors.list_purposes(jobs)
    state, purpose = request.GET.get("state", ""), request.GET.get("for", "")
    shown = jobs.filter(state=state) if state in JobState.values else jobs
    if purpose in purposes:
        kind, _, name = purpose.partition(":")
        shown = shown.filter(**{kind: name})
    page = Paginator(shown, PAGE_SIZE).get_page(request.GET.get("page"))
    rows = with_estimates(page.object_list)
    titles = {key.removeprefix("edition:"): title for key, title in purposes.items()}
    return {
        "page": page,
        "jobs": rows,
        "groups": group_jobs(rows, titles),
        "state": state if state in JobState.values else "",
        "states": JobState.choices,
        "purpose": purpose if purpose in purposes else "",
        "purposes": purposes.items(),
        "with_mails": with_mails,
        "any_active": any(not job.has_ended for job in rows),
    }


def _job_context(request: HttpRequest, job: Job) -> dict[str, Any]:
    _, *followers = with_estimates([job, *selectors.jobs_for(request.user).filter(after=job)])
    return {
        "job": job,
        "max_attempts": MAX_ATTEMPTS,
        "events": selectors.events_for(request.user, job),
        "followers": group_jobs(followers),
        "can_cancel": can_cancel(job),
        "can_run_again": can_run_again(job),
        "obstacle": find_obstacle(job) if can_run_again(job) else None,
        "facts": job_facts(job),
        "result_facts": result_facts(job),
    }
