"""Pages as a reader meets them: templates break their lines where they please."""

from __future__ import annotations

from django.http import HttpResponse


def read_page(response: HttpResponse) -> str:
    """The page on one line, each run of white space as one space."""
    return " ".join(response.content.decode().split())
