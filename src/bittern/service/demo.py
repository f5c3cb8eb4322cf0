"""A shop's price alerts on Spark, from a catalogue to reasons: ``make demo``.

Everything is drawn from hashes of row numbers, so every run is the same. Spark generates a
catalogue of products and a stream of price changes; 200,000 standing wishes over them are text in
Bittern's language::

    alert     product = 'Heron tent 4' AND price <= 180
    wish      brand = 'Heron' AND category = 'tent' AND colour IN ('red', 'blue') AND price < 200
    bargain   product = 'Heron tent 4' AND (discount >= 0.4 OR price < 30)
    back      product = 'Heron tent 4' AND stock > 0 AND NOT used AND seller.country = 'FI'
    search    title LIKE '%waterproof%' AND category = 'tent' AND price BETWEEN 20 AND 25

They are read and compiled on the executors, distributed, matched with every price change, and the
matches stand as Parquet on disk.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import bittern
from bittern import spark as bittern_spark
from bittern.service import cli
from bittern.service.progress import Progress
from bittern.spark.node_cache import attach

PRODUCTS, WISHES, CHANGES = 20_000, 200_000, 400_000
TASKS, EXPLAINED = 16, 3
_BRANDS = (
    "Avocet", "Bunting", "Crane", "Curlew", "Dipper", "Dunlin", "Egret", "Eider", "Fulmar",
    "Gannet", "Godwit", "Grebe", "Heron", "Ibis", "Jackdaw", "Kestrel", "Lapwing", "Merlin",
    "Osprey", "Petrel", "Plover", "Shrike", "Siskin", "Stork", "Teal", "Tern", "Whimbrel",
)  # fmt: skip
_CATEGORIES = (
    "axe", "bicycle", "boots", "bottle", "canoe", "compass", "hammock", "jacket", "kettle", "knife",
    "lamp", "map", "mat", "paddle", "radio", "rope", "rucksack", "skis", "stove", "tent",
)  # fmt: skip
_COLOURS = ("black", "blue", "green", "grey", "orange", "red", "white", "yellow")
_WORDS = ("waterproof", "ultralight", "winter", "folding", "merino", "carbon", "vintage", "repair")
_COUNTRIES = ("DE", "DK", "EE", "FI", "IS", "LT", "LV", "NO", "PL", "SE")


def draw(limit: str | int, salt: str) -> str:
    """SQL of a whole number from 0 on below ``limit`` that depends on the row and ``salt``."""
    return f"pmod(xxhash64(number, '{salt}'), {limit})"


def one_of(names: tuple[str, ...], salt: str) -> str:
    """SQL of one of the names."""
    listed = ", ".join(f"'{name}'" for name in names)
    return f"array({listed})[cast({draw(len(names), salt)} AS int)]"


def products(spark: Any) -> Any:
    """The catalogue: product, brand, category and list price in cents."""
    drawn = spark.range(PRODUCTS).selectExpr(
        "id AS number", "id AS product_number"
    ).selectExpr(
        "product_number",
        f"{one_of(_BRANDS, 'brand')} AS brand",
        f"{one_of(_CATEGORIES, 'category')} AS category",
        f"1000 + {draw(29_000, 'price')} AS cents",
    )  # fmt: skip
    return drawn.selectExpr("*", "concat_ws(' ', brand, category, product_number) AS product")


def changes(catalogue: Any, n: int) -> Any:
    """Price changes: popular products change more often."""
    spark = catalogue.sparkSession
    drawn = spark.range(0, n, 1, TASKS).selectExpr("id", "id AS number").selectExpr(
        "*", f"cast({PRODUCTS} * pow({draw(10_000, 'product')} / 10000, 2) AS bigint) "
        "AS product_number",
    )  # fmt: skip
    country, rating = one_of(_COUNTRIES, "country"), f"{draw(31, 'rating')} / 10 + 2"
    seller = f"named_struct('country', {country}, 'rating', {rating})"
    return drawn.join(catalogue.hint("broadcast"), "product_number").selectExpr(
        "id",
        "product",
        "brand",
        "category",
        f"concat_ws(', ', product, {one_of(_WORDS, 'w1')}, {one_of(_WORDS, 'w2')}) AS title",
        f"{one_of(_COLOURS, 'colour')} AS colour",
        f"cast(round(cents * (40 + {draw(80, 'change')}) / 10000, 2) AS double) AS price",
        f"{draw(10, 'stock')} AS stock",
        f"{draw(4, 'used')} = 0 AS used",
        f"{seller} AS seller",
        f"if({draw(5, 'd?')} = 0, (5 + {draw(56, 'd')}) / 100, NULL) AS discount",
    )


def wishes(catalogue: Any, n: int) -> Any:
    """Standing subscriptions: id and expression; a few of them wrong, as in life."""
    spark = catalogue.sparkSession
    drawn = spark.range(0, n, 1, TASKS).selectExpr("id AS number").selectExpr(
        "*", f"cast({PRODUCTS} * pow({draw(10_000, 'wish')} / 10000, 2) AS bigint) "
        "AS product_number", f"{draw(8, 'kind')} AS form",
    )  # fmt: skip
    cents = "cast(cents / 100 AS int)"
    price = f"cast({cents} * (30 + {draw(50, 'p')}) / 100 AS int)"
    colours = f"format_string(\"'%s', '%s'\", {one_of(_COLOURS, 'c1')}, {one_of(_COLOURS, 'c2')})"
    texts = f"""CASE
        WHEN number % 66667 = 66 THEN format_string("product = '%s' AND price <", product)
        WHEN form < 3 THEN format_string("product = '%s' AND price <= %d", product, {price})
        WHEN form < 5 THEN format_string("brand = '%s' AND category = '%s' AND colour IN (%s) AND "
            || "price < %d", brand, category, {colours}, 10 + {draw(20, "q")})
        WHEN form = 5 THEN format_string("product = '%s' AND (discount >= 0.%d OR price < %d)",
            product, 30 + {draw(31, "d")}, {price})
        WHEN form = 6 THEN format_string("product = '%s' AND stock > 0 AND NOT used AND "
            || "seller.country = '%s'", product, {one_of(_COUNTRIES, "s")})
        ELSE format_string("title LIKE '%%%s%%' AND category = '%s' AND price BETWEEN %d AND %d",
            {one_of(_WORDS, "w")}, category, {cents}, {cents} + 2) END"""
    kinds = "array('alert', 'alert', 'alert', 'wish', 'wish', 'bargain', 'back', 'search')"
    return drawn.join(catalogue.hint("broadcast"), "product_number").selectExpr(
        f"format_string('%s-%d', {kinds}[cast(form AS int)], number) AS id",
        f"{texts} AS expression",
    )


def main() -> int:
    """Generate, build, match, write, explain."""
    parser = argparse.ArgumentParser(description="a shop's price alerts on Spark")
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="default: demo-output"
    )
    parser.set_defaults(run=_demo)
    return cli.run(parser.parse_args())


def _demo(options: argparse.Namespace) -> int:
    from bittern.spark import session  # noqa: PLC0415 (says what to install if pyspark is missing)

    print("Starting Spark on all cores of this machine.", flush=True)
    compiling = threading.Thread(target=compile_kernels, daemon=True)
    compiling.start()
    settings = {"spark.sql.files.minPartitionNum": str(TASKS)}
    with session.running("local[*]", settings) as spark:
        _run(spark, Path(options.output), compiling)
    return 0


def _run(spark: Any, folder: Path, compiling: threading.Thread) -> None:
    from bittern.spark import session  # noqa: PLC0415

    progress = Progress(sys.stderr)
    with session.watched(spark, progress, "generating"):
        catalogue = products(spark).cache()
        path = str(folder / "changes.parquet")
        changes(catalogue, CHANGES).write.mode("overwrite").parquet(path)
        events = spark.read.parquet(path)
        compiling.join()
    print(f"{CHANGES:,} price changes of {PRODUCTS:,} products are in {path}.", flush=True)
    started = time.perf_counter()
    with session.watched(spark, progress, "building"):
        built: Any = bittern_spark.build(wishes(catalogue, WISHES), sample=events, shards=None)
    _tell_built(built, time.perf_counter() - started)
    with session.watched(spark, progress, "matching"):
        written = bittern_spark.write(
            events, built, folder / "matches.parquet", event_id="id", mode="overwrite"
        )
    _tell_written(written)
    _explain(spark.read.parquet(written.path), events, attach(built.ref))


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


def _tell_built(built: Any, seconds: float) -> None:
    statistics = attach(built.ref).statistics()
    print(
        f"{built.subscriptions:,} subscriptions read and compiled in {seconds:.1f} s: "
        f"{statistics['classes']:,} different ones on {statistics['attributes']} attributes, "
        f"{statistics['bytes'] / 1e6:.1f} MB that all workers share.\n"
        f"{built.n_bad} are not valid and were left out, such as"
    )
    for bad in built.bad.limit(1).collect():
        print(f"  {bad['id']}, position {bad['position']}: {bad['message']}", flush=True)


def _tell_written(written: Any) -> None:
    print(
        f"{written.events:,} price changes matched and {written.matches:,} alerts written in "
        f"{written.seconds:.1f} s, {written.events / written.seconds:,.0f} changes/s:\n"
        f"  {written.path}: {written.files} Parquet files, {written.bytes / 1e6:.1f} MB, "
        f"{written.matches / written.events:.1f} alerts for each change\n",
        flush=True,
    )


def _explain(matches: Any, events: Any, index: Any) -> None:
    """Say of one subscription of each kind why it matched."""
    told: set[str] = set()
    few = matches.join(events, "id").filter("size(subscriptions) > 0").orderBy("id").limit(500)
    for row in few.toLocalIterator():
        event = row.asDict(recursive=True)
        number, alerts = event.pop("id"), event.pop("subscriptions")
        kinds = {alert.split("-")[0]: alert for alert in sorted(alerts)}
        new = sorted(kinds.keys() - told)[:1]
        if new:
            print(f"Price change {number}, {len(alerts)} alerts: {json.dumps(event)}")
            print(f"{bittern.explain(index, event, kinds[new[0]])}\n")
        told.update(new)
        if len(told) == EXPLAINED:
            return


if __name__ == "__main__":
    sys.exit(main())
