"""One process at a time in an output folder: two that write the same files would leave those of neither."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import CommandError

_BUSY = frozenset({errno.EACCES, errno.EAGAIN})


@contextmanager
def lock_folder(folder: Path, lock: str) -> Iterator[None]:
    """Make the folder where it is missing and hold it; a process that is killed lets go of it.

    Args:
        lock: name of an empty file in it, which stays there.

    Raises:
        CommandError: the folder cannot be written, or another process holds it.
    """
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / lock).open("a", encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"{folder}: expected a folder that can be written, found “{error.strerror}”. Name another one."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:  # any other error: a file system without such locks
                raise CommandError(
                    f"{folder}: expected to be the only writer, found another process. Wait until it has ended."
                ) from error
        yield
