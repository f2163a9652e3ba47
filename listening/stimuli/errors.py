"""The one error of this package: a recording that cannot become a stimulus, told in the parts of a `Problem`."""

from __future__ import annotations


class StimulusError(ValueError):
    """A recording that cannot be made into a stimulus; `expected`, `found` and `remedy` as in `Problem`."""

    def __init__(self, code: str, expected: str, found: str, remedy: str) -> None:
        super().__init__(f"expected {expected}, found {found}. {remedy}")
        self.code = code
        self.expected = expected
        self.found = found
        self.remedy = remedy
