"""What a service is told when it starts, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from bittern.delivery.addresses import networks
from bittern.errors import OptionError
from bittern.options import whole_number


@dataclass(frozen=True)
class ServiceSettings:
    """All settings of a service.

    ``folder`` has SQLite's files and, whatever the database, the service's own. ``database`` is the
    URL of PostgreSQL. ``history`` is how many of the last events EXISTS and FORALL see (0: there is
    no history). Events are kept for ``keep_days``. ``body``, ``rate`` (requests a second) and
    ``subscriptions`` limit each token that has no such limit of its own. ``private`` are networks
    that webhooks may reach although they are not public, and ``secret`` signs their requests.
    """

    folder: Path = Path("bittern-data")
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    history: int = 0
    keep_days: int = 7
    body: int = 64 << 20
    rate: int | None = None
    subscriptions: int | None = None
    private: Sequence[str] = ()
    secret: str | None = None
    #: Seconds between two looks for what other processes changed.
    poll: float = 0.2
    console: bool = True

    def __post_init__(self) -> None:
        whole_number("port", self.port, 0, 65_535)
        whole_number("history", self.history, 0, 2**40)
        whole_number("keep_days", self.keep_days, 1, 36_500)
        whole_number("body", self.body, 1, 1 << 32)
        for name in ("rate", "subscriptions"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1, 2**53)
        if not 0 < self.poll <= 60:
            raise OptionError("poll must be a number of seconds up to 60")
        networks(self.private)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches the service."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False
