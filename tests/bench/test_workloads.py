"""The benchmark workloads are what they claim to be, byte for byte the same on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import operator
import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks import peers, report, run, workloads
from benchmarks.draw import Draw

from bittern.language.parser import parse
from bittern.language.syntax import And, Between, Compare, In, Like, Not, Or, Regex

#: blake2b of the small subscriptions and of 100 events: a change here is a new workload, and
#: every figure measured with the old one is void.
FROZEN = {
    "shop": "e7c1d1de8dc46956",
    "shop-10m": "b37213f4d5fe3ff3",
    "dense": "43d466aac346f723",
    "optional": "d13b63fef4d480ba",
    "ranges": "23a4a8b59c9ba3d3",
    "wide": "f35b1edeb090d005",
    "wide-1m": "c9b389451dbb7e61",
    "equality": "e5025060f369df87",
    "ads": "dec65749ca6a64d4",
    "strings": "4ac43c58a6eea7c9",
    "nested": "bb49f27e9123913a",
    "churn": "c9d9c5b28d45daf5",
}


@cache
def small(name: str) -> pa.Table:
    return workloads.get(name, "small").subscriptions()


@cache
def trees(name: str) -> list:
    return [parse(text) for text in small(name)["expression"].to_pylist()]


def predicates(tree):
    match tree:
        case And(operands) | Or(operands):
            for operand in operands:
                yield from predicates(operand)
        case Not(operand):
            yield from predicates(operand)
        case _:
            yield tree


def depth(tree) -> int:
    match tree:
        case And(operands) | Or(operands):
            return 1 + max(map(depth, operands))
        case Not(operand):
            return depth(operand)
    return 1


def share(found, kind) -> float:
    return sum(kind(predicate) for predicate in found) / len(found)


def digest(workload: workloads.Workload) -> str:
    content = [workload.subscriptions().to_pylist(), workload.events(100).to_pylist()]
    made = workload.events_json(100)
    content.append(None if made is None else made.to_pylist())
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize("name", workloads.NAMES)
def test_content_is_frozen(name):
    assert digest(workloads.get(name, "small")) == FROZEN[name]


@pytest.mark.parametrize("name", workloads.NAMES)
def test_every_expression_parses(name):
    assert len(trees(name)) == workloads.get(name, "small").n_subscriptions


@pytest.mark.parametrize("name", workloads.NAMES)
def test_events_depend_on_the_seed_only(name):
    workload = workloads.get(name, "small")
    assert workload.events(50, 3).equals(workload.events(50, 3))
    assert not workload.events(50, 3).equals(workload.events(50, 4))
    assert not workload.events(50).equals(workload.sample(50))
    assert workload.events(0).num_rows == 0


@pytest.mark.parametrize("name", workloads.NAMES)
def test_changes_are_new_subscriptions(name):
    workload = workloads.get(name, "small")
    changes = workload.changes(200)
    assert changes["id"].to_pylist() == list(
        range(workload.n_subscriptions, workload.n_subscriptions + 200)
    )
    assert changes["expression"].to_pylist() != small(name)["expression"][:200].to_pylist()


def test_full_sizes_are_those_of_the_issue():
    sizes = {name: workloads.get(name).n_subscriptions for name in workloads.NAMES}
    assert sizes == {
        "shop": 1_000_000,
        "shop-10m": 10_000_000,
        "dense": 100_000,
        "optional": 100_000,
        "ranges": 100_000,
        "wide": 100_000,
        "wide-1m": 1_000_000,
        "equality": 1_000_000,
        "ads": 3_000_000,
        "strings": 100_000,
        "nested": 200_000,
        "churn": 1_000_000,
    }


@pytest.mark.parametrize("name", ["shop", "shop-10m", "churn"])
def test_shop_statistics(name):
    sizes = [len(list(predicates(tree))) for tree in trees(name)]
    assert np.bincount(sizes) / len(sizes) == pytest.approx([0, 0.25, 0.25, 0.25, 0.25], abs=0.02)
    found = [predicate for tree in trees(name) for predicate in predicates(tree)]
    for symbol, expected in (("=", 0.4), ("<=", 0.3), (">=", 0.3)):
        assert share(found, lambda p, o=symbol: p.operator == o) == pytest.approx(
            expected, abs=0.02
        )
    values = {predicate.operand.value for predicate in found}
    assert values == set(range(1, 51))
    assert len({predicate.attribute for predicate in found}) == 400
    assert all(
        len({p.attribute for p in predicates(tree)}) == size
        for tree, size in zip(trees(name), sizes, strict=True)
    )


@pytest.mark.parametrize("name", ["shop", "ads"])
def test_map_events_carry_twenty_different_attributes(name):
    for (entries,) in zip(workloads.get(name, "small").events(200)["attributes"], strict=True):
        keys = [key for key, _ in entries.as_py()]
        assert len(keys) == len(set(keys)) == 20


@pytest.mark.parametrize(
    ("name", "attributes", "present", "equal"),
    [("dense", 20, 20, 0.5), ("optional", 100, 30, 0.5), ("ranges", 20, 20, 0.0)],
)
def test_dense_statistics(name, attributes, present, equal):
    found = [list(predicates(tree)) for tree in trees(name)]
    assert all(len({p.attribute for p in each}) == len(each) == 5 for each in found)
    flat = [predicate for each in found for predicate in each]
    assert len({predicate.attribute for predicate in flat}) == attributes
    assert share(flat, lambda p: isinstance(p, Compare) and p.operator == "=") == pytest.approx(
        equal, abs=0.02
    )
    ranges = [predicate for predicate in flat if isinstance(predicate, Between)]
    assert all(predicate.high.value - predicate.low.value == 99 for predicate in ranges)
    events = workloads.get(name, "small").events(100)
    assert events.num_columns == attributes
    held = np.stack([column.is_valid().to_numpy() for column in events.columns], axis=1)
    assert (held.sum(axis=1) == present).all()
    assert max(pc.max(column).as_py() for column in events.columns) < 1_000


@pytest.mark.parametrize("name", ["wide", "wide-1m"])
def test_wide_statistics(name):
    found = [list(predicates(tree)) for tree in trees(name)]
    assert all(len({p.attribute for p in each}) == len(each) == 10 for each in found)
    assert all(p.high.value - p.low.value == 399 for each in found for p in each)
    lows = [p.low.value for each in found for p in each]
    assert (min(lows), max(lows)) == (0, 600)
    events = workloads.get(name, "small").events(100)
    assert events.num_columns == 20
    assert not any(column.null_count for column in events.columns)


def test_equality_statistics_and_json():
    for tree in trees("equality"):
        assert [p.attribute for p in predicates(tree)] == ["street", "block"]
        assert all(p.operator == "=" for p in predicates(tree))
    workload = workloads.get("equality", "small")
    table, texts = workload.events(200), workload.events_json(200).to_pylist()
    parsed = [json.loads(text) for text in texts]
    assert all(event.pop("outline") for event in parsed)
    assert parsed == table.to_pylist()
    assert np.mean([len(text) for text in texts]) == pytest.approx(830, abs=15)


def test_ads_statistics():
    found = [list(predicates(tree)) for tree in trees("ads")]
    sizes = np.array([len(each) for each in found])
    assert sizes.mean() == pytest.approx(8.0, abs=0.25)
    assert sizes.min() == 1
    assert sizes.max() <= 56
    assert all(len({p.attribute for p in each}) == len(each) for each in found)
    counts = np.unique([p.attribute for each in found for p in each], return_counts=True)[1]
    assert len(counts) == 122
    assert np.sort(counts)[-12:].sum() > 4 * np.sort(counts)[:12].sum()  # skewed
    flat = [predicate for each in found for predicate in each]
    assert share(flat, lambda p: getattr(p, "operator", "") == "=") == pytest.approx(0.6, abs=0.02)
    assert share(flat, lambda p: isinstance(p, Between)) == pytest.approx(0.36, abs=0.02)


def test_strings_statistics():
    kinds = {"prefix": 0, "suffix": 0, "contains": 0, "regex": 0}
    for tree in trees("strings"):
        if isinstance(tree, Regex):
            re.compile(tree.pattern)
            kinds["regex"] += 1
            continue
        assert isinstance(tree, Like)
        starts, ends = tree.pattern.startswith("%"), tree.pattern.endswith("%")
        kinds[{(0, 1): "prefix", (1, 0): "suffix", (1, 1): "contains"}[starts, ends]] += 1
    assert set(kinds.values()) == {len(trees("strings")) // 4}
    events = workloads.get("strings", "small").events(2_000)
    for column in events.columns:
        lengths = pc.utf8_length(column)
        assert pc.min(lengths).as_py() >= 10
        assert pc.max(lengths).as_py() == 60


def test_nested_statistics():
    depths = [depth(tree) for tree in trees("nested")]
    assert (min(depths), max(depths)) == (2, 6)
    found = [predicate for tree in trees("nested") for predicate in predicates(tree)]
    for kind in (Compare, Between, In):
        assert share(found, lambda p, k=kind: isinstance(p, k)) == pytest.approx(1 / 3, abs=0.05)
    text = " ".join(small("nested")["expression"].to_pylist())
    assert all(text.count(word) > 100 for word in (" AND ", " OR ", "NOT "))
    assert len({predicate.attribute for predicate in found}) == 50


def test_conjunctions_give_the_bounds_that_the_texts_say():
    made = workloads.get("shop", "small").conjunctions()
    vocabulary = made.vocabulary
    for code in made.codes[:500]:
        predicate = parse(vocabulary.text[code].as_py())
        value = predicate.operand.value
        low, high = {"=": (value, value), "<=": (1, value), ">=": (value, 50)}[predicate.operator]
        assert (vocabulary.low[code], vocabulary.high[code]) == (low, high)
        assert vocabulary.attributes[vocabulary.attribute[code]] == predicate.attribute
    assert made.texts().to_pylist() == small("shop")["expression"].to_pylist()
    assert workloads.get("nested", "small").conjunctions() is None


def test_draws_are_even_and_distinct():
    draw = Draw(1, 2)
    assert np.bincount(draw.below(10, 100_000)) / 100_000 == pytest.approx([0.1] * 10, abs=0.01)
    for of in (30, 1_000):  # both ways of drawing different numbers
        rows = draw.distinct(2_000, 20, of)
        assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()
        assert rows.mean() == pytest.approx((of - 1) / 2, rel=0.05)


def test_race_follows_the_weights():
    first = Draw(3).race(50_000, 2, np.array([6.0, 3.0, 1.0]))[:, 0]
    assert np.bincount(first) / len(first) == pytest.approx([0.6, 0.3, 0.1], abs=0.01)


@pytest.mark.parametrize("name", ["optional", "ranges", "equality", "shop", "ads"])
def test_a_join_finds_what_the_expressions_say(name):
    workload = dataclasses.replace(workloads.get(name, "small"), n_subscriptions=300)
    made, events = workload.conjunctions(), workload.events(40)
    # So few subscriptions match little: let every fourth event carry what one of them asks for.
    vocabulary, rows = made.vocabulary, []
    for number, row in enumerate(events.to_pylist()):
        event = dict(row["attributes"]) if "attributes" in row else row
        if number % 4 == 0:
            for code in made.codes[made.offsets[number] : made.offsets[number + 1]]:
                asked = vocabulary.attributes[vocabulary.attribute[code]]
                low = vocabulary.low[int(code)]
                event[asked] = low.as_py() if isinstance(low, pa.Scalar) else int(low)
        rows.append({"attributes": list(event.items())} if "attributes" in row else event)
    events = pa.Table.from_pylist(rows, schema=events.schema)
    parsed = [parse(text) for text in made.texts().to_pylist()]
    expected = [
        sum(all(holds(p, dict(row.get("attributes", row))) for p in predicates(t)) for t in parsed)
        for row in rows
    ]
    assert min(expected[::4]) >= 1
    assert peers.DuckDB(peers.FORMS[name], made).counts(events).tolist() == expected


def holds(predicate, event) -> bool:
    value = event.get(predicate.attribute)
    if value is None:
        return False
    if isinstance(predicate, Between):
        return predicate.low.value <= value <= predicate.high.value
    compare = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}[predicate.operator]
    return compare(value, predicate.operand.value)


def test_a_disagreement_ends_the_run():
    run.agree("same", np.array([1, 2]), np.array([1, 2]))
    with pytest.raises(run.DisagreementError, match="scan counts 3 matches for event 1"):
        run.agree("scan", np.array([1, 3]), np.array([1, 2]))


def test_results_of_different_machines_do_not_share_a_table():
    one = {"scale": "full", "environment": {"date": "1", "cpu": "a", "versions": {}}}
    other = {"scale": "full", "environment": {"date": "2", "cpu": "b", "versions": {}}}
    with pytest.raises(SystemExit, match="differ in cpu"):
        report.merge([one, other])
    newest = report.merge([{**one, "workloads": {"x": 2, "y": 1}}, {**one, "workloads": {"x": 1}}])
    assert newest["workloads"] == {"x": 1, "y": 1}


def test_unknown_names_are_refused():
    with pytest.raises(KeyError, match="shpo"):
        workloads.get("shpo")
