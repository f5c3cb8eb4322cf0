"""Copies of indexes and matchers, here and in another process, match as the originals do."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import pytest

from bittern import Index, Matcher
from bittern.matching.registry import STRATEGIES

EVENT = {"price": 5, "name": "axzyabb", "u": 7}
BATCH = [EVENT, {"price": 50, "name": "no", "u": 8}] * 100  # too many to be matched one by one
PLAIN = {"cheap": "price BETWEEN 1 AND 9", "seven": "u = 7 AND price BETWEEN 3 AND 7"}
RICH = PLAIN | {
    "like": "name LIKE '%x_y%'",
    "regex": "name RLIKE 'ab+'",
    "term": "length(name) > 3 AND price > 2",
    "set": "u IN SET vips",
}


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))


COPIES = pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])


def answers(matcher):
    return matcher.match(EVENT).to_pylist(), matcher.match(BATCH).to_pylist()


def rich_index():
    return Index.build(RICH, sets={"vips": [7, 9]})


@COPIES
@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_copy_of_each_strategy(strategy, copied):
    index = Index.build(PLAIN, strategy=strategy)
    expected = answers(Matcher(index))
    assert sorted(expected[0][0]) == sorted(PLAIN)
    assert answers(Matcher(copied(index))) == expected
    assert answers(copied(Matcher(index))) == expected


@COPIES
def test_a_copy_has_patterns_terms_and_sets(copied):
    matcher = Matcher(rich_index())
    expected = answers(matcher)
    assert sorted(expected[0][0]) == sorted(RICH)
    assert answers(copied(matcher)) == expected
    copied(matcher.index).check()


@COPIES
def test_a_copy_says_what_the_original_says(tmp_path, copied):
    index = Index.build({**PLAIN, "bad": "price <"}, on_error="skip")
    index.save(tmp_path / "s")
    same = copied(index)
    assert (same.path, same.id, same.bad, same.timings) == (
        index.path,
        index.id,
        index.bad,
        index.timings,
    )


def test_a_copy_in_a_process_that_is_spawned():
    matcher = Matcher(rich_index())
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(answers, (matcher,)) == answers(matcher)
