"""Files in a bucket of an S3 store, as `PORTAL_FILES_URL=s3://…` says, through django-storages.

Each question costs a request of milliseconds: what is small is stored and read by one. Content has the name of its
hash, so that storing it again changes nothing but its age, and nobody asks whether it is there.
A client is made once for each process, threads share it, and a forked process makes its own.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage

from portal.core.storage import CHUNK_BYTES, StorageAway

ONE_REQUEST_BYTES = 8 << 20  # what is larger goes in parts
FIRST_BYTES, MOST_BYTES = 1 << 20, 8 << 20  # of what one request reads: twice as much while reading goes on
CONNECT_S, READ_S, ATTEMPTS = 3, 20, 3
SIZES_KNOWN = 10_000
CONTENT = "content/"
_made = threading.Lock()


def _after_fork() -> None:
    global _made
    _made = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def _answered(name: str) -> Iterator[None]:
    """Tell a file that is missing from a store that does not answer.

    Raises:
        FileNotFoundError, StorageAway
    """
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in {"404", "NoSuchKey"}:
            raise FileNotFoundError(f"No file {name} is stored.") from error
        said = error.response.get("Error", {}).get("Message") or "no reason"
        raise StorageAway(f"The store of files refuses ({code}: {said}).") from error
    except (Boto3Error, BotoCoreError) as error:
        raise StorageAway(f"The store of files does not answer ({str(error).splitlines()[0]}).") from error


class BucketStorage(S3Storage):
    """Files in a bucket below a prefix."""

    is_local = False

    def __init__(self, **options: Any) -> None:
        style = "path" if options.get("endpoint_url") else "auto"
        client_config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"mode": "standard", "max_attempts": ATTEMPTS},
            signature_version="s3v4",
            s3={"addressing_style": style},
            max_pool_connections=32,
        )
        super().__init__(
            client_config=client_config,
            transfer_config=TransferConfig(multipart_threshold=ONE_REQUEST_BYTES, max_concurrency=4),
            **options,
        )
        self._resource: tuple[int, Any] = (0, None)
        self._sizes: dict[str, int] = {}

    @property
    def connection(self) -> Any:
        if self._resource[0] != os.getpid():
            with _made:
                if self._resource[0] != os.getpid():
                    made = self._create_session().resource(
                        "s3",
                        region_name=self.region_name,
                        endpoint_url=self.endpoint_url,
                        config=self.client_config,
                    )
                    self._resource = (os.getpid(), made)
        return self._resource[1]

    def ask(self, action: str, name: str, **more: Any) -> Any:
        """Return the answer of the store to one action on one file."""
        with _answered(name):
            return getattr(self.connection.meta.client, action)(Bucket=self.bucket_name, Key=self._key(name), **more)

    def _key(self, name: str) -> str:
        return str(self._normalize_name(str(name)))

    # What Django asks ---------------------------------------------------------------------------------

    def _open(self, name: str, mode: str = "rb") -> File:
        if mode != "rb":
            raise ValueError("A file in a bucket is opened for reading only.")
        return File(cast("BinaryIO", BucketReader(self, name)), name)

    def _save(self, name: str, content: File) -> str:
        content.seek(0)
        self._send(name, content, content.size)
        return name

    def _send(self, name: str, content: Any, size: int) -> None:
        more = self._get_write_parameters(name)
        self._sizes.pop(name, None)
        if size <= ONE_REQUEST_BYTES:
            self.ask("put_object", name, Body=content.read(), **more)
            return
        with _answered(name):
            client = self.connection.meta.client
            body = getattr(content, "file", content)
            # The transfer closes what it has sent.
            kept = _Kept(body)
            client.upload_fileobj(kept, self.bucket_name, self._key(name), ExtraArgs=more, Config=self.transfer_config)

    def delete(self, name: str) -> None:
        self._sizes.pop(name, None)
        self.ask("delete_object", name)

    def exists(self, name: str) -> bool:
        try:
            self.ask("head_object", name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        """Return bytes of a file; those of content never change, so that they are asked for once."""
        if name in self._sizes:
            return self._sizes[name]
        return self.note_size(name, self.ask("head_object", name)["ContentLength"])

    def note_size(self, name: str, size: int) -> int:
        if name.startswith(CONTENT):
            if len(self._sizes) >= SIZES_KNOWN:
                self._sizes.clear()
            self._sizes[name] = size
        return size

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with _answered(name):
            folders, files = super().listdir(name)
        return folders, files

    # What the portal asks beyond --------------------------------------------------------------------

    def keep(self, name: str, content: File) -> None:
        """Store content under the name that it alone has; what is large only where it is not there already."""
        if content.size <= ONE_REQUEST_BYTES or not self.refresh(name):
            self._save(name, content)

    def replace(self, name: str, data: bytes) -> None:
        """Store bytes under a name, in place of what was there."""
        self._send(name, io.BytesIO(data), len(data))

    def refresh(self, name: str) -> bool:
        """Let a file count as stored just now, by a copy to itself; whether there is one."""
        source = {"Bucket": self.bucket_name, "Key": self._key(name)}
        more = {"MetadataDirective": "REPLACE", **self._get_write_parameters(name)}
        try:
            with _answered(name):
                self.connection.meta.client.copy(source, self.bucket_name, source["Key"], ExtraArgs=more)
        except FileNotFoundError:
            return False
        return True

    def is_older(self, name: str, before: float) -> bool:
        """Return whether a file was stored before this time, in seconds since 1970; so is one that is not there."""
        try:
            return bool(self.ask("head_object", name)["LastModified"].timestamp() < before)
        except FileNotFoundError:
            return True

    def delete_old(self, name: str, before: float) -> bool:
        """Delete a file that was stored before this time, in seconds since 1970; whether there is none any more."""
        if not self.is_older(name, before):
            return False
        self.delete(name)
        return True

    def adopt(self, source: Path, name: str) -> None:
        """Move a complete file of this machine to the name of its content."""
        with source.open("rb") as stream:
            self.keep(name, File(stream, name))
        source.unlink(missing_ok=True)

    def read_range(self, name: str, start: int, stop: int) -> Iterator[bytes]:
        """Return the half-open range of bytes, in pieces, by one request.

        Raises:
            FileNotFoundError, StorageAway: at the call.
        """
        if stop <= start:
            return iter(())
        answer = self.ask("get_object", name, Range=f"bytes={start}-{stop - 1}")
        return _read_body(name, answer["Body"])

    def download(self, name: str, target: Path) -> None:
        """Copy a file to this machine, in parts at once; it gets its name when it is complete."""
        draft = target.with_name(f".{target.name}.part")
        try:
            with _answered(name):
                self.connection.meta.client.download_file(
                    self.bucket_name, self._key(name), str(draft), Config=self.transfer_config
                )
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


class _Kept:
    """A file that stays open although a transfer closes it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, count: int = -1) -> bytes:
        return bytes(self._file.read(count))

    def close(self) -> None:
        pass


def _read_body(name: str, body: Any) -> Iterator[bytes]:
    with body, _answered(name):
        yield from body.iter_chunks(CHUNK_BYTES)


class BucketReader(io.BufferedIOBase):
    """Reads a stored file where it is asked to: a window of bytes, wider while reading goes on from where it ended.

    The first window is read at once, so that a missing file is told where it is opened, and a small one read by one
    request.
    """

    def __init__(self, storage: BucketStorage, name: str) -> None:
        super().__init__()
        self._storage, self._name = storage, name
        self._at, self._window, self._window_at, self._wide = 0, b"", 0, FIRST_BYTES
        self._size: int = -1
        self._load(0, FIRST_BYTES)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning of the file")
        self._at = base + offset
        return self._at

    def read(self, count: int | None = -1, /) -> bytes:
        stop = self._size if count is None or count < 0 else min(self._size, self._at + count)
        pieces = []
        while self._at < stop:
            inside = self._at - self._window_at
            if not 0 <= inside < len(self._window):
                self._move(stop)
                continue
            pieces.append(self._window[inside : inside + stop - self._at])
            self._at += len(pieces[-1])
        return b"".join(pieces)

    read1 = read

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)

    def _move(self, stop: int) -> None:
        """Read the window that begins here: what is asked for, and more where reading goes on."""
        goes_on = self._at == self._window_at + len(self._window)
        self._wide = min(MOST_BYTES, self._wide * 2) if goes_on else FIRST_BYTES // 16
        self._load(self._at, max(self._wide, stop - self._at))

    def _load(self, start: int, count: int) -> None:
        try:
            answer = self._storage.ask("get_object", self._name, Range=f"bytes={start}-{start + count - 1}")
        except StorageAway as error:
            if start or "InvalidRange" not in str(error):
                raise
            self._size = 0  # nothing is in it
            return
        self._size = int(answer["ContentRange"].rpartition("/")[2])
        self._storage.note_size(self._name, self._size)
        with _answered(self._name):
            self._window, self._window_at = answer["Body"].read(), start
        if not self._window:
            raise StorageAway(f"The store of files ended {self._name} at byte {start} of {self._size}.")
