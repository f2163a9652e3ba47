"""The errors that libraries and services raise; the text of each is a sentence for the person who caused it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class MetricInputError(ValueError):
    """An input for which the metric is not defined: says what was expected and what was found."""


class CommandError(Exception):
    """Bad usage or an input that cannot be read: one sentence for the person at the terminal."""


class NotPossible(Exception):  # noqa: N818
    """A wish came too late or at the wrong time; the message says why."""


class UnderWay(NotPossible):
    """The same request is being carried out already; pages redirect to that `thing`."""

    def __init__(self, sentence: str, thing: Any) -> None:
        super().__init__(sentence)
        self.thing = thing


class ProblemsError(ValueError):
    """An input that cannot be used; each of `problems` is a sentence: what was expected, what found, what would do."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__(" ".join(self.problems))
