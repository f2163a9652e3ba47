"""What is wrong with the input of an analysis."""

from __future__ import annotations

from collections.abc import Iterable


class AnalysisInputError(ValueError):
    """Input that cannot be analysed; `problems` are sentences: which file and line, expected, found, what to do."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__(" ".join(self.problems))
