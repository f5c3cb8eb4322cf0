"""Hard cases of ``bittern advise``: odd files, commands and results."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from bittern.service import advise, picture
from bittern.stabbing.contract import StabbingIndex
from bittern.stabbing.estimate import Estimate, Work
from steady import PATIENCE


@pytest.fixture
def run(bittern_command, monkeypatch):
    monkeypatch.setattr(advise, "_PASSES", 1)
    return lambda *arguments: bittern_command("advise", *arguments, "--values", "20")


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


@pytest.mark.parametrize("word", ["nan", "NaN", "-NaN"])
def test_a_nan_in_a_file_is_no_missing_end(run, write, word):
    code, out, err = run(write("i.csv", f"low,high\n1.5,2\n{word},3\n"))
    assert (code, out) == (1, "")
    assert "interval 1 has the low end nan" in err


@pytest.mark.parametrize("word", ["NA", "null", "NULL", "N/A", "#N/A", "n/a"])
def test_a_word_in_a_file_is_that_word(run, write, word):
    code, out, _ = run(write("i.csv", f"low,high\n{word},{word}\nzz,zz\n"))
    assert code == 0
    assert "2 intervals over 5 cells, 1.0 cells long" in out  # two points: no end is missing


def test_an_empty_end_is_none(run, write):
    code, out, _ = run(write("i.csv", 'low,high\na,\n,b\n"",c\n'))
    assert code == 0
    assert first_reason(out).startswith("  - 3 intervals over ")


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


def test_a_column_that_is_there_twice_is_refused(run, write):
    code, out, err = run(write("i.csv", "low,low,high\n1,5,9\n"))
    assert (code, out) == (1, "")
    assert "several columns named 'low'" in err


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", "", "Empty CSV file"),
        ("empty.jsonl", " \n", "needs the columns low and high"),
        ("header.csv", "low,high\n", "has no intervals to advise on"),
        ("upper.csv", "Low,High\n1,2\n", "it has: Low, High"),
        ("semicolon.csv", "low;high\n1;2\n", "it has: low;high"),
        ("ragged.csv", "low,high\n1,2,3\n", "Expected 2 columns, got 3"),
        ("latin.csv", b"low,high\na,b\xff\n", "highs are binary"),
        ("latin.jsonl", b'{"low": "a", "high": "b\xff"}\n', "line 1 is not JSON"),
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


@pytest.mark.parametrize(
    "given",
    ["nonsense", "0", "0k", "-5", "1e6", "", "1.5", "1.0001k", "M", "5X", "1,000", "9" * 5_000],
)
def test_memory_that_is_no_number(run, intervals, given):
    code, out, err = run(intervals, f"--memory={given}")
    assert (code, out) == (2, "")
    assert f"{given!r} is not a number of bytes" in err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("300000", 300_000),
        ("300k", 300_000),
        ("10T", 10**13),
        ("1.5G", 1_500_000_000),
        ("2GiB", 2**31),
        ("700 KiB", 700 * 1024),
        ("0.5mb", 500_000),
        ("1TiB", 2**40),
        (f"{10**18 - 1}T", (10**18 - 1) * 10**12),
    ],
)
def test_memory_in_every_unit(run, intervals, given, said):
    code, out, _ = run(intervals, "--memory", given, "--json")
    assert (code, json.loads(out)["memory"]) == (0, said)


def test_memory_may_be_more_than_a_gigabyte(run, intervals):
    code, out, _ = run(intervals, "--memory", 8 * 2**30)
    assert code == 0
    assert "memory allowed: 8.59 GB" in out


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


def test_advice_is_not_said_to_have_written_nothing(run, write):
    code, _, err = run(write("s.csv", "id,expression\ns1,a <\n"))
    assert code == 1
    assert "'s1', position 3: expected a constant" in err
    assert "written" not in err


MEASURES_ON = """
import sys
from bittern.service.cli import main
from bittern.stabbing.contract import StabbingIndex

search, searches = StabbingIndex.stab_batch, []

def measured(index, values):
    searches.append(search(index, values))
    if len(searches) > 1:
        print("at work", flush=True)
    while len(searches) > 1:
        search(index, values)
    return searches[0]

StabbingIndex.stab_batch = measured
sys.exit(main())
"""


def test_an_interrupt_ends_quietly(intervals):
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURES_ON, "advise", str(intervals), "--values", "40000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "at work\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


# ------------------------------------------------------------------ measuring


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


def test_the_table_fits_into_a_terminal(run, intervals):
    _, out, _ = run(intervals, "--memory", 2_000_000)
    assert max(map(len, out.splitlines())) <= 80


def test_no_figure_has_an_exponent(run, write):
    _, out, _ = run(write("i.csv", "low,high\n1,5\n3,9\n4,4\n"))
    assert not re.search(r"\de[-+]?\d", out)


def test_one_interval_is_no_plural(run, write):
    _, out, _ = run(write("i.csv", "low,high\n,\n"))
    assert first_reason(out).startswith("  - 1 interval over 1 cell,")


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
