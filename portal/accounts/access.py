"""Who may open a page. A page that a visitor may not open looks exactly like one that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control

View = Callable[..., HttpResponse]


def _page_for(allowed: Callable[[Any], bool]) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            if not allowed(request.user):
                raise Http404
            response = view(request, *args, **kwargs)
            if not response.has_header("Cache-Control"):
                patch_cache_control(response, private=True, no_store=True)
            return response

        return guarded

    return decorate


organizer_page = _page_for(lambda user: user.is_organizer)
operator_page = _page_for(lambda user: user.is_staff)
staff_page = _page_for(lambda user: user.is_organizer or user.is_staff)
