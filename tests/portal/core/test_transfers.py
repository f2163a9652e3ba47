"""Who may keep a thread of the web server for long."""

from contextlib import ExitStack

from portal.core import transfers
from portal.core.transfers import Places


def count_places(held, take, of=100):
    """How many of these requests have a place at a time."""
    return sum(held.enter_context(take(number)) for number in range(of))


def test_transfers_of_all_kinds_leave_threads_to_pages():
    places = Places(24)
    with ExitStack() as held:
        assert count_places(held, places.upload_of) == 15
        taken = [places.take_for_download() for _ in range(100)]
        assert sum(map(bool, taken)) == 5
    for place in taken:
        transfers.release(place)
    taken = [places.take_for_download() for _ in range(100)]
    assert sum(map(bool, taken)) == 12
    for place in taken:
        transfers.release(place)


def test_one_sender_has_a_third_of_the_places_for_uploads():
    for threads, most in ((24, 5), (7, 1), (1, 1)):
        places = Places(threads)
        for _ in range(2):  # all are given back
            with ExitStack() as held:
                assert count_places(held, lambda _, places=places: places.upload_of("a team")) == most
