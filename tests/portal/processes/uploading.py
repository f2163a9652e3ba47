"""What tests of uploads need: a web server that can be killed, a bad line to it, files, and a measure of memory."""

import hashlib
import os
import random
import selectors
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import requests

from portal.core.processes import web_command
from tests.portal.processes.programs import free_port, wait_until

MEBIBYTE = 1 << 20
# What the tests send; the real thing, 2 GB over the same bad line, is UPLOAD_TEST_MB=2048.
SIZE_MB = int(os.environ.get("UPLOAD_TEST_MB", "48"))


def make_archive(path, megabytes=SIZE_MB):
    """A file that no compression makes smaller; its SHA-256."""
    digest, source = hashlib.sha256(), random.Random(2022)
    with path.open("wb") as stream:
        for _ in range(megabytes):
            piece = source.randbytes(MEBIBYTE)
            digest.update(piece)
            stream.write(piece)
    return digest.hexdigest()


class WebServer:
    """The portal's web server as `serve` starts it, on a port that stays the same when it is started again."""

    def __init__(self, portal, *, threads=24, **environment):
        self.portal, self.threads, self.environment = portal, threads, environment
        self.port = free_port()
        self.program = None
        self.most_memory_bytes = 0
        self.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = web_command(f"127.0.0.1:{self.port}", threads=self.threads)[1:]
        self.program = self.portal.start("web", *command, PORTAL_WEB_THREADS=str(self.threads), **self.environment)
        wait_until(lambda: self.is_live() or not self.program.is_running, "the web server")
        assert self.program.is_running, self.program.output()

    def is_live(self):
        try:
            return requests.get(f"{self.address}/health/live", timeout=5).ok
        except requests.RequestException:
            return False

    def kill(self):
        """``kill -9`` of the server and all its processes."""
        self.program.kill()

    def memory_bytes(self):
        """Resident memory of the process that answers."""
        pages = (int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) for pid in self.program.family())
        return max(pages) * os.sysconf("SC_PAGE_SIZE")


def standing_server(portal):
    """The web server that stands for all tests until one of them kills it."""
    if portal.server is None or not portal.server.program.is_running:
        portal.server = WebServer(portal)
    return portal.server


class BadLine:
    """A way to a server that can be cut: open connections are reset, later ones get through."""

    def __init__(self, port, *, bytes_per_s=None):
        self.target, self.bytes_per_s = port, bytes_per_s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs, self.lock, self.cuts = [], threading.Lock(), 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def cut(self):
        """Break every connection off."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for side in pair:
                with suppress(OSError):
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    side.shutdown(socket.SHUT_RDWR)
        self.cuts += 1

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # which ends the wait for the next connection, too
        self.listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        with self.lock:
            self.pairs.append((client, server))
        with client, server, suppress(OSError):
            self._pump(client, server)

    def _pump(self, client, server):
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    piece = key.fileobj.recv(256 << 10)
                    if not piece:
                        return
                    key.data.sendall(piece)
                    if self.bytes_per_s and key.fileobj is client:
                        time.sleep(len(piece) / self.bytes_per_s)


def disturb(server, line, offset, size):
    """Cut the line three times and kill the server twice while an upload goes on; how often each was done.

    Args:
        offset: tells how many bytes the portal has acknowledged.
    """
    before = 0
    for number, action in enumerate(("cut", "kill", "cut", "kill", "cut"), start=1):
        wait_until(lambda due=number * size // 8: offset() >= due, f"{action} {number}", seconds=600)
        server.most_memory_bytes = max(server.most_memory_bytes, server.memory_bytes())
        assert before <= offset() < size
        before = offset()
        if action == "cut":
            line.cut()
        else:
            server.kill()
            assert offset() >= before
            server.start()
