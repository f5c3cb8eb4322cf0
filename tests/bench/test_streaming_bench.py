"""The streaming benchmarks at a small scale: a stream under changes, every match verified.

The same code at full scale is ``make bench-streaming``: 50,000 events and 1,000 changes a second.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from benchmarks.streaming import report, run, verify, world

from spark_sessions import why_no_spark
from steady import PATIENCE

ROOT = Path(__file__).parents[2]


def test_every_match_of_a_stream_under_changes_is_that_of_the_version_it_is_pinned_to(tmp_path):
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(f"NO SPARK: {reason}")
    output = tmp_path / "result.json"
    command = [sys.executable, "-m", "benchmarks.streaming.run", "--small", "--only", "soak"]
    command += ["--output", str(output)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=4 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    soak = json.loads(output.read_text())["parts"]["soak"]
    scale, counts = run.SMALL, soak["verified"]
    assert counts["wrong"] == counts["misjudged"] == counts["unread"] == 0
    # All that was sent, and the events of the warm-up.
    assert counts["events"] == scale.rate * scale.seconds + 4 * (scale.rate // 2)
    assert counts["batches"] > 1
    assert counts["judged"] > 500
    assert soak["versions"] > 1
    assert 0 < soak["delta"] <= scale.changes * scale.seconds


def table(*pairs):
    ids, names = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table({"id": pa.array(ids, pa.int64()), "subscription": pa.array(names, pa.string())})


def test_the_verification_sees_what_is_missing_superfluous_and_twice():
    right = table((1, "a"), (1, "b"), (2, "a"))
    assert verify.different(right, table((2, "a"), (1, "b"), (1, "a"))) == 0
    assert verify.different(right, table((1, "a"), (1, "b"))) == 1
    assert verify.different(right, table((1, "a"), (1, "b"), (2, "a"), (2, "c"))) == 1
    assert verify.different(right, table((1, "a"), (1, "b"), (2, "a"), (2, "a"))) == 1


def test_the_world_is_the_same_every_time():
    assert world.events(7, 50, 3).equals(world.events(7, 50, 3))
    assert not world.events(7, 50, 3).equals(world.events(8, 50, 3))
    assert world.subscriptions(50).equals(world.subscriptions(50))
    assert world.expression(5, 1) == world.expression(5, 1) != world.expression(6, 1)


def test_the_page_says_of_every_part_what_was_measured_and_of_a_wrong_match_that_it_is_wrong():
    stages = dict.fromkeys(("pin", "view", "match", "deliver", "commit", "other"), 0.25)
    spread = {"p50": 0.5, "p99": 1.5, "max": 2.5}
    one = {
        "batches": 7, "events": 1_234_567, "matches": 3_000_000, "versions": 5, "delta": 9,
        "latency": spread, "seconds": stages, "events_per_second": 98_765.0,
        "changes_per_second": 999.0, "end_to_end": spread, "sent_per_second": 49_999.0,
    }  # fmt: skip
    counts = {"batches": 7, "events": 10, "matches": 20, "wrong": 0, "judged": 30}
    counts |= {"misjudged": 0, "unread": 0}
    result = {
        "environment": {
            "date": "2026-01-01", "cpu": "c", "cores": 2, "system": "s", "versions": {},
            "load_average": [0.0] * 3,
        },
        "scale": "full",
        "parts": {
            "catalog": {
                "subscriptions": 1_000_000, "load": 12.5, "read": 3.0, "version": 0.001,
                "add": 0.004, "first_view": 17.0,
                "deltas": {"1000": {"commit": 0.0625, "view": 0.125}}, "compaction": 11.0,
            },
            "backlog": {"quiet": one},
            "paced": {"quiet": one},
            "fresh": {"samples": 20, "rate": 10_000, **spread},
            "soak": {"subscriptions": 20_000, "verified": counts, **one},
        },
    }  # fmt: skip
    page = report.page(result)
    for figure in ("12.5", "0.0625", "1,234,567", "98,765", "49,999", "All matches are right."):
        assert figure in page
    counts["wrong"] = 1
    assert "**Some are wrong.**" in report.page(result)
