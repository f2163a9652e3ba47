"""A browser asks for pictures as often as it changes its size; on a busy machine the first is drawn slowly."""

import threading

import pytest

from portal.core.drawing import draughtsman
from tests.browsing import PATIENCE_S


@pytest.fixture(autouse=True)
def patient_drawing(monkeypatch):
    """No picture is refused because others are drawn first: tests/portal/systems/test_explanation.py is about that."""
    monkeypatch.setattr(draughtsman, "waits_s", PATIENCE_S)
    monkeypatch.setattr(draughtsman, "_places", threading.BoundedSemaphore(20))
