"""From read texts to rank space and classes, in whole columns.

Nothing here loops over subscriptions in Python. A text is a shape id and raw parameters
(``language/shapes.py``); every distinct parameter text is read once; then tests, channels and
constants are arrays::

    texts      a <= 7            b = 'x' AND a <= 9
    shapes     0                 1
    raw        a  7              b  'x'  a  9          -> dictionary codes
    tests      (a, number, start..7)   (b, string, 'x'..'x')   (a, number, start..9)
    constants  channel a: 7 9    channel b: 'x'        -> ranks, so a <= 9 is [start, 2*1 + 1]

Cost: O(parameters), plus sorting the distinct constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import Int32s, Int64s, Mask, starts_of
from bittern.errors import OptionError
from bittern.language.literals import attribute_name
from bittern.language.templates import Template
from bittern.model.classes.classes import Classes, StructureArrays, classify
from bittern.model.classes.expand import ABSENT, FIRST_READER, PLAN_COLUMNS, READERS, ShapePlan
from bittern.model.classes.structure import Structure
from bittern.model.numbers import NumberColumns
from bittern.model.rank.space import (
    BOOLEAN,
    PATTERN,
    REVERSED,
    SINGLE_KINDS,
    RankSpace,
    build_rank_space,
)
from bittern.model.strings import StringTable, arrow_integers, arrow_strings

if TYPE_CHECKING:
    from bittern.model.patterns.sets import PatternSet

#: Up to this many (channel, constant) combinations a table is faster than sorting.
_TABLE_LIMIT = 1 << 25
#: And only if it is not much larger than what would be sorted.
_TABLE_FACTOR = 16
_MAX_CELLS = 2**30
_MOST_INT32 = 2**31 - 1
#: In place of a key: a pattern's channel has none.
_NO_KEY = -1
_ALL = slice(None)
#: In names that are not plain words.
_BACK_QUOTE = ord("`")

#: Places in long arrays, of as many bytes as these need.
Indices: TypeAlias = Int32s | Int64s


class Compiled(NamedTuple):
    """Subscriptions in rank space."""

    rank: RankSpace
    patterns: dict[int, PatternSet]  # by attribute
    classes: Classes
    class_of: Int32s
    operators: Counter[str]


class _Plans(NamedTuple):
    """The tests of all plans, one after the other."""

    counts: Int64s  # tests of each shape
    starts: Int64s
    structure_of: Int32s
    structures: StructureArrays
    columns: dict[str, Int32s]  # one array per field of a test template


class _Tests:
    """The tests of all subscriptions, one after the other.

    There are many, so of each no more is kept than its number among the tests of all plans, and
    where its subscription's parameters begin. What the plans say of it is looked up each time.
    """

    def __init__(self, plans: _Plans, shape_ids: Int32s, first_parameters: Int64s) -> None:
        self._columns = plans.columns
        self.counts = plans.counts[shape_ids]
        starts = starts_of(self.counts)
        place = np.int32 if starts[-1] <= _MOST_INT32 else np.int64
        self.number = np.repeat((plans.starts[shape_ids] - starts[:-1]).astype(place), self.counts)
        self.number += np.arange(len(self.number), dtype=place)
        last = first_parameters[-1] if len(first_parameters) else 0
        place = np.int32 if last <= _MOST_INT32 // 2 else np.int64
        self._first_parameters = np.repeat(first_parameters.astype(place), self.counts)

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, name: str) -> Int32s:
        """What the plans say of each test."""
        said: Int32s = self._columns[name][self.number]
        return said

    def at(self, name: str, which: Indices) -> Int32s:
        """What they say of some."""
        said: Int32s = self._columns[name][self.number[which]]
        return said

    def have(self, mask: Mask) -> Indices:
        """Which tests are among these of the plans."""
        found = np.flatnonzero(mask[self.number])
        return found.astype(np.int32) if len(self) <= _MOST_INT32 else found

    def parameters(self, name: str, which: Indices | slice = _ALL) -> Indices:
        """Where the parameters stand that a column of the plans names."""
        found: Indices = self._first_parameters[which] + self._columns[name][self.number[which]]
        return found


def compile_subscriptions(
    templates: Sequence[Template | ShapePlan], shape_ids: Int32s, parameters: pa.DictionaryArray
) -> Compiled:
    """Compile texts read by ``Shapes`` (no bad ones among them).

    A template that is compiled again and again may come as its plan.
    """
    used, own = np.unique(shape_ids, return_inverse=True)
    shape_ids = own.astype(np.int32)
    chosen = [templates[i] for i in used.tolist()]
    plans = [each if isinstance(each, ShapePlan) else ShapePlan.of(each) for each in chosen]
    plan = _plans(plans)
    slots = np.array([len(each.template.kinds) for each in plans] or [0], dtype=np.int64)
    words = parameters.dictionary
    codes: Int32s = np.asarray(np.from_dlpack(parameters.indices), dtype=np.int32)
    first_parameter: Int64s = starts_of(slots[shape_ids])[:-1]

    tests = _Tests(plan, shape_ids, first_parameter)
    names, attributes = _attributes(codes, tests.parameters("attribute"), words)
    patterns, pattern_of = _read_patterns(tests, codes, words)
    channels, channel_attributes, channel_kinds, channel_patterns = _channels(
        tests["kind"], attributes, pattern_of, len(names)
    )
    del attributes, pattern_of
    low, high, rank = _rank(
        tests, plan, codes, words, channels, channel_attributes, channel_kinds, names
    )
    counts = tests.counts
    del tests
    never = np.array([each.is_never for each in plans] or [False])[shape_ids]
    channels, low, high, counts32 = _with_never(channels, low, high, counts, never)
    classes, class_of = classify(
        channels,
        low,
        high,
        counts32,
        plan.structure_of[shape_ids],
        plan.structures,
        rank.n_channels,
    )
    times_used = np.bincount(shape_ids, minlength=len(plans))
    operators: Counter[str] = Counter()
    for each, n in zip(plans, times_used.tolist(), strict=True):
        for operator in each.operators:
            operators[operator] += n
    sets = _pattern_sets(patterns, channel_patterns, channel_attributes)
    return Compiled(rank, sets, classes, class_of, operators)


def _plans(plans: Sequence[ShapePlan]) -> _Plans:
    structures: list[Structure] = []
    numbers: dict[bytes, int] = {}
    structure_of = np.zeros(max(1, len(plans)), dtype=np.int32)
    for i, plan in enumerate(plans):
        if plan.structure is None:
            continue  # number 0: a plain conjunction
        number = numbers.setdefault(plan.structure.key, len(structures) + 1)
        if number > len(structures):
            structures.append(plan.structure)
        structure_of[i] = number
    none = np.empty((0, len(PLAN_COLUMNS)), dtype=np.int32)
    tests = np.ascontiguousarray(np.concatenate([none, *(plan.tests for plan in plans)]).T)
    counts = np.array([len(plan.tests) for plan in plans] or [0], dtype=np.int64)
    return _Plans(
        counts,
        starts_of(counts)[:-1],
        structure_of,
        StructureArrays.of(structures),
        dict(zip(PLAN_COLUMNS, tests, strict=True)),
    )


def _distinct(values: npt.NDArray[Any], limit: int) -> Int64s:
    """The distinct ones of small non-negative integers, ascending. O(values + limit)."""
    used = np.zeros(limit, dtype=np.bool_)
    used[values] = True
    return np.flatnonzero(used)


def _chosen(words: pa.Array, codes: Int64s) -> pa.Array:
    """Some of the distinct parameters."""
    return words.take(arrow_integers(codes))


def _attributes(codes: Int32s, places: Indices, words: pa.Array) -> tuple[StringTable, Int32s]:
    """The attribute names, and for each test the number of its attribute."""
    of_test = codes[places]
    number_of_code = np.empty(len(words), dtype=np.int32)
    used = _distinct(of_test, len(words))
    chosen = _chosen(words, used)
    data, offsets, _ = arrow_strings(chosen)
    data = data[offsets[0] : offsets[-1]]
    if not (data == _BACK_QUOTE).any():  # they are what they stand for
        number_of_code[used] = np.arange(len(used), dtype=np.int32)
        return StringTable.build(data, offsets - offsets[0], 0), number_of_code[of_test]
    names = list(map(attribute_name, chosen.to_pylist()))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number_of_code[used] = [numbers[name] for name in names]
    return StringTable.of([name.encode() for name in numbers], 0), number_of_code[of_test]


def _read_patterns(
    tests: _Tests, codes: Int32s, words: pa.Array
) -> tuple[list[tuple[int, str]], Int32s]:
    """The distinct patterns (kind, text), and for each test the number of its pattern or -1.

    No numbers, if there are no patterns.
    """
    which = np.flatnonzero(tests["kind"] == PATTERN)
    if not len(which):
        return [], np.empty(0, dtype=np.int32)
    pattern_of = np.full(len(tests), -1, dtype=np.int32)
    numbers: dict[tuple[int, str], int] = {}
    test_codes = codes[tests.parameters("pattern.slot", which)]
    readers = tests.at("pattern.reader", which)
    for reader in np.unique(readers).tolist():
        own = readers == reader
        number_of_code = np.empty(len(words), dtype=np.int32)
        used = _distinct(test_codes[own], len(words))
        for code, raw in zip(used.tolist(), _chosen(words, used).to_pylist(), strict=True):
            pattern = READERS[reader](raw)
            number_of_code[code] = numbers.setdefault(pattern, len(numbers))
        pattern_of[which[own]] = number_of_code[test_codes[own]]
    return list(numbers), pattern_of


def _channels(
    kinds: Int32s, attributes: Int32s, pattern_of: Int32s, n_attributes: int
) -> tuple[Int32s, Int32s, npt.NDArray[np.uint8], Int32s]:
    """Number the channels by (kind, attribute), patterns last by (attribute, pattern).

    Returns the channel of each test, the attribute and kind of each channel, and the pattern of
    each pattern channel.
    """
    is_pattern = np.flatnonzero(kinds == PATTERN)
    # Attributes are fewer than 2**28: each takes cells of its own.
    keys = kinds * np.int32(n_attributes) + attributes
    pattern_keys = attributes[is_pattern].astype(np.int64) << 32 | pattern_of[is_pattern]
    if len(is_pattern):
        keys[is_pattern] = _NO_KEY
    n_keys = max(1, SINGLE_KINDS * n_attributes)
    single = _distinct(keys[keys != _NO_KEY] if len(is_pattern) else keys, n_keys)
    channel_of_key = np.full(n_keys, -1, dtype=np.int32)
    channel_of_key[single] = np.arange(len(single))
    distinct, inverse = np.unique(pattern_keys, return_inverse=True)
    channels = channel_of_key[keys]
    channels[is_pattern] = len(single) + inverse
    channel_attributes = np.concatenate((single % max(1, n_attributes), distinct >> 32))
    channel_kinds = np.concatenate(
        (single // max(1, n_attributes), np.full(len(distinct), PATTERN, dtype=np.int64))
    )
    return (
        channels,
        channel_attributes.astype(np.int32),
        channel_kinds.astype(np.uint8),
        (distinct & 0xFFFFFFFF).astype(np.int32),
    )


def _pattern_sets(
    patterns: list[tuple[int, str]], channel_patterns: Int32s, channel_attributes: Int32s
) -> dict[int, PatternSet]:
    """One set per attribute; its pattern k is the attribute's k-th pattern channel."""
    owners = channel_attributes[len(channel_attributes) - len(channel_patterns) :]
    if not len(owners):
        return {}
    from bittern.model.patterns.sets import PatternSet  # noqa: PLC0415  only then

    sets = {}
    present, starts = np.unique(owners, return_index=True)
    own = np.split(channel_patterns, starts[1:])
    for attribute, numbers in zip(present.tolist(), own, strict=False):
        chosen = [patterns[i] for i in numbers.tolist()]
        sets[attribute] = PatternSet.build(
            [kind for kind, _ in chosen], [text for _, text in chosen]
        )
    return sets


class _Constants(NamedTuple):
    """Constants of some channels: which distinct values each has, and where each use stands."""

    counts: Int64s  # per channel
    values: Int64s  # rank of the value of each constant, by (channel, rank)
    local: Int32s  # for each use: its place among its channel's constants


def _constants(channels: Int32s, ranks: Int32s, n_channels: int, n_values: int) -> _Constants:
    """Distinct (channel, value) pairs, by table where it is small, else by sorting."""
    keys = channels.astype(np.int64) * n_values
    keys += ranks
    if n_channels * n_values <= min(_TABLE_LIMIT, _TABLE_FACTOR * len(keys)):
        used = np.zeros(n_channels * n_values, dtype=np.bool_)
        used[keys] = True
        distinct = np.flatnonzero(used)
        place = (np.cumsum(used, dtype=np.int32) - np.int32(1))[keys]
    else:
        distinct, inverse = np.unique(keys, return_inverse=True)
        place = inverse.astype(np.int32)
    del keys
    of_channel = distinct // max(1, n_values)
    counts = np.bincount(of_channel, minlength=n_channels)
    place -= starts_of(counts, np.int32)[:-1][channels]
    return _Constants(counts, distinct % max(1, n_values), place)


def _values(
    readers: Int32s, codes: Int32s, words: pa.Array
) -> tuple[list[Any], list[bytes], Int32s]:
    """Distinct numbers and strings in order, and for each use the rank of its value among its own.

    Every (reader, text) pair is read once.
    """
    uses: list[tuple[npt.NDArray[np.bool_], Int64s, list[Any]]] = []
    for reader in np.unique(readers).tolist():
        own = readers == reader
        distinct = _distinct(codes[own], len(words))
        read = READERS[reader]
        uses.append((own, distinct, list(map(read, _chosen(words, distinct).to_pylist()))))
    everything = {value for _, _, values in uses for value in values}
    numbers = sorted(value for value in everything if not isinstance(value, bytes))
    strings = sorted(value for value in everything if isinstance(value, bytes))
    rank_of = {value: i for i, value in enumerate(numbers)}
    rank_of |= {value: i for i, value in enumerate(strings)}
    ranks = np.empty(len(readers), dtype=np.int32)
    rank_of_code = np.empty(len(words), dtype=np.int32)
    for own, distinct, values in uses:
        rank_of_code[distinct] = [rank_of[value] for value in values]
        ranks[own] = rank_of_code[codes[own]]
    return numbers, strings, ranks


def _rank(
    tests: _Tests,
    plan: _Plans,
    codes: Int32s,
    words: pa.Array,
    channels: Int32s,
    channel_attributes: Int32s,
    channel_kinds: npt.NDArray[np.uint8],
    names: StringTable,
) -> tuple[Int32s, Int32s, RankSpace]:
    """Rank all constants; the rank space, and each test's interval of global cells."""
    # An equality's two bounds are the same use of a constant: rank it once.
    low_reader, high_reader = plan.columns["low.reader"], plan.columns["high.reader"]
    same = low_reader == high_reader
    same &= plan.columns["low.slot"] == plan.columns["high.slot"]
    has_low = tests.have(low_reader >= FIRST_READER)
    has_high = tests.have((high_reader >= FIRST_READER) & ~same)
    uses = [("low", has_low), ("high", has_high)]
    readers = np.concatenate([tests.at(f"{end}.reader", which) for end, which in uses])
    use_codes = np.concatenate([codes[tests.parameters(f"{end}.slot", own)] for end, own in uses])
    numbers, strings, ranks = _values(readers, use_codes, words)
    del readers, use_codes
    use_channels = np.concatenate([channels[which] for _, which in uses])

    n_numeric = int(np.count_nonzero(channel_kinds <= BOOLEAN))
    n_ordered = int(np.count_nonzero(channel_kinds <= REVERSED))
    numeric = use_channels < n_numeric
    of_numbers = _constants(use_channels[numeric], ranks[numeric], n_numeric, len(numbers))
    of_strings = _constants(
        use_channels[~numeric] - np.int32(n_numeric),
        ranks[~numeric],
        n_ordered - n_numeric,
        len(strings),
    )
    counts = np.zeros(len(channel_kinds), dtype=np.int64)
    counts[:n_numeric] = of_numbers.counts
    counts[n_numeric:n_ordered] = of_strings.counts
    if int(2 * counts.sum() + len(counts)) > _MAX_CELLS:
        raise OptionError(
            f"the subscriptions use {counts.sum():,} distinct constants; one index holds at most "
            f"{_MAX_CELLS // 2:,}: split the subscriptions"
        )
    ordered = np.zeros(len(channel_kinds), dtype=np.uint8)
    ordered[channels[tests.have(plan.columns["ordered"] == 1)]] = 1
    groups = np.repeat(np.arange(n_numeric, n_ordered, dtype=np.int32), of_strings.counts)
    table = StringTable.of([strings[i] for i in of_strings.values.tolist()], groups)
    columns = NumberColumns.of(numbers).take(of_numbers.values)
    rank = build_rank_space(
        names, channel_attributes, channel_kinds, counts, columns, table, ordered
    )

    place = np.empty(len(use_channels), dtype=np.int32)
    place[numeric], place[~numeric] = of_numbers.local, of_strings.local
    del of_numbers, of_strings, ranks, numeric
    bases = rank.arrays.bases
    place *= np.int32(2)
    place += bases[use_channels]
    del use_channels
    low, high = bases[channels], bases[1:][channels]
    high -= np.int32(1)
    low[tests.have(low_reader == ABSENT)] = -1
    high[tests.have(high_reader == ABSENT)] = -1
    n_low = len(has_low)
    low[has_low] = place[:n_low] + tests.at("low.add", has_low)
    equal = same[tests.number[has_low]]
    which = has_low[equal]
    high[which] = place[:n_low][equal] + tests.at("high.add", which)
    high[has_high] = place[n_low:] + tests.at("high.add", has_high)
    return low, high, rank


def _with_never(
    channels: Int32s, low: Int32s, high: Int32s, counts: Int64s, never: npt.NDArray[np.bool_]
) -> tuple[Int32s, Int32s, Int32s, Int32s]:
    """Give subscriptions that can never match one empty test; they have no others."""
    if never.any():
        places = starts_of(counts)[:-1][never]
        channels = np.insert(channels, places, -1)
        low, high = np.insert(low, places, 0), np.insert(high, places, -1)
        counts = counts + never
    return channels, low, high, counts.astype(np.int32)
