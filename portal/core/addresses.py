"""Network addresses of visitors."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address


def plain_address(address: str) -> str:
    """IPv4 as such where it comes within IPv6; everything else stays as it is.

    A server that listens to both kinds tells it so (``::ffff:192.0.2.7``), and all IPv4 shares that /64.
    """
    with suppress(ValueError):
        if mapped := IPv6Address(address).ipv4_mapped:
            return str(mapped)
    return address
