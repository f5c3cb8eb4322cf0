"""Hypothesis strategies: expressions and events that meet at the edges.

Two worlds. In the free world any attribute may carry any kind, be nested or be missing; it has
the oracle as its judge::

    FREE   a number   b string   c time   d boolean   m any kind   n.x number   n.`y.z` string ...

In the typed world every attribute has one Arrow type, so the same data can go to Spark and DuckDB,
and literals are kept to those that they compare exactly as well::

    TYPED  n int64   x double   d decimal(18,4)   s string   t timestamp   day date   b boolean
           st struct<i int64, s string, deep struct<f double>>

On top of the free world stand quantified predicates over documents (``JOINED``), whose values come
from few enough constants that an event finds some of its own in the documents before it.

Constants come from small pools that literals and event values share, so that equalities hold and
bounds are met exactly about as often as not.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bittern.language.presence import presence_of
from bittern.language.syntax import (
    And,
    Between,
    BooleanConstant,
    Compare,
    Expression,
    In,
    IsNull,
    Join,
    Like,
    Literal,
    Not,
    OfDocument,
    Or,
    Pair,
    Quantified,
    Regex,
    Window,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Event: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

# ------------------------------------------------------------------ pools of constants

_TWO53 = 2**53
SMALL_INTEGERS = (-1, 0, 1, 2, 3, 5, 10)
LARGE_INTEGERS = (_TWO53 - 1, _TWO53, _TWO53 + 1, -_TWO53 - 1, 2**63 - 2, 2**63 - 1, -(2**63))
#: Short enough for a double to carry them: at most 15 digits.
SHORT_DECIMALS = tuple(
    Decimal(text)
    for text in ("-0.5", "0.0", "0.1", "0.3", "1.0", "1.5", "2.25", "5.0", "10.01", "99999999999.5")
)
LONG_DECIMALS = tuple(
    Decimal(text)
    for text in (
        "12345678901234.5678",
        "12345678901234.5679",
        "-99999999999999.9999",
        "0.123456789012345678",
        "0.100000000000000005",
        "9007199254740992.5",
        "12345678901234567.8",
        "99999999999999999.9",
    )
)
SMALL_FLOATS = (-0.5, -0.0, 0.0, 0.1, 0.3, 1.0, 1.5, 2.25, 5.0, 10.01, 1e-3, 1e9)
EDGE_FLOATS = (
    0.1 + 0.2,
    math.nextafter(0.1, 1),
    math.nextafter(0.1, 0),
    9007199254740991.0,
    9007199254740992.0,
    9007199254740994.0,
    -9007199254740992.0,
    1e16,
    9.223372036854775807e18,
    -9.223372036854775808e18,
    1e300,
    -1e300,
    5e-324,
    math.ulp(1.0),
)
UNWRITABLE_FLOATS = (math.nan, math.inf, -math.inf)

#: Prefixes and suffixes of each other, pattern characters, and both sides of the place where the
#: order of UTF-16 units differs from that of UTF-8 bytes (U+FF5E before U+1F600).
STRINGS = (
    *("", "a", "ab", "abc", "abcabc", "b", "bc", "c", "A", "aa", "ba", "ab ", "é", "aé"),
    *("\uff5e", "😀", "a😀", "😀a", "\U0010ffff", "5", "true", "2024-01-01", "NULL"),
    *("a_b", "a%b", "a\\b", "it's", 'a"b', "a\nb", "a\tb", "100%", "`", "!"),
)
#: What RE2, and only RE2, sees as no line end: kept from Spark.
RE2_ONLY_STRINGS = ("a\rb", "ab\n", "\u2028", "a\x00", "\x00")

_EDGE_DATES = (dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1969, 12, 31), dt.date(1970, 1, 1))
_TICK = dt.timedelta(microseconds=1)


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)


DATES = (*_EDGE_DATES, dt.date(1600, 2, 29), dt.date(9999, 12, 31))
TIMESTAMPS = (
    *(_midnight(day) for day in _EDGE_DATES),
    *(_midnight(day) + _TICK for day in _EDGE_DATES),
    *(_midnight(day) - _TICK for day in _EDGE_DATES),
    dt.datetime(2024, 1, 1, 12, 30, 15, 250_000, tzinfo=dt.UTC),
)

# ------------------------------------------------------------------ literals, values, patterns

_pick = st.sampled_from

integers = st.one_of(_pick(SMALL_INTEGERS), _pick(LARGE_INTEGERS), st.integers(-(2**63), 2**63 - 1))
decimals = st.one_of(
    _pick(SHORT_DECIMALS),
    _pick(LONG_DECIMALS),
    st.builds(
        lambda digits, places: Decimal(digits).scaleb(-places),
        st.integers(-(10**18) + 1, 10**18 - 1),
        st.integers(1, 18),
    ),
)
floats = st.one_of(
    _pick(SMALL_FLOATS), _pick(EDGE_FLOATS), st.floats(allow_nan=False, allow_infinity=False)
)
strings = st.one_of(
    _pick(STRINGS),
    _pick(RE2_ONLY_STRINGS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
dates = st.one_of(_pick(DATES), st.dates())
timestamps = st.one_of(_pick(TIMESTAMPS), st.datetimes(timezones=st.just(dt.UTC)))

KINDS: dict[str, SearchStrategy[Any]] = {
    "number": st.one_of(integers, decimals, floats),
    "string": strings,
    "boolean": st.booleans(),
    "time": st.one_of(dates, timestamps),
}
_any_kind = st.one_of(*KINDS.values())


def _mostly(usual: SearchStrategy[T], odd: SearchStrategy[T], times: int = 9) -> SearchStrategy[T]:
    """Draw the usual, and about once in ten draws the odd."""
    return st.integers(0, times).flatmap(lambda drawn: odd if drawn == times else usual)


@st.composite
def likes(draw: st.DrawFn, attribute: str, texts: Sequence[str] = STRINGS) -> Like:
    """Prefix, suffix, contains, equality and general patterns, with any escape character."""
    escape = draw(_pick(["\\", "\\", "!", "b"]))

    def text() -> str:
        chosen = draw(_pick(texts))[: draw(st.integers(0, 3))]
        return "".join(escape + c if c in ("%", "_", escape) else c for c in chosen)

    shape = draw(_pick(["p%", "%s", "%c%", "equal", "general", "general"]))
    if shape == "general":
        wild = st.lists(_pick(["%", "_", "text", "%%"]), max_size=5)
        pattern = "".join(text() if item == "text" else item for item in draw(wild))
    else:
        start, end = shape.startswith("%"), shape.endswith("%")
        pattern = "%" * start + text() + "%" * end
    return Like(attribute, pattern, escape)


#: Patterns that RE2 and Java read alike.
REGEXES = (
    *("a", "^a", "c$", "^a.*c$", "^$", "", "[a-c]+", "(ab|b)c?", "^a{2}$", "^[^a]", "😀", "^.$"),
    *("\\d+", "\\.", "a\\\\b", "(?i)AB", "^(?:a|😀)", "\\bab\\b", "%", "it's"),
)


def regexes(attribute: str) -> SearchStrategy[Expression]:
    return st.builds(Regex, st.just(attribute), _pick(REGEXES))


@functools.cache
def predicates_on(
    attribute: str, operand: SearchStrategy[Any], *, text: bool
) -> SearchStrategy[Expression]:
    """Every operator on one attribute, its operands drawn from ``operand``; NULL now and then."""
    name = st.just(attribute)
    literal = st.builds(Literal, _mostly(operand, st.none(), 12))
    in_list = st.lists(literal, min_size=1, max_size=5).map(lambda drawn: (*drawn, *drawn[:1]))
    kinds: list[SearchStrategy[Expression]] = [
        st.builds(Compare, name, _pick(OPERATORS), literal),
        st.builds(Compare, name, st.just("="), literal),
        st.builds(Between, name, literal, literal),
        st.builds(In, name, st.one_of(in_list, in_list.map(lambda drawn: drawn[:-1]))),
        st.builds(IsNull, name),
    ]
    if text:
        kinds += [likes(attribute), likes(attribute), regexes(attribute)]
    return st.one_of(*kinds)


def is_missing(attribute: str) -> Expression:
    """``attribute IS MISSING``; only of events that tell what is missing from what is NULL."""
    return IsNull(presence_of(attribute))


# ------------------------------------------------------------------ expressions

_constants: SearchStrategy[Expression] = st.builds(BooleanConstant, _pick([True, False, None]))


def expressions(leaves: SearchStrategy[Expression], depth: int = 4) -> SearchStrategy[Expression]:
    """Trees over the leaves: single predicates, CNF, DNF, contradictions and free nesting."""
    leaf = _mostly(leaves, _constants, 20)
    literal = _mostly(leaf, leaf.map(Not), 3)

    def tree(levels: int) -> SearchStrategy[Expression]:
        if levels == 0:
            return literal
        inner = st.deferred(lambda: tree(levels - 1))
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        conjunction, disjunction = several.map(And), several.map(Or)
        return st.one_of(literal, conjunction, disjunction, _mostly(inner, inner.map(Not), 2))

    def group(make: Callable[[Any], Expression], of: SearchStrategy[Expression]) -> Any:
        return st.lists(of, min_size=2, max_size=3).map(tuple).map(make)

    contradiction = st.tuples(leaf, literal).map(lambda drawn: And((*drawn, Not(drawn[0]))))
    return st.one_of(
        literal,
        group(And, literal),
        group(And, group(Or, literal)),
        group(Or, group(And, literal)),
        contradiction,
        tree(depth),
    )


# ------------------------------------------------------------------ the free world

#: Each attribute with the kind it carries most of the time; None carries all of them alike.
FREE: dict[str, str | None] = {
    "a": "number",
    "b": "string",
    "c": "time",
    "d": "boolean",
    "m": None,
    "n": "number",
    "n.x": "number",
    "n.`y.z`": "string",
    "`q``.`": "number",
}


@functools.cache
def free_predicates() -> SearchStrategy[Expression]:
    """Predicates of any kind on any attribute, mostly of the kind that the attribute carries."""

    def on(name: str, kind: str) -> SearchStrategy[Expression]:
        return predicates_on(name, KINDS[kind], text=kind == "string")

    def mostly_on(name: str, kind: str | None) -> SearchStrategy[Expression]:
        of_any_kind = st.one_of(*(on(name, other) for other in KINDS))
        return of_any_kind if kind is None else _mostly(on(name, kind), of_any_kind)

    missing = _pick(list(FREE)).map(is_missing)
    return st.one_of(missing, *(mostly_on(name, kind) for name, kind in FREE.items()))


@functools.cache
def free_expressions(depth: int = 4) -> SearchStrategy[Expression]:
    return expressions(free_predicates(), depth)


def _free_value(kind: str | None) -> SearchStrategy[Any]:
    numbers = st.one_of(KINDS["number"], _pick(UNWRITABLE_FLOATS))
    naive = timestamps.map(lambda moment: moment.replace(tzinfo=None))
    kindless = _pick([[], [1], {}, {"z": 1}])
    of_kind = {
        None: _any_kind,
        "number": numbers,
        "time": st.one_of(KINDS["time"], naive),
    }.get(kind)
    odd = st.one_of(st.none(), _any_kind, kindless)
    return _mostly(KINDS[kind or "string"] if of_kind is None else of_kind, odd)


@functools.cache
def free_events() -> SearchStrategy[dict[str, Any]]:
    """Mappings with missing keys, wrong kinds, NULLs, lists and nested mappings."""
    nested = st.fixed_dictionaries(
        {}, optional={"x": _free_value("number"), "y.z": _free_value("string"), "z": st.just(1)}
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "a": _free_value("number"),
            "b": _free_value("string"),
            "c": _free_value("time"),
            "d": _free_value("boolean"),
            "m": _free_value(None),
            "n": _mostly(nested, _free_value("number")),
            "q`.": _free_value("number"),
            "unheard of": st.just("?"),
        },
    )


# ------------------------------------------------------------------ quantifiers and documents

_MINUTE = dt.timedelta(minutes=1)
_NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
#: Values that events and documents share: few, and hard to tell apart.
JOINED_VALUES: dict[str, tuple[Any, ...]] = {
    "number": (
        *(0, -0.0, 1, 1.0, Decimal("1.0"), 2, 2.5, Decimal("2.50"), -3, math.nan, math.inf),
        *(0.1, Decimal("0.1"), Decimal("0.100000000000000005"), _TWO53, float(_TWO53), _TWO53 + 1),
    ),
    "string": ("", "a", "b", "ab", "abcdefgh", "abcdefghi", "abcdefgh\0", "é", "😀", "\uff5e"),
    "boolean": (False, True),
    "time": (
        *(_NOON + k * _MINUTE for k in range(4)),
        *(_NOON + _TICK, _NOON.replace(tzinfo=None), _NOON.date(), dt.date(2024, 1, 2)),
    ),
}
#: The attributes of events and documents, with the kind that each carries most of the time. One of
#: them has the name that the printer would give the document.
JOINED: dict[str, str | None] = {
    "a": "number",
    "b": "number",
    "s": "string",
    "d": "string",
    "t": "time",
    "u": "boolean",
    "m": None,
    "n.x": "number",
    "`y.z`": "string",
}
_joined_value = {kind: _pick(values) for kind, values in JOINED_VALUES.items()}
_any_joined_value = st.one_of(*_joined_value.values())


@functools.cache
def joined_events() -> SearchStrategy[dict[str, Any]]:
    """Events and documents alike: missing keys, NULLs, wrong kinds, and much that is equal."""

    def value(kind: str | None) -> SearchStrategy[Any]:
        if kind is None:
            return _any_joined_value
        odd = st.one_of(st.none(), _any_joined_value, _pick([[1], {"z": 1}]))
        return _mostly(_joined_value[kind], odd)

    flat = {name: value(kind) for name, kind in JOINED.items() if name not in ("n.x", "`y.z`")}
    nested = st.fixed_dictionaries({}, optional={"x": value("number")})
    return st.fixed_dictionaries(
        {}, optional={**flat, "n": _mostly(nested, value("number")), "y.z": value("string")}
    )


def documents(max_size: int = 6) -> SearchStrategy[list[dict[str, Any]]]:
    """What came before an event, oldest first."""
    return batches(joined_events(), max_size)


@functools.cache
def _joined_predicates() -> SearchStrategy[Any]:
    """Ordinary predicates, of events or of documents."""

    def writable(kind: str) -> SearchStrategy[Any]:
        values = JOINED_VALUES[kind]
        if kind == "number":
            values = tuple(v for v in values if math.isfinite(v))
        if kind == "time":
            values = tuple(v for v in values if getattr(v, "tzinfo", dt.UTC) is not None)
        return _pick(values)

    def on(name: str, kind: str) -> SearchStrategy[Expression]:
        return predicates_on(name, writable(kind), text=kind == "string")

    return st.one_of(
        *(on(name, own) for name, kind in JOINED.items() for own in ([kind] if kind else KINDS))
    )


@st.composite
def _two_attributes(draw: st.DrawFn) -> tuple[str, str, str]:
    """Two names with an operator between them, most often of one kind."""
    left = draw(_pick(list(JOINED)))
    alike = [name for name, kind in JOINED.items() if kind == JOINED[left] or kind is None]
    right = draw(_mostly(_pick(alike), _pick(list(JOINED))))
    return left, draw(_pick(OPERATORS)), right


@functools.cache
def _condition_leaves() -> SearchStrategy[Expression]:
    joins = _two_attributes().map(lambda drawn: Join(*drawn))
    equalities = _pick(list(JOINED)).map(lambda name: Join(name, "=", name))
    pairs = st.builds(lambda side, drawn: Pair(side, *drawn), st.booleans(), _two_attributes())
    of_document: SearchStrategy[Expression] = _joined_predicates().map(OfDocument)
    others = st.one_of(pairs, _joined_predicates(), _constants)
    return st.one_of(joins, joins, equalities, of_document, others)


@functools.cache
def conditions() -> SearchStrategy[Expression]:
    """What stands in a quantifier's parentheses: at most two levels, so that terms stay few."""
    leaf = _condition_leaves()
    literal = _mostly(leaf, leaf.map(Not), 3)

    def group(make: Callable[[Any], Expression], of: SearchStrategy[Expression], n: int) -> Any:
        return st.lists(of, min_size=2, max_size=n).map(tuple).map(make)

    either = st.one_of(literal, group(Or, literal, 2))
    both = st.one_of(literal, group(And, literal, 2))
    return st.one_of(
        literal,
        group(And, literal, 3),
        group(And, either, 3),
        _mostly(group(Or, both, 3), group(And, either, 2).map(Not), 2),
    )


@functools.cache
def windows() -> SearchStrategy[Window | None]:
    """The last few documents, the last minutes, per group, or all of them."""
    per = st.lists(_pick(["a", "s", "m", "n.x"]), max_size=2).map(tuple)
    minutes = _pick([1, 60_000_000, 90_000_000, 86_400_000_000])
    window = st.one_of(
        st.builds(Window, count=st.integers(1, 4), per=per),
        st.builds(Window, microseconds=minutes, of=_mostly(st.just("t"), st.just("m")), per=per),
        st.builds(Window, per=per),
    )
    return st.one_of(st.none(), window.map(lambda drawn: None if drawn == Window() else drawn))


@functools.cache
def quantified() -> SearchStrategy[Quantified]:
    """EXISTS and FORALL with everything that may stand inside."""
    return st.builds(Quantified, st.booleans(), conditions(), windows())


@functools.cache
def joined_expressions(depth: int = 2) -> SearchStrategy[Expression]:
    """Whole expressions with quantified and ordinary predicates under AND, OR and NOT."""
    return expressions(st.one_of(quantified(), quantified(), _joined_predicates()), depth)


# ------------------------------------------------------------------ the typed world

TYPED_SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.decimal128(18, 4)),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("b", pa.bool_()),
        (
            "st",
            pa.struct(
                [
                    ("i", pa.int64()),
                    ("s", pa.string()),
                    ("deep", pa.struct([("f", pa.float64())])),
                ]
            ),
        ),
    ]
)

_small_numbers = st.one_of(_pick(SMALL_INTEGERS), _pick(SHORT_DECIMALS), _pick(SMALL_FLOATS))
#: Literals that Spark and DuckDB compare with a column of the type as exactly as Bittern does.
#: A list is cast to one type as a whole, so a pool never mixes floats with long integers.
_INT64_OPERANDS = (st.one_of(integers, decimals), _small_numbers)
_DOUBLE_OPERANDS = (st.one_of(_small_numbers, floats),)
_DECIMAL_OPERANDS = (st.one_of(_pick(SMALL_INTEGERS), decimals), _small_numbers)
_TEXT_OPERANDS = (_pick(STRINGS),)
_TIME_OPERANDS = (st.one_of(_pick(DATES), _pick(TIMESTAMPS)),)
TYPED: dict[str, tuple[SearchStrategy[Any], ...]] = {
    "n": _INT64_OPERANDS,
    "x": _DOUBLE_OPERANDS,
    "d": _DECIMAL_OPERANDS,
    "s": _TEXT_OPERANDS,
    "t": _TIME_OPERANDS,
    "day": _TIME_OPERANDS,
    "b": (st.booleans(),),
    "st.i": _INT64_OPERANDS,
    "st.s": _TEXT_OPERANDS,
    "st.deep.f": _DOUBLE_OPERANDS,
}


@functools.cache
def typed_predicates() -> SearchStrategy[Expression]:
    whole_struct: SearchStrategy[Expression] = _pick(["st", "st.deep"]).map(IsNull)
    on_columns = [
        predicates_on(name, operand, text=operands is _TEXT_OPERANDS)
        for name, operands in TYPED.items()
        for operand in operands
    ]
    return st.one_of(*on_columns, whole_struct)


@functools.cache
def typed_expressions(depth: int = 4) -> SearchStrategy[Expression]:
    return expressions(typed_predicates(), depth)


def typed_events() -> SearchStrategy[dict[str, Any]]:
    """Events of ``TYPED_SCHEMA``; any column, and any struct on the way, may be NULL."""

    def maybe(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
        return _mostly(values, st.none(), 6)

    doubles = st.one_of(_pick(SMALL_FLOATS), floats, _pick(UNWRITABLE_FLOATS))
    four_places = st.one_of(
        _pick(SHORT_DECIMALS + LONG_DECIMALS[:3]),
        st.integers(-(10**18) + 1, 10**18 - 1).map(lambda digits: Decimal(digits).scaleb(-4)),
    )
    deep = maybe(st.fixed_dictionaries({"f": maybe(doubles)}))
    struct = st.fixed_dictionaries({"i": maybe(integers), "s": maybe(_pick(STRINGS)), "deep": deep})
    return st.fixed_dictionaries(
        {
            "n": maybe(integers),
            "x": maybe(doubles),
            "d": maybe(four_places),
            "s": maybe(_pick(STRINGS)),
            "t": maybe(_pick(TIMESTAMPS)),
            "day": maybe(_pick(DATES)),
            "b": maybe(st.booleans()),
            "st": maybe(struct),
        }
    )


def as_arrow(events: Sequence[Event], schema: pa.Schema = TYPED_SCHEMA) -> pa.Table:
    """Lay typed events out as a table, one column per attribute; a missing key is NULL."""
    columns = [pa.array([event.get(f.name) for event in events], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


# ------------------------------------------------------------------ catalogs, batches, samples


def catalogs(
    expression: SearchStrategy[Expression], max_size: int = 12
) -> SearchStrategy[dict[str, Expression]]:
    """Whole catalogs, ids s0, s1, ...; some expressions are subscribed to more than once."""
    distinct = st.lists(expression, max_size=max_size)
    return distinct.flatmap(_with_repeats).map(
        lambda drawn: {f"s{number}": tree for number, tree in enumerate(drawn)}
    )


def batches(
    event: SearchStrategy[dict[str, Any]], max_size: int = 12
) -> SearchStrategy[list[dict[str, Any]]]:
    """Batches of events, empty ones too; some events come more than once."""
    return st.lists(event, max_size=max_size).flatmap(_with_repeats)


def _with_repeats(drawn: list[T]) -> SearchStrategy[list[T]]:
    if not drawn:
        return st.just(drawn)
    return st.lists(_pick(range(len(drawn))), max_size=4).map(
        lambda again: drawn + [drawn[place] for place in sorted(again)]
    )


def sample(strategy: SearchStrategy[T], n: int) -> list[T]:
    """Draw ``n`` examples at once, for oracles that are dear to ask one example at a time.

    The price is that hypothesis cannot shrink; the tests report the smallest failure instead.
    """
    drawn: list[T] = []

    @settings(max_examples=n, database=None, phases=[Phase.generate])
    @given(strategy)
    def draw(example: T) -> None:
        drawn.append(example)

    draw()
    return drawn
