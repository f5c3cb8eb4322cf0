"""The service's interface, fuzzed from its own description: no failure, no hang, problems in shape.

Schemathesis draws requests for every operation of the OpenAPI description, such as it allows and
such as it does not; they are sent in this process. What is drawn is bounded by the profile.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

from bittern.service.http.configuration import ServiceSettings
from effort import examples
from service_calls import ARROW, running

HOST = "http://localhost:8080"


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "data"
    settings = ServiceSettings(folder, poll=0.05, history=20, console=False)
    with running(settings) as calls:
        calls.good("POST", "/v1/subscriptions", {"id": "0", "expression": "a > 0"})
        calls.good("PUT", "/v1/sets/0", {"members": [1]})
        made = calls.good("POST", "/v1/tokens", {"name": "fuzz", "roles": ["admin"]})
        calls.bearer = {"authorization": f"Bearer {made['token']}"}
        yield calls


@schemathesis.serializer("application/x-ndjson", "application/ndjson", "application/jsonl", ARROW)
def as_bytes(_, value):
    """A drawn body that is not JSON: bytes as they are, values as a line."""
    raw = getattr(value, "data", value)
    return raw if isinstance(raw, bytes) else json.dumps(raw, default=str).encode()


#: Waiting is what these do when they are asked to.
NOT_DRAWN = {"wait"}


def prepared(case):
    """A drawn request, as it would be sent."""
    told = case.as_transport_kwargs(base_url=HOST)
    return requests.Request(
        told["method"],
        told["url"],
        params={k: v for k, v in (told.get("params") or {}).items() if k not in NOT_DRAWN},
        headers=told.get("headers"),
        data=told.get("data"),
        json=told.get("json"),
    ).prepare()


def sent(calls, case):
    try:
        request = prepared(case)
    except (requests.RequestException, ValueError):  # what no client can send
        return None
    parts = urlsplit(request.url)
    body = request.body.encode() if isinstance(request.body, str) else request.body
    own = {"host", "accept", "cookie", "authorization", "content_length"}
    headers = {}
    for name, value in request.headers.items():
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if name.lower() not in own:
            headers[name.lower()] = text.encode("latin-1", "replace").decode("latin-1")
    path = f"{parts.path}?{parts.query}"
    if path.startswith("/v1/tokens") and case.method.upper() == "DELETE":
        path = "/v1/tokens/another"  # not the one that all requests have
    return calls.call(case.method.upper(), path, bytes(body or b""), **headers, **calls.bearer)


def test_no_request_fails_or_hangs(calls):
    schema = schemathesis.openapi.from_dict(calls.app.openapi())
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 30
    seen = set()

    for operation in operations:
        drawn = st.one_of(
            operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=GenerationMode.NEGATIVE),
        )

        @examples(0.3)
        @given(drawn)
        def ask(case):
            answer = sent(calls, case)
            if answer is None:
                return
            seen.add(answer.status)
            assert answer.status < 500, (case, answer)
            if answer.status >= 400:
                assert answer.kind
                assert answer.json()["detail"]

        ask()
    assert {200, 400, 422} <= seen
    # It is as it was: an event is matched, and the catalog is sound.
    assert calls.good("POST", "/v1/match", {"a": 1}, **calls.bearer)["version"] > 0
    assert calls.state.tenants["default"].catalog.check() == []
