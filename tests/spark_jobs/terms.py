"""Terms beside ``filter``: events, expressions over terms of all kinds, and how the two differ."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from bittern import spark as bittern_spark

Differences = list[tuple[str, list[int]]]

SCHEMA = """
    id int, brand string, price double, cost decimal(10, 2), quantity int, code string, day date,
    seen timestamp, ok boolean, tags array<string>, extra map<string, int>,
    seller struct<name: string, city: struct<zip: string, size: int>>, `odd.name` int
"""
WORDS = ["Acme", "ACME", "zeta", " Zeta ", "", "äÖ", None]


def rows(n: int) -> list[tuple[Any, ...]]:
    """Events on which no expression here fails."""
    chance = random.Random(7)

    def some(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    return [
        (
            number,
            chance.choice(WORDS),
            some(chance.choice([0.5, 1.0, 7.25, -3.0, 1e9])),
            some(Decimal(chance.randrange(-500, 500)).scaleb(-2)),
            some(chance.randrange(1, 9)),
            some(str(chance.randrange(-20, 20))),
            some(date(2024, chance.randrange(1, 13), chance.randrange(1, 29))),
            some(datetime(2024, 2, 3, chance.randrange(24), 5, 6, tzinfo=UTC)),
            some(chance.random() < 0.5),
            some([chance.choice("abc") for _ in range(chance.randrange(3))]),
            some({key: chance.randrange(5) for key in chance.sample("xyz", 2)}),
            some((chance.choice(WORDS), some((some("00100"), chance.randrange(9))))),
            chance.randrange(3),
        )
        for number in range(n)
    ]


def mappings(n: int) -> list[dict[str, Any]]:
    """The same events as mappings."""
    names = "id brand price cost quantity code day seen ok tags extra seller odd.name".split()  # noqa: SIM905
    found = []
    for row in rows(n):
        event = dict(zip(names, row, strict=True))
        if event["seller"] is not None:
            name, city = event["seller"]
            place = None if city is None else {"zip": city[0], "size": city[1]}
            event["seller"] = {"name": name, "city": place}
        found.append(event)
    return found


EXPRESSIONS = [
    "lower(brand) = 'acme'",
    "trim(brand) LIKE 'Z%' OR upper(brand) IN ('ACME', 'X')",
    "brand ILIKE 'ac%'",
    "price * quantity > 10",
    "price / quantity BETWEEN 0 AND 1",
    "cost + 1.5 = quantity",
    "price < cost",
    "NOT price <= quantity",
    "cost * 2 != price OR brand = 'zeta'",
    "CAST(code AS INT) % 2 = 0",
    "CAST(code AS INT) = quantity",
    "length(brand) > 3 AND brand IS NOT NULL",
    "coalesce(price, 0) < 1",
    "CASE WHEN ok THEN price ELSE quantity END > 2",
    "if(ok, 'a', brand) = 'a'",
    "price IS NULL OR abs(price) = 3",
    "brand <=> seller.name",
    "year(day) = 2024 AND month(day) > 6",
    "date_add(day, 30) > DATE '2024-08-01'",
    "hour(seen) >= 12",
    "date_trunc('DAY', seen) = TIMESTAMP '2024-02-03 00:00:00'",
    "size(tags) = 2",
    "array_contains(tags, 'a')",
    "array_contains(split(brand, 'c'), 'A')",
    "array_contains(sequence(0, quantity), 3)",
    "exists(tags, t -> t > 'b')",
    "extra.x > 2",
    "extra['x'] + 1 > quantity",
    "lower(seller.name) = 'zeta'",
    "seller.city.size * 2 > `odd.name`",
    "concat(seller.city.zip, '-', brand) = '00100-Acme'",
    "ok = (price > 1)",
    "get(tags, 0) = 'a' OR size(tags) = 0",
    "greatest(price, quantity) = quantity",
    # Only Spark knows these.
    "soundex(brand) = 'A250'",
    "levenshtein(brand, seller.name) < 3",
    "crc32(brand) % 2 = 0",
    "map_keys(extra)[0] = 'x'",
    "array_position(tags, 'c') > 0",
    "from_json(concat('{\"a\": ', code, '}'), 'a INT').a > 5",
]


def random_expressions(n: int) -> list[str]:
    """Conditions of the whole grammar over terms of all kinds, none of which fails."""
    chance = random.Random(11)
    numbers = ["price", "quantity", "cost", "`odd.name`", "seller.city.size", "CAST(code AS INT)"]
    texts = ["brand", "seller.name", "code", "seller.city.zip"]
    lists = ["tags", "array('a', brand)", "split(brand, 'c')", "map_keys(extra)"]

    def number(depth: int) -> str:
        if not depth:
            return chance.choice([*numbers, str(chance.randrange(-3, 9)), "2.5"])
        one, other = number(depth - 1), number(depth - 1)
        return chance.choice(
            [
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * 2)",
                f"coalesce({one}, {other})",
                f"abs({one})",
                f"-({one})",
                f"length({text(depth - 1)})",
                f"CASE WHEN {one} > {other} THEN {one} ELSE 0 END",
                f"if({condition(0)}, {one}, {other})",
                f"greatest({one}, {other})",
                f"try_divide({one}, {other})",
                f"round(CAST({one} AS DOUBLE), 1)",
                f"({one})::double % 3",
                f"year({time(depth - 1)})",
                f"extract(DAY FROM {time(depth - 1)})",
                f"size({chance.choice(lists)})",
                "extra['x']",
                "extra.y",
                f"try_cast({text(depth - 1)} AS INT)",
                f"instr({text(depth - 1)}, 'e')",
            ]
        )

    def time(depth: int) -> str:
        if not depth:
            return chance.choice(["day", "seen", "DATE '2024-02-29'"])
        one = time(depth - 1)
        return chance.choice(
            [
                f"({one} + INTERVAL '1' DAY)",
                f"({one} - INTERVAL 1 MONTH)",
                f"date_trunc('MONTH', {one})",
                f"CAST({one} AS DATE)",
                f"coalesce({one}, seen)",
            ]
        )

    def text(depth: int) -> str:
        if not depth:
            return chance.choice([*texts, "'Acme'"])
        one, other = text(depth - 1), text(depth - 1)
        return chance.choice(
            [
                f"lower({one})",
                f"concat({one}, {other})",
                f"substring({one}, 2, 2)",
                f"coalesce({one}, {other})",
                f"reverse({one})",
                f"soundex({one})",
                f"{one} || {other}",
                f"CAST({number(depth - 1)} AS STRING)",
                f"trim(BOTH 'e' FROM {one})",
                f"regexp_extract({one}, '([a-z]+)', 1)",
                f"nullif({one}, {other})",
                f"get({chance.choice(lists)}, 0)",
            ]
        )

    def condition(depth: int) -> str:
        sides = chance.choice(
            [
                (number(depth), number(min(depth, 1))),
                (text(depth), text(min(depth, 1))),
                (time(depth), time(min(depth, 1))),
            ]
        )
        operators = ["=", "!=", "<", "<=", ">", ">=", "<=>", "==", "<>", "!<", "!>"]
        operator = chance.choice([*operators, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        compared = f"{sides[0]} {operator} {sides[1]}"
        one, array = text(depth), chance.choice(lists)
        return chance.choice(
            [
                compared,
                compared,
                f"NOT {compared}",
                f"({compared}) IS NOT {chance.choice(['TRUE', 'FALSE', 'UNKNOWN'])}",
                f"({compared}) = ok",
                f"!ok OR {compared}",
                f"({sides[0]}) IS {chance.choice(['', 'NOT '])}NULL",
                f"{sides[0]} {chance.choice(['', 'NOT '])}BETWEEN {sides[1]} AND {sides[0]}",
                f"{one} {chance.choice(['', 'NOT '])}LIKE '%e%'",
                f"{one} ILIKE '_C%'",
                f"{one} {chance.choice(['LIKE', 'NOT LIKE'])} ANY ('%e', 'a%')",
                f"{one} {chance.choice(['LIKE', 'NOT LIKE'])} ALL ('%e', 'a%')",
                f"{one} ILIKE SOME ('Z%', '%me')",
                f"{one} RLIKE '(?i)ac|z'",
                f"regexp_like({one}, 'e$')",
                f"{one} COLLATE UTF8_LCASE = 'acme'",
                f"startswith({one}, 'A') OR contains({one}, 'et')",
                f"{number(depth)} {chance.choice(['', 'NOT '])}IN (1, 2.5, 1 + 6)",
                f"array_contains({array}, {chance.choice(['brand', repr('a')])})",
                f"arrays_overlap({array}, array('a', 'b'))",
                f"exists({array}, t -> t > 'a' AND length(t) = {number(0)})",
                f"forall({array}, t -> t LIKE 'a%' OR {compared})",
                f"size(filter({array}, t -> t = 'a')) > 0",
                "map_contains_key(extra, 'x')",
                "seller.city.size > extra.z",
                "seller IS NULL",
            ]
        )

    return [
        chance.choice([" AND ", " OR "]).join(
            condition(chance.randrange(3)) for _ in range(chance.randrange(1, 3))
        )
        for _ in range(n)
    ]


def kept_by_filter(events: Any, expressions: list[str]) -> list[set[int]]:
    """The ids of the events that Spark's filter would keep, for each expression."""
    columns = [f"({text}) AS c{number}" for number, text in enumerate(expressions)]
    table = events.selectExpr("id AS event", *columns).toArrow()
    ids = table["event"].to_pylist()
    return [
        {id_ for id_, truth in zip(ids, column.to_pylist(), strict=True) if truth}
        for column in table.columns[1:]
    ]


def matched(found: Any, n: int) -> list[set[int]]:
    """The ids of the events that each subscription matches, from exploded output."""
    events: list[set[int]] = [set() for _ in range(n)]
    for row in found.collect():
        if row["subscription"] is not None:
            events[int(row["subscription"])].add(row["id"])
    return events


def frame_of(spark: Any, expressions: list[str]) -> Any:
    return spark.createDataFrame(list(enumerate(expressions)), "id bigint, expression string")


def differences(expressions: list[str], found: list[set[int]], kept: list[set[int]]) -> Differences:
    """Each expression that matches other events than ``filter`` keeps, and those events."""
    return [
        (text, sorted(own ^ other))
        for text, own, other in zip(expressions, found, kept, strict=True)
        if own != other
    ]


def match_beside_filter(spark: Any, expressions: list[str]) -> dict[str, Any]:
    """How matches differ from what ``filter`` keeps, what is rejected, and how many keep some."""
    events = spark.createDataFrame(rows(200), SCHEMA).cache()
    found = bittern_spark.match(
        events, frame_of(spark, expressions), event_id="id", explode=True, rejects=True
    )
    kept = kept_by_filter(events, expressions)
    return {
        "differences": differences(expressions, matched(found, len(expressions)), kept),
        "rejected": found.select("rejected").distinct().toArrow()["rejected"].to_pylist(),
        "n_kept": sum(map(bool, kept)),
    }
