"""Figures as JSON lines, for other programs (``prometheus.py`` has those for Prometheus).

::

    JsonLines("metrics.jsonl")         {"time": "2026-03-01T12:00:07.125Z", "pipeline": "shop", ...}
                                       one line per batch, appended; at 64 MiB the file becomes
                                       metrics.jsonl.1, and the .1 before it is gone

Cost: some hundred microseconds a batch.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bittern.errors import OptionError
from bittern.spark.streaming.metrics import Done, Figures

_ROTATE = 64 << 20  # bytes of a file of JSON lines


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
        try:
            if self._file.tell() and self._file.tell() + len(line) > self._rotate:
                self._begin_anew()
        finally:  # if that fails, lines go where they went
            self._file.write(line)
            self._file.flush()

    def _begin_anew(self) -> None:
        """Put the full file aside, and open another one."""
        with contextlib.suppress(FileNotFoundError):  # it was put aside already, or removed
            self._path.replace(f"{self._path}.1")
        full, self._file = self._file, self._path.open("a+b")
        full.close()

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


def _iso(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
