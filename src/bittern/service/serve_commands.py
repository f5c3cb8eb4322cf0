"""``bittern serve`` and ``bittern token``: the service over HTTP, and who may use it.

Only ``argparse`` is loaded until a command runs. A new token's text goes to standard output, and is
shown nowhere else.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bittern.errors import BitternError, OptionError
from bittern.service.arguments import n_bytes, positive
from bittern.service.report import print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = "bittern-data"
_SECRET = "BITTERN_WEBHOOK_SECRET"  # noqa: S105  the name of a variable
_ROLES = ("admin", "publish", "subscribe", "read")
_DAY = 86_400
_ABOUT = """SQLite's files are in a folder (default: ./bittern-data, or $BITTERN_FOLDER); with
--database, or $BITTERN_DATABASE, all is in PostgreSQL."""


def add_parsers(
    commands: Any, new: Callable[[Any, str, str, str], argparse.ArgumentParser]
) -> None:
    """Add the commands; ``new`` makes a command of a name and its help."""
    command = new(
        commands,
        "serve",
        "serve subscriptions, matching and streams of matches over HTTP",
        f"""{_ABOUT}

Without tokens it listens on this machine alone. SIGTERM or Ctrl-C finishes the requests that are
under way, and ends.

It needs FastAPI: pip install 'bittern[serve]'.

example:
  bittern serve --port 8080
  curl localhost:8080/v1/match -d '{{"price": 5}}'
""",
    )
    add = command.add_argument
    _add_place(command)
    add("--host", metavar="ADDRESS", default="127.0.0.1", help="default: 127.0.0.1")
    add("--port", metavar="N", type=_port, default=8080, help="default: 8080; 0: any that is free")
    add(
        "--history",
        metavar="N",
        type=positive,
        default=0,
        help="let EXISTS and FORALL see the last N published events (default: there is no history)",
    )
    add("--keep-days", metavar="N", type=positive, default=7, help="keep events so long; default 7")
    add("--max-body", metavar="BYTES", type=n_bytes, default=64 << 20, help="default: 64MiB")
    add("--rate", metavar="N", type=positive, help="requests a second of each token")
    add("--max-subscriptions", metavar="N", type=positive, help="of each tenant")
    add(
        "--private",
        metavar="NETWORK",
        action="append",
        default=[],
        help="a network that webhooks may reach although it is not public; may be repeated",
    )
    add("--log", choices=("info", "warning", "error"), default="info", help="default: info")
    add("--no-console", dest="console", action="store_false", help="without the pages")

    token = new(
        commands,
        "token",
        "create, list and revoke the tokens of a service",
        f"""{_ABOUT}

As long as the tenant "default" has no token, whoever reaches the service on this machine may do
everything. Tenants do not see each other; one is made with its first token.

example:
  bittern token create shop --role publish --role subscribe --tenant acme
""",
    )
    own = token.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="action")
    make = new(own, "create", "create a token, and show it once", _ABOUT)
    make.add_argument("name", metavar="NAME", help="what it is for")
    make.add_argument(
        "--role",
        dest="roles",
        choices=_ROLES,
        action="append",
        required=True,
        help="what it may do; may be repeated",
    )
    make.add_argument("--days", metavar="N", type=positive, help="for how long (default: for ever)")
    make.add_argument("--rate", metavar="N", type=positive, help="requests a second")
    make.add_argument("--max-body", metavar="BYTES", type=n_bytes, help="of a request")
    make.add_argument("--max-subscriptions", metavar="N", type=positive, help="of the tenant")
    listed = new(own, "list", "list tokens, without their secrets", _ABOUT)
    revoke = new(own, "revoke", "revoke a token", _ABOUT)
    revoke.add_argument("id", metavar="ID", help="as bittern token list shows it")
    for each in (make, listed, revoke):
        _add_place(each)
        each.add_argument("--tenant", metavar="NAME", default="default", help="default: default")


def _add_place(command: argparse.ArgumentParser) -> None:
    command.add_argument("--folder", metavar="DIR", help=f"default: $BITTERN_FOLDER, or {_FOLDER}")
    command.add_argument(
        "--database",
        metavar="URL",
        help="postgresql://user@host/database (default: $BITTERN_DATABASE, or SQLite there)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text[:6]) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _place(options: argparse.Namespace) -> tuple[Path, str | None]:
    folder = options.folder or os.environ.get("BITTERN_FOLDER") or _FOLDER
    return Path(folder), options.database or os.environ.get("BITTERN_DATABASE") or None


def serve(options: argparse.Namespace) -> int:
    """Serve until a signal."""
    try:
        from bittern.service.http import server  # noqa: PLC0415 (only then)
        from bittern.service.http.configuration import ServiceSettings  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("bittern"):
            raise
        raise OptionError(f"{missing.name} is needed: pip install 'bittern[serve]'") from None
    folder, database = _place(options)
    settings = ServiceSettings(
        folder=folder,
        database=database,
        host=options.host,
        port=options.port,
        history=options.history,
        keep_days=options.keep_days,
        body=options.max_body,
        rate=options.rate,
        subscriptions=options.max_subscriptions,
        private=tuple(options.private),
        secret=os.environ.get(_SECRET) or None,
        console=options.console,
    )
    server.keep_log(options.log)
    server.serve(settings, lambda address: say(f"listening on {address}"))
    return 0


def token(options: argparse.Namespace) -> int:
    """Create, list or revoke tokens."""
    from bittern.catalog.journal.journal import Journal  # noqa: PLC0415 (only then)
    from bittern.catalog.journal.places import TenantPlaces  # noqa: PLC0415
    from bittern.catalog.journal.tokens import TokenTable  # noqa: PLC0415

    places = TenantPlaces(*_place(options))
    known = options.action == "create" or options.tenant in places.names()
    if not known:
        raise OptionError(f"there is no tenant {options.tenant!r}")
    with places.create(options.tenant) as catalog:
        Journal(catalog.database)
        tokens = TokenTable(catalog.database, options.tenant)
        if options.action == "create":
            limits = {
                "rate": options.rate,
                "body": options.max_body,
                "subscriptions": options.max_subscriptions,
            }
            own = {name: value for name, value in limits.items() if value is not None}
            days = options.days
            expires = None if days is None else (int(time.time()) + days * _DAY) * 1_000_000
            text, made = tokens.create(options.name, options.roles, own, expires)
            say(f"token {made.id}, which is not shown again:")
            print(text)
        elif options.action == "list":
            for each in tokens.all().values():
                roles = ", ".join(sorted(each.roles))
                made_on = time.strftime("%Y-%m-%d", time.gmtime(each.created / 1e6))
                print_table({each.id: f"{each.name}  {roles}  created {made_on}"})
        elif not tokens.revoke(options.id):
            raise BitternError(f"no token of {options.tenant} has the id {options.id!r}")
    return 0
