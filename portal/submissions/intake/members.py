"""What the readers of zip and tar give to `archives`: one entry for each file, and the stream of its bytes."""

from __future__ import annotations

import io
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, cast

from portal.submissions.intake.refusals import refuse

DRAIN_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive on its way out of it.

    Attributes:
        path: safe (`names.safe_path`).
        is_guessed: whether the name was not UTF-8.
        size: as declared, and as `stream` delivers.
        position: bytes of the archive that were read when it began.
    """

    path: str
    is_guessed: bool
    size: int
    position: int
    stream: MemberStream


class MemberStream(io.BufferedIOBase):
    """The bytes of one file, forwards only.

    Args:
        size: how many bytes there are.
        take: the next bytes, at least one and at most as many as asked for; it refuses the archive where there are
            none.
        finish: is called once, as soon as the last byte was given.
    """

    def __init__(self, size: int, take: Callable[[int], bytes], finish: Callable[[], None]) -> None:
        self._left, self._take, self._finish = size, take, finish
        self._is_finished = False
        self._head = b""

    def peek(self, size: int) -> bytes:
        """The next bytes, which the next `read` gives again; fewer where the file is shorter."""
        if len(self._head) < size:
            self._head += self._next(size - len(self._head))
        return self._head

    def read(self, size: int | None = -1, /) -> bytes:
        if self.closed:
            raise ValueError("the archive went on to its next file: read a file before you ask for the next")
        size = len(self._head) + self._left if size is None or size < 0 else size
        head, self._head = self._head[:size], self._head[size:]
        if not head:
            return self._next(size)
        return head + self._next(size - len(head))

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(DRAIN_BYTES if size < 0 else size)

    def readable(self) -> bool:
        return True

    def drain(self) -> None:
        """Read what is left and forget it."""
        self._head = b""
        while self._next(DRAIN_BYTES):
            pass

    def as_file(self) -> BinaryIO:
        """Itself, as the type that callers know."""
        return cast("BinaryIO", self)

    def _next(self, size: int) -> bytes:
        size = min(size, self._left)
        parts = []
        while size:
            part = self._take(size)
            parts.append(part)
            size -= len(part)
            self._left -= len(part)
        if not self._left and not self._is_finished:
            self._is_finished = True
            self._finish()
        return parts[0] if len(parts) == 1 else b"".join(parts)


def refuse_special(kind: int, path: str) -> None:
    """Refuse what is neither a file nor a folder; 0 tells nothing.

    Args:
        kind: as `stat.S_IFMT` gives it.
    """
    if kind in (0, stat.S_IFREG, stat.S_IFDIR):
        return
    if kind == stat.S_IFLNK:
        refuse_link("symbolic-link", "a symbolic link", path)
    titles = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    found = titles.get(kind, "something else")
    refuse("special-file", path, "files and folders only", found, "Leave it out and pack again.")


def refuse_link(code: str, found: str, path: str) -> None:
    """Refuse a link of either kind."""
    remedy = "Pack the file itself in its place (“tar --dereference --hard-dereference”, “zip” without “-y”)."
    refuse(code, path, "files and folders only", found, remedy)
