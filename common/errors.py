"""The errors that libraries and services raise; the text of each is a sentence for the person who caused it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """An input that cannot be used: says what was expected and what was found, in which line of a table (`line`)."""

    def __init__(self, sentence: str = "", *, line: int = 0) -> None:
        super().__init__(sentence)
        self.line = line


class MachineError(InputError):
    """This machine lacks a model file or a working graphics card: its operator has to act."""


class CommandError(Exception):
    """Bad usage or an input that cannot be read: one sentence for the person at the terminal."""


class NotPossible(Exception):  # noqa: N818
    """A wish came too late or at the wrong time; the message says why.

    Attributes:
        code: which of several reasons it is, where that matters.
        under_way: what carries out the same wish already; pages lead there.
    """

    def __init__(self, sentence: object = "", code: str = "", *, under_way: Any = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.under_way = under_way


class Refused(Exception):  # noqa: N818
    """A request that changes nothing: the HTTP status and the sentence; `more` is for the program that asked."""

    def __init__(self, status: int, sentence: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}
        self.more = more


class Unreachable(Exception):  # noqa: N818
    """Another service does not answer, or not in a way that tells anything.

    Attributes:
        code: ``busy`` where it says that it cannot answer just now, ``offline`` where nothing at all answers.
    """

    def __init__(self, sentence: str = "", code: str = "") -> None:
        super().__init__(sentence)
        self.code = code


class ProblemsError(InputError):
    """An input that cannot be used; each of `problems` is a sentence: what was expected, what found, what would do."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))
