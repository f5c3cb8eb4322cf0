"""The service's benchmark at a small scale: it asks a real service, and compares answers."""

from __future__ import annotations

import json

import pytest
from benchmarks.serve import report, run

import bittern

SPREAD = {"p50": 1.5, "p99": 2.5, "max": 3.5}


def test_a_run_asks_a_service_and_becomes_a_page(tmp_path):
    output = tmp_path / "figures.json"
    parts = [f"--only={name}" for name in ("single", "batches", "streams", "fresh")]
    assert run.main(["--small", f"--output={output}", *parts]) == 0
    result = json.loads(output.read_text())
    single = result["parts"]["single"]
    assert single["200 a second"]["requests"] == run.SMALL.rate * run.SMALL.seconds
    assert all(own["cpu_us"]["client"] > 0 for own in single.values())
    assert result["parts"]["streams"]["streams"] == run.SMALL.streams
    fresh = {"subscriptions": 1_234, "samples": 1}
    late = {**SPREAD, "max": 1_000.5}
    fresh |= {"acknowledged": late, "matched": late, "published": late}
    one = {"load_seconds": 7.0, "rate": 4321.0, "ms": SPREAD, "cpu_us": 99.0, "memory_bytes": 1e8}
    result["parts"]["processes"] = fresh
    result["parts"]["monitor"] = {"subscriptions": 9, "matches": 3.25, "bittern": one}
    result["parts"]["monitor"]["monitor"] = {**one, "rate": 1234.0}
    output.write_text(json.dumps(result))
    with pytest.raises(SystemExit, match="small run"):
        report.main([str(output)])
    assert report.main([str(output), f"--output={tmp_path}"]) == 0
    page = (tmp_path / report.PAGE.name).read_text()
    for title in ("Targets", "Start, 500", "One event", "Batches", "Streams", "Beside Lucene"):
        assert f"\n## {title}" in page
    assert (
        "| acknowledged to first match, two processes, longest, ms | 1,000 | 1,000 | **missed**"
        in page
    )
    assert "4,321" in page
    assert "3.25 matches an event" in page


def test_other_matches_end_the_run():
    found = bittern.Matcher(bittern.Index.build({"a": "x = 1"})).match([{"x": 1}, {}])
    right = b'{"event":0,"subscriptions":["a"]}\n{"event":1,"subscriptions":[]}\n'
    run.compare("lines", right, found)
    with pytest.raises(run.DisagreementError):
        run.compare("lines", right.replace(b'["a"]', b"[]"), found)
