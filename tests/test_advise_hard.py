"""Hard cases of ``bittern advise`` and ``bittern.Intervals``: odd files and columns, long lives."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest
from benchmarks.papers import run as papers

from bittern import Intervals
from bittern.errors import OptionError
from bittern.model.numbers import exact
from bittern.service import advise, picture
from bittern.service.cli import main
from bittern.stabbing.contract import StabbingIndex
from bittern.stabbing.estimate import Estimate, Work
from bittern.stabbing.intervals import CLOSED
from bittern.stabbing.registry import STRUCTURES

INF = math.inf
found = pytest.mark.xfail(strict=True, reason="does not hold yet; drop the mark when it does")


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        monkeypatch.setattr(advise, "_PASSES", 1)
        capsys.readouterr()
        try:
            code = main(["advise", *map(str, arguments), "--values", "20"])
        except SystemExit as exit_:
            code = exit_.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to


@pytest.fixture
def intervals(write):
    lows = np.random.default_rng(1).integers(0, 90_000, 3_000).tolist()
    return write("i.csv", "low,high\n" + "".join(f"{low},{low + 400}\n" for low in lows))


def first_reason(out):
    return out.splitlines()[1]


# ------------------------------------------------------------------ files


@found
@pytest.mark.parametrize("word", ["nan", "NaN", "-NaN"])
def test_a_nan_in_a_file_is_no_missing_end(run, write, word):
    code, out, err = run(write("i.csv", f"low,high\n1.5,2\n{word},3\n"))
    assert (code, out) == (1, "")
    assert "interval 1 has the low end nan" in err


@found
@pytest.mark.parametrize("word", ["NA", "null", "NULL", "N/A", "#N/A", "n/a"])
def test_a_word_in_a_file_is_that_word(run, write, word):
    code, out, _ = run(write("i.csv", f"low,high\n{word},{word}\nzz,zz\n"))
    assert code == 0
    assert "2 intervals over 5 cells, 1.0 cells long" in out  # two points: no end is missing


def test_an_empty_end_is_none(run, write):
    code, out, _ = run(write("i.csv", 'low,high\na,\n,b\n"",c\n'))
    assert code == 0
    assert first_reason(out).startswith("  - 3 intervals over ")


@found
@pytest.mark.parametrize(
    "lines",
    [
        ['{"low": 1}', '{"low": 1, "high": 2}'],
        ['{"high": 1}', '{"low": 1, "high": 2}'],
        ["{}", '{"low": 1, "high": 2}'],
    ],
)
def test_the_first_line_may_lack_an_end(run, write, lines):
    code, out, err = run(write("i.jsonl", "\n".join(lines)))
    assert (code, err.count("\n")) == (0, 1)
    assert first_reason(out).startswith("  - 2 intervals over ")


@found
def test_a_column_that_is_there_twice_is_refused(run, write):
    code, out, err = run(write("i.csv", "low,low,high\n1,5,9\n"))
    assert (code, out) == (1, "")
    assert "several columns 'low'" in err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", "", "Empty CSV file"),
        ("empty.jsonl", " \n", "has neither the columns low and high"),
        ("header.csv", "low,high\n", "has no intervals to advise on"),
        ("upper.csv", "Low,High\n1,2\n", "it has: Low, High"),
        ("semicolon.csv", "low;high\n1;2\n", "it has: low;high"),
        ("ragged.csv", "low,high\n1,2,3\n", "Expected 2 columns, got 3"),
        ("latin.csv", b"low,high\na,b\xff\n", "highs are binary"),
        ("latin.jsonl", b'{"low": "a", "high": "b\xff"}\n', "the first line is no JSON"),
        ("mixed.csv", "low,high\n1,a\n", "lows are numbers and highs are strings"),
        ("mixed.jsonl", '{"low":1,"high":2}\n{"low":"x","high":2}\n', "changed from number"),
        ("flags.csv", "low,high\ntrue,false\n", "lows are bool"),
        ("clock.csv", "low,high\n08:00,09:00\n", "lows are time32"),
        ("nested.jsonl", '{"low": {"a": 1}, "high": {"a": 2}}\n', "lows are struct"),
        ("inward.csv", "low,high\ninf,2\n", "interval 0 has the low end inf"),
        ("reversed.csv", "low,high\n1,2\n9,3\n", "interval 1, [9, 3] with id 1, is reversed"),
        ("never.csv", "id,expression\ns1,a IS NULL\n", "has no intervals to advise on"),
    ],
)
def test_files_that_cannot_be_advised_on(run, write, name, content, said):
    code, out, err = run(write(name, content))
    assert (code, out) == (1, "")
    assert said in err
    assert name in err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.csv", b"\xef\xbb\xbflow,high\n1,2\n"),
        ("bom.jsonl", b'\xef\xbb\xbf{"low": 1, "high": 2}\n'),
        ("blank.jsonl", '\n{"low": 1, "high": 2}\n\n'),
        ("lines.csv", 'low,high\n"a\nb","c\nd"\n'),
        ("outward.csv", "low,high\n-inf,inf\n"),
        ("wide.csv", "low,high\n18446744073709551615,18446744073709551616\n"),
    ],
)
def test_files_that_look_odd_and_are_fine(run, write, name, content):
    code, out, _ = run(write(name, content))
    assert code == 0
    assert re.match(r"  - 1 intervals? over ", first_reason(out))


# ------------------------------------------------------------------ commands


@pytest.mark.parametrize("given", ["1k", "10T", "nonsense", "0", "-5", "1e6", "", "1.5"])
def test_memory_that_is_no_number(run, intervals, given):
    code, out, err = run(intervals, f"--memory={given}")
    assert (code, out) == (2, "")
    assert f"{given!r} is not a whole number" in err


@found
def test_memory_may_be_more_than_a_gigabyte(run, intervals):
    code, out, _ = run(intervals, "--memory", 8 * 2**30)
    assert code == 0
    assert "memory allowed: 8.59 GB" in out


@found
@pytest.mark.parametrize("place", ["nowhere/advice.svg", "."])
def test_a_picture_that_cannot_be_written_is_said_before_the_work(
    run, intervals, tmp_path, monkeypatch, place
):
    def work(*_):
        raise AssertionError("measured for nothing")

    monkeypatch.setattr(advise, "measure", work)
    code, _, err = run(intervals, "--picture", tmp_path / place)
    assert code == 1
    assert str(tmp_path / place) in err


@found
def test_advice_is_not_said_to_have_written_nothing(run, write):
    code, _, err = run(write("s.csv", "id,expression\ns1,a <\n"))
    assert code == 1
    assert "'s1', position 3: expected a constant" in err
    assert "written" not in err


def test_an_interrupt_ends_quietly(intervals):
    script = "import sys; from bittern.service.cli import main; print('up'); sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-uc", script, "advise", str(intervals), "--values", "9000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "up\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.7)  # until it is at work
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


# ------------------------------------------------------------------ measuring


@found
def test_a_batch_is_cut_by_the_ids_that_it_finds(monkeypatch):
    """Half-bounded intervals, as of ``price >= x``: half of them contain a value."""
    n, sizes = 1_500, []
    search = StabbingIndex.stab_batch

    def watched(index, values):
        offsets, ids = search(index, values)
        sizes.append(len(ids))
        return offsets, ids

    monkeypatch.setattr(StabbingIndex, "stab_batch", watched)
    monkeypatch.setattr(advise, "_PASSES", 1)
    lows, highs = np.arange(n, dtype=np.int32), np.full(n, n - 1, np.int32)
    advise.measure(Estimate("cei", {}, 1, Work()), lows, highs, n, 16_384)
    assert max(sizes) <= 1 << 22


# ------------------------------------------------------------------ what is shown


@found
def test_the_table_fits_into_a_terminal(run, intervals):
    _, out, _ = run(intervals, "--memory", 2_000_000)
    assert max(map(len, out.splitlines())) <= 80


@found
def test_no_figure_has_an_exponent(run, write):
    _, out, _ = run(write("i.csv", "low,high\n1,5\n3,9\n4,4\n"))
    assert not re.search(r"\de[-+]?\d", out)


@found
def test_one_interval_is_no_plural(run, write):
    _, out, _ = run(write("i.csv", "low,high\n,\n"))
    assert first_reason(out).startswith("  - 1 interval over 1 cell,")


@found
def test_a_prediction_does_not_hide_the_measurement_that_it_meets():
    same = (1e6, 50.0)
    marks = [
        picture.Mark("cei", same, same, chosen=True),
        picture.Mark("ui", (2e6, 20.0), (2e6, 20.0)),
    ]
    circles = [
        each
        for each in ET.fromstring(picture.scatter(marks, "two")).iter()
        if each.tag.endswith("circle")
    ]
    last = {(each.get("cx"), each.get("cy")): each.get("fill") for each in circles}
    assert len(last) == 2
    assert not {"white"} & set(last.values())


# ------------------------------------------------------------------ columns of intervals


@found
def test_masked_values_are_null():
    masked = np.ma.array([1, 2], mask=[False, True])
    assert Intervals.build(masked, [3, 4]).stab(0).tolist() == [1]
    assert Intervals.build([1], [3]).stab_batch(masked)[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "dtype", [pytest.param("M8[10s]", marks=found), "M8[25h]", pytest.param("M8[2ms]", marks=found)]
)
def test_times_in_steps_of_several_units(dtype):
    low, high = np.array([10], dtype), np.array([100], dtype)
    middle = np.array([75], dtype).astype("M8[ms]")
    assert Intervals.build(low, high).stab_batch(middle)[1].tolist() == [0]
    assert Intervals.build(low.astype("M8[ms]"), high.astype("M8[ms]")).stab_batch(
        np.array([75], dtype)
    )[1].tolist() == [0]


@found
@pytest.mark.parametrize("far", [np.datetime64(2**62, "s"), np.datetime64(300_000, "Y")])
def test_a_time_beyond_64_bits_of_microseconds_is_late(far):
    assert Intervals.build([dt.datetime(2020, 1, 1)], [None]).stab(far).tolist() == [0]


@found
def test_infinite_decimals_are_infinite():
    index = Intervals.build([Decimal(1), Decimal("-Infinity")], [Decimal("Infinity"), Decimal(5)])
    assert sorted(index.stab(3).tolist()) == [0, 1]
    assert index.stab(Decimal("Infinity")).tolist() == [0]


@found
def test_the_missing_value_of_pandas_is_null():
    assert Intervals.build([1, pd.NA], [3, 4]).stab(0).tolist() == [1]
    assert Intervals.build([1], [3]).stab(pd.NA).tolist() == []


@found
def test_unsigned_polars_series():
    big = pl.Series([1, 2**63 + 5], dtype=pl.UInt64)
    assert Intervals.build(big, big).stab_batch(big)[1].tolist() == [0, 1]


@found
def test_a_frame_is_no_column():
    with pytest.raises(OptionError, match="one-dimensional"):
        Intervals.build(pd.DataFrame({"low": [1]}), pd.DataFrame({"high": [2]}))


@found
def test_an_end_of_too_many_digits_is_refused_in_words():
    with pytest.raises(OptionError, match="low end") as refused:
        Intervals.build([10**5_000], [None])
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (pl.Series([1, None]), 0),
        (pl.Series([1.5, None]), 0),
        (pl.Series(["b", None]), "a"),
        (pl.Series([dt.date(2020, 1, 1), None]), dt.date(2019, 1, 1)),
        (pl.Series([dt.datetime(2020, 1, 1), None]), np.datetime64("2019")),
        (pl.Series([Decimal("1.10"), None]), Decimal("1.09")),
        (pd.Series([1, None], dtype="Int64"), 0),
        (pd.Series(["b", None], dtype="string"), "a"),
        (pd.Series([pd.Timestamp("2020"), pd.NaT]), dt.datetime(2019, 1, 1)),
    ],
)
def test_nulls_of_every_library_mean_no_end(column, value):
    assert Intervals.build(column, [None, None]).stab(value).tolist() == [1]


# ------------------------------------------------------------------ parameters


@found
@pytest.mark.parametrize(
    ("structure", "parameters", "said"),
    [
        ("cei", {"segmnt": 4}, "segmnt"),
        ("dlist", {"segment": 4}, "segment"),
        ("cei", {"memory": 10_000}, "memory"),
        ("auto", {"segment": 4}, "segment"),
        ("cei", {"segment": "x"}, "segment"),
        (["cei"], {}, "stabbing index"),
    ],
)
def test_wrong_parameters_are_said_in_words(structure, parameters, said):
    with pytest.raises(OptionError, match=said):
        Intervals.build([1], [2], structure=structure, **parameters)


# ------------------------------------------------------------------ long lives


@found
def test_an_insertion_does_not_count_those_before_it():
    """Or n insertions with new ends take n * n steps."""

    class Watched(Counter):
        def values(self):
            raise AssertionError("everything aside is counted")

    index = Intervals.build(range(1_000), range(1, 1_001))
    index._aside = Watched()
    for i in range(3):
        index.insert(i + 0.25, i + 0.75, i)
    assert len(index) == 1_003


NUMBERS = [0, -0.0, 0.1, Decimal("0.1"), 0.1 + 0.2, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63)]
NUMBERS += [2**63, 2**64 - 1, 2.0**63, 1e300, -1e300, 5e-324, 10**30, 1e30, Decimal("1e30"), 1.5]
STRINGS = [
    "",
    "a",
    "a\0",
    "a\0\0",
    "b",
    "ab",
    "é",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "~",
    "\x7f",
]
TIMES = [dt.datetime(2020, 1, day, microsecond=us) for day in (1, 2) for us in (0, 1, 999_999)]
TIMES += [np.datetime64("2020-01-01T12", "s"), pd.Timestamp("2020-01-02"), dt.date(2020, 1, 2)]
TIMES += [dt.datetime(2020, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5)))]


def order(value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dt.date | np.datetime64):
        moment = pd.Timestamp(value)
        return (moment if moment.tzinfo else moment.tz_localize("UTC")).as_unit("ns").value
    return exact(value)


def is_in(value, interval):
    low, high, closed, _ = interval
    left, right = CLOSED[closed]
    if value is None:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return low is None if value < 0 else high is None
    at = order(value)
    above = low is None or order(low) < at or (left and order(low) == at)
    return above and (high is None or at < order(high) or (right and order(high) == at))


@pytest.mark.parametrize("structure", [*STRUCTURES, "auto"])
def test_a_long_life_with_refusals_agrees_with_brute_force(structure):
    rng = random.Random(structure)
    for pool in (NUMBERS, STRINGS, TIMES):
        # Half of the ends come from the middle of others: they are new, and kept aside.
        spread = [*pool, *(rng.uniform(-9, 9) for _ in range(20))] if pool is NUMBERS else pool

        def drawn(spread=spread):
            while True:
                low, high = (rng.choice([*spread, None]) for _ in range(2))
                closed = rng.choice(list(CLOSED))
                if low is None or high is None or order(low) < order(high):
                    return low, high, closed, rng.randrange(9)

        held = [(*drawn()[:2], "both", i % 9) for i in range(25)]
        lows, highs = [each[0] for each in held], [each[1] for each in held]
        index = Intervals.build(lows, highs, [each[3] for each in held], structure=structure)
        wrong = {
            "reversed": lambda index=index, pool=pool: index.insert(
                max(pool, key=order), min(pool, key=order), 1
            ),
            "negative": lambda index=index: index.insert(None, None, -1),
            "bits": lambda index=index: index.insert(None, None, 2**31),
            "closed": lambda index=index: index.insert(None, None, 1, closed="open"),
            "missing": lambda index=index: index.delete(None, None, 77),
            "kind": lambda index=index, pool=pool: index.insert(
                1 if pool is not NUMBERS else "", None, 1
            ),
            "value": lambda index=index: index.stab_batch([object()]),
        }
        for turn in range(120):
            change = rng.random()
            if change < 0.5:
                held.append(drawn())
                low, high, closed, number = held[-1]
                index.insert(low, high, number, closed=closed)
            elif change < 0.8:
                low, high, closed, number = held.pop(rng.randrange(len(held)))
                index.delete(low, high, number, closed=closed)
            else:
                before = index.statistics()
                with pytest.raises(OptionError):
                    rng.choice(list(wrong.values()))()
                assert index.statistics() == before
            if turn % 12 == 0:
                values = [*spread, None, *([INF, -INF, math.nan] if pool is NUMBERS else [])]
                offsets, ids = index.stab_batch(values)
                for i, value in enumerate(values):
                    expected = sorted(each[3] for each in held if is_in(value, each))
                    assert sorted(ids[offsets[i] : offsets[i + 1]].tolist()) == expected, value
        assert len(index) == len(held)
        index.check()


# ------------------------------------------------------------------ the papers' experiments


@found
def test_a_small_run_does_not_replace_the_results_of_a_whole_one(tmp_path, monkeypatch):
    whole = tmp_path / "papers.json"
    whole.write_text(json.dumps({"scale": "full"}))
    monkeypatch.setattr(papers, "OUTPUT", whole)
    monkeypatch.setattr(papers, "EXPERIMENTS", {"none": lambda **_: {}})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        papers.main(["--small"])
    assert json.loads(whole.read_text()) == {"scale": "full"}
