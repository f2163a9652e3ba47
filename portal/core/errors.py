"""The pages that say what went wrong and what to do next: one template, whatever the status.

Programs get no page: below /api/ every error is a problem document (`portal.api.problems`), and what asks for a picture
or a file reads the sentence alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve

from portal.core.storage import StorageAway
from portal.core.texts import render_lines

log = logging.getLogger(__name__)
OF_EVALUATORS = "/listen/"
FILES_AWAY = "The store of files does not answer just now. What you sent before is kept."
AGAIN_S = 10


def error_page(request: HttpRequest, status: int, happened: str = "") -> HttpResponse:
    """Return the page of a status; `happened` is a sentence of the case in place of the general one."""
    return render(
        request, "error.html", _context(status, happened) | {"back": _find_page_above(request)}, status=status
    )


def _context(status: int, happened: str = "", *, is_expired: bool = False) -> dict[str, Any]:
    """Return what the page says: a heading, what happened and what to do."""
    title, general, to_do = render_lines("error.txt", {"status": status, "is_expired": is_expired})
    is_bare = is_expired or status in {400, 500}  # who asks may be unknown by then
    return {"status": status, "title": title, "happened": happened or general, "to_do": to_do, "is_bare": is_bare}


def _find_page_above(request: HttpRequest) -> str:
    """Of an address that only takes forms the page that has them; empty for the home page."""
    parts = request.path.strip("/").split("/")
    for kept in range(len(parts) - 1, 0, -1):
        path = f"/{'/'.join(parts[:kept])}/"
        try:
            resolve(path)
        except Resolver404:
            continue
        return path
    return ""


# Where Django looks for them -----------------------------------------------------------------------
def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return error_page(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return error_page(request, 404)


def too_many_attempts(request: HttpRequest) -> HttpResponse:
    return error_page(request, 429)


def form_expired(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """In place of Django's page for a form without its token."""
    return render(request, "error.html", _context(403, is_expired=True), status=403)


def internal_error() -> HttpResponse:
    """Without anything that the database would have to answer."""
    return HttpResponse(render_to_string("error.html", _context(500)), status=500)


def show_error_pages(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Give a page to refusals that have none, for people: an empty answer, or a sentence as plain text."""

    def shown(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code not in {405, 503} or response.streaming or not wants_page(request):
            return response
        is_text = response.get("Content-Type", "").startswith("text/plain")
        if response.content and not is_text:
            return response
        page = error_page(request, response.status_code, response.content.decode())
        for header in ("Allow", "Retry-After"):
            if header in response:
                page[header] = response[header]
        return page

    cast("Any", shown).process_exception = _say_storage_away
    return shown


def _say_storage_away(request: HttpRequest, exception: Exception) -> HttpResponse | None:
    """Return a sentence where a page could not read a stored file: the store is away, and comes back."""
    if not isinstance(exception, StorageAway):
        return None
    log.error("%s %s: %s", request.method, request.path, exception)
    return HttpResponse(
        FILES_AWAY, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": str(AGAIN_S)}
    )


def wants_page(request: HttpRequest) -> bool:
    """Return whether a browser asks for a page, not a program for something else."""
    return not request.path.startswith("/api/") and "text/html" in request.headers.get("Accept", "")
