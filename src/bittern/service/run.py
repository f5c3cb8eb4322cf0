"""``bittern run``: runs the pipeline of a file until it is stopped.

::

    pipeline.toml ─ checked ─ Spark ─ source, catalog, sink ─ Pipeline ──► runs ──► ends
                       │                                        │            │
                   exit code 2                              --check      view, metrics

    how it ends                        what happens                              exit code
    SIGTERM or Ctrl-C                  the current batch is finished             0
    the same once more                 the batch is given up, to be replayed     130
    --once, and all is matched         it ends by itself                         0
    a batch fails                      the reason in a sentence                  1

The main thread never waits in the JVM. It looks at the query a few times a second, so signals are
handled at once. The signal handler only counts; whatever it interrupts continues.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import attrgetter
from types import FrameType
from typing import Any, Self

from bittern.catalog.catalog import Catalog
from bittern.errors import BitternError, OptionError, PipelineError
from bittern.service import pipeline_file
from bittern.service.live_view import LiveView
from bittern.service.pipeline_file import PipelineFile
from bittern.service.report import count, say
from bittern.spark import changes, session, streaming
from bittern.spark.stores.places import remote_place
from bittern.spark.streaming.json_lines import JsonLines
from bittern.spark.streaming.metrics import Exporter, Figures, Metrics
from bittern.spark.streaming.pins import Checkpoint
from bittern.spark.streaming.prometheus import LOOPBACK, PrometheusFile, Served

_LOOK = 0.2  # seconds between two looks at the query
_PATIENCE = 30.0  # seconds that giving up a batch may take
#: Of a session for a pipeline, which runs for long: its pages show what it does.
_CONF = {"spark.ui.enabled": "true"}


def run(options: argparse.Namespace) -> int:
    """Run a pipeline until it ends."""
    file = pipeline_file.read(options.pipeline, os.environ)
    try:
        return _run(file, options)
    except ConnectionError as failure:  # of the bridge: every error of a database is our own
        raise PipelineError(
            f"Spark's JVM ended while the pipeline ran ({failure.strerror}). What was committed "
            f"is safe: start it again, and it continues from {file.run.checkpoint}"
        ) from failure
    except Exception as failure:
        if session.is_sparks(failure):
            raise BitternError(f"Spark: {session.reason(failure)}") from failure
        raise


def _run(file: PipelineFile, options: argparse.Namespace) -> int:
    with Signals() as signals, contextlib.ExitStack() as stack:
        # What is quick to tell comes before Spark, which takes its time to start.
        catalog = stack.enter_context(Catalog(file.catalog.url, create=False))
        _try_checkpoint(file.run.checkpoint, make=not options.check)
        metrics = Metrics() if options.check else _metrics(file, stack)
        if not options.quiet:
            say("starting Spark")
        spark = stack.enter_context(session.running(_master(file), _CONF | dict(file.run.conf)))
        stack.enter_context(signals.again())
        if not options.quiet and spark.sparkContext.uiWebUrl:
            say(f"Spark's pages are at {spark.sparkContext.uiWebUrl}")
        pipeline = _pipeline(spark, file, catalog, metrics, once=options.once)
        if not options.check:
            return _attended(pipeline, file, metrics, signals, quiet=options.quiet)
    say(f"{options.pipeline} is valid, and everything it names can be reached")
    return 0


def _try_checkpoint(path: str, *, make: bool) -> None:
    """Raise if the checkpoint is in use, damaged or not writable; ``make`` creates a missing one.

    The checkpoint is held only for a moment: the pipeline takes it when it starts.
    """
    if remote_place(path, "checkpoint") is not None:
        return  # the pipeline does, when Spark can reach it
    checkpoint = Checkpoint(path)
    if make or checkpoint.own.is_dir():
        with checkpoint:
            checkpoint.check_query()


def _master(file: PipelineFile) -> str:
    """Spark's master: by default the cores of this machine, with tasks retried as on a cluster."""
    return file.run.master or os.environ.get("MASTER") or "local[*,4]"


class Signals:
    """Counts the requests to stop, by SIGTERM or SIGINT; the third one ends the process.

    The first two interrupt nothing.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._count)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """While inside, SIGINT is counted even if another handler was installed meanwhile."""
        before = signal.signal(signal.SIGINT, self._count)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        self.asked += 1
        if self.asked > 2:
            os._exit(128 + number)


def _attended(
    pipeline: Any, file: PipelineFile, metrics: Metrics, signals: Signals, *, quiet: bool
) -> int:
    metrics.begin()  # starting Spark took its time
    running = pipeline.start()
    view = None if quiet else LiveView(file.name, sys.stderr)
    try:
        code = attend(running, metrics, signals, view)
    except Exception as failure:
        metrics.ended(session.reason(failure))
        raise
    finally:
        if view is not None:
            view.close(metrics.figures())
    if code == 0:  # what a batch says that was given up is no news
        raise_failure(running, metrics, file.run.checkpoint)
    if not quiet:
        say(summary(metrics.figures(), given_up=code != 0))
    return code


def attend(running: Any, metrics: Metrics, signals: Signals, view: LiveView | None) -> int:
    """Show figures until the query ends or is stopped; returns the exit code, 130 if given up."""

    def look() -> None:
        if view is not None:
            view.show(metrics.figures())
        time.sleep(_LOOK)

    while running.is_active and not signals.asked:
        look()
    if not signals.asked:
        return 0
    if _until(running.stop, look, lambda: signals.asked > 1):
        return 0
    _until(running.abort, look, _after(_PATIENCE))
    return 130


def _until(call: Callable[[], None], look: Callable[[], None], enough: Callable[[], bool]) -> bool:
    """Call something in a thread; false if the wait was given up and it still runs."""
    failures: list[BaseException] = []

    def calls() -> None:
        try:
            call()
        except BaseException as failure:  # noqa: BLE001 (raised below, in the thread that waits)
            failures.append(failure)

    thread = threading.Thread(target=calls, daemon=True)
    thread.start()
    while thread.is_alive():
        if enough():
            return False
        look()
    if failures:
        raise failures[0]
    return True


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def raise_failure(running: Any, metrics: Metrics, checkpoint: str) -> None:
    """Raise the query's failure, if it failed."""
    try:
        running.await_termination(_PATIENCE)
    except PipelineError as failure:
        cause = failure.__cause__
        reason = session.reason(cause if isinstance(cause, Exception) else failure)
        metrics.ended(reason)
        raise PipelineError(
            f"the pipeline has failed: {reason}\nWhat was committed is safe: start it again, and "
            f"it continues from {checkpoint}"
        ) from failure


def summary(figures: Figures, *, given_up: bool) -> str:
    """What was done, in a sentence."""
    how = "stopped at once; the current batch will be replayed" if given_up else "stopped"
    done = f"{count(figures.events, 'event')}, {count(figures.matches, 'match')}"
    rejects = f", {figures.rejects:,} rejected" if figures.rejects else ""
    return f"{how}: {done}{rejects} in {_batches(figures.batches)}, {figures.uptime:,.1f} s"


def _batches(number: int) -> str:
    return f"{number:,} batch{'' if number == 1 else 'es'}"


# From sections to what they name


def _metrics(file: PipelineFile, stack: contextlib.ExitStack) -> Metrics:
    """The metrics, with the exporters that the file names."""
    told = file.metrics
    exporters: list[Exporter] = []
    kinds = {JsonLines: told.json_lines, PrometheusFile: told.prometheus_file}
    with contextlib.ExitStack() as opened:  # if one cannot be, those before it are closed
        for kind, path in kinds.items():
            if path is not None:
                exporters.append(kind(path, file.name))
                opened.callback(exporters[-1].close)
        opened.pop_all()
    metrics = Metrics(exporters)
    stack.callback(metrics.close)
    if told.prometheus_port is not None:
        address = told.prometheus_address or LOOPBACK
        served = Served(told.prometheus_port, file.name, metrics.figures, address)
        stack.callback(served.close)
    return metrics


def _pipeline(
    spark: Any, file: PipelineFile, catalog: Catalog, metrics: Metrics, *, once: bool
) -> Any:
    with _about("source"):
        source = _made(file.source, spark)
    with _about("sink"):
        sink = _made(file.sink)
    with _about("after"):
        steps = (file.edge, file.throttle)
        after = [_made(step) for step in steps if step is not None]
    with _about("changes"):
        form = None if file.changes is None else _made(file.changes, of=changes)
    told = file.history
    once = once or file.run.trigger == pipeline_file.AVAILABLE_NOW
    return streaming.Pipeline(
        source.events,
        catalog,
        sink,
        file.run.checkpoint,
        event_id=file.matching.event_id or source.event_id,
        json=file.matching.json or (source.json if form is None else ()),
        limit=file.matching.limit,
        changes=form,
        payload="*" if file.matching.payload == ("*",) else file.matching.payload,
        shards=file.matching.shards,
        rejects=None if file.rejects is None else file.rejects.path,
        store=file.matching.store,
        trigger=None if once else file.run.trigger,
        available_now=once,
        after=after,
        metrics=metrics,
        name=file.name,
        history=told is not None and (told.path or True),
        keep=None if told is None else told.keep,
        order_by=None if told is None else told.order_by,
    )


def _made(section: Any, *first: Any, of: Any = streaming) -> Any:
    """Make what a section names, with the keys that it has."""
    values = {each.name: getattr(section, each.name) for each in fields(section)}
    given = {name: value for name, value in values.items() if value is not None}
    return attrgetter(section.makes)(of)(*first, **given)


@contextlib.contextmanager
def _about(section: str) -> Iterator[None]:
    try:
        yield
    except OptionError as error:
        raise OptionError(f"[{section}] {error}") from error
