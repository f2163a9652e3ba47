"""Clients that fall silent in the midst of a request, at a web server without a proxy."""

import socket
from contextlib import ExitStack, closing

import requests

from portal.config import gunicorn
from tests.portal.processes.uploading import WebServer

THREADS = 6
HEAD = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = b"POST /log-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nlogin="
UPLOAD = b"PATCH /api/uploads/1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nx"


def test_clients_that_fall_silent_keep_no_thread(unattended):
    server = WebServer(unattended, threads=THREADS)
    with ExitStack() as clients:
        for sent in (HEAD, FORM, UPLOAD) * (THREADS // 3):
            client = clients.enter_context(closing(socket.create_connection(("127.0.0.1", server.port), timeout=60)))
            client.sendall(sent)
        assert requests.get(f"{server.address}/health/live", timeout=gunicorn.LONGEST_PAUSE_S + 20).ok
