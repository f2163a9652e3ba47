"""Where the settings ask for it, organizers and operators without a second factor get no further than to set one up."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect

from portal.accounts.selectors import lacks_second_factor

NEEDED = "Organizers and operators of this portal need a second factor: set it up here first."
# Their own account, the way out, and what is open to visitors without an account.
OPEN = ("/account/", "/log-out/", "/log-in/", "/docs/", "/downloads/", "/health/", "/listen/", "/static/")
CLOSED = "/account/tokens/"  # a token would open everything else to the password alone


def require_second_factor(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Lead a person who lacks the second factor that they need to its page; programs get a refusal."""

    def guarded(request: HttpRequest) -> HttpResponse:
        if (
            not settings.SECOND_FACTOR_REQUIRED
            or (request.path.startswith(OPEN) and not request.path.startswith(CLOSED))
            or not lacks_second_factor(request.user)
        ):
            return get_response(request)
        if request.path.startswith("/api/"):
            return HttpResponseForbidden(NEEDED, content_type="text/plain; charset=utf-8")
        messages.warning(request, NEEDED)
        return redirect("mfa_activate_totp")

    return guarded
