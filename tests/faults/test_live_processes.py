"""A live matcher and other processes: the one that compacts, and those that it is forked into.

Nothing of a place where others may write is run or believed; a forked child neither hangs nor takes
anything from its parent; a child that has been halted keeps nobody waiting.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import bittern
from answers import build
from bittern.engine.live import compact as compact_module
from bittern.engine.live import layers as layers_module
from bittern.engine.live.compact import Child, Compaction
from bittern.errors import CompactionError, OptionError
from bittern.history import History
from steady import PATIENCE

#: Seconds after which a process counts as hanging.
LONG = PATIENCE


def run(program: str, folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", program],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=2 * LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ------------------------------------------------------------------ modules


HOSTILE = "open('hostile-{name}-was-run', 'w').close()\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A working directory with modules of names that are imported."""
    for name in ("numpy", "pyarrow", "bittern", "multiprocessing", "runpy"):
        (tmp_path / f"{name}.py").write_text(HOSTILE.format(name=name))
    return tmp_path


COMPACT = """
import sys
import bittern
with bittern.LiveMatcher() as live:
    live.subscribe("x", "a = 1")
    live.match({"a": 1})  # what this process needs is imported
    sys.path[:0] = ["", ".", "below"]
    live.compact()
    print(live.match({"a": 1}).to_pylist())
"""


def test_compaction_runs_nothing_of_the_working_directory(hostile: Path) -> None:
    assert run(COMPACT, hostile, "-P") == "[['x']]"
    assert not list(hostile.glob("*-was-run"))


def test_precompiling_runs_nothing_of_the_working_directory(hostile: Path) -> None:
    program = (
        "from bittern import precompile\n"
        "precompile.modules = lambda: ['bittern.model.strings']\n"
        "print(precompile.compile_all(1) > 0)\n"
    )
    assert run(program, hostile, "-P") == "True"
    assert not list(hostile.glob("*-was-run"))


# ------------------------------------------------------------------ folders


@pytest.mark.parametrize("end", ["", "live.close(); "], ids=["exits", "closes"])
def test_a_forked_childs_end_leaves_its_parents_folder(tmp_path: Path, end: str) -> None:
    program = (
        "import os, sys, bittern\n"
        "live = bittern.LiveMatcher()\n"
        "folder = live._work_folder.path\n"
        "child = os.fork()\n"
        f"if child == 0:\n    {end}sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(folder.exists())\n"
        "live.close()\n"
        "print(folder.exists())\n"
    )
    assert run(program, tmp_path).split() == ["True", "False"]


@pytest.mark.parametrize("taken", [False, True], ids=["gone", "another's"])
def test_a_folder_that_is_gone_is_not_made_again_under_its_name(
    taken: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(Child, "run", staticmethod(compact_module.main))
    with bittern.LiveMatcher(build({"x": "a = 1"})) as live:
        old = live._work_folder.path
        old.rename(tmp_path / "moved")
        if taken:
            old.mkdir()
            (old / "other").touch()
        live.subscribe("y", "a = 1")
        live.compact()
        new = live._work_folder.path
        assert new != old
        assert stat.S_IMODE(new.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in new.iterdir()} == {0o700}
        assert live.match({"a": 1}).to_pylist() == [["x", "y"]]
    assert not new.exists()
    assert [path.name for path in old.iterdir()] == ["other"] if taken else not old.exists()


@pytest.mark.parametrize("which", ["work", "."])
def test_the_child_believes_nothing_in_a_folder_of_others(which: str, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    work = outer / "work"
    work.mkdir(parents=True)
    for folder in (outer, work):
        folder.chmod(0o700)
    (outer / which if which == "work" else outer).chmod(0o755)
    with pytest.raises(CompactionError, match="not private to this user"):
        compact_module.main(work)


def test_what_is_handed_over_is_no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: dict[str, bytes] = {}

    def run_child(work: Path) -> None:
        handed.update(
            {path.name: path.read_bytes()[:6] for path in work.iterdir() if path.is_file()}
        )
        compact_module.main(work)

    monkeypatch.setattr(Child, "run", staticmethod(run_child))
    with bittern.LiveMatcher() as live:
        live.subscribe("x", "a = 1", 2)
        live.subscribe(1, "a = 1")
        live.match([{"a": 1}])
        index = live.compact()
    assert index.ids.to_pylist() == ["x", "1"]
    assert index.all_ids.take([0, 1]) == ["x", 1]
    assert index.weights is not None
    assert index.weights.tolist() == [2.0, 1.0]
    arrow = b"ARROW1"
    assert handed == {"added.arrow": arrow, "sample.arrow": arrow, "kept.npy": b"\x93NUMPY"}


@pytest.mark.parametrize(
    "events",
    [
        [{"a": 1, "b": {"c": "x"}}],
        ['{"a": 1}', "[", '{"a": 2}'],
        {"a": 1},
        '{"a": 1}',
        pytest.param("table", id="table"),
    ],
)
def test_the_sample_arrives(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    events = pa.table({"a": [1]}) if events == "table" else events
    seen: list[Any] = []
    build_index = bittern.Index.build

    def build_with(rows: Any, **options: Any) -> bittern.Index:
        seen.append(options["sample"])
        return build_index(rows, **options)

    monkeypatch.setattr(Child, "run", staticmethod(compact_module.main))
    with bittern.LiveMatcher() as live:
        live.subscribe("x", "a = 1")
        found = live.match(events).to_pylist()
        monkeypatch.setattr(bittern.Index, "build", build_with)
        live.compact()
        [sample] = seen
        assert live.match(sample).to_pylist() == found


# ------------------------------------------------------------------ forks


FORK_BESIDE_A_WRITER = f"""
import os, signal, threading, time
import bittern
live = bittern.LiveMatcher(bittern.Index.build({{"base": "a = 1"}}))
live.match({{"a": 1}})
stop = threading.Event()

def write():
    n = 0
    while not stop.is_set():
        live.subscribe(n, f"a = 1 AND b{{n % 50}} IS NULL")
        if n % 3:
            live.replace(n, "a = 1")
        if n % 50 == 0:
            live.match({{"a": 1}})
        n += 1

threading.Thread(target=write).start()
outcomes = []
for _ in range(12):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live.subscribe("child", "a = 1")
            found = live.match({{"a": 1}}).ids(0)
            n = len(live)
            numbers = sorted(id_ for id_ in found if isinstance(id_, int))
            whole = numbers == list(range(len(numbers))) and n == len(found) == len(numbers) + 2
            status = 0 if whole and "child" in live else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + {LONG}
    ended = 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        outcomes.append("hung")
        break
    outcomes.append(status)
stop.set()
print(outcomes)
"""


def test_a_child_forked_beside_a_thread_that_subscribes(tmp_path: Path) -> None:
    """It goes on with what was subscribed, whole, and with a lock of its own."""
    assert run(FORK_BESIDE_A_WRITER, tmp_path) == str([0] * 12)


FORK_BESIDE_AN_IMPORT = f"""
import os, signal, sys, threading, time
import bittern
live = bittern.LiveMatcher()
importing, forked = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, *_):
        if name == "bittern.terms.strings.strings":
            importing.set()
            forked.wait(1)

sys.meta_path.insert(0, Slow())
writer = threading.Thread(target=lambda: live.subscribe("parent", "upper(a) = 'X'"))
writer.start()
importing.wait()
child = os.fork()
if child == 0:
    status = 1
    try:
        live.subscribe("child", "upper(a) = 'X'")
        status = 0 if "child" in live.match({{"a": "x"}}).ids(0) else 2
    finally:
        os._exit(status)
forked.set()
deadline = time.monotonic() + {LONG}
ended = status = 0
while not ended and time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    time.sleep(0.01)
if not ended:
    os.kill(child, signal.SIGKILL)
print(status if ended else "hung")
writer.join()
"""


def test_a_child_forked_beside_a_thread_that_imports(tmp_path: Path) -> None:
    """It does not wait for a module that no thread of its own is going to finish."""
    assert run(FORK_BESIDE_AN_IMPORT, tmp_path) == "0"


def in_a_child(does: Any) -> int:
    """Run something in a forked child; its exit code."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(does() or 0)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_history_stays_with_the_process_that_opened_it() -> None:
    def ask() -> int:
        with pytest.raises(OptionError, match="make a LiveMatcher"):
            live.match({"a": 1})
        live.close()
        return 7

    with History() as history, bittern.LiveMatcher(history=history) as live:
        live.subscribe("x", "NOT EXISTS d (d.a = a)")
        assert in_a_child(ask) == 7
        assert live.match({"a": 1}).to_pylist() == [["x"]]


# ------------------------------------------------------------------ ends


def test_closing_does_not_wait_for_a_child_that_was_halted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers_module, "CLOSE_SECONDS", 0.2)
    monkeypatch.setattr(compact_module, "_ENDING_SECONDS", 0.2)
    monkeypatch.setattr(layers_module, "COMPACT_ROWS", 0)
    live = bittern.LiveMatcher(build({"x": "a = 1"}))
    live._compact_from = 0
    live.subscribe("y", "a = 1")
    compaction = live._compacting
    assert isinstance(compaction, Compaction)
    deadline = time.monotonic() + LONG
    while compaction._child._process is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    child = compaction._child._process
    os.kill(child.pid, signal.SIGSTOP)
    live.close()
    assert child.wait(LONG) == -signal.SIGKILL
    compaction.join(LONG)
    assert compaction.index is None
    assert live.match({"a": 1}).to_pylist() == [["x", "y"]]
    assert not live._work_folder.path.exists()


def test_the_child_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that is gone has closed the child's standard input."""
    ended: list[int] = []

    def run_child(work: Path) -> None:
        command = [sys.executable, "-P", "-m", "bittern.engine.live.compact", str(work)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LONG, check=False)
        ended.append(done.returncode)
        assert not (work / "result").exists()

    monkeypatch.setattr(Child, "run", staticmethod(run_child))
    with bittern.LiveMatcher() as live, pytest.raises(bittern.errors.BitternError):
        live.compact()
    assert ended == [1]
