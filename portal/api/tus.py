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
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.http import http_date
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import NotPossible, Refused
from common.line_texts import JOINERS, line_problem
from listening.app.models import Study
from portal.api.access import Scope
from portal.api.base import ApiViewSet
from portal.api.studies import MadeStudySerializer
from portal.challenges.models import Edition
from portal.challenges.selectors import edition_for
from portal.core import transfers
from portal.corpora.forms import UploadForm
from portal.jobs.models import JobState
from portal.submissions.models import System, Upload
from portal.submissions.receiving import ALGORITHMS, Checksum, Read, UploadRefusal
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
    UploadRefusal.INVALID: 422,
    UploadRefusal.FORBIDDEN: 403,
    UploadRefusal.TOO_LARGE: 413,
    UploadRefusal.NO_ROOM: 507,
    UploadRefusal.WRONG_OFFSET: 409,
    UploadRefusal.WRONG_CHECKSUM: 460,
    UploadRefusal.BUSY: 423,
    UploadRefusal.AWAY: 503,
    UploadRefusal.GONE: 410,
    UploadRefusal.FINISHED: 409,
    UploadRefusal.UNFINISHED: 409,
}
# Of Upload-Metadata: of an archive of a team or baseline, and of one of a corpus.
KEYS = ("filename", "edition", "team", "system", "system_kind", "system_title", "sha256", "corpus")


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
    """Return what reads the body as it comes; the web server (`portal.config.gunicorn`) gives up a silent client.

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


class UploadStateSerializer(serializers.ModelSerializer[Upload]):
    """An upload, of which `offset` bytes are on disk, and what became of it.

    `refusal`: why it became no submission and no import. `corpus`: which is imported from it. `submission` and `job`
    have an `id` and the `address` of their page, a job its `state` and `failure`, too.
    """

    edition = serializers.SlugRelatedField[Edition](slug_field="name", read_only=True, allow_null=True)
    corpus = serializers.SerializerMethodField()
    system = serializers.SlugRelatedField[System](slug_field="name", read_only=True, allow_null=True)
    sha256 = serializers.SerializerMethodField()
    expires_at = serializers.SerializerMethodField()
    submission = serializers.SerializerMethodField()
    job = serializers.SerializerMethodField()
    study = serializers.SerializerMethodField()

    class Meta:
        model = Upload
        fields = (
            *("id", "state", "refusal", "edition", "corpus", "team", "system", "file_name", "size", "offset"),
            *("sha256", "expires_at", "submission", "job", "study"),
        )
        read_only_fields = fields

    def get_corpus(self, upload: Upload) -> str | None:
        return None if "test" in upload.imported_as else upload.imported_as.get("name")

    def get_sha256(self, upload: Upload) -> str | None:
        return upload.sha256 or None

    def get_expires_at(self, upload: Upload) -> str | None:
        is_kept = upload.state in {Upload.State.RECEIVING, Upload.State.REFUSED}
        return upload.expires_at.isoformat() if is_kept else None

    def get_submission(self, upload: Upload) -> dict[str, Any] | None:
        submission = getattr(upload, "submission", None)
        return submission and {"id": submission.pk, "address": submission.get_absolute_url()}

    def get_job(self, upload: Upload) -> dict[str, Any] | None:
        job = find_import(upload)
        if job is None:
            return None
        failure = f"{job.failure} {job.failure_remedy}".strip()
        return {"id": job.pk, "address": job.get_absolute_url(), "state": job.state, "failure": failure}

    @extend_schema_field(MadeStudySerializer(allow_null=True))
    def get_study(self, upload: Upload) -> Any:
        job = find_import(upload)
        if job is None or job.state != JobState.SUCCEEDED:
            return None
        study = Study.objects.filter(recordings__upload=str(upload.pk)).first()
        return study and MadeStudySerializer(study, context=self.context).data


# Views --------------------------------------------------------------------------------------------


IN_HEADER: Any = OpenApiParameter.HEADER
TUS_VERSION = OpenApiParameter("Tus-Resumable", str, IN_HEADER, required=True, enum=[VERSION])
CHECKSUM = OpenApiParameter(
    "Upload-Checksum",
    str,
    IN_HEADER,
    description="Of the body: md5, sha1 or sha256, space, digest in base64.",
)
OFFSET = OpenApiParameter("Upload-Offset", int, IN_HEADER, required=True, description="Where the part begins.")
LENGTH = OpenApiParameter("Upload-Length", int, IN_HEADER, required=True, description="Bytes of the whole file.")
METADATA = OpenApiParameter(
    "Upload-Metadata",
    str,
    IN_HEADER,
    required=True,
    description="Pairs of key, space and value in base64, with commas between.",
)


class PartParser(BaseParser):
    """Lets parts pass; they are read as they come."""

    media_type = PART_TYPE

    def parse(self, *_: Any) -> dict[str, Any]:
        return {}


class UploadViewSet(ApiViewSet):
    """Uploads of your teams, of editions that you organise, and of your corpora."""

    http_method_names = [*ApiViewSet.http_method_names, "delete", "options"]
    throttle_classes = []
    parser_classes = [PartParser]
    serializer_class = UploadStateSerializer
    answers = {"partial_update": None, "destroy": None}

    @property
    def default_response_headers(self) -> dict[str, str]:
        return super().default_response_headers | {"Tus-Resumable": VERSION}

    def get_permissions(self) -> Any:
        return [] if self.action == "metadata" else super().get_permissions()

    def get_scopes(self) -> tuple[Scope, ...]:
        """Return the scopes of which a token needs one: those who may submit may see its progress."""
        if self.action == "retrieve":
            return (Scope.READ, Scope.SUBMIT)
        of_tests = Upload.objects.filter(imported_as__has_key="test")
        is_of_test = "pk" in self.kwargs and of_tests.filter(pk=self.kwargs["pk"]).exists()
        return (Scope.ORGANIZE,) if is_of_test else (Scope.SUBMIT,)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Take the method that the client means; those that cannot send others say so in a header of a POST."""
        if request.method == "POST" and (method := request.headers.get("X-HTTP-Method-Override")):
            request.method = method.upper()
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        version = request.headers.get("Tus-Resumable")
        is_needed = version is not None or self.action in {"create", "offset", "partial_update", "destroy"}
        if version != VERSION and is_needed and self.action != "metadata":
            sentence = f"The header Tus-Resumable must be {VERSION}, found {version or 'none'}."
            raise Refused(412, sentence, headers={"Tus-Version": VERSION})

    def handle_exception(self, exc: Exception) -> Any:
        return super().handle_exception(_as_refused(exc) if isinstance(exc, NotPossible) else exc)

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Say what the server knows of tus, to everybody."""
        largest = Edition.objects.filter(is_listed=True).aggregate(bytes=Max("largest_archive_bytes"))["bytes"]
        headers = {
            "Tus-Version": VERSION,
            "Tus-Extension": EXTENSIONS,
            "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
        }
        return HttpResponse(status=204, headers=headers | ({"Tus-Max-Size": str(largest)} if largest else {}))

    @extend_schema(parameters=[TUS_VERSION, LENGTH, METADATA, CHECKSUM], responses={201: None})
    def create(self, request: Request) -> HttpResponse:
        """Begin an upload, for approved teams of the edition and its organizers; `Location` is its address.

        `Upload-Metadata` holds pairs of key and value in base64: filename, edition, team (its number; left out for
        your own), then either system (a further version of it) or system_kind (primary, contrastive) and system_title
        for a new one; sha256 of the whole file. Team, phase, quota, size and free space are checked before the first
        byte. Organizers import a corpus with corpus (its name) instead of edition, and layout (manifest, librispeech,
        kaldi), resample, is_synthetic and is_shared (on) where they are needed. A body is taken as its first part.
        """
        size = number_in(request, "Upload-Length")
        metadata = parse_metadata(request)
        said: dict[str, Any] = {"file_name": metadata["filename"], "claimed_sha256": metadata["sha256"]}
        said |= {"size": size, "by": request.user, "now": timezone.now()}
        if metadata["corpus"]:
            upload = create_corpus_upload(plan=plan_corpus(metadata), **said)
        else:
            upload = create_upload(plan=plan_upload(request.user, metadata), **said)
        headers = {"Location": reverse("uploads:detail", args=[upload.pk]), "Upload-Expires": _expiry(upload)}
        if not upload.is_new:  # its sender goes on from where it is
            return HttpResponse(status=200, headers=headers | {"Upload-Offset": str(upload.offset)})
        if request._request.content_type == PART_TYPE:
            try:
                upload = self._receive(upload, offset=0)
            except (NotPossible, Refused) as error:  # the upload itself exists
                refused = _as_refused(error) if isinstance(error, NotPossible) else error
                refused.headers |= headers
                raise refused from None
            headers["Upload-Offset"] = str(upload.offset)
        return HttpResponse(status=201, headers=headers)

    def retrieve(self, request: Request, pk: UUID) -> Response:
        """Show the state of an upload and, once it is complete, its submission; HEAD tells how far it is."""
        return Response(self.get_serializer(upload_for(request.user, pk)).data)

    def offset(self, request: Request, pk: UUID) -> HttpResponse:
        """Tell how far an upload is: `Upload-Offset` and `Upload-Length`."""
        upload = upload_for(request.user, pk)
        if upload.state != Upload.State.COMPLETE:
            require_unfinished(upload)
        headers = {"Upload-Offset": str(upload.offset), "Upload-Length": str(upload.size)}
        headers |= {"Upload-Metadata": metadata_header(upload), "Upload-Expires": _expiry(upload)}
        return HttpResponse(status=200, headers=headers)

    @extend_schema(parameters=[TUS_VERSION, OFFSET, CHECKSUM], request={PART_TYPE: OpenApiTypes.BINARY})
    def partial_update(self, request: Request, pk: UUID) -> HttpResponse:
        """Send the bytes from `Upload-Offset` on. What was acknowledged survives any crash.

        After a broken connection ask for the offset by HEAD and continue. The last part completes the submission.
        """
        upload = upload_for(request.user, pk)
        if request._request.content_type != PART_TYPE:
            raise Refused(415, f"The Content-Type of a part must be {PART_TYPE}.")
        upload = self._receive(upload, offset=number_in(request, "Upload-Offset"))
        headers = {"Upload-Offset": str(upload.offset), "Upload-Expires": _expiry(upload)}
        return HttpResponse(status=204, headers=headers)

    def _receive(self, upload: Upload, *, offset: int) -> Upload:
        request = self.request._request
        checksum = parse_checksum(request)
        read, length = body_reader(request), announced_length(request)
        sender = (upload.edition_id, upload.team_id) if upload.edition_id else ("corpora", upload.created_by_id)
        with transfers.places.upload_of(sender) as has_place:
            if not has_place:
                sentence = "Many uploads are running, of this team or in all. The upload continues in a moment."
                raise Refused(503, sentence, headers={"Retry-After": "10"})
            by = self.request.user
            return receive_part(upload=upload, offset=offset, read=read, length=length, checksum=checksum, by=by)

    @extend_schema(parameters=[TUS_VERSION])
    def destroy(self, request: Request, pk: UUID) -> HttpResponse:
        """Discard an unfinished upload with all parts received."""
        abandon_upload(upload=upload_for(request.user, pk), by=request.user)
        return HttpResponse(status=204)

    def submit(self, request: Request, pk: UUID) -> Response:
        """Try again to make a submission of a complete upload that was refused."""
        upload = submit_again(upload=upload_for(request.user, pk), now=timezone.now(), by=request.user)
        return Response(self.get_serializer(upload).data)


def _as_refused(error: NotPossible) -> Refused:
    return Refused(STATUS[UploadRefusal(error.code or UploadRefusal.FINISHED)], str(error))


def _expiry(upload: Upload) -> str:
    return http_date(upload.expires_at.timestamp())


ONE: Any = {"head": "offset", "patch": "partial_update", "delete": "destroy", "get": "retrieve"}
app_name = "uploads"
urlpatterns = [
    path("", UploadViewSet.as_view({"post": "create"}), name="create"),
    path("<uuid:pk>", UploadViewSet.as_view(ONE), name="detail"),
    path("<uuid:pk>/submit", UploadViewSet.as_view({"post": "submit"}), name="submit"),
]
