"""Subscriptions over terms and over arrays, beside DuckDB computing the same.

``terms``: 100,000 subscriptions over 200 distinct terms, ten of each of 20 kinds, each compared
with a constant, AND one predicate on a plain attribute. ``arrays``: 100,000 subscriptions that ask
an event's ten tags and five items::

    price * (quantity + 3) BETWEEN 120 AND 130 AND a < 40
    lower(concat(brand, '3')) = 'brand17-3' AND a < 12
    array_contains(tags, 't173') AND exists(items, i -> i.price < 12 AND i.quantity > 7)

DuckDB computes the 200 terms of every event once as well, and joins their values with the
constants; it joins the tags of an event with those of subscriptions. Run
``python -m benchmarks.terms [--small]``: events per CPU second of one thread, in turns, after both
were found to give the same matches. Each round has events of its own, which no one has seen before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import bittern
from benchmarks.draw import Draw

N_TERMS, N_KINDS = 200, 20
_BRANDS = 500
_TAGS = 2_000
#: Events whose matches are compared one by one, as sets in Python.
_COMPARED = 1_000

#: The terms, with {j} from 0 to 9: as Spark writes them, and as DuckDB does where that differs.
_NUMBERS: tuple[tuple[str, str], ...] = (
    ("price * (quantity + {j})", ""),
    ("price - cost * {j}", ""),
    ("coalesce(discount, {j})", "coalesce(discount, {j}::double)"),
    ("CAST(code AS INT) + {j}", "CAST(code AS INTEGER) + {j}"),
    ("year(seen) * 12 + month(seen) + {j}", ""),
    ("hour(seen) + {j}", ""),
    ("a % {k}", ""),
    ("a + {j} * b", ""),
    ("abs(a - {j} * b)", ""),
    ("round(price * {k}, 0)", ""),
    ("greatest(a, b, {j} * 50)", ""),
    ("floor(price / {k})", ""),
    ("CASE WHEN a < b THEN a ELSE b + {j} END", ""),
    ("length(title) * {k}", ""),
)
_TEXTS: tuple[tuple[str, str], ...] = (
    ("lower(concat(brand, '-{j}'))", ""),
    ("upper(concat('{j}-', brand))", ""),
    ("concat(trim(title), '{j}')", ""),
    ("concat(substring(brand, 6), '+{j}')", ""),
    ("replace(brand, '{j}', '')", ""),
    ("lpad(code, {k}, '0')", "lpad(code, {k}, '0')"),
)


def terms(*, duckdb: bool = False) -> tuple[list[str], list[str]]:
    """The terms that are numbers, and those that are texts."""

    def filled(pairs: tuple[tuple[str, str], ...]) -> list[str]:
        texts = [(other if duckdb and other else own) for own, other in pairs]
        return [text.format(j=j, k=j + 2) for text in texts for j in range(10)]

    return filled(_NUMBERS), filled(_TEXTS)


def title(number: int) -> str:
    """A title without the spaces around it."""
    return f"{('Red shoe', 'blue Hat', 'Green coat', 'lamp', 'Desk')[number % 5]} {number}"


def term_events(draw: Draw, n: int) -> pa.Table:
    """Events of ten attributes."""
    discount = draw.unit(n) * 10
    return pa.table(
        {
            "brand": pa.array([f"Brand{i}" for i in draw.below(_BRANDS, n).tolist()]),
            "title": pa.array([f" {title(i)}  " for i in draw.below(_BRANDS, n).tolist()]),
            "price": np.round(draw.unit(n) * 100, 2),
            "quantity": 1 + draw.below(19, n),
            "cost": np.round(draw.unit(n) * 100, 2),
            "discount": pa.array(discount, mask=draw.unit(n) < 0.5),
            "code": pa.array([str(i) for i in draw.below(1_000, n).tolist()]),
            "seen": pa.array(
                1_700_000_000_000_000 + draw.below(10_000_000, n) * 1_000_000,
                pa.timestamp("us", "UTC"),
            ),
            "a": draw.below(1_000, n),
            "b": draw.below(1_000, n),
        }
    )


def term_subscriptions(draw: Draw, n: int) -> pa.Table:
    """``id``, ``term`` (its number), ``low`` and ``high`` or ``text``, and ``a`` below which."""
    term = draw.below(N_TERMS, n)
    low = np.round(draw.unit(n) * 1_000, 1)
    brand = draw.below(_BRANDS, n)
    return pa.table(
        {
            "id": np.arange(n),
            "term": term,
            "low": low,
            "high": low + 2.0,
            "brand": brand,
            "j": term % 10,
            "below": draw.below(1_000, n),
        }
    )


def term_texts(rows: pa.Table) -> dict[int, str]:
    """The subscriptions as expressions."""
    numbers, texts = terms()
    found = {}
    for row in rows.to_pylist():
        rest = f"AND a < {row['below']}"
        if row["term"] < len(numbers):
            between = f"BETWEEN {row['low']} AND {row['high']}"
            found[row["id"]] = f"{numbers[row['term']]} {between} {rest}"
        else:
            text = constant(row["term"] - len(numbers), row["brand"])
            found[row["id"]] = f"{texts[row['term'] - len(numbers)]} = '{text}' {rest}"
    return found


def constant(term: int, brand: int) -> str:
    """A value that a term of texts may have."""
    kind, j = divmod(term, 10)
    name = f"Brand{brand}"
    return (
        f"{name}-{j}".lower(),
        f"{j}-{name}".upper(),
        f"{title(brand)}{j}",
        f"{brand}+{j}",
        name.replace(str(j), ""),
        str(brand).rjust(j + 2, "0")[: j + 2],
    )[kind]


class DuckDBTerms:
    """DuckDB with one thread: all terms of an event, joined with the constants."""

    def __init__(self, rows: pa.Table) -> None:
        import duckdb

        numbers, texts = terms(duckdb=True)
        self._connection = duckdb.connect(config={"threads": 1})
        term = rows["term"].to_numpy()
        is_number = term < len(numbers)
        brands = rows["brand"].to_pylist()
        wanted = [
            None if number else constant(t - len(numbers), brand)
            for t, brand, number in zip(term.tolist(), brands, is_number.tolist(), strict=True)
        ]
        self._connection.register("incoming", rows.append_column("text", pa.array(wanted)))
        self._connection.execute("CREATE TABLE subscriptions AS FROM incoming")
        self._numbers = _unpivoted(numbers, 0, "DOUBLE")
        self._texts = _unpivoted(texts, len(numbers), "VARCHAR")

    def matches(self, events: pa.Table) -> pa.Table:
        """Pairs of event and subscription."""
        numbered = events.append_column("event", pa.array(np.arange(len(events))))
        self._connection.register("events", numbered)
        return self._connection.sql(
            f"SELECT event, id FROM ({self._numbers}) AS v JOIN subscriptions AS s USING (term)"
            " WHERE v.value BETWEEN s.low AND s.high AND v.a < s.below"
            f" UNION ALL SELECT event, id FROM ({self._texts}) AS v JOIN subscriptions AS s"
            " ON v.term = s.term AND v.value = s.text WHERE v.a < s.below"
        ).to_arrow_table()


def _unpivoted(texts: list[str], first: int, kind: str) -> str:
    """A query of (event, a, term, value)."""
    values = ", ".join(f"({text})::{kind}" for text in texts)
    numbers = f"range({first}, {first + len(texts)})"
    return f"SELECT event, a, unnest({numbers}) AS term, unnest([{values}]) AS value FROM events"


def array_events(draw: Draw, n: int) -> pa.Table:
    """Events with ten tags and five items."""
    tags = pa.array([f"t{i}" for i in draw.below(_TAGS, 10 * n).tolist()])
    items = pa.StructArray.from_arrays(
        [pa.array(draw.below(100, 5 * n)), pa.array(1 + draw.below(20, 5 * n))],
        ["price", "quantity"],
    )
    return pa.table(
        {
            "tags": pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * 10, pa.int32()), tags),
            "items": pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * 5, pa.int32()), items),
            "a": draw.below(1_000, n),
        }
    )


def array_subscriptions(draw: Draw, n: int) -> pa.Table:
    """``id``, ``tag``, ``a`` below which, and for every second one an item of 100 kinds."""
    tags, kinds, below = draw.below(_TAGS, n), draw.below(100, n), draw.below(1_000, n)
    return pa.table(
        {
            "id": np.arange(n),
            "tag": [f"t{tag}" for tag in tags.tolist()],
            "below": below,
            "has_item": np.arange(n) % 2 == 1,
            "price": 5 * (kinds % 10) + 5,
            "quantity": 2 * (kinds // 10),
        }
    )


def array_texts(rows: pa.Table) -> dict[int, str]:
    """The subscriptions as expressions."""
    found = {}
    for row in rows.to_pylist():
        text = f"array_contains(tags, '{row['tag']}') AND a < {row['below']}"
        if row["has_item"]:
            item = f"i.price < {row['price']} AND i.quantity > {row['quantity']}"
            text += f" AND exists(items, i -> {item})"
        found[row["id"]] = text
    return found


class DuckDBArrays:
    """DuckDB with one thread: each tag of an event joined with the subscriptions' tags."""

    def __init__(self, rows: pa.Table) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("incoming", rows)
        self._connection.execute("CREATE TABLE subscriptions AS FROM incoming")

    def matches(self, events: pa.Table) -> pa.Table:
        """Pairs of event and subscription."""
        numbered = events.append_column("event", pa.array(np.arange(len(events))))
        self._connection.register("events", numbered)
        return self._connection.sql(
            "SELECT event, id FROM"
            " (SELECT event, a, items, unnest(list_distinct(tags)) AS tag FROM events) AS e"
            " JOIN subscriptions AS s USING (tag) WHERE a < below AND (NOT has_item OR"
            " len(list_filter(items, lambda i: i.price < s.price AND i.quantity > s.quantity)) > 0)"
        ).to_arrow_table()


def timed(name: str, run: Callable[[], Any], n_events: int) -> float:
    """Run once, and print events per CPU second."""
    start = time.process_time()
    run()
    rate = n_events / (time.process_time() - start)
    print(f"{name:>24}  {rate:12,.0f} events/s  {1e6 / rate:8.2f} us per event")
    return rate


def compare(
    name: str,
    texts: dict[int, str],
    peer: DuckDBTerms | DuckDBArrays,
    draw: Callable[[int], pa.Table],
    rounds: int,
) -> None:
    """Match the events of each round with both, in turns, once they were found to agree."""
    start = time.process_time()
    matcher = bittern.Matcher(bittern.Index.build(texts))
    print(f"{name}: {len(texts):,} subscriptions built in {time.process_time() - start:.1f} CPU-s")
    some = draw(0).slice(0, _COMPARED)
    ours = {(e, i) for e, own in enumerate(matcher.match(some).to_pylist()) for i in own}
    theirs = set(zip(*(column.to_pylist() for column in peer.matches(some).columns), strict=True))
    print(f"matches per event: {len(ours) / len(some):.1f}; different: {len(ours ^ theirs)}")
    for number in range(1, rounds + 1):
        events = draw(number)
        timed(f"bittern, {name}", partial(matcher.match, events), len(events))
        timed(f"duckdb, {name}", partial(peer.matches, events), len(events))


def main() -> None:
    """Run both workloads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="2,000 subscriptions only")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    n, n_events = (2_000, 1_000) if options.small else (100_000, 16_384)

    def draw_terms(number: int) -> pa.Table:
        return term_events(Draw(21, 1 + number), n_events)

    def draw_arrays(number: int) -> pa.Table:
        return array_events(Draw(22, 1 + number), n_events)

    rows = term_subscriptions(Draw(21, 0), n)
    compare("terms", term_texts(rows), DuckDBTerms(rows), draw_terms, options.rounds)
    rows = array_subscriptions(Draw(22, 0), n)
    compare("arrays", array_texts(rows), DuckDBArrays(rows), draw_arrays, options.rounds)


if __name__ == "__main__":
    main()
