"""A real Kafka broker for tests: one node, broker and controller at once, on loopback only.

::

    folder/server.properties   two free ports of 127.0.0.1, the same after every start
    folder/data                what a broker that was killed finds again
    folder/log                 what it says

Its jars are those of ``make kafka-jars``; without them the fixture ``kafka`` skips, and says so.
``produce`` and ``consume`` go through confluent-kafka, which shares no code with the broker or with
Spark's connector. Every wait has an end.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from spark_sessions import why_no_spark
from steady import PATIENCE, free_port, listens, wait_until

ROOT = Path(__file__).parent.parent
JARS, WANTED = ROOT / ".kafka", ROOT / "scripts" / "kafka-jars.xml"
_SHORT_LIVED = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
# After a SIGKILL the node is taken for alive until this has passed.
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=500
"""


class Message(NamedTuple):
    """What a consumer gets."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


def why_no_kafka() -> str | None:
    """Say what is missing for a broker and Spark's connector, or None when nothing is."""
    listed = JARS / WANTED.name
    if not listed.exists() or listed.read_bytes() != WANTED.read_bytes():
        return "its jars are missing or of other versions: run make kafka-jars"
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "confluent-kafka is not installed (pip install 'bittern[dev]')"
    return why_no_spark()


def connector() -> str:
    """Spark's connector, as the conf ``spark.jars`` has it."""
    return ",".join(map(str, sorted((JARS / "connector").glob("*.jar"))))


class Broker:
    """One node. ``start`` it, ``stop`` or ``kill`` it, and start it again on the same data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        port, controller = free_port(), free_port()
        self._port = port
        self.servers = f"127.0.0.1:{port}"
        text = _PROPERTIES.format(port=port, controller=controller, data=folder / "data")
        (folder / "server.properties").write_text(text, encoding="utf-8")
        # 16 bytes in base64, any.
        self._java("kafka.tools.StorageTool", "format", "-t", "Yml0dGVybi10ZXN0cy0xMg", "-c").wait(
            PATIENCE
        )
        assert (folder / "data" / "meta.properties").exists(), self._tail()

    def _java(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = os.environ.get("JAVA_HOME")
        java = str(Path(home) / "bin" / "java") if home else "java"
        command = [java, *_SHORT_LIVED, _LOGGING, "-cp", f"{JARS / 'broker'}/*", program]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, *arguments, "server.properties"],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self) -> None:
        """Start it and wait until it answers a client."""
        assert self._process is None, "it runs already"
        self._process = self._java("kafka.Kafka")
        wait_until(lambda: listens(self._port), self._look)
        self._admin().list_topics(timeout=PATIENCE)

    def _look(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, f"the broker ended; its log ends\n{self._tail()}"

    def stop(self) -> None:
        """Let it end in good order."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """End it at once: nothing is flushed, nobody is told."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None

    def _tail(self) -> str:
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")[-4_000:]

    # -------------------------------------------------------------- a client

    def _admin(self):
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE)

    def produce(
        self, topic: str, values: Sequence[bytes | None], partition: int = 0
    ) -> list[tuple[int, int]]:
        """Send messages and wait until the broker has them all; where each of them stands."""
        from confluent_kafka import Producer

        placed: list[tuple[int, int]] = []

        def delivered(error, message) -> None:
            assert error is None, error
            placed.append((message.partition(), message.offset()))

        producer = Producer({"bootstrap.servers": self.servers, "acks": "all", "log_level": 0})
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0, "the broker did not take all messages in time"
        return placed

    def consume(self, topic: str) -> list[Message]:
        """All messages that are in a topic now, by partition and offset."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        settings = {"bootstrap.servers": self.servers, "group.id": "tests", "log_level": 0}
        consumer = Consumer(settings | {"enable.auto.commit": False})
        try:
            known = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            left = {}
            for number in known:
                place = TopicPartition(topic, number)
                first, behind = consumer.get_watermark_offsets(place, PATIENCE)
                if first < behind:
                    left[number] = behind
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
            found: list[Message] = []
            deadline = time.monotonic() + PATIENCE
            while left:
                assert time.monotonic() < deadline, f"messages before {left} did not come in time"
                got = consumer.poll(1)
                if got is None:
                    continue
                assert got.error() is None, got.error()
                found.append(Message(got.partition(), got.offset(), got.key(), got.value()))
                if got.offset() + 1 >= left.get(got.partition(), 0):
                    left.pop(got.partition(), None)
        finally:
            consumer.close()
        return sorted(found, key=lambda message: message[:2])


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that runs for all tests; each makes topics of its own."""
    reason = why_no_kafka()
    if reason is not None:
        pytest.skip(f"NO KAFKA: {reason}")
    broker = Broker(tmp_path_factory.mktemp("kafka") / "broker")
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
