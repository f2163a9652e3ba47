"""Uploads by the tus protocol 1.0.0 (https://tus.io/protocols/resumable-upload), so that any tus client can send.

Core, creation, creation-with-upload, checksum, termination and expiration. Beyond the protocol, GET tells the state of
an upload as JSON and `submit` asks again for the submission of a complete upload that was refused one. A sender who
says the SHA-256 of the file may create its upload as often as it likes: where that content is here, in part or as a
submission, the answer is 200 with its address and offset. An upload that names a corpus instead of an edition is an
organizer's, and is imported. Requests are read strictly; errors are problem details (RFC 9457) with a sentence for the
sender, and what belongs to others looks like what does not exist. Conventions: header values are text as sent; sizes
and offsets are whole numbers of bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import http_date
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import CSRFCheck

from common.errors import NotPossible, Refused
from common.line_texts import JOINERS, line_problem
from listening.app.models import Study
from portal.accounts.models import AccessToken
from portal.accounts.tokens import user_of_token
from portal.api.problems import problem
from portal.api.studies import MadeStudySerializer
from portal.challenges.models import Edition
from portal.challenges.selectors import edition_for
from portal.core import transfers
from portal.corpora.forms import UploadForm
from portal.jobs.models import Job, JobState
from portal.submissions.models import System, Upload
from portal.submissions.receiving import ALGORITHMS, Checksum, Read, Reason
from portal.submissions.resumable_uploads import (
    CorpusPlan,
    UploadPlan,
    abandon_upload,
    create_corpus_upload,
    create_upload,
    find_import,
    receive_part,
    require_unfinished,
    submit_again,
)
from portal.submissions.selectors import upload_for
from portal.teams.models import Team
from portal.teams.selectors import team_of, teams_for

VERSION = "1.0.0"
PART_TYPE = "application/offset+octet-stream"
EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
STATUS = {
    Reason.INVALID: 422,
    Reason.FORBIDDEN: 403,
    Reason.TOO_LARGE: 413,
    Reason.NO_ROOM: 507,
    Reason.WRONG_OFFSET: 409,
    Reason.WRONG_CHECKSUM: 460,
    Reason.BUSY: 423,
    Reason.AWAY: 503,
    Reason.GONE: 410,
    Reason.FINISHED: 409,
    Reason.UNFINISHED: 409,
}
# Of Upload-Metadata: of an archive of a team or baseline, and of one of a corpus.
KEYS = ("filename", "edition", "team", "system", "system_kind", "system_title", "sha256", "corpus")
Action = Callable[..., HttpResponse]


def read_method(request: HttpRequest) -> str:
    """Return the method that the client means; those that cannot send others say so in a header of a POST."""
    override = request.headers.get("X-HTTP-Method-Override")
    return override.upper() if override and request.method == "POST" else request.method or ""


# Sender -------------------------------------------------------------------------------------------
def identify_sender(request: HttpRequest, method: str, scope: AccessToken.Scope) -> Any:
    """Return who asks: the owner of the bearer token, or the person who is logged in.

    Raises:
        Refused: nobody is known, the token lacks the scope, or a change was asked for without the CSRF token.
    """
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        token = user_of_token(secret.strip(), timezone.now())
        if token is None:
            raise _unknown("The access token is unknown, revoked or expired.")
        # Those who may submit may see its progress.
        also = {AccessToken.Scope.SUBMIT} if scope == AccessToken.Scope.READ else set()
        if not {scope, *also} & set(token.scopes):
            sentence = f"The access token lacks the scope “{scope}”. Make one with it on your account page."
            raise Refused(403, sentence)
        return token.user
    if not request.user.is_authenticated:
        raise _unknown("Log in, or send an access token from your account page.")
    if method not in {"GET", "HEAD"} and _lacks_csrf_token(request):
        raise Refused(403, "This page is out of date. Load it again and continue; what has arrived is kept.")
    return request.user


def _unknown(sentence: str) -> Refused:
    return Refused(401, sentence, headers={"WWW-Authenticate": "Bearer"})


def _lacks_csrf_token(request: HttpRequest) -> bool:
    check = CSRFCheck(lambda _: None)  # type: ignore[arg-type]
    check.process_request(request)
    return check.process_view(request, None, (), {}) is not None  # type: ignore[arg-type]


# Numbers and bytes --------------------------------------------------------------------------------
def number_in(request: HttpRequest, header: str) -> int:
    """Return the whole number in a header that must be there."""
    text = request.headers.get(header, "")
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise Refused(400, f"The header {header} must be a whole number of bytes, found {text[:40] or 'none'}.")
    return int(text)


def announced_length(request: HttpRequest) -> int | None:
    """Return how long the body is; None where only its end will tell."""
    if _is_chunked(request):
        return None
    return number_in(request, "Content-Length") if "Content-Length" in request.headers else 0


def _is_chunked(request: HttpRequest) -> bool:
    return "chunked" in request.headers.get("Transfer-Encoding", "").lower()


def body_reader(request: HttpRequest) -> Read:
    """Return what reads the body as it comes; the web server (`portal.core.web_worker`) gives up a silent client.

    It would keep its upload to itself else, also against its own next try.
    """
    # Django reads no body without a length; the server knows the end of a chunked one.
    return _unchunked(request.META["wsgi.input"].read) if _is_chunked(request) else request.read


def _unchunked(read: Read) -> Read:
    """Read a chunked body; where it turns out to be no such, the connection is as good as broken."""
    from gunicorn.http.errors import ParseException

    def next_bytes(size: int) -> bytes:
        try:
            return read(size)
        except ParseException as error:
            raise OSError(str(error)) from error

    return next_bytes


def parse_checksum(request: HttpRequest) -> Checksum | None:
    """Return what ``Upload-Checksum: sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=`` says."""
    text = request.headers.get("Upload-Checksum")
    if text is None:
        return None
    algorithm, _, value = text.partition(" ")
    if algorithm not in ALGORITHMS:
        raise Refused(400, f"Checksums may be {', '.join(ALGORITHMS)}, found {algorithm[:40] or 'none'}.")
    try:
        digest = base64.b64decode(value, validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != hashlib.new(algorithm, usedforsecurity=False).digest_size:
        raise Refused(400, f"The checksum is no {algorithm} in base64.")
    return Checksum(algorithm, digest)


# Metadata -----------------------------------------------------------------------------------------
def parse_metadata(request: HttpRequest) -> dict[str, str]:
    """Return the pairs of Upload-Metadata: key, space, base64 value, commas between them; `KEYS` are always there."""
    found = dict.fromkeys(KEYS, "")
    for pair in filter(None, map(str.strip, request.headers.get("Upload-Metadata", "").split(","))):
        key, _, value = pair.partition(" ")
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Refused(400, f"Upload-Metadata: the value of {key[:40]} is no UTF-8 text in base64.") from None
        if "\0" in found[key]:
            raise Refused(400, f"Upload-Metadata: the value of {key[:40]} holds an invalid character.")
    sha256, kind = found["sha256"].strip().lower(), found["system_kind"] or System.Kind.PRIMARY
    if not re.fullmatch(r"([0-9a-f]{64})?", sha256):
        raise Refused(422, "sha256 must be 64 hexadecimal digits.")
    if kind not in System.Kind.values:
        raise Refused(422, f"system_kind must be primary or contrastive, found “{kind[:40]}”.")
    name, title = _file_name(found["filename"]), " ".join(found["system_title"].split())[:120]
    if sentence := line_problem(title):
        raise Refused(422, f"system_title: {sentence}")
    return found | {"filename": name, "system_kind": kind, "system_title": title, "sha256": sha256}


def metadata_header(upload: Upload) -> str:
    """Return what Upload-Metadata says of an upload that is here."""
    kept = {} if "test" in upload.imported_as else upload.imported_as  # what a test is of is too long for a header
    wanted = {name: "on" if value is True else value or "" for name, value in kept.items()}
    found = {("corpus" if name == "name" else name): value for name, value in wanted.items()}
    found |= {
        "filename": upload.file_name,
        "edition": upload.edition.name if upload.edition else "",
        "team": str(upload.team_id or ""),
        "system": upload.system.name if upload.system else "",
        "system_kind": upload.system_kind,
        "system_title": upload.system_title,
        "sha256": upload.claimed_sha256,
    }
    return ",".join(f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in found.items() if text)


def _file_name(text: str) -> str:
    """Return the last part of a path of any system, short enough to be kept; its ending stays."""
    return _line(re.split(r"[/\\]", text)[-1])[-255:]


def _line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() or sign in JOINERS else " " for sign in text).split())


def plan_upload(user: Any, metadata: dict[str, str]) -> UploadPlan:
    """Return what the file shall become. A sender who names no team means their own, an organizer a baseline.

    Raises:
        Refused: edition, team or system are none of the sender's.
    """
    edition = _edition(user, metadata["edition"])
    team, wanted = _team(user, edition, metadata["team"]), metadata["system"]
    if not wanted:
        return UploadPlan(edition, team, kind=metadata["system_kind"], title=metadata["system_title"])
    system = System.objects.filter(edition=edition, team=team, name=wanted).first()
    if system is None:
        whose = f"The team “{team}”" if team else "The edition"
        raise Refused(422, f"{whose} has no {'system' if team else 'baseline'} named “{wanted[:60]}”.")
    return UploadPlan(edition, team, system=system)


def plan_corpus(metadata: dict[str, str]) -> CorpusPlan:
    """Return what the archive of a corpus shall become, read as the form of the page.

    Raises:
        Refused: with every error of the form.
    """
    form = UploadForm(metadata | {"name": metadata["corpus"]})
    if metadata["edition"]:
        raise Refused(422, "An archive is for an edition or for a corpus: send “edition” or “corpus”, not both.")
    if not form.is_valid():
        raise Refused(422, " ".join(str(one) for found in form.errors.values() for one in found))
    options = dict(form.cleaned_data)
    return CorpusPlan(options.pop("name"), options)


def _edition(user: Any, name: str) -> Edition:
    try:
        return edition_for(user, name)
    except Http404:
        raise Refused(422, f"There is no edition named “{name[:60]}”: send its name as “edition”.") from None


def _team(user: Any, edition: Edition, key: str) -> Team | None:
    if key:
        team = teams_for(user).filter(edition=edition, pk=int(key)).first() if re.fullmatch(r"\d{1,9}", key) else None
        if team is None:
            raise Refused(422, f"No team of yours in this edition has the number “{key[:40]}”.")
        return team
    team = team_of(user, edition)
    if team is None and not edition.organizers.filter(pk=user.pk).exists():
        raise Refused(403, f"You belong to no team of “{edition}”. Register one, or ask to be invited.")
    return team


def _address(actions: dict[str, Action]) -> Callable[..., HttpResponse]:
    """Return an address with an action for each method; the sender is known by session (CSRF token) or by token."""

    @csrf_exempt  # checked in `identify_sender` for those who come by session
    def answer(request: HttpRequest, **address: Any) -> HttpResponse:
        try:
            response = _act(request, actions, address)
        except NotPossible as error:
            response = problem(STATUS[Reason(error.code or Reason.FINISHED)], str(error))
        except Refused as error:
            response = problem(error.status, str(error), error.headers)
        except Http404:
            response = problem(404, "There is no such upload.")
        response["Tus-Resumable"] = VERSION
        response["Cache-Control"] = "no-store"
        return response

    return answer


def _act(request: HttpRequest, actions: dict[str, Action], address: dict[str, Any]) -> HttpResponse:
    method = read_method(request)
    if method == "OPTIONS":
        return _options(actions)
    if method not in actions:
        raise Refused(405, f"{method} is not allowed here.", headers={"Allow": ", ".join([*actions, "OPTIONS"])})
    if method in {"HEAD", "PATCH", "DELETE"} or "Tus-Resumable" in request.headers:
        _require_version(request)
    makes_test = "pk" in address and Upload.objects.filter(pk=address["pk"], imported_as__has_key="test").exists()
    changing = AccessToken.Scope.ORGANIZE if makes_test else AccessToken.Scope.SUBMIT
    scope = AccessToken.Scope.READ if method == "GET" else changing
    return actions[method](request, identify_sender(request, method, scope), **address)


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
        raise Refused(412, sentence, headers={"Tus-Version": VERSION})


def _create(request: HttpRequest, user: Any) -> HttpResponse:
    _require_version(request)
    size = number_in(request, "Upload-Length")
    metadata = parse_metadata(request)
    said: dict[str, Any] = {"file_name": metadata["filename"], "claimed_sha256": metadata["sha256"]}
    said |= {"size": size, "by": user, "now": timezone.now()}
    if metadata["corpus"]:
        upload = create_corpus_upload(plan=plan_corpus(metadata), **said)
    else:
        upload = create_upload(plan=plan_upload(user, metadata), **said)
    headers = {"Location": reverse("uploads:detail", args=[upload.pk]), "Upload-Expires": _expiry(upload)}
    if not upload.is_new:  # its sender goes on from where it is
        return HttpResponse(status=200, headers=headers | {"Upload-Offset": str(upload.offset)})
    if request.content_type == PART_TYPE:
        try:
            upload = _receive(request, user, upload, offset=0)
        except NotPossible as error:  # the upload itself exists
            return problem(STATUS[Reason(error.code or Reason.FINISHED)], str(error), headers)
        except Refused as error:
            return problem(error.status, str(error), headers | error.headers)
        headers["Upload-Offset"] = str(upload.offset)
    return HttpResponse(status=201, headers=headers)


def _head(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    upload = upload_for(user, pk)
    if upload.state != Upload.State.COMPLETE:
        require_unfinished(upload)
    headers = {"Upload-Offset": str(upload.offset), "Upload-Length": str(upload.size)}
    headers |= {"Upload-Metadata": metadata_header(upload), "Upload-Expires": _expiry(upload)}
    return HttpResponse(status=200, headers=headers)


def _patch(request: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    upload = upload_for(user, pk)
    if request.content_type != PART_TYPE:
        raise Refused(415, "The Content-Type of a part must be application/offset+octet-stream.")
    upload = _receive(request, user, upload, offset=number_in(request, "Upload-Offset"))
    headers = {"Upload-Offset": str(upload.offset), "Upload-Expires": _expiry(upload)}
    return HttpResponse(status=204, headers=headers)


def _receive(request: HttpRequest, user: Any, upload: Upload, *, offset: int) -> Upload:
    checksum = parse_checksum(request)
    read, length = body_reader(request), announced_length(request)
    sender = (upload.edition_id, upload.team_id) if upload.edition_id else ("corpora", upload.created_by_id)
    with transfers.places.upload_of(sender) as has_place:
        if not has_place:
            sentence = "Many uploads are running, of this team or in all. The upload continues in a moment."
            raise Refused(503, sentence, headers={"Retry-After": "10"})
        return receive_part(upload=upload, offset=offset, read=read, length=length, checksum=checksum, by=user)


def _delete(_: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    abandon_upload(upload=upload_for(user, pk), by=user)
    return HttpResponse(status=204)


def _get(request: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    return JsonResponse(as_json(upload_for(user, pk), request))


def _submit(request: HttpRequest, user: Any, pk: UUID) -> HttpResponse:
    return JsonResponse(as_json(submit_again(upload=upload_for(user, pk), now=timezone.now(), by=user), request))


def as_json(upload: Upload, request: HttpRequest) -> dict[str, Any]:
    """Return the state of an upload for programs, and what a job has made of it."""
    submission = getattr(upload, "submission", None)
    job = find_import(upload) if upload.edition is None else None
    is_made = job is not None and job.state == JobState.SUCCEEDED
    study = Study.objects.filter(recordings__upload=str(upload.pk)).first() if is_made else None
    return {
        "id": str(upload.pk),
        "state": upload.state,
        "refusal": upload.refusal,
        "edition": upload.edition.name if upload.edition else None,
        "corpus": None if "test" in upload.imported_as else upload.imported_as.get("name"),
        "team": upload.team_id,
        "system": upload.system.name if upload.system else None,
        "file_name": upload.file_name,
        "size": upload.size,
        "offset": upload.offset,
        "sha256": upload.sha256 or None,
        "expires_at": upload.expires_at.isoformat() if upload.state in {"receiving", "refused"} else None,
        "submission": {"id": submission.pk, "address": submission.get_absolute_url()} if submission else None,
        "job": _told(job) if job else None,
        "study": MadeStudySerializer(study, context={"request": request}).data if study else None,
    }


def _told(job: Job) -> dict[str, Any]:
    failure = f"{job.failure} {job.failure_remedy}".strip()
    return {"id": job.pk, "address": job.get_absolute_url(), "state": job.state, "failure": failure}


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
