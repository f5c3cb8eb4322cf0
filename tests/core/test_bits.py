"""The strategy ``bits``: groups, limits, lines and blocks. What all strategies promise is tested
for every name of the registry in ``papers/test_strategies.py``."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import strategies
from answers import build, expected
from bittern.engine.expected import expected_events
from bittern.engine.live import compact as compact_module
from bittern.jit import i4r, i8, kernel, u1r, u8, u8r, u8w
from bittern.language.printer import print_expression
from bittern.matching.bits import match as match_module
from bittern.matching.bits.groups import MOST_LINES, line_counts, line_shares, make_groups
from bittern.matching.bits.index import Bits
from bittern.matching.bits.limits import Programs
from bittern.matching.pivot import choice as choice_module
from bittern.matching.pivot.choice import cheaper_in_bits, worth_bits
from bittern.matching.program import programs
from bittern.model.classes.compile import Compiled
from bittern.model.rank.encoded import EncodedEvents
from bittern.vectors import _and_lines, and_lines
from effort import examples
from subscription_contract import (
    WORLDS,
    compiled,
    encoded,
    expected_pairs,
    held,
    integer_cases,
    pairs,
    truth,
)

# ------------------------------------------------------------------ lines of 512 bits


@kernel(u8, u8r, i4r, i4r, u1r, i8, i8, i8, u8w)
def _anded(words, starts, columns, values, row, first, last, out):
    return and_lines(words, starts, columns, values, row, first, last, out)


def test_lines_are_anded_as_in_plain_python() -> None:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 1 << 64, 8 * 30, dtype=np.uint64) | rng.integers(
        0, 1 << 64, 8 * 30, dtype=np.uint64
    )
    starts, columns = np.array([0, 10, 20, 5], np.int32), np.array([2, 0, 1, 2], np.int32)
    values = rng.integers(0, 10, 3 * 5).astype(np.uint8)
    for row in range(0, 15, 3):
        for first, last in [(0, 4), (1, 3), (2, 2), (3, 4)]:
            arguments = words, starts, columns, values, row, first, last
            outs = np.empty((2, 8), np.uint64)
            some = _anded(*arguments, outs[0]), _and_lines(*arguments, outs[1])
            assert np.array_equal(*outs)
            assert bool(some[0]) == bool(some[1]) == outs[0].any()


# ------------------------------------------------------------------ groups


@given(st.lists(st.integers(1, 90), min_size=1, max_size=5), st.data())
def test_groups_tile_the_channels_that_are_tested(widths: list[int], data: st.DataObject) -> None:
    bases = np.concatenate(([0], np.cumsum(widths))).astype(np.int32)
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    shares = random.choice([0.0, 0.0, 1e-9, 0.1, 5.0], int(bases[-1]))
    mass = np.concatenate(([0.0], np.cumsum(shares)))
    tested = data.draw(st.lists(st.integers(0, len(widths) - 1), unique=True).map(sorted))
    most_lines = data.draw(st.integers(1, 400))
    groups = make_groups(np.array(tested, np.int32), bases, mass, most_lines)
    channel = np.repeat(np.arange(len(widths)), widths)
    assert (groups.slots >= 0).tolist() == np.isin(channel[groups.firsts], tested).tolist()
    counts = line_counts(groups)
    assert len(counts) == len(tested)
    assert (counts >= 2).all()
    assert (counts <= MOST_LINES).all()
    for slot, each in enumerate(tested):
        own = groups.slots == slot
        assert groups.firsts[own][0] == bases[each]
        assert groups.lines[own].tolist() == list(range(1, counts[slot]))
        assert widths[each] > 7 or counts[slot] == widths[each] + 1, "a few cells have a line each"
    inside = line_shares(groups, mass).reshape(-1, MOST_LINES)[:, 1:].sum(axis=1)
    assert np.allclose(inside, [mass[bases[c + 1]] - mass[bases[c]] for c in tested])


def test_a_last_cell_without_mass_is_in_the_last_group() -> None:
    mass = np.concatenate((np.arange(201.0), [200.0]))
    groups = make_groups(np.array([0], np.int32), np.array([0, 201], np.int32), mass, 768)
    assert line_counts(groups).tolist() == [MOST_LINES]


def test_frequent_values_have_groups_of_their_own() -> None:
    """Half of the events have one value of a thousand: it does not share its line with others."""
    mass = np.full(1000, 0.5 / 999)
    mass[700] = 0.5
    groups = make_groups(
        np.array([0], np.int32),
        np.array([0, 1000], np.int32),
        np.concatenate(([0.0], np.cumsum(mass))),
        34,
    )
    assert {700, 701} <= set(groups.firsts.tolist())


# ------------------------------------------------------------------ limits


def limits_of(catalog: Compiled, index: Bits) -> list[dict[int, int]]:
    """Of each class, the lines that it may match by slot; all lines where a slot is not named."""
    arrays = index.arrays()
    programmed = Programs(*programs(catalog.classes, np.arange(len(catalog.classes))),
                          arrays["channels"], index._groups)  # fmt: skip
    out: list[dict[int, int]] = []
    for _, (offsets, slots, masks) in programmed.limits(3):
        out += [
            dict(zip(slots[a:b].tolist(), masks[a:b].tolist(), strict=True))
            for a, b in pairwise(offsets)
        ]
    return out


@examples(0.5)
@given(integer_cases(5))
def test_limits_hold_for_every_match(case: tuple[Compiled, EncodedEvents]) -> None:
    catalog, batch = case
    index, _ = held(Bits, catalog, range(len(catalog.classes)), memory=4)
    assert isinstance(index, Bits)
    groups, channels = index._groups, index.arrays()["channels"]
    cells = batch.by_event.matrix.reshape(-1, batch.by_event.width)
    limits = limits_of(catalog, index)
    for event, satisfied in enumerate(truth(catalog, batch)):
        for c in satisfied:
            for slot, mask in limits[c].items():
                cell = cells[event, channels[slot]]
                line = 0
                if cell >= 0:
                    line = groups.lines[np.searchsorted(groups.firsts, cell, "right") - 1]
                assert mask >> int(line) & 1


LIMITED = {
    # Cells of a: below 2, 2, between, 5, above; each has a line of its own, and 0 is "missing".
    "a = 2": {0: [2]},
    "a < 5": {0: [1, 2, 3]},
    "a != 2": {0: [1, 3, 4, 5]},
    "a IN (2, 5)": {0: [2, 4]},
    "a = 2 OR b = 1": {},
    "a = 2 AND b = 1": {0: [2], 1: [2]},
    "(a = 2 OR b = 1) AND a > 2": {0: [3, 4, 5]},
    "a = 2 AND b = 1 OR a = 5": {0: [2, 4]},
    "a < 2 OR a > 5": {0: [1, 5]},
    "a = 2 AND a = 5": None,
}


def test_limits_are_as_narrow_as_one_channel_can_be() -> None:
    texts = [*LIMITED, "a = 2 AND a = 5 AND b = 1"]
    catalog = compiled(texts)
    index, _ = held(Bits, catalog, range(len(catalog.classes)))
    assert isinstance(index, Bits)
    limits = limits_of(catalog, index)
    for text, right in LIMITED.items():
        found = limits[catalog.class_of[texts.index(text)]]
        if right is None:
            assert not any(found.values())
            continue
        lines = {s: [k for k in range(64) if mask >> k & 1] for s, mask in found.items()}
        assert lines == right, text


# ------------------------------------------------------------------ blocks


def drawn_classes(n: int, n_tests: int, rng: np.random.Generator) -> Compiled:
    """Conjunctions of ranges over six attributes of fifty values, drawn in rank space."""
    names = [f"x{i}" for i in range(6)]
    catalog = compiled([f"{name} <= {value}" for name in names for value in range(50)])
    bases = catalog.rank.arrays.bases
    chosen = np.argsort(rng.random((n, len(names))), axis=1)[:, :n_tests]
    chosen.sort(axis=1)
    low, high = np.sort(rng.integers(0, 101, (2, n, n_tests)), axis=0)
    base = bases[chosen]
    classes = replace(
        catalog.classes,
        channels=chosen.astype(np.int32).ravel(),
        lows=(base + low).astype(np.int32).ravel(),
        highs=(base + high).astype(np.int32).ravel(),
        starts=np.arange(n, dtype=np.int64) * n_tests,
        counts=np.full(n, n_tests, np.int32),
        structure_of=np.zeros(n, np.int32),
    )
    return catalog._replace(classes=classes)


@pytest.mark.parametrize(("n", "n_tests"), [(270_000, 4), (512, 2), (1025, 3)])
def test_many_blocks_and_blocks_of_blocks(n: int, n_tests: int) -> None:
    """More than 512 blocks of 512 classes have several lines of blocks."""
    rng = np.random.default_rng(n)
    catalog = drawn_classes(n, n_tests, rng)
    events = [
        {f"x{i}": int(rng.integers(-1, 51)) for i in range(6) if rng.random() < 0.9}
        for _ in range(12)
    ]
    batch = encoded(catalog, events)
    right = truth(catalog, batch)
    index, live = held(Bits, catalog, range(n))
    statistics = index.statistics()
    assert statistics["blocks"] == -(-n // 512)
    assert statistics["line_bytes"] <= 1.5 * 96 * 512 * statistics["blocks"]
    assert pairs(index, batch) == expected_pairs(right, live)
    assert index.match(batch).candidates.sum() < n * len(events) / 2


def test_events_in_tiles_and_output_that_grows() -> None:
    rng = np.random.default_rng(5)
    catalog = drawn_classes(1500, 1, rng)
    batch = encoded(catalog, [{f"x{i}": int(rng.integers(51)) for i in range(6)}] * 40)
    right = truth(catalog, batch)
    for memory in (1, 20, 10_000):
        index, live = held(Bits, catalog, range(1500), memory=memory)
        assert index.parameters == {"memory": memory}
        for values in (1, 7, 1 << 23):
            with mock.patch.object(match_module, "MOST_VALUES", values):
                assert pairs(index, batch) == expected_pairs(right, live)


def test_what_nothing_rules_out_is_run_for_every_event() -> None:
    catalog = {"true": "TRUE", "never": "FALSE", "null": "a IS NULL", "either": "a = 1 OR b = 2"}
    events: list[dict[str, Any]] = [{}, {"a": 1}, {"b": 2}, {"a": 3, "b": 4}]
    index = build(catalog, strategy="bits")
    matcher = bittern.Matcher(index)
    assert matcher.match(events).to_pylist() == expected(catalog, events)


@examples(0.3)
@given(st.data())
def test_any_memory_finds_the_same(data: st.DataObject) -> None:
    expression, event = WORLDS["free"]
    trees = data.draw(strategies.catalogs(expression))
    events = data.draw(strategies.batches(event, max_size=6))
    catalog = {id_: print_expression(tree) for id_, tree in trees.items()}
    memory = data.draw(st.integers(1, 12))
    index = build(catalog, strategy="bits", parameters={"memory": memory})
    assert bittern.Matcher(index).match(events).to_pylist() == expected(catalog, events)


# ------------------------------------------------------------------ damage


def _set(name: str, at: int, value: int) -> Any:
    def damage(arrays: dict[str, Any]) -> None:
        arrays[name][at] = value

    return damage


def _cut(name: str) -> Any:
    def damage(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name][:-1].copy()

    return damage


def _same_columns(arrays: dict[str, Any]) -> None:
    arrays["blocks.columns"][0] = arrays["blocks.columns"][1]


FAR = 10**6
DAMAGE = {
    "a bit that is set": (_set("blocks.words", 0, 1), "not what programs say"),
    "a bit of a block": (_set("unions.words", 1, 1), "not what blocks hold"),
    "words cut off": (_cut("blocks.words"), "words are missing"),
    "a column without a slot": (_set("blocks.columns", 0, FAR), "no slot"),
    "a column twice": (_same_columns, "twice"),
    "a line elsewhere": (_set("blocks.starts", 1, FAR), "do not follow"),
    "blocks cut off": (_cut("blocks.offsets"), "more or fewer blocks"),
    "columns that run backwards": (_set("blocks.offsets", 0, FAR), "do not begin"),
    "groups out of order": (_set("groups.firsts", 1, 0), "not in order"),
    "a group beyond the axis": (_set("groups.firsts", -1, FAR), "leave the axis"),
    "a group of no slot": (_set("groups.slots", 0, 99), "not there"),
    "a line out of turn": (_set("groups.lines", 1, 60), "not in turn"),
    "a slot of no channel": (_set("channels", 0, -1), "channel that is not there"),
    "slots out of order": (_set("channels", 0, 1), "not in order"),
    "a program that runs backwards": (_set("starts", 1, FAR), "not ascending"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_noticed(name: str) -> None:
    catalog = {n: f"a < {n} AND b > {n} AND c = {n % 3}" for n in range(40)}
    index = build(catalog, strategy="bits")
    arrays = {key: array.copy() for key, array in index.subscriptions.arrays().items()}
    damage, message = DAMAGE[name]
    damage(arrays)
    damaged = Bits.from_arrays(arrays, index.subscriptions.parameters)
    with pytest.raises(AssertionError, match=message):
        damaged.check(index.rank.n_channels, index.rank.n_cells)


# ------------------------------------------------------------------ pivots and bits in one index


def mixed_catalog(n: int) -> dict[str, str]:
    """Half are five wide ranges over eight attributes, half have an equality."""
    rng = np.random.default_rng(3)
    out = {}
    for i in range(n):
        names = rng.choice(8, 5, replace=False)
        lows = rng.integers(0, 60, 5)
        ranges = [f"x{a} BETWEEN {b} AND {b + 40}" for a, b in zip(names, lows, strict=True)]
        if i % 2:
            ranges[0] = f"k = {i}"
        out[f"s{i}"] = " AND ".join(ranges)
    return out


@pytest.fixture
def always_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_module, "LEAST_CLASSES", 10)
    monkeypatch.setattr(choice_module, "LEAST_SAVED", 1.0)


def mixed_events(n: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    names = [*(f"x{i}" for i in range(8)), "k"]
    return [{name: int(rng.integers(100)) for name in names} for _ in range(n)]


@pytest.mark.usefixtures("always_pays")
def test_pivot_takes_bits_for_wide_ranges_by_itself(tmp_path: Path) -> None:
    catalog, events = mixed_catalog(300), mixed_events(30)
    catalog["again"] = catalog["s0"]
    index = build(catalog)
    statistics = index.statistics()
    assert statistics["strategy"] == index.subscriptions.name == "pivot-bits"
    inner = statistics["pivot-bits"]
    assert inner["pivot"]["classes"] == inner["bits"]["classes"] == 150
    assert inner["classes"] == 300
    found_by = [bittern.explain(index, {}, f"s{i}").found_by for i in range(4)]
    assert found_by == ["bits", "pivot", "bits", "pivot"]
    right = expected(catalog, events)
    assert bittern.Matcher(index).match(events).to_pylist() == right
    identity = index.save(tmp_path / "both")
    opened = bittern.Index.open(tmp_path / "both", verify=True)
    opened.check()
    assert opened.id == identity
    assert bittern.Matcher(opened).match(events).to_pylist() == right
    assert bittern.Matcher(opened).match(events[0]).to_pylist() == right[:1]
    assert str(bittern.explain(opened, events[0], "s0")).endswith("\n  found by: bits")
    assert str(bittern.explain(opened, events[0], "s1")).endswith("\n  found by: pivot")


@pytest.mark.usefixtures("always_pays")
def test_bits_can_be_declined(tmp_path: Path) -> None:
    catalog = mixed_catalog(60)
    index = build(catalog, parameters={"bits": False})
    assert index.subscriptions.name == "pivot"
    assert index.subscriptions.options["bits"] is False
    index.save(tmp_path / "pivots")
    opened = bittern.Index.open(tmp_path / "pivots")
    assert opened.subscriptions.options == index.subscriptions.options
    assert "found by" not in str(bittern.explain(opened, {}, "s0"))


@pytest.mark.usefixtures("always_pays")
def test_compaction_chooses_anew() -> None:
    """A catalog that grows gets bits when they pay; what was subscribed since is in pivots."""
    catalog = mixed_catalog(60)
    texts, events = list(catalog.items()), mixed_events(20)

    def right() -> list[list[str]]:
        return [sorted(satisfied) for satisfied in expected(catalog, events)]

    def found() -> list[list[str]]:
        return [sorted(ids) for ids in live.match(events).to_pylist()]

    with (
        bittern.LiveMatcher(build(dict(texts[:6]))) as live,
        mock.patch.object(compact_module.Child, "run", staticmethod(compact_module.main)),
    ):
        for id_, text in texts[6:]:
            live.subscribe(id_, text)
        assert found() == right()
        assert live.compact().subscriptions.name == "pivot-bits"
        live.unsubscribe("s0")
        del catalog["s0"]
        assert found() == right()
        assert live.compact().subscriptions.name == "pivot-bits"
        assert found() == right()
        for id_ in list(catalog)[5:]:
            live.unsubscribe(id_)
            del catalog[id_]
        assert live.compact().subscriptions.name == "pivot", "a few classes are not worth bits"
        assert found() == right()


def test_what_goes_to_bits() -> None:
    """Many wide ranges do; an equality, one or two ranges, an OR, a NULL and a never do not."""
    wide = " AND ".join(f"x{i} BETWEEN 20 AND 60" for i in range(6))
    texts = [
        wide,
        f"{wide} AND y IS NULL",
        f"{wide} AND k = 7",
        f"({wide}) OR x7 = 1",
        "x1 BETWEEN 20 AND 60",
        "x1 > 20 AND x2 > 20",
        "y IS NULL",
        "x1 > 5 AND x1 < 5",
        "TRUE",
    ]
    fill = [f"x{i} >= {v}" for i in range(8) for v in range(0, 100, 5)]
    catalog = compiled([*texts, *fill, *(f"k = {v}" for v in range(1000))])
    events = [{**event, "k": 5} for event in mixed_events(200)]
    mass = expected_events(catalog, events)
    chosen, saved = cheaper_in_bits(catalog.classes, mass, catalog.rank.n_channels)
    assert [bool(chosen[catalog.class_of[i]]) for i in range(len(texts))] == [True] * 2 + [
        False
    ] * 7
    assert int(chosen.sum()) == 2
    assert saved > 0
    assert worth_bits(catalog.classes, mass, catalog.rank.n_channels) is None, "two are too few"


def test_many_channels_stay_with_pivots() -> None:
    texts = [" AND ".join(f"x{i + k} < {50 + i % 7}" for k in range(6)) for i in range(120)]
    catalog = compiled(texts)
    mass = expected_events(catalog, None)
    chosen, saved = cheaper_in_bits(catalog.classes, mass, catalog.rank.n_channels)
    assert not chosen.any()
    assert saved == 0
