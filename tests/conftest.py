"""One browser for all tests of a process, whatever folder they are in: two would not live in one thread."""

from pathlib import Path

import pytest

from tests.browsing import (  # noqa: F401
    browser,
    check_page,
    faults,
    new_page,
    operator_page,
    organizer_page,
    page,
)

# These share a machine with other processes, whose pace no test can know.
BESIDE_OTHERS = {"browser", "processes"}


def pytest_collection_modifyitems(items):
    """What depends on other processes gets a second attempt, told in the summary; a defect fails both."""
    for item in items:
        if BESIDE_OTHERS & set(Path(item.path).parts):
            item.add_marker(pytest.mark.flaky(reruns=1))
