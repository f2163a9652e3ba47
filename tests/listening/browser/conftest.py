"""Recordings in a browser are short: what a test tries of them does not depend on how long they last."""

import pytest

from tests.listening import factories


@pytest.fixture(autouse=True)
def short_recordings(monkeypatch):
    monkeypatch.setattr(factories, "SECONDS", 0.3)
