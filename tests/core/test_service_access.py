"""The service over HTTP: who may do what, tenants that do not see each other, limits, headers."""

from __future__ import annotations

import json
import logging
import time

import pytest

from bittern.catalog.journal import tokens as token_table
from bittern.catalog.journal.journal import Journal
from bittern.catalog.journal.places import TenantPlaces
from bittern.catalog.journal.tokens import TokenTable
from bittern.errors import CatalogError, OptionError
from bittern.service.http import server, state
from bittern.service.http.configuration import ServiceSettings
from bittern.service.http.entrance import Told
from service_calls import running
from steady import wait_until

POLL = {"poll": 0.02, "console": False}
SUBSCRIPTIONS = "/v1/subscriptions"
#: What each route takes: the roles besides admin; None: no token at all.
ROLES = {
    "GET /healthz": None,
    "GET /readyz": None,
    "POST /v1/session": None,
    "DELETE /v1/session": None,
    "GET /v1": "read subscribe publish",
    "GET /docs": "read subscribe publish",
    "GET /openapi.json": "read subscribe publish",
    "GET /metrics": "read subscribe",
    "POST /v1/match": "read subscribe",
    "POST /v1/explain": "read subscribe",
    "POST /v1/events": "publish",
    "GET /v1/events": "read subscribe",
    "GET /v1/matches": "read subscribe",
    "GET /v1/subscribers/{name}/matches": "subscribe",
    "GET /v1/subscriptions": "read subscribe",
    "POST /v1/subscriptions": "subscribe",
    "POST /v1/subscriptions/load": "subscribe",
    "POST /v1/subscriptions/import": "subscribe",
    "POST /v1/subscriptions/validate": "read subscribe",
    "GET /v1/subscriptions/{id}": "read subscribe",
    "PUT /v1/subscriptions/{id}": "subscribe",
    "PATCH /v1/subscriptions/{id}": "subscribe",
    "DELETE /v1/subscriptions/{id}": "subscribe",
    "GET /v1/versions": "read subscribe",
    "GET /v1/changes": "read subscribe",
    "GET /v1/history/{id}": "read subscribe",
    "POST /v1/undo": "subscribe",
    "GET /v1/sets": "read subscribe",
    "GET /v1/sets/{name}": "read subscribe",
    "PUT /v1/sets/{name}": "subscribe",
    "PATCH /v1/sets/{name}": "subscribe",
    "DELETE /v1/sets/{name}": "subscribe",
    "GET /v1/letters/dead": "read subscribe",
    "GET /v1/tokens": "",
    "POST /v1/tokens": "",
    "DELETE /v1/tokens/{id}": "",
    "GET /v1/audit": "",
}
#: Whose own tests are elsewhere.
_OTHERS = ("/v1/backtest", "/console")


def token_of(folder, tenant, *roles, **limits):
    with TenantPlaces(folder).create(tenant) as catalog:
        Journal(catalog.database)
        text, token = TokenTable(catalog.database, tenant).create("test", list(roles), limits)
    return {"authorization": f"Bearer {text}"}, token.id


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def routes(calls):
    found = {}
    for path, operations in calls.app.openapi()["paths"].items():
        for method in operations:
            if not path.startswith(_OTHERS):
                found[f"{method.upper()} {path}"] = path
    return found


def test_every_route_takes_its_roles(folder):
    tokens = {role: token_of(folder, "default", role)[0] for role in token_table.ROLES}
    tokens["none"] = {}
    with running(ServiceSettings(folder, **POLL)) as calls:
        known = routes(calls) | {"GET /docs": "/docs", "GET /openapi.json": "/openapi.json"}
        assert known.keys() == ROLES.keys()
        for route, roles in ROLES.items():
            method, path = route.split()
            path = path.replace("{id}", "x").replace("{name}", "x")
            for role, headers in tokens.items():
                status = calls.call(method, path, **headers).status
                if roles is None:
                    assert status not in (401, 403), (route, role)
                elif role == "none":
                    assert status == 401, route
                else:
                    allowed = role == "admin" or role in roles.split()
                    assert (status != 403) == allowed, (route, role, status)


def test_tokens_are_shown_once_and_can_be_revoked(folder):
    admin, admin_id = token_of(folder, "default", "admin")
    with running(ServiceSettings(folder, **POLL)) as calls:
        made = calls.call(
            "POST", "/v1/tokens", {"name": "app", "roles": ["read"], "days": 1}, **admin
        )
        assert (made.status, made.headers["cache-control"]) == (201, "no-store")
        own = {"authorization": f"Bearer {made.json()['token']}"}
        assert calls.good("GET", "/v1", **own)["roles"] == ["read"]
        listed = calls.call("GET", "/v1/tokens", **admin)
        assert [each["name"] for each in listed.json()["tokens"]] == ["test", "app"]
        secret = made.json()["token"].rsplit("_", 1)[1]
        assert secret not in listed.body.decode()
        for file in folder.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes()
        calls.good("DELETE", f"/v1/tokens/{made.json()['id']}", **admin)
        assert calls.call("GET", "/v1", **own).kind == "unauthorized"
        assert calls.call("DELETE", "/v1/tokens/nobody", **admin).status == 404
        for wrong in ({"roles": []}, {"roles": ["king"]}, {"roles": "read"}, {"roles": ["read"]}):
            assert calls.call("POST", "/v1/tokens", wrong, **admin).status in (400, 422)
        # Another process creates one, and revokes another.
        other, _ = token_of(folder, "default", "admin")
        wait_until(lambda: calls.call("GET", "/v1", **other).status == 200)
        with TenantPlaces(folder).open("default") as catalog:
            assert TokenTable(catalog.database, "default").revoke(admin_id)
        wait_until(lambda: calls.call("GET", "/v1", **admin).status == 401)


def test_what_is_no_token_is_refused(folder):
    good, id_ = token_of(folder, "default", "admin")
    text = good["authorization"].removeprefix("Bearer ")
    with running(ServiceSettings(folder, **POLL)) as calls:
        assert calls.call("GET", "/v1", authorization=f"bearer {text}").status == 200
        for wrong in (
            "",
            "Basic YTpi",
            text,
            "Bearer ",
            f"Bearer {text[:-1]}",
            f"Bearer {text}x",
            f"Bearer {text.replace('default', 'nobody')}",
            f"Bearer bt_default_{id_}_",
            f"Bearer bt_../../x_{id_}_{'a' * 40}",
            "Bearer " + "a" * 10_000,
        ):
            answer = calls.call("GET", "/v1", authorization=wrong)
            assert answer.kind == "unauthorized", wrong
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_an_expired_token_is_refused(folder, monkeypatch):
    with TenantPlaces(folder).create("default") as catalog:
        Journal(catalog.database)
        table = TokenTable(catalog.database, "default")
        soon = time.time_ns() // 1000 + 3_600 * 1_000_000
        text, _ = table.create("short", ["admin"], None, soon)
        with pytest.raises(OptionError, match="past"):
            table.create("over", ["admin"], None, 1)
    with running(ServiceSettings(folder, **POLL)) as calls:
        assert calls.call("GET", "/v1", authorization=f"Bearer {text}").status == 200
        now = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: now + 3_601 * 10**9)
        answer = calls.call("GET", "/v1", authorization=f"Bearer {text}")
        assert "expired" in answer.json()["detail"]


def test_tenants_do_not_see_each_other(folder):
    """Of everything that one makes, the other sees nothing: both do the same, with other data."""
    tokens = {name: token_of(folder, name, "admin") for name in ("acme", "apex", "default")}
    with running(ServiceSettings(folder, **POLL)) as calls:
        for name, (headers, _) in tokens.items():
            row = {"id": "s", "expression": "u IN SET vips", "subscriber": "ann"}
            calls.good("PUT", "/v1/sets/vips", {"members": [f"{name}-secret"]}, **headers)
            calls.good(
                "POST", SUBSCRIPTIONS, {**row, "metadata": {"of": f"{name}-secret"}}, **headers
            )
            own = {"id": f"{name}-secret", "expression": f"u = '{name}-secret'"}
            calls.good("POST", SUBSCRIPTIONS, own, **headers)
        streams = {}
        for name, (headers, _) in tokens.items():
            listening = calls.listen("/v1/subscribers/ann/matches", **headers)
            streams[name] = listening, listening.__enter__()
        for name, (headers, _) in tokens.items():
            for other in tokens:
                event = [{"u": f"{other}-secret", "by": f"{name}-event"}]
                told = calls.good("POST", "/v1/events", event, **headers)
                assert told["matches"] == (2 if other == name else 0)
        for name, (listening, stream) in streams.items():
            (event,) = stream.take(1)
            assert f"{name}-secret" in event["data"]
            listening.__exit__(None, None, None)
        for name, (headers, _) in tokens.items():
            assert calls.good("GET", "/v1", **headers)["tenant"] == name
            for place in (
                SUBSCRIPTIONS,
                "/v1/sets",
                "/v1/sets/vips",
                "/v1/changes?since=0",
                "/v1/versions",
                f"/v1/history/{name}-secret",
                "/v1/matches?after=0",
                "/v1/subscribers/ann/matches",
                "/v1/audit",
                "/v1/tokens",
                "/v1/letters/dead",
            ):
                body = calls.call("GET", place, **headers).body.decode()
                for other, (_, token_id) in tokens.items():
                    if other != name:
                        assert f"{other}-secret" not in body, (name, place)
                        assert token_id not in body, (name, place)
            for other, (_, token_id) in tokens.items():
                if other != name:
                    place = f"{SUBSCRIPTIONS}/{other}-secret"
                    for method in ("GET", "DELETE"):
                        assert calls.call(method, place, **headers).status == 404
                    undo = calls.call("POST", "/v1/undo", {"id": f"{other}-secret"}, **headers)
                    assert undo.status == 404
                    gone = calls.call("DELETE", f"/v1/tokens/{token_id}", **headers)
                    assert gone.status == 404
            assert "secret" not in calls.call("GET", "/metrics", **headers).body.decode()
        # The secret of one tenant's token does not open another's.
        mixed = tokens["acme"][0]["authorization"].replace("_acme_", "_apex_")
        assert calls.call("GET", "/v1", authorization=mixed).status == 401


def test_names_of_tenants_are_checked(folder):
    places = TenantPlaces(folder)
    for wrong in ("", "A", "a/b", "..", "a_b", "a" * 41, "ü", "1a", 5):
        with pytest.raises(OptionError, match="tenant's name"):
            places.create(wrong)
    with pytest.raises(OptionError, match="no tenant"):
        places.open("nobody")
    with pytest.raises(OptionError, match="SQLite"):
        TenantPlaces(folder, f"sqlite:///{folder}/x.db")
    assert places.names() == ["default"]
    places.create("acme").close()
    assert places.names() == ["default", "acme"]


# Without tokens


def test_without_tokens_only_this_machine_is_served(folder):
    with running(ServiceSettings(folder, **POLL)) as calls:
        for host in ("localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080"):
            assert calls.call("GET", "/v1", host=host).status == 200
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8080",
            "",
            "[",
        ):
            assert calls.call("GET", "/v1", host=host).status == 403
        own = {"host": "localhost:8080", "origin": "http://localhost:8080"}
        assert calls.call("POST", "/v1/match", {}, **own).status == 200
        for origin in (
            *("http://evil.example", "null", "http://localhost:81", "http://localhost"),
            *("http://[", "http://]", "http://[localhost:8080"),
        ):
            assert calls.call("DELETE", "/v1/tokens/x", origin=origin).kind == "forbidden", origin
            assert calls.call("POST", "/v1/session", {}, origin=origin).kind == "forbidden", origin
            answer = calls.call("POST", "/v1/match", {}, origin=origin)
            assert answer.kind == "forbidden", origin
        assert calls.call("GET", "/v1", sec_fetch_site="cross-site").status == 403
        assert calls.call("GET", "/v1", sec_fetch_site="none").status == 200
        # With the first token that ends.
        made = calls.good("POST", "/v1/tokens", {"name": "a", "roles": ["admin"]})
        assert calls.call("GET", "/v1").status == 401
        assert calls.call("GET", "/v1", authorization=f"Bearer {made['token']}").status == 200


def test_a_service_that_others_reach_needs_a_token(folder):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        settings = ServiceSettings(folder, host=host, **POLL)
        with pytest.raises(OptionError, match="bittern token create"):
            server.check_tokens(settings)
        with running(settings) as calls:  # nor is it served if it were started otherwise
            assert calls.call("GET", "/v1", host="localhost").status == 401
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        server.check_tokens(ServiceSettings(folder, host=host, **POLL))
    token_of(folder, "acme", "read")
    server.check_tokens(ServiceSettings(folder, host="0.0.0.0", **POLL))


def test_a_page_has_its_token_in_a_cookie(folder):
    headers, _ = token_of(folder, "default", "admin")
    text = headers["authorization"].removeprefix("Bearer ")
    with running(ServiceSettings(folder, **POLL)) as calls:
        begun = calls.call("POST", "/v1/session", {"token": text})
        cookie = begun.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        pair = cookie.split(";")[0]
        assert calls.call("GET", "/v1", cookie=pair).status == 200
        assert calls.call("GET", "/v1", cookie=pair, origin="http://evil.example").status == 403
        assert calls.call("GET", "/v1", cookie="bittern_token=nothing").status == 401
        assert calls.call("POST", "/v1/session", {"token": text[:-1]}).status == 401
        foreign = calls.call("POST", "/v1/session", {"token": text}, origin="http://evil.example")
        assert foreign.status == 403
        assert calls.call("POST", "/v1/session", {"token": "a" * 5000}).status == 413
        assert "Max-Age=0" in calls.call("DELETE", "/v1/session").headers["set-cookie"]


# Limits, headers, logs


def test_limits_of_tokens(folder):
    small, _ = token_of(folder, "default", "admin", body=100, subscriptions=2)
    roomy, _ = token_of(folder, "default", "admin", subscriptions=3)
    fast, _ = token_of(folder, "default", "admin")
    slow, _ = token_of(folder, "default", "read", rate=1)
    with running(ServiceSettings(folder, body=1000, poll=POLL["poll"])) as calls:
        assert calls.call("POST", "/v1/match", {"a": "x" * 200}, **small).kind == "too-large"
        assert calls.call("POST", "/v1/match", {"a": "x" * 200}, **fast).status == 200
        assert calls.call("POST", "/v1/match", {"a": "x" * 2000}, **fast).kind == "too-large"
        lying = calls.call("POST", "/v1/match", b"{}", content_length="99999999999999999", **fast)
        assert lying.status == 413
        for n, status in enumerate((201, 201, 403)):
            row = {"id": f"s{n}", "expression": "a = 1"}
            assert calls.call("POST", SUBSCRIPTIONS, row, **small).status == status
        # What is there already takes no more room.
        put = calls.call("PUT", f"{SUBSCRIPTIONS}/s0", {"expression": "a = 2"}, **small)
        assert put.status == 200
        assert calls.good("POST", "/v1/undo", {"id": "s0"}, **small)["expression"] == "a = 1"
        more = [{"id": f"l{n}", "expression": "a = 1"} for n in range(3)]
        answer = calls.call("POST", f"{SUBSCRIPTIONS}/load", more[:1], **small)
        assert answer.kind == "too-many-subscriptions"
        # Several rules may stand in one line.
        asked = {"format": "json_logic", "text": '[{"==": [{"var": "a"}, 1]}, {"var": "b"}]'}
        path = f"{SUBSCRIPTIONS}/import?format=json_logic"
        for way in ((path, asked["text"].encode()), ("/console/api/import", asked)):
            assert calls.call("POST", *way, **roomy).kind == "too-many-subscriptions", way
        two = [{"id": f"s{n}", "expression": "a = 3"} for n in range(2)]
        replaced = calls.good("POST", f"{SUBSCRIPTIONS}/load?mode=replace", two, **small)
        assert replaced["changed"] == 2
        assert calls.good("POST", f"{SUBSCRIPTIONS}/load", more, **fast)["added"] == 3
        answers = [calls.call("POST", "/v1/match", {}, **slow) for _ in range(20)]
        assert answers[0].status == 200
        refused = [answer for answer in answers if answer.status != 200]
        assert {answer.kind for answer in refused} == {"too-many-requests"}
        assert refused[0].headers["retry-after"] == "1"
        assert calls.call("POST", "/v1/match", {}, **fast).status == 200


def test_an_event_without_options_is_answered_as_one_with(folder):
    """It takes a shorter way, past routing, on which nothing may be forgotten."""
    admin, _ = token_of(folder, "default", "admin")
    publisher, _ = token_of(folder, "default", "publish")
    small, _ = token_of(folder, "default", "read", body=100)
    asked = [
        (b'{"a": 1}', admin),
        (b'{"a": 1}', small),
        (b'{"a": 1}', publisher),
        (b'{"a": 1}', {}),
        (b'{"a": 1}', {"authorization": "Bearer bt_default_x_y"}),
        (b'{"a": 1}', {**admin, "content_type": "text/plain"}),
        (b'{"a": 1}', {**admin, "content_encoding": "gzip"}),
        (b'{"a": 1}\n{"a": 2}', {**admin, "content_type": "application/x-ndjson"}),
        (b'{"a": ', admin),
        (b"", admin),
        (b"\xff", admin),
        (json.dumps({"a": "x" * 200}).encode(), small),
        (json.dumps({"a": "x" * 100_000, "b": 1}).encode(), admin),
    ]
    statuses = set()
    with running(ServiceSettings(folder, **POLL)) as calls:
        row = {"id": "s1", "expression": "a = 1 OR b = 1"}
        calls.good("POST", SUBSCRIPTIONS, row, **admin)
        for body, headers in asked:
            short = calls.call("POST", "/v1/match", body, **headers)
            long = calls.call("POST", "/v1/match?limit=1000", body, **headers)
            assert short == long, body
            statuses.add(short.status)
        assert statuses == {200, 400, 401, 403, 413, 415, 422}
        text = calls.call("GET", "/metrics", **admin).body.decode()
        assert f'route="/v1/match",status="200"}} {2 * 4}.0' in text


def test_answers_have_the_headers_that_keep_pages_safe(folder):
    with running(ServiceSettings(folder, **POLL)) as calls:
        for path in (
            "/v1",
            "/nowhere",
            "/docs",
            "/openapi.json",
            "/healthz",
            "/v1/subscriptions/x",
        ):
            headers = calls.call("GET", path).headers
            assert headers["x-content-type-options"] == "nosniff"
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "access-control-allow-origin" not in headers
        preflight = calls.call(
            "OPTIONS",
            "/v1/match",
            origin="http://evil.example",
            access_control_request_method="POST",
        )
        assert preflight.status >= 400
        assert "access-control-allow-origin" not in preflight.headers
        assert calls.call("GET", "/nowhere").kind == "not-found"
        assert calls.call("DELETE", "/v1/match").kind == "method-not-allowed"


def test_the_description_loads_nothing_from_elsewhere(folder):
    with running(ServiceSettings(folder, **POLL)) as calls:
        page = calls.call("GET", "/docs")
        assert page.headers["content-type"].startswith("text/html")
        text = page.body.decode()
        assert "/v1/subscriptions/{id}" in text
        assert "://" not in text
        assert "<script" not in text


def test_changes_are_written_down(folder):
    headers, id_ = token_of(folder, "default", "admin")
    with running(ServiceSettings(folder, **POLL)) as calls:
        row = {"id": "s1", "expression": "a = 1"}
        version = calls.good("POST", SUBSCRIPTIONS, row, **headers)["version"]
        calls.call("POST", SUBSCRIPTIONS, {"id": "s2", "expression": "a ="}, **headers)
        calls.good("PUT", "/v1/sets/vips", {"members": [1]}, **headers)
        calls.good("POST", "/v1/tokens", {"name": "app", "roles": ["read"]}, **headers)
        told = calls.good("GET", "/v1/audit", **headers)["changes"]
        assert [(each["action"], each["target"], each["outcome"]) for each in told] == [
            ("create token", "app", "done"),
            ("put set", "vips", "done"),
            ("create", "s2", "refused: bad-subscription"),
            ("create", "s1", "done"),
        ]
        assert told[-1]["version"] == version
        assert {each["actor"] for each in told} == {f"{id_} (test)"}
        older = calls.good("GET", f"/v1/audit?before={told[1]['number']}&limit=1", **headers)
        assert older["changes"] == [told[2]]


def test_requests_are_counted_and_logged(folder, caplog):
    with running(ServiceSettings(folder, **POLL)) as calls, caplog.at_level(logging.INFO):
        calls.good("POST", "/v1/match", {"a": 1})
        calls.call("GET", "/v1/subscriptions/secret-id")
        text = calls.call("GET", "/metrics").body.decode()
        assert 'bittern_requests_total{method="POST",route="/v1/match",status="200"} 1.0' in text
        assert 'route="/v1/subscriptions/{id:path}",status="404"' in text
        assert "bittern_events_matched_total 1.0" in text
        assert "secret-id" not in text
        assert any('"path": "/v1/match", "status": 200' in each for each in caplog.messages)


def test_a_line_of_the_log_is_one_json_object():
    def line(message, *given, error=None):
        record = logging.LogRecord("bittern.service", 20, "", 0, message, given, error)
        told = server.JsonFormatter().format(record)
        assert "\n" not in told
        return json.loads(told)

    parts = line(Told(path='/v1/"\n', status=200))
    assert (parts["path"], parts["status"], parts["level"]) == ('/v1/"\n', 200, "info")
    assert "message" not in parts
    # What only looks like an object may come from a caller, and stays a text.
    assert line("%s", '{"level": "forged"}')["message"] == '{"level": "forged"}'
    wrong = ValueError("two\nlines")
    told = line("it failed", error=(ValueError, wrong, None))
    assert "two\nlines" in told["error"]


def test_our_own_mistakes_are_logged_and_not_told(folder, monkeypatch, caplog):
    with running(ServiceSettings(folder, **POLL)) as calls:
        tenant = calls.state.tenants["default"]
        monkeypatch.setattr(tenant.catalog, "versions", lambda _: 1 // 0)
        answer = calls.call("GET", "/v1/versions")
        assert answer.kind == "failure"
        assert "ZeroDivision" not in answer.body.decode()
        number = answer.json()["detail"].split()[-1]
        (record,) = [each for each in caplog.records if number in each.getMessage()]
        assert record.exc_info[0] is ZeroDivisionError


def test_a_tenant_that_cannot_be_loaded_is_closed_again(folder, monkeypatch):
    closed = []

    def fails(name, catalog, _settings):
        catalog.close()
        monkeypatch.setattr(catalog, "close", lambda: closed.append(name))
        raise CatalogError("the catalog is damaged")

    with running(ServiceSettings(folder, **POLL)) as calls:
        with monkeypatch.context() as patch:
            patch.setattr(state, "Tenant", fails)
            headers, _ = token_of(folder, "acme", "read")
            wait_until(lambda: "acme" in calls.state.known)
            assert calls.call("GET", "/v1", **headers).status >= 400
        assert closed == ["acme"]
        assert calls.call("GET", "/v1", **headers).status == 200
