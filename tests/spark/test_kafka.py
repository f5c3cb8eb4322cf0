"""End to end with a real broker: produced by a client, matched by a pipeline, consumed again.

The client is confluent-kafka, the answers are the oracle's, and Spark runs in a child, since its
jars are chosen when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import bittern
from bittern.language.printer import print_expression
from kafka_broker import Broker, connector
from spark_jobs import world
from spark_sessions import Session

pytestmark = pytest.mark.spark

POISON: dict[bytes | None, str] = {
    None: "the text ends too early",  # a tombstone
    b"": "the text ends too early",
    b"  ": "the text ends too early",
    b"price: 9": "the top level is not an object",
    b"[1, 2]": "the top level is not an object",
    b'"text"': "the top level is not an object",
    b'{"price": 9': "the text ends too early",
    b'{"price": 9} {': "something follows the object",
    b'{"price": 09}': "a number is not valid",
    b'{"price": "\xff"}': "a string is not valid UTF-8",
    b"\x00\x01\xfe\xff": "a string is not valid UTF-8",
    '{"price": 9}'.encode("utf-16"): "a string is not valid UTF-8",
    b"{" * 100: "not valid JSON",
    b'{"a":' * 100: "nested more than 64 levels deep",
}
GOOD = b'{"price": 5, "colour": "red"}'


@pytest.fixture(scope="module")
def session(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    scratch = tmp_path_factory.mktemp("spark") / "session"
    with Session("classic", scratch, {"spark.jars": connector()}) as started:
        yield started


class Case:
    """A topic of two partitions, and a pipeline's folder with a catalog."""

    def __init__(self, kafka: Broker, session: Session, topic: str, folder: Path) -> None:
        self.kafka, self.topic, self.folder = kafka, topic, folder
        self._session = session
        kafka.create(topic, partitions=2)
        self.catalog = bittern.Catalog(str(folder / "catalog.db"))

    def call(self, job: str, **options: Any) -> Any:
        """Have a job of ``spark_jobs/kafka.py`` done in the session."""
        if job in {"run", "start"}:
            options |= {"servers": [self.kafka.servers], "topics": [self.topic]}
        name = f"spark_jobs.kafka:{job}"
        return self._session.call(name, folder=str(self.folder), **options)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of a table that the pipeline wrote, after the topic's name, which all have."""
        found = pq.read_table(self.folder / table, columns=["topic", *columns]).to_pylist()
        assert {row["topic"] for row in found} <= {self.topic}
        return sorted(tuple(row[name] for name in columns) for row in found)

    def batches(self, table: str) -> list[int]:
        """How many rows each batch has."""
        folders = (self.folder / table).glob("batch=*")
        return [pq.read_table(folder).num_rows for folder in sorted(folders)]


@pytest.fixture
def case(
    kafka: Broker, session: Session, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Case]:
    made = Case(kafka, session, request.node.name, tmp_path)
    yield made
    made.catalog.close()


@pytest.fixture(scope="module")
def drawn(session: Session, tmp_path_factory: pytest.TempPathFactory) -> world.World:
    """Made while the session starts."""
    return world.make(tmp_path_factory.mktemp("world") / "world", 60, 120)


def fill(case: Case, drawn: world.World) -> list[tuple[Any, ...]]:
    """Subscribe, and send an event's document to each partition in turn; what is to be found."""
    case.catalog.apply(
        [
            {"id": number, "expression": print_expression(tree)}
            for number, tree in enumerate(drawn.trees)
        ]
    )
    table = pq.read_table(drawn.folder / "documents").sort_by("id")
    documents = [text.encode() for text in table.column("document").to_pylist()]
    for partition in (0, 1):
        case.kafka.produce(case.topic, documents[partition::2], partition)
    return sorted(
        (event % 2, event // 2, str(number), 1)
        for event, number in world.flat(drawn.answers["documents"])
    )


def test_answers_are_the_oracles(case: Case, drawn: world.World) -> None:
    wanted = fill(case, drawn)
    assert len(wanted) > 100
    case.call("run", per_trigger=50)
    assert case.rows("matches", "partition", "offset", "subscription", "version") == wanted
    assert len(case.batches("matches")) > 1


def test_matches_go_to_another_topic(case: Case, drawn: world.World) -> None:
    wanted = fill(case, drawn)
    to = f"{case.topic}-matches"
    case.kafka.create(to, partitions=2)
    case.call("run", per_trigger=50, to=to)
    messages = case.kafka.consume(to)
    columns = ("topic", "partition", "offset", "subscription", "version")
    found = sorted(
        tuple(json.loads(message.value or b"")[name] for name in columns) for message in messages
    )
    assert found == [(case.topic, *match) for match in wanted]
    assert len({message.key for message in messages}) == len(wanted)

    # Delivered is delivered: nothing comes again from the same checkpoint.
    case.call("run", to=to)
    assert len(case.kafka.consume(to)) == len(wanted)


def test_poison_is_rejected_where_it_stands_and_the_stream_goes_on(case: Case) -> None:
    case.catalog.apply(
        [
            {"id": "cheap", "expression": "price < 10"},
            {"id": "missing", "expression": "price IS NULL"},
        ]
    )
    messages = [value for poison in POISON for value in (poison, GOOD)]
    case.kafka.produce(case.topic, messages, partition=1)
    case.call("run", per_trigger=9)
    rejects = [(1, 2 * number, reason) for number, reason in enumerate(POISON.values())]
    assert case.rows("rejects", "partition", "offset", "rejected") == rejects
    # Rejects have the text as it was read, which need not be UTF-8: Arrow has to take it as bytes.
    told = pads.dataset(case.folder / "rejects", partitioning=None)
    bytes_ = {"offset": pads.field("offset"), "value": pads.field("value").cast(pa.binary())}
    texts = sorted(told.to_table(bytes_).to_pylist(), key=lambda row: row["offset"])
    assert [row["value"] for row in texts] == [
        b'{"\xff' if "UTF-8" in why else poison or b"" for poison, why in POISON.items()
    ]
    matches = [(1, 2 * number + 1, "cheap") for number in range(len(POISON))]
    assert case.rows("matches", "partition", "offset", "subscription") == matches
    assert max(case.batches("matches")) <= 5

    # The checkpoint goes on where it was.
    case.kafka.produce(case.topic, [GOOD], partition=0)
    case.call("run")
    case.call("run")
    matches.insert(0, (0, 0, "cheap"))
    assert case.rows("matches", "partition", "offset", "subscription") == matches


def test_latest_passes_over_what_was_there(case: Case) -> None:
    case.catalog.add("cheap", "price < 10")
    case.kafka.produce(case.topic, [GOOD] * 3)
    case.call("run", starting="latest")
    case.kafka.produce(case.topic, [GOOD])
    case.call("run", starting="latest")
    assert case.rows("matches", "partition", "offset", "subscription") == [(0, 3, "cheap")]


def test_a_broker_that_is_killed_and_comes_back(case: Case) -> None:
    n = 120
    case.catalog.add("cheap", "price < 10")
    case.kafka.produce(case.topic, [GOOD] * n, partition=0)
    case.call("start", per_trigger=20)
    assert case.call("wait", n=1) < n
    case.kafka.kill()
    case.kafka.start()
    case.kafka.produce(case.topic, [GOOD] * n, partition=1)
    case.call("wait", n=2 * n)
    case.call("stop")
    found = case.rows("matches", "partition", "offset", "subscription")
    assert found == [(part, at, "cheap") for part in (0, 1) for at in range(n)]
