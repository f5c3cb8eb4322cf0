r"""String predicates that sorting cannot answer: contains, general LIKE, regular expressions.

A ``PatternSet`` holds all such patterns of one attribute and tells, for a batch of values, which
of them each value satisfies. Every pattern is filed under fragments that a satisfying value must
contain (``covers``, ``filing``); one pass over a value (``substrings``) finds the fragments of
all patterns at once, and only the patterns whose fragment was found are looked at. ``<`` and ``>``
are the value's start and end::

    pattern                 filed under        when the fragment is found
    contains 'ello'         ello               satisfied: nothing more to do
    LIKE 'h_llo%world'      world>             if <h is there, too, run its program on the value
    regex 'h[ae]l+o|w.rld'  h and rld          run its program from there
    regex '(?i)Hello'       hello, folded      satisfied (second automaton, case folded)
    regex 'h\pLllo'         llo                search with RE2: a class that no program knows
    LIKE '__', regex '\d'   nothing            looked at for every value

Programs of regular expressions (``regex``) are run for one pattern after the other, so that a
program stays in the cache while it is run on all of its values. RE2 does what they leave
(``regexes``), and its memory is bounded there however many regular expressions there are.

Arrays (flat, mapped from a file as they are): ``actions`` per pattern; ``texts``/``text_offsets``
with the LIKE program or the regular expression; ``programs``/``program_offsets`` with the programs
of regular expressions; ``unfiled``, the patterns without a fragment; and, for each automaton, its
own arrays, the ``lengths`` of its literals, and ``filed_offsets``/``filed``, what is filed under
each literal: the pattern, how many bytes at most stand before the literal (-1: any number), the
second literal that has to be found (-1: none), and whether that stands before this one.

Cost of a batch: O(value bytes + fragments found + what is run). A LIKE program costs O(value), and
where it and the value are made so that it would go back over and over again, O(value * program /
64); a program has at most 4,000 bytes. That of a regular expression costs O(value * places), of
which it has at most 62. RE2 is linear in the value.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from bittern.arrays import starts_of
from bittern.jit import read_only
from bittern.model.patterns import LIKE
from bittern.model.patterns.automaton import Finding
from bittern.model.patterns.candidates import (
    BEFORE,
    FIELDS,
    PATTERN,
    SECOND,
    Filing,
    find_candidates,
    run_likes,
    run_programs,
)
from bittern.model.patterns.covers import EITHER, room_for_covers
from bittern.model.patterns.filing import (
    ACCEPT,
    RUN,
    SEARCH,
    PatternFacts,
    choose_covers,
    read_patterns,
)
from bittern.model.patterns.likes import ANY_RUN, like_program, room_needed
from bittern.model.patterns.regex.programs import check_program, room_to_make
from bittern.model.patterns.regex.tokens import room_for_tokens
from bittern.model.patterns.regexes import Texts, compiled
from bittern.model.patterns.substrings import Substrings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class _Index:
    """One automaton and what is filed under each of its literals."""

    def __init__(
        self, literals: Substrings, lengths: np.ndarray, offsets: np.ndarray, filed: np.ndarray
    ) -> None:
        self.literals = literals
        self.lengths = read_only(lengths)
        self.offsets = read_only(offsets)
        self.filed = read_only(filed)

    @classmethod
    def build(cls, literals: list[bytes], entries: list[int], *, fold: bool) -> _Index:
        """``entries``: for each thing filed its literal, then its fields."""
        rows = np.array(entries, np.int32).reshape(-1, 1 + FIELDS)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return cls(
            Substrings.build(literals, fold=fold),
            np.array([len(literal) for literal in literals], np.int32),
            starts_of(np.bincount(rows[:, 0], minlength=len(literals)), np.int32),
            np.ascontiguousarray(rows[:, 1:]).reshape(-1),
        )

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        return self.literals.arrays(prefix) | {
            prefix + "lengths": self.lengths,
            prefix + "filed_offsets": self.offsets,
            prefix + "filed": self.filed,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> _Index:
        own = (arrays[prefix + name] for name in ("lengths", "filed_offsets", "filed"))
        return cls(Substrings.from_arrays(arrays, prefix), *own)

    def check(self, n_patterns: int) -> np.ndarray:
        """Assert every invariant; returns the patterns that are filed."""
        self.literals.check()
        n_literals = len(self.literals)
        assert self.lengths.tolist() == self.literals.literal_lengths().tolist()
        assert len(self.offsets) == n_literals + 1
        assert self.offsets[0] == 0
        assert self.offsets[-1] * FIELDS == len(self.filed)
        assert (np.diff(self.offsets) >= 0).all()
        rows = self.filed.reshape(-1, FIELDS)
        assert ((rows[:, PATTERN] >= 0) & (rows[:, PATTERN] < n_patterns)).all()
        assert (rows[:, BEFORE] >= -1).all()
        assert ((rows[:, SECOND] >= -1) & (rows[:, SECOND] < n_literals)).all()
        return rows[:, PATTERN]


class PatternSet:
    """The patterns on one attribute; tells which of them each value satisfies. Immutable.

    Threads may match at the same time. Pattern ids are positions in what ``build`` was given.
    """

    def __init__(
        self,
        actions: np.ndarray,
        texts: tuple[np.ndarray, np.ndarray],
        programs: tuple[np.ndarray, np.ndarray],
        unfiled: np.ndarray,
        indexes: tuple[_Index, _Index],
    ) -> None:
        self._actions = read_only(actions)
        self._texts, self._text_offsets = map(read_only, texts)
        self._programs, self._program_offsets = map(read_only, programs)
        self._unfiled = read_only(unfiled)
        self._indexes = indexes

    @classmethod
    def build(cls, kinds: Sequence[int], texts: Sequence[str]) -> PatternSet:
        """File every pattern. O(total text), some 10 us a pattern.

        >>> from bittern.model.patterns import CONTAINS, LIKE, REGEX
        >>> patterns = PatternSet.build([CONTAINS, LIKE, REGEX], ["ell", "h_llo", "^[hj]ello$"])
        >>> value = np.frombuffer(b"hello", np.uint8)
        >>> patterns.match(value, np.array([0, 5]))[1].tolist()
        [0, 1, 2]
        """
        given = [
            like_program(text) if kind == LIKE else text.encode()
            for kind, text in zip(kinds, texts, strict=True)
        ]
        read = read_patterns(
            np.array(kinds, np.uint8),
            np.frombuffer(b"".join(given), np.uint8),
            starts_of(list(map(len, given))),
            room_for_tokens(),
            room_to_make(),
            room_for_covers(),
        )
        chosen = choose_covers(read)
        # What is accepted once its fragment is found has nothing to be run. The empty text is
        # contained in everything, as LIKE '%' says.
        actions, n_covers = read.actions, np.diff(read.cover_offsets)
        for i in np.flatnonzero((actions == ACCEPT) & (n_covers == 0)).tolist():
            actions[i], given[i] = RUN, bytes([ANY_RUN])
        for i in np.flatnonzero(actions == ACCEPT).tolist():
            given[i] = b""
        return cls(
            actions,
            (np.frombuffer(bytearray().join(given), np.uint8), starts_of(list(map(len, given)))),
            (read.programs, read.program_offsets),
            np.flatnonzero(n_covers == 0).astype(np.int32),
            _file(read, chosen),
        )

    def __len__(self) -> int:
        return len(self._actions)

    def match(self, data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """CSR over the values ``data[offsets[i]:offsets[i+1]]``: pattern ids, ascending.

        O(value bytes + fragments found + what is run), in compiled code but for a Python call for
        every regular expression that RE2 is asked about.
        """
        n_values, n_patterns = len(offsets) - 1, len(self)
        settled = [np.zeros(0, np.int64), *self._settled(data, offsets)]
        keys = np.sort(np.concatenate(settled))
        n_open = int(np.searchsorted(keys, 0))
        searched = self._search(data, offsets, ~keys[:n_open])
        keys = keys[n_open:]
        if searched:
            keys = np.sort(np.concatenate([keys, *searched]))
        # Several fragments of one cover may be found in one value: keep one key.
        if len(keys) > 1:
            keys = keys[np.diff(keys, prepend=-1) != 0]
        row_offsets = np.searchsorted(keys, np.arange(n_values + 1) * n_patterns)
        return row_offsets, (keys % max(n_patterns, 1)).astype(np.int32)

    def _settled(self, data: np.ndarray, offsets: np.ndarray) -> Iterator[np.ndarray]:
        """Keys of what is satisfied, and complements of those that RE2 is to be asked."""
        for index, folds in zip(self._indexes, (0, 1), strict=True):
            if not len(index.literals):
                continue
            filing = Filing(
                index.offsets,
                index.filed,
                self._actions,
                self._texts,
                self._text_offsets,
            )
            finding = index.literals.finding(index.lengths)
            automaton = index.literals.automaton
            candidates = find_candidates(
                automaton, finding, filing, data, offsets, folds, self.like_words
            )
            yield run_programs(candidates, self._programs, self._program_offsets, data, offsets)
        programs = self._unfiled[self._actions[self._unfiled] == RUN]
        if len(programs):
            yield run_likes(
                programs, self._texts, self._text_offsets, data, offsets, self.like_words
            )

    @functools.cached_property
    def like_words(self) -> int:
        """Words that running any LIKE program of the set takes at most. O(patterns), once."""
        lengths = np.diff(self._text_offsets)[self._actions == RUN]
        return int(room_needed(int(lengths.max(initial=0))))

    def findings(self) -> tuple[Finding, Finding]:
        """Room for what each automaton finds."""
        plain, folded = self._indexes
        return plain.literals.finding(plain.lengths), folded.literals.finding(folded.lengths)

    def search(self, data: np.ndarray, start: int, end: int, patterns: Sequence[int]) -> list[int]:
        """Which of these regular expressions RE2 finds in the value ``data[start:end]``."""
        texts = self._regexes(np.array(patterns, np.int64))
        starts, rows = np.arange(len(texts) + 1), np.zeros(len(texts), np.int64)
        value = Texts(data[start:end], np.array([0, end - start]))
        return [
            patterns[i] for i in np.flatnonzero(value.search_groups(texts, starts, rows)).tolist()
        ]

    def _search(self, data: np.ndarray, offsets: np.ndarray, keys: np.ndarray) -> list[np.ndarray]:
        """Keys of what RE2 finds: the open ones, and regular expressions without a fragment."""
        n_values, n_patterns = len(offsets) - 1, len(self)
        unfiled = self._unfiled[self._actions[self._unfiled] == SEARCH]
        if n_values == 0 or len(keys) + len(unfiled) == 0:
            return []
        batch = Texts(data, offsets)
        rows, patterns = np.divmod(keys, n_patterns)
        by_pattern = np.sort(patterns * n_values + rows)
        # Several fragments of one cover may be found in one value: keep one key.
        by_pattern = by_pattern[np.diff(by_pattern, prepend=-1) != 0]
        patterns, rows = np.divmod(by_pattern, n_values)
        starts = np.flatnonzero(np.diff(patterns, prepend=-1, append=n_patterns))
        texts = self._regexes(patterns[starts[:-1]])
        mask = batch.search_groups(texts, starts, rows)
        results = [(rows * n_patterns + patterns)[mask]]
        for pattern, text in zip(unfiled.tolist(), self._regexes(unfiled), strict=True):
            results.append(np.flatnonzero(batch.search_all(text)) * n_patterns + pattern)
        return results

    def _regexes(self, patterns: np.ndarray) -> list[bytes]:
        view = self._texts.data
        bounds = zip(
            self._text_offsets[patterns].tolist(),
            self._text_offsets[patterns + 1].tolist(),
            strict=True,
        )
        return [bytes(view[start:end]) for start, end in bounds]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything the set consists of, as flat arrays by name."""
        plain, folded = self._indexes
        return {
            "actions": self._actions,
            "texts": self._texts,
            "text_offsets": self._text_offsets,
            "programs": self._programs,
            "program_offsets": self._program_offsets,
            "unfiled": self._unfiled,
            **plain.arrays("plain_"),
            **folded.arrays("folded_"),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PatternSet:
        """Undo ``arrays``; copies and compiles nothing. O(1)."""
        return cls(
            arrays["actions"],
            (arrays["texts"], arrays["text_offsets"]),
            (arrays["programs"], arrays["program_offsets"]),
            arrays["unfiled"],
            (_Index.from_arrays(arrays, "plain_"), _Index.from_arrays(arrays, "folded_")),
        )

    @property
    def nbytes(self) -> int:
        """What the arrays occupy; what RE2 compiled and tables of windows are not counted."""
        return sum(array.nbytes for array in self.arrays().values())

    def check(self) -> None:
        """Assert every invariant of the layout. O(size)."""
        n_patterns = len(self)
        for offsets, items in (
            (self._text_offsets, self._texts),
            (self._program_offsets, self._programs),
        ):
            assert len(offsets) == n_patterns + 1
            assert offsets[0] == 0
            assert offsets[-1] == len(items)
            assert (np.diff(offsets) >= 0).all()
        assert (self._actions <= SEARCH).all()
        seen = np.zeros(n_patterns, np.bool_)
        for index in self._indexes:
            seen[index.check(n_patterns)] = True
        assert ((self._unfiled >= 0) & (self._unfiled < n_patterns)).all()
        assert not seen[self._unfiled].any()
        seen[self._unfiled] = True
        assert seen.all()
        for pattern in np.flatnonzero(np.diff(self._program_offsets)).tolist():
            first, end = self._program_offsets[pattern : pattern + 2].tolist()
            check_program(self._programs[first:end])
        for text in self._regexes(np.flatnonzero(self._actions == SEARCH)):
            compiled(text)


def _file(read: PatternFacts, chosen: np.ndarray) -> tuple[_Index, _Index]:
    """File every pattern under the fragments of the cover that was chosen for it."""
    literals: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    entries: tuple[list[int], list[int]] = ([], [])
    text = read.text.tobytes()
    fragments = [
        (int(case == EITHER), text[start : start + length], before)
        for start, length, case, before in read.fragments.reshape(-1, 4).tolist()
    ]
    ends = read.fragment_offsets.tolist()
    covers = chosen.reshape(-1, 2).tolist()
    for pattern, (cover, second) in enumerate(covers):
        if cover < 0:
            continue
        number = -1
        if second >= 0:
            case, literal, _ = fragments[ends[second]]
            number = literals[case].setdefault(literal, len(literals[case]))
        for case, literal, before in fragments[ends[cover] : ends[cover + 1]]:
            own = literals[case].setdefault(literal, len(literals[case]))
            entries[case].extend((own, pattern, before, number, int(second < cover)))
    plain, folded = (
        _Index.build(list(literals[case]), entries[case], fold=bool(case)) for case in (0, 1)
    )
    return plain, folded
