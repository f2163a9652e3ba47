"""Network addresses of visitors."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address


def plain_address(address: str) -> str:
    """IPv4 as such where a server for both kinds tells it within IPv6 (``::ffff:192.0.2.7``), whose /64 all IPv4 shares.

    Everything else stays as it is.
    """
    with suppress(ValueError):
        if mapped := IPv6Address(address).ipv4_mapped:
            return str(mapped)
    return address
