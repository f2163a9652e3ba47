"""Which requests may keep a thread of the web server for long, so that some threads stay free for pages.

An upload or a download keeps its thread until it has ended. All together leave some to pages; of the others, uploads
take three quarters at most (those of one sender a third of that), downloads half of all threads. `places` are those of
this process.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings

KEPT_FOR_PAGES = 4


class Places:
    """The places of a web server with so many threads."""

    def __init__(self, threads: int) -> None:
        most = max(1, threads - KEPT_FOR_PAGES)
        most_uploads = max(1, most * 3 // 4)
        self.uploads_of_one = max(1, most_uploads // 3)
        self._all = threading.BoundedSemaphore(most)
        self._uploads = threading.BoundedSemaphore(most_uploads)
        self._downloads = threading.BoundedSemaphore(max(1, threads // 2))
        self._of_senders: dict[Hashable, threading.BoundedSemaphore] = {}

    @contextmanager
    def upload_of(self, sender: Hashable) -> Iterator[bool]:
        """Yield whether this sender may send a file just now, which keeps a thread meanwhile."""
        own = self._of_senders.setdefault(sender, threading.BoundedSemaphore(self.uploads_of_one))
        with ExitStack() as held:
            has_place = True
            for one in (own, self._uploads, self._all):
                if not (has_place := one.acquire(blocking=False)):
                    break
                held.callback(one.release)
            yield has_place

    def take_for_download(self) -> list[threading.BoundedSemaphore]:
        """Return the places of a download, each to be released when it ends; none where there are none."""
        taken: list[threading.BoundedSemaphore] = []
        for one in (self._downloads, self._all):
            if not one.acquire(blocking=False):
                release(taken)
                break
            taken.append(one)
        return taken


places = Places(settings.WEB_THREADS)


def release(taken: list[threading.BoundedSemaphore]) -> None:
    """Give these places back, once."""
    while taken:
        taken.pop().release()
