"""Multi-pattern matchers side by side: ``python benchmarks/patterns.py [--quick]``.

Values are made of Zipf-distributed words, as titles and log lines are; patterns are cut from words
of the same vocabulary. Every matcher sees the same values and patterns in one run, answers the same
question (which patterns does each value satisfy?) and is left out where it cannot express the
patterns. Time is microseconds a value, the best of three batches of new values after one to warm
up: values that repeat would flatter a matcher that builds its states as it reads.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import re2

from bittern.model.patterns.sets import CONTAINS, LIKE, REGEX, PatternSet

BATCH = 10_000
BATCHES = 4
#: A matcher that takes one value at a time is stopped, between values, after so long per batch.
SECONDS = 1.0

#: Values to (values done, matches).
Match = Callable[[list[bytes]], tuple[int, int]]


class Text:
    """A seeded vocabulary and what is made of it."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        self.words = [
            "".join(
                self.random.choice(letters[: self.random.choice([8, 16, 26])])
                for _ in range(self.random.randint(3, 10))
            )
            for _ in range(20_000)
        ]
        self.weights = np.cumsum(1 / np.arange(1, len(self.words) + 1)).tolist()

    def word(self) -> str:
        """Any word of the vocabulary: patterns name rare things more often than values do."""
        return self.random.choice(self.words)

    def value(self) -> str:
        """Between 2 and 12 words, the common ones most often, and a number."""
        count = self.random.randint(2, 12)
        words = self.random.choices(self.words, cum_weights=self.weights, k=count)
        return f"{' '.join(words)} {self.random.randint(0, 9999)}"

    def contains(self) -> str:
        """Part of one or two words, 4 to 10 characters."""
        start = self.random.randint(0, 2)
        return f"{self.word()} {self.word()}"[start : start + self.random.randint(4, 10)]

    def like(self) -> str:
        """General LIKE: several runs, both wildcards."""
        form = self.random.choice(["{}%{}", "%{}_{}%", "%{}%{}%", "{}%_{}"])
        return form.format(self.word(), self.word())

    def regex(self) -> str:
        """Regular expressions as people write them: with some literal in them."""
        forms = [r"{}.*{}", r"\b{}\b|\b{}\b", r"({}|{}) [0-9]+", r"^{}[a-z ]+{}", r"(?i){} {}"]
        return self.random.choice(forms).format(self.word(), self.word())

    def shape(self) -> str:
        """Regular expressions without any required literal."""
        parts = [r"\d", r"[a-f]", r"[^aeiou ]", r"\s", r"[h-t]", r"\w"]
        counts = ["", "+", "{2}", "{1,3}"]
        return self.random.choice(["", "^"]) + "".join(
            self.random.choice(parts) + self.random.choice(counts)
            for _ in range(self.random.randint(2, 5))
        )


def as_regex(kind: int, text: str) -> str:
    """Write any pattern as a regular expression, for matchers that know nothing else."""
    if kind == REGEX:
        return text
    if kind == CONTAINS:
        return re2.escape(text)
    wild = {"%": "(?s:.*)", "_": "(?s:.)"}
    inner = "".join(wild.get(c) or re2.escape(c) for c in text.strip("%"))
    # An anchor instead of a leading or trailing wildcard: a set of ".*x.*" would be slowed by both.
    return ("" if text[0] == "%" else "^") + inner + ("" if text[-1] == "%" else "$")


def ours(kind: int, texts: Sequence[str]) -> tuple[Match, int]:
    """Bittern's PatternSet: arrays in, arrays out."""
    patterns = PatternSet.build([kind] * len(texts), texts)

    def match(values: list[bytes]) -> tuple[int, int]:
        data = np.frombuffer(b"".join(values), np.uint8)
        offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
        return len(values), len(patterns.match(data, offsets)[1])

    return match, patterns.nbytes


def one_by_one(find: Callable[[bytes], int]) -> Match:
    """Match the values of a batch singly, as far as the time goes."""

    def match(values: list[bytes]) -> tuple[int, int]:
        until = time.perf_counter() + SECONDS
        n_values = n_matches = 0
        for value in values:
            n_matches += find(value)
            n_values += 1
            if time.perf_counter() > until:
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


def measure(name: str, matcher: Any, kind: int, texts: list[str], batches: Any) -> None:
    """Print one row of the table."""
    start = time.perf_counter()
    try:
        match, nbytes = matcher(kind, texts)
    except (ImportError, re2.error) as error:
        print(f"| {name} | {len(texts):,} | {error} | | | |")
        return
    built = time.perf_counter() - start
    best, matches = float("inf"), 0.0
    for batch in batches:
        start = time.perf_counter()
        n_values, n_matches = match(batch)
        seconds = time.perf_counter() - start
        if batch is not batches[0]:
            best, matches = min(best, seconds / n_values), n_matches / n_values
    size = f"{nbytes / len(texts):,.0f}" if nbytes else ""
    print(
        f"| {name} | {len(texts):,} | {built:.2f} | {size} | {best * 1e6:,.2f} | {matches:.2f} |",
        flush=True,
    )


def rivals(kind: int, size: int) -> Iterable[tuple[str, Any]]:
    """Name the matchers that can express the kind; 50,000 LIKE or regex take them minutes."""
    if kind == CONTAINS:
        yield "pyahocorasick", aho
    if kind == CONTAINS or size <= 10_000:
        yield "re2.Set", re2_set
        yield "hyperscan", hyper


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="at most 10,000 patterns")
    quick = arguments.parse_args().quick
    text = Text()
    distinct = list(dict.fromkeys(text.value().encode() for _ in range(BATCH * BATCHES)))
    batches = [distinct[i::BATCHES] for i in range(BATCHES)]
    ours(REGEX, ["compile", "[0-9]", "(?i)now"])[0](batches[0])
    print("| matcher | patterns | build s | bytes/pattern | us/value | matches/value |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    kinds = [
        ("contains", CONTAINS, text.contains),
        ("LIKE", LIKE, text.like),
        ("regex", REGEX, text.regex),
    ]
    for label, kind, make in kinds:
        for size in (100, 10_000) if quick else (100, 10_000, 50_000):
            texts = list(dict.fromkeys(make() for _ in range(size)))
            measure(f"bittern, {label}", ours, kind, texts, batches)
            for name, rival in rivals(kind, size):
                measure(f"{name}, {label}", rival, kind, texts, batches)
    for size in (1, 10, 100):
        texts = [text.shape() for _ in range(size)]
        measure("bittern, regex without literal", ours, REGEX, texts, batches)
        measure("re2.Set, regex without literal", re2_set, REGEX, texts, batches)


if __name__ == "__main__":
    main()
