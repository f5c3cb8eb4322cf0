"""Webhooks: which addresses are refused, what is tried again, and what arrives."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from bittern.delivery import addresses
from bittern.delivery import lanes as delivery
from bittern.delivery.addresses import (
    RefusedError,
    is_allowed,
    networks,
    parse,
    resolve,
    url_in,
)
from bittern.delivery.lanes import Delivery, Outcome, Terms, Time
from bittern.delivery.posting import Post, Reply, Request, UnreachableError, check_headers
from bittern.errors import OptionError
from bittern.spark.sink.part_files import Table
from bittern.spark.streaming.letters import LetterTask, pieces
from bittern.spark.streaming.webhook import Webhook
from steady import PATIENCE, free_port
from webhook_receivers import (
    LOOPBACK,
    Receiver,
    answer,
    drip,
    endless_headers,
    flood,
    raw,
    silence,
)

SECRET = "correct horse battery staple"


def request_to(
    url: str, number: int = 0, body: bytes = b"{}", subscriber: str | None = "ann"
) -> Request:
    return Request(subscriber, url, f"{number:032x}", body, 1)


class Fast(Time):
    """Waits no time, and notes how long it would have been; one thread only."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.clock

    def wait(self, changed: threading.Condition, seconds: float) -> None:  # noqa: ARG002
        self.waits.append(round(seconds, 6))
        self.clock += seconds + 1e-9  # never a little early, however sums are rounded

    def jitter(self, most: float) -> float:
        return most


def outcomes(
    requests: list[Request],
    post: delivery.Poster | None = None,
    time: Time | None = None,
    suspects: tuple[delivery.Endpoint, ...] = (),
    **terms: float,
) -> list[Outcome]:
    given = Terms(**({"concurrency": 1, "timeout": 60.0} | terms))  # type: ignore[arg-type]
    post = post or Post(networks(LOOPBACK))
    return list(Delivery(post, given, suspects, time or Fast()).run(requests))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


# Addresses


PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
    "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::808:808",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:a00:1::", "2001::1", "2001:0:7f00:1::80ff:fffe",
    "2001:db8::1", "2001:10::1", "3fff::1", "100::1", "5f00::1", "fc00::1", "fd00:ec2::254",
    "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "::ffff:0:127.0.0.1", "fe80::1%eth0",
    "2606:4700::1%eth0",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1",
    "172.32.0.1", "169.253.1.1", "192.0.1.1", "223.255.255.254", "2606:4700::1111",
    "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not is_allowed(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_allowed(address: str) -> None:
    assert is_allowed(ip_address(address))


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"])
def test_a_network_can_be_allowed_and_nothing_else_is(address: str) -> None:
    assert is_allowed(ip_address(address), networks(["10.0.0.0/8"]))
    assert not is_allowed(ip_address(address), networks(["11.0.0.0/8", "::/0"]))
    assert not is_allowed(ip_address("127.0.0.1"), networks(["10.0.0.0/8"]))


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_judged_as_what_it_stands_for(address) -> None:
    four = int(address)
    for wrapped in ((0xFFFF << 32) + four, (0x64FF9B << 96) + four, (0x2002 << 112) + (four << 80)):
        assert is_allowed(ip_address(wrapped.to_bytes(16, "big"))) == is_allowed(address)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("10.0.0.0/8", "private must be a list of networks"),
        (["10.0.0.1/8"], "has host bits set"),
        (["localhost"], "'localhost' does not appear to be"),
    ],
)
def test_networks_that_are_none(wrong, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        networks(wrong)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.example", ("https", "a.example", 443, "/", "a.example")),
        ("HTTPS://A.Example:443/X?y=1#z", ("https", "a.example", 443, "/X?y=1", "a.example")),
        ("http://a.example:8080?x", ("http", "a.example", 8080, "/?x", "a.example:8080")),
        ("http://a.example:443/", ("http", "a.example", 443, "/", "a.example:443")),
        ("http://8.8.8.8/", ("http", "8.8.8.8", 80, "/", "8.8.8.8")),
        ("http://[2606:4700::1]:8081/",
         ("http", "2606:4700::1", 8081, "/", "[2606:4700::1]:8081")),
        ("https://xn--bcher-kva.example/@me", ("https", "xn--bcher-kva.example", 443, "/@me",
                                              "xn--bcher-kva.example")),
        ("https://1.2.3.4.example/", ("https", "1.2.3.4.example", 443, "/", "1.2.3.4.example")),
    ],
)  # fmt: skip
def test_urls_are_taken_apart(url: str, target: tuple[str, str, int, str, str]) -> None:
    found = parse(url)
    assert (found.scheme, found.host, found.port, found.path, found.authority) == target


STRANGE = [
    "", "hooks", "//a.example/", "ftp://a.example/", "file:///etc/passwd", "gopher://a.example:70/",
    "javascript:alert(1)", "http:", "http://", "http:///x", "http:a.example", "https:/a.example/",
    # Other ways to write 127.0.0.1, all of which a resolver would take.
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
    "http://017700000001/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0x/",
    "http://127.0.0.01/", "http://127.0.0.1./", "http://127.0.0.0x1/", "http://1.2.3.4.5/",
    "http://127。0。0。1/", "http://\uff11\uff12\uff17.0.0.1/", "http://①②⑦.0.0.1/",
    "http://ⓛocalhost/",
    "http://[::1%25lo]/", "http://[fe80::1%eth0]/", "http://[::1/", "http://::1/", "http://[::1]x/",
    "http://[::1].a.example/", "http://[127.0.0.1]/", "http://[abc]/", "http://[v1.x]/",
    # Users, and what looks like one.
    "http://user@a.example/", "http://user:password@a.example/", "http://a.example@127.0.0.1/",
    "http://127.0.0.1:80@a.example/", "http://@a.example/", "http://a.example:80\\@127.0.0.1/",
    "http://a.example\\.b.example/", "http:\\\\a.example/",
    # Names that are none, and other alphabets.
    "http://bücher.example/", "http://a..example/", "http://.example/", "http://a.example./",
    "http://-a.example/", "http://a-.example/", f"http://{'a' * 64}.example/",
    f"http://{'a.' * 127}example/", "http://a%2eexample/", "http://%6cocalhost/", "http://a b/",
    # Ports.
    "http://a.example:25/", "http://a.example:22/", "http://a.example:0/", "http://a.example:/",
    "http://a.example:65536/", "http://a.example:99999/", "http://a.example:-1/",
    "http://a.example:8080x/", "http://a.example:٨٠٨٠/", "http://a.example:+8080/",
    # More than one request line.
    "http://a.example/\r\nX: y", "http://a.example/ HTTP/1.1\r\nHost: b\r\n\r\n",
    "http://a.\texample/", "http://a.example/\x00", " http://a.example/", "http://a.example/\n", "http://a.example/é",
    "http://a.example/\x7f", "http://a.example/\u2028", f"http://a.example/{'x' * 2048}",
]  # fmt: skip


@pytest.mark.parametrize("url", STRANGE)
def test_strange_urls_are_refused_before_anything_is_resolved(url: str) -> None:
    with pytest.raises(RefusedError):
        parse(url)


@given(st.text() | st.from_regex(r"https?://[^ ]{0,30}"))
def test_a_url_is_refused_or_fits_in_a_request(url: str) -> None:
    try:
        target = parse(url)
    except RefusedError:
        return
    assert f"{target.path}{target.authority}".isascii()
    assert not set(f"{target.path}{target.authority}") & set(" \r\n\t\x00\\")
    assert "@" not in target.authority


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("http://user:password@a.example/x", "http://***@a.example/x"),
        ("http://user:pass/word@a.example", "http://***@a.example"),
        ("http:\\\\user:password@a.example", "http:***@a.example"),
        ("ftp://x\ny:password@a", "ftp://***@a"),
        ("https://a.example/@me", "https://a.example/@me"),
        ("nonsense", "nonsense"),
    ],
)
def test_passwords_are_not_written_down(url: str, written: str) -> None:
    assert addresses.shown(url) == written


class Names:
    """A name service: what each name resolves to, one answer after the other, and who asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", ".").encode(): lists for name, lists in answers.items()}
        self.asked: list[bytes] = []
        self.real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host, port, *args, **kwargs):
        if host not in self.answers:
            assert ip_address(host)  # nobody asks for another name
            return self.real(host, port, *args, **kwargs)
        self.asked.append(host)
        lists = self.answers[host]
        found = lists.pop(0) if len(lists) > 1 else lists[0]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "",
             (each, port))
            for each in found
        ]  # fmt: skip


def test_all_addresses_of_a_name_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, a_example=[["93.184.216.34", "2606:4700::1", "10.0.0.1"]])
    with pytest.raises(RefusedError, match=r"10\.0\.0\.1 \(an address of a\.example\)"):
        resolve(parse("https://a.example/"), ())
    found = resolve(parse("https://a.example/"), networks(["10.0.0.0/8"]))
    assert list(map(str, found)) == ["93.184.216.34", "2606:4700::1", "10.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_nothing_is_sent_to_this_host(receiver: Receiver, host: str) -> None:
    url = receiver.url(host=host)
    (outcome,) = outcomes([request_to(url)], Post())
    assert outcome.reason is not None
    assert "is not public" in outcome.reason
    assert not receiver.arrived


def test_a_name_is_resolved_once_and_that_address_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(monkeypatch, a_example=[["127.0.0.1"], ["10.0.0.1"]])
    url = receiver.url("/x", host="a.example")
    (first,) = outcomes([request_to(url)])
    assert first == Outcome(request_to(url), 1, 200)
    assert names.asked == [b"a.example"]
    assert receiver.arrived[0].headers["host"] == f"a.example:{receiver.server_port}"
    (second,) = outcomes([request_to(url)])
    assert second.reason is not None
    assert "10.0.0.1 (an address of a.example) is not public" in second.reason
    assert len(receiver.arrived) == 1


def test_another_address_of_a_name_is_tried(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    Names(monkeypatch, a_example=[["127.0.0.2", "127.0.0.1"]])  # nobody listens at the first
    (outcome,) = outcomes([request_to(receiver.url(host="a.example"))])
    assert (outcome.attempts, outcome.status) == (1, 200)


def test_a_name_that_is_not_known_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch, a_example=[[]])
    (outcome,) = outcomes([request_to("http://a.example/")], attempts=3)
    assert outcome.reason == "no answer: Name or service not known"
    assert (outcome.attempts, len(names.asked)) == (3, 3)


def test_proxies_of_the_environment_are_not_used(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (outcome,) = outcomes([request_to(receiver.url())])
    assert outcome.reason is None


# One request


def test_what_is_sent(receiver: Receiver) -> None:
    post = Post(networks(LOOPBACK), check_headers({"X-Token": "a b"}), SECRET.encode())
    body = json.dumps({"matches": [{"ö": 1}]}).encode()
    sent = request_to(receiver.url("/a?b=1"), 7, body)
    assert post(parse(sent.url), sent, 5) == Reply(200, 0)
    (arrived,) = receiver.arrived
    assert (arrived.path, arrived.body) == ("/a?b=1", body)
    signed = hmac.new(SECRET.encode(), sent.key.encode() + b"." + body, hashlib.sha256)
    assert arrived.headers == {
        "host": f"127.0.0.1:{receiver.server_port}",
        "connection": "close",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "idempotency-key": sent.key,
        "bittern-signature": f"sha256={signed.hexdigest()}",
        "x-token": "a b",
    }


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"X-Token": "hidden\r\nX-Other: 1"}, "the value of X-Token is not"),
        ({"X-Token": "hidden\x00"}, "the value of X-Token is not"),
        ({"X-Token": "hiddén"}, "the value of X-Token is not"),
        ({"X-Token": ""}, "the value of X-Token is not"),
        ({"X Token": "hidden"}, "is not the name of a header"),
        ({"X:": "hidden"}, "is not the name of a header"),
        ({"": "hidden"}, "is not the name of a header"),
        ({"HOST": "hidden"}, "HOST is set by the webhook itself"),
        ({"transfer-encoding": "hidden"}, "is set by the webhook itself"),
        ({"Idempotency-Key": "hidden"}, "is set by the webhook itself"),
    ],
)
def test_headers_that_cannot_be_sent(headers: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        check_headers(headers)
    assert "hid" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_status_of_success_is_one(receiver: Receiver, status: int) -> None:
    receiver.told["/"] = [answer(status)]
    (outcome,) = outcomes([request_to(receiver.url())])
    assert (outcome.attempts, outcome.status, outcome.reason) == (1, status, None)


@pytest.mark.parametrize(
    "behaviour",
    [
        flood,
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1"),
        raw(b"HTTP/1.1 200 OK\r\nX-Half: "),
    ],
)
def test_what_follows_the_status_does_not_count(receiver: Receiver, behaviour) -> None:
    """Whether it does not end, or breaks off."""
    receiver.told["/"] = [behaviour]
    (outcome,) = outcomes([request_to(receiver.url())])
    assert (outcome.attempts, outcome.status, outcome.reason) == (1, 200, None)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (silence, "out of time"),
        (drip, "out of time"),
        (endless_headers, "HTTPException"),
        (raw(), "RemoteDisconnected"),
        (raw(b"HTTP/1.1 2"), "BadStatusLine"),
        (raw(b"<html>password</html>\r\n"), "BadStatusLine"),
        (raw(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 70000), "LineTooLong"),
        (raw(b"\xff\xfe" * 100), "BadStatusLine"),
    ],
)
def test_no_answer_is_tried_again(receiver: Receiver, behaviour, reason: str) -> None:
    seconds = itertools.chain([3.0 if reason == "out of time" else 60.0], itertools.repeat(60.0))
    post = Post(networks(LOOPBACK))

    def first_time_in_a_hurry(target, request, _seconds):
        return post(target, request, next(seconds))

    receiver.told["/"] = [behaviour, answer(200)]
    (outcome,) = outcomes([request_to(receiver.url())], first_time_in_a_hurry)
    assert (outcome.attempts, outcome.status, outcome.reason) == (2, 200, None)
    assert [arrived.key for arrived in receiver.arrived] == [outcome.request.key] * 2


@pytest.mark.parametrize(
    ("behaviour", "timeout", "reason"),
    [(drip, 0.3, "out of time"), (silence, 0.3, "out of time"), (raw(), 60, "RemoteDisconnected")],
)
def test_who_never_answers_is_given_up_on(
    receiver: Receiver, behaviour, timeout: float, reason: str
) -> None:
    receiver.told["/"] = [behaviour]
    (outcome,) = outcomes([request_to(receiver.url())], timeout=timeout, attempts=2)
    assert outcome == Outcome(outcome.request, 2, None, f"no answer: {reason}", gave_up=True)


def test_an_endpoint_that_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections, and that is all
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        body = b"x" * (32 << 20)  # more than the kernel keeps
        (outcome,) = outcomes([request_to(url, body=body)], timeout=0.3, attempts=2)
    assert (outcome.attempts, outcome.reason) == (2, "no answer: out of time")


def test_nobody_listens() -> None:
    (outcome,) = outcomes([request_to(f"http://127.0.0.1:{free_port()}/")], attempts=2)
    assert (outcome.attempts, outcome.reason) == (2, "no answer: Connection refused")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    receiver.told["/"] = [answer(status, Location=receiver.url("/elsewhere"))]
    (outcome,) = outcomes([request_to(receiver.url())])
    assert outcome.reason == f"answered {status}: redirects are not followed"
    assert [arrived.path for arrived in receiver.arrived] == ["/"]


# Trying again


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 451])
def test_a_last_word_is_not_argued_with(receiver: Receiver, status: int) -> None:
    receiver.told["/"] = [answer(status), answer(200)]
    time = Fast()
    first, second = outcomes([request_to(receiver.url(), n) for n in range(2)], time=time)
    assert (first.attempts, first.status, first.reason) == (1, status, f"answered {status}")
    assert (second.attempts, second.status, second.reason) == (1, 200, None)
    assert not first.gave_up
    assert time.waits == []


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_other_statuses_are_tried_again(receiver: Receiver, status: int) -> None:
    receiver.told["/"] = [answer(status), answer(status), answer(200)]
    time = Fast()
    (outcome,) = outcomes([request_to(receiver.url())], time=time)
    assert (outcome.attempts, outcome.status, outcome.reason) == (3, 200, None)
    assert time.waits == [0.5, 1.0]
    assert [arrived.key for arrived in receiver.arrived] == [outcome.request.key] * 3


def always(status: int) -> delivery.Poster:
    return lambda *_: Reply(status, 0)


def test_waits_double_up_to_the_longest() -> None:
    time = Fast()
    (outcome,) = outcomes([request_to("http://a.example/")], always(503), time, attempts=7,
                          longest_wait=4.0)  # fmt: skip
    assert (outcome.attempts, outcome.status, outcome.reason) == (7, 503, "answered 503")
    assert time.waits == [0.5, 1, 2, 4, 4, 4]


def test_waits_are_spread_from_nothing_to_the_most() -> None:
    drawn = [Time().jitter(2.0) for _ in range(1000)]
    assert 0 <= min(drawn) < 0.2
    assert 1.8 < max(drawn) <= 2


def test_retry_after_is_honoured(receiver: Receiver) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    receiver.told["/"] = [
        answer(429, Retry_After="7"),
        answer(503, Retry_After=date),
        answer(503, Retry_After="-1"),
        answer(503, Retry_After="9" * 5000),
        answer(200),
    ]
    time = Fast()
    (outcome,) = outcomes([request_to(receiver.url())], time=time, within=5000.0)
    assert (outcome.attempts, outcome.status) == (5, 200)
    assert time.waits[0] == 7
    assert 3000 < time.waits[1] <= 3600
    assert time.waits[2:] == [2, 4]


@pytest.mark.parametrize("asked", ["61", "999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_who_asks_for_too_long_a_wait_is_given_up_on(receiver: Receiver, asked: str) -> None:
    receiver.told["/"] = [answer(429, Retry_After=asked), answer(200)]
    time = Fast()
    (outcome,) = outcomes([request_to(receiver.url())], time=time, attempts=2)
    assert (outcome.attempts, outcome.status, outcome.gave_up) == (1, 429, True)
    assert time.waits == []


def test_what_waits_behind_a_request_that_is_given_up_on_is_not_tried() -> None:
    calls = []

    def post(target, request, seconds):
        calls.append(request.key)
        return Reply(503, 0)

    requests = [request_to("http://a.example/", n) for n in range(4)]
    found = outcomes(requests, post, attempts=2)
    assert [(each.request, each.attempts) for each in found] == [
        (requests[0], 2), (requests[1], 0), (requests[2], 0), (requests[3], 0),
    ]  # fmt: skip
    assert found[3].reason == "not tried, because an earlier request failed: answered 503"
    assert calls == [requests[0].key] * 2


def test_suspects_get_one_attempt() -> None:
    pairs = [
        ("http://a.example/", "ann"),
        ("http://a.example/", "bob"),
        ("http://b.example/", "ann"),
    ]
    found = outcomes(
        [request_to(url, subscriber=who) for url, who in pairs], always(503), suspects=(pairs[0],)
    )
    assert {(each.request.url, each.request.subscriber): each.attempts for each in found} == {
        pairs[0]: 1,
        pairs[1]: 5,
        pairs[2]: 5,
    }


def test_an_endpoint_has_so_much_time_in_a_batch() -> None:
    time = Fast()
    given: list[float] = []

    def slow(target, request, seconds):
        given.append(seconds)
        time.clock += 4
        return Reply(200, 0)

    requests = [request_to("http://a.example/", n) for n in range(5)]
    found = outcomes(requests, slow, time, within=10.0, timeout=5.0)
    assert [each.status for each in found] == [200, 200, 200, None, None]
    assert given == [5, 5, 2]
    assert found[3].reason == "the endpoint took more than 10 s of this batch"
    assert [each.gave_up for each in found] == [False, False, False, True, False]


def test_a_host_is_given_up_on_after_three_endpoints_and_others_are_not() -> None:
    calls: list[str] = []

    def post(target, request, seconds):
        calls.append(f"{target.host}{target.path}")
        return Reply(503 if target.host == "dead.example" else 200, 0)

    urls = [f"http://dead.example/{n}" for n in range(6)] + ["http://b.example/"]
    found = outcomes([request_to(url) for url in urls], post, attempts=1)
    assert calls == ["dead.example/0", "dead.example/1", "dead.example/2", "b.example/"]
    assert [each.attempts for each in found] == [1, 1, 1, 0, 0, 0, 1]
    assert found[3].reason == "dead.example:80 was given up on: 3 endpoints in a row failed there"


@pytest.mark.parametrize(("concurrency", "attempts"), [(1, 1), (8, 2)])
def test_failing_endpoints_of_a_subscriber_stop_nobody_else(
    receiver: Receiver, concurrency: int, attempts: int
) -> None:
    """All on one host, and those that fail come first."""
    failing = [f"/a{n:02}" for n in range(12)]
    for path in failing:
        receiver.told[path] = [answer(503)]
    requests = [request_to(receiver.url(path), n) for path in failing for n in range(2)]
    healthy = [
        request_to(receiver.url(f"/b{who}"), n, subscriber=who)
        for who in ("bob", "cem", None)
        for n in range(5)
    ]
    terms = {"attempts": attempts, "first_wait": 0.001, "concurrency": concurrency}
    found = outcomes(requests + healthy, time=Time(), **terms)
    assert Counter(each.request for each in found) == Counter(requests + healthy)
    assert {each.request for each in found if each.reason is None} == {*healthy}
    for who in ("bob", "cem", None):
        assert len(receiver.at(f"/b{who}")) == 5
    tried = {each.request.url for each in found if each.reason and each.attempts}
    untried = {each.request.url for each in found if each.untried}
    assert tried | untried == {receiver.url(path) for path in failing}
    assert not tried & untried
    assert len(tried) >= 3
    if concurrency == 1:
        assert len(tried) == 3  # what one subscriber costs a batch is bounded


def test_a_subscriber_who_fails_at_a_url_stops_nobody_else_there() -> None:
    def post(target, request, seconds):
        return Reply(500 if request.subscriber == "ann" else 200, 0)

    requests = [
        request_to("http://a.example/", n, subscriber=who)
        for who in (None, "ann", "bob")
        for n in range(3)
    ]
    found = outcomes(requests, post, attempts=1)
    assert {each.request for each in found if each.reason is None} == {*requests[:3], *requests[6:]}


def test_a_host_that_takes_no_connection_is_given_up_on_for_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    requests = [request_to(f"http://127.0.0.1:{port}/{n}", subscriber=f"s{n}") for n in range(6)]
    found = outcomes(requests, attempts=1)
    assert [each.attempts for each in found] == [1, 1, 1, 0, 0, 0]
    assert [each.untried for each in found] == [False] * 3 + [True] * 3
    assert all(each.gave_up for each in found)
    assert (
        found[3].reason
        == f"127.0.0.1:{port} was given up on: 3 endpoints in a row got no connection"
    )


@pytest.mark.parametrize("within", [60.0, 5.0])
def test_attempts_without_time_for_a_connection_say_nothing_of_a_host(within: float) -> None:
    """An endpoint chooses, with Retry-After, how little time its last attempt has."""

    def post(target, request, seconds):
        if request.subscriber == "bob":
            return Reply(200, 0)
        if seconds < 1:
            raise UnreachableError from TimeoutError()
        return Reply(503, within - 0.001)

    urls = [f"http://a.example/{n}" for n in range(4)]
    requests = [request_to(url, subscriber=f"s{n}") for n, url in enumerate(urls)]
    bob = request_to("http://a.example/bob", subscriber="bob")
    found = outcomes([*requests, bob], post, timeout=10.0, within=within)
    assert [each.attempts for each in found if each.request != bob] == [2] * 4
    assert [each.reason for each in found if each.request == bob] == [None]


@pytest.mark.parametrize("within", [60.0, 15.0, 5.0])
def test_a_host_without_a_connection_in_all_the_time_is_given_up_on(within: float) -> None:
    """Even if the last attempt is a short one."""

    def post(target, request, seconds):
        raise UnreachableError from TimeoutError()

    requests = [request_to(f"http://a.example/{n}", subscriber=f"s{n}") for n in range(5)]
    found = outcomes(requests, post, timeout=10.0, within=within, first_wait=8.0)
    assert sum("3 endpoints in a row got no connection" in str(each.reason) for each in found) == 2


@pytest.mark.parametrize("behaviour", [silence, raw(), answer(503)])
def test_a_host_that_takes_connections_is_not_given_up_on(receiver: Receiver, behaviour) -> None:
    for n in range(5):
        receiver.told[f"/{n}"] = [behaviour]
    real = Post(networks(LOOPBACK))

    def post(target, request, seconds):
        """Whoever is silent is not waited for long, whoever answers as long as it takes."""
        return real(target, request, 0.3 if target.path in receiver.told else seconds)

    requests = [request_to(receiver.url(f"/{n}"), subscriber=f"s{n}") for n in range(6)]
    found = outcomes(requests, post if behaviour is silence else None, attempts=1)
    assert [each.attempts for each in found] == [1] * 6
    assert [each.reason is None for each in found] == [False] * 5 + [True]


@pytest.mark.parametrize("status", [200, 404])
def test_a_host_that_answers_between_failures_is_not_given_up_on(status: int) -> None:
    def post(target, request, seconds):
        return Reply(status if target.path in {"/2", "/5"} else 503, 0)

    found = outcomes([request_to(f"http://a.example/{n}") for n in range(8)], post, attempts=1)
    assert [each.attempts for each in found] == [1] * 8


def test_refused_addresses_are_not_tried_and_stop_nobody() -> None:
    urls = ["http://10.0.0.1/", "ftp://a.example/", "http://b.example/"]

    def post(target, request, seconds):
        resolve(target, ()) if target.host == "10.0.0.1" else None
        return Reply(200, 0)

    found = outcomes([request_to(url, n) for url in urls for n in range(2)], post)
    reasons = {each.request.url: each.reason for each in found}
    assert reasons["http://b.example/"] is None
    assert "10.0.0.1 is not public" in str(reasons["http://10.0.0.1/"])
    assert "does not start with http" in str(reasons["ftp://a.example/"])
    assert sum(each.attempts for each in found if each.reason) == 1
    assert len(found) == 6


# Many at once


def test_order_is_kept_within_a_url_and_all_arrive(receiver: Receiver) -> None:
    paths = [f"/{n}" for n in range(12)]
    for path in paths[::3]:
        receiver.told[path] = [answer(503), answer(200), answer(429), answer(200)]
    requests = [
        request_to(receiver.url(path), number, json.dumps(number).encode())
        for path in paths
        for number in range(5)
    ]
    found = outcomes(requests, time=Time(), concurrency=8, first_wait=0.001, within=600.0)
    assert len(found) == len(requests)
    assert all(each.reason is None for each in found)
    for path in paths:
        numbers = [int(arrived.body) for arrived in receiver.at(path)]
        assert sorted(set(numbers)) == list(range(5))
        assert numbers == sorted(numbers)
        assert len(numbers) == (7 if path in paths[::3] else 5)


def test_silent_endpoints_hold_up_nobody_else() -> None:
    """They answer only after all others were delivered to: if they held them up, none would be."""
    others = threading.Event()
    n_others = 40

    def post(target, request, seconds):
        if target.path.startswith("/silent"):
            assert others.wait(PATIENCE)
        else:
            seen.append(target.path)
            if len(seen) == n_others:
                others.set()
        return Reply(200, 0)

    seen: list[str] = []
    urls = [f"http://a.example/silent{n}" for n in range(3)]
    urls += [f"http://a.example/{n}" for n in range(n_others)]
    found = outcomes([request_to(url) for url in urls], post, Time(), concurrency=4)
    assert len(found) == len(urls)
    assert all(each.reason is None for each in found)


def test_endpoints_that_wait_for_another_attempt_occupy_no_thread() -> None:
    """One thread, and endpoints that fail until every one of them was tried."""
    tried: set[str] = set()
    paths = {f"/{n}" for n in range(20)}

    def post(target, request, seconds):
        tried.add(target.path)
        return Reply(200 if tried == paths else 503, 0)

    requests = [request_to(f"http://a.example{path}") for path in sorted(paths)]
    found = outcomes(requests, post, Time(), first_wait=0.01, longest_wait=0.01, attempts=50)
    assert all(each.reason is None for each in found)


def test_requests_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MOST_BYTES", 50_000)
    made = known = most = 0

    def requests():
        nonlocal made, most
        for number in range(200):
            made += 1
            most = max(most, made - known)
            yield request_to(f"http://a.example/{number % 200 // 10}", number, b"x" * 9_000)

    run = Delivery(always(200), Terms(concurrency=2)).run(requests())
    for _ in run:
        known += 1
    assert (made, known) == (200, 200)
    assert most <= 8


def test_an_error_of_our_own_is_raised_and_threads_end() -> None:
    def post(target, request, seconds):
        raise ZeroDivisionError

    before = threading.enumerate()
    with pytest.raises(ZeroDivisionError):
        outcomes([request_to("http://a.example/")], post, concurrency=4)
    assert not {*threading.enumerate()} - {*before}


def test_who_stops_taking_outcomes_leaves_no_thread() -> None:
    before = threading.enumerate()
    requests = [request_to(f"http://a.example/{n}") for n in range(100)]
    run = Delivery(always(200), Terms()).run(requests)
    assert next(run).reason is None
    run.close()
    assert not {*threading.enumerate()} - {*before}


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of a.example and its key, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "2", "-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example",
        "-keyout", folder / "key.pem", "-out", folder / "certificate.pem",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def safe(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    Names(monkeypatch, a_example=[["127.0.0.1"]], b_example=[["127.0.0.1"]])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    with Receiver(context) as receiver:
        yield receiver


def test_a_certificate_is_checked_against_the_name(
    safe: Receiver, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "certificate.pem"))
    good, other = (request_to(safe.url("/x", host=f"{name}.example")) for name in "ab")
    first, second = outcomes([good, other])
    assert (first.status, first.reason) == (200, None)
    assert second.attempts == 1
    assert second.reason is not None
    assert second.reason.startswith("certificate: Hostname mismatch")
    assert [arrived.headers["host"] for arrived in safe.arrived] == [
        f"a.example:{safe.server_port}"
    ]


def test_a_certificate_that_nobody_vouches_for(safe: Receiver) -> None:
    (outcome,) = outcomes([request_to(safe.url(host="a.example"))])
    assert outcome.attempts == 1
    assert str(outcome.reason).startswith("certificate: self")
    assert not safe.arrived


def test_an_endpoint_that_speaks_no_tls(receiver: Receiver) -> None:
    url = receiver.url().replace("http:", "https:")
    (outcome,) = outcomes([request_to(url)], attempts=1)
    assert str(outcome.reason).startswith("no answer: ")
    assert not receiver.arrived


# What a task does


def task_of(folder: Path, **changes) -> LetterTask:
    given = {
        "query_id": "q",
        "batch_id": 9,
        "version": 4711,
        "time": "2026-08-22T10:00:00+00:00",
        "terms": Terms(attempts=2, first_wait=0.0, timeout=60.0),
        "suspects": frozenset(),
        "most_matches": 2,
        "private": LOOPBACK,
        "headers": (("X-Token", SECRET),),
        "secret": SECRET.encode(),
        "dead_letters": Table(str(folder), "t", "zstd", {}),
    }
    return LetterTask(**(given | changes))


def rows_of(*rows: tuple[str, str | None, str]) -> list[pa.RecordBatch]:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return [pa.RecordBatch.from_arrays(columns, ["url", "subscriber", "match"])]


def test_matches_are_cut_by_url_and_subscriber(tmp_path: Path) -> None:
    rows = [
        ("a", None, "{}"),
        *(("b", "ann", f'{{"n": {n}}}') for n in range(5)),
        ("b", "bob", "{}"),
    ]
    requests = list(task_of(tmp_path).requests(rows))
    shape = [(each.url, each.subscriber, each.matches) for each in requests]
    assert shape == [("a", None, 1), *(("b", "ann", n) for n in (2, 2, 1)), ("b", "bob", 1)]
    assert json.loads(requests[3].body) == {
        "query": "q",
        "batch": 9,
        "version": 4711,
        "time": "2026-08-22T10:00:00+00:00",
        "subscriber": "ann",
        "request": 2,
        "matches": [{"n": 4}],
    }
    assert list(task_of(tmp_path).requests(rows)) == requests


SAME = [("a", "ann", "{}"), ("a", "ann", "{}"), ("a", "bob", "{}"), ("b", "ann", "{}")]


@pytest.mark.parametrize("changes", [{"query_id": "r"}, {"batch_id": 10}, {"version": 4712}])
def test_other_requests_have_other_keys(tmp_path: Path, changes) -> None:
    keys = {each.key for each in task_of(tmp_path).requests(SAME)}
    assert len(keys) == 3
    assert not keys & {each.key for each in task_of(tmp_path, **changes).requests(SAME)}


def test_matches_that_are_cut_elsewhere_have_other_keys(tmp_path: Path) -> None:
    """Else a receiver would take a request with other matches for one that it has seen."""
    keys = {each.key for each in task_of(tmp_path).requests(SAME)}
    others = {each.key for each in task_of(tmp_path, most_matches=1).requests(SAME)}
    assert len(others) == 4
    assert len(keys & others) == 2  # of those who have a single match either way


def test_a_request_carries_so_many_characters() -> None:
    texts = ["x" * (400 << 10)] * 5 + ["y" * (3 << 20), "z"]
    assert [len(piece) for piece in pieces(texts, 100)] == [2, 2, 1, 1, 1]
    assert list(pieces([], 100)) == []


def test_a_task_reports_and_keeps_dead_letters(tmp_path: Path, receiver: Receiver) -> None:
    receiver.told["/gone"] = [answer(410)]
    receiver.told["/down"] = [answer(503)]
    receiver.told["/shaky"] = [answer(500), answer(200)]
    urls = [receiver.url(path) for path in ("/down", "/gone", "/good", "/shaky")]
    urls += ["http://10.0.0.1/", f"http://u:{SECRET.replace(' ', '')}@a.example/"]
    rows = [(url, "ann", f'{{"n": {n}}}') for url in urls for n in range(3)]
    task = task_of(tmp_path)
    (report,) = task.run(iter(rows_of(*rows)), 0, 1).to_pylist()
    assert report.pop("bytes") > 0
    assert report == {
        "file": "part-00000-1-t.parquet",
        "requests": 12,
        "matches": 18,
        # down 2, gone 1 each, good 1 each, shaky 1 more, 10.0.0.1 one, the last none
        "attempts": 2 + 2 + 2 + 3 + 1,
        "dead_requests": 8,
        "dead_matches": 12,
        "given_up": [[receiver.url("/down"), "ann"]],
        "untried": [],
    }
    assert len(receiver.arrived) == 9
    letters = pq.read_table(tmp_path / report["file"]).to_pylist()
    by_key = {request.key: request for request in task.requests(rows)}
    assert len({letter["idempotency_key"] for letter in letters}) == 8
    for letter in letters:
        assert letter["payload"].encode() == by_key[letter["idempotency_key"]].body
        assert (letter["version"], letter["subscriber"]) == (4711, "ann")
        assert letter["time"].tzinfo is not None
    found = Counter((each["url"], each["attempts"], each["status"]) for each in letters)
    assert found == {
        (urls[0], 2, 503): 1,
        (urls[0], 0, None): 1,
        (urls[1], 1, 410): 2,
        (urls[4], 1, None): 1,
        (urls[4], 0, None): 1,
        ("http://***@a.example/", 0, None): 2,
    }


def test_a_task_tells_who_was_not_tried(tmp_path: Path, receiver: Receiver) -> None:
    urls = [receiver.url(f"/{n}") for n in range(5)]
    for n in range(5):
        receiver.told[f"/{n}"] = [answer(503)]
    rows = [(url, "ann", f'{{"n": {n}}}') for url in urls for n in range(3)]
    task = task_of(tmp_path, terms=Terms(attempts=1, concurrency=1))
    (report,) = task.run(iter(rows_of(*rows)), 0, 1).to_pylist()
    assert sorted(report["given_up"]) == [[url, "ann"] for url in urls[:3]]
    assert sorted(report["untried"]) == [[url, "ann"] for url in urls[3:]]
    letters = pq.read_table(tmp_path / report["file"]).to_pylist()
    assert len(letters) == report["dead_requests"] == 10  # nothing is lost


def test_a_task_without_dead_letters_makes_no_file(tmp_path: Path, receiver: Receiver) -> None:
    batches = rows_of((receiver.url(), None, '{"n": 1}'))
    (report,) = task_of(tmp_path).run(iter(batches), 0, 1).to_pylist()
    assert (report["file"], report["requests"], report["given_up"]) == (None, 1, [])
    assert list(tmp_path.iterdir()) == []
    (empty,) = task_of(tmp_path).run(iter([]), 0, 1).to_pylist()
    assert (empty["file"], empty["requests"]) == (None, 0)


# The sink's arguments


def test_secrets_are_not_shown(tmp_path: Path, receiver: Receiver) -> None:
    sink = Webhook(dead_letters=tmp_path, headers={"X-Token": SECRET}, secret=SECRET)
    task = task_of(tmp_path)
    post = Post((), task.headers, task.secret)
    receiver.told["/"] = [answer(400, SECRET.encode(), X_Echo=SECRET)]
    (report,) = task.run(iter(rows_of((receiver.url(), "ann", "{}"))), 0, 1).to_pylist()
    (letter,) = pq.read_table(tmp_path / report["file"]).to_pylist()
    for text in (repr(sink), str(sink), repr(task), repr(post), repr(letter), repr(report)):
        assert SECRET not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts must be a whole number from 1 to 100, not 0"),
        ({"attempts": True}, "attempts must be a whole number"),
        ({"attempts": 2.5}, "attempts must be a whole number"),
        ({"concurrency": 0}, "concurrency must be a whole number"),
        ({"concurrency": 10_000}, "concurrency must be a whole number from 1 to 256"),
        ({"most_matches": "many"}, "most_matches must be a whole number"),
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout must be a number of seconds"),
        ({"within": float("inf")}, "within must be a number of seconds"),
        ({"first_wait": -1}, "first_wait must be a number of seconds"),
        ({"longest_wait": "1"}, "longest_wait must be a number of seconds"),
        ({"private": "10.0.0.0/8"}, "private must be a list of networks"),
        ({"private": ["10.0.0.0/33"]}, "private must list networks"),
        ({"headers": {"Host": "x"}}, "Host is set by the webhook itself"),
        ({"secret": ""}, "secret must be a string that is not empty"),
        ({"secret": 5}, "secret must be a string that is not empty"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, options, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Webhook(dead_letters=tmp_path, **options)


def test_dead_letters_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="dead_letters"):
        Webhook()  # type: ignore[call-arg]
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(
            OptionError, match="dead_letters must be a folder that driver and executors"
        ):
            Webhook(dead_letters=path).check(None)  # type: ignore[arg-type]
    with pytest.raises(
        OptionError, match="dead_letters must be a folder of a file system with paths"
    ):
        Webhook(dead_letters="s3://bucket/dead").check(None)  # type: ignore[arg-type]
    Webhook(dead_letters=tmp_path / "new" / "folder").check(None)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("metadata", "url"),
    [
        (None, None),
        ("", None),
        ("null", None),
        ("[]", None),
        ("{}", None),
        ("not JSON", None),
        ("[" * 100_000, None),
        ('{"webhook": null}', None),
        ('{"webhook": ""}', None),
        ('{"other": "http://a.example/"}', None),
        ('{"webhook": "http://a.example/"}', "http://a.example/"),
        ('{"webhook": 7}', "7"),
        ('{"webhook": ["http://a.example/"]}', '["http://a.example/"]'),
        ('{"webhook": "http://a\\ud800.example/"}', "http://a?.example/"),
    ],
)
def test_the_url_of_a_subscription(metadata: str | None, url: str | None) -> None:
    assert url_in(metadata, "webhook") == url
