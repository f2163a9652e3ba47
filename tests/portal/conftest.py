"""What tests of several folders need."""

import pytest


@pytest.fixture
def own_storage(settings, tmp_path):
    """The folder of stored files of this test alone, which is empty."""
    own = settings.STORAGES["default"] | {"OPTIONS": {"location": tmp_path / "files"}}
    settings.STORAGES = settings.STORAGES | {"default": own}
    return tmp_path / "files"
