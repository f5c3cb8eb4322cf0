"""A book shop with a past: offers that were seen, offers that come, and subscriptions on both.

::

    an offer   isbn 4711  author a12  category c17  shop s3  seller m880  price 17.31
               year 1998  weight 420  rating 71 (four in ten have one)

    fell       category = 'c17' AND price < 14 AND EXISTS d (d.isbn = isbn AND d.price > price)
    new        author = 'a12' AND price >= 9 AND price <= 30 AND FORALL d (d.isbn != isbn)
    lowest     ... AND FORALL d IN LAST 1000 PER shop (d.price > price)

A *family* of subscriptions differs in its constants only; ``BOOKSHOP`` is the mix of families that
is measured as a whole. A book keeps its author, category, year and weight; one offer in eleven is
of a book that no document has. Records are kept as numbers, from which texts are made::

    codes      one row for each attribute, one column for each record; a12 is 12, NaN is missing

Everything is drawn with :class:`benchmarks.draw.Draw`: the same arguments give the same world on
every machine. A million documents take about a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.draw import Draw, Floats, Ints

SEED = 7
#: No record has a translator: what asks for one cannot hold.
ATTRIBUTES = (
    "isbn", "author", "category", "shop", "seller", "price", "year", "weight", "rating",
    "translator",
)  # fmt: skip
PLACE = {name: place for place, name in enumerate(ATTRIBUTES)}
#: Attributes whose values are strings, and what these begin with.
LETTERS = {"author": "a", "category": "c", "shop": "s", "seller": "m", "translator": "t"}
BOOKS, NEW_BOOKS = 200_000, 20_000
DOMAINS = {"author": 5_000, "category": 50, "shop": 200, "seller": 100_000}
#: Attributes of which a thin world has fewer values.
THINNED = ("author", "shop", "seller")
FIRST_YEAR, LAST_YEAR = 1950, 2025


@dataclass(frozen=True)
class Records:
    """Documents or events."""

    codes: Floats

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def slice(self, start: int, stop: int) -> Records:
        """Some of them, in their order."""
        return Records(np.ascontiguousarray(self.codes[:, start:stop]))

    def then(self, others: Records) -> Records:
        """These and, after them, others."""
        return Records(np.concatenate([self.codes, others.codes], axis=1))

    def later(self) -> Records:
        """The same, of years after the last one of every document."""
        codes = self.codes.copy()
        codes[PLACE["year"]] += LAST_YEAR + 1 - FIRST_YEAR
        return Records(codes)

    def table(self) -> pa.Table:
        """One column for each attribute that some record may have."""
        columns = {}
        for name, row in zip(ATTRIBUTES[:-1], self.codes, strict=False):
            if name in LETTERS:
                columns[name] = _names(name).take(row.astype(np.int64))
            elif name == "price":
                columns[name] = pa.array(row)
            else:
                columns[name] = pa.array(row, from_pandas=True).cast(pa.int64())
        return pa.table(columns)


@cache
def _names(attribute: str) -> pa.Array:
    return pa.array([f"{LETTERS[attribute]}{number}" for number in range(DOMAINS[attribute])])


@dataclass(frozen=True)
class World:
    """Documents, events and subscriptions; ``thin`` divides how many books and people there are.

    A small world is thin, so that its few documents have as much to do with its events.
    """

    thin: int = 1

    def documents(self, n: int) -> Records:
        """The past, oldest first; fewer are the beginning of more. O(n)."""
        return self._records((1,), n, BOOKS // self.thin)

    def events(self, n: int, seed: int = 1) -> Records:
        """Offers that come after the past."""
        return self._records((2, seed), n, (BOOKS + NEW_BOOKS) // self.thin)

    def subscriptions(self, n: int, mix: dict[Family, float], seed: int = 1) -> Subscriptions:
        """``n`` subscriptions, each family with its share, in an order that is drawn. O(n)."""
        draw, families = Draw(SEED, 3, seed), tuple(mix)
        ends = np.round(np.cumsum(list(mix.values())) / sum(mix.values()) * n).astype(np.int64)
        family = np.repeat(np.arange(len(families)), np.diff(ends, prepend=0))
        values = np.zeros((n, max(len(each.asks) for each in families)))
        for number, each in enumerate(families):
            own = np.flatnonzero(family == number)
            for column, ask in enumerate(each.asks):
                drawn = ask.low + draw.below(ask.high - ask.low, len(own))
                drawn = drawn // self.thin if ask.attribute in THINNED else drawn
                values[own, column] = drawn / 100 if ask.attribute == "price" else drawn
        order = np.argsort(draw.raw(n), kind="stable")
        return Subscriptions(families, family[order], values[order])

    def _domain(self, attribute: str) -> int:
        return DOMAINS[attribute] // (self.thin if attribute in THINNED else 1)

    def _records(self, key: tuple[int, ...], n: int, books: int) -> Records:
        """Each attribute has a stream of its own: more records begin with the same ones."""

        def draw(name: str) -> Draw:
            return Draw(SEED, *key, PLACE[name])

        isbn = draw("isbn").below(books, n)
        codes = np.full((len(ATTRIBUTES), n), np.nan)
        codes[PLACE["isbn"]] = isbn
        for name, values in self._books().items():
            codes[PLACE[name]] = values[isbn]
        codes[PLACE["price"]] *= 0.7 + 0.6 * draw("price").unit(n)
        codes[PLACE["price"]] = np.round(codes[PLACE["price"]], 2)
        for name in ("shop", "seller"):
            codes[PLACE[name]] = draw(name).below(self._domain(name), n)
        rating = draw("rating").below(250, n)
        codes[PLACE["rating"]] = np.where(rating < 100, rating, np.nan)
        return Records(codes)

    def _books(self) -> dict[str, Floats]:
        draw, n = Draw(SEED, 0), BOOKS + NEW_BOOKS
        return {
            "author": draw.below(self._domain("author"), n).astype(np.float64),
            "category": draw.below(self._domain("category"), n).astype(np.float64),
            "year": FIRST_YEAR + draw.below(LAST_YEAR + 1 - FIRST_YEAR, n).astype(np.float64),
            "weight": 50 + draw.below(1_950, n).astype(np.float64),
            "price": 8.0 + 92.0 * draw.unit(n),
        }


class Ask(NamedTuple):
    """A predicate with a constant, drawn from ``low`` up to ``high``; prices are in cents."""

    attribute: str
    operator: str
    low: int
    high: int


class Family(NamedTuple):
    """Subscriptions that differ in their constants only: a conjunction and one quantifier."""

    name: str
    event: tuple[Ask, ...]
    joins: tuple[tuple[str, str, str], ...]  # d.first operator third
    document: tuple[Ask, ...] = ()
    universal: bool = False
    last: int = 0
    per: str = ""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Predicates with constants: those on the event, then those on the document."""
        return self.event + self.document

    def text(self, values: list[float]) -> str:
        """The expression with these constants."""
        asked = [
            f"{ask.attribute} {ask.operator} {_literal(ask.attribute, value)}"
            for ask, value in zip(self.asks, values, strict=True)
        ]
        inner = [f"d.{one} {operator} {other}" for one, operator, other in self.joins]
        inner += [f"d.{each}" for each in asked[len(self.event) :]]
        window = f" IN LAST {self.last}" if self.last else ""
        window += f" PER {self.per}" if self.per else ""
        quantifier = "FORALL" if self.universal else "EXISTS"
        quantified = f"{quantifier} d{window} ({' AND '.join(inner)})"
        return " AND ".join([*asked[: len(self.event)], quantified])


def _literal(attribute: str, value: float) -> str:
    if attribute in LETTERS:
        return f"'{LETTERS[attribute]}{value:.0f}'"
    return f"{value:.12g}"


@dataclass(frozen=True)
class Subscriptions:
    """Of each its family and its constants."""

    families: tuple[Family, ...]
    family: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.family)

    def table(self) -> pa.Table:
        """``id``, which is the place, and ``expression``."""
        texts = [
            self.families[family].text(values[: len(self.families[family].asks)])
            for family, values in zip(self.family.tolist(), self.values.tolist(), strict=True)
        ]
        return pa.table({"id": np.arange(len(texts)), "expression": texts})

    def distinct(self) -> int:
        """How many different quantified predicates they have."""
        seen = 0
        for number, family in enumerate(self.families):
            own = self.values[self.family == number][:, len(family.event) : len(family.asks)]
            seen += len(np.unique(own, axis=0))
        return seen


_AUTHOR, _CATEGORY = Ask("author", "=", 0, 5_000), Ask("category", "=", 0, 50)
_CHEAP = Ask("price", "<", 600, 2_500)
_ANY_PRICE = Ask("price", ">", 100, 500)  # every offer costs more
_DEARER, _SAME_BOOK = ("price", ">", "price"), ("isbn", "=", "isbn")
_SAME_AUTHOR, _OLDER = ("author", "=", "author"), ("year", "<", "year")


def _seller(low: int, high: int) -> Ask:
    return Ask("seller", "=", low, high)


FELL = Family("fell", (_CATEGORY, _CHEAP), (_SAME_BOOK, _DEARER))
NEW = Family(
    "new",
    (_AUTHOR, Ask("price", ">=", 500, 2_000), Ask("price", "<=", 2_000, 6_000)),
    (("isbn", "!=", "isbn"),),
    universal=True,
)
LOWEST = Family(
    "lowest",
    (_CATEGORY, Ask("weight", "<", 100, 500)),
    (_DEARER,),
    universal=True,
    last=1_000,
    per="shop",
)
DIP = Family("dip", (_AUTHOR,), (_DEARER,), universal=True, last=3, per="isbn")
EARLIER = Family(
    "earlier", (_AUTHOR,), (_SAME_AUTHOR, _OLDER), document=(Ask("shop", "=", 0, 200),)
)
SELLER = Family("seller", (_AUTHOR,), (_DEARER,), document=(_seller(0, 10_000),))
ONCE = Family("once", (_AUTHOR,), (_SAME_BOOK,), document=(Ask("price", "<", 500, 3_000),))
NEWEST = Family("newest", (_CATEGORY, _CHEAP), (("year", "<=", "year"),), universal=True)
DEAREST = Family("dearest", (_AUTHOR,), (("price", "<", "price"),), universal=True)
LIGHTER = Family("lighter", (_CATEGORY, _CHEAP), (("weight", "<", "weight"),))
KNOWN = Family("known", (_AUTHOR,), (_SAME_BOOK,))
RATED = Family("rated", (_AUTHOR,), (_SAME_BOOK, ("rating", "<", "rating")))
BARGAIN = Family(
    "bargain", (_AUTHOR,), (_SAME_AUTHOR, ("price", "<", "price"), ("weight", "<", "weight"))
)
EITHER = Family("either", (_AUTHOR,), (("price", "<", "price"), ("weight", ">", "weight")))

#: The mix that is measured as a whole, and the share of each family.
BOOKSHOP = {
    FELL: 0.20, NEW: 0.15, LOWEST: 0.05, DIP: 0.05, EARLIER: 0.10, SELLER: 0.10, ONCE: 0.10,
    NEWEST: 0.04, DEAREST: 0.03, LIGHTER: 0.03, KNOWN: 0.05, RATED: 0.05, BARGAIN: 0.03,
    EITHER: 0.02,
}  # fmt: skip


def with_distinct(n: int, *, selective: bool) -> Family:
    """``n`` different quantified predicates; the constants on the event hold rarely, or always."""
    asked = (_AUTHOR,) if selective else (_ANY_PRICE,)
    return Family("distinct", asked, (_SAME_AUTHOR, _OLDER), document=(_seller(0, n),))


def in_vain(share: float) -> dict[Family, float]:
    """A mix of which a share asks for what no document has, in three ways, once years are later.

    An attribute that none has; a seller that none has; a year after that of every document, which
    only the constant on the event and the join together imply.
    """
    some, none = _seller(0, 20_000), _seller(100_000, 120_000)
    future = Ask("year", ">=", LAST_YEAR - 20, LAST_YEAR + 1)
    after = Ask("year", ">=", LAST_YEAR + 1, LAST_YEAR + 2)
    families = {
        Family("possible", (future,), (_SAME_AUTHOR, _DEARER), document=(some,)): 1 - share,
        Family("attribute", (future,), (("translator", "=", "author"),), (some,)): share / 3,
        Family("constant", (future,), (_SAME_AUTHOR,), document=(none,)): share / 3,
        Family("implied", (after,), (("year", ">=", "year"),), document=(some,)): share / 3,
    }
    return {family: own for family, own in families.items() if own}
