"""Bittern beside other engines: it runs without them, compares answers, and becomes a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from benchmarks import workloads
from benchmarks.rivals import engines, report, run

#: An engine that knows equalities, as slowly and as simply as it can be written.
PROGRAM = """
import json, sys
patterns, events = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
print(5_000_000, flush=True)
holds = lambda pattern, event: all(event.get(name) in some for name, some in pattern.items())
found = [[i for i, each in enumerate(patterns) if holds(each, event)] for event in events]
open(sys.argv[3], "w").writelines(" ".join(map(str, own)) + "\\n" for own in found)
for _ in sys.stdin:
    print(7_000 * len(events), sum(map(len, found)), flush=True)
"""


def test_patterns_say_what_subscriptions_say():
    equality = workloads.get("equality", "small").conjunctions()
    assert json.loads(engines.patterns_of(equality)[0]).keys() == {"street", "block"}
    shop = workloads.get("shop", "small").conjunctions()
    some = [value for each in engines.patterns_of(shop) for value in json.loads(each).values()]
    assert {"numeric": [">=", 1, "<=", 7]} in [value[0] for value in some]


@pytest.mark.parametrize("is_right", [True, False])
def test_a_run_becomes_a_page(tmp_path, monkeypatch, capsys, is_right):
    program = tmp_path / "engine.py"
    program.write_text(PROGRAM if is_right else PROGRAM.replace("if holds(each, event)", ""))
    command = [sys.executable, str(program)]
    own = engines.Engine("slow", command, workloads=("equality",), place=program)
    gone = engines.Engine("gone", [], workloads=("shop",), place=tmp_path / "nothing")
    monkeypatch.setattr(run, "ENGINES", (own, gone))
    out = tmp_path / "figures.json"
    given = ["equality", "shop", "--small", "--events=300", "--rounds=1", f"--output={out}"]
    given += ["--subscriptions=5,4000", "--most-elsewhere=4000"]
    if not is_right:
        with pytest.raises(SystemExit, match="slow answers otherwise"):
            run.main(given)
        return
    assert run.main(given) == 0
    assert report.main([str(out), f"--output={tmp_path}"]) == 0
    assert "left out, as scripts/rivals.sh did not build them: gone" in capsys.readouterr().out
    text = (tmp_path / report.PAGE.name).read_text()
    assert "| equality | slow, JSON text | 4,000 | 0.005 | 7 | 142,857 |" in text
    assert "| shop | slow" not in text
    for line in ("| equality | json | 4,000 |", "| shop | mapping | 4,000 |"):
        assert text.count(line) == 1
    assert "| workload | engine | 5 | 4,000 |" in text


def test_what_is_built_is_pinned():
    root = Path(__file__).parents[2]
    assert (
        "quamina.net/go/quamina v1.5.1" in (root / "benchmarks/rivals/quamina/go.mod").read_text()
    )
    pinned = (root / "scripts/rival-jars.xml").read_text()
    assert "<version>1.8.1</version>" in pinned
    assert "hyperscan==" in (root / "constraints.txt").read_text()
