"""The console with a shop's price alerts: standing wishes, and a stream of price changes.

``make console`` runs it, without Spark. Products, wishes and price changes are of the kinds of
``demo.py``, drawn from hashes of numbers, so every run has the same. The wishes are loaded into the
catalog of a service, the service starts on this machine alone, and price changes are published to
it as any program would do it, over HTTP. Ctrl-C ends all of it.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import shutil
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo import BRANDS, CATEGORIES, COLOURS, COUNTRIES, PRODUCTS, WORDS

from bittern.service import cli
from bittern.service.progress import Progress

WISHES, RATE, FIRST = 100_000, 40, 5_000
_KINDS = ("alert", "alert", "alert", "wish", "wish", "bargain", "back", "search")


def draw(limit: int, salt: str, number: int) -> int:
    """A whole number below ``limit`` that depends on the salt and the number."""
    return zlib.crc32(f"{salt}/{number}".encode()) % limit


def one_of(names: tuple[str, ...], salt: str, number: int) -> str:
    """One of the names."""
    return names[draw(len(names), salt, number)]


def product(salt: str, number: int) -> dict[str, Any]:
    """A product and its list price in cents; popular ones are drawn more often."""
    which = int(PRODUCTS * (draw(10_000, salt, number) / 10_000) ** 2)
    brand, category = one_of(BRANDS, "brand", which), one_of(CATEGORIES, "category", which)
    return {
        "product": f"{brand} {category} {which}",
        "brand": brand,
        "category": category,
        "cents": 1000 + draw(29_000, "price", which),
    }


def price_change(number: int) -> dict[str, Any]:
    """A price change."""
    found = product("product", number)
    cents = found.pop("cents") * (40 + draw(80, "change", number))
    words = one_of(WORDS, "w1", number), one_of(WORDS, "w2", number)
    change = found | {
        "title": ", ".join((found["product"], *words)),
        "colour": one_of(COLOURS, "colour", number),
        "price": round(cents / 10_000, 2),
        "stock": draw(10, "stock", number),
        "used": draw(4, "used", number) == 0,
        "seller": {
            "country": one_of(COUNTRIES, "country", number),
            "rating": draw(31, "rating", number) / 10 + 2,
        },
    }
    if draw(5, "d?", number) == 0:
        change["discount"] = (5 + draw(56, "d", number)) / 100
    return change


def wish(number: int) -> dict[str, Any]:
    """A standing subscription."""
    found, form = product("wish", number), draw(8, "kind", number)
    name, whole = found["product"], found["cents"] // 100
    price = whole * (30 + draw(50, "p", number)) // 100
    if form < 3:
        text = f"product = '{name}' AND price <= {price}"
    elif form < 5:
        colours = one_of(COLOURS, "c1", number), one_of(COLOURS, "c2", number)
        text = (
            f"brand = '{found['brand']}' AND category = '{found['category']}' AND colour IN "
            f"('{colours[0]}', '{colours[1]}') AND price < {10 + draw(20, 'q', number)}"
        )
    elif form == 5:
        least = 30 + draw(31, "least", number)
        text = f"product = '{name}' AND (discount >= 0.{least} OR price < {price})"
    elif form == 6:
        country = one_of(COUNTRIES, "s", number)
        text = f"product = '{name}' AND stock > 0 AND NOT used AND seller.country = '{country}'"
    else:
        text = (
            f"title LIKE '%{one_of(WORDS, 'w', number)}%' AND category = '{found['category']}' "
            f"AND price BETWEEN {whole} AND {whole + 2}"
        )
    return {
        "id": f"{_KINDS[form]}-{number}",
        "expression": text,
        "subscriber": f"customer-{draw(50_000, 'customer', number)}",
    }


def main() -> int:
    """Load the wishes, serve, publish price changes until Ctrl-C."""
    parser = argparse.ArgumentParser(description="the console with a shop's price alerts")
    add = parser.add_argument
    add("--folder", default="console-data", metavar="DIR", help="made anew; default: console-data")
    add("--port", type=int, default=8080, metavar="N", help="default: 8080; 0: any that is free")
    add("--wishes", type=int, default=WISHES, metavar="N", help=f"default: {WISHES}")
    add("--rate", type=int, default=RATE, metavar="N", help=f"events a second; default: {RATE}")
    add("--first", type=int, default=FIRST, metavar="N", help=f"events at once; default: {FIRST}")
    parser.set_defaults(run=_console)
    return cli.run(parser.parse_args())


def _console(options: argparse.Namespace) -> int:
    from bittern.service.http.configuration import ServiceSettings  # noqa: PLC0415 (needs FastAPI)
    from bittern.service.http.server import serve  # noqa: PLC0415

    folder = Path(options.folder)
    if folder.exists() and not (folder / "made-by-the-console-demo").exists():
        print(f"{folder} is not of this demo: choose another folder", file=sys.stderr)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "made-by-the-console-demo").touch()
    load(folder, options.wishes)
    end = threading.Event()

    def ready(address: str) -> None:
        stream = threading.Thread(
            target=publish,
            args=(address, options.first, options.rate, end),
            name="price changes",
            daemon=True,
        )
        stream.start()
        print(f"\nThe console is at {address}\nCtrl-C ends it.", flush=True)

    try:
        with contextlib.suppress(KeyboardInterrupt):
            serve(ServiceSettings(folder=folder, port=options.port), ready)
    finally:
        end.set()
    print("The console has ended.")
    return 0


def load(folder: Path, count: int) -> None:
    """The wishes as the catalog of the default tenant."""
    from bittern.catalog.journal.places import DEFAULT, TenantPlaces  # noqa: PLC0415

    progress = Progress(sys.stderr)
    with TenantPlaces(folder, None).create(DEFAULT) as catalog:
        loaded = catalog.load(map(wish, range(count)), progress=progress)
    progress.close()
    print(f"{loaded.added:,} wishes are in the catalog.", flush=True)


def publish(address: str, first: int, rate: int, end: threading.Event) -> None:
    """Publish price changes: some at once, so that there is something to test on, then a stream."""
    where = urlsplit(address).netloc
    numbers = iter(range(10**12))
    pause = 0.25
    with contextlib.closing(http.client.HTTPConnection(where, timeout=60)) as service:
        for size in _sizes(first, rate, pause):
            if end.wait(pause):
                return
            if not size:
                continue
            lines = "\n".join(json.dumps(price_change(next(numbers))) for _ in range(size))
            try:
                service.request(
                    "POST", "/v1/events", lines, {"Content-Type": "application/x-ndjson"}
                )
                service.getresponse().read()
            except (OSError, http.client.HTTPException):  # it ends, or is busy: it is tried again
                service.close()


def _sizes(first: int, rate: int, pause: float) -> Iterator[int]:
    """How many to publish each time."""
    yield first
    left = 0.0
    while True:
        left += rate * pause
        yield int(left)
        left -= int(left)


if __name__ == "__main__":
    sys.exit(main())
