"""The documentation for everybody, the recipes that come with the portal, and the program ``vp`` to download."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.access import open_read
from portal.client.wheel import build_wheel
from portal.core.downloads import as_download
from portal.core.program import describe_program
from portal.documentation import manual


@open_read
def manual_index(request: HttpRequest) -> HttpResponse:
    """Every page of the documentation with what it tells, and a search over all of them."""
    query = request.GET.get("q", "").strip()[: manual.LONGEST_QUERY]
    context = {"groups": manual.manual_groups(), "query": query, "found": manual.search_manual(query)}
    return render(request, "documentation/index.html", context)


@open_read
def manual_page(request: HttpRequest, name: str) -> HttpResponse:
    try:
        page = manual.manual_page(name)
        context = {"page": page, "is_open": "open" in request.GET, "groups": manual.manual_groups()}
        return render(request, "documentation/page.html", context)
    except LookupError as error:
        raise Http404 from error


@open_read
def recipe_fields(request: HttpRequest) -> HttpResponse:
    """Every field of a recipe, as its reader knows it."""
    return render(request, "documentation/recipe_fields.html", {"tables": manual.recipe_tables()})


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
    return render(request, "documentation/downloads.html", {"program": describe_program(request)})


@require_safe
def program_file(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """The wheel of ``vp``; what asks for another one is a program, which no page to log in would help."""
    wheel = build_wheel()
    if name != wheel.name:
        raise Http404
    response = as_download(HttpResponse(wheel.content, content_type="application/octet-stream"), wheel.name)
    response["Cache-Control"] = "no-store"
    return response
