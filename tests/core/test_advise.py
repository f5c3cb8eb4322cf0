"""``bittern advise``: tables in, a choice with figures out, as text, JSON and SVG."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import bittern
from bittern.service import advise, tables
from bittern.service.advice import Advice, Measurement, as_text, disagreement
from bittern.service.cli import main
from bittern.service.picture import Mark, bars, scatter
from bittern.stabbing.choose import choose
from bittern.stabbing.estimate import Estimate, Work
from bittern.stabbing.registry import STRUCTURES
from table_files import save

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(bittern_command, monkeypatch):
    monkeypatch.setattr(advise, "_PASSES", 1)
    return lambda *arguments: bittern_command("advise", *arguments)


@pytest.fixture
def intervals(tmp_path):
    rng = np.random.default_rng(1)
    lows = rng.integers(0, 900, 300).tolist()
    return save(
        tmp_path / "i.csv", [{"id": i, "low": v, "high": v + 40} for i, v in enumerate(lows)]
    )


# What it says


def test_the_table_has_every_structure_best_first(run, intervals):
    code, out, err = run(intervals, "--values", 100)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("bittern advises ")
    heading = next(i for i, line in enumerate(lines) if line.startswith("  structure "))
    rows = lines[heading + 1 : heading + 1 + len(STRUCTURES)]
    assert {row[2:].split()[0] for row in rows} == set(STRUCTURES)
    assert lines[0].split()[2] == rows[0][2:].split()[0]
    assert [row[:2] for row in rows] == ["* ", *["  "] * (len(rows) - 1)]
    assert f"measuring: {len(STRUCTURES)} of {len(STRUCTURES)}" in err
    ends = {re.search(r"B +[\d.,]+(?= |$)", row).end() for row in rows}
    assert len(ends) == 1, "columns are not aligned"
    assert "cut the line into cells" in out
    assert "drawn evenly over the cells" in out


def test_json_says_the_same_to_machines(run, intervals):
    code, out, _ = run(intervals, "--values", 100, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["intervals"] == 300
    assert {row["structure"] for row in said["structures"]} == set(STRUCTURES)
    first = said["structures"][0]
    assert said["choice"]["structure"] == first["structure"]
    assert said["choice"]["parameters"] == first["parameters"]
    assert said["choice"]["reasons"]
    for row in said["structures"]:
        assert row["predicted"]["bytes"] > 0
        if row["measured"] is not None:
            assert row["measured"]["bytes"] > 0
            assert row["measured"]["nanoseconds"] > 0
            assert row["measured"]["build_seconds"] >= 0
            assert row["measured"]["bytes"] == pytest.approx(row["predicted"]["bytes"], rel=0.25)
        assert row["fits"] == (row["predicted"]["bytes"] <= said["memory"])


def test_what_is_too_large_is_not_measured(run, intervals, monkeypatch):
    monkeypatch.setattr(advise, "MEASURED_UP_TO", 20_000)
    code, out, _ = run(intervals, "--values", 100, "--memory", 15_000)
    assert code == 0
    assert re.search(r"^  sci .* kB +[\d.]+  not measured: too large$", out, re.MULTILINE)
    assert re.search(r"^sci .* predicted$", out, re.MULTILINE)
    assert "memory allowed: 15 kB" in out
    measured = r"( +[\d.]+ kB +[\d.,]+){2} +[\d.]+$"
    assert re.search(rf"^over 15 kB:\n  [\w-]+ .*{measured}", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80


def test_what_fits_into_the_limit_is_measured_however_large(run, intervals, monkeypatch):
    monkeypatch.setattr(advise, "MEASURED_UP_TO", 1)
    _, out, _ = run(intervals, "--values", 10, "--memory", "10GiB", "--json")
    assert not [row for row in json.loads(out)["structures"] if row["measured"] is None]
    _, out, _ = run(intervals, "--values", 10, "--memory", "15k", "--json")
    for row in json.loads(out)["structures"]:
        assert (row["measured"] is not None) == row["fits"]
        assert row["not_measured"] == (None if row["fits"] else "too large")


def test_what_refuses_to_be_built_is_not_measured(run, intervals, monkeypatch):
    from bittern.errors import OptionError
    from bittern.literature.constructs.sci import SCI

    def refuse(*_, **__):
        raise OptionError("there is too much of it, " * 9)

    monkeypatch.setattr(SCI, "_build", refuse)
    code, out, _ = run(intervals, "--values", 10)
    assert code == 0
    assert re.search(r"^  sci .* not measured: refused$", out, re.MULTILINE)
    assert "\nsci: there is too much of it, there is" in out
    assert max(map(len, out.splitlines())) <= 80
    _, out, _ = run(intervals, "--values", 10, "--json")
    (sci,) = (row for row in json.loads(out)["structures"] if row["structure"] == "sci")
    assert sci["not_measured"].startswith("there is too much of it")


def test_a_limit_that_nothing_fits_into(run, intervals):
    code, out, err = run(intervals, "--memory", 10)
    assert (code, out) == (2, "")
    assert "the smallest" in err


def test_help_has_an_example(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "example:\n  " in out


def test_what_is_advised_can_be_built(tmp_path, capsys):
    rows = [{"id": i, "expression": f"a > {i}"} for i in range(30)]
    source, target = str(save(tmp_path / "s.csv", rows)), str(tmp_path / "x")
    command = ["build", source, "--output", target, "--quiet", "--stabbing"]
    assert main([*command, "auto", "--stabbing-memory", "100k"]) == 0
    asked = bittern.Index.open(target).subscriptions.parameters
    assert (asked["asked"], asked["memory"]) == ("auto", 100_000)
    assert main([*command, "interval-tree"]) == 0
    assert bittern.Index.open(target).subscriptions.parameters == {"stabbing": "interval-tree"}
    for wrong in (
        ["nothing"],
        ["cei", "--stabbing-memory", "9"],
        ["auto", "--stabbing-memory", "9"],
    ):
        capsys.readouterr()
        assert main([*command, *wrong]) == 2
        assert capsys.readouterr().err.startswith("bittern: ")


# What it measures


def test_batches_find_few_enough_ids(monkeypatch):
    """Each as large as it may be, all values in order, one that finds too many alone."""
    monkeypatch.setattr(advise, "_BATCH", 50)
    monkeypatch.setattr(advise, "_BATCH_IDS", 40)
    lows = np.array([*[0] * 45, *range(100)], np.int32)
    highs = np.array([*[9] * 45, *[99] * 100], np.int32)
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    found = list(advise.batches(np.sort(lows), np.sort(highs), 120, rng))
    values = np.concatenate([again.integers(0, 100, size, np.int32) for size in (50, 50, 20)])
    assert np.concatenate(found).tolist() == values.tolist()
    assert {value.dtype for value in found} == {np.dtype(np.int32)}

    def ids(batch):
        return int(((lows <= batch[:, None]) & (batch[:, None] <= highs)).sum())

    sizes = [ids(batch) for batch in found]
    assert max(sizes) > 40
    assert all(size <= 40 or len(batch) == 1 for size, batch in zip(sizes, found, strict=True))
    ends = {50, 100, 120}
    at = 0
    for batch, size in zip(found, sizes, strict=True):
        at += len(batch)
        assert at in ends or size + ids(values[at : at + 1]) > 40
    assert ends <= set(np.cumsum([len(batch) for batch in found]).tolist())


def test_measuring_ends_in_time(monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(advise.time, "perf_counter", lambda: next(clock))
    lows = np.arange(50, dtype=np.int32)
    took = advise.measure(Estimate("dlist", {}, 1, Work()), lows, lows, 50, 10**9)
    assert took.seconds == 2
    assert took.nanoseconds == pytest.approx(2e9 / advise._BATCH)
    assert next(clock) == 16  # the build, and three batches of two seconds each


def line(name, fits, size, nanoseconds):
    measured = Measurement(size, nanoseconds, 0.1) if size else None
    return Advice(Estimate(name, {}, 9, Work()), fits, measured)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([("cei", True, 1_200_000, 17)], "cei was the fastest: 17 ns per value and 1.2 MB, not 30"),
        ([("cei", True, 900, 28), ("ui", True, 800, 27)], "ui was fast enough and smaller: 27 ns"),
        ([("cei", True, 900, 39)], ""),
        ([("cei", True, 1000, 28)], ""),
        ([("cei", False, 10, 1), ("ui", True, 0, 0)], ""),
        ([], ""),
    ],
)
def test_what_was_measured_may_disagree(others, said):
    lines = [line("dlist", True, 1000, 30), *(line(*other) for other in others)]
    (found,) = disagreement(lines) if said else [*disagreement(lines), ""]
    assert said in found
    unmeasured = [line("dlist", True, 0, 0), *(line(*other) for other in others)]
    assert not list(disagreement(unmeasured))


def test_the_disagreement_is_a_reason(run, intervals, monkeypatch):
    took = {"interval": Measurement(10, 1.0, 0.1)}

    def measured(estimate, *_):
        return took.get(estimate.name, Measurement(1000, 50.0, 0.1))

    monkeypatch.setattr(advise, "measure", measured)
    _, out, _ = run(intervals)
    assert "  - measured here, interval was the fastest: 1 ns per value and 10 B" in out
    _, out, _ = run(intervals, "--json")
    assert json.loads(out)["choice"]["reasons"][-1].startswith("measured here, interval was")


def test_large_figures_fit_too():
    choice = choose([0], [5], 2**28)
    parameters = {"segment": 2**27}
    lines = [
        Advice(
            Estimate(name, parameters, 10**12, Work(ids=1e7)),
            name == "cei",
            Measurement(999_900_000, 1_234_567.0, 123.4),
        )
        for name in STRUCTURES
    ]
    text = as_text(lines, choice, 8 * 2**30)
    assert max(map(len, text.splitlines())) <= 80
    assert "  segment 2**27  " in text
    assert " 1 GB 1,234,567   123,400\n" in text
    assert "\nover 8.59 GB:\n  " in text


# What it reads


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_intervals_in_every_format(run, tmp_path, suffix):
    rows = [{"low": i, "high": i + 3} for i in range(50)]
    code, out, _ = run(save(tmp_path / f"i{suffix}", rows), "--json", "--values", 10)
    assert (code, json.loads(out)["intervals"]) == (0, 50)


@pytest.mark.parametrize(
    "rows",
    [
        [{"low": 0.5, "high": 2.25}, {"low": -1e300, "high": 1e300}],
        [{"low": "a", "high": "b"}, {"low": "aa", "high": "zz"}],
        [{"low": "2026-01-31 00:00:00", "high": "2026-02-01 00:00:00"}],
        [{"low": None, "high": 5}, {"low": 3, "high": None}],
    ],
)
def test_ends_of_every_kind(run, tmp_path, rows):
    for suffix in (".csv", ".jsonl"):
        code, out, err = run(save(tmp_path / f"i{suffix}", rows), "--json", "--values", 10)
        assert (code, json.loads(out or "{}").get("intervals")) == (0, len(rows)), err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_subscriptions_are_advised_on_by_what_is_filed(run, tmp_path, suffix):
    rows = [{"id": f"s{i}", "expression": f"price > {i} AND price < {i + 9}"} for i in range(200)]
    code, out, _ = run(save(tmp_path / f"s{suffix}", rows), "--json", "--values", 10)
    said = json.loads(out)
    index = bittern.Index.build({row["id"]: row["expression"] for row in rows})
    assert code == 0
    assert said["cells"] == index.rank.n_cells
    assert said["intervals"] == index.statistics()["pivot"]["postings"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("i.csv", "low,high\n5,3\n", "reversed"),
        ("i.csv", "low,high\n1,2\nx,3\n", "lows are"),
        ("i.csv", "low,high\n", "no intervals to advise on"),
        ("i.csv", "low,height\n1,2\n", "it has: low, height"),
        ("i.csv", "", "i.csv"),
        ("i.jsonl", "", "needs the columns low and high"),
        ("i.jsonl", "[1, 2]\n", "needs the columns low and high"),
        ("i.jsonl", "nonsense\n", "not JSON"),
        ("i.parquet", "nonsense", "i.parquet"),
        ("s.csv", "id,expression\n", "no intervals to advise on"),
        ("s.csv", "id,expression\ns1,a IS NULL\n", "no intervals to advise on"),
        ("s.csv", "id,expression\ns1,a >\n", "not valid"),
    ],
)
def test_bad_files_are_said_in_a_sentence(run, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    code, out, err = run(tmp_path / name)
    assert (code, out) == (1, "")
    assert "bittern: " in err
    assert message in err


def test_wrong_commands(run, tmp_path):
    for arguments in (["-"], ["i.doc"], [], ["i.csv", "--values", "0"], ["i.csv", "--memory", "x"]):
        code, out, err = run(*arguments)
        assert (code, out) == (2, ""), arguments
        assert "bittern" in err
    code, _, err = run(tmp_path / "none.csv")
    assert (code, err.count("\n")) == (1, 1)


def test_the_columns_of_a_file(tmp_path):
    path = tmp_path / "i.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n  \n" + b'{"low": 1, "high": 2}\n')
    assert tables.columns_of(str(path), "jsonl") == ["low", "high"]
    path.write_text('{"low": 1}\n{"high": 2, "id": 3}\n{"x": 4}\nnonsense\n')
    columns = tables.columns_of(str(path), "jsonl", {"id", "expression"}, {"low", "high"})
    assert columns == ["low", "high", "id"]
    with pytest.raises(bittern.errors.BitternError, match=r"i\.jsonl: line 4 is not JSON"):
        tables.columns_of(str(path), "jsonl")


def test_a_file_with_both_kinds_of_columns(run, tmp_path):
    rows = [{"id": i, "expression": f"a < {i}", "low": i, "high": i + 1} for i in range(9)]
    rows += [{"id": 9, "expression": "b = 1 OR b = 3", "low": 2, "high": 3}]
    for suffix in (".csv", ".jsonl", ".parquet"):
        path = save(tmp_path / f"both{suffix}", rows)
        code, out, err = run(path, "--values", 10, "--json")
        assert (code, json.loads(out)["intervals"]) == (0, 10)
        assert "low and high are used" in err
        code, out, err = run(path, "--values", 10, "--json", "--id-column", "id")
        assert (code, json.loads(out)["intervals"]) == (0, 11)
        assert "taken" not in err


def test_columns_of_other_names(run, tmp_path):
    path = save(tmp_path / "s.csv", [{"key": 1, "wish": "a < 5"}])
    given = ["--id-column", "key", "--expression-column", "wish"]
    assert run(path, "--values", 10, *given)[0] == 0
    code, _, err = run(path, "--values", 10, *given[:2])
    assert (code, "has no column 'expression'" in err) == (1, True)


# Pictures


def marks():
    rng = np.random.default_rng(2)
    return [
        Mark(
            name,
            (10 ** rng.uniform(5, 6), 10 ** rng.uniform(1, 1.5)),
            None if name == "sci" else (10 ** rng.uniform(5, 6), 10 ** rng.uniform(1, 1.5)),
            chosen=name == "cei",
        )
        for name in STRUCTURES
    ]


def labels(root):
    """Boxes of the structures' names, as wide as a browser may draw them."""
    found = {}
    for text in root.iter(f"{SVG}text"):
        if text.text in STRUCTURES:
            x, y = float(text.get("x")), float(text.get("y"))
            found[text.text] = (x, y - 11, x + 7.5 * len(text.text), y + 3)
    return found


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_no_label_lies_on_another_one_or_on_a_mark():
    for each in (marks(), [Mark(name, (1e6, 50.0), (1e6, 50.0)) for name in STRUCTURES]):
        root = ET.fromstring(scatter(each, "all at once"))
        found = labels(root)
        assert set(found) == set(STRUCTURES)
        boxes = list(found.values())
        assert not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])
        for circle in root.iter(f"{SVG}circle"):
            x, y = float(circle.get("cx")), float(circle.get("cy"))
            assert not any(overlap((x - 4, y - 4, x + 4, y + 4), box) for box in boxes)
        for left, top, right, bottom in boxes:
            assert 0 <= left < right <= float(root.get("width"))
            assert 0 <= top < bottom <= float(root.get("height"))


def test_labels_stay_off_the_lines_where_they_can():
    """A line to the left and one to the right of each mark, and room above."""
    two = [Mark("cei", (1e4, 10.0), (1e8, 10.0)), Mark("ui", (1e8, 90.0), (1e4, 90.0))]
    root = ET.fromstring(scatter(two, "two"))
    joined = [
        (float(one.get("x1")), float(one.get("y1")), float(one.get("x2")))
        for one in root.iter(f"{SVG}line")
        if one.get("stroke") == "#246"
    ]
    assert len(joined) == 2
    for left, top, right, bottom in labels(root).values():
        for start, y, end in joined:
            crossed = min(start, end) < right and left < max(start, end) and top < y < bottom
            assert not crossed


def test_axes_are_logarithmic_and_marks_connected():
    two = [
        Mark("cei", (1e6, 10.0), (1e6, 100.0), chosen=True),
        Mark("ui", (1e8, 10.0), (1e8, 1000.0)),
        Mark("sci", (1e7, 10.0), None),
    ]
    root = ET.fromstring(scatter(two, "a < b & c"))
    order = [c.get("fill") for c in root.iter(f"{SVG}circle")]
    assert order == ["white"] * 3 + ["#246", "#c00"]  # what was measured lies on top
    circles = {
        (round(float(c.get("cx")), 1), round(float(c.get("cy")), 1)): c.get("fill")
        for c in root.iter(f"{SVG}circle")
    }
    xs = sorted({x for x, _ in circles})
    ys = sorted({y for _, y in circles})
    assert math.isclose(xs[1] - xs[0], xs[2] - xs[1], abs_tol=0.3)  # 1e6, 1e7, 1e8
    assert math.isclose(ys[1] - ys[0], ys[2] - ys[1], abs_tol=0.3)  # 1000, 100, 10
    assert sorted(circles.values()).count("white") == 3
    joined = [
        line
        for line in root.iter(f"{SVG}line")
        if line.get("stroke") in ("#c00", "#246") and line.get("x1") == line.get("x2")
    ]
    assert len(joined) == 2
    assert root.find(f"{SVG}title").text == "a < b & c"


def test_the_picture_is_written_as_a_whole(run, intervals, tmp_path):
    target = tmp_path / "advice.svg"
    code, out, err = run(intervals, "--values", 10, "--picture", target)
    assert code == 0
    assert "structure" in out
    assert f"{target} was written" in err
    assert set(labels(ET.parse(target).getroot())) == set(STRUCTURES)
    code, _, err = run(intervals, "--values", 10, "--picture", tmp_path / "no" / "x.svg")
    assert (code, err.count("No such file")) == (1, 1)
    assert run(intervals, "--values", 10, "--picture", "-")[0] == 2


def test_the_table_is_there_before_the_picture(run, intervals, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device", "advice.svg")

    monkeypatch.setattr(advise, "scatter", fail)
    code, out, err = run(intervals, "--values", 10, "--picture", tmp_path / "advice.svg")
    assert (code, "bittern advises" in out) == (1, True)
    assert "No space left" in err
    assert not list(tmp_path.glob("*advice*"))


def test_a_target_that_may_not_be_written(tmp_path, monkeypatch):
    (tmp_path / "old.svg").write_text("old")
    tables.check_target(str(tmp_path / "new.svg"))
    tables.check_target(str(tmp_path / "old.svg"))
    monkeypatch.setattr(tables.os, "access", lambda *_: False)
    for name in ("new.svg", "old.svg"):
        with pytest.raises(PermissionError, match=name):
            tables.check_target(str(tmp_path / name))


def test_bars_are_longer_for_more():
    text = bars(
        [
            Mark("small", (1e3, 10.0), (1e3, 10.0)),
            Mark("middle", (1e5, 100.0), (1e5, 100.0)),
            Mark("large", (1e7, 1000.0), None),
        ]
    )
    rows = [re.findall("#+", line) for line in text.splitlines()[1:]]
    assert [len(search) for search, _ in rows] in ([1, 8, 16], [1, 9, 16])
    assert [len(search) == len(stored) for search, stored in rows] == [True] * 3
    assert [line.endswith("predicted") for line in text.splitlines()[1:]] == [False, False, True]
    alone = bars([Mark("cei", (0.0, 5.0), None)])
    assert alone.count("#") == 32
