"""The service over HTTP, in this process: subscriptions, versions, sets, matching, explaining."""

from __future__ import annotations

import io
import itertools
import json
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bittern
import oracle
from bittern.catalog import conditional
from bittern.language.printer import print_expression
from bittern.service.http.configuration import ServiceSettings
from effort import examples
from service_calls import ARROW, NDJSON, running
from strategies import free_expressions

SUBSCRIPTIONS = "/v1/subscriptions"
_NUMBER = itertools.count()


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service") / "data"
    with running(ServiceSettings(folder, poll=0.02, console=False)) as calls:
        yield calls


@pytest.fixture
def name():
    """A piece of the ids of one test."""
    return f"t{next(_NUMBER)}-"


def create(calls, id_, expression, **fields):
    return calls.good("POST", SUBSCRIPTIONS, {"id": id_, "expression": expression, **fields})


def matched(calls, event, like):
    ids = calls.good("POST", "/v1/match", event)["matches"]
    return sorted(id_ for id_ in ids if id_.startswith(like))


# Subscriptions


def test_a_subscription_lives(calls, name):
    one = f"{name}1"
    answer = calls.call(
        "POST",
        SUBSCRIPTIONS,
        {"id": one, "expression": "price < 10", "subscriber": "ann", "metadata": {"k": [1]}},
    )
    assert (answer.status, answer.headers["location"]) == (201, f"{SUBSCRIPTIONS}/{one}")
    first = answer.json()
    assert answer.headers["etag"] == f'"{first["version"]}"'
    assert calls.good("GET", f"{SUBSCRIPTIONS}/{one}") == first
    assert matched(calls, {"price": 5}, name) == [one]

    put = calls.good("PUT", f"{SUBSCRIPTIONS}/{one}", {"expression": "price > 10", "weight": 2})
    assert (put["subscriber"], put["metadata"], put["weight"]) == (None, None, 2.0)
    assert matched(calls, {"price": 5}, name) == []
    patched = calls.good("PATCH", f"{SUBSCRIPTIONS}/{one}", {"weight": None, "subscriber": "bob"})
    assert (patched["weight"], patched["subscriber"]) == (None, "bob")
    assert patched["expression"] == "price > 10"
    disabled = calls.good("PATCH", f"{SUBSCRIPTIONS}/{one}", {"enabled": False})
    assert disabled["enabled"] is False
    assert matched(calls, {"price": 50}, name) == []

    gone = calls.good("DELETE", f"{SUBSCRIPTIONS}/{one}")["version"]
    assert calls.call("GET", f"{SUBSCRIPTIONS}/{one}").kind == "unknown-subscription"
    assert calls.call("DELETE", f"{SUBSCRIPTIONS}/{one}").kind == "unknown-subscription"
    assert calls.good("GET", f"{SUBSCRIPTIONS}/{one}?version={gone - 1}")["enabled"] is False


def test_an_id_may_be_any_text(calls, name):
    for odd in ("a/b", "a%2Fb", "ü <b>", "a b?c#d", '"', "load/x"):
        id_ = name + odd
        place = f"{SUBSCRIPTIONS}/{quote(id_, safe='')}"
        made = calls.call("PUT", place, {"expression": f"odd = '{next(_NUMBER)}'"})
        assert (made.status, made.headers["location"]) == (201, place)
        assert calls.good("GET", place)["id"] == id_
        calls.good("POST", "/v1/undo", {"id": id_})
        assert calls.call("GET", place).kind == "unknown-subscription"


def test_mistakes_are_told_with_their_places(calls, name):
    wrong = calls.call("POST", SUBSCRIPTIONS, {"id": f"{name}x", "expression": "price <"})
    assert (wrong.status, wrong.kind) == (422, "bad-subscription")
    (error,) = wrong.json()["errors"]
    assert (error["id"], error["position"]) == (f"{name}x", 7)
    for body, status in [
        (b"{", 400),
        (b"[]", 400),
        (b'{"id": "\xff"}', 400),
        (b'{"id": NaN}', 400),
        (b'{"id": "\\ud800"}', 400),
        (b"{}", 400),
        (b'{"id": "a", "expression": 5}', 422),
        (b'{"id": "a", "expression": "a = 1", "colour": 1}', 422),
        (b'{"id": "a", "expression": "a = 1", "weight": "x"}', 422),
        (b'{"id": "a", "expression": "a = 1", "metadata": []}', 422),
        (b'{"id": "a\\u0000", "expression": "a = 1"}', 400),
        (b'{"id": "a", "expression": "a IN SET nowhere"}', 422),
        (b'{"id": "a", "expression": "EXISTS d (d.a = a"}', 422),
    ]:
        answer = calls.call("POST", SUBSCRIPTIONS, body, content_type="application/json")
        assert answer.status == status, (body, answer)
        assert answer.json()["detail"]


def test_of_two_who_change_the_same_form_one_is_refused(calls, name):
    one = f"{name}1"
    place = f"{SUBSCRIPTIONS}/{one}"
    tag = f'"{create(calls, one, "a = 1")["version"]}"'
    assert calls.call("POST", SUBSCRIPTIONS, {"id": one, "expression": "a = 2"}).status == 409
    newer = calls.call("PATCH", place, {"weight": 1}, if_match=tag)
    assert newer.status == 200
    for method, body in (("PATCH", {"weight": 2}), ("PUT", {"expression": "a = 3"})):
        assert calls.call(method, place, body, if_match=tag).kind == "changed-meanwhile"
    assert calls.call("DELETE", place, if_match=tag).kind == "changed-meanwhile"
    assert calls.call("DELETE", place, if_match="x").status == 400
    assert calls.call("DELETE", place, if_match=newer.headers["etag"]).status == 200
    assert calls.call("PUT", place, {"expression": "a = 3"}, if_match=tag).status == 412


def test_pages_and_search(calls, name):
    rows = {
        f"{name}a": ("price < 10 AND colour = 'red'", "ann"),
        f"{name}b": ("lower(brand) = 'price'", "ann"),
        f"{name}c": ("size.price > 5", "bob"),
        f"{name}d": ("note LIKE '100%'", None),
        f"{name}e": ("price IS MISSING", "bob"),
    }
    for id_, (expression, subscriber) in rows.items():
        create(calls, id_, expression, subscriber=subscriber)

    def found(**asked):
        query = "&".join(f"{key}={quote(str(value))}" for key, value in asked.items())
        answer = calls.good("GET", f"{SUBSCRIPTIONS}?after={name}&{query}")
        own = [row["id"] for row in answer["subscriptions"] if row["id"].startswith(name)]
        return [id_.removeprefix(name) for id_ in own], answer["next"]

    assert found()[0] == list("abcde")
    assert found(limit=2) == (["a", "b"], f"{name}b")
    page = calls.good("GET", f"{SUBSCRIPTIONS}?after={name}b&limit=2")["subscriptions"]
    assert [row["id"] for row in page] == [f"{name}c", f"{name}d"]
    assert found(text="PRICE")[0] == list("abce")
    assert found(text="100%")[0] == ["d"]
    assert found(text="_")[0] == []
    assert found(text=f"{name}c")[0] == ["c"]
    assert found(subscriber="ann")[0] == ["a", "b"]
    assert found(attribute="price")[0] == ["a", "e"]
    assert found(attribute="size.price")[0] == ["c"]
    assert found(attribute="brand", limit=1)[0] == ["b"]
    assert calls.call("GET", f"{SUBSCRIPTIONS}?limit=0").status == 422
    assert calls.call("GET", f"{SUBSCRIPTIONS}?version=999999999").status == 400


def test_loading_is_all_or_nothing_or_skips(calls, name):
    good = [{"id": f"{name}{n}", "expression": f"load = {n}"} for n in range(5)]
    bad = [*good, {"id": f"{name}x", "expression": "load ="}]
    answer = calls.call("POST", f"{SUBSCRIPTIONS}/load", bad)
    assert answer.kind == "bad-subscription"
    assert matched(calls, {"load": 3}, name) == []
    done = calls.good("POST", f"{SUBSCRIPTIONS}/load?on_error=skip", bad)
    assert (done["added"], len(done["bad"]), done["bad"][0]["position"]) == (5, 1, 6)
    assert matched(calls, {"load": 3}, name) == [f"{name}3"]
    assert calls.good("POST", f"{SUBSCRIPTIONS}/load", good)["unchanged"] == 5
    assert calls.call("POST", f"{SUBSCRIPTIONS}/load", b"\xff\n").status in (400, 422)
    assert calls.call("POST", f"{SUBSCRIPTIONS}/load?mode=replace", b"").status == 400
    assert calls.call("POST", f"{SUBSCRIPTIONS}/load?mode=other", good).status == 422


def test_rules_of_other_systems_are_imported(calls, name):
    rules = [
        {"Name": f"{name}1", "EventPattern": {f"{name}colour": ["red"]}},
        {"Name": f"{name}2", "EventPattern": {f"{name}colour": [{"unheard": 1}]}},
    ]
    event = {f"{name}colour": "red"}

    def send(query):
        path = f"{SUBSCRIPTIONS}/import?format=eventbridge{query}"
        return calls.call("POST", path, json.dumps(rules).encode(), content_type="text/plain")

    told = send("&dry_run=true&lists=").json()
    assert (told["good"], told["bad"]) == (1, 1)
    assert {row["expression"] for row in told["rows"]} == {None, f"`{name}colour` = 'red'"}
    answer = send("")
    assert answer.kind == "bad-subscription"
    assert [each["id"] for each in answer.json()["errors"]] == [f"{name}2"]
    assert matched(calls, event, name) == []
    done = send("&on_error=skip").json()
    assert (done["added"], [each["id"] for each in done["bad"]]) == (1, [f"{name}2"])
    assert matched(calls, event, name) == [f"{name}1"]
    assert matched(calls, {f"{name}colour": ["blue", "red"]}, name) == [f"{name}1"]
    assert send("&scope=MessageBody").kind == "bad-request"
    odd = calls.call("POST", f"{SUBSCRIPTIONS}/import?format=odd", b"")
    assert odd.status == 422
    broken = f"{SUBSCRIPTIONS}/import?format=jms&on_error=skip"
    assert calls.call("POST", broken, b"\xff").status == 400


def test_validating_saves_nothing(calls, name):
    before = calls.good("GET", "/v1")["version"]
    check = f"{SUBSCRIPTIONS}/validate"
    assert calls.good("POST", check, {"expression": "a = 1"})["valid"] is True
    wrong = calls.good("POST", check, [{"expression": "a = 1"}, {"id": "b", "expression": "= 1"}])
    assert (wrong["valid"], wrong["checked"]) == (False, 2)
    assert [(error["id"], error["position"]) for error in wrong["errors"]] == [("b", 0)]
    assert calls.good("GET", "/v1")["version"] == before


# Versions


def test_undo_goes_back_a_form_at_a_time(calls, name):
    one = f"{name}1"
    first = create(calls, one, "a = 1")["version"]
    place = f"{SUBSCRIPTIONS}/{one}"
    second = calls.good("PATCH", place, {"expression": "a = 2"})["version"]
    calls.good("DELETE", place)
    assert calls.good("POST", "/v1/undo", {"id": one})["expression"] == "a = 2"
    assert calls.good("POST", "/v1/undo", {"id": one}) == {"id": one, "removed": True}
    assert calls.good("POST", "/v1/undo", {"id": one, "version": first})["expression"] == "a = 1"
    assert matched(calls, {"a": 1}, name) == [one]
    forms = calls.good("GET", f"/v1/history/{one}")["forms"]
    assert [form["expression"] for form in forms] == ["a = 1", "a = 2", "a = 2", "a = 1"]
    assert [form["version"] for form in forms][:2] == [first, second]
    assert calls.good("POST", "/v1/undo", {"id": one, "version": first - 1})["removed"] is True
    assert calls.call("POST", "/v1/undo", {"id": f"{name}none"}).kind == "unknown-subscription"
    assert calls.call("POST", "/v1/undo", {"id": one, "version": 10**9}).status == 400
    assert calls.call("GET", f"/v1/history/{name}none").status == 404


def test_undo_takes_nothing_back_that_others_did_meanwhile(calls, name, monkeypatch):
    one = f"{name}1"
    first = create(calls, one, "a = 1")["version"]
    catalog = calls.state.tenants["default"].catalog
    read = catalog.history

    def history(id_):
        forms = read(id_)
        conditional.change(catalog, id_, {"expression": "a = 2"})
        return forms

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "history", history)
        undone = calls.call("POST", "/v1/undo", {"id": one, "version": first - 1})
        assert (undone.status, undone.kind) == (412, "changed-meanwhile")
    assert calls.good("GET", f"{SUBSCRIPTIONS}/{one}")["expression"] == "a = 2"


def test_versions_are_compared(calls, name):
    a, b, c = (f"{name}{letter}" for letter in "abc")
    create(calls, a, "v = 1")
    since = create(calls, b, "v = 2")["version"]
    calls.good("PATCH", f"{SUBSCRIPTIONS}/{a}", {"expression": "v = 3"})
    calls.good("DELETE", f"{SUBSCRIPTIONS}/{b}")
    create(calls, c, "v = 4")
    told = calls.good("GET", f"/v1/changes?since={since}")
    put = {each["after"]["id"]: each for each in told["put"]}
    assert (put[a]["before"]["expression"], put[a]["after"]["expression"]) == ("v = 1", "v = 3")
    assert put[c]["before"] is None
    assert [each["id"] for each in told["removed"]] == [b]
    assert told["removed"][0]["before"]["expression"] == "v = 2"
    latest = calls.good("GET", "/v1/versions?limit=1")["versions"]
    assert latest[0]["version"] == told["until"]
    assert calls.call("GET", f"/v1/changes?since={since}&until={since - 1}").status == 400


# Sets


def test_sets_change_what_matches(calls, name):
    place = f"/v1/sets/{name.strip('-')}"
    own = name.strip("-")
    calls.good("PUT", place, {"members": [7, 9]})
    create(calls, f"{name}s", f"user_id IN SET {own}")
    assert matched(calls, {"user_id": 9}, name) == [f"{name}s"]
    calls.good("PATCH", place, {"add": [11], "remove": [9]})
    assert matched(calls, {"user_id": 9}, name) == []
    assert matched(calls, {"user_id": 11}, name) == [f"{name}s"]
    assert sorted(calls.good("GET", place)["members"]) == [7, 11]
    assert own in [each["name"] for each in calls.good("GET", "/v1/sets")["sets"]]
    assert calls.call("DELETE", place).status == 400
    calls.good("DELETE", f"{SUBSCRIPTIONS}/{name}s")
    calls.good("DELETE", place)
    assert calls.call("GET", place).kind == "unknown-set"
    assert calls.call("PUT", place, {"members": [1, "a"]}).status in (400, 422)
    assert calls.call("PUT", place, {"members": 5}).status == 422


# Matching

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 600),
    st.floats(-3, 600, allow_nan=False),
    st.sampled_from(["", "a", "b", "ab", "é", "\u2028", '"', "\\"]),
)
EVENTS = st.dictionaries(st.sampled_from(["a", "b", "d", "m", "zz"]), VALUES, max_size=4)


def test_all_ways_to_ask_agree_with_the_oracle(calls):
    tenant = calls.state.tenants["default"]
    held = set()

    def hold(texts):
        """Let the catalog have these of the drawn subscriptions and no others."""
        rows = [{"id": id_, "expression": text} for id_, text in texts.items()]
        tenant.catalog.apply(rows, sorted(held - texts.keys()))
        tenant.advance()
        held.clear()
        held.update(texts)

    @examples(0.4)
    @given(
        st.lists(free_expressions(2), min_size=1, max_size=4, unique_by=print_expression),
        st.lists(EVENTS, max_size=6),
    )
    def ask(expressions, events):
        texts = {f"o{n}": print_expression(each) for n, each in enumerate(expressions)}
        hold(texts)
        right = [
            [id_ for id_, own in zip(texts, expressions, strict=True) if oracle.matches(own, event)]
            for event in events
        ]

        def own(ids):
            return sorted(id_ for id_ in ids if id_ in texts)

        assert [own(calls.good("POST", "/v1/match", event)["matches"]) for event in events] == right
        told = calls.call("POST", "/v1/match", [*events, {}])
        assert [own(line["subscriptions"]) for line in told.lines[:-1]] == right
        table = pa.table({"e": [json.dumps(event) for event in events]})
        embedded = bittern.Matcher(bittern.Index.build(texts)).match(table["e"].combine_chunks())
        assert [sorted(ids) for ids in embedded.to_pylist()] == right

    ask()
    hold({})  # some of them match the events of other tests


def stream_of(table, **options):
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return out.getvalue()


def test_arrow_and_json_lines_are_answered_alike(calls, name):
    create(calls, f"{name}1", "way < 10", weight=1)
    create(calls, f"{name}2", "way < 20 AND kind = 'x'", weight=2)
    events = [{"way": way, "kind": kind} for way in (5, 15, 25, None) for kind in ("x", None)]
    table = pa.Table.from_pylist(events)
    for query in ("", "?limit=1"):
        lines = calls.call("POST", f"/v1/match{query}", events)
        assert lines.headers["content-type"] == NDJSON
        answer = calls.call("POST", f"/v1/match{query}", stream_of(table), content_type=ARROW)
        told = pa.ipc.open_stream(answer.body).read_all()
        assert told.to_pylist() == lines.lines
        assert json.loads(told.schema.metadata[b"rejects"]) == []
    best = calls.good("POST", "/v1/match?limit=1", events[0])["matches"]
    assert best == [f"{name}2"]


def test_events_that_cannot_be_read_do_not_stop_others(calls, name):
    create(calls, f"{name}1", "alone = 1")
    body = b'{"alone": 1}\n\n{"alone": \n[]\n{"alone": 1}'
    answer = calls.call("POST", "/v1/match", body, content_type=NDJSON)
    *rows, first, second = answer.lines
    own = [[id_ for id_ in row["subscriptions"] if id_.startswith(name)] for row in rows]
    assert own == [[f"{name}1"], [], [], [f"{name}1"]]
    assert (first["event"], second["event"]) == (1, 2)
    assert calls.call("POST", "/v1/match", b"[]").kind == "bad-event"
    assert calls.call("POST", "/v1/match", b"\xff").status == 400
    assert calls.call("POST", "/v1/match", b"{}", content_type="text/xml").status == 415
    form = "application/x-www-form-urlencoded"  # what curl says of -d
    assert calls.call("POST", "/v1/match", b"{}", content_type=form).status == 200
    assert calls.call("POST", "/v1/match", b"", content_type=NDJSON).lines == []
    assert calls.call("POST", "/v1/match", b"{}", content_encoding="gzip").status == 415


def test_whole_subscriptions_and_why(calls, name):
    create(calls, f"{name}1", "why < 10", subscriber="ann", metadata={"k": 1})
    create(calls, f"{name}2", "why < 5 AND colour = 'red'")
    asked = f"/v1/match?full=true&explain={name}2&explain={name}1"
    told = calls.good("POST", asked, {"why": 7})
    (row,) = [row for row in told["matches"] if row["id"].startswith(name)]
    assert (row["expression"], row["subscriber"], row["metadata"]) == ("why < 10", "ann", {"k": 1})
    no, yes = told["explanations"]
    assert (no["matched"], yes["matched"]) == (False, True)
    first, second = no["tree"]["parts"]
    assert (first["truth"], second["truth"]) == (False, None)
    assert (first["found"], second["found"]) == ("why is 7", "colour is missing")
    assert calls.call("POST", "/v1/match?explain=nobody", {}).kind == "unknown-subscription"
    assert calls.call("POST", "/v1/match?full=true", [{}]).status == 400


def test_a_draft_is_explained(calls, name):
    asked = {"event": {"price": 600}, "expression": "price <= 580"}
    told = calls.good("POST", "/v1/explain", asked)
    assert told["tree"] == {"text": "price <= 580", "truth": False, "found": "price is 600"}
    wrong = calls.call("POST", "/v1/explain", {"event": {}, "expression": "price <"})
    assert (wrong.kind, wrong.json()["errors"][0]["position"]) == ("bad-expression", 7)
    create(calls, f"{name}1", "a = 1", enabled=False)
    assert calls.call("POST", "/v1/explain", {"event": {}, "id": f"{name}1"}).status == 409
    assert calls.call("POST", "/v1/explain", {"event": {}}).status == 422
    assert calls.call("POST", "/v1/explain", {"event": 1, "id": "x"}).status == 422


def test_hostile_streams_of_arrow_are_refused(calls):
    table = pa.table({"a": list(range(100))})
    for codec in ("zstd", "lz4"):
        packed = calls.call(
            "POST", "/v1/match", stream_of(table, compression=codec), content_type=ARROW
        )
        assert packed.kind == "bad-event"
        assert "compression" in packed.json()["detail"]
    nothing = pa.table({"a": pa.nulls(3_000_000)})
    assert calls.call("POST", "/v1/match", stream_of(nothing), content_type=ARROW).status == 422
    whole = stream_of(pa.table({"a": ["x", "yy", None], "b": [{"c": 1}, None, {"c": 2}]}))
    for end in range(0, len(whole) - 1, 7):
        answer = calls.call("POST", "/v1/match", whole[:end], content_type=ARROW)
        assert answer.status in (200, 422), (end, answer)
    for place in range(0, len(whole), 5):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        answer = calls.call("POST", "/v1/match", bytes(broken), content_type=ARROW)
        assert answer.status in (200, 422), (place, answer)
