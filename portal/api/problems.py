"""Every error of the API as a problem document (RFC 9457): a title, a status, and a sentence for who reads it.

What somebody may not see looks exactly like what does not exist; a request without an account is asked to log in
before they learn either. Nothing of the inside is told, whatever went wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions

from common.errors import InputError, NotPossible, Refused
from portal.core.errors import AGAIN_S, FILES_AWAY, error_page, internal_error
from portal.core.storage import StorageAway

CONTENT_TYPE = "application/problem+json"
NOT_FOUND = "There is nothing at this address, or nothing that you may see."
NOBODY = "You are not logged in. Log in, or send an access token from your account page."
UNKNOWN_ASKER = "Nothing is public at this address. Log in, or send an access token from your account page."
FAILED = "The portal failed at this request; its operator finds the reason in the log."
TOO_LARGE = "The body of the request is larger than any that this address reads."
OWN_TITLES = {460: "Checksum mismatch"}
log = logging.getLogger("django.request")


def problem(status: int, sentence: str, headers: Mapping[str, str] | None = None, **members: Any) -> JsonResponse:
    """Return an error as a response; `members` are what a program may want to know beyond the sentence."""
    title = OWN_TITLES.get(status) or HTTPStatus(status).phrase
    content = {"type": "about:blank", "title": title, "status": status, "detail": sentence} | members
    return JsonResponse(content, status=status, content_type=CONTENT_TYPE, headers=dict(headers or {}))


def answer(error: Exception, context: Mapping[str, Any]) -> JsonResponse:
    """Return the problem document of whatever a view raised."""
    request = context["request"]
    if isinstance(error, Http404):
        return problem(404, NOT_FOUND) if request.user.is_authenticated else _who_are_you(UNKNOWN_ASKER)
    if isinstance(error, ValidationError):
        return _of_framework(
            exceptions.ValidationError(error.message_dict if hasattr(error, "error_dict") else error.messages)
        )
    if isinstance(error, InputError):
        return _of_framework(exceptions.ValidationError([str(error)]))
    if isinstance(error, NotPossible):
        return problem(409, str(error))
    if isinstance(error, Refused):
        return problem(error.status, str(error), error.headers, **error.more)
    if isinstance(error, StorageAway):
        log.error("API: %s %s: %s", request.method, request.path, error)
        return problem(503, FILES_AWAY, {"Retry-After": str(AGAIN_S)})
    if isinstance(error, RequestDataTooBig):
        return problem(413, TOO_LARGE)
    if isinstance(error, SuspiciousOperation | MultiPartParserError):
        return problem(400, "The request cannot be read.")
    if isinstance(error, PermissionDenied):
        return problem(403, "You may not do this.")
    if isinstance(error, exceptions.MethodNotAllowed):
        allowed = ", ".join(context["view"].allowed_methods)
        sentence = f"{request.method} is not allowed here; this address accepts {allowed}."
        return problem(405, sentence, {"Allow": allowed})
    if isinstance(error, exceptions.NotAcceptable):
        known = ", ".join(renderer.format for renderer in context["view"].get_renderers())
        return problem(406, f"This address does not answer in the format that you ask for; it has {known}.")
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    log.error("API: %s %s failed", request.method, request.path, exc_info=error)
    return problem(500, FAILED)


def _of_framework(error: exceptions.APIException) -> JsonResponse:
    if isinstance(error, exceptions.NotAuthenticated):
        return _who_are_you(NOBODY)
    if isinstance(error, exceptions.AuthenticationFailed):
        return _who_are_you(str(error.detail))
    if isinstance(error, exceptions.ValidationError):
        errors = list(_list_errors(error.detail))
        sentence = " ".join(f"{one['field']}: {one['detail']}" if one["field"] else one["detail"] for one in errors)
        return problem(400, sentence, errors=errors)
    if isinstance(error, exceptions.Throttled):
        wait = max(1, round(getattr(error, "wait", None) or 1))
        sentence = f"{getattr(error, 'sentence', 'Too many requests.')} Try again in {wait} s."
        return problem(429, sentence, {"Retry-After": str(wait)}, retry_after_s=wait)
    return problem(error.status_code, str(error.detail))


def _who_are_you(sentence: str) -> JsonResponse:
    return problem(401, sentence, {"WWW-Authenticate": "Bearer"})


def _list_errors(detail: Any, field: str = "") -> Iterator[dict[str, str]]:
    """Yield each sentence of a refused body with the field that it is about, nested fields with dots."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            here = "" if name == "non_field_errors" else str(name)
            yield from _list_errors(inner, ".".join(filter(None, (field, here))))
    elif isinstance(detail, list | tuple):
        for inner in detail:
            yield from _list_errors(inner, field)
    else:
        yield {"field": field, "detail": str(detail)}


@csrf_exempt  # it changes nothing, and says so in the same words to everybody
def nothing_here(_: HttpRequest, rest: str) -> HttpResponse:
    """Answer below /api/, where there is no address."""
    return problem(404, f"The API has no address /api/{rest[:200]}. All of its addresses are listed at /api/.")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer with a problem document below /api/, in place of Django's page for requests that reach no view."""
    is_large = isinstance(exception, RequestDataTooBig)
    if request.path.startswith("/api/"):
        return problem(413, TOO_LARGE) if is_large else problem(400, "The request cannot be read.")
    return error_page(request, 413 if is_large else 400)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer with a problem document below /api/, in place of Django's page for a failure outside of a view."""
    return problem(500, FAILED) if request.path.startswith("/api/") else internal_error()
