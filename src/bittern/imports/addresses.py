r"""Ranges of IP addresses as regular expressions over all their spellings, in RE2's syntax.

::

    10.0.0.0/13     10 \. (0|1|...|7) \. octet \. octet
    2001:db8::/32   2001 : 0?db8 : six groups, or fewer with :: in place of zeros somewhere

A group of IPv6 has up to four hexadecimal digits in either case; ``::`` stands for one group or
more that are zero, once. Each place where it may stand is an alternative: there are at most 36, and
some of them to a pattern, as many as it may hold.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from bittern.terms.limits import MAX_REGEX_LENGTH

_GROUPS = 8
_MAPPED = int(ipaddress.IPv6Address("::ffff:0:0"))
#: Addresses of IPv4 as those of IPv6.
MAPPED = ipaddress.IPv6Network((_MAPPED, 96))


def ipv4_patterns(network: ipaddress.IPv4Network, *, zeros: bool) -> list[str]:
    """Patterns of which one matches each address; ``zeros`` allows any zeros before an octet.

    The first octets are fixed, of one a range is allowed, and the others are free.
    """
    lows, highs = network.network_address.packed, network.broadcast_address.packed
    return _packed([_octets(lows, highs, zeros=zeros)])


def mapped(network: ipaddress.IPv4Network) -> ipaddress.IPv6Network:
    """The same addresses as those of IPv6."""
    return ipaddress.IPv6Network((_MAPPED + int(network.network_address), 96 + network.prefixlen))


def ipv6_patterns(network: ipaddress.IPv6Network, *, dotted: bool, zeros: bool) -> list[str]:
    """Patterns of which one matches each address, as few as fit into the limit of a pattern.

    ``dotted`` allows the last 32 bits as an address of IPv4, ``zeros`` any zeros before a group.
    """
    low, high = network.network_address.packed, network.broadcast_address.packed
    ends = [
        (int.from_bytes(low[at : at + 2], "big"), int.from_bytes(high[at : at + 2], "big"))
        for at in range(0, 2 * _GROUPS, 2)
    ]
    n_fixed = -(-network.prefixlen // 16)
    found = list(_spellings(ends, n_fixed, "", zeros=zeros))
    if dotted:
        last = _octets(low[12:], high[12:], zeros=zeros)
        found += _spellings(ends[:6], min(6, n_fixed), last, zeros=zeros)
    return _packed(found)


def _packed(alternatives: list[str]) -> list[str]:
    """Patterns for a whole text, each of as many alternatives as fit."""
    runs: list[list[str]] = [[]]
    for each in alternatives:
        if runs[-1] and sum(map(len, runs[-1])) + len(runs[-1]) + len(each) > _ROOM:
            runs.append([])
        runs[-1].append(each)
    return [rf"(?i)\A(?:{'|'.join(run)})\z" for run in runs]


_ROOM = MAX_REGEX_LENGTH - len(r"(?i)\A(?:)\z")


def _octets(lows: bytes, highs: bytes, *, zeros: bool) -> str:
    before = "0*" if zeros else ""
    ends = zip(lows, highs, strict=True)
    return r"\.".join(f"{before}(?:{_octet(low, high)})" for low, high in ends)


def _octet(low: int, high: int) -> str:
    if (low, high) == (0, 255):
        return r"25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d"
    numbers = [str(number) for number in range(low, high + 1)]
    if high - low < 10:
        return "|".join(numbers)
    # Numbers that share all but their last digit are one alternative.
    ends: dict[str, str] = {}
    for number in numbers:
        ends[number[:-1]] = ends.get(number[:-1], "") + number[-1]
    return "|".join(f"{start}[{last[0]}-{last[-1]}]" for start, last in ends.items())


def _spellings(
    ends: list[tuple[int, int]], n_fixed: int, last: str, *, zeros: bool
) -> Iterator[str]:
    """The groups, of which the first are told and the others free, in full and with ``::``.

    ``last`` is what always stands at the end, and is no group.
    """
    fixed = [_group(low, high, zeros=zeros) for low, high in ends[:n_fixed]]
    may_go = [low == 0 for low, _ in ends[:n_fixed]]
    free = _group(0, 0xFFFF, zeros=zeros)
    n_free = len(ends) - n_fixed
    end = [last] if last else []

    def rest(most: int) -> str:
        """So many free groups at most, and what stands at the end."""
        if last:
            return f"(?:{free}:){{0,{most}}}{last}"
        return f"(?:{free}(?::{free}){{0,{most - 1}}})?" if most else ""

    yield ":".join([*fixed, *_repeated(free, n_free), *end])
    for before in range(n_fixed):
        start = ":".join(fixed[:before])
        if all(may_go[before:]):
            yield f"{start}::{rest(n_free)}"
        for after in range(before + 1, n_fixed):
            if all(may_go[before:after]):
                yield f"{start}::{':'.join([*fixed[after:], *_repeated(free, n_free), *end])}"
    behind = []
    for before in range(n_free):
        colon = ":" if fixed and before else ""
        behind.append(f"{colon}{':'.join(_repeated(free, before))}::{rest(n_free - before - 1)}")
    if behind:
        yield f"{':'.join(fixed)}(?:{'|'.join(behind)})"


def _repeated(group: str, count: int) -> list[str]:
    """So many groups with colons between, as one piece; none if there are none."""
    if count < 1:
        return []
    return [group if count == 1 else f"{group}(?::{group}){{{count - 1}}}"]


def _group(low: int, high: int, *, zeros: bool) -> str:
    """A group of IPv6: numbers that share their first bits, with zeros before them."""
    n_free = (high - low).bit_length() // 4  # digits that may be any
    first, last = low >> (4 * n_free), high >> (4 * n_free)
    found: list[str] = []
    if first == 0 and n_free:
        found.append(_padded(n_free, rf"[\da-f]{_times(1, n_free)}", zeros=zeros))
        first = 1
        if (high - low).bit_length() % 4 == 0:
            return found[0]
    digits = f"{first:x}"[:-1]
    own = (
        digits
        + _digit(first & 15, last & 15)
        + (rf"[\da-f]{_times(n_free, n_free)}" * (n_free > 0))
    )
    found.append(_padded(len(digits) + 1 + n_free, own, zeros=zeros))
    return found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"


def _times(least: int, most: int) -> str:
    if least == most:
        return "" if most == 1 else f"{{{most}}}"
    return f"{{{least},{most}}}"


def _padded(length: int, digits: str, *, zeros: bool) -> str:
    before = "0*" if zeros else ("", "0?", "0{0,2}", "0{0,3}")[4 - length]
    return before + digits


def _digit(first: int, last: int) -> str:
    """One digit from first to last."""
    if first == last:
        return f"{first:x}"
    return "[" + "".join(f"{each:x}" for each in range(first, last + 1)) + "]"
