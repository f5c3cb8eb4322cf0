"""Spark sessions in processes of their own, for what one session in the test's process cannot show.

Classic and Connect sessions cannot share a process, executors are processes only in a cluster, and
a driver that is to die must not be the test. So a ``Session`` is a child process that starts Spark
and then calls functions for the test, one at a time::

    test                                         child: python spark_sessions.py
    Session("connect", scratch)      ─────────►  starts Spark
    .call("spark_jobs.parity:match", shards=3)
                                     ──JSON───►  match(spark, shards=3)
                                     ◄──JSON───  its value, or its traceback

====================  =================================================================
``classic``           ``local[4]``: a driver whose workers are its own
``connect``           ``remote("local[2]")``: a client and, behind gRPC, a server
``local-cluster``     two executors of one core, each a JVM of its own
``two hosts``         the same, but on 127.0.0.1 and 127.0.0.2: Spark never runs the
                      speculative copy of a task on the host of the first attempt
====================  =================================================================

Everything listens on loopback only and writes under ``scratch``. A child is the leader of a process
session, which all that it starts belong to (Python's daemons leave the process *group*), so ``end``
finds every one of them in /proc and ends it by its id; no call waits longer than its deadline.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from class_archive import jvm_options
from steady import PATIENCE, Limit, free_port, listens, wait_until

TESTS = Path(__file__).parent
#: Seconds that a call may take, in which a job has PATIENCE for each of its waits.
_DEADLINE = 2 * PATIENCE
_JAVA_NEEDED = 17


def why_no_spark() -> str | None:
    """Say what is missing for a Spark session, or None when nothing is."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed (pip install 'bittern[spark]')"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return f"no Java found (JAVA_HOME={home!r}); Spark needs Java {_JAVA_NEEDED} or later"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None or int(version.group(1)) < _JAVA_NEEDED:
        return f"Spark needs Java {_JAVA_NEEDED} or later, {java} says: {told.strip()}"
    return None


def quick_settings(scratch: Path) -> dict[str, str]:
    """Settings of a session for tests: quick to start, UTC, loopback only."""
    # Workers that Spark keeps are killed in the end, and the lines that they have run are lost;
    # so are those that a daemon runs for them.
    measured = "COVERAGE_PROCESS_CONFIG" in os.environ
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.extraJavaOptions": jvm_options(),
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        # A process that does not get a core for a while is not gone.
        "spark.network.timeout": f"{PATIENCE}s",
        "spark.python.authenticate.socketTimeout": f"{PATIENCE}s",
        "spark.python.worker.reuse": "false" if measured else "true",
        "spark.python.daemon.module": "pyspark.daemon" if measured else "quick_workers",
        "spark.executorEnv.PYTHONPATH": str(TESTS),
    }


#: Of sessions that only carry rows to Bittern and back: for jobs of a few rows, Spark's Java
#: compiler takes longer than the rows do. What Spark itself answers is asked with the compiler on.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class RemoteError(AssertionError):
    """A function failed in a session's process; the message holds its traceback."""


class Session:
    """A child process with a Spark session, that calls functions of test modules by name."""

    def __init__(
        self,
        kind: str,
        scratch: Path,
        conf: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start the child; Spark starts in the background, and the first call waits for it."""
        scratch.mkdir(parents=True)
        self.scratch = scratch
        self.log = scratch / "log"
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        command = [sys.executable, __file__, kind, str(scratch), json.dumps(dict(conf or {}))]
        with self.log.open("wb") as log:
            self._child = subprocess.Popen(
                [*command, str(requests), str(replies)],
                pass_fds=(requests, replies),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(scratch) | dict(env or {}),
                start_new_session=True,
            )
        os.close(requests)
        os.close(replies)
        self._unread = b""
        self._start = Limit(_DEADLINE)
        self._started = False

    @property
    def pid(self) -> int:
        """The child's process id, which is also that of its process session."""
        return self._child.pid

    def call(self, function: str, **arguments: Any) -> Any:
        """Call ``module:function`` in the child with the session and plain arguments."""
        self.send(function, **arguments)
        return self.receive()

    def send(self, function: str, **arguments: Any) -> None:
        """Ask for a call, and do not wait for its value."""
        line = json.dumps({"function": function, "arguments": arguments})
        os.write(self._requests, line.encode() + b"\n")

    def receive(self) -> Any:
        """Wait for the value of what was sent first."""
        self._wait_for_start()
        return self._reply(Limit(_DEADLINE))

    def has_replied(self) -> bool:
        """Say whether ``receive`` would have to wait no longer."""
        self._wait_for_start()
        return bool(self._unread) or bool(select.select([self._replies], [], [], 0)[0])

    def _wait_for_start(self) -> None:
        if not self._started:
            self._reply(self._start)
            self._started = True

    def _reply(self, limit: Limit) -> Any:
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._replies], [], [], min(1, limit.left()))
            if not ready and limit.left():
                continue
            read = os.read(self._replies, 1 << 20) if ready else b""
            if not read:
                end(self.pid)
                reason = "ended" if ready else "gave no reply in time"
                raise RemoteError(f"the session {reason}; its log ends\n{self._tail()}")
            self._unread += read
        line, self._unread = self._unread.split(b"\n", 1)
        reply = json.loads(line)
        if "error" in reply:
            log = "" if self._started else f"its log ends\n{self._tail()}"
            raise RemoteError(f"in the session's process:\n{reply['error']}{log}")
        return reply["value"]

    def _tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4_000:]

    def end(self) -> None:
        """End the child and all that it started, at once: nothing is flushed or stopped."""
        if self._child.returncode is not None:
            return
        end(self.pid)
        self._child.wait(PATIENCE)
        os.close(self._requests)
        os.close(self._replies)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def end(session: int) -> None:
    """Kill every process of a process session, until there is none (executors are restarted)."""
    deadline = time.monotonic() + PATIENCE
    while living := list(members(session)):
        assert time.monotonic() < deadline, f"processes {living} do not end"
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def members(session: int) -> Iterator[int]:
    """The processes of a process session that are alive."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            state, _, _, of = status(int(entry.name))
            if of == session and state not in "ZX":
                yield int(entry.name)


def status(pid: int) -> tuple[str, int, int, int]:
    """State, parent, process group and process session of a process; state X if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0, 0, 0
    state, parent, group, session = text.rpartition(")")[2].split()[:4]
    return state, int(parent), int(group), int(session)


def _environment(scratch: Path) -> dict[str, str]:
    """What the child, its JVMs and their Python workers inherit."""
    ours = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_AUTH_SOCKET_TIMEOUT": str(PATIENCE),
        "SPARK_WORKER_DIR": str(scratch / "work"),
        "BITTERN_CACHE_DIR": str(scratch / "cache"),
    }
    return os.environ | ours


# ------------------------------------------------------------------ in the child


def _start(kind: str, scratch: Path, conf: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    if kind == "connect":
        os.environ["SPARK_TESTING"] = "1"  # the server then takes any free port
        builder = builder.remote("local[2]").config(
            "spark.connect.grpc.binding.address", "127.0.0.1"
        )
    elif kind == "two hosts":
        builder = builder.master(_start_hosts(scratch, ("127.0.0.1", "127.0.0.2")))
    else:
        builder = builder.master({"classic": "local[4]"}.get(kind, "local-cluster[2,1,1024]"))
    return builder.config(map=quick_settings(scratch) | INTERPRETED | conf).getOrCreate()


def _start_hosts(scratch: Path, hosts: tuple[str, ...]) -> str:
    """A standalone cluster with one worker of one core on each host; returns the master's URL."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    env = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        # A worker that is not heard of for a while is not gone.
        "SPARK_DAEMON_JAVA_OPTS": f"{jvm_options()} -Dspark.worker.timeout={PATIENCE}",
    }
    master = f"spark://127.0.0.1:{port}"
    arguments = [["master.Master", "--host", "127.0.0.1", "--port", str(port)]]
    for host in hosts:
        own = ["--host", host, "--cores", "1", "--memory", "1g"]
        own += ["--work-dir", str(scratch / f"work-{host}")]
        arguments.append(["worker.Worker", *own, master])
    for program, *rest in arguments:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}"]
        subprocess.Popen([*command, "--webui-port", "0", *rest], env=env)
        if program == "master.Master":  # applications ask for it three times only
            wait_until(lambda: listens(port))
    return master


def _serve(kind: str, scratch: str, conf: str, requests: str, replies: str) -> None:
    """Start Spark, then answer requests until the test closes the pipe or ends."""
    with os.fdopen(int(requests)) as asked, os.fdopen(int(replies), "w") as told:
        spark: Any = None
        for request in _with_start(asked):
            try:
                if request is None:
                    spark = _start(kind, Path(scratch), json.loads(conf))
                    reply: dict[str, Any] = {"value": None}
                else:
                    module, name = request["function"].split(":")
                    function = getattr(importlib.import_module(module), name)
                    reply = {"value": function(spark, **request["arguments"])}
            except Exception:  # noqa: BLE001  whatever it is, the test gets to see it
                reply = {"error": traceback.format_exc()}
            told.write(json.dumps(reply) + "\n")
            told.flush()
    end(os.getpid())  # the test is gone without having ended this


def _with_start(asked: Any) -> Iterator[Any]:
    yield None
    for line in asked:
        yield json.loads(line)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
