"""Patterns against the plainest oracles: ``in``, a recursive LIKE, ``re2.search``."""

from __future__ import annotations

import contextlib
import string
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from bittern.errors import SnapshotError
from bittern.model.patterns import CONTAINS, LIKE, REGEX
from bittern.model.patterns import regexes as regex_module
from bittern.model.patterns import windows as windows_module
from bittern.model.patterns.automaton import END, PAUSE, START
from bittern.model.patterns.covers import EITHER, MAX_FRAGMENT, room_for_covers
from bittern.model.patterns.filing import read_patterns
from bittern.model.patterns.likes import (
    FAILS,
    GIVEN_UP,
    like_program,
    room_needed,
    run_greedily,
    run_in_parallel,
)
from bittern.model.patterns.packed import pack_sets, unpack_sets
from bittern.model.patterns.regex.programs import room_to_make
from bittern.model.patterns.regex.tokens import room_for_tokens
from bittern.model.patterns.sets import PatternSet
from bittern.model.patterns.substrings import Substrings
from bittern.model.patterns.windows import find_literals
from effort import examples
from oracle import _is_like, _like_items


def pack(values):
    encoded = [value.encode() for value in values]
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
    return np.frombuffer(bytearray(b"".join(encoded)), np.uint8), offsets


def like(value, pattern):
    if not pattern:
        return not value
    head, tail = pattern[0], pattern[1:]
    if head == "%":
        return like(value, tail) or (bool(value) and like(value[1:], pattern))
    if head == "\\":
        head, tail = tail[0], tail[1:]
    elif head == "_":
        return bool(value) and like(value[1:], tail)
    return value[:1] == head and like(value[1:], tail)


def holds(kind, text, value):
    if kind == CONTAINS:
        return text in value
    return like(value, text) if kind == LIKE else re2.search(text, value) is not None


def matched(patterns, values):
    row_offsets, ids = patterns.match(*pack(values))
    assert row_offsets.dtype == np.int64
    assert ids.dtype == np.int32
    return [ids[a:b].tolist() for a, b in pairwise(row_offsets)]


def expected(kinds, texts, values):
    return [
        [i for i, (k, t) in enumerate(zip(kinds, texts, strict=True)) if holds(k, t, value)]
        for value in values
    ]


def agree(kinds, texts, values):
    patterns = PatternSet.build(kinds, texts)
    patterns.check()
    assert matched(patterns, values) == expected(kinds, texts, values)


# Few letters, so that patterns overlap, repeat and fall back; one character of each UTF-8 length,
# the letters that fold with non-ASCII ones (k with the Kelvin sign, s with the long s), newline.
LETTERS = "abABkKsS\u212a\u017f\u00e9\u20ac\U0001f600\n"
few = st.text("ab", max_size=6)
some = st.text(LETTERS, max_size=8)

like_texts = st.lists(
    st.one_of(st.sampled_from(["%", "_", "\\%", "\\_", "\\\\"]), st.sampled_from("ab\u00e9\n")),
    max_size=8,
).map("".join)

literal = st.one_of(
    st.sampled_from("abkKsS\u00e9\u212a\u017f-"),
    st.sampled_from([r"\.", r"\x61", r"\x{e9}", r"\141", r"\n", r"\-", r"\Qa.b\E", r"\Qab\E"]),
)
atom = st.one_of(
    literal,
    literal,
    st.sampled_from(
        [
            ".",
            "[ab]",
            "[^a]",
            "[]a]",
            "[^]a]",
            "[a\\]b]",
            "[[:alpha:]b]",
            "[[:^digit:]]",
            "[a-k]",
            "[^j-t\\n]",
            r"[\W\x{e9}]",
            r"[^\w\d]",
            r"[\S-]",
            "[é-€]",
            "[K]",
        ]
    ),
    st.sampled_from(
        [
            r"\w",
            r"\d",
            r"\W",
            r"\S",
            r"\pL",
            r"\p{Greek}",
            r"\PL",
            r"\C",
            r"\Q\E",
            "()",
            "{",
            "{,2}",
        ]
    ),
    st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\z", "}", "]"]),
    st.sampled_from(["(?i)", "(?-i)", "(?s)", "(?m)", "(?i-s)"]),
)
quantifier = st.sampled_from(
    ["", "", "", "*", "+", "?", "{0}", "{1}", "{2}", "{0,1}", "{1,}", "{2,3}", "*?", "+?", "{01}"]
)
group = st.sampled_from(["(", "(?:", "(?i:", "(?-i:", "(?P<n>", "(?<n>", "(?s-i:"])


def compound(inner):
    grouped = st.tuples(group, inner, quantifier).map(lambda p: f"{p[0]}{p[1]}){p[2]}")
    quantified = st.tuples(atom, quantifier).map("".join)
    return st.one_of(
        st.lists(st.one_of(quantified, inner, grouped), min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map("|".join),
        grouped,
    )


def valid(regex):
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(regex, options=options)
    except re2.error:
        return False
    return True


regexes = st.recursive(atom, compound, max_leaves=6).filter(valid)


@given(st.lists(few, max_size=12), st.lists(few, max_size=8))
@example(["", "a", "aa", "aa", "ba", "aba", "b"], ["", "aaba", "b", "bbbb"])
def test_contains(texts, values):
    agree([CONTAINS] * len(texts), texts, values)


@given(st.lists(like_texts, max_size=8), st.lists(some, max_size=6))
@example(
    ["_", "__", "%_%", "%", "", "%\u00e9", "_b%", "%a_"], ["", "\u00e9", "\U0001f600b", "aa\n"]
)
@example(["%_a"], ["\u00e9\u20aca", "a", "\u00e9"])
def test_like(texts, values):
    agree([LIKE] * len(texts), texts, values)


def ways(value, pattern):
    """What the two ways to run a LIKE program say."""
    text, program = (np.frombuffer(b, np.uint8) for b in (value.encode(), like_program(pattern)))
    greedy, _ = run_greedily(text, program, 1 << 40)
    room = np.full(room_needed(len(program)), 2**64 - 1, np.uint64)
    return bool(greedy), bool(run_in_parallel(text, program, room))


@given(like_texts, some)
@example("%_a", "\u00e9\u20aca")
@example("_", "\U0001f600")
@example("%_", "a\U0001f600")
@example("__%", "\U0001f600")
@example("%\u00e9_\u00e9", "\u00e9\u00e9\u00e9\u00e9")
def test_both_ways_to_run_a_like_program(pattern, value):
    assert ways(value, pattern) == (like(value, pattern),) * 2


long_likes = st.lists(
    st.one_of(
        st.integers(1, 140).map("_".__mul__),
        st.integers(1, 70).map("a".__mul__),
        st.sampled_from(["%", "%", "b", "\u20ac", "\\%", "\\_", "\\\\"]),
    ),
    max_size=6,
).map("".join)
long_values = st.lists(
    st.one_of(
        st.integers(1, 200).map("a".__mul__),
        st.integers(1, 90).map("\u20ac".__mul__),
        st.sampled_from(["b", "%", "_", "\\", "\U0001f600"]),
    ),
    max_size=5,
).map("".join)


@given(long_likes, long_values)
@examples(6)
def test_long_like_programs(pattern, value):
    wanted = _is_like(value, _like_items(pattern, "\\"))
    assert ways(value, pattern) == (wanted, wanted)


def hostile(n):
    """A pattern and a value where each place has to be read to the end of a long run."""
    return "%" + "_" * n + "a_b%", "a" * (20 * n)


def test_a_like_program_that_goes_back_all_the_time_is_given_up():
    again = []
    for n in (200, 400, 800):
        pattern, value = hostile(n)
        text, program = (
            np.frombuffer(b, np.uint8) for b in (value.encode(), like_program(pattern))
        )
        answer, unlimited = run_greedily(text, program, 1 << 40)
        assert (answer, unlimited > n * len(value) // 2) == (FAILS, True)  # quadratic, without
        answer, limited = run_greedily(text, program, 4 * len(text))
        assert answer == GIVEN_UP
        again.append(limited / len(text))
    assert max(again) < 5  # and a run, of the twentieth of the value


def test_hostile_patterns_are_answered_right():
    pattern, value = hostile(300)
    values = [
        value,
        value[:-1] + "b",
        value[:-1] + "\u20ac",
        "\u20ac" * 300 + "a\u20acb",
        value * 2,
    ]
    texts = [pattern, pattern[:-1], pattern[1:], pattern.replace("a", "\u20ac")]
    wanted = [
        [i for i, text in enumerate(texts) if _is_like(each, _like_items(text, "\\"))]
        for each in values
    ]
    assert any(wanted)
    assert matched(PatternSet.build([LIKE] * 4, texts), values) == wanted


def test_a_long_text_that_is_contained_is_found_by_the_automaton_alone():
    text = "a" * 5_000 + "b"
    patterns = PatternSet.build([CONTAINS, CONTAINS], [text, text[:-1]])
    assert matched(patterns, ["a" * 20_000, text, "a" * 3 + text]) == [[1], [0, 1], [0, 1]]
    assert not patterns.arrays()["texts"].size


@given(st.lists(regexes, min_size=1, max_size=6), st.lists(some, min_size=1, max_size=6))
@example(["\u017f(?i)abc"], ["\u017fabc", "\u017fABC", "sabc"])
@example(["(?i)a(?-i)\u017f"], ["A\u017f", "as"])
@example(["(?i)abc(?-i)\u212a"], ["ABC\u212a", "ABCk"])
def test_regex(texts, values):
    agree([REGEX] * len(texts), texts, values)


# Bytes that are not UTF-8: halves of characters, too long forms, surrogates, the bytes that stand
# for the ends of a value.
broken = st.lists(
    st.sampled_from(
        [
            b"a",
            b"b",
            b"k",
            b" ",
            b"\n",
            b"\xc3\xa9",
            b"\xc3",
            b"\xa9",
            b"\xe2\x84\xaa",
            b"\xe2\x84",
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\xf0\x80\x80\x80",
            b"\xf5",
            b"\xfe",
            b"\xff",
            b"\xc5\xbf",
        ]
    ),
    max_size=8,
).map(b"".join)


@given(st.lists(regexes, min_size=1, max_size=6), st.lists(broken, min_size=1, max_size=6))
@example(["^a", "a$", "^a$", "(?i)^k$"], [b"\xffa\xfe", b"b\xffa", b"a\xfeb", b"\xe2\x84\xaa"])
def test_regex_on_what_is_not_utf8(texts, values):
    patterns = PatternSet.build([REGEX] * len(texts), texts)
    offsets = np.cumsum([0, *map(len, values)])
    rows, ids = patterns.match(np.frombuffer(bytearray(b"".join(values)), np.uint8), offsets)
    wanted = [
        [i for i, text in enumerate(texts) if regex_module.compiled(text.encode()).search(value)]
        for value in values
    ]
    assert [ids[a:b].tolist() for a, b in pairwise(rows)] == wanted


#: Longer ones, of words: programs that begin in the middle of a value, second fragments, counts.
word = st.sampled_from(["lomi", "tara", "lo", "mita", "ta", "k", "LOMI"])
words = st.lists(
    st.one_of(word, st.sampled_from([" ", "\n", "7", "-", "\u00e9", "\u212a"])), max_size=9
)
phrase = st.lists(
    st.one_of(
        word,
        word,
        st.sampled_from(
            [".*", "[a-z ]+", r"\b", " ", "^", "$", r"\d{1,3}", ".", ".?", "(?i)", "(?s)"]
        ),
        st.tuples(word, word).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(word, word).map("(?:{0[0]}.{0[1]})+".format),
        st.tuples(word, word).map("(?:{0[0]}[^a]*{0[1]})?".format),
    ),
    min_size=1,
    max_size=6,
).map("".join)


@given(
    st.lists(st.one_of(phrase, st.tuples(phrase, phrase).map("|".join)), min_size=1, max_size=8),
    st.lists(words.map("".join), min_size=1, max_size=8),
)
@examples(3)
def test_regex_of_words(texts, values):
    agree([REGEX] * len(texts), texts, values)


@given(
    st.lists(
        st.lists(st.one_of(word, st.sampled_from("%%_")), max_size=6).map("".join), max_size=8
    ),
    st.lists(words.map("".join), min_size=1, max_size=8),
)
def test_like_of_words(texts, values):
    agree([LIKE] * len(texts), texts, values)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(CONTAINS), some),
            st.tuples(st.just(LIKE), like_texts),
            st.tuples(st.just(REGEX), regexes),
        ),
        max_size=10,
    ),
    st.lists(some, max_size=40),
)
def test_kinds_together(pairs, values):
    agree([kind for kind, _ in pairs], [text for _, text in pairs], values)


def covers(kind, text):
    """The covers of one pattern: lists of (fragment, whether in either case, bytes before it)."""
    given_text = np.frombuffer(like_program(text) if kind == LIKE else text.encode(), np.uint8)
    rooms = room_for_tokens(), room_to_make(), room_for_covers()
    kinds, offsets = np.array([kind], np.uint8), np.array([0, len(given_text)])
    read = read_patterns(kinds, given_text, offsets, *rooms)
    fragments = [
        (read.text[start : start + length].tobytes(), case == EITHER, before)
        for start, length, case, before in read.fragments.reshape(-1, 4).tolist()
    ]
    return [fragments[a:b] for a, b in pairwise(read.fragment_offsets)]


@examples(6)
@given(regexes, st.data())
def test_a_regex_that_is_found_contains_a_fragment_of_each_cover(regex, data):
    found = covers(REGEX, regex)
    # Values near the expression: its own letters, some left out, some in the other case.
    own = [c for c in regex if c in LETTERS] + ["a", "b", "-", "{", "K"]
    near = st.lists(st.sampled_from([*own, *map(str.swapcase, own)]), max_size=8).map("".join)
    values = data.draw(st.lists(st.one_of(near, some), min_size=1, max_size=20))
    for value in [*values, "".join(own), "".join(own).swapcase()]:
        if found and re2.search(regex, value):
            seen = b"\xff" + value.encode() + b"\xfe"
            folded = seen.lower().replace(b"\xe2\x84\xaa", b"k").replace(b"\xc5\xbf", b"s")
            for cover in found:
                assert any(text in (folded if either else seen) for text, either, _ in cover), value


@pytest.mark.parametrize(
    ("regex", "fragments"),
    [
        ("hello", ["hello"]),
        ("ab(cd|ef+)?x{2}", ["ab", "xx"]),
        ("(foo|bar)[a-z]", ["foo|bar"]),
        ("(foo|bar)bazzz", ["foo|bar", "bazzz"]),
        ("^GET /api/v[0-9]+", ["<GET /api/v"]),
        ("^^a$$", ["<a>"]),
        ("a$|^b", ["a>|<b"]),
        ("$^", []),
        (r"a\.b\x2fc[.]d", ["a.b/c.d"]),
        (r"\Qa+b\E+c", ["a+", "b", "c"]),
        ("ab*cd", ["a", "cd"]),
        ("a(?i)*bcd", ["bcd"]),
        ("(abc){0}", []),
        ("(abc){0,3}d?", []),
        ("(?:abc)+", ["abc"]),
        ("foo|", []),
        ("[0-9]+|x", []),
        ("(?i)Error: disk", ["error: disk"]),
        ("(?i:ab)cde", ["ab", "cde"]),
        ("(?i)ab(?-i)cde", ["ab", "cde"]),
        ("(?i)\u00e9", []),
        ("a{100000}", []),
        ("(?:ab[cd]){900}e", ["ab", "e"]),
        ("caf\u00e9.", ["caf\u00e9"]),
        (r"\pLab\Bcd", ["abcd"]),
        ("(" * 200 + "abc" + ")" * 200, []),
        ("x" * 200, ["x" * MAX_FRAGMENT] * 3 + ["x" * 8]),
    ],
)
def test_covers(regex, fragments):
    def shown(text):
        return text.replace(b"\xff", b"<").replace(b"\xfe", b">").decode()

    found = covers(REGEX, regex)
    assert ["|".join(shown(text) for text, _, _ in cover) for cover in found] == fragments


LONG_REGEXES = [
    r"\Q" + "a" * 7_000,
    r"\Q" + "a" * 70_000 + r"\Eb+",
    "[ab]" * 7_000,
    ("(" + "a" * 2_500 + "){0}") * 3,
]


@pytest.mark.parametrize("regex", LONG_REGEXES, ids=lambda regex: f"{regex[:5]} {len(regex)}")
def test_a_regex_too_long_for_its_room_is_given_up(regex):
    behind = []  # what lies behind the room for sets

    def guarded(array):
        larger = np.full(len(array) + 200_000, 99, array.dtype)
        behind.append(larger[len(array) :])
        return larger[: len(array)]

    tokens = room_for_tokens()
    tokens = tokens._replace(sets=type(tokens.sets)(*map(guarded, tokens.sets)))
    text = np.frombuffer(regex.encode(), np.uint8)
    rooms = tokens, room_to_make(), room_for_covers()
    read = read_patterns(np.array([REGEX], np.uint8), text, np.array([0, len(text)]), *rooms)
    assert all((array == 99).all() for array in behind)
    assert (len(read.fragments), len(read.programs)) == (0, 0)
    agree([REGEX, REGEX], [regex, "a"], ["", "ab", "a" * 7_001, "b" * 7_000])


def test_a_cover_is_only_of_fragments_that_there_was_room_for():
    # The last fragment there is room for is used up when a branch ends.
    regex = "a[bc]" * 28 + ("(?:" + "|".join("a" * 32) + ")") * 47
    room = room_for_covers()
    text = np.frombuffer(regex.encode(), np.uint8)
    rooms = room_for_tokens(), room_to_make(), room
    read_patterns(np.array([REGEX], np.uint8), text, np.array([0, len(text)]), *rooms)
    ends = room.covers[::2] + room.covers[1::2]
    assert ends.max() <= len(room.fragments) // 4
    agree([REGEX], [regex], ["ab" * 28 + "a" * 47, "ab" * 28 + "a" * 46])


def test_only_k_and_s_fold_with_letters_outside_ascii():
    outside = "".join(map(chr, [*range(128, 0xD800), *range(0xE000, 0x110000)]))
    folding = [c for c in string.ascii_letters if re2.search(f"(?i){c}", outside)]
    assert folding == ["k", "s", "K", "S"]


@given(st.lists(st.binary(min_size=1, max_size=5), unique=True, max_size=20), st.binary())
def test_substrings_of_any_bytes(literals, value):
    literals = [bytes(b % 5 + 65 for b in literal) for literal in literals]
    literals = list(dict.fromkeys(literals))
    value = bytes(b % 6 + 65 for b in value)
    Substrings.build(literals).check()
    agree([CONTAINS] * len(literals), [x.decode() for x in literals], [value.decode()])


@contextlib.contextmanager
def few_dense_rows():
    """Have small sets read values as large ones do: by windows, or else mostly without rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bittern.model.patterns.substrings.DENSE_ENTRIES", 6)
        yield


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just(CONTAINS), st.text("ab", min_size=1, max_size=9)),
            st.tuples(st.just(LIKE), like_texts),
            st.tuples(st.just(LIKE), st.text("ab%", max_size=9)),
            st.tuples(st.just(REGEX), regexes),
        ),
        max_size=10,
    ),
    st.lists(st.one_of(some, st.text("abAB", max_size=20)), max_size=6),
)
@example([(LIKE, "ab%"), (LIKE, "%ab"), (LIKE, "ab_b"), (REGEX, "^ab|ba$")], ["ab", "abab", "ba"])
def test_few_dense_rows_change_nothing(pairs, values):
    with few_dense_rows():
        agree([kind for kind, _ in pairs], [text for _, text in pairs], values)


# Literals as fragments are: anchored, of few letters and of more, shorter and longer than what the
# filter and the table know, many with one beginning.
literals = st.lists(
    st.tuples(
        st.sampled_from([b"", b"", bytes([START])]),
        st.one_of(
            st.integers(1, 12).map(b"a".__mul__),
            st.text("ab", min_size=1, max_size=12).map(str.encode),
            st.sampled_from("abcdefgh").map(lambda c: b"http" + c.encode()),
            st.sampled_from([b"https", b"http", b"htt", b"ht", b"ab\xc3\xa9", b"ABab"]),
        ),
        st.sampled_from([b"", b"", bytes([END])]),
    ).map(b"".join),
    min_size=1,
    max_size=20,
    unique=True,
)
pieces = st.sampled_from(
    [b"a", b"b", b"ab", b"aaaaaaa", b"http", b"https", b"\xc3\xa9", b"B", b"-"]
)


def found_in(literals, values, *, fold, windows):
    """What is found in each value, and where first and last, by windows or the automaton alone."""
    with few_dense_rows():
        substrings = Substrings.build(literals, fold=fold)
    finding = substrings.finding(np.array([len(each) for each in literals], np.int32))
    if windows:
        assert len(finding.slots)
    else:
        finding = finding._replace(slots=finding.slots[:0])
    found = []
    for number, value in enumerate(values):
        text = np.frombuffer(b"?" + value + b"?", np.uint8)
        find_literals(substrings.automaton, finding, text, 1, len(text) - 1, number, 1 << 40)
        own = finding.found[: finding.counts[0]].tolist()
        found.append(sorted((i, finding.firsts[i], finding.lasts[i]) for i in own))
    return found, finding


@given(literals, st.lists(st.lists(pieces, max_size=12).map(b"".join), max_size=4), st.booleans())
def test_windows_find_what_the_automaton_finds(literals, values, fold):
    literals = [*literals, b"never found"]  # which takes more states than there are dense rows
    values = [*values, b"ab" * 300 + b"https"]  # more than a stretch
    by_windows, _ = found_in(literals, values, fold=fold, windows=True)
    assert by_windows == found_in(literals, values, fold=fold, windows=False)[0]


def test_a_value_that_takes_windows_long_is_read_by_the_automaton():
    literals = [b"a" * n for n in (*range(1, 40), 3_000)]
    values = [b"a" * 9_000, b"ab" * 20, b"ba" + b"a" * 2_999]
    by_windows, finding = found_in(literals, values, fold=False, windows=True)
    by_automaton, _ = found_in(literals, values, fold=False, windows=False)
    assert by_windows == by_automaton
    # After that, what follows is read by the automaton as well, for a while.
    assert finding.counts[PAUSE] == windows_module._PAUSE - sum(map(len, values[1:]))


def test_windows_of_damaged_states_say_so():
    arrays = PatternSet.build([CONTAINS], ["abcdefghij"]).arrays()
    for wrong in (-1, 1 << 20):
        nodes = arrays["plain_nodes"].copy()
        nodes[5] = wrong << 8  # the degree of the second state
        dense = arrays["plain_dense"][: arrays["plain_classes"].max() + 1]
        opened = PatternSet.from_arrays(arrays | {"plain_nodes": nodes, "plain_dense": dense})
        with pytest.raises(SnapshotError, match="damaged"):
            opened.match(*pack(["abc"]))


def test_every_fan_out_is_searched_right_without_dense_rows(monkeypatch):
    monkeypatch.setattr("bittern.model.patterns.substrings.DENSE_ENTRIES", 1)
    texts = ["x" + c + d for c in string.ascii_letters for d in "ab"]
    agree([CONTAINS] * len(texts), texts, [*texts[::7], "xaxbaxZb", "xx"])


def test_long_texts_are_cut_in_the_automaton_and_verified():
    text = "a" * MAX_FRAGMENT
    kinds, texts = [CONTAINS, CONTAINS, LIKE, REGEX], [text, text + "b", f"%{text}_b%", text + "b"]
    agree(kinds, texts, [text, text + "b", text + "ab", text[1:], text + text])


@pytest.mark.parametrize(
    "n_values", [1, regex_module.COLUMN_SEARCH - 1, regex_module.COLUMN_SEARCH, 100]
)
def test_few_and_many_survivors_agree(n_values):
    texts = ["v1+$", "(?i)V2", r"\d$", r"^v(?P<n>\d)", "\x00|v3", "v{1}.5\\b"]
    agree([REGEX] * len(texts), texts, [f"v{i}" for i in range(n_values)])


def test_offsets_may_begin_anywhere():
    patterns = PatternSet.build([CONTAINS, LIKE, REGEX, REGEX], ["b", "b_", "b.", "^.$"])
    data = np.frombuffer(bytearray(b"bbbbxabc"), np.uint8)
    row_offsets, ids = patterns.match(data, np.array([4, 5, 6, 8]))
    assert row_offsets.tolist() == [0, 1, 2, 5]
    assert ids.tolist() == [3, 3, 0, 1, 2]


def test_empty_set_and_empty_batch():
    empty = PatternSet.build([], [])
    empty.check()
    assert len(empty) == 0
    assert matched(empty, ["a", ""]) == [[], []]
    assert matched(empty, []) == []
    assert matched(PatternSet.build([CONTAINS, LIKE, REGEX], ["", "_", "a|"]), []) == []


def test_arrays_round_trip_through_a_file(tmp_path):
    kinds = [CONTAINS, LIKE, REGEX, REGEX, REGEX, LIKE, CONTAINS]
    texts = ["ab", "%a_c%", "b+c", "(?i)ABC", r"\d", "___", ""]
    values = ["abc", "aBc", "12", "", "xaxcx", "abbc"]
    patterns = PatternSet.build(kinds, texts)
    mapped = {}
    for name, array in patterns.arrays().items():
        assert array.ndim == 1
        np.save(tmp_path / f"{name}.npy", array)
        try:
            mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        except ValueError:  # an empty file cannot be mapped
            mapped[name] = np.load(tmp_path / f"{name}.npy")
    opened = PatternSet.from_arrays(mapped)
    opened.check()
    assert matched(opened, values) == expected(kinds, texts, values)
    assert opened.nbytes == patterns.nbytes == sum(a.nbytes for a in mapped.values())


def test_check_notices_damage():
    patterns = PatternSet.build([CONTAINS, LIKE, REGEX], ["abc", "%ab_d", "ab+c"])
    names = "plain_nodes plain_labels plain_lengths plain_filed text_offsets programs actions"
    for name in names.split():
        arrays = dict(patterns.arrays())
        arrays[name] = np.full_like(arrays[name], 9)
        with pytest.raises(AssertionError):
            PatternSet.from_arrays(arrays).check()


def test_read_only_values():
    data, offsets = pack(["hello", "world"])
    data.flags.writeable = offsets.flags.writeable = False
    row_offsets, ids = PatternSet.build([CONTAINS, REGEX], ["l", "o$"]).match(data, offsets)
    assert row_offsets.tolist() == [0, 2, 3]
    assert ids.tolist() == [0, 1, 0]


def test_hostile_patterns_on_a_huge_value():
    value = "a" * 1_000_000
    kinds = [REGEX, REGEX, REGEX, LIKE, LIKE] + [CONTAINS] * 60
    texts = ["a{1000}", "(a*)*b", "(a|aa)+$", "%a" * 20 + "%b", "%a_a%" * 10]
    texts += ["a" * n for n in range(1, 61)]
    assert matched(PatternSet.build(kinds, texts), [value, "b"]) == [[0, 2, 4, *range(5, 65)], [1]]


def test_a_regex_too_large_for_the_cache_is_still_searched():
    text = "x" + r"(?:[a-y]\pL{1,4}){3}" + "z"
    assert valid(text)
    assert regex_module.small(text.encode()) is None
    agree([REGEX], [text], ["x" + "ab" * 3 + "z", "xz", "x" + "ab" * 2 + "z"])


def test_a_regex_that_arrow_refuses_is_still_searched(monkeypatch):
    def refuse(*_):
        raise pa.ArrowInvalid

    monkeypatch.setattr("pyarrow.compute.match_substring_regex", refuse)
    agree([REGEX, REGEX], ["v1+$", r"\d$"], [f"v{i}" for i in range(100)])


def test_like_programs():
    assert like_program("a%%_\\%\\_\\\\b") == b"a\xff\xfe%_\\b"
    assert like_program("") == b""


def test_sets_of_many_attributes_are_packed_into_one_set_of_arrays() -> None:
    sets = {
        7: PatternSet.build([CONTAINS, REGEX], ["ab", "x+y"]),
        2: PatternSet.build([LIKE], ["a_c%"]),
        9: PatternSet.build([REGEX], ["[0-9]"]),
    }
    packed = pack_sets(sets)
    assert set(pack_sets({2: sets[2]})) == set(packed)
    for array in packed.values():
        array.flags.writeable = False
    data = np.frombuffer(b"abxyabcd7", np.uint8)
    offsets = np.array([0, 4, 8, 9])
    for attribute, again in unpack_sets(packed).items():
        again.check()
        for before, after in zip(
            sets[attribute].match(data, offsets), again.match(data, offsets), strict=True
        ):
            assert before.tolist() == after.tolist()
    assert sorted(unpack_sets(packed)) == [2, 7, 9]
    assert unpack_sets(pack_sets({})) == {}


def test_sets_of_format_2_are_built_again() -> None:
    with np.load(Path(__file__).parent / "patterns_format_2.npz") as kept:
        sets = unpack_sets(dict(kept))
    assert sorted(sets) == [3, 8]
    kinds = [CONTAINS, CONTAINS, CONTAINS, LIKE, LIKE, REGEX, REGEX, REGEX, CONTAINS]
    like_text = r"a_c%\%\_\\d"
    texts = ["he", "she", "h\u00e9", like_text, "__", "(?i)Hers", "b+c|^x$", r"\d", ""]
    values = ["ushers", "h\u00e9", "ab", "abc%_\\d", "x", "7bc", ""]
    sets[3].check()
    assert matched(sets[3], values) == expected(kinds, texts, values)
    assert matched(sets[8], ["a-b", "ab"]) == [[0], []]
