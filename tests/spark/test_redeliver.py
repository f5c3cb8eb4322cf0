"""Dead letters sent again: which, how often, in which order; what is said of them, and damage."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from bittern.delivery.dead_letters import NOTES, Wanted, redeliver
from bittern.delivery.lanes import Terms
from bittern.delivery.posting import Reply
from bittern.errors import OptionError
from bittern.spark.sink.part_files import Table
from bittern.spark.streaming.letters import LetterTask
from webhook_receivers import Receiver, answer

TERMS = Terms(attempts=1, first_wait=0.0, timeout=60.0)
FILE = """
[catalog]
url = "shop.db"
[source]
kind = "files"
path = "in"
[sink]
kind = "webhook"
dead_letters = "dead"
attempts = 2
first_wait = 0
timeout = 60
private = ["127.0.0.0/8"]
headers = { X-Token = "t" }
secret = "s"
[run]
checkpoint = "checkpoint"
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.toml").write_text(FILE)
    return tmp_path


def die(place: Path, batch: int, *rows: tuple[str, str | None, str]) -> list[dict[str, Any]]:
    """What a pipeline leaves of matches that nobody takes: written by its own task."""
    folder = place / "dead" / "query=q" / f"batch={batch}"
    folder.mkdir(parents=True)
    task = LetterTask(
        query_id="q",
        batch_id=batch,
        version=4711,
        time="2026-08-22T10:00:00+00:00",
        terms=TERMS,
        suspects=frozenset(),
        most_matches=2,
        private=(),  # so that loopback is refused
        headers=(),
        secret=None,
        dead_letters=Table(str(folder), "t", "zstd", {}),
    )
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    batches = [pa.RecordBatch.from_arrays(columns, ["url", "subscriber", "match"])]
    (report,) = task.run(iter(batches), 0, 1).to_pylist()
    return pq.read_table(folder / report["file"]).to_pylist()


def sent(text: str) -> dict[str, int]:
    lines = (line.rsplit(None, 1) for line in text.splitlines())
    return {name.strip(): int(number.replace(",", "")) for name, number in lines}


def test_letters_are_sent_once_with_their_keys(
    place: Path, receiver: Receiver, bittern_command: Any
) -> None:
    rows = [(receiver.url("/a"), "ann", f'{{"n": {n}}}') for n in range(5)]
    letters = die(place, 9, *rows, (receiver.url("/b"), None, '{"n": 9}'))
    letters += die(place, 10, (receiver.url("/a"), "ann", '{"n": 10}'))
    receiver.told["/b"] = [answer(500), answer(500), answer(200)]
    code, out, _ = bittern_command("redeliver", place / "pipeline.toml", "--dry-run")
    assert (code, sent(out)) == (0, {"dead letters": 5, "delivered before": 0, "to be sent": 5})
    assert not receiver.arrived
    assert not (place / "dead" / NOTES).exists()

    code, out, err = bittern_command("redeliver", place / "pipeline.toml")
    assert code == 1
    assert sent(out) == {
        "dead letters": 5, "delivered before": 0, "delivered now": 4, "matches in them": 6,
        "failed again": 1, "attempts": 6,
    }  # fmt: skip
    assert f"1 letter to {receiver.url('/b')}: answered 500" in err
    by_key = {letter["idempotency_key"]: letter for letter in letters}
    for each in receiver.arrived:
        assert each.body.decode() == by_key[each.key]["payload"]
        assert (each.headers["x-token"], len(each.headers["bittern-signature"])) == ("t", 71)
    numbers = [match["n"] for each in receiver.at("/a") for match in each.document["matches"]]
    assert numbers == [0, 1, 2, 3, 4, 10]  # in their order, batch by batch

    code, out, _ = bittern_command("redeliver", place / "pipeline.toml")
    assert (code, sent(out)["delivered before"], sent(out)["delivered now"]) == (0, 4, 1)
    code, out, _ = bittern_command("redeliver", place / "pipeline.toml")
    assert (code, sent(out)["delivered before"], sent(out)["attempts"]) == (0, 5, 0)
    assert len(receiver.arrived) == 4 + 3
    assert len(pq.read_table(place / "dead")) == 5  # the notes are no part of the table


def test_by_subscriber_and_by_time(place: Path, receiver: Receiver, bittern_command: Any) -> None:
    names = ("ann", "bob", "cid")
    letters = die(place, 1, *((receiver.url(f"/{name}"), name, "{}") for name in names))
    command = ("redeliver", place / "pipeline.toml")
    code, out, _ = bittern_command(*command, "--subscriber", "ann", "--subscriber", "bob")
    assert (code, sent(out)["delivered now"]) == (0, 2)
    assert {each.path for each in receiver.arrived} == {"/ann", "/bob"}
    first = min(letter["time"] for letter in letters)
    late = (first + timedelta(minutes=5)).isoformat()
    for options in (("--since", late), ("--until", first.isoformat())):
        code, out, _ = bittern_command(*command, *options)
        assert (code, sent(out)["dead letters"]) == (0, 0)
    early = first.astimezone(UTC).replace(tzinfo=None).isoformat()  # UTC without saying so
    code, out, _ = bittern_command(*command, "--since", early, "--until", late)
    assert (sent(out)["dead letters"], sent(out)["delivered now"]) == (3, 1)
    code, _, err = bittern_command(*command, "--since", "yesterday")
    assert (code, "--since must be a time such as" in err) == (2, True)


def test_an_endpoint_that_is_still_dead_costs_little(place: Path) -> None:
    for batch in range(3):
        die(place, batch, ("http://10.0.0.1/", "ann", "{}"))
    tried = []

    def post(*_: Any) -> Reply:
        tried.append(1)
        return Reply(503, 0)

    terms = Terms(attempts=4, first_wait=0.0, timeout=60.0)
    done = redeliver(place / "dead", post, terms, Wanted())
    assert (done.failed, done.attempts, len(tried)) == (3, 4 + 1 + 1, 6)


def test_a_process_that_dies_sends_the_letters_without_a_note_again(place: Path) -> None:
    keys = [die(place, n, ("http://10.0.0.1/", None, "{}"))[0]["idempotency_key"] for n in (0, 1)]
    arrived: list[str] = []

    def post(_: Any, request: Any, __: float) -> Reply:
        if len(arrived) == 1:
            raise KeyboardInterrupt
        arrived.append(request.key)
        return Reply(200, 0)

    with pytest.raises(KeyboardInterrupt):
        redeliver(place / "dead", post, TERMS, Wanted())
    assert arrived == keys[:1]
    notes = place / "dead" / NOTES
    assert [json.loads(line)["key"] for line in notes.read_text().splitlines()] == keys[:1]
    with notes.open("a") as file:
        file.write('{"key": "5f')  # half a note
    arrived = ["", ""]
    done = redeliver(place / "dead", post, TERMS, Wanted())
    assert (arrived[2:], done.delivered_before, done.delivered) == (keys[1:], 1, 1)
    assert [json.loads(line)["key"] for line in notes.read_text().splitlines()] == keys


def test_what_cannot_be_sent_is_said(place: Path, receiver: Receiver, bittern_command: Any) -> None:
    command = ("redeliver", place / "pipeline.toml")
    code, _, err = bittern_command(*command)
    assert (code, "there is no folder of dead letters" in err) == (2, True)
    die(place, 1, ("http://u:secret@a.example/", "ann", "{}"), (receiver.url("/"), "bob", "{}"))
    code, out, err = bittern_command(*command)
    assert (code, sent(out)["failed again"], sent(out)["delivered now"]) == (1, 1, 1)
    assert "is not kept in full" in err
    assert "secret" not in err
    with (place / "dead" / NOTES).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code, _, err = bittern_command(*command)
    assert (code, "another process sends the dead letters" in err) == (2, True)
    (place / "dead" / NOTES).write_text('{"key": 5}\n')
    code, _, err = bittern_command(*command)
    assert (code, "line 1 of" in err) == (2, True)
    (place / "dead" / NOTES).unlink()
    (place / "dead" / "query=q" / "batch=1" / "part-x.parquet").write_text("PAR1")
    code, _, err = bittern_command(*command)
    assert (code, "cannot be read" in err) == (2, True)
    (place / "pipeline.toml").write_text(
        FILE[: FILE.index("[sink]")]
        + '[sink]\nkind = "files"\npath = "m"\n[run]\ncheckpoint = "checkpoint"\n'
    )
    code, _, err = bittern_command(*command)
    assert (code, "has no webhook as its sink" in err) == (2, True)


def test_wanted() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    letter = {"subscriber": None, "time": at}
    assert Wanted().has(letter)
    assert not Wanted(subscribers={"ann"}).has(letter)
    assert Wanted(since=at).has(letter)
    assert not Wanted(until=at).has(letter)
    with pytest.raises(OptionError, match="there is no folder"):
        redeliver(Path("/nowhere"), lambda *_: Reply(200, 0), TERMS, Wanted())
