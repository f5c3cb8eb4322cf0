"""The benchmark of single events runs, and both ways find the same."""

from __future__ import annotations

import re

import pytest
from benchmarks import single


@pytest.mark.parametrize("name", single.DEFAULT)
def test_it_prints_all_lines(name, capsys):
    single.measure(name, scale="small", n_events=20, deltas=False)
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(" +", line)[:2] for line in lines] == [
        [name, form] for form in ("json", "mapping", "json", "mapping")
    ]
    assert all(line.count("p99") == 2 for line in lines[:2])
    assert all(line.count("8: ") == 2 for line in lines[2:])


def test_it_puts_deltas_on_the_index(capsys, monkeypatch):
    monkeypatch.setattr(single, "DELTAS", (40, 3))
    single.measure("equality", scale="small", n_events=20, deltas=True)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["equality", "1", "deltas"]
    assert len(lines) == 4


def test_other_matches_are_told():
    class Found:
        def __init__(self, subscriptions):
            self.subscriptions = subscriptions

    with pytest.raises(SystemExit, match="other matches"):
        single.check([lambda _: Found([1]), lambda _: Found([2])], [{}])
