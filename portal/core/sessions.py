"""Sessions in the database, which is asked only for keys that it could have given: PostgreSQL fails at a zero byte."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore


class SessionStore(DatabaseStore):
    """A session that a request makes is written once: Django writes it again at the end of the request."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        self._created: dict[str, Any] | None = None

    def save(self, must_create: bool = False) -> None:
        data = deepcopy(self._get_session(no_load=must_create))  # type: ignore[attr-defined]
        if must_create or self.session_key is None or data != self._created:
            super().save(must_create)
            self._created = data if must_create else None

    def _validate_session_key(self, key: Any) -> bool:
        is_key = super()._validate_session_key(key)  # type: ignore[misc]
        return bool(is_key) and set(key) <= set(VALID_KEY_CHARS)
