"""The bytes of an upload: on the disk of the web server while they come, and where the worker that reads them is.

Where the portal's files are a folder, they stay in the folder of uploads, which web server and workers share. Where
they are in a bucket, the web server that receives an upload keeps its bytes on its own disk and sends them on in parts
while they come; the last byte is acknowledged only when the whole upload is in the bucket. A worker copies it from
there. A part that the bucket did not take is sent again later, from the disk.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage

from common.atomic_write import write_atomically
from portal.core.storage import StorageAway, is_local, portal_files

FOLDER = "uploads"  # in the bucket
PART_BYTES = 32 << 20  # 10,000 parts, the most of an S3 store, are 335 GB
log = logging.getLogger(__name__)


def path_of(upload: UUID | str) -> Path:
    """Return where the bytes of the upload with this identity lie on this machine."""
    return Path(settings.UPLOAD_DIR) / str(upload)


def readable_path(upload: UUID | str) -> Path:
    """Where `fetch` puts a complete upload on this machine, for one who reads it."""
    return path_of(upload) if is_local() else Path(settings.UPLOAD_DIR) / f".{upload}.copy"


def sent_name(upload: UUID | str) -> str:
    """Return the name of the whole upload in the bucket."""
    return f"{FOLDER}/{upload}"


def note_of(upload: UUID | str) -> Path:
    """Return where it stands which parts of an upload the bucket has."""
    return Path(settings.UPLOAD_DIR) / f".{upload}.sent"


def is_there(upload: UUID | str) -> bool:
    """Return whether the bytes of a complete upload can be read."""
    return path_of(upload).exists() or (not is_local() and bool(default_storage.exists(sent_name(upload))))


def fetch(upload: UUID | str) -> Path:
    """Return the whole upload as a file of this machine.

    Raises:
        FileNotFoundError: it is nowhere.
    """
    path = readable_path(upload)
    if not is_local():
        portal_files.download(sent_name(upload), path)
    elif not path.exists():
        raise FileNotFoundError(f"No upload {upload} is here.")
    return path


def drop_received(upload: UUID | str) -> None:
    """Free the disk of the web server of an upload that is in the bucket; without a bucket it stays."""
    if not is_local():
        path_of(upload).unlink(missing_ok=True)


def drop_copy(upload: UUID | str) -> None:
    """Free this machine's disk of what `fetch` brought; without a bucket it stays."""
    if not is_local():
        readable_path(upload).unlink(missing_ok=True)


def remove(upload: UUID | str) -> None:
    """Remove an upload wherever it is."""
    if not is_local():
        _abandon(upload)
        default_storage.delete(sent_name(upload))
        drop_copy(upload)
    path_of(upload).unlink(missing_ok=True)


def send_on(upload: UUID | str, end: int) -> None:
    """Send the parts that are complete before byte `end` and not sent yet; what fails is sent with the next."""
    if is_local() or end < PART_BYTES:
        return
    try:
        _send_parts(upload, end // PART_BYTES)
    except StorageAway as error:
        log.warning("Upload %s stays on this disk for now: %s", upload, error)


def complete(upload: UUID | str, size: int) -> None:
    """Have the whole upload in the bucket; may be repeated.

    Raises:
        StorageAway: it is not; every byte is still on this disk.
    """
    if is_local():
        return
    if size <= PART_BYTES:
        with path_of(upload).open("rb") as stream:
            default_storage.save(sent_name(upload), File(stream, sent_name(upload)))
        return
    sent = _send_parts(upload, size // PART_BYTES)
    parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(sent["parts"], start=1)]
    if size % PART_BYTES:
        parts.append({"PartNumber": len(parts) + 1, "ETag": _send_part(upload, sent["id"], len(parts))})
    _ask(upload, "complete_multipart_upload", UploadId=sent["id"], MultipartUpload={"Parts": parts})
    note_of(upload).unlink(missing_ok=True)


def _send_parts(upload: UUID | str, count: int) -> dict[str, Any]:
    """Return the identity of the transfer and the tags of its first `count` parts, which the bucket has."""
    sent = _read_note(upload)
    if sent is None:
        sent = {"id": portal_files.ask("create_multipart_upload", sent_name(upload))["UploadId"], "parts": []}
        _write_note(upload, sent)
    while len(sent["parts"]) < count:
        sent["parts"].append(_send_part(upload, sent["id"], len(sent["parts"])))
        _write_note(upload, sent)
    return sent


def _send_part(upload: UUID | str, transfer: str, index: int) -> str:
    with path_of(upload).open("rb") as stream:
        stream.seek(index * PART_BYTES)
        body = stream.read(PART_BYTES)
    answer = _ask(upload, "upload_part", UploadId=transfer, PartNumber=index + 1, Body=body)
    return str(answer["ETag"])


def _ask(upload: UUID | str, action: str, **more: Any) -> Any:
    try:
        return portal_files.ask(action, sent_name(upload), **more)
    except StorageAway as error:
        if "NoSuchUpload" in str(error):  # the bucket has ended it: it begins anew with the next try
            note_of(upload).unlink(missing_ok=True)
        raise


def _abandon(upload: UUID | str) -> None:
    if (sent := _read_note(upload)) is not None:
        with suppress(StorageAway, FileNotFoundError):
            portal_files.ask("abort_multipart_upload", sent_name(upload), UploadId=sent["id"])
        note_of(upload).unlink(missing_ok=True)


def _read_note(upload: UUID | str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(note_of(upload).read_bytes())
    except FileNotFoundError:
        return None
    return found


def _write_note(upload: UUID | str, sent: dict[str, Any]) -> None:
    write_atomically(note_of(upload), json.dumps(sent).encode())
