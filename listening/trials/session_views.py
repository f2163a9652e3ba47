"""The requests of the trial page: where the session stands, answers, signs of life, another tab, broken sound.

The token in the address is the only credential; no cookie is read or set, so that the page works inside a frame that
blocks them. What is refused is told in JSON with the status of the refusal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.http import HttpRequest, JsonResponse, UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from listening.models import Session
from listening.trials import answers, states
from listening.trials.answers import Refused
from listening.trials.payloads import MOST_BYTES_OF_BOARD
from listening.trials.sessions import session_for


@require_GET
def state(request: HttpRequest, token: str) -> JsonResponse:  # noqa: ARG001
    """Where the session stands, and its next trials."""
    session = session_for(token)
    if session.state != Session.State.ACTIVE:
        return _told(answers.ended(session))
    return _json(states.state_of(session, timezone.now()))


@csrf_exempt
@require_POST
def save(request: HttpRequest, token: str) -> JsonResponse:
    """Take the answers about one page of a trial."""
    return _receive(answers.receive_answers, request, token)


@csrf_exempt
@require_POST
def alive(request: HttpRequest, token: str) -> JsonResponse:
    return _receive(answers.receive_alive, request, token)


@csrf_exempt
@require_POST
def take_over(request: HttpRequest, token: str) -> JsonResponse:
    return _receive(answers.receive_take_over, request, token)


@csrf_exempt
@require_POST
def report(request: HttpRequest, token: str) -> JsonResponse:
    """Note that a recording fails, and skip its trial where that is asked."""
    return _receive(answers.receive_report, request, token)


def _receive(
    receive: Callable[[str, bytes, datetime], dict[str, Any]], request: HttpRequest, token: str
) -> JsonResponse:
    try:
        return _json(receive(token, _body(request), timezone.now()))
    except Refused as refused:
        return _told(refused)


def _body(request: HttpRequest) -> bytes:
    """What was sent; what is announced as far too long is not read at all."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES_OF_BOARD:
        return b" " * (MOST_BYTES_OF_BOARD + 1)
    try:
        return request.body
    except UnreadablePostError:
        return b""  # nobody hears the answer


def _told(refused: Refused) -> JsonResponse:
    response = _json(refused.body, refused.status)
    if "retry_after_s" in refused.body:
        response["Retry-After"] = str(math.ceil(refused.body["retry_after_s"]))
    return response


def _json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "private, no-store"})
