"""The benchmark of detection rules runs, and its rules match some of its events."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("sigma", reason="pySigma is not installed (pip install 'bittern[sigma]')")

from benchmarks import detections


def test_a_small_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["detections", "--small"])
    detections.main()
    rules, contains = map(json.loads, capsys.readouterr().out.splitlines())
    assert (rules["catalog"], rules["rules"]) == ("rules", 100)
    assert contains["rules"] == 100
    for share in detections.SHARES:
        assert rules[f"{share} put in"]["matches per event"] >= share / 10
        assert contains[f"{share} put in"]["matches per event"] >= share / 2
