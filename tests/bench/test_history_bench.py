"""The history benchmarks at a small scale: everything runs, and every way finds the same matches.

The same code at full scale is ``make bench-history``: a million documents.
"""

from __future__ import annotations

import copy
import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.history import report, run, sweeps, world
from benchmarks.history.duck import DuckDB
from benchmarks.history.measure import same_pairs
from benchmarks.history.naive import Naive
from benchmarks.history.world import Ask, Family, Records, World
from benchmarks.run import DisagreementError

import bittern
from small_runs import small_run

ROOT = Path(__file__).parents[2]
SMALL = World(100)
#: blake2b of 200 subscriptions of the mix, 200 documents and 200 events, thin and not: a change
#: here is a new world, and every figure measured with the old one is void.
FROZEN = "d09547bc4c7a9778"


# -- the run ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return small_run("benchmarks.history.run", tmp_path_factory.mktemp("history"))


def test_every_part_runs_and_whatever_was_timed_was_verified(result):
    parts = result["parts"]
    assert list(parts) == list(run.PARTS)
    timed = json.dumps(parts).count('"passes_seconds"')
    judged = list(report._judged(parts))
    assert len(judged) == timed + 1  # and what was remembered
    assert all(one["judged"] > 0 for one in judged)
    assert sum(one["matching"] > 0 for one in judged) > len(judged) / 2
    assert sum(one["matching"] for one in judged) > 1_000


def test_every_family_of_the_mix_is_there_and_most_of_them_match(result):
    families = result["parts"]["whole"]["families"]
    assert list(families) == [family.name for family in world.BOOKSHOP]
    assert sum(one["matches_per_event"] > 0 for one in families.values()) > len(families) / 2
    batches = result["parts"]["whole"]["duckdb"]["batches"]
    assert batches[0]["events"] == 1
    assert batches[-1]["matches"] > 100


def test_the_phases_are_as_they_were_asked_for(result):
    for one in result["parts"]["phases"]["orders"].values():
        assert [one[order]["phase"] for order in sweeps.PHASES[1:]] == list(sweeps.PHASES[1:])
        assert one["auto"]["phase"] in sweeps.PHASES[1:]


def test_the_prefilter_saves_evaluations_where_subscriptions_ask_in_vain(result):
    mostly = result["parts"]["phases"]["prefilter"][-1]
    assert mostly["in_vain"] == run.SMALL.in_vain[-1]
    assert mostly["on"]["evaluations_per_event"] < mostly["off"]["evaluations_per_event"]


def test_the_page_has_every_section_and_its_plots(result, tmp_path):
    source = tmp_path / "result.json"
    source.write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="small run"):
        report.main([str(source)])
    assert report.main([str(source), "--output", str(tmp_path / "page")]) == 0
    text = (tmp_path / "page" / "history.md").read_text()
    for title in ("Targets", "The mix", "Beside DuckDB", "Documents", "Verified"):
        assert f"\n## {title}" in text
    for plot in ("history_documents.svg", "history_predicates.svg"):
        assert f"({plot})" in text
        assert (tmp_path / "page" / plot).stat().st_size > 1_000


def test_targets_are_judged_by_what_was_measured(result):
    parts = copy.deepcopy(result["parts"])
    for name in sweeps.LOGARITHMIC:
        points = parts["documents"]["sorts"][name]["points"]
        for point, cost in zip(points, (1.0, 4.0, 5.0), strict=True):
            point["microseconds_per_event"] = cost
    parts["whole"]["batch"]["microseconds_per_event"] = 50.0
    parts["whole"]["naive"]["paper"]["seconds_per_event"] = 1.0
    parts["whole"]["naive"]["once"]["seconds_per_event"] = 0.04
    shown = report._targets(parts)
    assert shown.count("| 1.25 | ≤ 1.85 | yes |") == 2
    assert "| 20,000 | ≥ 1,000 | yes |" in shown
    assert "| 800 | ≥ 1,000 | **no** |" in shown
    parts["documents"]["sorts"]["order"]["points"][-1]["microseconds_per_event"] = 8.0
    assert "| 2 | ≤ 1.85 | **no** |" in report._targets(parts)


# -- the world -------------------------------------------------------------------------------------


def test_the_world_is_frozen():
    digest = hashlib.blake2b(digest_size=8)
    for one in (SMALL, World()):
        for table in (
            one.subscriptions(200, world.BOOKSHOP).table(),
            one.documents(200).table(),
            one.events(200).table(),
        ):
            digest.update(json.dumps(table.to_pydict()).encode())
    assert digest.hexdigest() == FROZEN


def test_fewer_documents_are_the_beginning_of_more():
    assert SMALL.documents(50).table().equals(SMALL.documents(80).slice(0, 50).table())
    assert not SMALL.documents(50).table().equals(SMALL.events(50).table())
    assert not SMALL.events(50).table().equals(SMALL.events(50, seed=2).table())


def test_every_expression_can_be_read_and_what_differs_is_counted():
    subscriptions = SMALL.subscriptions(300, world.BOOKSHOP)
    texts = subscriptions.table()["expression"].to_pylist()
    for text in texts:
        bittern.parse(text)
    quantified = {text[text.index("EXISTS" if "EXISTS" in text else "FORALL") :] for text in texts}
    assert subscriptions.distinct() == len(quantified)


def test_what_is_asked_in_vain_is_in_no_document():
    subscriptions = SMALL.subscriptions(90, world.in_vain(1.0))
    events = SMALL.events(30).later()
    naive = Naive(subscriptions, SMALL.documents(2_000), events)
    pairs = naive.candidates(np.arange(30))
    assert len(pairs[0]) == 90 * 30
    assert not len(naive.match(*pairs))


# -- the judges ------------------------------------------------------------------------------------


def records(**values) -> Records:
    codes = np.full((len(world.ATTRIBUTES), len(next(iter(values.values())))), np.nan)
    for name, row in values.items():
        codes[world.PLACE[name]] = [np.nan if value is None else value for value in row]
    return Records(codes)


def matching(family: Family, documents: Records, events: Records, **options) -> list[int]:
    subscriptions = World().subscriptions(1, {family: 1.0})
    naive = Naive(subscriptions, documents, events, **options)
    every = np.arange(len(events))
    once = naive.match(np.zeros_like(every), every)
    again = naive.match(np.zeros_like(every), every, constants_once=False)
    assert once.tolist() == again.tolist()
    return once.tolist()


PAST = records(price=[10, 20, None], isbn=[1, 1, 2], shop=[1, 1, 2])
OFFERS = records(price=[5, 15, 25, None], isbn=[1, 2, 3, 1], shop=[1, 1, 2, 3])


@pytest.mark.parametrize(
    ("joins", "options", "expected"),
    [
        ((("price", ">", "price"),), {}, [0, 1]),
        ((("price", ">", "price"),), {"universal": True}, []),  # one has no price
        ((("price", ">", "price"),), {"universal": True, "per": "shop"}, [0, 3]),
        ((("price", "<", "price"),), {"universal": True, "per": "shop", "last": 1}, [3]),
        ((("isbn", "!=", "isbn"),), {"universal": True}, [2]),
        ((("isbn", "=", "isbn"), ("price", "<", "price")), {}, []),
        ((("isbn", "=", "isbn"), ("price", ">", "price")), {}, [0]),
        ((("isbn", "=", "isbn"),), {"document": (Ask("price", "<", 1_500, 1_501),)}, [0, 3]),
    ],
)
def test_nested_loops_know_quantifiers_windows_and_what_is_missing(joins, options, expected):
    assert matching(Family("one", (), joins, **options), PAST, OFFERS) == expected


def test_nested_loops_remember():
    known = Family("known", (), (("isbn", "=", "isbn"),))
    twice = records(isbn=[5, 6, 5])
    assert matching(known, PAST, twice) == []
    assert matching(known, PAST, twice, remembered=True) == [2]
    empty = PAST.slice(0, 0)
    assert matching(known._replace(universal=True), empty, twice) == [0, 1, 2]
    asked = known._replace(universal=True, event=(Ask("isbn", "=", 6, 7),))
    assert matching(asked, empty, twice) == [1]


@cache
def found_by_loops(n: int = 60):
    subscriptions = SMALL.subscriptions(1_000, world.BOOKSHOP)
    documents, events = SMALL.documents(1_500), SMALL.events(n)
    naive = Naive(subscriptions, documents, events)
    pairs = np.stack(naive.candidates(np.arange(n)), axis=1)
    pairs = pairs[naive.match(*pairs.T.copy())][:, ::-1]
    return subscriptions, documents, events, naive, pairs[np.lexsort(pairs.T[::-1])]


def test_duckdb_finds_what_nested_loops_find():
    subscriptions, documents, events, _, expected = found_by_loops()
    for past in (documents, documents.slice(0, 0)):
        naive = Naive(subscriptions, past, events)
        database = DuckDB(subscriptions, past)
        found = database.match(events)
        database.close()
        if len(past):
            assert len(found) > 100
            same_pairs("DuckDB", found, expected)
        judged = naive.judge(found, np.arange(len(events)), 10_000, "DuckDB")
        assert judged["matching"] == len(found)
        assert judged["judged"] > len(found)


def test_a_wrong_match_and_a_missing_one_end_the_run():
    _, _, events, naive, pairs = found_by_loops()
    every = np.arange(len(events))
    naive.judge(pairs, every, 10_000, "all")
    with pytest.raises(DisagreementError, match=r"1 of .* not reported are judged otherwise"):
        naive.judge(pairs[1:], every, 10_000, "one less")
    subscriptions, of = naive.candidates(every)
    matched = {tuple(pair) for pair in pairs.tolist()}
    others = zip(of.tolist(), subscriptions.tolist(), strict=True)
    wrong = next(pair for pair in others if pair not in matched)
    with pytest.raises(DisagreementError, match=r"1 of .* that were reported"):
        naive.judge(np.concatenate([pairs, [wrong]]), every, 10_000, "one more")
    with pytest.raises(DisagreementError, match="0 are superfluous and 1 missing"):
        same_pairs("somebody", pairs[1:], pairs)
