"""Subscriptions of seed 003 that are no plain conjunctions of comparisons: CNF, DNF and prefixes.

A CNF has 1 to k clauses, evenly, and a clause 1 to 4 predicates, evenly; a DNF the same with AND
and OR exchanged. The predicates are those of Table 3, all attributes of a subscription are
distinct, and clauses stand in order of their size, so that few structures are shared by many::

    k = 2   CNF   (p) AND (p OR p OR p)         AND [ T, OR [ T T T ] ]
            DNF   (p) OR (p AND p AND p)        OR [ T, AND [ T T T ] ]

Prefixes: 10,000 numeric attributes, of which a predicate asks ``=``, and 100 of strings, of which
it asks a prefix. Words are made up of syllables, a prefix is the beginning of a word. How many of
an event's attributes are strings, the paper does not tell: here two of 20.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from benchmarks.draw import Draw, Ints
from benchmarks.papers.seed_003_data import (
    SEED,
    Setting,
    Subscriptions,
    Tests,
    Values,
    compiled,
    distinct,
    picker,
    predicates,
    sizes,
)
from bittern.model.classes.structure import AND, OR, TEST, Nested

#: A clause has at most so many predicates, a subscription less than so many clauses.
CLAUSE_SIZE, MOST_CLAUSES = 4, 64
NUMERIC, STRINGS = 10_000, 100
WORDS = 20_000
ONSETS = (*"bcdfghklmnprstvw", "st", "tr", "pl")
VOWELS = (*"aeiou", "ai", "ou")
EVENT_NUMBERS, EVENT_STRINGS = 18, 2


def clauses_tests(setting: Setting, most: int, *, cnf: bool) -> Tests:
    """Subscriptions of 1 to ``most`` clauses."""
    draw = Draw(SEED, 31)
    outer, inner = (AND, OR) if cnf else (OR, AND)
    forms = [
        form
        for n in range(1, most + 1)
        for form in combinations_with_replacement(range(1, CLAUSE_SIZE + 1), n)
    ]
    # A form is found by how often it has each size: sizes in any order are the same form.
    key_of = {int(_form_key(np.array([form]))[0]): i for i, form in enumerate(forms)}
    counts = sizes(draw, setting.n, most)
    clause_sizes = 1 + draw.below(CLAUSE_SIZE, setting.n * most).reshape(setting.n, most)
    clause_sizes[np.arange(most) >= counts[:, None]] = 0
    keys, inverse = np.unique(_form_key(clause_sizes), return_inverse=True)
    form_of = np.array([key_of[key] for key in keys.tolist()])[inverse]
    tests = np.array([sum(form) for form in forms], dtype=np.int32)[form_of]
    plain = [_plain(form, cnf=cnf) for form in forms]
    number_of = np.where(plain, 0, np.cumsum(np.logical_not(plain)))
    structures = [
        _nested(form, outer, inner) for form, flat in zip(forms, plain, strict=True) if not flat
    ]
    channels = distinct(tests, picker(draw, setting.d, setting.zipf))
    lows, highs = predicates(draw, setting, len(channels))
    return Tests(channels, lows, highs, tests, number_of[form_of].astype(np.int32), structures)


def _form_key(clause_sizes: Ints) -> Ints:
    """One number per row for how often it has each size; 0 is no clause."""
    often = [(clause_sizes == size).sum(axis=1) for size in range(1, CLAUSE_SIZE + 1)]
    return np.asarray(sum(n * MOST_CLAUSES**i for i, n in enumerate(often)))


def _plain(form: tuple[int, ...], *, cnf: bool) -> bool:
    """Whether nothing but one conjunction is left."""
    return all(size == 1 for size in form) if cnf else len(form) == 1


def _nested(form: tuple[int, ...], outer: int, inner: int) -> Nested:
    parts: list[Nested] = [TEST if size == 1 else (inner, [TEST] * size) for size in form]
    return parts[0] if len(parts) == 1 else (outer, parts)


def clauses(setting: Setting, most: int, *, cnf: bool) -> Subscriptions:
    """Subscriptions of 1 to ``most`` clauses, in rank space."""
    return compiled(clauses_tests(setting, most, cnf=cnf), setting.d, setting.sigma + 1)


@cache
def vocabulary() -> tuple[bytes, ...]:
    """Words of three to five syllables, in order."""
    draw = Draw(SEED, 41)
    made: set[str] = set()
    while len(made) < WORDS:
        onsets, vowels = draw.below(len(ONSETS), 5), draw.below(len(VOWELS), 5)
        count = 3 + int(draw.below(3, 1)[0])
        syllables = zip(onsets[:count].tolist(), vowels[:count].tolist(), strict=True)
        made.add("".join(ONSETS[onset] + VOWELS[vowel] for onset, vowel in syllables))
    return tuple(sorted(word.encode() for word in made))


def prefix_tests(setting: Setting, share: float, length: int) -> tuple[Tests, list[bytes]]:
    """Equalities of numbers, and prefixes of this length; and the strings that positions mean."""
    draw = Draw(SEED, 42)
    words = vocabulary()
    prefixes = sorted({word[:length] for word in words})
    ends = [prefix[:-1] + bytes([prefix[-1] + 1]) for prefix in prefixes]
    strings = sorted({*words, *prefixes, *ends})
    place = {string: i for i, string in enumerate(strings)}
    low_of = np.array([2 * place[word[:length]] for word in words])
    high_of = {prefix: 2 * place[end] - 1 for prefix, end in zip(prefixes, ends, strict=True)}
    high_of_word = np.array([high_of[word[:length]] for word in words])

    counts = sizes(draw, setting.n, setting.largest)

    def attributes(n: int) -> Ints:
        is_prefix = draw.unit(n) < share
        return np.where(is_prefix, NUMERIC + draw.below(STRINGS, n), draw.below(NUMERIC, n))

    channels = distinct(counts, attributes)
    equal = 2 * (1 + draw.below(setting.sigma, len(channels)))
    word = draw.below(len(words), len(channels))
    is_string = channels >= NUMERIC
    lows = np.where(is_string, low_of[word], equal)
    highs = np.where(is_string, high_of_word[word], equal)
    return Tests(channels, lows, highs, counts, np.zeros(setting.n, np.int32), ()), strings


def prefixed(setting: Setting, share: float, length: int) -> tuple[Subscriptions, list[bytes]]:
    """Those subscriptions in rank space, and the strings that an event's values mean."""
    tests, strings = prefix_tests(setting, share, length)
    n_values = max(len(strings), setting.sigma + 1)
    found = compiled(tests, NUMERIC + STRINGS, n_values, n_numbers=NUMERIC, words=strings)
    return found, strings


def prefix_events(setting: Setting, strings: list[bytes], n: int) -> Values:
    """Events of 18 numbers and two words."""
    draw = Draw(SEED, 43)
    place = {string: i for i, string in enumerate(strings)}
    place_of_word = np.array([place[word] for word in vocabulary()])
    m = EVENT_NUMBERS + EVENT_STRINGS
    numbers = distinct(np.full(n, EVENT_NUMBERS), picker(draw, NUMERIC, 0))
    words = NUMERIC + distinct(np.full(n, EVENT_STRINGS), picker(draw, STRINGS, 0))
    channels = np.concatenate(
        [numbers.reshape(n, EVENT_NUMBERS), words.reshape(n, EVENT_STRINGS)], axis=1
    ).ravel()
    values = np.where(
        channels < NUMERIC,
        1 + draw.below(setting.sigma, len(channels)),
        place_of_word[draw.below(WORDS, len(channels))],
    )
    rows = np.repeat(np.arange(n, dtype=np.int32), m)
    return Values(rows, channels.astype(np.int32), values, n)
