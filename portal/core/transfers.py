"""Which requests may keep a thread of the web server for long, so that some threads stay free for pages.

An upload or a download keeps its thread until it has ended, and so does a large answer that its client takes slowly.
All together leave some to pages; of the others, uploads take three quarters at most (those of one sender a third of
that), downloads half of all threads, and slow answers a third of all. `places` are those of this process; the worker of
the web server, which knows how many threads it has, sets them up before its first request.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

KEPT_FOR_PAGES = 4


class Places:
    """The places of a web server with so many threads."""

    def __init__(self, threads: int) -> None:
        self.set_up(threads)

    def set_up(self, threads: int) -> None:
        """Have the places of so many threads, while nobody holds one."""
        most = max(1, threads - KEPT_FOR_PAGES)
        most_uploads = max(1, most * 3 // 4)
        self.uploads_of_one = max(1, most_uploads // 3)
        self._all = threading.BoundedSemaphore(most)
        self._uploads = threading.BoundedSemaphore(most_uploads)
        self._downloads = threading.BoundedSemaphore(max(1, threads // 2))
        self._slow_answers = threading.BoundedSemaphore(max(1, threads // 3))
        self._of_senders: dict[Hashable, threading.BoundedSemaphore] = {}
        self._of_this_thread = threading.local()

    def upload_of(self, sender: Hashable) -> AbstractContextManager[bool]:
        """Whether this sender may send a file just now, which keeps a thread meanwhile."""
        own = self._of_senders.setdefault(sender, threading.BoundedSemaphore(self.uploads_of_one))
        return _kept(own, self._uploads, self._all)

    @contextmanager
    def slow_answer(self) -> Iterator[bool]:
        """Whether this thread may wait for a client that takes its answer slowly; one that sends a download may."""
        if getattr(self._of_this_thread, "download", None):
            yield True
            return
        with _kept(self._slow_answers, self._all) as has_place:
            yield has_place

    def take_for_download(self) -> list[threading.BoundedSemaphore]:
        """The places of a download, each to be released when it ends; none where there are none."""
        taken: list[threading.BoundedSemaphore] = []
        for one in (self._downloads, self._all):
            if not one.acquire(blocking=False):
                release(taken)
                break
            taken.append(one)
        return taken

    def note_download(self, taken: list[threading.BoundedSemaphore]) -> None:
        """Note that this thread sends the download with these places, until it has released them."""
        self._of_this_thread.download = taken


places = Places(24)


def release(taken: list[threading.BoundedSemaphore]) -> None:
    """Give these places back, once."""
    while taken:
        taken.pop().release()


@contextmanager
def _kept(*slots: threading.BoundedSemaphore) -> Iterator[bool]:
    """Whether there is a place in each, which is kept meanwhile."""
    with ExitStack() as held:
        has_place = True
        for one in slots:
            if not (has_place := one.acquire(blocking=False)):
                break
            held.callback(one.release)
        yield has_place
