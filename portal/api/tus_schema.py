"""Uploads in the description of the API: the protocol is tus, so these operations are written by hand."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

UPLOADS_TAG = (
    "Uploads",
    "Archives come by the tus protocol 1.0.0, with the extensions creation, creation-with-upload, checksum, "
    "termination and expiration: any tus client can send them. `vp upload` does all of this.",
)
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"cookieAuth": []}]
WORDS = {
    400: "A header cannot be read.",
    401: "Nobody is known: no token, or one that is unknown, revoked or expired.",
    403: "The token lacks the scope, or no archive is taken from this team now; the sentence says why.",
    404: "There is no such upload, or it is not yours to see.",
    409: "The part does not begin where the last one ended, or the upload is over.",
    410: "The upload was discarded or has expired.",
    412: "Another version of tus than 1.0.0.",
    413: "Larger than the edition allows, or than was announced.",
    415: "The body is no part of an upload.",
    422: "The archive could not become a submission; the sentence says why.",
    423: "Another request is sending to this upload.",
    460: "The checksum of the part is not that of what came; send it again.",
    500: "The portal failed; its operator finds the reason in the log.",
    503: "Too many are uploading; go on after `Retry-After`.",
    507: "The disk of the portal has no room for it.",
}


def _faults(*statuses: int) -> dict[str, Any]:
    return {str(status): {"description": WORDS[status], "content": _PROBLEM} for status in (*statuses, 500)}


def _header(name: str, words: str, *, required: bool = True, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "description": words, "schema": schema}


_VERSION = _header("Tus-Resumable", "The version of the protocol.", type="string", enum=["1.0.0"])
_CHECKSUM = _header(
    "Upload-Checksum", "Of the body: algorithm (md5, sha1, sha256), space, digest in base64.", required=False,
    type="string",
)  # fmt: skip
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
_STATE = {
    "type": "object",
    "required": ["id", "state", "edition", "file_name", "size", "offset"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "state": {"type": "string", "enum": ["receiving", "complete", "refused", "abandoned", "expired"]},
        "refusal": {"type": "string", "description": "Why no submission was made of it."},
        "edition": {"type": "string"},
        "team": {"type": ["integer", "null"]},
        "system": {"type": ["string", "null"]},
        "file_name": {"type": "string"},
        "size": {"type": "integer"},
        "offset": {"type": "integer", "description": "Bytes that are on disk."},
        "sha256": {"type": ["string", "null"]},
        "expires_at": {"type": ["string", "null"], "format": "date-time"},
        "tail": {
            "type": ["object", "null"],
            "description": "Number and SHA-256 of the last bytes, by which a sender knows its file again.",
            "properties": {"bytes": {"type": "integer"}, "sha256": {"type": "string"}},
        },
        "submission": {
            "type": ["object", "null"],
            "properties": {"id": {"type": "integer"}, "address": {"type": "string"}},
        },
    },
}
_BODY = {"content": {"application/offset+octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


def _operation(name: str, words: str, scope: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "operationId": name, "description": words, "tags": [UPLOADS_TAG[0]], "security": _SECURITY,
        "x-scopes": [scope], **more, "responses": responses,
    }  # fmt: skip


def _empty(status: int, words: str = "") -> dict[str, Any]:
    return {str(status): {"description": words or HTTPStatus(status).phrase}}


def _json(words: str) -> dict[str, Any]:
    return {"200": {"description": words, "content": {"application/json": {"schema": _STATE}}}}


_CREATE = _operation(
    "create_upload",
    "Begin an upload. `Upload-Metadata` holds pairs of key and value in base64: filename, edition, team (its number; "
    "left out for your own), then either system (a further version of it) or system_kind (primary, contrastive) and "
    "system_title for a new one; sha256 of the whole file. Team, phase, quota, size and room are asked before the "
    "first byte. The answer's `Location` is the upload. A body makes its first part.",
    "submit",
    _empty(201, "The upload; `Location` is its address.")
    | _faults(400, 401, 403, 404, 409, 412, 413, 415, 422, 423, 460, 503, 507),
    parameters=[
        _VERSION,
        _header("Upload-Length", "Bytes of the whole file.", type="integer", minimum=1),
        _header("Upload-Metadata", "Key, space, value in base64; commas between the pairs.", type="string"),
        _CHECKSUM | {"required": False},
    ],
)
_PATCH = _operation(
    "send_part",
    "Send the bytes from `Upload-Offset` on. What was acknowledged survives any crash; after a broken connection ask "
    "for the offset and go on. The last part makes the submission.",
    "submit",
    _empty(204, "The part is kept; `Upload-Offset` says how far the upload is.")
    | _faults(400, 401, 403, 404, 409, 410, 412, 413, 415, 422, 423, 460, 503, 507),
    parameters=[_ID, _VERSION, _header("Upload-Offset", "Where the part begins.", type="integer"), _CHECKSUM],
    requestBody=_BODY | {"required": True},
)
_HEAD = _operation(
    "ask_offset",
    "How far an upload is: `Upload-Offset` and `Upload-Length`.",
    "submit",
    _empty(200, "The offset in `Upload-Offset`.")
    | {str(status): {"description": WORDS[status]} for status in (401, 403, 404, 410, 412, 500)},
    parameters=[_ID, _VERSION],
)
_DELETE = _operation(
    "discard_upload", "Discard an unfinished upload with all that came of it.", "submit",
    _empty(204, "It is gone.") | _faults(401, 403, 404, 409, 410, 412),
    parameters=[_ID, _VERSION],
)  # fmt: skip
_GET = _operation(
    "show_upload", "The state of an upload and, once it is complete, its submission.", "read",
    _json("The upload.") | _faults(401, 403, 404, 412),
    parameters=[_ID],
)  # fmt: skip
_SUBMIT = _operation(
    "submit_upload",
    "Ask again for the submission of an upload that is here as a whole but was refused one.",
    "submit",
    _json("The upload with its submission.") | _faults(401, 403, 404, 409, 410, 412, 413, 422),
    parameters=[_ID],
)
UPLOADS: dict[str, Any] = {
    "/api/uploads/": {"post": _CREATE},
    "/api/uploads/{id}": {"get": _GET, "head": _HEAD, "patch": _PATCH, "delete": _DELETE},
    "/api/uploads/{id}/submit": {"post": _SUBMIT},
}
