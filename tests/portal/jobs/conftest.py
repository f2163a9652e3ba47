"""What the queue is sent."""

import pytest

from portal.jobs import services


@pytest.fixture
def sent(monkeypatch):
    """Primary keys of the jobs for which a message was sent, in order; the queue takes all."""
    keys = []
    monkeypatch.setattr(services.current_app, "send_task", lambda _, arguments, **__: keys.append(arguments[0]))
    return keys
