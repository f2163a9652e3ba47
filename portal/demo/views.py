"""The page *Tour* of the demo."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.access import open_read
from portal.demo.tour import find_demo, list_ways


@open_read
def tour(request: HttpRequest) -> HttpResponse:
    """Show which pages of the demo are for whom; a portal without the demo has no such page."""
    edition = find_demo()
    if edition is None:
        raise Http404
    return render(request, "demo/tour.html", {"edition": edition, "ways": list_ways(edition)})
