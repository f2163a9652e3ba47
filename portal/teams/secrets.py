"""Secrets of invitations: long and random, told once, known here by their hash only."""

from __future__ import annotations

import hashlib
import secrets


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """SHA-256 suffices: a secret of 256 random bits cannot be guessed, whatever the speed of the hash."""
    return hashlib.sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()
