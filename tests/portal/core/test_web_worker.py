"""The worker of the web server, in a server of its own with few places and a small application."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

SERVER = """
import os, sys
from gunicorn.app.base import BaseApplication
from portal.core import transfers, web_worker

SETTINGS = {"bind": f"fd://{sys.argv[1]}", "threads": 2, "loglevel": "critical", "control_socket_disable": True}
web_worker.MOST_ARRIVING = 2


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/breaks":
        yield b"x" * web_worker.SEND_BUFFER_BYTES * 3  # more than the system takes, less than a thread waits with
        raise RuntimeError("its file cannot be read")
    taken = [transfers.places.take_for_download() for _ in range(20)] if environ["PATH_INFO"] == "/places" else []
    yield str(sum(map(bool, taken)) or os.getpid()).encode()


class Server(BaseApplication):
    def load_config(self):
        for name, value in SETTINGS.items():
            self.cfg.set(name, value)
        self.cfg.set("worker_class", web_worker.WebWorker)

    def load(self):
        return application


Server().run()
"""


@pytest.fixture(scope="module")
def address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-c", SERVER, str(listener.fileno())]
        server = subprocess.Popen(command, pass_fds=[listener.fileno()])
        yield listener.getsockname()
        server.terminate()
        server.wait(30)


def connect(address, sent=b""):
    client = socket.create_connection(address, timeout=30)
    client.sendall(sent)
    return client


def number_told(address, path=b"/"):
    with connect(address, b"GET %b HTTP/1.0\r\n\r\n" % path) as client, client.makefile("rb") as answer:
        return int(answer.read().rpartition(b"\r\n\r\n")[2])


def in_one_round(worker, *steps):
    """Everything that these steps send reaches the server in one round of its main loop."""
    os.kill(worker, signal.SIGSTOP)
    made = [step() for step in steps]
    time.sleep(0.1)
    os.kill(worker, signal.SIGCONT)
    return made


def test_request_on_a_connection_that_is_closed_in_the_same_round_ends_nothing(address):
    worker = number_told(address)
    first, second = connect(address, b"GET"), connect(address, b"GET")
    time.sleep(0.2)
    third, _ = in_one_round(worker, lambda: connect(address), lambda: first.sendall(b" / HTTP/1.0\r\n\r\n"))
    with pytest.raises(ConnectionResetError):  # the oldest of three gave way
        first.recv(100)
    assert number_told(address) == worker
    for client in (first, second, third):
        client.close()


def test_answer_that_breaks_off_behind_a_client_that_takes_nothing_ends_nothing(address):
    worker = number_told(address)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(address)
        client.sendall(b"GET /breaks HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        assert number_told(address) == worker


def test_places_of_transfers_follow_the_threads_of_the_server(address):
    assert number_told(address, b"/places") == 1
