"""Every registered strategy keeps the contract: it finds what the oracle and ``scan`` find.

What is particular to a strategy is in its own test module; here is what they promise alike, for
each name in the registry.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import bittern
import strategies
from answers import build, expected
from bittern.engine.live import compact as compact_module
from bittern.errors import OptionError, SnapshotError, SubscriptionError
from bittern.language.printer import print_expression
from bittern.matching.contract import ChangingIndex
from bittern.matching.registry import STRATEGIES, strategy
from effort import examples
from matching_cases import SHAPES, small_events
from subscription_contract import (
    DOMAIN,
    WORLDS,
    History,
    compiled,
    damaged,
    encoded,
    expected_pairs,
    held,
    pairs,
    parameters_for,
    part,
    read_only_copies,
    sparse_view,
    truth,
    worlds_of,
)

if TYPE_CHECKING:
    from bittern.language.syntax import Expression
    from bittern.model.classes.compile import Compiled
    from bittern.model.rank.encoded import EncodedEvents

#: Strategies that hold every expression whose normal form is not too large.
TAKE_ALL = sorted(set(STRATEGIES) - {"kindex"})
CHANGING = [name for name in sorted(STRATEGIES) if issubclass(strategy(name), ChangingIndex)]

every_strategy = pytest.mark.parametrize("name", sorted(STRATEGIES))


def agrees(index: bittern.Index, catalog: dict[str, str], events: list[dict[str, Any]]) -> None:
    """The index finds what the oracle says, of what it did not leave out, in every view."""
    bad = {each.id for each in index.bad}
    right = [
        [id_ for id_ in satisfied if id_ not in bad] for satisfied in expected(catalog, events)
    ]
    matcher = bittern.Matcher(index)
    assert matcher.match(events).to_pylist() == right
    with sparse_view():
        assert matcher.match(events).to_pylist() == right
    for event, satisfied in zip(events[:3], right, strict=False):
        assert matcher.match([event]).to_pylist() == [satisfied]
    assert matcher.match([]).to_pylist() == []


# ------------------------------------------------------------------ whole catalogs


@pytest.mark.parametrize(
    ("name", "world"),
    [(name, world) for name in sorted(STRATEGIES) for world in worlds_of(strategy(name))],
)
def test_any_catalog_agrees_with_the_oracle(name: str, world: str) -> None:
    expression, event = WORLDS[world]

    @examples(0.5)
    @given(
        strategies.catalogs(expression),
        strategies.batches(event, max_size=8),
        st.one_of(st.none(), strategies.batches(event, max_size=5)),
    )
    def check(
        trees: dict[str, Expression],
        events: list[dict[str, Any]],
        sample: list[dict[str, Any]] | None,
    ) -> None:
        catalog = {id_: print_expression(tree) for id_, tree in trees.items()}
        index = build(
            catalog,
            strategy=name,
            sample=sample,
            on_error="skip",
            parameters=parameters_for(strategy(name), world),
        )
        assert name not in TAKE_ALL or not index.bad
        agrees(index, catalog, events)

    check()


@every_strategy
@pytest.mark.parametrize("sampled", [False, True])
def test_shapes_of_expressions(name: str, *, sampled: bool, tmp_path: Path) -> None:
    """Also saved, and mapped again."""
    events = small_events()
    sample = events if sampled else None
    index = build(SHAPES, strategy=name, sample=sample, on_error="skip")
    agrees(index, SHAPES, events)
    saved = index.save(tmp_path / "index")
    opened = bittern.Index.open(tmp_path / "index", verify=True)
    opened.bad = index.bad
    opened.check()
    assert opened.id == saved
    assert opened.subscriptions.name == name
    assert opened.subscriptions.parameters == index.subscriptions.parameters
    assert opened.subscriptions.options == index.subscriptions.options
    assert opened.statistics() == index.statistics()
    assert opened.nbytes == index.nbytes
    agrees(opened, SHAPES, events)


@every_strategy
def test_an_empty_catalog(name: str) -> None:
    index = build({}, strategy=name)
    assert bittern.Matcher(index).match([{"a": 1}, {}]).to_pylist() == [[], []]
    assert index.subscriptions.statistics()["classes"] == 0


@cache
def skewed_catalog() -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Thousands of classes over few attributes, some values far more common than others."""
    rng = np.random.default_rng(11)
    names = ["i", "j", "k", "l", "m", "n"]

    def value() -> int:
        return int(min(rng.geometric(0.35) - 1, DOMAIN[1]))

    def predicate() -> str:
        name, low = names[min(rng.geometric(0.4) - 1, 5)], value()
        kind = rng.integers(5)
        if kind == 0:
            return f"{name} BETWEEN {low} AND {max(low, value())}"
        if kind == 1:
            return f"{name} IN ({low}, {value()}, {value()})"
        if kind == 2:
            return f"{name} {rng.choice(['<', '<=', '>', '>=', '!='])} {low}"
        return f"{name} = {low}"

    def conjunction(most: int) -> str:
        return " AND ".join(predicate() for _ in range(rng.integers(1, most)))

    texts = [conjunction(6) for _ in range(1500)]
    texts += [f"({conjunction(3)}) OR ({conjunction(4)})" for _ in range(300)]
    texts += [f"({predicate()} OR {predicate()}) AND {conjunction(4)}" for _ in range(300)]
    texts += [f"{conjunction(4)} AND {rng.choice(names)} IS NULL" for _ in range(100)]
    events = [{name: value() for name in names if rng.random() < 0.8} for _ in range(150)]
    return {f"s{i}": text for i, text in enumerate(texts)}, events


@cache
def skewed_classes() -> tuple[Compiled, list[tuple[EncodedEvents, list[set[int]]]]]:
    """Its classes; all events, and three times a third of them, each with what is right."""
    texts, events = skewed_catalog()
    catalog = compiled(list(texts.values()))
    batches = [encoded(catalog, events)]
    batches += [encoded(catalog, events[start::3] * 3) for start in range(3)]
    return catalog, [(batch, truth(catalog, batch)) for batch in batches]


@every_strategy
def test_a_large_and_skewed_catalog(name: str) -> None:
    """Built at once, and the same again by inserting half of it after the other half."""
    catalog, [(batch, right), *_] = skewed_classes()
    rank, n = catalog.rank, len(catalog.classes)
    cls = strategy(name)
    parameters = parameters_for(cls, "integers")
    sample = skewed_catalog()[1][:50]
    index, live = held(cls, catalog, range(n), sample=sample, **parameters)
    index.check(rank.n_channels, rank.n_cells)
    assert pairs(index, batch) == expected_pairs(right, live)
    assert len(live) == n, "something of it was refused"
    if not issubclass(cls, ChangingIndex):
        return
    order = np.random.default_rng(2).permutation(n)
    changing, live = held(cls, catalog, order[: n // 2].tolist(), **parameters)
    assert isinstance(changing, ChangingIndex)
    for some in np.array_split(order[n // 2 :], 5):
        numbers = changing.insert(part(catalog.classes, some))
        live |= dict(zip(numbers.tolist(), some.tolist(), strict=True))
    changing.check(rank.n_channels, rank.n_cells)
    assert pairs(changing, batch) == expected_pairs(right, live)
    for some in np.array_split(np.random.default_rng(3).permutation(n)[: 2 * n // 3], 4):
        which = [live.pop(number) for number in some.tolist()]
        changing.delete(part(catalog.classes, which), some.astype(np.int32))
        changing.check(rank.n_channels, rank.n_cells)
        assert pairs(changing, batch) == expected_pairs(right, live)
    again = cls.from_arrays(read_only_copies(changing.arrays()), changing.parameters)
    again.check(rank.n_channels, rank.n_cells)
    assert pairs(again, batch) == expected_pairs(right, live)


@cache
def wide_catalog() -> tuple[Compiled, EncodedEvents, list[set[int]]]:
    """Thousands of attributes, and what is right."""
    rng = np.random.default_rng(12)
    texts = [
        " AND ".join(f"x{i} {'=' if i % 3 else '!='} {i % 4}" for i in rng.choice(8000, 3))
        for _ in range(3000)
    ]
    texts += [f"x{i} = 1 AND x{i + 1} IS NULL" for i in range(0, 8000, 9)]
    catalog = compiled(texts)
    events = [
        {f"x{i}": int(i % 4) for i in rng.choice(8000, int(size), replace=False).tolist()}
        for size in rng.integers(0, 200, 400)
    ]
    batch = encoded(catalog, events)
    return catalog, batch, truth(catalog, batch)


@every_strategy
def test_thousands_of_attributes(name: str) -> None:
    """So many that batches are sparse by themselves."""
    catalog, batch, right = wide_catalog()
    assert not len(batch.by_event.matrix)
    cls = strategy(name)
    index, live = held(cls, catalog, range(len(catalog.classes)), **parameters_for(cls, "integers"))
    index.check(catalog.rank.n_channels, catalog.rank.n_cells)
    found = pairs(index, batch)
    assert len(found) > 100
    assert found == expected_pairs(right, live)


@every_strategy
def test_threads_may_share_an_index(name: str) -> None:
    """Kernels run without the interpreter's lock: what they write must be each call's own."""
    catalog, [_, *batches] = skewed_classes()
    cls = strategy(name)
    index, live = held(cls, catalog, range(len(catalog.classes)), **parameters_for(cls, "integers"))
    right = [expected_pairs(satisfied, live) for _, satisfied in batches]

    def match(turn: int) -> bool:
        return pairs(index, batches[turn % 3][0]) == right[turn % 3]

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(match, range(24)))


# ------------------------------------------------------------------ changes


@pytest.mark.parametrize("name", CHANGING)
def test_any_history_agrees_with_scan(name: str) -> None:
    machine = type("TheHistory", (History,), {"cls": strategy(name)})
    run_state_machine_as_test(
        machine,
        settings=examples(steps=15),
    )


@every_strategy
def test_live_changes_and_compaction_keep_the_strategy(name: str) -> None:
    texts, events = skewed_catalog()
    catalog = dict(list(texts.items())[:400])
    parameters = parameters_for(strategy(name), "integers")
    index = build(catalog, strategy=name, parameters=parameters)
    events = events[:40]
    with (
        bittern.LiveMatcher(index) as live,
        mock.patch.object(compact_module.Child, "run", staticmethod(compact_module.main)),
    ):
        for i, id_ in enumerate(list(catalog)[:90]):
            if i % 3 == 0:
                live.unsubscribe(id_)
                del catalog[id_]
            elif i % 3 == 1:
                catalog[id_] = f"j = {i % 10} OR k BETWEEN 2 AND {2 + i % 7}"
                live.replace(id_, catalog[id_])
            else:
                catalog[f"new {i}"] = f"i = {i % 4} AND l != {i % 10}"
                live.subscribe(f"new {i}", catalog[f"new {i}"])
        right = [sorted(satisfied) for satisfied in expected(catalog, events)]
        assert [sorted(found) for found in live.match(events).to_pylist()] == right
        compacted = live.compact()
        compacted.check()
        assert compacted.subscriptions.name == name
        assert compacted.subscriptions.options == index.subscriptions.options
        assert len(compacted) == len(catalog)
        assert [sorted(found) for found in live.match(events).to_pylist()] == right


# ------------------------------------------------------------------ damage


@every_strategy
def test_check_is_safe_on_damaged_arrays(name: str) -> None:
    """It passes or says what is broken; what passes can be matched, whatever it then finds."""
    shapes = {id_: text for id_, text in SHAPES.items() if "wide" not in id_}
    shapes |= {f"more {i}": f"a = {i % 5} AND b < {i} AND c != 3" for i in range(120)}
    events = small_events()
    catalog = compiled(list(shapes.values()))
    rank, cls = catalog.rank, strategy(name)
    index, _ = held(cls, catalog, range(len(catalog.classes)))
    arrays, parameters = index.arrays(), index.parameters
    batch = encoded(catalog, events)
    rng = np.random.default_rng(17)
    said: set[str] = set()
    for _ in range(400):
        try:
            broken = cls.from_arrays(damaged(arrays, rng), parameters)
        except (KeyError, ValueError, TypeError, AssertionError, IndexError, SnapshotError):
            continue
        try:
            broken.check(rank.n_channels, rank.n_cells)
        except AssertionError as wrong:
            said.add(str(wrong))
            continue
        broken.match(batch)
    assert "" not in said, "an invariant is broken, and nobody says which"
    assert len(said) > 2


# ------------------------------------------------------------------ parameters


@every_strategy
def test_unknown_parameters_name_the_strategy_and_what_it_has(name: str) -> None:
    takes = strategy(name).takes()
    has = f"has only {', '.join(takes)}" if takes else "has none"
    message = f"the strategy {name} has no parameter 'colour': it {has}"
    with pytest.raises(OptionError, match=re.escape(message)):
        bittern.Index.build({"s": "a = 1"}, strategy=name, parameters={"colour": 1})
    if "stabbing" not in takes:
        with pytest.raises(OptionError, match=f"the strategy {name} has no parameter 'stabbing'"):
            bittern.Index.build({"s": "a = 1"}, strategy=name, stabbing="cei")


@pytest.mark.parametrize(
    ("name", "parameter"),
    [(name, parameter) for name in sorted(STRATEGIES) for parameter in strategy(name).takes()],
)
def test_bad_values_of_parameters_are_refused_before_anything_is_read(
    name: str, parameter: str
) -> None:
    for value in (-1, "nonsense", object(), 2.5, []):
        with pytest.raises(OptionError) as wrong:
            bittern.Index.build({"s": "a ="}, strategy=name, parameters={parameter: value})
        assert "Traceback" not in str(wrong.value)


def test_an_unknown_strategy_lists_those_that_there_are() -> None:
    with pytest.raises(OptionError, match="no strategy is named 'magic': choose from") as wrong:
        bittern.Index.build({}, strategy="magic")
    assert all(name in str(wrong.value) for name in STRATEGIES)


# ------------------------------------------------------------------ refusals


@every_strategy
def test_what_a_strategy_refuses_is_named_by_id(name: str) -> None:
    bomb = " AND ".join(f"(x{i} = 1 OR y{i} IS NULL AND z{i} = 1)" for i in range(12))
    catalog = {"one": "a = 1", "bomb": bomb, "two": "b = 2"}
    index = build(catalog, strategy=name, on_error="skip")
    if name in ("pivot", "bits", "pivot-bits", "scan"):
        assert not index.bad
    else:
        assert [each.id for each in index.bad] == ["bomb"]
        with pytest.raises(SubscriptionError, match='strategy="pivot"') as refused:
            build(catalog, strategy=name)
        assert refused.value.bad == index.bad
    events = [{"a": 1}, {"b": 2}, {f"x{i}": 1 for i in range(12)}]
    agrees(index, catalog, events)
