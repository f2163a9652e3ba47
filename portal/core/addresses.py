"""Addresses of the portal as they stand in mails: whole, with the host."""

from __future__ import annotations

from urllib.parse import urljoin

from django.conf import settings


def absolute(path: str) -> str:
    """The whole address of a path of this portal, such as ``/editions/``."""
    return urljoin(settings.SITE_URL, path)
