"""A service that is killed: what it acknowledged is there, once, and nobody misses any of it.

Every process is real, listens on loopback, and is ended by its id.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections import Counter

import pytest

from bittern.catalog.journal.journal import Journal
from bittern.catalog.journal.places import TenantPlaces
from service_processes import Process, Refused, call, events_of, in_folder, serving
from steady import PATIENCE, wait_until
from webhook_receivers import LOOPBACK, Receiver, answer

SUBSCRIPTIONS = "/v1/subscriptions"
#: Documents that EXISTS sees.
WINDOW = 40


class Killed:
    """A service that is started again whenever it is killed."""

    def __init__(self, *options: str) -> None:
        self.options = options
        self.now = Process(*options)
        self.is_over = False

    def kill_and_start(self) -> None:
        self.now.kill()
        self.now = Process(*self.options)

    def until_answered(self, *request, **headers):
        """Make a request again and again until it is answered."""
        while True:
            try:
                status, told = self.now.call(*request, **headers)
            except Refused:
                time.sleep(0.05)
                continue
            if status < 500:
                assert status in (200, 201), (request, told)
                return told


class SendingThread(threading.Thread):
    """Publishes events one after the other; each is repeated with its key until it is answered."""

    def __init__(self, service: Killed, name: str) -> None:
        super().__init__(daemon=True)
        self.service, self.by = service, name
        self.acknowledged: list[tuple[int, int]] = []  # what was sent, and its number

    def run(self) -> None:
        for n in itertools.count():
            if self.service.is_over:
                return
            event = {"by": self.by, "n": n, "k": n % 60}
            key = {"idempotency_key": f"{self.by}-{n}"}
            told = self.service.until_answered("POST", "/v1/events", event, **key)
            self.acknowledged.append((n, told["first"]))


class ListeningThread(threading.Thread):
    """Reads a subscriber's stream, and goes on behind the last event wherever it breaks."""

    def __init__(self, service: Killed, subscriber: str) -> None:
        super().__init__(daemon=True)
        self.service, self.path = service, f"/v1/subscribers/{subscriber}/matches"
        self.rows: list[dict] = []

    def run(self) -> None:
        while not self.service.is_over:
            last = str(self.rows[-1]["number"]) if self.rows else "0"
            with contextlib.suppress(*Refused):
                self.rows += events_of(self.service.now, self.path, last_event_id=last)
            time.sleep(0.05)


def test_what_was_acknowledged_survives_kills(tmp_path):
    service = Killed(*in_folder(tmp_path / "data"), "--history", str(WINDOW))
    try:
        for row in (
            {"id": "even", "expression": "n % 2 = 0", "subscriber": "ann"},
            {
                "id": "new",
                "expression": "NOT EXISTS d (d.k = k AND d.by = by)",
                "subscriber": "bob",
            },
        ):
            service.until_answered("POST", SUBSCRIPTIONS, row)
        senders = [SendingThread(service, name) for name in ("x", "y", "z")]
        listeners = [ListeningThread(service, name) for name in ("ann", "bob")]
        for thread in (*senders, *listeners):
            thread.start()
        for kill in range(2):
            before = sum(len(each.acknowledged) for each in senders)
            enough = before + 20 + 13 * kill
            wait_until(lambda: sum(len(each.acknowledged) for each in senders) >= enough)  # noqa: B023
            service.kill_and_start()
        before = [len(each.acknowledged) for each in senders]
        wait_until(
            lambda: all(len(s.acknowledged) > n for s, n in zip(senders, before, strict=True))
        )
        service.is_over = True
        for sender in senders:
            sender.join(PATIENCE)
        events = read_log(service.now)
        # Each event that was acknowledged is there under its number, each once, in order.
        assert [event["number"] for event in events] == list(range(1, len(events) + 1))
        by_number = {event["number"]: event["event"] for event in events}
        for sender in senders:
            assert all(
                (by_number[number]["by"], by_number[number]["n"]) == (sender.by, n)
                for n, number in sender.acknowledged
            )
            sent = [event["event"]["n"] for event in events if event["event"]["by"] == sender.by]
            assert sent == list(range(len(sender.acknowledged)))
        # Each subscriber got everything that matched, each once, in order.
        right = {"ann": [], "bob": []}
        for place, event in enumerate(events):
            own = event["event"]
            if own["n"] % 2 == 0:
                right["ann"].append(event["number"])
            earlier = [each["event"] for each in events[max(0, place - WINDOW) : place]]
            if not any((each["k"], each["by"]) == (own["k"], own["by"]) for each in earlier):
                right["bob"].append(event["number"])
        for listener, numbers in zip(listeners, right.values(), strict=True):
            wait_until(lambda: len(listener.rows) >= len(numbers))  # noqa: B023
            assert [row["number"] for row in listener.rows] == numbers
            assert all(row["event"] == by_number[row["number"]] for row in listener.rows)
    finally:
        service.is_over = True
        service.now.end()
        for thread in (*senders, *listeners):
            thread.join(PATIENCE)


def read_log(process):
    events = []
    while True:
        after = events[-1]["number"] if events else 0
        some = process.good("GET", f"/v1/events?limit=10000&after={after}")["events"]
        if not some:
            return events
        events += some


def test_a_letter_is_posted_at_least_once_with_its_key(tmp_path):
    with Receiver() as receiver:
        options = [*in_folder(tmp_path / "data"), "--private", LOOPBACK[0]]
        service = Killed(*options)
        try:
            rows = [
                {
                    "id": f"s{n}",
                    "expression": "n > 0",
                    "subscriber": "ann" if n < 2 else "bob",
                    "metadata": {
                        "webhook": receiver.url("/hook") if n < 3 else receiver.url("/dead")
                    },
                }
                for n in range(4)
            ]
            receiver.told["/dead"] = [answer(410)]
            service.until_answered("POST", f"{SUBSCRIPTIONS}/load", rows)
            for n in range(8):
                service.until_answered("POST", "/v1/events", {"n": n})
                if n == 4:
                    service.kill_and_start()
            hook = "/hook"
            wait_until(lambda: len({each.key for each in receiver.at(hook)}) == 14)
            arrived = {each.key: each.document for each in receiver.at(hook)}
            told = Counter((each["subscriber"], each["number"]) for each in arrived.values())
            assert told == Counter((who, n) for who in ("ann", "bob") for n in range(2, 9))
            for each in arrived.values():
                assert each["event"] == {"n": each["number"] - 1}
                own = ["s0", "s1"] if each["subscriber"] == "ann" else ["s2"]
                assert sorted(each["subscriptions"]) == own
            wait_until(lambda: len(dead_letters(service.now)) == 7)
            assert {each["status"] for each in dead_letters(service.now)} == {410}
        finally:
            service.now.end()


def dead_letters(process):
    return process.good("GET", "/v1/letters/dead?limit=1000")["letters"]


def test_a_service_that_is_told_to_end_finishes_what_it_does(tmp_path):
    with serving(*in_folder(tmp_path / "data")) as service:
        service.good("POST", SUBSCRIPTIONS, {"id": "s", "expression": "n > 0", "subscriber": "ann"})
        rows: list[dict] = []
        path = "/v1/subscribers/ann/matches"
        listening = threading.Thread(target=lambda: rows.extend(events_of(service, path)))
        listening.start()
        statuses: list[int] = []

        def send() -> None:
            with contextlib.closing(service.connect()) as connection, contextlib.suppress(*Refused):
                while True:
                    statuses.append(call(connection, "POST", "/v1/events", {"n": 1})[0])

        sender = threading.Thread(target=send)
        sender.start()
        wait_until(lambda: len(statuses) > 30)
        assert service.end(signal.SIGTERM) in (0, 143)
        sender.join(PATIENCE)
        listening.join(PATIENCE)
        assert not any(status != 200 for status in statuses)
        assert "Traceback" not in "".join(service.said)
    with TenantPlaces(tmp_path / "data").open("default") as catalog:
        assert Journal(catalog.database).span().last >= len(statuses)


@pytest.fixture
def database(postgres):
    return postgres.new_url()


def test_processes_over_one_postgresql_agree(database, tmp_path):
    """What one has acknowledged counts in the next event of the other, and soon in its matches."""
    options = ["--database", database, *in_folder(tmp_path / "data")]
    with serving(*options) as one, serving(*options) as two:
        both = (one, two)
        for n in range(30):
            here, there = both if n % 2 else both[::-1]
            row = {"id": "s", "expression": f"n = {n}", "subscriber": "ann"}
            version = here.good("PUT", f"{SUBSCRIPTIONS}/s", row)["version"]
            told = there.good("POST", "/v1/events", {"n": n})
            assert (told["version"], told["matches"], told["first"]) == (version, 1, n + 1)
        for n in range(5):
            here, there = both if n % 2 else both[::-1]
            here.good("PUT", f"{SUBSCRIPTIONS}/t", {"expression": f"m = {n}"})
            wait_until(lambda: there.good("POST", "/v1/match", {"m": n})["matches"] == ["t"])  # noqa: B023
        # A stream of the one has what is published at the other, with sets that change in between.
        rows: list[dict] = []

        def listen() -> None:
            for row in events_of(one, "/v1/subscribers/ann/matches"):
                rows.append(row)
                if len(rows) == 31:
                    return

        listening = threading.Thread(target=listen)
        listening.start()
        one.good("PUT", "/v1/sets/vips", {"members": ["u1"]})
        two.good("PUT", f"{SUBSCRIPTIONS}/v", {"expression": "u IN SET vips", "subscriber": "ann"})
        assert one.good("POST", "/v1/events", {"u": "u2"})["matches"] == 0
        two.good("PATCH", "/v1/sets/vips", {"add": ["u2"]})
        assert one.good("POST", "/v1/events", {"u": "u2"})["matches"] == 1
        listening.join(PATIENCE)
        assert [row["number"] for row in rows] == [*range(1, 31), 32]
        # A token that one makes is known to the other, and only tokens are served from then on.
        made = one.good("POST", "/v1/tokens", {"name": "a", "roles": ["admin"]})
        bearer = {"authorization": f"Bearer {made['token']}"}
        wait_until(lambda: two.call("GET", "/v1")[0] == 401)
        assert two.good("GET", "/v1", **bearer)["roles"] == ["admin"]


def test_publishers_of_two_processes_make_one_log(database, tmp_path):
    options = ["--database", database, *in_folder(tmp_path / "data"), "--history", str(WINDOW)]
    with serving(*options) as one, serving(*options) as two:
        row = {"id": "new", "expression": "NOT EXISTS d (d.k = k)", "subscriber": "ann"}
        one.good("POST", SUBSCRIPTIONS, row)

        def send(process, start):
            for n in range(20):
                process.good("POST", "/v1/events", {"k": (start + n * 7) % 50})

        threads = [
            threading.Thread(target=send, args=(p, n)) for n, p in enumerate((one, two, one))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        events = read_log(one)
        assert [event["number"] for event in events] == list(range(1, 61))
        keys = [event["event"]["k"] for event in events]
        right = [n + 1 for n, k in enumerate(keys) if k not in keys[max(0, n - WINDOW) : n]]
        rows = two.good("GET", "/v1/subscribers/ann/matches?limit=1000")["matches"]
        assert [each["number"] for each in rows] == right


def test_a_database_that_goes_comes_back(postgres, tmp_path):
    options = ["--database", postgres.new_url(), *in_folder(tmp_path / "data")]
    with serving(*options) as service:
        service.good("POST", SUBSCRIPTIONS, {"id": "s", "expression": "n > 0", "subscriber": "ann"})
        service.good("POST", "/v1/events", {"n": 1})
        postgres.kill()
        assert service.call("POST", "/v1/events", {"n": 2})[0] == 503
        assert service.good("POST", "/v1/match", {"n": 3})["matches"] == ["s"]  # in memory
        assert service.good("GET", "/healthz") == {"status": "ok"}
        postgres.start()
        wait_until(lambda: service.call("POST", "/v1/events", {"n": 4})[0] == 200)
        rows = service.good("GET", "/v1/subscribers/ann/matches")["matches"]
        assert rows[0]["event"] == {"n": 1}
        assert {row["event"]["n"] for row in rows} <= {1, 2, 4}
        assert rows[-1]["event"] == {"n": 4}


def test_tenants_are_schemas_of_postgresql(database, tmp_path):
    places = TenantPlaces(tmp_path, database)
    for name in ("acme", "apex"):
        with places.create(name) as catalog:
            catalog.add("s", f"a = '{name}'")
    assert places.names() == ["default", "acme", "apex"]
    with places.open("default") as catalog:
        assert catalog.count() == 0
    with places.open("acme") as catalog:
        assert catalog.get("s").expression == "a = 'acme'"
