"""Dead letters sent again: each once more, in order, and noted when it has arrived.

::

    dead/query=0c5e.../batch=42/part-*.parquet    what a pipeline could not deliver
    dead/_redelivered.jsonl                       {"key": "5f1d...", "time": "...", "status": 200}

A letter is sent with the key and the body that it had, so a receiver that has it after all knows
it. One that was delivered is noted and not sent another time, whatever is asked for; one that fails
again stays what it is. A process that is killed may have sent the letters of one batch without a
note: they are sent again, with the same keys.

Batches are sent one after the other, so that each subscriber's letters arrive in their order. An
endpoint that was given up on gets a single attempt for each letter of later batches.

Cost: what ``lanes.py`` says, and one batch of letters in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bittern.delivery.lanes import Delivery, Endpoint, Outcome, Poster, Terms
from bittern.delivery.posting import Request
from bittern.errors import OptionError
from bittern.files import to_disk, try_hold

#: What stands under an underscore is no part of a table to Spark and Arrow.
NOTES = "_redelivered.jsonl"
_KEY = re.compile(r"[0-9a-f]{32}")
_BATCH = re.compile(r"batch=(0|[1-9][0-9]{0,18})")
_NOT_WHOLE = "its address was refused and is not kept in full, or the letter was changed"
_COLUMNS = {
    "subscriber": pa.string(),
    "url": pa.string(),
    "idempotency_key": pa.string(),
    "time": pa.timestamp("us", "UTC"),
    "payload": pa.string(),
}


@dataclass(frozen=True)
class Wanted:
    """Which letters are to be sent: those of these subscribers, that died in this time."""

    subscribers: Collection[str] | None = None
    since: datetime | None = None
    #: Not included.
    until: datetime | None = None

    def has(self, letter: dict[str, Any]) -> bool:
        """Whether a letter is one of them."""
        if self.subscribers is not None and letter["subscriber"] not in self.subscribers:
            return False
        if self.since is not None and letter["time"] < self.since:
            return False
        return self.until is None or letter["time"] < self.until


@dataclass
class Redelivered:
    """What became of the letters that were wanted."""

    letters: int = 0
    #: By an earlier run, or because another letter had the same key.
    delivered_before: int = 0
    delivered: int = 0
    matches: int = 0
    failed: int = 0
    attempts: int = 0
    #: Why letters failed, by URL, subscriber and reason.
    reasons: Counter[tuple[str, str | None, str]] = field(default_factory=Counter)


def redeliver(
    folder: Path, post: Poster, terms: Terms, wanted: Wanted, *, dry: bool = False
) -> Redelivered:
    """Send the wanted letters of a folder again; if ``dry``, only count them.

    ``OptionError`` if the folder, a letter or the notes cannot be read, or if another process
    sends its letters at the moment.
    """
    if not folder.is_dir():
        raise OptionError(f"there is no folder of dead letters {folder}")
    done = Redelivered()
    with _notes(folder, dry=dry) as (notes, noted):
        suspects: frozenset[Endpoint] = frozenset()
        for batch in _batches(folder):
            letters = [letter for letter in _read(batch) if wanted.has(letter)]
            done.letters += len(letters)
            fresh = list({letter["idempotency_key"]: letter for letter in letters}.values())
            fresh = [letter for letter in fresh if letter["idempotency_key"] not in noted]
            done.delivered_before += len(letters) - len(fresh)
            if dry:
                continue
            for letter in fresh:
                if not _is_whole(letter):
                    done.failed += 1
                    done.reasons[letter["url"], letter["subscriber"], _NOT_WHOLE] += 1
            fresh = list(filter(_is_whole, fresh))
            assert notes is not None
            delivery = Delivery(post, terms, suspects)
            try:
                for outcome in delivery.run(map(_request, fresh)):
                    _count(done, outcome)
                    if outcome.reason is None:
                        noted.add(outcome.request.key)
                        notes.write(_note(outcome))
                    elif outcome.gave_up:
                        suspects |= {(outcome.request.url, outcome.request.subscriber)}
            finally:
                to_disk(notes)
    return done


def _count(done: Redelivered, outcome: Outcome) -> None:
    done.attempts += outcome.attempts
    if outcome.reason is None:
        done.delivered += 1
        done.matches += outcome.request.matches
    else:
        done.failed += 1
        done.reasons[outcome.request.url, outcome.request.subscriber, outcome.reason] += 1


def _batches(folder: Path) -> list[Path]:
    """The folders of batches, by query and number."""
    found = []
    for batch in folder.glob("query=*/batch=*"):
        number = _BATCH.fullmatch(batch.name)
        if number is not None and batch.is_dir():
            found.append((batch.parent.name, int(number[1]), batch))
    return [batch for *_, batch in sorted(found)]


def _read(batch: Path) -> list[dict[str, Any]]:
    """The letters of a batch, those of each endpoint together and in order."""
    rows: list[dict[str, Any]] = []
    for file in sorted(batch.glob("*.parquet")):
        try:
            table = pq.ParquetFile(file).read(columns=[*_COLUMNS])
            rows += table.select([*_COLUMNS]).cast(pa.schema(_COLUMNS.items())).to_pylist()
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise OptionError(f"the dead letters in {file} cannot be read: {error}") from error
    for row in rows:
        if any(value is None for name, value in row.items() if name != "subscriber"):
            raise OptionError(f"a dead letter in {batch} has no {', '.join(_COLUMNS)}: restore it")
    return sorted(rows, key=lambda row: (row["url"], row["subscriber"] or ""))


def _is_whole(letter: dict[str, Any]) -> bool:
    """Whether address and body are those that the key was made of."""
    text = f"{letter['url']}\n{letter['payload']}".encode("utf-8", "replace")
    return bool(hashlib.sha256(text).hexdigest()[:32] == letter["idempotency_key"])


def _request(letter: dict[str, Any]) -> Request:
    body = letter["payload"].encode()
    try:
        matches = len(json.loads(body)["matches"])
    except (ValueError, KeyError, TypeError, RecursionError):
        matches = 0  # the body is sent as it is, whatever it says
    return Request(letter["subscriber"], letter["url"], letter["idempotency_key"], body, matches)


def _note(outcome: Outcome) -> bytes:
    told = {
        "key": outcome.request.key,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status": outcome.status,
    }
    return json.dumps(told).encode() + b"\n"


@contextlib.contextmanager
def _notes(folder: Path, *, dry: bool) -> Iterator[tuple[IO[bytes] | None, set[str]]]:
    """The notes, to be written at their end by one process alone, and the keys that they have."""
    place = folder / NOTES
    if dry:
        yield None, _noted(place, place.read_bytes()) if place.exists() else set()
        return
    try:
        file = place.open("a+b")
    except OSError as error:
        raise OptionError(f"cannot write to {place}: {error}") from error
    with file:
        if not try_hold(file.fileno()):
            raise OptionError(f"another process sends the dead letters of {folder} at the moment")
        file.seek(0)
        text = file.read()
        if text and not text.endswith(b"\n"):  # a process was killed: that is sent again
            file.truncate(text.rfind(b"\n") + 1)
        yield file, _noted(place, text)


def _noted(place: Path, text: bytes) -> set[str]:
    """The keys of letters that were delivered; half a line at the end is none."""
    keys = set()
    for number, line in enumerate(text.split(b"\n")[:-1], start=1):
        try:
            key = json.loads(line)["key"]
            is_key = _KEY.fullmatch(key) is not None
        except (ValueError, KeyError, TypeError, RecursionError):
            is_key = False
        if not is_key:
            raise OptionError(
                f"line {number} of {place} is no note of a letter: restore the file, or remove it, "
                f"and all letters are sent again with their keys"
            )
        keys.add(key)
    return keys
