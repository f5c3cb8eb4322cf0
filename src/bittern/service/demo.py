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
import sys
import time
from pathlib import Path
from typing import Any

import bittern
from bittern import spark as bittern_spark
from bittern.service.progress import Progress
from bittern.spark import session
from bittern.spark.node_cache import attach

PRODUCTS, WISHES, CHANGES = 5_000, 200_000, 400_000
_BRANDS = ("Heron", "Egret", "Stork", "Ibis", "Crane", "Avocet", "Curlew", "Plover", "Dunlin")
_CATEGORIES = ("tent", "boots", "jacket", "stove", "rucksack", "lamp", "map", "bottle", "bicycle")
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
    drawn = spark.range(n).selectExpr("id", "id AS number").selectExpr(
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
    drawn = spark.range(n).selectExpr("id AS number").selectExpr(
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


def main() -> None:
    """Generate, build, match, write, explain."""
    parser = argparse.ArgumentParser(description="a shop's price alerts on Spark")
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="default: demo-output"
    )
    folder = Path(parser.parse_args().output)
    print("Starting Spark on all cores of this machine ...", flush=True)
    spark = session.start("local[*]", {"spark.sql.shuffle.partitions": "4"})
    progress = Progress(sys.stderr)
    try:
        with session.watched(spark, progress):
            built, written, events = _run(spark, folder)
        progress.close()
        _show(spark, built, written, events)
    finally:
        spark.stop()


def _run(spark: Any, folder: Path) -> tuple[Any, Any, Any]:
    catalogue = products(spark).cache()
    events_path = str(folder / "changes.parquet")
    changes(catalogue, CHANGES).write.mode("overwrite").parquet(events_path)
    events = spark.read.parquet(events_path)
    print(f"A catalogue of {PRODUCTS:,} products, and {CHANGES:,} price changes in {events_path}.")

    started = time.perf_counter()
    texts = wishes(catalogue, WISHES).repartition(4)
    built: Any = bittern_spark.build(texts, sample=events, shards=None)
    seconds = time.perf_counter() - started
    index = attach(built.ref)
    statistics = index.statistics()
    print(
        f"Read and compiled {len(index):,} subscriptions in {seconds:.1f} s: "
        f"{statistics['classes']:,} different ones over {statistics['attributes']} attributes, "
        f"{statistics['bytes'] / 1e6:.1f} MB, mapped by every worker of the host."
    )
    print(f"{built.n_bad} are not valid, for example:")
    for bad in built.bad.limit(1).collect():
        print(f"  {bad['id']}, position {bad['position']}: {bad['message']}")
    target = folder / "matches.parquet"
    written = bittern_spark.write(events, built, target, event_id="id", mode="overwrite")
    return built, written, events


def _show(spark: Any, built: Any, written: Any, events: Any) -> None:
    print(f"\n{written}")
    print(
        f"{written.events / written.seconds:,.0f} price changes/s, "
        f"{written.matches / written.events:.1f} alerts each.\n"
    )
    matches = spark.read.parquet(written.path)
    index = attach(built.ref)
    some = matches.filter("size(subscriptions) BETWEEN 3 AND 30").orderBy("id").limit(3).collect()
    for row in some:
        event = events.filter(f"id = {row['id']}").drop("id").first().asDict(recursive=True)
        print(f"Price change {row['id']}: {event}")
        kinds = {each.split("-")[0]: each for each in sorted(row["subscriptions"])}
        for id_ in list(kinds.values())[:1]:
            print(f"{bittern.explain(index, event, id_)}\n")


if __name__ == "__main__":
    main()
