"""Patterns of IP networks, beside Python's own reading of addresses."""

from __future__ import annotations

import ipaddress
import random
import re

from bittern.imports.addresses import ipv4_patterns, ipv6_patterns
from effort import chosen_seed

GROUPS = [0, 0, 0, 1, 0xF, 0x10, 0xA00, 0xDB8, 0x2001, 0xFFFF]


class Speller:
    """Random networks, and random spellings of addresses in and beside them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def network(self) -> ipaddress.IPv6Network:
        number = 0
        for _ in range(8):
            number = number << 16 | self.random.choice([*GROUPS, self.random.randrange(1 << 16)])
        bits = self.random.choice([*range(129), 0, 32, 48, 64, 96, 112, 128])
        return ipaddress.IPv6Network((number, bits), strict=False)

    def address(self, network: ipaddress.IPv6Network) -> int:
        low, high = int(network.network_address), int(network.broadcast_address)
        inside = self.random.randint(low, high)
        zeros = low | inside & 0xFFFF << 16 * self.random.randrange(8)
        beside = [
            max(low - 1, 0),
            min(high + 1, (1 << 128) - 1),
            low ^ 1 << self.random.randrange(128),
        ]
        return self.random.choice([inside, low, high, zeros, *beside])

    def group(self, number: int) -> str:
        digits = format(number, self.random.choice("xX"))
        return "0" * self.random.choice([0, 4 - len(digits)]) + digits

    def spelled(self, address: int) -> str:
        groups = [address >> 16 * place & 0xFFFF for place in reversed(range(8))]
        units = list(map(self.group, groups))
        if self.random.random() < 0.3:
            units[6:] = [str(ipaddress.IPv4Address(address & 0xFFFFFFFF))]
            groups[6:] = [1]  # never left out
        runs = [
            (start, end)
            for start in range(len(units))
            for end in range(start + 1, len(units) + 1)
            if not any(groups[start:end])
        ]
        if not runs or self.random.random() < 0.3:
            return ":".join(units)
        start, end = self.random.choice(runs)
        return f"{':'.join(units[:start])}::{':'.join(units[end:])}"

    def damaged(self, text: str) -> str:
        place = self.random.randrange(len(text) + 1)
        piece = self.random.choice([":", "::", "0", "1", "g", ".", "00000", ""])
        return text[:place] + piece + text[place + self.random.randrange(2) :]


def is_in(text: str, network: ipaddress.IPv6Network | ipaddress.IPv4Network) -> bool:
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False


def matches(patterns: list[str], text: str) -> bool:
    return any(re.match(each.replace(r"\z", r"\Z"), text) for each in patterns)


def test_ipv6_in_all_its_spellings() -> None:
    speller = Speller(chosen_seed())
    for _ in range(150):
        network = speller.network()
        patterns = ipv6_patterns(network, dotted=True, zeros=False)
        for _ in range(8):
            text = speller.spelled(speller.address(network))
            for each in (text, speller.damaged(text)):
                assert matches(patterns, each) == is_in(each, network), (network, each)


def test_ipv4_and_its_zeros() -> None:
    network = ipaddress.IPv4Network("10.96.0.0/11")
    strict, loose = (ipv4_patterns(network, zeros=zeros) for zeros in (False, True))
    for text in ["10.96.0.0", "10.127.255.255", "10.128.0.0", "10.95.1.1", "10.96.256.1", "10.96"]:
        assert matches(strict, text) == matches(loose, text) == is_in(text, network)
    assert matches(loose, "010.0096.00.1")
    assert not matches(strict, "010.96.0.1")
