"""The documentation for everybody, and the recipes that come with the portal."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.access import open_page
from portal.results import manual


@require_safe
@open_page
def page(request: HttpRequest, name: str) -> HttpResponse:
    try:
        return render(request, "manual.html", {"page": manual.manual_page(name)})
    except LookupError as error:
        raise Http404 from error


@require_safe
@open_page
def recipe(request: HttpRequest, name: str) -> HttpResponse:  # noqa: ARG001
    """A shipped recipe as a TOML file."""
    try:
        response = HttpResponse(manual.recipe_file(name), content_type="application/toml; charset=utf-8")
    except LookupError as error:
        raise Http404 from error
    response["Content-Disposition"] = f'attachment; filename="{name}.toml"'
    return response
