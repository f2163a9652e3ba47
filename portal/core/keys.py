"""Keyed hashes that outlast a change of the secret key, as Django's own signatures do (SECRET_KEY_FALLBACKS)."""

from __future__ import annotations

from django.conf import settings
from django.utils.crypto import salted_hmac


def keyed_hashes(salt: str, value: str) -> list[bytes]:
    """Return the HMAC of a value by the secret key, with which new things are named, and by each former key still
    accepted."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [salted_hmac(salt, value, secret=key, algorithm="sha256").digest() for key in keys]
