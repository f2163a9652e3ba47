"""Evaluators have pages of their own, in their languages, where the portal says that there is no such page."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from listening.app.sessions.views import not_found
from portal.core.errors import OF_EVALUATORS, wants_page


def show_pages_to_evaluators(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Give evaluators their own page in place of that of other visitors."""

    def shown(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        is_missing = response.status_code == 404 or (response.status_code == 405 and wants_page(request))
        if not (is_page and is_missing and request.path.startswith(OF_EVALUATORS)):
            return response
        page = not_found(request, response.status_code)
        if "Allow" in response:
            page["Allow"] = response["Allow"]
        return page

    return shown
