"""Text that a template says for Python: mails, and sentences that several pages lay out in their own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.template import Context
from django.template.loader import get_template


def render_text(template: str, context: Mapping[str, Any]) -> str:
    """Return what a template in plain text says."""
    found = get_template(template).template  # type: ignore[attr-defined]
    text: str = found.render(Context(dict(context), autoescape=False))
    return text.strip()


def render_lines(template: str, context: Mapping[str, Any]) -> list[str]:
    """Return the lines of a text that are not empty."""
    return [stripped for line in render_text(template, context).splitlines() if (stripped := line.strip())]
