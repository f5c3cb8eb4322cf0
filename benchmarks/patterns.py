"""Multi-pattern matchers side by side: ``python -m benchmarks.patterns [case ...] [--beside SRC]``.

Values are 4 to 12 words and a number; patterns are made of the same words. Every matcher sees the
same values and patterns in one run, answers the same question (which patterns does each value
satisfy?) and is left out where it is not installed or cannot express the patterns. SRC is the
folder of another version of the sources, such as the ``src`` of a clone: a second process holds the
same patterns with those, and the two match in turns. Both must find the same.

Time is CPU time, in microseconds a value, the best of some turns. ``built`` is patterns a second.
``mark`` is the time to stay below; that it is missed is shown, and nothing more.

Prefixes and suffixes are ordered among the other constants of an index, not held by a pattern set.
So these cases build an index, and match the values as a column of events.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import string
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import re2

import bittern
from bittern.model.patterns import CONTAINS, LIKE, REGEX
from bittern.model.patterns.sets import PatternSet

#: What an index holds without a pattern set.
PREFIX, SUFFIX = 3, 4
#: Microseconds a value to stay below, by the name of a case; without regard to case (``(?i)``) 1.3
#: times as much as with it.
MARKS = {
    "regex, few syllables": 20.0,
    "regex, unrelated words": 20.0,
    "regex, mixed": 15.0,
    "contains": 0.9,
    "LIKE 'a%b'": 1.5,
    "prefix": 0.7,
    "suffix": 0.7,
}

PATTERNS = 25_000
VALUES = 5_000
TURNS = 11
#: A matcher that takes one value at a time is stopped, between values, after so long.
SECONDS = 2.0

#: Values to (values done, matches).
Match = Callable[[list[bytes]], tuple[int, int]]

FORMS = ["{}.*{}", r"\b{}\b|\b{}\b", "({}|{}) [0-9]+", "{}[a-z ]+{}", "{} {}"]
MIXED = [
    *(r"{}.*{}", r"\b{}\b|\b{}\b", "({}|{}) [0-9]+", "^{}[a-z ]+{}"),
    *("(?i){} {}", "^{}.*{}$", r"{}\d{{2,4}}", r"[a-z]+{}s?\b"),
]


class Case(NamedTuple):
    """Patterns of one kind, and values to match with them."""

    kind: int
    texts: list[str]
    values: list[bytes]


class Words:
    """A vocabulary, and values and patterns that are made of it."""

    def __init__(self, words: list[str], seed: random.Random) -> None:
        self._words = words
        self._random = seed
        weights = list(accumulate(1 / (i + 1) ** 0.5 for i in range(len(words))))
        self.values = [
            f"{' '.join(seed.choices(words, cum_weights=weights, k=seed.randint(4, 12)))} "
            f"{seed.randint(0, 9999)}".encode()
            for _ in range(VALUES)
        ]

    def regexes(self, forms: list[str], *, prefix: str = "") -> Case:
        """Regular expressions of one or two words."""
        pick = self._random.choice
        made = (pick(forms).format(pick(self._words), pick(self._words)) for _ in range(PATTERNS))
        return Case(REGEX, [prefix + text for text in made], self.values)

    def parts(self) -> list[str]:
        """Parts of one or two words, 4 to 10 characters."""
        made, pick = [], self._random
        for _ in range(PATTERNS):
            start = pick.randint(0, 2)
            whole = f"{pick.choice(self._words)} {pick.choice(self._words)}"
            made.append(whole[start : start + pick.randint(4, 10)])
        return made

    def endings(self) -> list[str]:
        """What values may end in: the last part of a word, and a number."""
        pick, number = self._random.choice, self._random.randint
        return [f"{pick(self._words)[-3:]} {number(0, 9999)}" for _ in range(PATTERNS)]

    def likes(self, form: str, count: int) -> Case:
        """LIKE patterns of two words."""
        pick = self._random.choice
        texts = [form.format(pick(self._words), pick(self._words)) for _ in range(count)]
        return Case(LIKE, texts, self.values)


def make_cases() -> Iterator[tuple[str, Case]]:
    """Every case by name, always the same."""
    seed = random.Random(5)
    syllables = [a + b for a in "bdklmrst" for b in "aeio"]
    few: dict[str, None] = {}
    while len(few) < 3_000:
        few["".join(seed.choice(syllables) for _ in range(seed.randint(2, 4)))] = None
    unrelated: dict[str, None] = {}
    while len(unrelated) < 20_000:
        letters = seed.choices(string.ascii_lowercase, k=seed.randint(4, 10))
        unrelated["".join(letters)] = None
    syllable_words, words = Words(list(few), seed), Words(list(unrelated), seed)
    yield "regex, few syllables", syllable_words.regexes(FORMS)
    yield "regex, few syllables, (?i)", syllable_words.regexes(FORMS, prefix="(?i)")
    yield "regex, unrelated words", words.regexes(FORMS)
    yield "regex, unrelated words, (?i)", words.regexes(FORMS, prefix="(?i)")
    yield "regex, mixed", words.regexes(MIXED)
    parts = words.parts()
    yield "contains", Case(CONTAINS, parts, words.values)
    yield "contains, (?i)", Case(REGEX, ["(?i)" + re2.escape(text) for text in parts], words.values)
    yield "LIKE 'a%b'", words.likes("{}%{}", 10_000)
    yield "LIKE 'a%b', few syllables", syllable_words.likes("{}%{}", 10_000)
    yield "LIKE '%a_b%'", words.likes("%{}_{}%", 10_000)
    yield "prefix", Case(PREFIX, parts, words.values)
    yield "suffix", Case(SUFFIX, words.endings(), words.values)


def as_regex(kind: int, text: str) -> str:
    """Write any pattern as a regular expression, for matchers that know nothing else."""
    if kind == REGEX:
        return text
    if kind in (CONTAINS, PREFIX, SUFFIX):
        return "^" * (kind == PREFIX) + re2.escape(text) + "$" * (kind == SUFFIX)
    wild = {"%": "(?s:.*)", "_": "(?s:.)"}
    inner = "".join(wild.get(c) or re2.escape(c) for c in text.strip("%"))
    # An anchor instead of a leading or trailing wildcard: a set of ".*x.*" would be slowed by both.
    return ("" if text[0] == "%" else "^") + inner + ("" if text[-1] == "%" else "$")


def one_by_one(find: Callable[[bytes], int]) -> Match:
    """Match the values of a batch singly, as far as the time goes."""

    def match(values: list[bytes]) -> tuple[int, int]:
        until = process_time() + SECONDS
        n_values = n_matches = 0
        for value in values:
            n_matches += find(value)
            n_values += 1
            if process_time() > until:
                break
        return n_values, n_matches

    return match


def re2_set(kind: int, texts: Sequence[str]) -> tuple[Match, int]:
    """One RE2 set; an always-true member keeps its answer a list."""
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = 256 << 20, True, False
    patterns = re2.Set.SearchSet(options)
    for text in texts:
        patterns.Add(as_regex(kind, text))
    patterns.Add("")
    patterns.Compile()
    return one_by_one(lambda value: len(patterns.Match(value)) - 1), 0


def aho(_: int, texts: Sequence[str]) -> tuple[Match, int]:
    """Build a pyahocorasick automaton: contains only."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for i, text in enumerate(texts):
        automaton.add_word(text, i)
    automaton.make_automaton()
    return one_by_one(lambda value: len({i for _, i in automaton.iter(value.decode())})), 0


def hyper(kind: int, texts: Sequence[str]) -> tuple[Match, int]:
    """Build a Hyperscan database."""
    import hyperscan

    database = hyperscan.Database()
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_UTF8
    database.compile(
        expressions=[as_regex(kind, text).encode() for text in texts],
        ids=list(range(len(texts))),
        flags=[flags] * len(texts),
    )
    found: list[int] = []

    def find(value: bytes) -> int:
        found.clear()
        database.scan(value, match_event_handler=lambda pattern, *_: found.append(pattern))
        return len(found)

    return one_by_one(find), 0


class Ours:
    """Bittern's PatternSet: arrays in, arrays out."""

    def __init__(self, case: Case) -> None:
        begin = process_time()
        self._patterns = PatternSet.build([case.kind] * len(case.texts), case.texts)
        self.built = process_time() - begin
        self.nbytes = self._patterns.nbytes
        self._data = np.frombuffer(b"".join(case.values), np.uint8)
        self._offsets = np.cumsum([0, *map(len, case.values)])
        self.match()

    def match(self) -> tuple[float, str, int]:
        """Match once: seconds, a digest of what was found, and how much it was."""
        begin = process_time()
        offsets, ids = self._patterns.match(self._data, self._offsets)
        seconds = process_time() - begin
        digest = hashlib.blake2b(offsets.tobytes() + ids.tobytes()).hexdigest()
        return seconds, digest, len(ids)


class OursInOrder:
    """The same of an index of prefixes or suffixes: events in, matches out."""

    def __init__(self, case: Case) -> None:
        form = "s LIKE '{}%'" if case.kind == PREFIX else "s LIKE '%{}'"
        begin = process_time()
        index = bittern.Index.build({i: form.format(text) for i, text in enumerate(case.texts)})
        self.built = process_time() - begin
        self.nbytes = index.nbytes
        self._matcher = bittern.Matcher(index)
        self._events = pa.table({"s": pa.array([value.decode() for value in case.values])})
        self.match()

    def match(self) -> tuple[float, str, int]:
        """Match once: seconds, a digest of how much each value has, and how much that is."""
        begin = process_time()
        counts = self._matcher.match(self._events).counts
        seconds = process_time() - begin
        return seconds, hashlib.blake2b(counts.tobytes()).hexdigest(), int(counts.sum())


def hold(case: Case) -> Ours | OursInOrder:
    """Whatever holds the patterns of a case."""
    return OursInOrder(case) if case.kind in (PREFIX, SUFFIX) else Ours(case)


def warm_up() -> None:
    """Compile what building and matching takes."""
    for kind, text in ((REGEX, "a+b"), (PREFIX, "ab")):
        hold(Case(kind, [text], [b"ab"]))


def serve() -> None:
    """The other process: a line in is the name of a case, or empty for one more turn."""
    cases = dict(make_cases())
    warm_up()
    held: Ours | OursInOrder | None = None
    for line in sys.stdin:
        if line.strip():
            held = hold(cases[line.strip()])
        assert held is not None
        print(json.dumps([held.built, held.nbytes, *held.match()]), flush=True)


def print_row(name: str, case: Case, built: float, nbytes: int, seconds: float, n: float) -> None:
    """Print one row of the table; ``n`` matches a value."""
    count = len(case.texts)
    size = f"{nbytes / count:,.0f}" if nbytes else ""
    plain = name.removeprefix("bittern, ").removesuffix(", (?i)")
    mark = MARKS.get(plain, 0.0) * (1.3 if name.endswith("(?i)") else 1.0)
    told = f"{mark:.2f}{', missed' * (seconds * 1e6 > mark)}" if mark else ""
    print(
        f"| {name} | {count:,} | {count / built:,.0f} | {size} | {seconds * 1e6:,.2f} | {told} | "
        f"{n:.2f} |",
        flush=True,
    )


def measure_ours(name: str, case: Case, other: Any) -> None:
    """Match in turns with the other version, if there is one, and print both."""
    own, theirs = hold(case), []
    turns = []
    for turn in range(TURNS):
        turns.append(own.match())
        if other is not None:
            other.stdin.write(f"{'' if turn else name}\n")
            other.stdin.flush()
            theirs.append(json.loads(other.stdout.readline()))
            assert theirs[-1][3] == turns[-1][1], f"{name}: the two versions differ"
    n_values = len(case.values)
    found = turns[0][2] / n_values
    if theirs:
        seconds = min(each[2] for each in theirs) / n_values
        print_row(f"before, {name}", case, theirs[0][0], theirs[0][1], seconds, found)
    seconds = min(each[0] for each in turns) / n_values
    print_row(f"bittern, {name}", case, own.built, own.nbytes, seconds, found)


def measure_rival(name: str, matcher: Any, case: Case) -> None:
    """Print the row of a matcher, if it is installed and takes the patterns."""
    begin = process_time()
    try:
        match, _ = matcher(case.kind, case.texts)
    except (ImportError, re2.error) as error:
        print(f"| {name} | {error} | | | | | |")
        return
    built = max(process_time() - begin, 1e-9)
    begin = process_time()
    n_values, n_matches = match(case.values)
    seconds = (process_time() - begin) / n_values
    print_row(name, case, built, 0, seconds, n_matches / n_values)


def rivals(name: str, kind: int) -> Iterator[tuple[str, Any]]:
    """The matchers that can express a case in reasonable memory and time."""
    if kind == CONTAINS:
        yield "pyahocorasick", aho
    if "mixed" not in name and kind in (CONTAINS, REGEX):  # more than 6 GB
        yield "re2.Set", re2_set
    yield "hyperscan", hyper


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("cases", nargs="*", help="parts of the names of cases; all by default")
    arguments.add_argument("--beside", type=Path, help="the sources of another version")
    arguments.add_argument("--rivals", action="store_true", help="other matchers, too: minutes")
    arguments.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    if asked.serve:
        serve()
        return
    other = None
    if asked.beside:
        other = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env=os.environ | {"PYTHONPATH": str(asked.beside.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    warm_up()
    print("| matcher | patterns | built | bytes/pattern | us/value | mark | matches/value |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, case in make_cases():
        if not asked.cases or any(part in name for part in asked.cases):
            measure_ours(name, case, other)
            for rival, matcher in rivals(name, case.kind) if asked.rivals else ():
                measure_rival(f"{rival}, {name}", matcher, case)
    if other is not None and other.stdin is not None:
        other.stdin.close()
        other.wait()


if __name__ == "__main__":
    main()
