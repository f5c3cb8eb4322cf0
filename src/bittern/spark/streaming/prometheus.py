"""Figures for Prometheus: its text in a file, and over HTTP.

::

    PrometheusFile("bittern.prom")     for node_exporter's textfile collector: written beside its
                                       place and renamed, so that no reader sees half of it
    Served(9400, ...)                  http://127.0.0.1:9400/metrics   the figures of this moment
                                                             /healthz  503 and why once it failed
                                                             /readyz   200 while the stream runs

Every series carries the label ``pipeline``, since the files of two pipelines on one host end up in
one scrape. Counters start at zero with the process, as Prometheus expects.

Cost: some hundred microseconds for each batch; scrapes have a thread of their own.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from bittern.errors import OptionError, brief
from bittern.files import whole_file
from bittern.spark.streaming.metrics import Done, Durations, Figures

LOOPBACK = "127.0.0.1"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_PLAIN = "text/plain; charset=utf-8"
_PATIENCE = 10.0  # seconds that a client may take to ask


class PrometheusFile:
    """A file that always holds the newest figures, whole."""

    def __init__(self, path: str | os.PathLike[str], pipeline: str) -> None:
        self._path = Path(path)
        self._pipeline = pipeline
        if self._path.suffix != ".prom":  # others are ignored without notice
            raise OptionError(f"{path}: node_exporter reads only files that end in .prom")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self.refresh(Figures())
        except OSError as error:
            raise OptionError(f"cannot write metrics to {path}: {error}") from error

    def batch(self, done: Done) -> None:
        """What a batch adds is in the figures."""

    def refresh(self, figures: Figures) -> None:
        """Replace the file."""
        with whole_file(self._path, durable=False) as file:
            file.write(prometheus_text(figures, self._pipeline))

    def close(self) -> None:
        """The file stays: it says how the pipeline ended."""


class Served:
    """Prometheus text on a port, until ``close``; port 0 is any free one.

    It listens on the loopback interface unless it is given another ``address`` of this machine;
    0.0.0.0 and :: are all of them. There is no access control: everybody who reaches the port reads
    the figures.
    """

    def __init__(
        self,
        port: int,
        pipeline: str,
        figures: Callable[[], Figures],
        address: str = LOOPBACK,
    ) -> None:
        try:
            version = ipaddress.ip_address(address).version
        except ValueError:
            raise OptionError(
                f"metrics are served on an IP address of this machine, such as {LOOPBACK} or "
                f"0.0.0.0, not on {brief(address)}"
            ) from None
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        handler = type("Handler", (_Handler,), {"figures": staticmethod(figures), "name": pipeline})
        server = type("Server", (_Server,), {"address_family": family})
        try:
            self._server = server((address, port), handler)
        except (OSError, OverflowError) as error:
            raise OptionError(f"cannot serve metrics on port {port}: {error}") from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and free the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # an idle client does not keep the process from ending

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is not worth a traceback."""


class _Handler(BaseHTTPRequestHandler):
    figures: Callable[[], Figures]
    name: str
    timeout = _PATIENCE

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, _TEXT, prometheus_text(self.figures(), self.name))
        elif path in ("/healthz", "/readyz"):
            wrong = _why_not(self.figures(), ready=path == "/readyz")
            self._answer(503 if wrong else 200, _PLAIN, f"{wrong or 'ok'}\n".encode())
        else:
            self._answer(404, _PLAIN, b"/metrics, /healthz or /readyz\n")

    do_HEAD = do_GET  # noqa: N815 (as http.server calls it)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a line per scrape is of no use."""


def _why_not(figures: Figures, *, ready: bool) -> str | None:
    """Why a pipeline is not healthy, or not ready; None if it is."""
    if figures.failed:
        return f"failed: {figures.error}"
    if ready and not figures.running:
        return "the stream does not run"
    return None


def prometheus_text(figures: Figures, pipeline: str) -> bytes:
    """The figures in Prometheus' text exposition format."""
    registry = CollectorRegistry()
    registry.register(_Collected(figures, pipeline.encode(errors="replace").decode()))
    return generate_latest(registry)


class _Collected(Collector):
    """The figures of one moment, as prometheus_client asks for them."""

    def __init__(self, figures: Figures, pipeline: str) -> None:
        self._figures = figures
        self._labels = [pipeline]

    def collect(self) -> Iterator[Metric]:
        """Each family; what is not known has none."""
        figures = self._figures
        for name, text, value in (
            ("events", "Events matched.", figures.events),
            ("matches", "Matches found.", figures.matches),
            ("rejects", "Events that could not be read.", figures.rejects),
            ("rows_read", "Rows that Spark read from the source.", figures.rows),
            ("replays", "Batches that were delivered again.", figures.replays),
        ):
            counter = CounterMetricFamily(f"bittern_{name}", text, labels=["pipeline"])
            counter.add_metric(self._labels, value)
            yield counter
        yield from self._durations()
        for name, text, gauge in (
            ("events_per_second", "Events matched, over the last minute.", figures.events_rate),
            ("matches_per_second", "Matches found, over the last minute.", figures.matches_rate),
            ("batch_id", "The last micro-batch delivered.", figures.batch_id),
            ("catalog_version", "Catalog version of the last micro-batch.", figures.version),
            ("catalog_newest_version", "Newest catalog version seen.", figures.newest),
            ("catalog_versions_behind", "Versions not matched yet.", figures.versions_behind),
            ("source_events_behind", "Events of the source not read yet.", figures.behind),
            ("delta_subscriptions", "Subscriptions outside the base snapshot.", figures.delta),
            ("delta_segments", "Deltas on the base snapshot.", figures.segments),
            ("history_documents", "Documents that events are compared with.", figures.documents),
            ("left_out_subscriptions", "Subscriptions that cannot be matched.", figures.left_out),
            ("uptime_seconds", "Seconds since the pipeline was started.", figures.uptime),
            ("running", "1 while the stream runs.", int(figures.running)),
            ("failed", "1 if the query ended with an error.", int(figures.failed)),
        ):
            if gauge is not None:
                family = GaugeMetricFamily(f"bittern_{name}", text, labels=["pipeline"])
                family.add_metric(self._labels, gauge)
                yield family

    def _durations(self) -> Iterator[Metric]:
        text = "Duration of micro-batches, from the trigger until Spark has noted them as done."
        whole = HistogramMetricFamily("bittern_batch_latency_seconds", text, labels=["pipeline"])
        whole.add_metric(self._labels, _buckets(self._figures.latency), self._figures.latency.total)
        yield whole
        if self._figures.stages:
            text = "Seconds spent in each stage of a batch."
            labels = ["pipeline", "stage"]
            stages = HistogramMetricFamily("bittern_stage_seconds", text, labels=labels)
            for stage, took in self._figures.stages.items():
                stages.add_metric([*self._labels, stage], _buckets(took), took.total)
            yield stages


def _buckets(durations: Durations) -> Sequence[tuple[str, float]]:
    return [(_bound(limit), count) for limit, count in durations.cumulative()]


def _bound(limit: float) -> str:
    return "+Inf" if limit == float("inf") else str(limit)
