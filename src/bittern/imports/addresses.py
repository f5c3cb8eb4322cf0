"""Ranges of IPv4 addresses as regular expressions over their usual text."""

from __future__ import annotations

import ipaddress


def ipv4_pattern(network: ipaddress.IPv4Network) -> str:
    """Addresses of the network, each octet with any zeros before it; RE2's syntax.

    The first octets are fixed, of one a range is allowed, and the others are free.
    """
    lows = network.network_address.packed
    highs = network.broadcast_address.packed
    octets = (_octet(low, high) for low, high in zip(lows, highs, strict=True))
    return r"\A" + r"\.".join(octets) + r"\z"


def _octet(low: int, high: int) -> str:
    if (low, high) == (0, 255):
        return "0*(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
    return f"0*(?:{'|'.join(map(str, range(low, high + 1)))})"
