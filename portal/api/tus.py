"""Uploads by the tus protocol 1.0.0 (https://tus.io/protocols/resumable-upload), so that any tus client can send.

Core, creation, creation-with-upload, checksum, termination and expiration. Beyond the protocol, GET tells the state of
an upload as JSON and `submit` asks again for the submission of a complete upload that was refused one. Faults are
problem details (RFC 9457) with a sentence for the sender. What belongs to others looks like what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import http_date
from django.views.decorators.csrf import csrf_exempt

from portal.accounts.models import AccessToken
from portal.api.problems import problem
from portal.api.tus_requests import (
    VERSION,
    RequestError,
    announced_length,
    body_of,
    checksum_of,
    drain,
    has_part,
    metadata_header,
    metadata_of,
    method_of,
    number_in,
    plan_of,
    receiving_slot,
    sender_of,
)
from portal.challenges.models import Edition
from portal.submissions.models import Upload
from portal.submissions.receiving import ALGORITHMS, Fault, UploadError
from portal.submissions.selectors import upload_for
from portal.submissions.uploads import abandon_upload, create_upload, receive_part, submit_again, tail_of

EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
STATUS = {
    Fault.INVALID: 422,
    Fault.FORBIDDEN: 403,
    Fault.TOO_LARGE: 413,
    Fault.NO_ROOM: 507,
    Fault.WRONG_OFFSET: 409,
    Fault.WRONG_CHECKSUM: 460,
    Fault.BUSY: 423,
    Fault.GONE: 410,
    Fault.FINISHED: 409,
    Fault.UNFINISHED: 409,
}
Action = Callable[..., HttpResponse]


def _address(actions: dict[str, Action]) -> Callable[..., HttpResponse]:
    """An address with an action for each method; the sender is known by session (with its CSRF token) or by token."""

    @csrf_exempt  # checked in `sender_of` for those who come by session
    def answer(request: HttpRequest, **address: Any) -> HttpResponse:
        try:
            response = _act(request, actions, address)
        except UploadError as fault:
            response = problem(STATUS[fault.fault], fault.sentence)
        except RequestError as error:
            response = problem(error.status, error.sentence, error.headers)
        except Http404:
            response = problem(404, "There is no such upload.")
        if response.status_code >= 400:
            drain(request)
        response["Tus-Resumable"] = VERSION
        response["Cache-Control"] = "no-store"
        return response

    return answer


def _act(request: HttpRequest, actions: dict[str, Action], address: dict[str, Any]) -> HttpResponse:
    method = method_of(request)
    if method == "OPTIONS":
        return _options(actions)
    if method not in actions:
        raise RequestError(405, f"{method} means nothing here.", {"Allow": ", ".join([*actions, "OPTIONS"])})
    if method in {"HEAD", "PATCH", "DELETE"} or "Tus-Resumable" in request.headers:
        _require_version(request)
    scope = AccessToken.Scope.READ if method == "GET" else AccessToken.Scope.SUBMIT
    return actions[method](request, sender_of(request, method, scope), **address)


def _options(actions: dict[str, Action]) -> HttpResponse:
    largest = Edition.objects.filter(is_listed=True).aggregate(bytes=Max("largest_archive_bytes"))["bytes"]
    headers = {
        "Allow": ", ".join([*actions, "OPTIONS"]),
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
    }
    return HttpResponse(status=204, headers=headers | ({"Tus-Max-Size": str(largest)} if largest else {}))


def _require_version(request: HttpRequest) -> None:
    found = request.headers.get("Tus-Resumable")
    if found != VERSION:
        sentence = f"The header Tus-Resumable must be {VERSION}, found {found or 'none'}."
        raise RequestError(412, sentence, {"Tus-Version": VERSION})


def _create(request: HttpRequest, user: Any) -> HttpResponse:
    _require_version(request)
    size = number_in(request, "Upload-Length")
    metadata = metadata_of(request)
    plan = plan_of(user, metadata)
    upload = create_upload(
        plan=plan,
        file_name=metadata.file_name,
        size=size,
        claimed_sha256=metadata.sha256,
        by=user,
        now=timezone.now(),
    )
    headers = {"Location": reverse("uploads:detail", args=[upload.pk]), "Upload-Expires": _expiry(upload)}
    if has_part(request):
        try:
            upload = _receive(request, user, upload, offset=0)
        except UploadError as fault:  # the upload itself exists
            return problem(STATUS[fault.fault], fault.sentence, headers)
        headers["Upload-Offset"] = str(upload.offset)
    return HttpResponse(status=201, headers=headers)


def _head(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    upload = _living(upload_for(user, pk))
    headers = {"Upload-Offset": str(upload.offset), "Upload-Length": str(upload.size)}
    headers |= {"Upload-Metadata": metadata_header(upload), "Upload-Expires": _expiry(upload)}
    return HttpResponse(status=200, headers=headers)


def _patch(request: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    upload = upload_for(user, pk)
    if not has_part(request):
        raise RequestError(415, "The Content-Type of a part must be application/offset+octet-stream.")
    upload = _receive(request, user, upload, offset=number_in(request, "Upload-Offset"))
    headers = {"Upload-Offset": str(upload.offset), "Upload-Expires": _expiry(upload)}
    return HttpResponse(status=204, headers=headers)


def _receive(request: HttpRequest, user: Any, upload: Upload, *, offset: int) -> Upload:
    checksum = checksum_of(request)
    with receiving_slot(), body_of(request) as read:
        return receive_part(
            upload=upload, offset=offset, read=read, length=announced_length(request), checksum=checksum, by=user
        )


def _delete(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    abandon_upload(upload=upload_for(user, pk), by=user)
    return HttpResponse(status=204)


def _get(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    return JsonResponse(as_json(upload_for(user, pk)))


def _submit(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    return JsonResponse(as_json(submit_again(upload=upload_for(user, pk), now=timezone.now(), by=user)))


def as_json(upload: Upload) -> dict[str, Any]:
    """The state of an upload for programs; by `tail`, the end of what came, a sender knows its file again."""
    submission = getattr(upload, "submission", None)
    return {
        "id": str(upload.pk),
        "state": upload.state,
        "refusal": upload.refusal,
        "edition": upload.edition.name,
        "team": upload.team_id,
        "system": upload.system.name if upload.system else None,
        "file_name": upload.file_name,
        "size": upload.size,
        "offset": upload.offset,
        "sha256": upload.sha256 or None,
        "expires_at": upload.expires_at.isoformat() if upload.state in {"receiving", "refused"} else None,
        "tail": tail_of(upload) if upload.state == Upload.State.RECEIVING else None,
        "submission": {"id": submission.pk, "address": submission.get_absolute_url()} if submission else None,
    }


def _living(upload: Upload) -> Upload:
    """The upload, unless it was given up or its time is over."""
    over = {Upload.State.ABANDONED: "was discarded", Upload.State.EXPIRED: "has expired"}
    unfinished = upload.state in {Upload.State.RECEIVING, Upload.State.REFUSED}
    state = Upload.State.EXPIRED if unfinished and upload.expires_at <= timezone.now() else upload.state
    if state in over:
        raise UploadError(Fault.GONE, f"This upload {over[Upload.State(state)]}. Upload the file again.")
    return upload


def _expiry(upload: Upload) -> str:
    return http_date(upload.expires_at.timestamp())


create = _address({"POST": _create})
detail = _address({"HEAD": _head, "PATCH": _patch, "DELETE": _delete, "GET": _get})
submit = _address({"POST": _submit})

app_name = "uploads"
urlpatterns = [
    path("", create, name="create"),
    path("<uuid:pk>", detail, name="detail"),
    path("<uuid:pk>/submit", submit, name="submit"),
]
