"""Who may open a page. A page that a visitor may not open looks exactly like one that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

View = Callable[..., HttpResponse]


def _ask_to_log_in(request: HttpRequest, why: str = "") -> HttpResponse:
    """Back to the page afterwards. What was sent by a form is not kept, which is told; then to the page of the form."""
    wanted = request.get_full_path()
    if request.method == "POST":
        why, came_from = "unsaved", request.headers.get("Referer", "")
        if url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure()):
            wanted = urlsplit(came_from)._replace(scheme="", netloc="").geturl() or wanted
    return redirect(redirect_to_login(wanted).url + (f"&{why}=1" if why else ""))


def _page_for(allowed: Callable[[Any], bool]) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return _ask_to_log_in(request)
            if not allowed(request.user):
                raise Http404
            response = view(request, *args, **kwargs)
            if not response.has_header("Cache-Control"):
                patch_cache_control(response, private=True, no_store=True)
            return response

        return guarded

    return decorate


def open_page(view: View) -> View:
    """Return a page that shows each visitor what they may see; one who is not logged in and may see nothing is asked
    to."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            if request.user.is_authenticated:
                raise
            return _ask_to_log_in(request, "missing")
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response

    return guarded


def _only_read(page: Callable[[View], View]) -> Callable[[View], View]:
    """Return the same for a page that takes nothing but GET and HEAD."""
    return lambda view: require_safe(page(view))


member_page = _page_for(lambda _: True)

organizer_page = _page_for(lambda user: user.is_organizer)
operator_page = _page_for(lambda user: user.is_staff)
staff_page = _page_for(lambda user: user.is_organizer or user.is_staff)
open_read, member_read, organizer_read, operator_read, staff_read = map(
    _only_read, (open_page, member_page, organizer_page, operator_page, staff_page)
)


def member_action(view: View) -> View:
    """Return what a member does by a form."""
    return member_page(require_POST(view))


def operator_action(view: View) -> View:
    """Return what an operator does by a form."""
    return operator_page(require_POST(view))


def admin_log_in(request: HttpRequest, extra_context: Any = None) -> HttpResponse:  # noqa: ARG001
    """In place of the log-in page of Django's admin: the portal's own, or an address that is not there."""
    wanted = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure()):
        wanted = reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(wanted)
    if not request.user.is_staff:
        raise Http404
    return redirect(wanted)
