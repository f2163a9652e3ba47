"""What tests of several folders need."""

import pytest

from tests.portal.factories import make_organizer


@pytest.fixture
def own_storage(settings, tmp_path):
    """The folder of stored files of this test alone, which is empty."""
    own = settings.STORAGES["default"] | {"OPTIONS": {"location": tmp_path / "files"}}
    settings.STORAGES = settings.STORAGES | {"default": own}
    return tmp_path / "files"


@pytest.fixture
def organizer():
    return make_organizer()
