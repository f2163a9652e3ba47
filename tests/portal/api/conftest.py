"""A challenge with everything in it, made once for all tests of a process."""

import pytest

from tests.portal.api.calls import take_challenge


@pytest.fixture
def challenge(once):
    return take_challenge(once)
