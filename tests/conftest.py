"""One browser for all tests of a process, whatever folder they are in: two would not live in one thread."""

from tests.browsing import (  # noqa: F401
    browser,
    check_page,
    faults,
    new_page,
    operator_page,
    organizer_page,
    page,
)
