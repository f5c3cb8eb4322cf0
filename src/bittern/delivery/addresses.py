"""The addresses that matches may be delivered to: the public internet, and allowed networks.

Subscribers choose their URLs, and the request is made from inside the operator's network. So
neither a URL is trusted nor the name service that it leads to::

    https://hooks.example.com/a?b=1
      |         |            |
      |         |            path: printable ASCII, so that nothing else fits in a request line
      |         name: letters, digits, hyphens, dots; never digits at the end, for 2130706433,
      |         0x7f.1 and 0177.0.0.1 are all 127.0.0.1 to a resolver. It is resolved once, all of
      |         its addresses must be allowed, and one of those is what is connected to: a name
      |         that resolves to something else a moment later changes nothing.
      http or https, port 80, 443 or from 1024 on, no user or password

An IPv6 address that stands for an IPv4 address is judged as that one::

    ::ffff:10.0.0.1      mapped       10.0.0.1   private
    64:ff9b::a00:1       NAT64        10.0.0.1   private
    2002:a00:1::         6to4         10.0.0.1   private

An address is public if it is in none of the networks below: those that IANA lists as special, and
two that only look public. They are listed here because what ``ipaddress`` calls global differs
between releases of Python; an address that it does not call global is refused too.

Cost: O(length) for a URL, one question to the resolver for a name; nothing is remembered.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from bittern.errors import OptionError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LONGEST_URL = 2048
_PORTS = {"http": 80, "https": 443}
_FIRST_FREE_PORT, _LAST_PORT = 1024, 65535
#: All that a URL is made of; a backslash would be a slash to some readers.
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+", re.ASCII)
_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9a-f.]*:[0-9a-f:.]*)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?"
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
#: A last label that makes a resolver read the whole name as a number.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253
_USER = re.compile(r"(\w+:/*)?.*@", re.DOTALL)

_NOT_PUBLIC = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a carrier's NAT, and the metadata service of one cloud
        "127.0.0.0/8",
        "168.63.129.16/32",  # looks public, and is a cloud's own service on each of its hosts
        "169.254.0.0/16",  # link-local, and the metadata service of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # looks public, and is any relay to 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",
    )
]
#: What is given out to hosts at all, and what is special in it.
_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocols, among them Teredo, which hides two IPv4 addresses
        "2001:db8::/32",
        "3fff::/20",
    )
]
_NAT64 = IPv6Network("64:ff9b::/96")


class RefusedError(Exception):
    """Nothing is delivered to this URL, now or later; the message says why, without its secrets."""


@dataclass(frozen=True)
class Target:
    """A URL taken apart."""

    scheme: str
    host: str  # a name in lower case, or an address without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def networks(private: Sequence[str]) -> tuple[Network, ...]:
    """Parse the networks that are allowed although they are not public."""
    if isinstance(private, str):
        raise OptionError(f"private must be a list of networks: write [{private!r}]")
    try:
        return tuple(ip_network(network) for network in private)
    except ValueError as error:
        raise OptionError(f"private must list networks such as '10.0.0.0/8': {error}") from error


def parse(url: str) -> Target:
    """Take a URL apart. O(length). Raises RefusedError."""
    if len(url) > _LONGEST_URL:
        raise RefusedError(f"the URL has more than {_LONGEST_URL} characters")
    if not _URL.fullmatch(url):
        raise RefusedError(
            "the URL has characters that are not allowed in one: percent-encode those of the path, "
            "and write a name in its xn-- form"
        )
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RefusedError("the URL cannot be read") from error
    if parts.scheme not in _PORTS:
        raise RefusedError("the URL does not start with http:// or https://")
    if "@" in parts.netloc:
        raise RefusedError("the URL has a user or password in it")
    authority = _AUTHORITY.fullmatch(parts.netloc.lower())
    if authority is None:
        raise RefusedError("the URL's host and port cannot be read")
    host = authority["six"] or authority["name"]
    if _literal(host) is None and not _is_name(host):
        raise RefusedError("the URL's host is neither a name nor an address in its usual form")
    port = int(authority["port"] or _PORTS[parts.scheme])
    if not (port in _PORTS.values() or _FIRST_FREE_PORT <= port <= _LAST_PORT):
        raise RefusedError(
            f"port {port} is not allowed for webhooks: use 80, 443, or 1024 and above"
        )
    path = parts.path or "/"
    return Target(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path)


def resolve(target: Target, private: Sequence[Network]) -> list[Address]:
    """The addresses of a target, if every one of them is allowed.

    Raises RefusedError, or OSError if the name service does not know the name.
    """
    literal = _literal(target.host)
    if literal is not None:
        found: list[Address] = [literal]
    else:
        answers = socket.getaddrinfo(target.host.encode(), target.port, type=socket.SOCK_STREAM)
        found = list(dict.fromkeys(ip_address(answer[4][0]) for answer in answers))
    for address in found:
        if not is_allowed(address, private):
            where = "" if literal is not None else f" (an address of {target.host})"
            raise RefusedError(
                f"{address}{where} is not public: if it is meant, allow its network in private"
            )
    return found


def is_allowed(address: Address, private: Sequence[Network] = ()) -> bool:
    """Whether connecting to this address is allowed. O(networks)."""
    judged = _meant(address)
    if any(judged in network for network in private):
        return True
    if isinstance(judged, IPv4Address):
        special: Sequence[Network] = _NOT_PUBLIC
    else:
        special = _NOT_PUBLIC_6
        if judged not in _UNICAST or judged.scope_id is not None:
            return False
    return judged.is_global and not any(judged in network for network in special)


def url_in(metadata: str | None, entry: str) -> str | None:
    """The URL that a subscription's metadata names, if it names one."""
    try:
        found = json.loads(metadata or "null")
    except (ValueError, RecursionError):
        return None
    url = found.get(entry) if isinstance(found, dict) else None
    if url is None or url == "":
        return None
    text = url if isinstance(url, str) else json.dumps(url)  # which is refused, and so seen
    return text.encode("utf-8", "replace").decode()


def shown(url: str) -> str:
    """The URL in a form that may be stored: a refused one may have a password anywhere."""
    try:
        parse(url)
    except RefusedError:
        return _USER.sub(r"\1***@", url, count=1)[:_LONGEST_URL]
    return url


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, or the address."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _literal(host: str) -> Address | None:
    """The address that a host is written as: four decimal numbers, or IPv6 without a zone."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return (
        len(host) <= _LONGEST_NAME
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )
