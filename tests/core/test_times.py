"""``scripts/test_times.py``: what a report says of files and tests, and the order that is kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.spark.test_run" name="test_a" time="7.25"/>
<testcase classname="tests.core.test_cei.TestContract" name="test_b[1]" time="2.5"/>
<testcase classname="tests.core.test_cei" name="test_c" time="20"/>
<testcase classname="tests.core.test_trie" name="test_d" time="0.5"/>
</testsuite></testsuites>"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, which keeps its order elsewhere."""
    file = TESTS.parent / "scripts" / "test_times.py"
    spec = importlib.util.spec_from_file_location("times_of_tests", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LONGEST", tmp_path / "longest.txt")
    (tmp_path / "report.xml").write_text(REPORT)
    return module


@pytest.mark.parametrize("keeps", [False, True])
def test_the_order_of_a_report_is_kept_if_asked_for(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, keeps: bool
) -> None:
    report = script.LONGEST.with_name("report.xml")
    monkeypatch.setattr("sys.argv", ["times", str(report), *["--keep"][: int(keeps)]])
    script.main()
    said = capsys.readouterr().out
    assert said.startswith("30 s in 3 files, 4 tests\n\n   22.5  test_cei\n")
    assert "   20.0  test_cei::test_c\n" in said
    assert script.LONGEST.exists() == keeps
    if keeps:
        assert script.LONGEST.read_text() == "test_cei\ntest_run\n"


def test_the_order_names_files_that_are_there() -> None:
    named = (TESTS / "longest.txt").read_text().split()
    assert set(named) <= {path.stem for path in TESTS.glob("*/test_*.py")}
    assert len(set(named)) == len(named)
