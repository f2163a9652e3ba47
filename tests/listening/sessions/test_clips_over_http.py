"""Clips over a real connection: sent in parts at once, and broken off."""

import socket
import struct
import time
from urllib.parse import urlsplit

import pytest

from listening.app.models import Serve, Stimulus
from listening.app.sessions.clip_urls import clip_address
from portal.core.storage import store_bytes
from tests.listening.factories import make_session, make_study

pytestmark = pytest.mark.django_db(transaction=True)
LARGE = bytes(range(256)) * 4096 * 16  # more than the buffers of a connection on one machine hold


@pytest.fixture
def address(live_server):
    """The address of a large clip."""
    session = make_session(make_study())
    Stimulus.objects.update(file=store_bytes(LARGE, ".wav"), bytes=len(LARGE))
    return live_server.url + clip_address(session, session.block.trials.first(), "a")


def settled():
    """The only note, once it is there and no longer changes."""
    deadline, last = time.monotonic() + 20, None
    while time.monotonic() < deadline:
        found = Serve.objects.values().first()
        if found is not None and found == last:
            return found
        last = found
        time.sleep(0.3)
    raise AssertionError(f"no settled note: {last}")


def test_criterion_09_connection_that_is_cut_leaves_the_clip_incomplete(address):
    parts = urlsplit(address)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((parts.hostname, parts.port))
    connection.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    got = b""
    while len(got) < 100_000:
        got += connection.recv(4096)
    assert got.startswith(b"HTTP/1.1 200")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    note = settled()
    assert note["complete_at"] is None
    [[start, stop]] = note["ranges"]
    assert (start, 90_000 < stop < len(LARGE)) == (0, True)
