"""Signed addresses of stored audio and figures.

An address is made for one session, or of a visitor one browser, by a page that has checked the visitor's right, holds
no name, ends after `AUDIO_LINK_S` or with its session or account, and is worthless in any other. Files are sent with
byte ranges, as players need them, always through the portal: an address of the store itself would work in any session,
and its name, the hash of the content, would tell which known recording it is. With `X_ACCEL` the portal checks who
asks, and nginx sends the file of a folder; no browser sees that address.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core import signing
from django.core.files import File
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.urls import reverse
from django.views.decorators.http import require_safe

from common.errors import Refused
from portal.core import transfers
from portal.core.storage import portal_files

SALT = "portal.media"
CONTENT_TYPES = {
    ".flac": "audio/flac",
    ".wav": "audio/wav",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
}
Response = TypeVar("Response", bound=HttpResponseBase)
STREAM_AGAIN_S = 10
# Of nginx, for its own use: deploy/nginx.conf.
ACCEL_LOCATION = "/stored-files/"
MISPLACED = "This address is not valid here; reload the page that led here."
log = logging.getLogger(__name__)


def signed_address(request: HttpRequest, key: str) -> str:
    """Return address at which this session may fetch the stored file `key` for a while."""
    if not request.session.session_key:
        get_token(request)  # sees to it that there is a cookie
    token = signing.dumps([key, _session_marks(request)[0]], salt=SALT, compress=True)
    return reverse("media", args=[token])


def voice_sources(request: HttpRequest, audio: Mapping[str, str]) -> list[dict[str, str]]:
    """Stored voices as the component `player.html` takes them, by name; without those that are missing."""
    return [
        {"url": signed_address(request, key), "name": voice.capitalize(), "voice": voice}
        for voice, key in audio.items()
        if key
    ]


@require_safe
def serve_media(request: HttpRequest, token: str) -> HttpResponseBase:
    """Return the file behind a signed address, whole or the byte range asked for."""
    try:
        key, mark = signing.loads(token, salt=SALT, max_age=settings.AUDIO_LINK_S)
    except signing.BadSignature as error:
        raise Http404("This address is not valid any more; reload the page that led here.") from error
    request.session.load()  # a session that has ended on the server loses its key here, whatever the cookie says
    is_closed = SESSION_KEY in request.session and not request.user.is_authenticated  # the account, since then
    if is_closed or mark not in _session_marks(request):
        raise Http404(MISPLACED)
    try:
        response = _stored_response(request, key)
    except FileNotFoundError as error:
        raise Http404(MISPLACED) from error
    log.info("media %s to session %s", key, mark)
    return response


def _session_marks(request: HttpRequest) -> list[str]:
    """Return what binds an address to this browser, by the secret key and by each former one.

    It is the session, or of a visitor the secret of their cookie against forged forms: a session would be a row of the
    database for each program that passes by.
    """
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    name = request.session.session_key or request.META.get("CSRF_COOKIE", "")
    if not name:
        return []
    return [signing.Signer(key=key, salt=SALT).signature(name)[:16] for key in keys]


def _stored_response(request: HttpRequest, key: str) -> HttpResponseBase:
    content_type = CONTENT_TYPES.get(key[key.rfind(".") :], "application/octet-stream")
    size = default_storage.size(key)
    if settings.X_ACCEL:
        response: HttpResponseBase = HttpResponse(content_type=content_type)
        response["X-Accel-Redirect"] = f"{ACCEL_LOCATION}{quote(key)}"
    else:
        response = ranged_response(request, size, content_type, partial(portal_files.read_range, key))
    return secured(response, settings.AUDIO_LINK_S)


def ranged_response(
    request: HttpRequest, size: int, content_type: str, read: Callable[[int, int], Iterator[bytes]], etag: str = ""
) -> HttpResponseBase:
    """Return a file of that many bytes, whole or the byte range asked for; 416 for a range outside of it.

    Args:
        read: `read(start, stop)` gives those bytes in pieces; it is not called where only the header is asked for.
        etag: identifies the content; a request for a range of another content gets this one whole.
    """
    header = request.headers.get("Range", "")
    if etag and request.headers.get("If-Range", etag) != etag:
        header = ""
    wanted = _byte_range(header, size)
    if wanted is None:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    start, stop = wanted
    response = StreamingHttpResponse(() if request.method == "HEAD" else read(start, stop), content_type=content_type)
    response["Content-Length"] = str(stop - start)
    response["Accept-Ranges"] = "bytes"
    if etag:
        response["ETag"] = etag
    if _is_byte_range(header):
        response.status_code = 206
        response["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return response


def open_stored(key: str) -> File:
    """Return a stored file that a page sends; "not found" where there is none."""
    try:
        return default_storage.open(key)
    except FileNotFoundError as error:
        raise Http404 from error


class _Stream(Iterator[bytes]):
    """Pieces of a download, which counts as one until it is closed, read or not."""

    def __init__(self, read: Callable[[int, int], Iterator[bytes]], start: int, stop: int) -> None:
        self._taken = transfers.places.take_for_download()
        if not self._taken:
            headers = {"Retry-After": str(STREAM_AGAIN_S)}
            raise Refused(503, "Many send or take files just now. Ask again in some seconds.", headers=headers)
        self._pieces = read(start, stop)

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        transfers.release(self._taken)

    __del__ = close  # of a response that nobody came to send


def attached_response(
    request: HttpRequest, name: str, size: int, sha256: str, read: Callable[[int, int], Iterator[bytes]]
) -> HttpResponseBase:
    """Return a file to be saved under this name, whole or a part of it, so that a download that broke off goes on.

    Raises:
        Refused: half of the web server's threads send such files already, or with those that receive uploads
            all but those that are kept for pages.
    """
    response = ranged_response(request, size, "application/octet-stream", partial(_Stream, read), f'"{sha256}"')
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def _is_byte_range(header: str) -> bool:
    return bool(re.fullmatch(r"bytes=(\d{1,18}-\d{0,18}|-\d{1,18})", header.strip()))


def secured(response: Response, max_age_s: int) -> Response:
    """Return the same, to be kept by nobody but this browser, and to do nothing but be shown or played."""
    response["Cache-Control"] = f"private, max-age={max_age_s}"
    response["X-Content-Type-Options"] = "nosniff"
    # An SVG opened by itself is a document; it may style itself and do nothing else.
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return response


def _byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Half-open range of bytes; the whole file for an empty, foreign or multiple range; None if out of the file."""
    if not _is_byte_range(header):
        return 0, size
    first, last = header.strip().removeprefix("bytes=").split("-")
    if not first:
        return (max(0, size - int(last)), size) if int(last) and size else None
    start, stop = int(first), min(size, int(last) + 1 if last else size)
    return (start, stop) if start < stop else None
