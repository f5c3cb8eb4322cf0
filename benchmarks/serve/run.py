"""The service under load: ``python -m benchmarks.serve.run [--small] [--only PART]``.

::

    single     one event a request: over some connections as fast as it goes, and at a steady rate
    batches    events by the thousand, as lines and as an Arrow stream, and the embedded engine
    streams    a thousand subscribers listen, and an event matches for all of them
    fresh      from a subscription's acknowledgement to its first match, in one process
    processes  the same, acknowledged by one process and matched by another, over one PostgreSQL
    monitor    Lucene's Monitor behind the JDK's HTTP server, and the service, in turns

The clients run in this process, on the same cores. Besides what a clock says there is the CPU time
that the service took, since a clock also tells what else the machine did. The figures go to a JSON
file, from which ``benchmarks.serve.report`` writes the page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import logging
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

import bittern
from benchmarks.run import environment
from benchmarks.serve import client, processes
from benchmarks.streaming import world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

OUTPUT = Path("benchmarks/results/serve.json")
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
PARTS = ("single", "batches", "streams", "fresh", "processes", "monitor")


@dataclass(frozen=True)
class Scale:
    """How much of each."""

    name: str
    subscriptions: int
    seconds: float
    rate: int
    batch: int
    rounds: int
    streams: int
    published: int
    samples: int
    elsewhere: int


FULL = Scale("full", 1_000_000, 10, 2_000, 10_000, 7, 1_000, 20, 50, 100_000)
SMALL = Scale("small", 500, 0.3, 200, 200, 1, 5, 2, 2, 300)


class DisagreementError(Exception):
    """The service and the embedded engine found different matches."""


def spread(seconds: Iterable[float]) -> dict[str, float]:
    """Milliseconds: the median, the 99th percentile, the longest."""
    taken = np.array(list(seconds)) * 1e3
    return {
        "p50": float(np.percentile(taken, 50)),
        "p99": float(np.percentile(taken, 99)),
        "max": float(taken.max()),
    }


def price_changes(n: int) -> list[bytes]:
    """Events as JSON texts, without what they lack."""
    rows = world.events(0, n, 0).drop_columns(["id", "file"]).to_pylist()
    return [
        json.dumps({name: value for name, value in row.items() if value is not None}).encode()
        for row in rows
    ]


def asked(service: processes.Served, ask: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What an asking gives, and the seconds of CPU time of both sides."""
    theirs, ours = service.cpu_seconds, process_time()
    found = ask()
    return found, {"service": service.cpu_seconds - theirs, "client": process_time() - ours}


# Parts


def single(service: processes.Served, scale: Scale) -> dict[str, Any]:
    """One event a request."""
    requests = [client.request(service.address, text) for text in price_changes(5_000)]
    client.run(client.closed(service.address, requests, connections=8, seconds=scale.seconds / 5))

    def measured(work: Any) -> dict[str, Any]:
        (rate, taken), cpu = asked(service, lambda: client.run(work))
        per_request = {side: 1e6 * own / len(taken) for side, own in cpu.items()}
        return {"rate": rate, "requests": len(taken), "ms": spread(taken), "cpu_us": per_request}

    seconds, address = scale.seconds, service.address
    told = {
        f"{n} connections": measured(
            client.closed(address, requests, connections=n, seconds=seconds)
        )
        for n in (1, 8, 32)
    }
    work = client.paced(address, requests, connections=64, seconds=seconds, rate=scale.rate)
    return told | {f"{scale.rate:,} a second": measured(work)}


def batches(service: processes.Served, scale: Scale, embedded: bittern.Matcher) -> dict[str, Any]:
    """Events by the thousand, and the embedded engine in turns with them."""
    texts = price_changes(scale.batch)
    lines = pa.array([text.decode() for text in texts])
    table = world.events(0, scale.batch, 0).drop_columns(["id", "file"])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    address = service.address
    ways: dict[str, tuple[Any, bytes]] = {
        "lines": (lines, client.request(address, b"\n".join(texts), kind=NDJSON)),
        "arrow": (table, client.request(address, out.getvalue(), kind=ARROW)),
    }
    told: dict[str, Any] = {}
    for way, (events, request) in ways.items():
        (answer,) = client.run(client.whole(address, [request]))
        compare(way, answer, embedded.match(events))
        told[way] = client.run(in_turns(service, request, events, embedded, scale.rounds))
        told[way]["events"] = scale.batch
    return told


async def in_turns(
    service: processes.Served, request: bytes, events: Any, embedded: bittern.Matcher, rounds: int
) -> dict[str, Any]:
    """Seconds that the service and the embedded engine take for a batch, and of CPU time."""
    connection = await client.connect(service.address)
    seconds: dict[str, list[float]] = {"service": [], "embedded": []}
    cpu = {"service": 0.0, "embedded": 0.0}
    for _ in range(rounds):
        began, own = perf_counter(), process_time()
        embedded.match(events).to_arrow()
        seconds["embedded"].append(perf_counter() - began)
        cpu["embedded"] += (process_time() - own) / rounds
        began, own, theirs = perf_counter(), process_time(), service.cpu_seconds
        await connection.ask(request)
        seconds["service"].append(perf_counter() - began)
        cpu["service"] += (process_time() - own + service.cpu_seconds - theirs) / rounds
    connection.close()
    return {"seconds": {side: statistics.median(own) for side, own in seconds.items()}, "cpu": cpu}


def compare(way: str, answer: bytes, right: Any) -> None:
    """Raise unless an answer is what the embedded engine finds."""
    if way == "arrow":
        rows = pa.ipc.open_stream(answer).read_all()["subscriptions"].to_pylist()
    else:
        rows = [json.loads(line)["subscriptions"] for line in answer.splitlines()]
    if list(map(sorted, rows)) != list(map(sorted, right.to_pylist())):
        raise DisagreementError(f"{way}: the service finds other matches than the engine")


def streams(service: processes.Served, scale: Scale) -> dict[str, Any]:
    """Subscribers listen, and an event matches for all of them."""
    wishes = [
        {"id": f"listener-{n}", "expression": "campaign IS NOT NULL", "subscriber": f"ann-{n}"}
        for n in range(scale.streams)
    ]
    body = "\n".join(map(json.dumps, wishes)).encode()
    load = client.request(service.address, body, path="/v1/subscriptions/load", kind=NDJSON)
    paths = [f"/v1/subscribers/ann-{n}/matches?after=now" for n in range(scale.streams)]

    async def published() -> tuple[list[float], list[float], list[float], float]:
        await client.whole(service.address, [load])
        before = service.memory_bytes
        opened = await client.listen(service.address, paths)
        grown = service.memory_bytes - before
        connection = await client.connect(service.address)
        acknowledged, came, last = [], [], []
        for number in range(scale.published):
            event = json.dumps({"campaign": number}).encode()
            sent = perf_counter()
            await connection.ask(client.request(service.address, event, path="/v1/events"))
            acknowledged.append(perf_counter() - sent)
            while any(len(stream.times) <= number for _, stream in opened):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            times = [stream.times[number] - sent for _, stream in opened]
            came += times
            last.append(max(times))
        for transport, _ in opened:
            transport.close()
        connection.close()
        return acknowledged, came, last, grown

    (acknowledged, came, last, grown), cpu = asked(service, lambda: client.run(published()))
    return {
        "streams": scale.streams,
        "published": scale.published,
        "acknowledged": spread(acknowledged),
        "came": spread(came),
        "last": spread(last),
        "bytes_per_stream": grown / scale.streams,
        "cpu_ms_per_event": 1e3 * cpu["service"] / scale.published,
    }


def fresh(service: processes.Served, scale: Scale) -> dict[str, Any]:
    """From a subscription to its first match, in one process."""
    return freshness(service, service, scale.samples, "fresh")


def freshness(
    one: processes.Served, other: processes.Served, samples: int, name: str
) -> dict[str, Any]:
    """A subscription is acknowledged by one process; until the other matches it."""

    async def sampled() -> tuple[list[float], list[float], list[float]]:
        writing, reading = await client.connect(one.address), await client.connect(other.address)
        acknowledged, matched, published = [], [], []
        for number in range(samples):
            wish = {"id": f"{name}-{number}", "expression": f"{name} = {number}"}
            event = json.dumps({name: number}).encode()
            path = "/v1/subscriptions"
            request = client.request(one.address, json.dumps(wish).encode(), path=path)
            asking = client.request(other.address, event)
            began = perf_counter()
            await writing.ask(request)
            done = perf_counter()
            acknowledged.append(done - began)
            while not json.loads(await reading.ask(asking))["matches"]:
                pass
            matched.append(perf_counter() - done)
            # What is published counts at once, at whatever process.
            began = perf_counter()
            wish = {**wish, "id": f"{name}-again-{number}"}
            request = client.request(one.address, json.dumps(wish).encode(), path=path)
            await writing.ask(request)
            began = perf_counter()
            told = await reading.ask(client.request(other.address, event, path="/v1/events"))
            published.append(perf_counter() - began)
            if json.loads(told)["matches"] != 2:
                raise DisagreementError("an acknowledged subscription is not in the next event")
        writing.close()
        reading.close()
        return acknowledged, matched, published

    acknowledged, matched, published = client.run(sampled())
    return {
        "samples": samples,
        "acknowledged": spread(acknowledged),
        "matched": spread(matched),
        "published": spread(published),
    }


def two_processes(scale: Scale, folder: Path) -> dict[str, Any] | None:
    """Two services over one PostgreSQL."""
    with processes.postgresql() as server, contextlib.ExitStack() as ends:
        if server is None:
            return None
        url = server.new_url()
        seconds = processes.load(world.subscriptions(scale.elsewhere), folder / "none", url)
        pair = []
        for number in range(2):
            own = folder / f"process-{number}"
            pair.append(processes.bittern(own, "--database", url))
            ends.callback(pair[-1].close)
        told = freshness(*pair, scale.samples, "elsewhere")
    return {"subscriptions": scale.elsewhere, "load_seconds": seconds, **told}


def beside_monitor(scale: Scale, folder: Path) -> dict[str, Any] | None:
    """Lucene's Monitor and the service on the same subscriptions, in turns."""
    if not processes.BUILT.exists():
        return None
    subscriptions = world.subscriptions(scale.elsewhere)
    texts = price_changes(2_000)
    told: dict[str, Any] = {}
    with contextlib.ExitStack() as ends:
        began = perf_counter()
        processes.load(subscriptions, folder / "beside")
        ours = processes.bittern(folder / "beside")
        told["bittern"] = {"load_seconds": perf_counter() - began}
        ends.callback(ours.close)
        theirs = processes.monitor(subscriptions, folder / "monitor")
        told["monitor"] = {"load_seconds": theirs.seconds}
        ends.callback(theirs.close)
        sides = {"bittern": ours, "monitor": theirs}
        requests = {
            name: [client.request(side.address, text) for text in texts]
            for name, side in sides.items()
        }
        found = {
            name: [
                sorted(json.loads(body)["matches"])
                for body in client.run(client.whole(side.address, requests[name]))
            ]
            for name, side in sides.items()
        }
        if found["bittern"] != found["monitor"]:
            raise DisagreementError("Lucene's Monitor finds other matches")
        told["matches"] = sum(map(len, found["bittern"])) / len(texts)
        rounds: dict[str, list[tuple[float, list[float], dict[str, float]]]] = {}
        for _ in range(3):
            for name, side in sides.items():
                work = client.closed(
                    side.address, requests[name], connections=8, seconds=scale.seconds / 3
                )
                (rate, taken), cpu = asked(side, lambda: client.run(work))  # noqa: B023
                rounds.setdefault(name, []).append((rate, taken, cpu))
        for name, own in rounds.items():
            n = sum(len(taken) for _, taken, _ in own)
            told[name] |= {
                "rate": statistics.median(rate for rate, _, _ in own),
                "ms": spread(each for _, taken, _ in own for each in taken),
                "cpu_us": 1e6 * sum(cpu["service"] for _, _, cpu in own) / n,
                "memory_bytes": sides[name].memory_bytes,
            }
    return {"subscriptions": scale.elsewhere, **told}


def over_one_service(parts: Sequence[str], scale: Scale, folder: Path) -> dict[str, dict[str, Any]]:
    """The parts that ask one service with all subscriptions."""
    subscriptions = world.subscriptions(scale.subscriptions)
    loaded = processes.load(subscriptions, folder / "one")
    service = processes.bittern(folder / "one")
    try:
        told: dict[str, Any] = {
            "service": {
                "load_seconds": loaded,
                "start_seconds": service.seconds,
                "memory_bytes": service.memory_bytes,
            }
        }
        embedded = bittern.Matcher(bittern.Index.build(subscriptions))
        texts = price_changes(200)
        right = embedded.match(pa.array([text.decode() for text in texts])).to_pylist()
        requests = [client.request(service.address, text) for text in texts]
        answers = client.run(client.whole(service.address, requests))
        if [sorted(json.loads(body)["matches"]) for body in answers] != list(map(sorted, right)):
            raise DisagreementError("the service finds other matches than the engine")
        work: dict[str, Callable[[], dict[str, Any]]] = {
            "single": lambda: single(service, scale),
            "batches": lambda: batches(service, scale, embedded),
            "streams": lambda: streams(service, scale),
            "fresh": lambda: fresh(service, scale),
        }
        for name in parts:
            if name in work:
                told[name] = work[name]()
                show(name, told[name])
    finally:
        service.close()
    return told


def show(name: str, told: Any) -> None:
    """A part's figures, for who waits."""
    print(f"{name}: {json.dumps(told)}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for and write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--small", action="store_true", help="few of all: does it run?")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    scale = SMALL if options.small else FULL
    parts = options.only or PARTS
    result: dict[str, Any] = {
        "scale": scale.name,
        "environment": environment(),
        "subscriptions": scale.subscriptions,
        "nice": os.nice(0),
        "parts": {},
    }
    elsewhere = {"processes": two_processes, "monitor": beside_monitor}
    with tempfile.TemporaryDirectory(prefix="bittern-serve-") as name:
        folder = Path(name)
        if set(parts) - elsewhere.keys():
            result["parts"] |= over_one_service(parts, scale, folder)
        for part, measure in elsewhere.items():
            if part in parts:
                result["parts"][part] = measure(scale, folder)
                show(part, result["parts"][part])
    result["load_after"] = list(os.getloadavg())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
