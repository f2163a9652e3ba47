"""What a tus request says, read strictly: method, sender, numbers, metadata, checksum and the bytes themselves.

Conventions: header values are text as the client sent it; sizes and offsets are whole numbers of bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone

from portal.accounts.models import AccessToken
from portal.accounts.tokens import user_of_token
from portal.challenges.models import Edition
from portal.challenges.selectors import edition_for
from portal.submissions.models import System, Upload
from portal.submissions.receiving import ALGORITHMS, PIECE_BYTES, Checksum, Read
from portal.submissions.uploads import Plan
from portal.teams.models import Team
from portal.teams.selectors import team_of, teams_for

VERSION = "1.0.0"
PART_TYPE = "application/offset+octet-stream"
SILENCE_S = 20.0
KEPT_FOR_PAGES = 4
DRAINED_S, DRAINED_BYTES = 5.0, 64 << 20
_slots = threading.BoundedSemaphore(max(1, settings.WEB_THREADS - KEPT_FOR_PAGES))


class RequestError(Exception):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


def method_of(request: HttpRequest) -> str:
    """The method that the client means; those that cannot send others say so in a header of a POST."""
    override = request.headers.get("X-HTTP-Method-Override")
    return override.upper() if override and request.method == "POST" else request.method or ""


# Sender -------------------------------------------------------------------------------------------


def sender_of(request: HttpRequest, method: str, scope: AccessToken.Scope) -> Any:
    """Who asks: the owner of the bearer token, or whoever is logged in.

    Raises:
        RequestError: nobody is known, the token lacks the scope, or a change was asked for without the CSRF token.
    """
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return _owner(secret.strip(), scope)
    if not request.user.is_authenticated:
        raise _unknown("Log in, or send an access token from your account page.")
    if method not in {"GET", "HEAD"} and _lacks_csrf_token(request):
        raise RequestError(403, "This page is out of date. Load it again and go on; what has arrived is kept.")
    return request.user


def _owner(secret: str, scope: AccessToken.Scope) -> Any:
    token = user_of_token(secret, timezone.now())
    if token is None or not token.user.is_active:
        raise _unknown("The access token is unknown, revoked or expired.")
    # Whoever may submit may see how that goes on.
    if scope not in token.scopes and AccessToken.Scope.SUBMIT not in token.scopes:
        raise RequestError(403, f"The access token lacks the scope “{scope}”. Make one with it on your account page.")
    return token.user


def _unknown(sentence: str) -> RequestError:
    return RequestError(401, sentence, {"WWW-Authenticate": "Bearer"})


class _Csrf(CsrfViewMiddleware):
    def _reject(self, _: HttpRequest, reason: str) -> Any:
        return reason


def _lacks_csrf_token(request: HttpRequest) -> bool:
    check = _Csrf(lambda _: None)  # type: ignore[arg-type]
    check.process_request(request)
    return check.process_view(request, None, (), {}) is not None  # type: ignore[arg-type]


# Numbers and bytes --------------------------------------------------------------------------------


def number_in(request: HttpRequest, header: str) -> int:
    """The whole number in a header that must be there."""
    text = request.headers.get(header, "")
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise RequestError(400, f"The header {header} must be a whole number of bytes, found {text[:40] or 'none'}.")
    return int(text)


def has_part(request: HttpRequest) -> bool:
    """Whether the body is a part of an upload."""
    return request.content_type == PART_TYPE


def announced_length(request: HttpRequest) -> int | None:
    """How long the body is; None where only its end will tell."""
    if _is_chunked(request):
        return None
    return number_in(request, "Content-Length") if "Content-Length" in request.headers else 0


def _is_chunked(request: HttpRequest) -> bool:
    return "chunked" in request.headers.get("Transfer-Encoding", "").lower()


@contextmanager
def body_of(request: HttpRequest) -> Iterator[Read]:
    """What reads the body as it comes.

    A client that falls silent, as one does whose network has changed, is given up after a while: it would keep its
    upload to itself else, also against its own next try.
    """
    # Django reads no body without a length; the server knows the end of a chunked one.
    read: Read = _unchunked(request.META["wsgi.input"].read) if _is_chunked(request) else request.read
    connection = request.META.get("gunicorn.socket")
    if connection is None:
        yield read
        return
    before = connection.gettimeout()
    connection.settimeout(SILENCE_S)
    try:
        yield read
    finally:
        connection.settimeout(before)


def _unchunked(read: Read) -> Read:
    """Reads a chunked body; where it turns out to be no such, the connection is as good as broken."""
    from gunicorn.http.errors import ParseException

    def next_bytes(size: int) -> bytes:
        try:
            return read(size)
        except ParseException as error:
            raise OSError(str(error)) from error

    return next_bytes


@contextmanager
def receiving_slot() -> Iterator[None]:
    """One of the threads that may receive at a time; some stay free for pages, however many upload.

    Raises:
        RequestError: all are taken.
    """
    if not _slots.acquire(blocking=False):
        raise RequestError(503, "Many are uploading just now. The upload goes on in a moment.", {"Retry-After": "10"})
    try:
        yield
    finally:
        _slots.release()


def drain(request: HttpRequest) -> None:
    """Read on for a while what nobody wants: many clients hear an answer only once they have sent everything."""
    deadline, left = time.monotonic() + DRAINED_S, DRAINED_BYTES
    with suppress(RequestError, OSError), receiving_slot(), body_of(request) as read:
        while left > 0 and time.monotonic() < deadline and (piece := read(PIECE_BYTES)):
            left -= len(piece)


def checksum_of(request: HttpRequest) -> Checksum | None:
    """What ``Upload-Checksum: sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=`` says."""
    text = request.headers.get("Upload-Checksum")
    if text is None:
        return None
    algorithm, _, value = text.partition(" ")
    if algorithm not in ALGORITHMS:
        raise RequestError(400, f"Checksums may be {', '.join(ALGORITHMS)}, found {algorithm[:40] or 'none'}.")
    try:
        digest = base64.b64decode(value, validate=True)
    except binascii.Error:
        digest = b""
    if len(digest) != hashlib.new(algorithm, usedforsecurity=False).digest_size:
        raise RequestError(400, f"The checksum is no {algorithm} in base64.")
    return Checksum(algorithm, digest)


# Metadata -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metadata:
    """What the sender says of a file; everything but its name and edition may be empty."""

    file_name: str
    edition: str
    team: str
    system: str
    system_kind: str
    system_title: str
    sha256: str


def metadata_of(request: HttpRequest) -> Metadata:
    """The pairs of Upload-Metadata: key, space, value in base64, with commas between them."""
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, request.headers.get("Upload-Metadata", "").split(","))):
        key, _, value = pair.partition(" ")
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise RequestError(400, f"Upload-Metadata: the value of {key[:40]} is no UTF-8 text in base64.") from None
        if "\0" in found[key]:
            raise RequestError(400, f"Upload-Metadata: the value of {key[:40]} holds a character that no text has.")
    sha256 = found.get("sha256", "").strip().lower()
    if not re.fullmatch(r"([0-9a-f]{64})?", sha256):
        raise RequestError(422, "sha256 must be 64 hexadecimal digits.")
    kind = found.get("system_kind", "")
    if kind not in {"", *System.Kind.values}:
        raise RequestError(422, f"system_kind must be primary or contrastive, found “{kind[:40]}”.")
    return Metadata(
        file_name=_file_name(found.get("filename", "")),
        edition=found.get("edition", ""),
        team=found.get("team", ""),
        system=found.get("system", ""),
        system_kind=kind or System.Kind.PRIMARY,
        system_title=_line(found.get("system_title", ""))[:120],
        sha256=sha256,
    )


def metadata_header(upload: Upload) -> str:
    """What Upload-Metadata says of an upload that is here."""
    found = {
        "filename": upload.file_name,
        "edition": upload.edition.name,
        "team": str(upload.team_id or ""),
        "system": upload.system.name if upload.system else "",
        "system_kind": upload.system_kind,
        "system_title": upload.system_title,
        "sha256": upload.claimed_sha256,
    }
    return ",".join(f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in found.items() if text)


def _file_name(text: str) -> str:
    """The last part of a path of any system, short enough to be kept; its ending stays."""
    return _line(re.split(r"[/\\]", text)[-1])[-255:]


def _line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def plan_of(user: Any, metadata: Metadata) -> Plan:
    """What the file shall become. A sender who names no team means their own, an organizer a baseline.

    Raises:
        RequestError: edition, team or system are none of the sender's.
    """
    edition = _edition(user, metadata.edition)
    team = _team(user, edition, metadata.team)
    if not metadata.system:
        return Plan(edition, team, kind=metadata.system_kind, title=metadata.system_title)
    system = System.objects.filter(edition=edition, team=team, name=metadata.system).first()
    if system is None:
        whose = f"The team “{team}”" if team else "The edition"
        raise RequestError(422, f"{whose} has no {'system' if team else 'baseline'} named “{metadata.system[:60]}”.")
    return Plan(edition, team, system=system)


def _edition(user: Any, name: str) -> Edition:
    try:
        return edition_for(user, name)
    except Http404:
        raise RequestError(422, f"There is no edition named “{name[:60]}”: send its name as “edition”.") from None


def _team(user: Any, edition: Edition, key: str) -> Team | None:
    if key:
        team = teams_for(user).filter(edition=edition, pk=int(key)).first() if re.fullmatch(r"\d{1,9}", key) else None
        if team is None:
            raise RequestError(422, f"No team of yours in this edition has the number “{key[:40]}”.")
        return team
    team = team_of(user, edition)
    if team is None and not edition.organizers.filter(pk=user.pk).exists():
        raise RequestError(403, f"You belong to no team of “{edition}”. Register one, or ask to be invited.")
    return team
