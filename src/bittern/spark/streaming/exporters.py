"""Figures for other programs: JSON lines, Prometheus text in a file, the same text over HTTP.

::

    JsonLines("metrics.jsonl")         {"time": "2026-03-01T12:00:07.125Z", "pipeline": "shop", ...}
                                       one line per batch, appended; at 64 MiB the file becomes
                                       metrics.jsonl.1, and the .1 before it is gone
    PrometheusFile("bittern.prom")     for node_exporter's textfile collector: written beside its
                                       place and renamed, so that no reader sees half of it
    Served(9400, ...)                  http://127.0.0.1:9400/metrics   the figures of this moment
                                                             /healthz  200, or 503 and why

Every series carries the label ``pipeline``, since the files of two pipelines on one host end up in
one scrape. Counters start at zero with the process, as Prometheus expects.

Cost: some hundred microseconds a batch; scrapes have a thread of their own.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bittern.errors import OptionError
from bittern.files import whole_file
from bittern.spark.streaming.metrics import Done, Figures

_ROTATE = 64 << 20  # bytes of a file of JSON lines
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 10.0  # seconds that a client may take to ask


class JsonLines:
    """A file that gets one JSON line per batch."""

    def __init__(
        self, path: str | os.PathLike[str], pipeline: str, *, rotate: int = _ROTATE
    ) -> None:
        self._path = Path(path)
        self._pipeline = pipeline
        self._rotate = rotate
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+b")
            self._end_cut_line()
        except OSError as error:
            raise OptionError(f"cannot write metrics to {path}: {error}") from error

    def _end_cut_line(self) -> None:
        """A writer that was killed may have left half a line: the next starts on its own."""
        if self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
                self._file.flush()

    def batch(self, done: Done) -> None:
        """Append a line."""
        line = json.dumps(self._line(done), allow_nan=False).encode() + b"\n"
        if self._file.tell() and self._file.tell() + len(line) > self._rotate:
            self._path.replace(f"{self._path}.1")  # if this fails, lines go where they went
            full, self._file = self._file, self._path.open("a+b")
            full.close()
        self._file.write(line)
        self._file.flush()

    def _line(self, done: Done) -> dict[str, Any]:
        report = done.report
        return {
            "time": _iso(done.time),
            "pipeline": self._pipeline,
            "batch": report.batch_id,
            "replayed": report.replayed,
            "version": report.version,
            "newest": report.newest,
            "events": report.events,
            "matches": report.matches,
            "rejects": report.rejects,
            "latency": round(done.latency, 6),
            "seconds": {stage: round(took, 6) for stage, took in done.seconds.items()},
            "delta": report.delta,
            "segments": report.segments,
            "documents": report.documents,
            "left_out": report.left_out,
            "behind": done.behind,
        }

    def refresh(self, figures: Figures) -> None:
        """Only batches are written."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
        text = prometheus_text(figures, self._pipeline)
        with whole_file(self._path, durable=False) as file:
            file.write(text.encode(errors="replace"))

    def close(self) -> None:
        """The file stays: it says how the pipeline ended."""


class Served:
    """Prometheus text on a port of the loopback interface, until ``close``; port 0 is any free."""

    def __init__(self, port: int, pipeline: str, figures: Callable[[], Figures]) -> None:
        handler = type("Handler", (_Handler,), {"figures": staticmethod(figures), "name": pipeline})
        try:
            self._server = _Server(("127.0.0.1", port), handler)
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
        elif path == "/healthz":
            figures = self.figures()
            said = (503, f"failed: {figures.error}\n") if figures.failed else (200, "ok\n")
            self._answer(said[0], "text/plain; charset=utf-8", said[1])
        else:
            self._answer(404, "text/plain; charset=utf-8", "/metrics or /healthz\n")

    do_HEAD = do_GET  # noqa: N815 (as http.server calls it)

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode(errors="replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a line per scrape is of no use."""


def prometheus_text(figures: Figures, pipeline: str) -> str:
    """The figures in Prometheus' text exposition format."""
    lines: list[str] = []
    for name, kind, text, samples in _families(figures):
        lines += [f"# HELP bittern_{name} {_escaped(text)}", f"# TYPE bittern_{name} {kind}"]
        for suffix, labels, value in samples:
            shown = {"pipeline": pipeline, **labels}
            inner = ",".join(f'{label}="{_quoted(of)}"' for label, of in shown.items())
            lines.append(f"bittern_{name}{suffix}{{{inner}}} {value}")
    return "\n".join(lines) + "\n"


_Sample = tuple[str, Mapping[str, str], float]


def _families(figures: Figures) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    """Name, type, help and samples of each; what is not known has no sample and is left out."""
    for name, text, value in (
        ("events_total", "Events matched.", figures.events),
        ("matches_total", "Matches found.", figures.matches),
        ("rejects_total", "Events that could not be read.", figures.rejects),
        ("rows_read_total", "Rows that Spark read from the source.", figures.rows),
    ):
        yield name, "counter", text, [("", {}, value)]
    stages: list[_Sample] = [
        ("", {"stage": stage}, took) for stage, took in figures.seconds.items()
    ]
    if stages:
        text = "Seconds spent in each stage of a batch."
        yield "stage_seconds_total", "counter", text, stages
    latency: list[_Sample] = [
        ("", {"quantile": share}, value)
        for share, value in (("0.5", figures.latency_p50), ("0.99", figures.latency_p99))
        if value is not None
    ]
    latency += [("_sum", {}, figures.latency_sum), ("_count", {}, figures.batches)]
    yield "batch_latency_seconds", "summary", "Duration of micro-batches.", latency
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
        ("failed", "1 if the query ended with an error.", int(figures.failed)),
    ):
        if gauge is not None:
            yield name, "gauge", text, [("", {}, gauge)]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _iso(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
