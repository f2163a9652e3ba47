"""The same programs beside the tests as the rest of the portal has."""

from tests.portal.processes.conftest import *  # noqa: F403
