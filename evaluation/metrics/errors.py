"""The one error that every metric raises when its input makes no sense.

Callers catch `MetricInputError`; its text is a sentence for the person who can mend the input.
"""

from __future__ import annotations


class MetricInputError(ValueError):
    """An input for which the metric is not defined: says what was expected and what was found."""
