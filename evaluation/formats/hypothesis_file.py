"""Hypotheses as a Kaldi ``text`` that grows while a recogniser works, so that a stopped run goes on where it was.

Each utterance is a line, written when it is done; a line without an end was cut off and is done again. Beside the file
stands ``<name>.engine``: the recogniser that wrote it and the SHA-256 of each recording, because words of two
recognisers, or of other recordings of the same names, would be nobody's rate. One process at a time writes both.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NoReturn

from common.errors import InputError
from common.text_files import read_text_file
from evaluation.formats.kaldi import read_text, write_listing

_BUSY = frozenset({errno.EACCES, errno.EAGAIN})


class TextStore:
    """A file of hypotheses, open for more; a context manager.

    Attributes:
        done: utterance → hypothesis, of this run and of those before.
        recordings: utterance → SHA-256 of what was recognised, where it was said.

    Raises:
        InputError: the file cannot be written, is another recogniser's, or another process writes it.
    """

    def __init__(self, path: Path, engine: str) -> None:
        self._path = path
        self._owner_path = path.with_name(f"{path.name}.engine")
        self.done: dict[str, str] = {}
        self.recordings: dict[str, str] = {}
        try:
            self._owner = self._held()
            try:
                self._take_up(engine)
                self._file: IO[str] = path.open("a", encoding="utf-8", newline="\n")
            except BaseException:
                if not self._owner_path.stat().st_size:  # it was not there before
                    self._owner_path.unlink()
                self._owner.close()
                raise
        except OSError as error:
            raise InputError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error

    def __enter__(self) -> TextStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what a full disk did not take was told when it was written
            self._file.close()
        with suppress(OSError):
            self._owner.close()

    def add(self, utterance: str, hypothesis: str, recording: str = "") -> None:
        """Write one hypothesis; runs of spaces and line ends become one space.

        Args:
            recording: SHA-256 of its file.

        Raises:
            InputError: there is no room for it.
        """
        words = " ".join(hypothesis.split())
        try:
            if recording:  # first, so that no hypothesis is ever without it
                self._owner.write(f"{utterance} {recording}\n")
                self._owner.flush()
                self.recordings[utterance] = recording
            self._file.write(f"{utterance} {words}".rstrip() + "\n")
            self._file.flush()
        except OSError as error:
            self._refuse(error)
        self.done[utterance] = words

    def finish(self) -> None:
        """Sort the lines as Kaldi expects them.

        Raises:
            InputError: there is no room; the lines stay as they are.
        """
        beside = self._path.with_name(f".{self._path.name}.part")
        try:
            self._file.close()
            with beside.open("w", encoding="utf-8", newline="\n") as file:
                write_listing(self.done, file)
            beside.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            self._refuse(error)

    def _refuse(self, error: OSError) -> NoReturn:
        raise InputError(
            f"{self._path}: expected room for more hypotheses, found “{error.strerror}”. What is done is kept: make "
            "room and repeat the command."
        ) from error

    def _held(self) -> IO[str]:
        """Return the file beside, which is held by this process alone."""
        import fcntl

        if self._path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        owner = self._owner_path.open("a+", encoding="utf-8", newline="\n")
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:  # any other error: a file system without such locks
                owner.close()
                raise InputError(
                    f"{self._path}: expected to be the only writer, found another process. Wait until it has ended."
                ) from error
        return owner

    def _take_up(self, engine: str) -> None:
        """Read what earlier runs wrote and cut off a line without an end."""
        self._owner.seek(0)
        first, *rest = self._owner.read().splitlines() or [""]
        if not self._path.exists() or not self._path.stat().st_size:
            self._owner.truncate(0)  # nothing is there yet: whose it will be
            self._owner.write(f"{engine}\n")
            self._owner.flush()
            return
        if first.strip() != engine:
            by = f"those of {first.strip()}" if first.strip() else "a file of unknown origin"
            raise InputError(
                f"{self._path}: expected hypotheses of {engine}, found {by}. Name another file, or remove this one."
            )
        text, problems = read_text_file(self._path, str(self._path))
        if problems:
            raise InputError(problems[0].sentence())
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._path.write_text(whole, encoding="utf-8", newline="\n")
        if whole:
            self.done = dict(read_text(self._path).content)
        self.recordings = {name: digest for name, _, digest in (line.partition(" ") for line in rest)}
        self._owner.write("\n")  # ends a line that was cut off
