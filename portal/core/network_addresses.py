"""Network addresses: of visitors, and of the server itself."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address

EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound to


def own_address(address: str) -> str:
    """Return HOST:PORT by which this machine itself reaches a server that listens at `address`."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host in EVERYWHERE else address


def plain_address(address: str) -> str:
    """IPv4 as such where it comes within IPv6; everything else stays as it is.

    A server that listens to both kinds tells it so (``::ffff:192.0.2.7``), and all IPv4 shares that /64.
    """
    with suppress(ValueError):
        if mapped := IPv6Address(address).ipv4_mapped:
            return str(mapped)
    return address
