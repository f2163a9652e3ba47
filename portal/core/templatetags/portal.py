"""What templates need to say things well; the wording itself is in `portal.core.wording`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import template

from evaluation.formats.sizes import size_words
from portal.core import wording

register = template.Library()

register.filter("time_left", wording.time_left)
register.filter("problem_groups", wording.group_problems)
register.filter("severities", wording.count_severities)
register.filter("symbol", wording.symbol)


@register.filter
def duration(length: float | timedelta | None) -> str:
    """`{{ utterance.duration_s|duration }}`: 4 min 5 s."""
    return wording.duration(length)


@register.filter
def decimals(value: float | None, digits: int) -> str:
    """`{{ value|decimals:metric.decimals }}`: a number as its metric is written."""
    return wording.decimals(value, digits)


@register.filter
def size(count: int) -> str:
    """`{{ upload.size|size }}`: 9.3 MB."""
    return size_words(count).replace(" ", "\u00a0")


@register.filter
def unbroken(text: str) -> str:
    """`{{ row.kind|unbroken }}`: words that stay on one line."""
    return text.replace(" ", "\u00a0").replace("-", "-\u2060")


@register.filter
def as_facts(values: dict[str, Any]) -> list[tuple[str, str]]:
    """`{% include "components/facts.html" with facts=job.result|as_facts %}`."""
    return wording.as_facts(values)
