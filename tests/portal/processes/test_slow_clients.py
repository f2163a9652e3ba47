"""Clients that send slowly, take slowly or never close, at a web server without a proxy."""

import re
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest
import requests

from tests.portal.processes.uploading import standing_server

CLIENTS = 60  # more than twice as many as there are threads
MANY = 60  # pages of the manual: more than both ends of a connection hold
HEAD = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LARGE = 1 << 20
# What each sends before it falls silent and stays.
SILENT = {
    "half a head": HEAD,
    "half a large form": b"POST /log-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\nlogin=" % LARGE,
    "half an upload": b"PATCH /api/uploads/1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\nx" % LARGE,
}


@pytest.fixture
def server(unattended):
    return standing_server(unattended)


def connect(server):
    return closing(socket.create_connection(("127.0.0.1", server.port), timeout=60))


def exchange(server, *pieces, pause_s=0.0):
    """All that the server answers until it closes."""
    with connect(server) as client:
        for piece in pieces:
            client.sendall(piece)
            time.sleep(pause_s)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(LARGE):
            answer += piece
    return answer


@pytest.mark.parametrize("sent", SILENT.values(), ids=SILENT)
def test_silent_clients_keep_nobody_waiting(server, sent):
    with ExitStack() as clients:
        for _ in range(CLIENTS):
            clients.enter_context(connect(server)).sendall(sent)
        for _ in range(5):
            assert requests.get(f"{server.address}/health/live", timeout=5).ok


def test_clients_that_ask_on_and_take_nothing_keep_nobody_waiting(server):
    """Each asks for more pages than fit on the way to it, then to send more."""
    last = b"PATCH /api/uploads/1/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    with ExitStack() as clients:
        for _ in range(CLIENTS):
            client = clients.enter_context(closing(socket.socket()))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            client.connect(("127.0.0.1", server.port))
            client.sendall(b"GET /docs/methods/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * MANY + last)
        for _ in range(5):
            assert requests.get(f"{server.address}/health/live", timeout=60).ok


def test_client_that_pauses_gets_all_of_its_answers(server):
    """More than its end of the connection and the server's hold together."""
    asked = b"GET /docs/methods/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.connect(("127.0.0.1", server.port))
        client.sendall((asked + b"\r\n") * (MANY - 1) + asked + b"Connection: close\r\n\r\n")
        time.sleep(3)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LARGE)
        answer = bytearray()  # bytes would be copied as a whole with each piece
        while piece := client.recv(LARGE):
            answer += piece
    lengths = [int(one) for one in re.findall(rb"Content-Length: (\d+)", answer)]
    assert (len(lengths), answer.count(b"HTTP/1.1 200 ")) == (MANY, MANY)
    assert sum(lengths) + len(lengths) * answer.index(b"\r\n\r\n") <= len(answer)


def test_large_bodies_that_come_slowly_keep_no_other_waiting(server):
    """A few that send just fast enough, for minutes: each gives way once others wait."""
    head = b"POST /log-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % LARGE
    over = threading.Event()

    def trickle(client):
        with suppress(OSError):
            while not over.wait(0.5):
                client.sendall(b"x" * 2000)

    with ExitStack() as clients:
        clients.callback(over.set)
        for _ in range(4):
            client = clients.enter_context(connect(server))
            client.sendall(head)
            threading.Thread(target=trickle, args=[client], daemon=True).start()
        answer = requests.post(f"{server.address}/log-in/", data=b"x" * LARGE, timeout=120)
    assert answer.status_code == 403


def test_head_that_does_not_end_is_refused(server):
    answer = exchange(server, HEAD, *[b"X-Long: %s\r\n" % (b"x" * 4000)] * 20)
    assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("framed", ["length", "chunks", "expected"])
def test_large_body_arrives(server, framed):
    """The token stands at the end of the form, so that it is only known where all of the form has come."""
    session = requests.Session()
    page = session.get(f"{server.address}/log-in/", timeout=60)
    token = page.text.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    form = f"login={'x' * LARGE}&password=x&csrfmiddlewaretoken={token}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if framed == "expected":
        headers["Expect"] = "100-continue"
    body = iter([form[:100], form[100:]]) if framed == "chunks" else form
    answer = session.post(f"{server.address}/log-in/", data=body, headers=headers, timeout=60)
    assert answer.status_code == (403 if framed == "chunks" else 200)  # Django reads no form without a length
