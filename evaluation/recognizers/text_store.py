"""Hypotheses as a Kaldi ``text`` that grows while a recogniser works, so that a stopped run goes on where it was.

Each utterance is a line, written when it is done; a line without an end was cut off and is done again. Beside the file
stands ``<name>.engine``, the recogniser that wrote it: words of two recognisers in one file would be nobody's rate.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import IO

from evaluation.formats.kaldi import read_text, write_listing
from evaluation.formats.text_files import read_text_file
from evaluation.metrics.errors import MetricInputError


class TextStore:
    """A file of hypotheses, open for more; a context manager.

    Attributes:
        done: utterance → hypothesis, of this run and of those before.
    """

    def __init__(self, path: Path, engine: str) -> None:
        self._path = path
        self._owner = path.with_name(f"{path.name}.engine")
        self.done: dict[str, str] = {}
        try:
            self._take_up(engine)
            self._owner.write_text(f"{engine}\n", encoding="utf-8")
            self._file: IO[str] = path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise MetricInputError(f"{path}: expected a file that can be written, found “{error.strerror}”.") from error

    def __enter__(self) -> TextStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, utterance: str, hypothesis: str) -> None:
        """Write one hypothesis; runs of spaces and line ends become one space."""
        words = " ".join(hypothesis.split())
        self._file.write(f"{utterance} {words}".rstrip() + "\n")
        self._file.flush()
        self.done[utterance] = words

    def finish(self) -> None:
        """Sort the lines as Kaldi expects them."""
        self._file.close()
        beside = self._path.with_name(f".{self._path.name}.part")
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            write_listing(self.done, file)
        beside.replace(self._path)

    def _take_up(self, engine: str) -> None:
        """Read what earlier runs wrote and cut off a line without an end."""
        if not self._path.exists():
            return
        owner = self._owner.read_text(encoding="utf-8").strip() if self._owner.is_file() else ""
        if owner != engine and self._path.stat().st_size:
            by = f"those of {owner}" if owner else "a file of unknown origin"
            raise MetricInputError(
                f"{self._path}: expected hypotheses of {engine}, found {by}. Name another file, or remove this one."
            )
        text, problems = read_text_file(self._path, str(self._path))
        if problems:
            raise MetricInputError(problems[0].sentence())
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._path.write_text(whole, encoding="utf-8", newline="\n")
        if whole:
            self.done = dict(read_text(self._path).content)
