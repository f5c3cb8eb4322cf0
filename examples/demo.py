"""A shop's price alerts, live: a stream of price changes, and wishes that change under it.

``make demo`` runs it. Everything is drawn from hashes of numbers, so every run has the same
products, wishes and price changes. 200,000 standing wishes are loaded into a catalog::

    alert     product = 'Heron tent 4' AND price <= 180
    wish      brand = 'Heron' AND category = 'tent' AND colour IN ('red', 'blue') AND price < 200
    bargain   product = 'Heron tent 4' AND (discount >= 0.4 OR price < 30)
    back      product = 'Heron tent 4' AND stock > 0 AND NOT used AND seller.country = 'FI'
    search    title LIKE '%waterproof%' AND category = 'tent' AND price BETWEEN 20 AND 25

Then a pipeline starts: price changes arrive in micro-batches, each is matched against the newest
version of the catalog, and the alerts stand as Parquet on disk, each once. While it runs, a wish is
added, changed and removed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import bittern
from bittern.service import cli
from bittern.service.progress import Progress

PRODUCTS, WISHES, CHANGES = 20_000, 200_000, 20_000
TASKS, EXPLAINED = 16, 2
#: Batches before the first wish is added, and after each of its changes.
QUIET, AFTER = 3, 2
#: Seconds that the stream may take for what it is waited for.
PATIENCE = 120.0
BRANDS = (
    "Avocet", "Bunting", "Crane", "Curlew", "Dipper", "Dunlin", "Egret", "Eider", "Fulmar",
    "Gannet", "Godwit", "Grebe", "Heron", "Ibis", "Jackdaw", "Kestrel", "Lapwing", "Merlin",
    "Osprey", "Petrel", "Plover", "Shrike", "Siskin", "Stork", "Teal", "Tern", "Whimbrel",
)  # fmt: skip
CATEGORIES = (
    "axe", "bicycle", "boots", "bottle", "canoe", "compass", "hammock", "jacket", "kettle", "knife",
    "lamp", "map", "mat", "paddle", "radio", "rope", "rucksack", "skis", "stove", "tent",
)  # fmt: skip
COLOURS = ("black", "blue", "green", "grey", "orange", "red", "white", "yellow")
WORDS = ("waterproof", "ultralight", "winter", "folding", "merino", "carbon", "vintage", "repair")
COUNTRIES = ("DE", "DK", "EE", "FI", "IS", "LT", "LV", "NO", "PL", "SE")


#: The product of a price change, or of a wish: popular ones have more of both.
_PRODUCT = f"cast({PRODUCTS} * pow({{drawn}} / 10000, 2) AS bigint)"


def draw(limit: int, salt: str, of: str = "number") -> str:
    """SQL of a whole number from 0 on below ``limit`` that depends on ``of`` and ``salt``."""
    return f"pmod(xxhash64({of}, '{salt}'), {limit})"


def one_of(names: tuple[str, ...], salt: str, of: str = "number") -> str:
    """SQL of one of the names."""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"array({listed})[cast({draw(len(names), salt, of)} AS int)]"


def product_columns(salt: str) -> dict[str, str]:
    """SQL of the columns of one product, drawn by the number of a row: list price in cents."""
    which = _PRODUCT.format(drawn=draw(10_000, salt))
    brand, category = one_of(BRANDS, "brand", which), one_of(CATEGORIES, "category", which)
    return {
        "product": f"concat_ws(' ', {brand}, {category}, {which})",
        "brand": brand,
        "category": category,
        "cents": f"1000 + {draw(29_000, 'price', which)}",
    }


def change_columns() -> dict[str, str]:
    """SQL of a price change, over its number."""
    product = product_columns("product")
    cents = product.pop("cents")
    words = f"{one_of(WORDS, 'w1')}, {one_of(WORDS, 'w2')}"
    country, rating = one_of(COUNTRIES, "country"), f"{draw(31, 'rating')} / 10 + 2"
    return product | {
        "title": f"concat_ws(', ', {product['product']}, {words})",
        "colour": one_of(COLOURS, "colour"),
        "price": f"cast(round(({cents}) * (40 + {draw(80, 'change')}) / 10000, 2) AS double)",
        "stock": draw(10, "stock"),
        "used": f"{draw(4, 'used')} = 0",
        "seller": f"named_struct('country', {country}, 'rating', {rating})",
        "discount": f"if({draw(5, 'd?')} = 0, (5 + {draw(56, 'd')}) / 100, NULL)",
    }


def wishes(spark: Any, n: int) -> Any:
    """Standing subscriptions: id, expression, subscriber; a few of them wrong, as in life."""
    columns = [f"{sql} AS {name}" for name, sql in product_columns("wish").items()]
    drawn = spark.range(0, n, 1, TASKS).selectExpr("id AS number")
    drawn = drawn.selectExpr("number", f"{draw(8, 'kind')} AS form", *columns)
    cents = "cast(cents / 100 AS int)"
    price = f"cast({cents} * (30 + {draw(50, 'p')}) / 100 AS int)"
    colours = f"format_string(\"'%s', '%s'\", {one_of(COLOURS, 'c1')}, {one_of(COLOURS, 'c2')})"
    texts = f"""CASE
        WHEN number % 66667 = 66 THEN format_string("product = '%s' AND price <", product)
        WHEN form < 3 THEN format_string("product = '%s' AND price <= %d", product, {price})
        WHEN form < 5 THEN format_string("brand = '%s' AND category = '%s' AND colour IN (%s) AND "
            || "price < %d", brand, category, {colours}, 10 + {draw(20, "q")})
        WHEN form = 5 THEN format_string("product = '%s' AND (discount >= 0.%d OR price < %d)",
            product, 30 + {draw(31, "d")}, {price})
        WHEN form = 6 THEN format_string("product = '%s' AND stock > 0 AND NOT used AND "
            || "seller.country = '%s'", product, {one_of(COUNTRIES, "s")})
        ELSE format_string("title LIKE '%%%s%%' AND category = '%s' AND price BETWEEN %d AND %d",
            {one_of(WORDS, "w")}, category, {cents}, {cents} + 2) END"""
    kinds = "array('alert', 'alert', 'alert', 'wish', 'wish', 'bargain', 'back', 'search')"
    return drawn.selectExpr(
        f"format_string('%s-%d', {kinds}[cast(form AS int)], number) AS id",
        f"{texts} AS expression",
        f"concat('customer-', {draw(50_000, 'customer')}) AS subscriber",
    )


def main() -> int:
    """Load the catalog, run the stream, change wishes under it, explain."""
    parser = argparse.ArgumentParser(description="a shop's price alerts on a stream")
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="default: demo-output"
    )
    parser.set_defaults(run=_demo)
    return cli.run(parser.parse_args())


def _demo(options: argparse.Namespace) -> int:
    from bittern.spark import session  # noqa: PLC0415 (says what to install if pyspark is missing)

    folder = Path(options.output)
    for old in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
        (folder / old).unlink(missing_ok=True)
    for old in ("alerts", "rejects", "checkpoint"):
        shutil.rmtree(folder / old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    _say("Starting Spark on all cores of this machine.")
    compiling = threading.Thread(target=compile_kernels, daemon=True)
    compiling.start()
    with session.running("local[*]", {}) as spark:
        catalog = _load(spark, folder)
        compiling.join()
        _stream(spark, catalog, folder)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _load(spark: Any, folder: Path) -> bittern.Catalog:
    """A catalog of wishes, most of them good."""
    catalog = bittern.Catalog(str(folder / "catalog.db"))
    began = time.perf_counter()
    progress = Progress(sys.stderr)
    loaded = catalog.load(wishes(spark, WISHES), on_error="skip", progress=progress)
    progress.close()
    took = time.perf_counter() - began
    _say(
        f"{loaded.added:,} wishes are in the catalog {folder / 'catalog.db'}, version "
        f"{loaded.version}, after {took:.1f} s.\n"
        f"{len(loaded.bad)} are not valid and were left out, such as\n"
        f"  {loaded.bad[0].id}, position {loaded.bad[0].position}: {loaded.bad[0].message}\n"
    )
    return catalog


def _stream(spark: Any, catalog: bittern.Catalog, folder: Path) -> None:
    from bittern.spark.streaming import Files, Metrics, Pipeline, sources  # noqa: PLC0415

    metrics, events = Metrics(), sources.generator(spark, change_columns(), rows_per_batch=CHANGES)
    alerts = folder / "alerts"
    pipeline = Pipeline(
        events.events,
        catalog,
        Files(alerts),
        folder / "checkpoint",
        event_id=("number", "product", "price"),
        rejects=folder / "rejects",
        metrics=metrics,
    )
    _say(f"A stream of price changes, matched as they come; alerts go to {alerts}.")
    running = pipeline.start()
    shop = _Shop(running, metrics, alerts)
    try:
        shop.watch(QUIET)
        _change(shop, catalog)
    finally:
        running.stop()
    _summarise(metrics, spark, alerts)
    _explain(spark, catalog, alerts)


class _Shop:
    """The stream, as somebody sees it who only looks at its output."""

    def __init__(self, running: Any, metrics: Any, alerts: Path) -> None:
        self._running = running
        self._metrics = metrics
        self._alerts = alerts
        self._told = -1

    def batches(self) -> Iterator[Any]:
        """Every batch from now on, told in a line when it is there."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if not self._running.is_active:
                self._running.await_termination()  # raises what went wrong
            for done in self._metrics.figures().recent:
                if done.report.batch_id > self._told:
                    self._told = done.report.batch_id
                    _tell(done.report)
                    yield done.report
                    until = time.monotonic() + PATIENCE
            time.sleep(0.05)
        raise bittern.errors.PipelineError(f"no batch came in {PATIENCE:.0f} s")

    def watch(self, batches: int) -> None:
        """Let some batches pass."""
        for _, _ in zip(range(batches), self.batches(), strict=False):
            pass

    def first(self, wish: str, since: int) -> tuple[Any, dict[str, Any]]:
        """The first alert of a wish that was matched with this version or a later one."""
        for report in self.batches():
            found = alerts_of(self._alerts, report.batch_id, wish)
            if report.version >= since and found:
                return report, found[0]
        raise AssertionError


def alerts_of(alerts: Path, batch_id: int, wish: str) -> list[dict[str, Any]]:
    """The alerts of one wish in one batch."""
    rows = pq.read_table(alerts / f"batch={batch_id}", filters=[("subscription", "=", wish)])
    return rows.to_pylist()  # type: ignore[no-any-return]


def _tell(report: Any) -> None:
    _say(
        f"  batch {report.batch_id:>2}: {report.events:,} price changes, {report.matches:,} alerts,"
        f" catalog version {report.version}, matched in {report.seconds.get('match', 0):.1f} s"
    )


def _change(shop: _Shop, catalog: bittern.Catalog) -> None:
    """Add a wish, change it, remove it, each while the stream runs."""
    began = time.perf_counter()
    wish = "brand = 'Heron' AND category = 'canoe' AND price < 250"
    version = catalog.add("mine", wish, subscriber="me")
    _say(f"+ subscribed: {wish} (version {version})")
    report, alert = shop.first("mine", version)
    _say(
        f"! first alert {time.perf_counter() - began:.1f} s later, in batch {report.batch_id}: "
        f"{alert['product']} for {alert['price']}"
    )
    wish = "brand = 'Stork' AND price BETWEEN 50 AND 60"
    version = catalog.add("mine", wish, subscriber="me", replace=True)
    _say(f"~ changed to: {wish} (version {version})")
    report, alert = shop.first("mine", version)
    _say(f"! first alert in batch {report.batch_id}: {alert['product']} for {alert['price']}")
    version = catalog.remove("mine")
    _say(f"- unsubscribed (version {version})")
    shop.watch(AFTER)


def _summarise(metrics: Any, spark: Any, alerts: Path) -> None:
    figures = metrics.figures()
    table = spark.read.parquet(str(alerts))
    rows, versions = table.count(), [row[0] for row in table.select("version").distinct().collect()]
    _say(
        f"\nStopped after {figures.batches} batches: {figures.events:,} price changes, "
        f"{figures.matches:,} alerts, {figures.rejects} rejects.\n"
        f"The table {alerts} has {rows:,} alerts, each with the catalog version it was found with "
        f"({', '.join(map(str, sorted(versions)))}).\nStarted again with the same checkpoint, the "
        f"stream would go on where it stopped.\n"
    )


def compile_kernels() -> None:
    """Match one event, so that workers find compiled kernels and do not all compile the same."""
    event = {"product": "", "price": 0.5, "title": "", "stock": 1, "used": True, "s": {"c": ""}}
    texts = (
        "product = 'a' AND price <= 180",
        "product = 'a' AND (price >= 0.4 OR price < 30)",
        "title LIKE '%b%' AND price BETWEEN 20 AND 25",
        "stock > 0 AND NOT used AND s.c = 'd'",
    )
    events = pa.Table.from_pylist([event])
    index = bittern.Index.build(dict(enumerate(texts)), sample=events)
    bittern.Matcher(index).match(events)


def _explain(spark: Any, catalog: bittern.Catalog, alerts: Path) -> None:
    """Say of some alerts of the first batch, of different kinds, why they were sent."""
    told: set[str] = set()
    for alert in spark.read.parquet(str(alerts / "batch=0")).limit(1000).collect():
        wish = catalog.get(alert["subscription"])
        kind = wish.id.split("-")[0]
        if kind in told or len(told) == EXPLAINED:
            continue
        told.add(kind)
        columns = [f"{sql} AS {name}" for name, sql in change_columns().items()]
        number = spark.range(alert["number"], alert["number"] + 1).selectExpr("id AS number")
        event = number.selectExpr(*columns).first().asDict(recursive=True)
        _say(f"{wish.subscriber} was told of price change {alert['number']}: {json.dumps(event)}")
        index = bittern.Index.build({wish.id: wish.expression})
        _say(f"{bittern.explain(index, event, wish.id)}\n")


if __name__ == "__main__":
    sys.exit(main())
