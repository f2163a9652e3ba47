"""The address of a clip. Its token is the only credential; no cookie is read."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from listening.trials.serving import Unavailable, clip_for, send
from portal.core.media import ranged_response, secured

KEPT_S = 3600


@require_safe
def clip(request: HttpRequest, token: str, clip: str) -> HttpResponseBase:
    """The sound of a slot of a trial, whole or the byte range asked for."""
    try:
        found = clip_for(token, clip)
    except Unavailable as error:
        headers = {"Cache-Control": "private, no-store"}
        return HttpResponse(
            error.sentence, status=error.status, content_type="text/plain; charset=utf-8", headers=headers
        )
    response = ranged_response(request, found.size, "audio/flac", lambda start, stop: send(found, start, stop))
    return secured(response, KEPT_S)
