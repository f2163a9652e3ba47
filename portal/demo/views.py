"""The page *Tour* of the demo."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.access import open_read
from portal.demo.challenge import select_jobs
from portal.demo.tour import find_demo, list_ways
from portal.jobs.models import ACTIVE_STATES


@open_read
def tour(request: HttpRequest) -> HttpResponse:
    """Show which pages of the demo are for whom; a portal without the demo has no such page."""
    edition = find_demo()
    if edition is None:
        raise Http404
    ways, jobs = list_ways(edition), select_jobs(edition)
    n_jobs, n_active = jobs.count(), jobs.filter(state__in=ACTIVE_STATES).count()
    shown = {"edition": edition, "ways": ways, "jobs": n_jobs, "jobs_ended": n_jobs - n_active}
    shown["is_busy"] = n_active > 0 or "heard" not in ways[0].pages
    return render(request, "demo/tour.html", shown)
