"""The home page, the operator's page, the documentation for everybody, and the recipes that come with the portal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.accounts.access import open_read, operator_page
from portal.client.wheel import build_wheel
from portal.core.downloads import as_download
from portal.core.program import describe_program
from portal.core.version import code_version
from portal.jobs.checks import check_all_beside
from portal.jobs.pages import ended_table, queues_table, workers_table
from portal.jobs.selectors import count_ended, queue_states
from portal.site import manual
from portal.site.metrics import CONTENT_TYPE, write_metrics
from portal.site.pages import describe_activity, home_page, visitor_page


@open_read
def home(request: HttpRequest) -> HttpResponse:
    """What matters to this visitor: an organizer's work, the operator's queues, or what the portal is."""
    if not request.user.is_authenticated:
        return render(request, "site/visitor.html", visitor_page(request.user))
    return render(request, "site/member.html", home_page(request.user))


@require_safe
@operator_page
def operations(request: HttpRequest) -> HttpResponse:
    """Queues with the age of their oldest waiting job, and the health of each part."""
    queues = queue_states()
    context: dict[str, Any] = {"queues": queues, "checks": check_all_beside(queues), "version": code_version()}
    context |= {"queue_table": queues_table(queues), "worker_table": workers_table(queues)}
    context |= {"ended_table": ended_table(count_ended()), "activity": describe_activity()}
    return render(request, "site/operations.html", context)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """What Prometheus collects; the address exists where it has a token, and opens for nobody without it."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {settings.METRICS_TOKEN}"):
        return HttpResponse("A token is needed.\n", "text/plain", 401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(write_metrics(), CONTENT_TYPE)


@open_read
def manual_index(request: HttpRequest) -> HttpResponse:
    """Every page of the documentation with what it tells, and a search over all of them."""
    query = request.GET.get("q", "").strip()[: manual.LONGEST_QUERY]
    context = {"groups": manual.manual_groups(), "query": query, "found": manual.search_manual(query)}
    return render(request, "site/manual_index.html", context)


@open_read
def manual_page(request: HttpRequest, name: str) -> HttpResponse:
    try:
        page = manual.manual_page(name)
        context = {"page": page, "is_open": "open" in request.GET, "groups": manual.manual_groups()}
        return render(request, "site/manual.html", context)
    except LookupError as error:
        raise Http404 from error


@open_read
def recipe_fields(request: HttpRequest) -> HttpResponse:
    """Every field of a recipe, as its reader knows it."""
    return render(request, "site/recipe_fields.html", {"tables": manual.recipe_tables()})


@open_read
def recipe(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """A shipped recipe as a TOML file."""
    try:
        content = manual.recipe_file(name)
    except LookupError as error:
        raise Http404 from error
    return as_download(HttpResponse(content, content_type="application/toml; charset=utf-8"), f"{name}.toml")


@open_read
def downloads(request: HttpRequest) -> HttpResponse:
    """How to install the program ``vp``."""
    return render(request, "site/downloads.html", {"program": describe_program(request)})


@require_safe
def program_file(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """The wheel of ``vp``; what asks for another one is a program, which no page to log in would help."""
    wheel = build_wheel()
    if name != wheel.name:
        raise Http404
    response = as_download(HttpResponse(wheel.content, content_type="application/octet-stream"), wheel.name)
    response["Cache-Control"] = "no-store"
    return response
