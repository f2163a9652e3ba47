"""Sessions in the database, which is asked only for keys that it could have given: PostgreSQL fails at a zero byte."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore


class SessionStore(DatabaseStore):
    def _validate_session_key(self, key: Any) -> bool:
        is_key = super()._validate_session_key(key)  # type: ignore[misc]
        return bool(is_key) and set(key) <= set(VALID_KEY_CHARS)
