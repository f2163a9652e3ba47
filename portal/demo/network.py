"""At which addresses a demo is met: on this machine, and by a phone in the same network."""

from __future__ import annotations

import os
import socket

from django.conf import settings

EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound to
SOME_OTHER_MACHINE = ("192.0.2.1", 9)  # an address reserved for documentation; nothing is sent to it


def own_address(address: str) -> str:
    """HOST:PORT by which this machine itself reaches a server that listens at `address`."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host in EVERYWHERE else address


def network_address(address: str) -> str:
    """HOST:PORT by which others in the network reach it; empty if it does not listen to them or there is no network."""
    host, _, port = address.rpartition(":")
    if host not in EVERYWHERE:
        return ""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(SOME_OTHER_MACHINE)
        except OSError:
            return ""
        own = str(probe.getsockname()[0])
    return "" if own.startswith("127.") else f"{own}:{port}"


def answer_to_network(address: str) -> None:
    """Let the processes that are started after this answer under the address that others in the network use."""
    os.environ.setdefault("PORTAL_SITE_URL", f"http://{own_address(address)}")
    if others := network_address(address):
        hosts = [*settings.ALLOWED_HOSTS, others.rpartition(":")[0]]
        os.environ["PORTAL_ALLOWED_HOSTS"] = ",".join(dict.fromkeys(hosts))
