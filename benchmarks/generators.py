"""How the subscriptions and events of each workload are made.

A conjunction is a run of codes into a small vocabulary of predicate texts, so that a million
expressions are one Arrow ``take`` and one Arrow ``join``::

    vocabulary   0: "a0 = 7"    1: "a0 <= 9"    2: "a3 >= 2"   ...
    codes        0 2 | 1 | 2 1                  offsets 0 2 3 5
    texts        "a0 = 7 AND a3 >= 2", "a0 <= 9", "a3 >= 2 AND a0 <= 9"

Trees are drawn level by level from the root and written level by level from the leaves, again
with one ``take`` and one ``join`` per level.

Cost: O(predicates), no Python loop over subscriptions or events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from benchmarks.draw import Draw, Flags, Floats, Ints

DENSE_VALUES, DENSE_WIDTH = 1_000, 100
SHOP_VALUES, SHOP_EVENT = 50, 20
ADS_ATTRIBUTES, ADS_LARGEST, ADS_EVENT = 122, 56, 20
STREETS, BLOCKS = 2_000, 4_000
NESTED_ATTRIBUTES, NESTED_EVENT = 50, 30
N_WORDS = 5_000
CONSONANTS, VOWELS = "bcdfghjklmnprstvwz", "aeiou"


@dataclass(frozen=True)
class Vocabulary:
    """All predicates a workload can ask for: ``text`` says ``low <= attribute <= high``."""

    attributes: list[str]
    text: pa.Array
    attribute: Ints
    low: Any
    high: Any


@dataclass(frozen=True)
class Conjunctions:
    """Subscription i is the AND of the predicates ``codes[offsets[i] : offsets[i + 1]]``."""

    vocabulary: Vocabulary
    codes: Ints
    offsets: Ints

    def texts(self) -> pa.Array:
        """Write the expressions."""
        predicates = self.vocabulary.text.take(pa.array(self.codes))
        lists = pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), predicates)
        return pc.binary_join(lists, " AND ")


def _concatenate(*parts: Any) -> pa.Array:
    """Element-wise concatenation of strings and constants."""
    return pc.binary_join_element_wise(*parts, "")


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _map_table(names: list[str], attributes: Ints, values: Ints) -> pa.Table:
    """One row per event, every event with as many entries as ``attributes`` has columns."""
    rows, count = attributes.shape
    keys = pa.array(names).take(pa.array(attributes.ravel()))
    offsets = pa.array(np.arange(0, (rows + 1) * count, count, dtype=np.int32))
    return pa.table({"attributes": pa.MapArray.from_arrays(offsets, keys, pa.array(values))})


def _wide_table(names: list[str], values: Ints, present: Flags) -> pa.Table:
    columns = zip(values.T, present.T, strict=True)
    return pa.table([pa.array(value, mask=~held) for value, held in columns], names=names)


# shop: the default of the OpIndex paper, very sparse ---------------------------------------------


def _shop_vocabulary(n_attributes: int) -> Vocabulary:
    """Code = (attribute * 3 + operator) * 50 + value - 1, the operators being = <= >=."""
    attributes = [f"a{i}" for i in range(n_attributes)]
    values = np.tile(np.arange(1, SHOP_VALUES + 1), n_attributes * 3)
    heads = pa.array(
        [f"{name} {operator} " for name in attributes for operator in ("=", "<=", ">=")]
    )
    heads = heads.take(pa.array(np.repeat(np.arange(n_attributes * 3), SHOP_VALUES)))
    text = _concatenate(heads, pa.array(values).cast(pa.string()))
    operator = np.tile(np.repeat(np.arange(3), SHOP_VALUES), n_attributes)
    low, high = np.where(operator == 1, 1, values), np.where(operator == 2, SHOP_VALUES, values)
    owner = np.repeat(np.arange(n_attributes), 3 * SHOP_VALUES)
    return Vocabulary(attributes, text, owner, low, high)


def shop_subscriptions(n_attributes: int, draw: Draw, n: int) -> Conjunctions:
    """One to four predicates on different attributes, every attribute equally likely."""
    attributes = draw.distinct(n, 4, n_attributes).ravel()
    operators = draw.weighted(np.array([4.0, 3.0, 3.0]), 4 * n)
    codes = (attributes * 3 + operators) * SHOP_VALUES + draw.below(SHOP_VALUES, 4 * n)
    sizes = 1 + draw.below(4, n)
    used = (np.arange(4) < sizes[:, None]).ravel()
    return Conjunctions(_shop_vocabulary(n_attributes), codes[used], _offsets(sizes))


def shop_events(n_attributes: int, draw: Draw, n: int) -> pa.Table:
    """Twenty different attributes per event, as a map."""
    attributes = draw.distinct(n, SHOP_EVENT, n_attributes)
    values = 1 + draw.below(SHOP_VALUES, attributes.size)
    return _map_table([f"a{i}" for i in range(n_attributes)], attributes, values)


# dense, optional, ranges, wide: five or ten predicates over few attributes ----------------------


def _dense_vocabulary(n_attributes: int) -> Vocabulary:
    """Per attribute 1,000 equalities, then the 901 ranges that are 100 values wide."""
    attributes = [f"a{i}" for i in range(n_attributes)]
    lows = np.concatenate([np.arange(DENSE_VALUES), np.arange(DENSE_VALUES - DENSE_WIDTH + 1)])
    highs = lows + np.where(np.arange(len(lows)) < DENSE_VALUES, 0, DENSE_WIDTH - 1)
    tails = [
        f" = {low}" if low == high else f" BETWEEN {low} AND {high}"
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]
    text = pa.array([name + tail for name in attributes for tail in tails])
    owner = np.repeat(np.arange(n_attributes), len(lows))
    return Vocabulary(
        attributes, text, owner, np.tile(lows, n_attributes), np.tile(highs, n_attributes)
    )


def dense_subscriptions(n_attributes: int, equal: float, draw: Draw, n: int) -> Conjunctions:
    """Five predicates on different attributes; the share ``equal`` of them are ``=``."""
    vocabulary = _dense_vocabulary(n_attributes)
    attributes = draw.distinct(n, 5, n_attributes).ravel()
    equality = draw.unit(5 * n) < equal
    n_ranges = DENSE_VALUES - DENSE_WIDTH + 1
    value = draw.below(np.where(equality, DENSE_VALUES, n_ranges), 5 * n)
    codes = attributes * (DENSE_VALUES + n_ranges) + np.where(equality, 0, DENSE_VALUES) + value
    return Conjunctions(vocabulary, codes, np.arange(0, 5 * n + 1, 5))


def wide_subscriptions(n_attributes: int, width: int, draw: Draw, n: int) -> Conjunctions:
    """Ten ranges of ``width`` values each, on different attributes."""
    names = [f"a{i}" for i in range(n_attributes)]
    lows = np.arange(DENSE_VALUES - width + 1)
    tails = [f" BETWEEN {low} AND {low + width - 1}" for low in lows.tolist()]
    vocabulary = Vocabulary(
        names,
        pa.array([name + tail for name in names for tail in tails]),
        np.repeat(np.arange(n_attributes), len(lows)),
        np.tile(lows, n_attributes),
        np.tile(lows + width - 1, n_attributes),
    )
    attributes = draw.distinct(n, 10, n_attributes).ravel()
    codes = attributes * len(lows) + draw.below(len(lows), 10 * n)
    return Conjunctions(vocabulary, codes, np.arange(0, 10 * n + 1, 10))


def present_events(n_attributes: int, present: int, draw: Draw, n: int) -> pa.Table:
    """Integers below 1,000 in ``present`` of the columns, NULL in the others."""
    held = np.zeros((n, n_attributes), np.bool_)
    np.put_along_axis(held, draw.distinct(n, present, n_attributes), True, axis=1)
    values = draw.below(DENSE_VALUES, n * n_attributes).reshape(n, n_attributes)
    return _wide_table([f"a{i}" for i in range(n_attributes)], values, held)


# equality: two string equalities, events as columns and as JSON text ------------------------------


def _words(n: int) -> list[str]:
    """``n`` different pronounceable words of four to eight letters."""
    syllables = [first + second for first in CONSONANTS for second in VOWELS]
    base = len(syllables)
    words = []
    for i in range(n):
        # Multiplication by a number prime to base**2 spreads neighbours over the alphabet.
        spread = i * 7_919 % base**2
        word = syllables[spread // base] + syllables[spread % base]
        words.append(word + ("", "nt", syllables[i % base], "rdan")[i % 4])
    return words


def _equality_values() -> tuple[list[str], list[str]]:
    names = _words(BLOCKS)
    return [f"{name} street" for name in names[:STREETS]], [f"{name}-4" for name in names]


def equality_subscriptions(draw: Draw, n: int) -> Conjunctions:
    """One street and one block, both drawn evenly."""
    streets, blocks = _equality_values()
    text = [f"street = '{value}'" for value in streets] + [f"block = '{value}'" for value in blocks]
    owner = np.repeat(np.arange(2), [STREETS, BLOCKS])
    values = pa.array(streets + blocks)
    vocabulary = Vocabulary(["street", "block"], pa.array(text), owner, values, values)
    codes = np.stack([draw.below(STREETS, n), STREETS + draw.below(BLOCKS, n)], axis=1).ravel()
    return Conjunctions(vocabulary, codes, np.arange(0, 2 * n + 1, 2))


def equality_events(draw: Draw, n: int) -> pa.Table:
    """Lots of a city: the two attributes that subscriptions name, and seven they do not."""
    streets, blocks = _equality_values()
    street, block = draw.below(STREETS, n), draw.below(BLOCKS, n)
    lot, number = draw.below(200, n), draw.below(3_000, n)
    digits = pa.array([f"{i:04d}" for i in range(3_000)])
    return pa.table(
        {
            "map_block_lot": _concatenate(
                digits.take(pa.array(block % 3_000)), digits.take(pa.array(lot))
            ),
            "block": pa.array(blocks).take(pa.array(block)),
            "lot": digits.take(pa.array(lot)),
            "from_number": digits.take(pa.array(number)),
            "to_number": digits.take(pa.array(np.minimum(number + 8, 2_999))),
            "street": pa.array(streets).take(pa.array(street)),
            "street_type": pa.array(["ST", "AVE", "BLVD", "LN"]).take(pa.array(street % 4)),
            "odd_even": pa.array(["E", "O"]).take(pa.array(number % 2)),
            "zone": pa.array([f"zone {i}" for i in range(40)]).take(pa.array(block % 40)),
        }
    )


def equality_json(draw: Draw, n: int) -> pa.Array:
    """About 830 bytes each, most of them an outline that no subscription reads."""
    table = equality_events(draw, n)
    parts: list[Any] = []
    for name in table.column_names:
        parts += [f'{"," if parts else "{"}"{name}":"', table[name].combine_chunks(), '"']
    corners = np.round(-122.4 + 0.05 * draw.unit(64 * 32), 12).reshape(64, 16, 2).tolist()
    outlines = pa.array([str(corner) for corner in corners])
    parts += [',"outline":', outlines.take(pa.array(draw.below(64, n))), "}"]
    return _concatenate(*parts)


# ads: the statistics of a published advertising catalog ------------------------------------------


def _ads_cardinalities() -> Ints:
    """30 to 3,000 values per attribute, spread evenly on a logarithmic scale."""
    place = (60 + np.arange(ADS_ATTRIBUTES) * 37) % ADS_ATTRIBUTES
    return (30 * 100.0 ** (place / (ADS_ATTRIBUTES - 1)) + 0.5).astype(np.int64)


def _ads_vocabulary() -> Vocabulary:
    """Per attribute with c values: c times ``=``, c ranges 5 % wide, c ``<=``, c ``>=``."""
    attributes = [f"a{i}" for i in range(ADS_ATTRIBUTES)]
    text: list[str] = []
    lows: list[int] = []
    highs: list[int] = []
    for name, count in zip(attributes, _ads_cardinalities().tolist(), strict=True):
        width = max(count // 20, 2)
        starts = [min(value, count - width) for value in range(count)]
        text += [f"{name} = {value}" for value in range(count)]
        text += [f"{name} BETWEEN {start} AND {start + width - 1}" for start in starts]
        text += [f"{name} <= {value}" for value in range(count)]
        text += [f"{name} >= {value}" for value in range(count)]
        lows += [*range(count), *starts, *[0] * count, *range(count)]
        highs += [*range(count), *[start + width - 1 for start in starts]]
        highs += [*range(count), *[count - 1] * count]
    owner = np.repeat(np.arange(ADS_ATTRIBUTES), 4 * _ads_cardinalities())
    return Vocabulary(attributes, pa.array(text), owner, np.array(lows), np.array(highs))


def ads_subscriptions(draw: Draw, n: int) -> Conjunctions:
    """One to 56 predicates, eight on average, on attributes and values that follow Zipf."""
    cardinalities = _ads_cardinalities()
    k = np.arange(ADS_LARGEST)
    # 1 plus a negative binomial number (four successes at 4/11): mean 8, few of one predicate.
    share = (k + 1.0) * (k + 2.0) * (k + 3.0) * (7 / 11) ** k
    # One in a thousand has any size, so that the largest occur in every full run.
    sizes = 1 + draw.weighted(0.999 * share / share.sum() + 0.001 / ADS_LARGEST, n)
    blocks = []
    for start in range(0, n, 1 << 15):  # a race holds every attribute's time: keep it in cache
        size = sizes[start : start + (1 << 15), None]
        raced = draw.race(len(size), ADS_LARGEST, _zipf(ADS_ATTRIBUTES))
        blocks.append(raced[np.arange(ADS_LARGEST) < size])
    attributes = np.concatenate(blocks)
    bound = cardinalities[attributes]
    operators = draw.weighted(np.array([60.0, 36.0, 2.0, 2.0]), len(attributes))
    first = _offsets(4 * cardinalities)[attributes]
    return Conjunctions(
        _ads_vocabulary(), first + operators * bound + draw.skewed(bound), _offsets(sizes)
    )


def ads_events(draw: Draw, n: int) -> pa.Table:
    """Twenty different attributes per event, popular ones more often, as a map."""
    attributes = draw.race(n, ADS_EVENT, _zipf(ADS_ATTRIBUTES))
    values = draw.skewed(_ads_cardinalities()[attributes.ravel()])
    return _map_table([f"a{i}" for i in range(ADS_ATTRIBUTES)], attributes, values)


def _zipf(n: int) -> Floats:
    return 1.0 / np.arange(1.0, n + 1.0)


# strings: patterns made of the words that values are made of --------------------------------------


def strings_subscriptions(draw: Draw, n: int) -> pa.Array:
    """One pattern of two or three words each: prefix, suffix, contains, regex in turn."""
    words = pa.array(_words(N_WORDS))
    one, two, three = (words.take(pa.array(draw.weighted(_zipf(N_WORDS), n))) for _ in range(3))
    attribute = pa.array(["title", "path"]).take(pa.array(draw.below(2, n)))
    gap = pc.if_else(pc.equal(attribute, "title"), " ", "/")
    forms = [
        _concatenate(attribute, " LIKE '", one, gap, two, "%'"),
        _concatenate(attribute, " LIKE '%", one, gap, two, "'"),
        _concatenate(attribute, " LIKE '%", one, gap, two, "%'"),
        _concatenate(attribute, " RLIKE '", one, "[a-z]*", gap, "(", two, "|", three, ")'"),
    ]
    return pc.choose(pa.array(np.arange(n) % len(forms)), *forms)


def strings_events(draw: Draw, n: int) -> pa.Table:
    """Give every event a title of words and a path of words."""
    return pa.table({"title": _phrases(draw, n, " "), "path": _phrases(draw, n, "/")})


def _phrases(draw: Draw, n: int, gap: str) -> pa.Array:
    """Three to nine Zipf-distributed words, cut at 60 letters; never fewer than 14."""
    counts = 3 + draw.below(7, n)
    chosen = draw.weighted(_zipf(N_WORDS), int(counts.sum()))
    words = pa.array(_words(N_WORDS)).take(pa.array(chosen))
    lists = pa.ListArray.from_arrays(pa.array(_offsets(counts), pa.int32()), words)
    return pc.utf8_slice_codeunits(pc.binary_join(lists, gap), 0, 60)


# nested: trees, drawn level by level from the root and written level by level from the leaves -----


def nested_subscriptions(draw: Draw, n: int) -> pa.Array:
    """AND and OR of two or three operands, alternating at random, down to depth six."""
    vocabulary = _nested_vocabulary()
    levels: list[tuple[Ints, Flags, Flags, Ints]] = []
    negated = np.zeros(n, np.bool_)
    for inner_share in (1.0, 0.5, 0.4, 0.4, 0.4, 0.0):
        nodes = len(negated)
        arity = np.where(draw.unit(nodes) < inner_share, 2 + draw.below(2, nodes), 0)
        either = draw.unit(nodes) < (0.6 if levels else 0.1)
        levels.append((arity, either, negated, draw.below(len(vocabulary), nodes)))
        # NOT stands where people write it, last in an AND: a lone NOT matches almost everything.
        last = np.zeros(int(arity.sum()), np.bool_)
        last[np.cumsum(arity)[(arity > 0) & ~either] - 1] = True
        negated = last & (draw.unit(len(last)) < 0.3)
    children = pa.array([], pa.string())
    for arity, either, negated, leaf in reversed(levels):
        lists = pa.ListArray.from_arrays(pa.array(_offsets(arity), pa.int32()), children)
        gap = pc.if_else(pa.array(either), " OR ", " AND ")
        joined = _concatenate("(", pc.binary_join(lists, gap), ")")
        text = pc.if_else(pa.array(arity > 0), joined, vocabulary.take(pa.array(leaf)))
        children = _concatenate(pc.if_else(pa.array(negated), "NOT ", ""), text)
    return children


def _nested_vocabulary() -> pa.Array:
    """Equal shares of equalities, sets of three values and ranges 2 % wide."""
    tails = [
        tail
        for value in range(DENSE_VALUES)
        for tail in (
            f" = {value}",
            f" IN ({value}, {(value + 331) % DENSE_VALUES}, {(value + 662) % DENSE_VALUES})",
            f" BETWEEN {value} AND {value + 19}",
        )
    ]
    return pa.array([f"a{i}{tail}" for i in range(NESTED_ATTRIBUTES) for tail in tails])
