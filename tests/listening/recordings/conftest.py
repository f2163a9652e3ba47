"""An organizer who is signed in."""

from types import SimpleNamespace

import pytest
from django.test import Client

from tests.portal.factories import make_organizer


@pytest.fixture
def place():
    organizer, client = make_organizer(), Client()
    client.force_login(organizer)
    return SimpleNamespace(organizer=organizer, client=client)
