"""A shop's price alerts, from subscriptions to reasons: ``make demo``.

Everything is drawn from one seed: 100,000 standing wishes in five forms, and batches of offers as
JSON text, one line each, as a queue would deliver them::

    price alert   product = 'Heron tent 4' AND price <= 180
    wish          brand = 'Heron' AND category = 'tent' AND colour IN ('red') AND price < 200
    bargain       product = 'Heron tent 4' AND (discount >= 0.4 OR price < 30)
    back in stock product = 'Heron tent 4' AND stock > 0 AND NOT used AND seller.country = 'FI'
    search        title LIKE '%waterproof%' AND category = 'tent' AND price BETWEEN 20 AND 25
                  AND seller.rating >= 4.5
"""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import bittern
from bittern.engine.explain import Explanation

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 7
SUBSCRIPTIONS = 100_000
BATCHES, BATCH = 5, 10_000
_BRANDS = ("Heron", "Egret", "Stork", "Ibis", "Crane", "Avocet", "Curlew", "Plover", "Dunlin")
_CATEGORIES = ("tent", "boots", "jacket", "stove", "rucksack", "lamp", "map", "bottle", "bicycle")
_COLOURS = ("black", "blue", "green", "grey", "orange", "red", "white", "yellow")
_WORDS = ("waterproof", "ultralight", "winter", "folding", "merino", "carbon", "vintage", "repair")
_COUNTRIES = ("DE", "DK", "EE", "FI", "IS", "LT", "LV", "NO", "PL", "SE")
_MODELS = 12


class Shop(NamedTuple):
    """Everything that is drawn comes from here."""

    random: np.random.Generator

    def one_of(self, names: tuple[str, ...]) -> str:
        """Any of them, with the same chance each."""
        return names[int(self.random.integers(len(names)))]

    def between(self, low: int, high: int) -> int:
        """Any whole number from ``low`` to ``high``."""
        return int(self.random.integers(low, high + 1))

    def product(self) -> tuple[str, str, str]:
        """Brand, category and product name; the first models sell most."""
        brand, category = self.one_of(_BRANDS), self.one_of(_CATEGORIES)
        model = 1 + int(_MODELS * float(self.random.random()) ** 2)
        return brand, category, f"{brand} {category} {model}"

    def subscriptions(self, n: int) -> Iterator[tuple[str, str]]:
        """Ids and expressions of ``n`` standing wishes."""
        forms = {
            "alert": self._alert,
            "wish": self._wish,
            "bargain": self._bargain,
            "back": self._back,
            "search": self._search,
        }
        for number in range(n):
            kind = self.one_of(
                ("alert", "alert", "alert", "wish", "wish", "bargain", "back", "search")
            )
            yield f"{kind}-{number}", forms[kind]()

    def _alert(self) -> str:
        return f"product = '{self.product()[2]}' AND price <= {self.between(10, 150)}"

    def _wish(self) -> str:
        brand, category, _ = self.product()
        colours = f"'{self.one_of(_COLOURS)}', '{self.one_of(_COLOURS)}'"
        price = self.between(20, 120)
        return (
            f"brand = '{brand}' AND category = '{category}' "
            f"AND colour IN ({colours}) AND price < {price}"
        )

    def _bargain(self) -> str:
        product = self.product()[2]
        discount, price = self.between(30, 60) / 100, self.between(10, 40)
        return f"product = '{product}' AND (discount >= {discount} OR price < {price})"

    def _back(self) -> str:
        country = self.one_of(_COUNTRIES)
        return (
            f"product = '{self.product()[2]}' AND stock > 0 AND NOT used "
            f"AND seller.country = '{country}'"
        )

    def _search(self) -> str:
        low = self.between(10, 90)
        return (
            f"title LIKE '%{self.one_of(_WORDS)}%' AND category = '{self.one_of(_CATEGORIES)}' "
            f"AND price BETWEEN {low} AND {low + 5} AND seller.rating >= 4.5"
        )

    def offers(self, n: int) -> list[str]:
        """``n`` events as JSON text."""
        return [json.dumps(self._offer()) for _ in range(n)]

    def _offer(self) -> dict[str, Any]:
        brand, category, product = self.product()
        offer: dict[str, Any] = {
            "product": product,
            "brand": brand,
            "category": category,
            "title": f"{product}, {self.one_of(_WORDS)}, {self.one_of(_WORDS)}",
            "colour": self.one_of(_COLOURS),
            "price": self.between(900, 30_000) / 100,
            "stock": self.between(0, 9),
            "used": self.between(0, 3) == 0,
            "seller": {"country": self.one_of(_COUNTRIES), "rating": self.between(20, 50) / 10},
        }
        if self.between(0, 4) == 0:
            offer["discount"] = self.between(5, 60) / 100
        return offer


def main() -> None:
    """Register, match, show three alerts, and say why another wish did not fire."""
    shop = Shop(np.random.default_rng(SEED))
    subscriptions = dict(shop.subscriptions(SUBSCRIPTIONS))
    warm_up, *batches = [shop.offers(BATCH) for _ in range(1 + BATCHES)]
    # The first build and match after an installation compile: here, and not while the clock runs.
    few = itertools.islice(subscriptions.items(), 1_000)
    bittern.Matcher(bittern.Index.build(few)).match(warm_up)

    started = time.perf_counter()
    index = bittern.Index.build(subscriptions)
    seconds = time.perf_counter() - started
    statistics = index.statistics()
    print(f"Registered {len(index):,} subscriptions in {seconds:.1f} s:")
    print(
        f"  {statistics['classes']:,} different expressions over {statistics['attributes']} "
        f"attributes, {statistics['bytes'] / 1e6:.1f} MB."
    )

    matcher = bittern.Matcher(index)
    matcher.match(warm_up)
    started = time.perf_counter()
    found = [matcher.match(batch) for batch in batches]
    seconds = time.perf_counter() - started
    n_events, alerts = BATCHES * BATCH, sum(int(matches.counts.sum()) for matches in found)
    print(f"Matched {n_events:,} offers, as JSON text, in {seconds:.2f} s on one core:")
    print(f"  {n_events / seconds:,.0f} offers/s, {alerts:,} alerts, {alerts / n_events:.1f} each.")

    number, ids = _example(found[0])
    offer = batches[0][number]
    print(f"\nFor example\n  {offer}\nalerts, among others,")
    for id_ in ids:
        print(f"  {id_:<15}{index.expression(id_)}")
    print(f"\nand why not this one?\n{_near_miss(index, offer)}")


def _example(matches: bittern.Matches) -> tuple[int, list[str]]:
    """The first offer with alerts of three kinds, and one of each."""
    for event in range(len(matches)):
        kinds = {str(id_).split("-")[0]: str(id_) for id_ in matches.ids(event)}
        if len(kinds) >= 3:
            return event, sorted(kinds.values())[:3]
    raise AssertionError("with this seed there is one")


def _near_miss(index: bittern.Index, offer: str) -> Explanation:
    """The first wish for this product that only one predicate kept from firing."""
    product = json.loads(offer)["product"]
    for id_, text in zip(index.ids.to_pylist(), index.texts.to_pylist(), strict=True):
        if text.startswith(f"product = '{product}'"):
            why = bittern.explain(index, offer, id_)
            if not why.matched and sum(not step.truth for step in why.predicates()) == 1:
                return why
    raise AssertionError("with this seed there is one")


if __name__ == "__main__":
    main()
