"""A process with an open history forks: the child leaves the history to its parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from steady import PATIENCE

#: The child ends as programs do, with all that runs at an exit, while its parent writes.
DURING_A_WRITE = """
import os, random, sys, threading
from bittern.history.documents.documents import Documents

documents = Documents(sys.argv[1])
documents.append([{"n": 0}])
added, written, forked = documents._added, threading.Event(), threading.Event()

def waiting(packed):
    state = added(packed)  # more than SQLite's cache holds: some of it is in the file
    written.set()
    forked.wait()
    return state

documents._added = waiting
text = random.Random(0).randbytes(8_000_000).hex()
writer = threading.Thread(target=documents.append, args=([{"n": 1, "text": text}],))
writer.start()
written.wait()
if (child := os.fork()) == 0:
    documents.close()
    sys.exit(0)
os.waitpid(child, 0)
forked.set()
writer.join()
documents.check()
documents.close()
with Documents(sys.argv[1]) as again:
    again.check()
    assert again.end == 2, again.end
print("parent")
"""

IN_THE_CHILD = """
import os, sys
from bittern.errors import HistoryError
from bittern.history import History

with History() as memory:
    history = History(sys.argv[1])
    history.append([{"n": 0}])
    memory.append([{"n": 0}])
    if (child := os.fork()) == 0:
        try:
            history.append([{"n": 1}])
        except HistoryError as error:
            assert "fork" in str(error), error
            memory.append([{"n": 1}])  # its own copy
            assert len(memory) == 2
            history.close()
            sys.exit(7)
        sys.exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7, status
    history.append([{"n": 2}])
    history.documents.check()
    assert (len(history), len(memory)) == (2, 1)
print("parent")
"""

LET_GO = """
import os, sys
from bittern.history import History

history = History(sys.argv[1])
read, write = os.pipe()
if (child := os.fork()) == 0:
    os.close(write)
    os.read(read, 1)  # until the parent is done
    os._exit(0)
history.close()
History(sys.argv[1]).close()  # although the child lives
os.close(write)
os.waitpid(child, 0)
print("parent")
"""

#: The child has no thread that would release what a thread of its parent holds.
WHILE_THREADS_WRITE = """
import os, signal, sys, threading
from bittern.errors import HistoryError
from bittern.history import History

forked = threading.Event()

def begun(history):
    history.append([{"n": 0}])
    added, written = history.documents._added, threading.Event()
    def waiting(packed):
        written.set()
        forked.wait()
        return added(packed)
    history.documents._added = waiting
    thread = threading.Thread(target=history.append, args=([{"n": 1}],))
    thread.start()
    written.wait()
    return history, thread

histories = [begun(History(sys.argv[1])), begun(History())]
if (child := os.fork()) == 0:
    signal.alarm(60)
    for history, _ in histories:
        for use in (
            lambda: history.append([{"n": 2}]),
            lambda: history.expire(1),
            lambda: history.documents.check(),
            lambda: list(history.documents.scan(["n"])),
            lambda: history.statistics(),
        ):
            try:
                use()
            except HistoryError as error:
                assert "fork" in str(error), error
            else:
                sys.exit(1)
        history.close()
    sys.exit(7)
_, status = os.waitpid(child, 0)
forked.set()
for history, thread in histories:
    thread.join()
    history.documents.check()
    assert len(history) == 2
assert os.waitstatus_to_exitcode(status) == 7, status
print("parent")
"""

WHILE_A_TEXT_IS_READ = """
import os, signal, threading
import bittern
from bittern.history import History
from bittern.history.demands import implied

BOOKS = {"less": "price < 10 AND EXISTS d (d.price > price)"}
intersection, reading, forked = implied._intersection, threading.Event(), threading.Event()

def waiting(values):
    if threading.current_thread() is not threading.main_thread():
        reading.set()
        forked.wait()
    return intersection(values)

def found():
    with bittern.LiveMatcher(bittern.Index.build(BOOKS), history=History()) as live:
        return live.match([{"price": 5}, {"price": 4}]).to_pylist()

implied._intersection = waiting
reader = threading.Thread(target=found)
reader.start()
reading.wait()
if (child := os.fork()) == 0:
    signal.alarm(PATIENCE)
    os._exit(0 if found() == [[], ["less"]] else 1)
_, status = os.waitpid(child, 0)
forked.set()
reader.join()
assert status == 0, status
print("parent")
"""


def run(script: str, folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE,
    )
    assert ran.stdout == "parent\n", ran.stderr
    assert ran.returncode == 0, ran.stderr


def test_a_child_ends_while_its_parent_writes(tmp_path: Path) -> None:
    run(DURING_A_WRITE, tmp_path / "history")


def test_a_child_is_refused(tmp_path: Path) -> None:
    run(IN_THE_CHILD, tmp_path / "history")


def test_a_child_does_not_wait_for_threads_that_write(tmp_path: Path) -> None:
    run(WHILE_THREADS_WRITE, tmp_path / "history")


def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_reads(tmp_path: Path) -> None:
    run(WHILE_A_TEXT_IS_READ.replace("PATIENCE", str(PATIENCE)), tmp_path)


def test_a_parent_lets_go_although_its_child_lives(tmp_path: Path) -> None:
    run(LET_GO, tmp_path / "history")
