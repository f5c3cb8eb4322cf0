r"""String predicates that sorting cannot answer: contains, general LIKE, regular expressions.

A ``PatternSet`` holds all such patterns of one attribute and tells, for a batch of values, which
of them each value satisfies. Every pattern is filed under fragments that a satisfying value must
contain (``fragments``); one pass of an automaton (``substrings``) finds the fragments of all
patterns at once, and only the patterns whose fragment was found are looked at:

    pattern                 filed under       when the fragment is found
    contains 'ello'         ello              satisfied: nothing more to do
    LIKE 'h_llo%world'      world             run its small program on the value (compiled kernel)
    regex 'h[ae]l+o|w.rld'  h and rld         search with RE2
    regex '(?i)Hello'       hello, folded     search with RE2 (second automaton, ASCII case folded)
    LIKE '__', regex '\d'   nothing           looked at for every value

Searches are gathered per regular expression, so that RE2 sees all of its values at once
(``regexes``), and their memory is bounded there however many regular expressions there are.

Arrays (flat, mapped from a file as they are; regular expressions are compiled when first needed):
``actions`` per pattern; ``texts``/``text_offsets`` with the LIKE program or the regular
expression; ``unfiled``, the patterns without a fragment; and, for each automaton, its own arrays
and ``filed_offsets``/``filed``, the patterns under each literal.

Cost of a batch: O(value bytes + fragments found + verification of survivors). A LIKE program costs
O(value), and where it and the value are made so that it would go back over and over again,
O(value * program / 64); a program has at most 4,000 bytes. RE2 is linear in the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittern.arrays import starts_of
from bittern.jit import apart, i4r, i8r, i8w, inline, kernel, read_only, tuple_type, u1r
from bittern.model.patterns.fragments import (
    ANY_ONE,
    ANY_RUN,
    like_fragment,
    like_program,
    regex_covers,
)
from bittern.model.patterns.regexes import Texts, compiled
from bittern.model.patterns.substrings import FoundLiterals, Substrings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Kinds of pattern, as ``PatternSet.build`` takes them.
CONTAINS, LIKE, REGEX = 0, 1, 2

#: What to do with a pattern whose fragment was found.
_ACCEPT, _RUN, _SEARCH = 0, 1, 2

#: What running a LIKE program says.
_FAILS, _HOLDS, _GIVEN_UP = 0, 1, -1
_BYTES = 256


class Filing(NamedTuple):
    """Which patterns are filed under which literal, and the LIKE programs to run."""

    offsets: np.ndarray
    patterns: np.ndarray
    actions: np.ndarray
    texts: np.ndarray
    text_offsets: np.ndarray


_FILING = tuple_type(Filing, i4r, i4r, u1r, u1r, i8r)


@inline
def _next_character(value: Any, position: Any) -> Any:
    position += 1
    while position < value.shape[0] and value[position] & 0xC0 == 0x80:
        position += 1
    return position


@inline
def _greedy(value: Any, program: Any, most: Any) -> Any:
    """Whether a LIKE program holds for a value, or ``_GIVEN_UP``; and how much was read again.

    Only the last ``%`` is ever retried: if a run fits, its leftmost place serves as well as any.
    A retry moves by whole characters, so ``_`` never sees half of one. Values and programs can be
    made so that each retry reads a long run again: after ``most`` such bytes it is given up.
    """
    end, last = value.shape[0], program.shape[0]
    i, j = 0, 0
    retry_i, retry_j = 0, -1
    again = 0
    while i < end:
        if j < last and program[j] == ANY_RUN:
            j += 1
            if j == last:
                return _HOLDS, again
            retry_i, retry_j = i, j
        elif j < last and program[j] == ANY_ONE:
            i = _next_character(value, i)
            j += 1
        elif j < last and program[j] == value[i]:
            i += 1
            j += 1
        elif retry_j >= 0:
            again += i - retry_i
            if again > most:
                return _GIVEN_UP, again
            retry_i = _next_character(value, retry_i)
            i, j = retry_i, retry_j
        else:
            return _FAILS, again
    if j == last or (j == last - 1 and program[j] == ANY_RUN):
        return _HOLDS, again
    return _FAILS, again


@inline
def _n_words(program: Any) -> Any:
    """Words with a bit for each state of a LIKE program: how many of its bytes are matched."""
    return (program.shape[0] >> 6) + 1


@apart
def _in_parallel(value: Any, program: Any, room: Any) -> Any:
    """Whether a LIKE program holds, by all of its states at once: O(value * program / 64).

    A byte takes each state that it fits to the next. A state before ``%`` stays whatever comes, and
    one behind ``_`` until the character is over: what follows there begins with another one.
    """
    words = _n_words(program)
    # By byte, the states that it leads to; then those behind _, those before %, those reached.
    ones, stays, reached = _BYTES * words, (_BYTES + 1) * words, (_BYTES + 2) * words
    room[: (_BYTES + 3) * words] = 0
    state = 0
    for j in range(program.shape[0]):
        row = stays
        if program[j] != ANY_RUN:
            state += 1
            row = ones if program[j] == ANY_ONE else np.int64(program[j]) * words
        room[row + (state >> 6)] |= np.uint64(1) << np.uint64(state & 63)
    room[reached] = 1
    for i in range(value.shape[0]):
        row = np.int64(value[i]) * words
        is_first = value[i] & 0xC0 != 0x80
        carry = np.uint64(0)
        for k in range(words):
            old = room[reached + k]
            moved = old << np.uint64(1) | carry
            carry = old >> np.uint64(63)
            one = moved if is_first else old
            room[reached + k] = moved & room[row + k] | one & room[ones + k] | old & room[stays + k]
    return room[reached + (state >> 6)] >> np.uint64(state & 63) & np.uint64(1) != 0


@kernel(i8w, u1r, i8r, i8r, i4r, _FILING)
def _settle(data: Any, offsets: Any, found_offsets: Any, found: Any, filing: Any) -> Any:
    """Accept, run or leave open every pattern filed under a literal found in a value.

    Returns a key ``value * patterns + pattern`` for what is satisfied, and its complement, which is
    negative, for what is still to be searched with RE2.
    """
    n_patterns = filing.actions.shape[0]
    keys = np.empty(found.shape[0] + 16, np.int64)
    n_keys = 0
    room = np.empty(0, np.uint64)
    for value in range(offsets.shape[0] - 1):
        for k in range(found_offsets[value], found_offsets[value + 1]):
            for f in range(filing.offsets[found[k]], filing.offsets[found[k] + 1]):
                pattern = filing.patterns[f]
                key = value * n_patterns + np.int64(pattern)
                if filing.actions[pattern] == _SEARCH:
                    key = ~key
                elif filing.actions[pattern] == _RUN:
                    program = filing.texts[
                        filing.text_offsets[pattern] : filing.text_offsets[pattern + 1]
                    ]
                    text = data[offsets[value] : offsets[value + 1]]
                    needed = (_BYTES + 3) * _n_words(program)
                    holds, _ = _greedy(text, program, 4 * text.shape[0] + needed)
                    if holds == _GIVEN_UP:
                        if room.shape[0] < needed:
                            room = np.empty(needed, np.uint64)
                        holds = np.int64(_in_parallel(text, program, room))
                    if holds == _FAILS:
                        continue
                if n_keys == keys.shape[0]:
                    larger = np.empty(2 * n_keys, np.int64)
                    larger[:n_keys] = keys
                    keys = larger
                keys[n_keys] = key
                n_keys += 1
    return keys[:n_keys].copy()


class _Index:
    """One automaton and the patterns filed under each of its literals."""

    def __init__(self, literals: Substrings, offsets: np.ndarray, patterns: np.ndarray) -> None:
        self.literals = literals
        self.offsets = read_only(offsets)
        self.patterns = read_only(patterns)

    @classmethod
    def build(cls, filed: Mapping[bytes, list[int]], *, fold: bool) -> _Index:
        return cls(
            Substrings.build(list(filed), fold=fold),
            starts_of([len(patterns) for patterns in filed.values()], np.int32),
            np.array([p for patterns in filed.values() for p in patterns], np.int32),
        )

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        filed = {prefix + "filed_offsets": self.offsets, prefix + "filed": self.patterns}
        return self.literals.arrays(prefix) | filed

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], prefix: str) -> _Index:
        literals = Substrings.from_arrays(arrays, prefix)
        return cls(literals, arrays[prefix + "filed_offsets"], arrays[prefix + "filed"])


class PatternSet:
    """The patterns on one attribute; tells which of them each value satisfies. Immutable.

    Threads may match at the same time. Pattern ids are positions in what ``build`` was given.
    """

    def __init__(
        self,
        actions: np.ndarray,
        texts: np.ndarray,
        text_offsets: np.ndarray,
        unfiled: np.ndarray,
        indexes: tuple[_Index, _Index],
    ) -> None:
        self._actions = read_only(actions)
        self._texts = read_only(texts)
        self._text_offsets = read_only(text_offsets)
        self._unfiled = read_only(unfiled)
        self._indexes = indexes

    @classmethod
    def build(cls, kinds: Sequence[int], texts: Sequence[str]) -> PatternSet:
        """File every pattern. O(total text), plus 10 to 20 us a pattern to read it.

        >>> patterns = PatternSet.build([CONTAINS, LIKE, REGEX], ["ell", "h_llo", "^[hj]ello$"])
        >>> value = np.frombuffer(b"hello", np.uint8)
        >>> patterns.match(value, np.array([0, 5]))[1].tolist()
        [0, 1, 2]
        """
        actions = np.empty(len(kinds), np.uint8)
        programs: list[bytes] = []
        unfiled: list[int] = []
        plain: dict[bytes, list[int]] = {}
        folded: dict[bytes, list[int]] = {}
        covers = iter(regex_covers([t for k, t in zip(kinds, texts, strict=True) if k == REGEX]))
        for i, (kind, text) in enumerate(zip(kinds, texts, strict=True)):
            if kind == REGEX:
                actions[i] = _SEARCH
                programs.append(text.encode())
                cover = next(covers)
                for fragment in cover:
                    (folded if fragment.folded else plain).setdefault(fragment.text, []).append(i)
                filed = bool(cover)
            else:
                # Of contains the whole text, however long: nothing is left to be verified.
                whole = kind == CONTAINS and bool(text)
                program = like_program(text) if kind == LIKE else bytes([ANY_RUN])
                fragment_text = text.encode() if whole else like_fragment(program)
                actions[i] = _ACCEPT if whole else _RUN
                programs.append(b"" if whole else program)
                filed = bool(fragment_text)
                if filed:
                    plain.setdefault(fragment_text, []).append(i)
            if not filed:
                unfiled.append(i)
        return cls(
            actions,
            np.frombuffer(bytearray().join(programs), np.uint8),
            starts_of(list(map(len, programs))),
            np.array(unfiled, np.int32),
            (_Index.build(plain, fold=False), _Index.build(folded, fold=True)),
        )

    def __len__(self) -> int:
        return len(self._actions)

    def match(self, data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """CSR over the values ``data[offsets[i]:offsets[i+1]]``: pattern ids, ascending.

        O(value bytes + fragments found + survivors verified), in compiled code but for a Python
        call for every regular expression that has survivors, and for each of a few survivors.
        """
        n_values, n_patterns = len(offsets) - 1, len(self)
        settled = [np.zeros(0, np.int64)]
        for found, filed_offsets, filed in self._found(data, offsets):
            filing = Filing(filed_offsets, filed, self._actions, self._texts, self._text_offsets)
            settled.append(_settle(data, offsets, found.offsets, found.literals, filing))
        keys = np.sort(np.concatenate(settled))
        n_open = int(np.searchsorted(keys, 0))
        searched = self._search(data, offsets, ~keys[:n_open])
        if searched:
            keys = np.sort(np.concatenate([keys[n_open:], *searched]))
        row_offsets = np.searchsorted(keys, np.arange(n_values + 1) * n_patterns)
        return row_offsets, (keys % max(n_patterns, 1)).astype(np.int32)

    def _found(
        self, data: np.ndarray, offsets: np.ndarray
    ) -> Iterable[tuple[FoundLiterals, np.ndarray, np.ndarray]]:
        """Run the automata; LIKE programs without a fragment count as found everywhere."""
        for index in self._indexes:
            if len(index.literals):
                yield index.literals.find(data, offsets), index.offsets, index.patterns
        programs = self._unfiled[self._actions[self._unfiled] == _RUN]
        if len(programs):
            everywhere = FoundLiterals(
                np.arange(len(offsets)), np.zeros(len(offsets) - 1, np.int32)
            )
            yield everywhere, read_only(np.array([0, len(programs)], np.int32)), read_only(programs)

    def _search(self, data: np.ndarray, offsets: np.ndarray, keys: np.ndarray) -> list[np.ndarray]:
        """Keys of what RE2 finds: the open ones, and regular expressions without a fragment."""
        n_values, n_patterns = len(offsets) - 1, len(self)
        unfiled = self._unfiled[self._actions[self._unfiled] == _SEARCH]
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
            "unfiled": self._unfiled,
            **plain.arrays("plain_"),
            **folded.arrays("folded_"),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PatternSet:
        """Undo ``arrays``; copies and compiles nothing. O(1)."""
        return cls(
            arrays["actions"],
            arrays["texts"],
            arrays["text_offsets"],
            arrays["unfiled"],
            (_Index.from_arrays(arrays, "plain_"), _Index.from_arrays(arrays, "folded_")),
        )

    @property
    def nbytes(self) -> int:
        """What the arrays occupy; compiled regular expressions are the cache's, not counted."""
        return sum(array.nbytes for array in self.arrays().values())

    def check(self) -> None:
        """Assert every invariant of the layout. O(size)."""
        n_patterns = len(self)
        assert len(self._text_offsets) == n_patterns + 1
        assert self._text_offsets[0] == 0
        assert self._text_offsets[-1] == len(self._texts)
        assert (np.diff(self._text_offsets) >= 0).all()
        assert (self._actions <= _SEARCH).all()
        seen = np.zeros(n_patterns, np.bool_)
        for index in self._indexes:
            index.literals.check()
            assert len(index.offsets) == len(index.literals) + 1
            assert index.offsets[0] == 0
            assert index.offsets[-1] == len(index.patterns)
            assert (np.diff(index.offsets) > 0).all()
            assert ((index.patterns >= 0) & (index.patterns < n_patterns)).all()
            seen[index.patterns] = True
        assert ((self._unfiled >= 0) & (self._unfiled < n_patterns)).all()
        assert not seen[self._unfiled].any()
        seen[self._unfiled] = True
        assert seen.all()
        for text in self._regexes(np.flatnonzero(self._actions == _SEARCH)):
            compiled(text)
