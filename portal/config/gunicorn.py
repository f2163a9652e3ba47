"""How gunicorn serves the portal. A proxy before it, such as nginx, keeps slow clients away from its threads."""

import socket
import struct
from typing import Any

workers = 1  # places of transfers and kept figures are those of one process
worker_class = "gthread"
sendfile = False
control_socket_disable = True  # it would lie in the home of the user, one for all portals
timeout = 60
graceful_timeout = 10
keepalive = 20
loglevel = "warning"

LONGEST_PAUSE_S = 20  # in what a client sends
LONGEST_SEND_S = 60  # for one piece of an answer


def when_ready(server: Any) -> None:
    """Let no client that fell silent keep its thread: accepted connections inherit these limits on Linux."""
    for listener in server.LISTENERS:
        for option, seconds in ((socket.SO_RCVTIMEO, LONGEST_PAUSE_S), (socket.SO_SNDTIMEO, LONGEST_SEND_S)):
            listener.sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
