"""Arrays, maps and structs in terms mean what they mean in Spark, in values and types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bittern.language.scalars import read_term
from bittern.model.events.attributes import Attributes
from bittern.model.events.derived.gathered import Gathered
from bittern.model.events.reader import EventReader
from bittern.terms.nested.nested import settled_nested
from bittern.terms.nodes import attributes_of
from bittern.terms.scope import evaluate

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
ITEM = pa.struct([("price", pa.float64()), ("n", pa.int32()), ("tags", pa.list_(pa.string()))])


def item(price: float | None, n: int | None, *tags: str | None) -> dict[str, Any]:
    return {"price": price, "n": n, "tags": list(tags)}


DAY, LATER = dt.date(2024, 2, 29), dt.date(9999, 12, 31)
MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
#: By column: its type, and one value per event.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a": (pa.list_(pa.int32()), [[1, 2, None], [], None, [3, 1, 3], [None], [-(2**31), 2**31 - 1]]),
    "l": (pa.list_(pa.int64()), [[2], [5, None], [1], None, [], [2**63 - 1, -(2**63)]]),
    "d": (
        pa.list_(pa.float64()),
        [[0.0, -0.0], [NAN, 1.0, None], [-INF, INF, NAN, NAN], [-0.0, 0.0], None, [None, None]],
    ),
    "s": (
        pa.list_(pa.string()),
        [
            ["b", "a", "B"],
            ["", None, ""],
            None,
            ["é", "e\u0301", "\U0001f600", "\uffff"],
            [],
            ["x"],
        ],
    ),
    "b": (pa.list_(pa.bool_()), [[True, False], [None], None, [], [True], [False, None]]),
    "bin": (pa.list_(pa.binary()), [[b"\xff", b""], [], None, [b"a", None], [b"a"], [b"\x00"]]),
    "dec": (
        pa.list_(pa.decimal128(10, 2)),
        [[Decimal("1.50"), None], [Decimal("-99999999.99")], None, [], [Decimal(0)], [Decimal(3)]],
    ),
    "day": (pa.list_(pa.date32()), [[DAY, LATER], [dt.date(1, 1, 1)], None, [], [None], [DAY]]),
    "t": (pa.list_(pa.timestamp("us", "UTC")), [[MOMENT], [], None, [None, MOMENT], [], [MOMENT]]),
    "nested": (
        pa.list_(pa.list_(pa.int32())),
        [[[1, 2], []], [[]], None, [None, [3]], [], [[7, 8, 9], [7]]],
    ),
    "items": (
        pa.list_(ITEM),
        [
            [item(1.5, 1, "x"), item(9.0, 5, "y", "z")],
            [],
            None,
            [item(None, 3), None],
            [item(NAN, None, None)],
            [item(-0.0, 7, "x", "x")],
        ],
    ),
    "st": (ITEM, [item(1.0, 1, "q"), None, item(None, None), item(2.5, 0), item(0.0, 2), None]),
    "m": (
        pa.map_(pa.string(), pa.int32()),
        [[("a", 1), ("b", None)], [], None, [("é", 3)], [("", 0)], [("b", 2), ("c", 3)]],
    ),
    "mi": (
        pa.map_(pa.int32(), pa.string()),
        [[(1, "one"), (2, None)], [], None, [(3, "three")], [(0, "")], [(2, "two")]],
    ),
    "md": (pa.map_(pa.float64(), ITEM), [[(NAN, item(1.0, 1))], [], None, [(0.0, None)], [], []]),
    "x": (pa.int32(), [2, 0, 1, None, -1, 3]),
    "y": (pa.int64(), [1, 5, None, 3, 0, 2**63 - 1]),
    "z": (pa.float64(), [0.0, NAN, None, -0.0, 1.0, INF]),
    "w": (pa.string(), ["a", "", None, "\U0001f600", "b", "x"]),
}
#: Expressions for which no row makes Spark fail.
WHOLE = """
size(a) | size(m) | cardinality(items) | array_size(s) | size(nested) | size(md)
array(x, y) | array(x, z) | array(w, 'k') | array(x, NULL) | array(get(dec, 0), 1) | array(a, l)
array_contains(a, x) | array_contains(a, y) | array_contains(l, x) | array_contains(l, 2)
array_contains(d, z) | array_contains(d, 0e0) | array_contains(d, 1) | array_contains(a, 1.5)
array_contains(s, w) | array_contains(s, 'a') | array_contains(array('a', 'b', NULL), w)
array_contains(array(1, 2), x) | array_contains(b, TRUE) | array_contains(bin, X'61')
array_contains(dec, 1.5) | array_contains(dec, 3) | array_contains(day, get(day, 0))
array_contains(items.n, 5) | array_contains(map_keys(m), w) | array_contains(st.tags, 'q')
arrays_overlap(a, l) | arrays_overlap(s, array('a', 'x')) | arrays_overlap(array('a', NULL), s)
arrays_overlap(d, array(z)) | arrays_overlap(a, array(1, 3)) | arrays_overlap(items.price, d)
arrays_overlap(bin, array(X'61')) | arrays_overlap(a, array(1.5, 3)) | arrays_overlap(array(x), a)
array_position(a, x) | array_position(l, x) | array_position(d, z) | array_position(s, w)
array_position(s, 'B') | array_position(array('x', 'b'), w) | array_position(a, 3)
array_max(a) | array_min(a) | array_max(l) | array_min(l) | array_max(d) | array_min(d)
array_max(s) | array_min(s) | array_max(b) | array_min(b) | array_max(bin) | array_min(dec)
array_max(day) | array_min(t) | array_max(items.price) | array_max(map_values(m))
array_distinct(a) | array_distinct(s) | array_distinct(b) | array_distinct(dec)
array_distinct(d) | array_distinct(items.n) | sort_array(a) | sort_array(a, FALSE)
sort_array(s) | array_sort(s)
sort_array(d, FALSE) | array_sort(a) | sort_array(bin) | sort_array(dec, FALSE) | sort_array(t)
array_join(s, ',') | array_join(s, '') | array_join(s, w) | array_join(s, ',', 'NULL')
array_join(s, '\U0001f600', w) | array_join(st.tags, '-')
slice(a, 1, 2) | slice(a, -1, 5) | slice(s, 2, 0) | slice(items, 1, 1).n | slice(nested, -2, 1)
slice(a, 9, 1) | slice(a, -9, 1)
get(a, 0) | get(a, x) | get(s, -1) | get(items, 0).price | get(nested, 1)
try_element_at(a, 2) | try_element_at(a, -1) | try_element_at(nested, -1) | try_element_at(m, w)
m['a'] | m['b'] | m.b | m[w] | mi[x] | mi[2] | mi[3L] | md[z].n | element_at(m, 'b')
element_at(m, w) | element_at(mi, x) | try_element_at(mi, 9) | md[0e0]
map_contains_key(m, 'b') | map_contains_key(m, w) | map_contains_key(mi, 3L)
map_keys(m) | map_values(m) | map_keys(mi) | map_values(md).price
items.price | items.tags | items['n'] | st.tags | st['price'] | get(items, 0).tags
exists(a, e -> e > 2) | exists(a, e -> e > x) | exists(a, e -> e IS NULL) | exists(a, e -> NULL)
exists(items, i -> i.price < 10 AND i.n > 2) | exists(items, i -> i.price = z)
exists(items, i -> array_contains(i.tags, 'x')) | exists(items, i -> i['n'] > x)
exists(items, i -> exists(i.tags, t -> t = w)) | exists(items, i -> exists(i.tags, t -> t > 'x'))
exists(nested, n -> size(n) = 2) | exists(s, e -> e = w) | exists(array(1, 2, NULL), e -> e = x)
exists(map_keys(m), k -> k = w) | exists(items.tags, t -> size(t) = 0) | exists(b, e -> e)
forall(a, e -> e > 0) | forall(a, e -> e <= x) | forall(items, i -> i.n > 0) | forall(b, e -> e)
forall(items, i -> forall(i.tags, t -> t = 'x')) | forall(nested, n -> forall(n, e -> e > x))
filter(a, e -> e > 1) | filter(s, e -> e IS NOT NULL) | filter(a, (e, i) -> i > 0)
filter(items, i -> i.price > 1).n | size(filter(a, e -> e = x)) | filter(nested, n -> size(n) > 0)
filter(filter(a, e -> e > 1), e -> e < 3)
transform(a, e -> e > 1) | transform(a, (e, i) -> i) | transform(items, i -> i.price)
transform(items, i -> i.tags) | transform(a, e -> array(e, x)) | transform(a, e -> w)
transform(nested, n -> transform(n, e -> coalesce(e, x))) | transform(a, e -> coalesce(e, y))
transform(a, e -> CASE WHEN e > 1 THEN 'big' ELSE w END) | transform(d, e -> e = 0e0)
aggregate(a, 0, (c, e) -> greatest(c, e)) | aggregate(s, '', (c, e) -> coalesce(e, c))
aggregate(a, x, (c, e) -> coalesce(e, c), c -> c = 3) | reduce(d, 0e0, (c, e) -> least(c, e))
aggregate(nested, 0, (c, e) -> coalesce(get(e, 0), c)) | aggregate(l, y, (c, e) -> if(e > c, e, c))
coalesce(a, l) | coalesce(s, array()) | CASE WHEN x > 0 THEN a ELSE array(7) END | a IS NULL
if(x > 0, nested, NULL) | coalesce(m['z'], size(a), -1) | size(array())
a = l | a < l | a <=> l | l >= a | nested = nested | s < array('b') | d = d | d <=> array(0e0, 0e0)
st = get(items, 0) | st < get(items, 0) | st <=> get(items, 1) | nested > array(a)
a IN (l, array())
(x, w) IN ((2, 'a'), (0, '')) | named_struct('a', x) < named_struct('a', 2) | (x, a) <=> (x, a)
greatest(a, l) | least(nested, array(a)) | nullif(a, array(1, 2, NULL)) | b < array(x > 1)
struct(x, w) | named_struct('k', x, 'l', a) | struct(x + 1, m) | (x, w).x | struct(st.n, x)
map(1, x, 2, 3) | map('k', w) | size(map()) | map(coalesce(x, 9), a)[2]
map_keys(map(1.5, x, 2, y))
sort_array(items) | sort_array(nested, FALSE) | array_distinct(nested) | array_max(nested)
array_contains(nested, a) | array_contains(items, st) | array_position(items, st)
arrays_overlap(nested, array(a)) | array_min(items)
CAST(a AS ARRAY<STRING>) | CAST(dec AS ARRAY<DOUBLE>) | CAST(m AS MAP<STRING, BIGINT>)
CAST(st AS STRUCT<p: DOUBLE, q: STRING, r: ARRAY<STRING>>) | CAST(NULL AS ARRAY<INT>)
a::array<bigint>
TRY_CAST(s AS ARRAY<INT>) | CAST(items AS ARRAY<STRUCT<a: FLOAT, b: BIGINT, c: ARRAY<STRING>>>)
CAST(NULL AS STRUCT<a: INT>) | CAST(NULL AS MAP<STRING, ARRAY<INT>>)
exists(a, e -> (e, x) = (1, 2))
"""
#: Expressions that make Spark fail for some rows.
PARTIAL = """
a[0] | a[1] | a[x] | l[y] | nested[0][1] | items[0].price | s[-1]
element_at(a, 1) | element_at(a, x) | element_at(nested, -2) | element_at(items, 1).tags
try_element_at(a, x) | slice(a, x, 1) | slice(a, 1, x)
exists(nested, n -> n[1] = 2) | forall(nested, n -> n[0] = 1) | filter(nested, n -> n[0] > 1)
transform(nested, n -> n[0]) | exists(items, i -> i.tags[0] = 'x')
aggregate(nested, 0, (c, e) -> coalesce(e[0], c)) | aggregate(a, 0, (c, e) -> c, c -> a[0])
get(l, y) | a[4294967296L] | slice(a, 1, y)
exists(nested, n -> exists(n, e -> n[e] = 8)) | coalesce(x, a[0])
map(x, 1) | map(x, 1, 2, 3) | CAST(s AS ARRAY<INT>) | CAST(l AS ARRAY<INT>)
"""


def expressions(table: str) -> list[str]:
    return [each.strip() for line in table.strip().splitlines() for each in line.split(" | ")]


def columns() -> dict[str, pa.Array]:
    return {name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()}


N_ROWS = len(COLUMNS["x"][1])


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    table = pa.table({"id": pa.array(range(N_ROWS)), **columns()})
    return spark.createDataFrame(table).coalesce(1).cache()


def read(names: list[str]) -> dict[str, pa.Array]:
    """What terms read of the events, which is all of one type here."""
    gathered = Gathered(names)
    EventReader(Attributes(names), gathered, ()).read(pa.table(columns()))
    return {name: typed.arrays[0] for name, typed in gathered.typed(N_ROWS).items()}


def ours(text: str) -> tuple[pa.Array, set[int]]:
    term = read_term(text)
    found, failures = evaluate(term, read(attributes_of(term)), N_ROWS)
    return found, {row for each in failures for row in each.rows.tolist()}


def shown(array: pa.Array) -> list[str]:
    return [repr(value) for value in array.to_pylist()]


def spark_values(events: Any, texts: list[str]) -> list[pa.Array]:
    """One array per expression, with the types that terms have."""
    table = events.selectExpr("id", *(f"{text} AS c{i}" for i, text in enumerate(texts)))
    found = table.toArrow().sort_by("id")
    return [settled_nested(column.combine_chunks()) for column in found.columns[1:]]


def test_values_and_types_are_those_of_spark(events: Any) -> None:
    texts = expressions(WHOLE)
    wrong = []
    for text, theirs in zip(texts, spark_values(events, texts), strict=True):
        found, failed = ours(text)
        same = found.type == theirs.type or pa.types.is_null(found.type)
        if not same or failed or shown(found) != shown(theirs):
            wrong.append((text, found.type, theirs.type, shown(found), shown(theirs), failed))
    assert not wrong, "\n".join(map(str, wrong))


def test_rows_that_fail_are_those_of_spark(events: Any) -> None:
    wrong = []
    for text in expressions(PARTIAL):
        found, failed = ours(text)
        kept = [row for row in range(N_ROWS) if row not in failed]
        assert failed or text == "coalesce(x, a[0])", text
        assert all(found[row].as_py() is None for row in failed), text
        (theirs,) = spark_values(events.where(f"id IN ({', '.join(map(str, kept))})"), [text])
        own = found.take(pa.array(kept))
        if own.type != theirs.type or shown(own) != shown(theirs):
            wrong.append((text, own.type, theirs.type, shown(own), shown(theirs)))
        for row in sorted(failed):
            with pytest.raises(
                Exception, match=r"INDEX|INVALID_PARAMETER|OVERFLOW|MAP_KEY|CAST_INVALID"
            ):
                spark_values(events.where(f"id = {row}"), [text])
    assert not wrong
