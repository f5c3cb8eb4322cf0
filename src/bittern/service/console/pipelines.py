"""What pipelines report: the lines that ``bittern run`` appends to its file of metrics.

A pipeline whose file (``[metrics] json_lines``) is in the folder ``pipelines`` of the service's own
folder, below it in that of the tenant, is shown. Only the end of a file is read, and a line that is
cut off or says something else is left out::

    bittern-data/pipelines/default/shop.jsonl     {"time": "...", "pipeline": "shop", ...}
"""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

_FOLDER = "pipelines"
_MOST = 50
#: Bytes at the end of a file that are read, and batches that are shown.
_END, _BATCHES = 1 << 18, 120


class BatchFigures(NamedTuple):
    """One micro-batch."""

    time: dt.datetime
    batch: int
    version: int
    newest: int
    events: int
    matches: int
    rejects: int
    latency: float
    left_out: int
    replayed: bool


class PipelineFigures(NamedTuple):
    """What one pipeline reported last."""

    name: str
    file: str
    batches: list[BatchFigures]

    @property
    def last(self) -> BatchFigures:
        """The last batch."""
        return self.batches[-1]

    @property
    def rate(self) -> float | None:
        """Events a second over the batches that are shown."""
        took = (self.last.time - self.batches[0].time).total_seconds()
        return sum(each.events for each in self.batches[1:]) / took if took > 0 else None

    @property
    def failures(self) -> int:
        """Batches that had to be made again."""
        return sum(each.replayed for each in self.batches)


def pipelines_in(folder: Path, tenant: str) -> list[PipelineFigures]:
    """The pipelines of a tenant whose files are there, those that reported last first."""
    found = []
    try:
        files = sorted((folder / _FOLDER / tenant).glob("*.jsonl"))[:_MOST]
    except OSError:
        return []
    for file in files:
        batches, name = _read(file)
        if batches:
            found.append(PipelineFigures(name, file.name, batches[-_BATCHES:]))
    return sorted(found, key=lambda each: each.last.time, reverse=True)


def _read(file: Path) -> tuple[list[BatchFigures], str]:
    batches: list[BatchFigures] = []
    name = file.stem
    try:
        with file.open("rb") as lines:
            size = lines.seek(0, os.SEEK_END)
            lines.seek(max(0, size - _END))
            for line in lines.read(_END).split(b"\n"):
                told = _line(line)
                if told is not None:
                    batches.append(told[0])
                    name = told[1] or name
    except OSError:
        return [], name
    return batches, name


def _line(line: bytes) -> tuple[BatchFigures, str] | None:
    try:
        told = json.loads(line)
        time = dt.datetime.fromisoformat(told["time"])
        batch = BatchFigures(
            time=time if time.tzinfo else time.replace(tzinfo=dt.UTC),
            batch=_whole(told["batch"]),
            version=_whole(told["version"]),
            newest=_whole(told["newest"]),
            events=_whole(told["events"]),
            matches=_whole(told["matches"]),
            rejects=_whole(told["rejects"]),
            latency=float(told["latency"]),
            left_out=_whole(told.get("left_out", 0)),
            replayed=bool(told.get("replayed")),
        )
        return batch, str(told.get("pipeline", ""))[:200]
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return None


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value
