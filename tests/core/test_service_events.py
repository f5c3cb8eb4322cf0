"""The service over HTTP: events are published, logged and matched, and streams get what matched."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bittern.catalog.journal.journal import Turn
from bittern.errors import CatalogError
from bittern.service.http import publishing, streams, tails
from bittern.service.http.configuration import ServiceSettings
from service_calls import NDJSON, running
from steady import wait_until

POLL = {"poll": 0.02, "console": False}
SUBSCRIPTIONS = "/v1/subscriptions"


@pytest.fixture
def calls(tmp_path):
    with running(ServiceSettings(tmp_path / "data", **POLL)) as calls:
        yield calls


def subscribe(calls, id_, expression, subscriber=None, **more):
    row = {"id": id_, "expression": expression, "subscriber": subscriber, **more}
    return calls.good("POST", SUBSCRIPTIONS, row)["version"]


def publish(calls, *events, **headers):
    return calls.good("POST", "/v1/events", list(events), **headers)


def test_an_event_is_logged_with_what_it_matched(calls):
    version = subscribe(calls, "s1", "price < 10", "ann")
    subscribe(calls, "s2", "price < 100", "ann")
    subscribe(calls, "s3", "price < 100", "bob")
    newest = subscribe(calls, "s4", "price < 100")
    told = publish(calls, {"price": 5}, {"price": 50})
    assert (told["version"], told["first"], told["last"], told["matches"]) == (newest, 1, 2, 7)
    assert version < newest
    ann = calls.good("GET", "/v1/subscribers/ann/matches")
    assert [(row["number"], sorted(row["subscriptions"])) for row in ann["matches"]] == [
        (1, ["s1", "s2"]),
        (2, ["s2"]),
    ]
    assert ann["matches"][0]["event"] == {"price": 5}
    assert (ann["next"], ann["gap"]) == (2, False)
    after = calls.good("GET", "/v1/subscribers/ann/matches?after=1")["matches"]
    assert [row["number"] for row in after] == [2]
    everyone = calls.good("GET", "/v1/matches?after=0")["matches"]
    assert {row["subscriber"] for row in everyone} == {"ann", "bob", ""}
    own = calls.good("GET", "/v1/matches?after=0&subscription=s1")["matches"]
    assert [(row["number"], row["subscriber"]) for row in own] == [(1, "ann")]
    assert calls.good("GET", "/v1/subscribers/nobody/matches")["matches"] == []
    log = calls.good("GET", "/v1/events?after=1")
    assert (log["first"], log["last"]) == (1, 2)
    assert [(row["number"], row["event"]) for row in log["events"]] == [(2, {"price": 50})]


def test_an_event_that_cannot_be_read_is_told_and_not_logged(calls):
    subscribe(calls, "s1", "a = 1", "ann")
    body = b'{"a": 1}\n{"a": \n{"a": 1}\n[1]\n'
    answer = calls.call("POST", "/v1/events", body, content_type=NDJSON)
    told = answer.json()
    assert (told["accepted"], told["first"], told["last"], told["rejected"]) == (2, 1, 2, 2)
    assert [each["event"] for each in told["rejects"]] == [1, 3]
    for body in (b"[]", b"", b'{"a":', b"{}{}", b'{"a": "\\ud800"}', b'{"a": \x00}', b'{"a": NaN}'):
        answer = calls.call("POST", "/v1/events", body, content_type="application/json")
        assert answer.status == 422, (body, answer)
    assert calls.good("GET", "/v1/events")["last"] == 2
    # What was logged is JSON as it stands in answers, whatever was sent.
    odd = b' {"a" : 1, "b\\n": "\\u2028\\u0000", "a": 2}\t'
    assert calls.call("POST", "/v1/events", odd, content_type="application/json").status == 200
    rows = calls.good("GET", "/v1/events?after=2")["events"]
    assert [row["event"] for row in rows] == [{"a": 2, "b\n": "\u2028\0"}]


def test_a_repeated_request_publishes_nothing_again(calls):
    subscribe(calls, "s1", "a = 1", "ann")
    first = publish(calls, {"a": 1}, idempotency_key="k1")
    again = publish(calls, {"a": 1}, idempotency_key="k1")
    assert again == {**first, "repeated": True}
    assert calls.good("GET", "/v1/events")["last"] == 1
    other = calls.call("POST", "/v1/events", [{"a": 2}], idempotency_key="k1")
    assert other.kind == "key-is-taken"
    with ThreadPoolExecutor(8) as threads:
        same = list(
            threads.map(lambda _: publish(calls, {"a": 3}, idempotency_key="k2"), range(16))
        )
    assert len({told["first"] for told in same}) == 1
    assert sum("repeated" not in told for told in same) == 1


def test_many_publishers_get_numbers_without_gaps(calls):
    subscribe(calls, "all", "n IS NOT NULL", "ann")

    def send(n):
        told = publish(calls, *({"n": [n, k], "m": n} for k in range(3)))
        return list(range(told["first"], told["last"] + 1))

    with ThreadPoolExecutor(8) as threads:
        numbers = [number for own in threads.map(send, range(40)) for number in own]
    assert sorted(numbers) == list(range(1, 121))
    rows = calls.good("GET", "/v1/subscribers/ann/matches?limit=1000")["matches"]
    assert [row["number"] for row in rows] == list(range(1, 121))
    for n in range(0, 120, 3):  # events of one request follow each other
        assert len({row["event"]["m"] for row in rows[n : n + 3]}) == 1


def test_each_event_is_matched_against_the_version_it_is_logged_with(calls):
    """While a subscription changes, which events matched it is told by their versions."""
    stop = threading.Event()

    def change():
        n = 0
        while not stop.is_set():
            n += 1
            calls.good("PUT", f"{SUBSCRIPTIONS}/s", {"expression": f"n % 2 = {n % 2}"})

    calls.good("PUT", f"{SUBSCRIPTIONS}/s", {"expression": "n % 2 = 0"})
    thread = threading.Thread(target=change)
    thread.start()
    try:
        versions = {publish(calls, {"n": n})["version"] for n in range(30)}
        wait_until(
            lambda: len(versions) > 5, lambda: versions.add(publish(calls, {"n": 1})["version"])
        )
    finally:
        stop.set()
        thread.join()
    catalog = calls.state.tenants["default"].catalog
    rows = {
        row["number"]: row for row in calls.good("GET", "/v1/matches?after=0&limit=1000")["matches"]
    }
    events = calls.good("GET", "/v1/events?limit=1000")["events"]
    assert {event["version"] for event in events} == versions
    for event in events:
        expression = catalog.get("s", event["version"]).expression
        matches = expression == f"n % 2 = {event['event']['n'] % 2}"
        assert (event["number"] in rows) == matches


# Streams


def test_a_stream_begins_where_it_is_told_and_goes_on(calls):
    subscribe(calls, "s1", "a > 0", "ann")
    publish(calls, {"a": 1}, {"a": 0}, {"a": 2})
    place = "/v1/subscribers/ann/matches"
    with calls.listen(place) as whole, calls.listen(f"{place}?after=now") as new:
        first, second = whole.take(2)
        assert (first["id"], second["id"]) == ("1", "3")
        told = json.loads(first["data"])
        assert (told["number"], told["subscriptions"], told["event"]) == (1, ["s1"], {"a": 1})
        wait_until(lambda: calls.state.tenants["default"].tail.n_streams == 2)
        publish(calls, {"a": 3}, {"a": 0})
        publish(calls, {"a": 4})
        assert whole.numbers(2) == new.numbers(2) == [4, 6]
    with calls.listen(place, last_event_id="3") as resumed:
        assert resumed.numbers(2) == [4, 6]
    wait_until(lambda: calls.state.tenants["default"].tail.n_streams == 0)
    assert calls.call("GET", place, accept="text/event-stream", last_event_id="x").status == 400


def test_a_waiting_request_is_answered_when_something_comes(calls):
    subscribe(calls, "s1", "a > 0", "ann")
    waiting = calls.begin("GET", "/v1/subscribers/ann/matches?wait=60")
    elsewhere = calls.begin("GET", "/v1/subscribers/bob/matches?wait=0.2")
    wait_until(lambda: calls.state.tenants["default"].tail.n_streams >= 1)
    publish(calls, {"a": 0})
    publish(calls, {"a": 1})
    rows = waiting.result(60).json()
    assert [row["number"] for row in rows["matches"]] == [2]
    assert rows["next"] == 2
    assert elsewhere.result(60).json()["matches"] == []


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_a_slow_stream_skips_nothing(calls, monkeypatch, most):
    monkeypatch.setattr(tails, "_MOST", most)
    monkeypatch.setattr(tails, "_EVENTS", 4)
    monkeypatch.setattr(streams, "_ROWS", 3)
    subscribe(calls, "s1", "a > 0", "ann")
    subscribe(calls, "s2", "a > 1", "bob")
    with (
        calls.listen("/v1/subscribers/ann/matches") as ann,
        calls.listen("/v1/matches?after=0") as all_,
    ):
        for n in range(12):
            publish(calls, *({"a": 1 + (n + k) % 2} for k in range(5)))
        assert ann.numbers(60) == list(range(1, 61))
        rows = [
            (json.loads(event["data"])["subscriber"], int(event["id"])) for event in all_.take(90)
        ]
    assert [number for who, number in rows if who == "ann"] == list(range(1, 61))
    assert len({number for who, number in rows if who == "bob"}) == 30
    assert [number for _, number in rows] == sorted(number for _, number in rows)


def test_old_events_are_dropped_and_readers_are_told(calls):
    subscribe(calls, "s1", "a > 0", "ann")
    publish(calls, *({"a": 1} for _ in range(10)))
    journal = calls.state.tenants["default"].journal
    later = time.time_ns() // 1000 + 10**9
    assert journal.forget(0) == 0
    assert journal.forget(later, keep=4) == 6
    place = "/v1/subscribers/ann/matches"
    told = calls.good("GET", place)
    assert told["gap"] is True
    assert [row["number"] for row in told["matches"]] == [7, 8, 9, 10]
    assert calls.good("GET", f"{place}?after=6")["gap"] is False
    with calls.listen(place) as stream:
        gap, first = stream.take(2)
    assert (gap["event"], json.loads(gap["data"])) == ("gap", {"from": 1, "to": 6})
    assert first["id"] == "7"
    assert journal.forget(later) == 4
    publish(calls, {"a": 1})
    assert [row["number"] for row in calls.good("GET", place)["matches"]] == [11]


def test_streams_end_when_the_service_stops(calls):
    subscribe(calls, "s1", "a > 0", "ann")
    with calls.listen("/v1/subscribers/ann/matches") as stream:
        waiting = calls.begin("GET", "/v1/subscribers/ann/matches?wait=60")
        wait_until(lambda: calls.state.tenants["default"].tail.n_streams == 2)
        calls.soon(_end(calls.state)).result(60)
        stream.wait_for_end()
        assert waiting.result(60).json()["matches"] == []
    assert calls.call("GET", "/readyz").status == 503
    assert calls.call("GET", "/healthz").status == 200


async def _end(state):
    state.end_streams()


# History


def test_events_are_remembered_for_quantifiers(tmp_path):
    settings = ServiceSettings(tmp_path / "data", history=3, **POLL)
    with running(settings) as calls:
        subscribe(calls, "new", "isbn IS NOT NULL AND NOT EXISTS d (d.isbn = isbn)", "ann")
        told = publish(calls, {"isbn": "a"}, {"isbn": "a"}, {"isbn": "b"})
        assert told["matches"] == 2
        assert calls.good("POST", "/v1/match", {"isbn": "a"})["matches"] == []
        assert calls.good("POST", "/v1/match", {"isbn": "c"})["matches"] == ["new"]
        assert calls.good("POST", "/v1/match", {"isbn": "c"})["matches"] == ["new"]
        draft = "EXISTS d (d.isbn = isbn)"
        asked = {"event": {"isbn": "a"}, "expression": draft}
        assert calls.good("POST", "/v1/explain", asked)["matched"] is True
        assert (
            calls.good("POST", "/v1/explain", {"event": {"isbn": "b"}, "id": "new"})["matched"]
            is False
        )
    with running(settings) as calls:  # the journal has them
        assert calls.good("POST", "/v1/match", {"isbn": "b"})["matches"] == []
        assert publish(calls, {"isbn": "c"})["matches"] == 1  # now a, b and c are the last three
        assert publish(calls, {"isbn": "a"})["matches"] == 0
        assert publish(calls, {"isbn": "x"}, {"isbn": "y"}, {"isbn": "z"})["matches"] == 3
        assert publish(calls, {"isbn": "a"})["matches"] == 1


def test_quantifiers_need_a_history(calls):
    row = {"id": "q", "expression": "EXISTS d (d.a = a)"}
    calls.good("POST", SUBSCRIPTIONS, row)  # a pipeline on the same catalog may have one
    assert calls.good("GET", "/v1")["left_out"] == 1
    assert calls.call("POST", "/v1/explain", {"event": {"a": 1}, "id": "q"}).status == 409
    assert publish(calls, {"a": 1})["matches"] == 0


def test_a_turn_that_fails_leaves_no_trace(tmp_path, monkeypatch):
    """Its events are not logged, not remembered, and no caller is told that they are."""
    with running(ServiceSettings(tmp_path / "data", history=10, **POLL)) as calls:
        subscribe(calls, "again", "EXISTS d (d.a = a)", "ann")
        publish(calls, {"a": 1})
        log = Turn.log

        def fail(turn, entries):
            log(turn, entries)
            raise CatalogError("no disk")

        with monkeypatch.context() as patch:
            patch.setattr(Turn, "log", fail)
            answer = calls.call("POST", "/v1/events", {"a": 2})
            assert (answer.status, answer.kind) == (503, "unavailable")
            assert "disk" not in answer.body.decode()
        assert calls.good("GET", "/v1/events")["last"] == 1
        assert publish(calls, {"a": 2})["matches"] == 0
        assert publish(calls, {"a": 2})["matches"] == 1
        assert publish(calls, {"a": 1})["matches"] == 1


def test_one_bad_request_of_a_group_fails_alone(calls, monkeypatch):
    subscribe(calls, "s1", "a > 0", "ann")
    entries = publishing.Publisher._entries

    def fail(self, texts, found, version):
        if any("poison" in text for text in texts):
            raise ValueError("a mistake of ours")
        return entries(self, texts, found, version)

    monkeypatch.setattr(publishing.Publisher, "_entries", fail)
    with ThreadPoolExecutor(8) as threads:
        sent = [{"a": 1} if n % 4 else {"poison": n} for n in range(16)]
        answers = list(threads.map(lambda event: calls.call("POST", "/v1/events", event), sent))
    assert [answer.status for answer in answers] == [200 if n % 4 else 500 for n in range(16)]
    assert "mistake of ours" not in answers[0].body.decode()
    assert calls.good("GET", "/v1/events")["last"] == 12


def test_numbers_that_python_does_not_read_do_not_stop_a_look_at_events(tmp_path):
    with running(ServiceSettings(tmp_path / "data", poll=0.02)) as calls:
        event = b'{"price": ' + b"9" * 5000 + b', "other": 12}'
        calls.good("POST", "/v1/events", event)
        found = calls.good("POST", "/v1/backtest", {"expression": "price IS NOT NULL"})
        assert [each["values"] for each in found["samples"]] == [{"price": "inf", "other": 12}]
        names = calls.good("GET", "/console/api/attributes?start=p")["names"]
        assert names == ["price"]
