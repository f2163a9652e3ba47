"""Who may keep a thread of the web server for long."""

import threading
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
        assert count_places(held, lambda _: places.slow_answer()) == 5
        assert not places.take_for_download()
    with ExitStack() as held:
        assert count_places(held, lambda _: places.slow_answer()) == 8
        taken = [places.take_for_download() for _ in range(100)]
        assert sum(map(bool, taken)) == 12
        for one in taken:
            transfers.release(one)


def test_one_sender_has_a_third_of_the_places_for_uploads():
    for threads, most in ((24, 5), (7, 1), (1, 1)):
        places = Places(threads)
        for _ in range(2):  # all are given back
            with ExitStack() as held:
                assert count_places(held, lambda _, places=places: places.upload_of("a team")) == most


def test_download_waits_for_its_client_without_a_second_place():
    places = Places(5)
    taken = places.take_for_download()
    with places.slow_answer() as has_place:
        assert not has_place  # this thread has not begun to send it
    places.note_download(taken)
    with places.slow_answer() as has_place:
        assert has_place
    seen = []

    def look():
        with places.slow_answer() as found:
            seen.append(found)

    another = threading.Thread(target=look)
    another.start()
    another.join()
    transfers.release(taken)
    with places.slow_answer() as first, places.slow_answer() as second:
        assert (seen, first, second) == ([False], True, False)
