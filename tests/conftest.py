"""One browser for all tests of a process, whatever folder they are in: two would not live in one thread."""

import signal

from tests.browsing import (  # noqa: F401
    browser,
    check_page,
    faults,
    new_page,
    operator_page,
    organizer_page,
    page,
)

# A shell lets what it starts in the background ignore Ctrl-C, and the programs that these tests start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
