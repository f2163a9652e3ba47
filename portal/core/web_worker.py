"""The worker of the web server: a slow or silent client keeps no thread from those who wait for a page.

`gthread` of gunicorn gives a connection to a thread as soon as it is open, and its main loop waits for each client that
does not close: 60 clients that send a byte a second, or one that never closes, stop every page. Here the main loop
collects a request until it is complete, and a thread gets it then. Few threads at a time read bodies that are too large
for that, and only as long as the client keeps a least speed. What a client does not take at once of its answer is sent
on by the main loop; few threads at a time wait with an answer that is too large for that. A portal behind a proxy that
buffers does not need this.
"""

from __future__ import annotations

import errno
import re
import resource
import selectors
import socket
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from portal.core import transfers

# What is collected before a thread begins: a request with a body of this size at most. Longer heads are refused.
COLLECTED_BYTES, HEAD_BYTES = 1 << 16, 1 << 16
ARRIVAL_S = 20.0  # for all of what is collected
# A body that a thread reads: no pause longer than the first, no lower speed than the second.
LONGEST_PAUSE_S, LEAST_BYTES_PER_S = 20.0, 1000
LONGEST_SEND_S = 60.0  # for one piece of an answer
BEHIND_BYTES = 1 << 19  # of an answer that the main loop sends on
LINGER_S = 5.0  # before a connection is closed: unread data is discarded, and the client receives the end of the answer
SEND_BUFFER_BYTES = 1 << 18  # a page fits, so that its thread does not wait for the client
# Connections in each state at most, of `worker_connections` in all; beyond them the oldest is closed.
MOST_ARRIVING, MOST_KEPT, MOST_LEAVING, MOST_TAKING, MOST_WAITING = 400, 250, 100, 100, 32
# Large bodies that arrive at a time, and how long one may take while others wait; uploads of archives have places of
# their own.
MOST_LARGE, LONGEST_LARGE_S = 2, 15.0
UPLOADS = b"/api/uploads/"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_STREAMED = re.compile(rb"\r\n(transfer-encoding|expect):", re.IGNORECASE)


@dataclass
class RequestArrival:
    """What has come of a request, until when the rest may come, and whether a thread will have to wait for its body."""

    received: bytearray
    deadline: float = field(default_factory=lambda: time.monotonic() + ARRIVAL_S)
    searched: int = 0
    length: int | None = None
    is_large: bool = False
    is_upload: bool = False

    def add(self, piece: bytes) -> None:
        self.received += piece
        if self.length is None:
            while self.received.startswith(b"\r\n"):  # allowed between two requests
                del self.received[:2]
            end = self.received.find(b"\r\n\r\n", max(0, self.searched - 3))
            self.searched = len(self.received)
            if end >= 0:
                self._read_head(bytes(self.received[: end + 2]), end + 4)

    def _read_head(self, head: bytes, start: int) -> None:
        length = _LENGTH.search(head)
        self.length = start + int(length[1]) if length else start
        self.is_upload = head.partition(b" ")[2].startswith(UPLOADS)  # whose parts are kept as they come
        if self.is_upload or _STREAMED.search(head) or self.length > start + COLLECTED_BYTES:
            self.length, self.is_large = start, True

    @property
    def is_complete(self) -> bool:
        return self.length is not None and len(self.received) >= self.length

    @property
    def is_too_long(self) -> bool:
        return self.length is None and len(self.received) > HEAD_BYTES


class PacedUnreader(SocketUnreader):
    """Reads from a client that sends with a least speed.

    Raises:
        ConnectionResetError: it paused too long, sends too slowly, or is cut off because others wait.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.patience_s = LONGEST_PAUSE_S
        self.is_cut_off = False

    def chunk(self, size_hint: int | None = None) -> bytes:
        before, began = self.sock.gettimeout(), time.monotonic()
        self.sock.settimeout(max(0.01, self.patience_s if before is None else min(before, self.patience_s)))
        try:
            piece: bytes = super().chunk(size_hint)
        except TimeoutError as error:
            raise _given_up() from error
        finally:
            self.sock.settimeout(before)
        if self.is_cut_off:
            raise _given_up()
        earned = len(piece) / LEAST_BYTES_PER_S
        self.patience_s = min(LONGEST_PAUSE_S, self.patience_s - (time.monotonic() - began) + earned)
        return piece


def _given_up() -> ConnectionResetError:
    """The server's log holds no line for these, as for other connections that end early."""
    return ConnectionResetError(errno.ECONNRESET, "The client is too slow.")


class PacedSocket(socket.socket):
    """Sends at once what the client takes, and keeps what is `behind`; a thread waits only where that grows too large,
    and there is a place for it.

    Raises:
        ConnectionResetError: there is none, or the client took too long.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.behind = bytearray()

    def sendall(self, data: Any, flags: int = 0, /) -> None:  # noqa: ARG002 - none is ever given
        self.behind += data
        before = self.gettimeout()
        self.setblocking(False)
        try:
            if not self.send_on() and len(self.behind) > BEHIND_BYTES:
                self._wait()
        finally:
            self.settimeout(before)

    def send(self, data: Any, flags: int = 0, /) -> int:
        self.sendall(data, flags)
        return len(data)

    def send_on(self) -> bool:
        """Send what is behind as far as it fits; whether that was all."""
        try:
            while self.behind:
                del self.behind[: super().send(self.behind)]
        except BlockingIOError:
            return False
        return True

    def _wait(self) -> None:
        rest, self.behind = self.behind, bytearray()
        with transfers.places.slow_answer() as has_place:
            if not has_place:
                raise _given_up()
            self.settimeout(LONGEST_SEND_S)
            try:
                super().sendall(rest)
            except TimeoutError as error:
                raise _given_up() from error


class WebWorker(ThreadWorker):
    """Threads for requests that have arrived; one loop for everything that waits for a client."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.max_keepalived: int = min(self.cfg.worker_connections - self.cfg.threads, MOST_KEPT)
        self.arriving: dict[TConn, RequestArrival] = {}
        self.leaving: dict[TConn, float] = {}
        self.taking: dict[TConn, tuple[float, Future[Any]]] = {}
        self.large: dict[TConn, float] = {}  # since when
        self.waiting: deque[TConn] = deque()

    def init_process(self) -> None:
        files, most = 4 * self.worker_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most != resource.RLIM_INFINITY:
            files = min(files, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
        transfers.places.set_up(self.cfg.threads)
        super().init_process()

    # From here on in the main loop ------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        try:
            accepted, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        client = PacedSocket(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self.nr_conns += 1
        with suppress(OSError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        connection = TConn(self.cfg, client, address, listener.getsockname())
        connection.init()
        connection.parser.unreader = PacedUnreader(client)
        self.enqueue_req(connection)

    def enqueue_req(self, conn: TConn) -> None:
        """Collect the next request of this connection; a thread gets it when it is complete."""
        conn.sock.setblocking(False)
        self.arriving[conn] = RequestArrival(bytearray())
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._receive, conn))
        if len(self.arriving) > MOST_ARRIVING:
            self._close(next(iter(self.arriving)))
        if conn in self.arriving:
            self._receive(conn, conn.sock, conn.parser.unreader.take_buffered())

    def _receive(self, conn: TConn, client: socket.socket, piece: bytes = b"") -> None:
        arrival = self.arriving.get(conn)
        if arrival is None:  # closed in this very round
            return
        try:
            arrival.add(piece)
            while not arrival.is_complete and not arrival.is_too_long:
                if not (piece := client.recv(COLLECTED_BYTES)):
                    self._close(conn)
                    return
                arrival.add(piece)
        except BlockingIOError:
            return
        except OSError:
            self._close(conn)
            return
        if arrival.is_too_long:
            self._refuse(conn, "431 Request Header Fields Too Large")
            return
        self._begin(conn, arrival)

    def _begin(self, conn: TConn, arrival: RequestArrival) -> None:
        waits = arrival.is_large and not arrival.is_upload and len(self.large) >= MOST_LARGE
        if waits and len(self.waiting) >= MOST_WAITING:
            self._refuse(conn, "503 Service Unavailable")
            return
        self._forget(conn)
        conn.parser.unreader.unread(bytes(arrival.received))
        conn.parser.unreader.patience_s, conn.parser.unreader.is_cut_off = LONGEST_PAUSE_S, False
        conn.data_ready = True
        if waits:
            self.waiting.append(conn)
            return
        if arrival.is_large and not arrival.is_upload:
            self.large[conn] = time.monotonic()
        super().enqueue_req(conn)

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        if conn in self.large:
            del self.large[conn]
            if self.waiting:
                following = self.waiting.popleft()
                self.large[following] = time.monotonic()
                super().enqueue_req(following)
        if conn.sock.fileno() < 0 or not conn.sock.behind:  # closed: its answer broke off
            self._go_on(conn, fs)
            return
        conn.sock.setblocking(False)
        self.taking[conn] = time.monotonic() + LONGEST_SEND_S, fs
        self.poller.register(conn.sock, selectors.EVENT_WRITE, partial(self._send_on, conn))
        if len(self.taking) > MOST_TAKING:
            self._close(next(iter(self.taking)))

    def _send_on(self, conn: TConn, client: PacedSocket) -> None:
        if conn not in self.taking:  # closed in this very round
            return
        try:
            is_sent = client.send_on()
        except OSError:
            self._close(conn)
            return
        if is_sent:
            _, fs = self.taking[conn]
            self._forget(conn)
            self._go_on(conn, fs)

    def _go_on(self, conn: TConn, fs: Future[Any]) -> None:
        """Take the next request of this connection, or leave it, now that its answer is on the way."""
        if not fs.cancelled() and not fs.exception() and fs.result():
            super().finish_request(conn, fs)
        else:
            self._leave(conn)

    def murder_pending(self) -> None:
        """Close what had its time; called in each round."""
        super().murder_pending()
        now = time.monotonic()
        for conn, arrival in list(self.arriving.items()):
            if not arrival.received and (not self.alive or arrival.deadline < now):
                self._close(conn)
            elif arrival.deadline < now:
                self._refuse(conn, "408 Request Timeout")
        overdue = [conn for conn, deadline in self.leaving.items() if deadline < now]
        overdue += [conn for conn, (deadline, _) in self.taking.items() if deadline < now]
        for conn in overdue:
            self._close(conn)
        for conn, since in self.large.items() if self.waiting else ():
            if since + LONGEST_LARGE_S < now:
                conn.parser.unreader.is_cut_off = True
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)  # wakes the thread that reads

    def _refuse(self, conn: TConn, status: str) -> None:
        with suppress(OSError):
            conn.sock.send(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
        self._leave(conn)

    def _leave(self, conn: TConn) -> None:
        """Close once the client has taken its answer: what it still sends would cut the answer off."""
        self._forget(conn)
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError, KeyError):
            self._close(conn)
            return
        self.leaving[conn] = time.monotonic() + LINGER_S
        if len(self.leaving) > MOST_LEAVING:
            self._close(next(iter(self.leaving)))

    def _drain(self, conn: TConn, client: socket.socket) -> None:
        if conn not in self.leaving:  # closed in this very round
            return
        try:
            if client.recv(COLLECTED_BYTES):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(conn)

    def _forget(self, conn: TConn) -> None:
        if self.arriving.pop(conn, None) or self.leaving.pop(conn, None) or self.taking.pop(conn, None):
            with suppress(OSError, KeyError, ValueError):
                self.poller.unregister(conn.sock)

    def _close(self, conn: TConn) -> None:
        self._forget(conn)
        self.nr_conns -= 1
        conn.close()

    # From here on in a thread -----------------------------------------------------------------------

    def _keepalive_after(self, conn: TConn, keepalive: Any) -> bool:
        # A body that the page did not read is dropped if it is here already; nobody waits for the rest of it.
        return bool(keepalive) and bool(conn.parser.finish_body(deadline=time.monotonic() + 0.05))
