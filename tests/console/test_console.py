"""The console in a real browser: every page, by keyboard too, and with hostile names and events.

One service in a process of its own and one browser for all of it. No page may write to the
browser's log, and nothing that is in a name, an expression or an event is ever executed: each of
the hostile ones would set ``window.hacked``. With ``BITTERN_PICTURES=docs/pictures`` the pages are
kept as pictures.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

from chromium import Browser, browsing, why_no_browser
from steady import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
HOSTILE = """"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'{{7*7}}"""
HOSTILE_EVENT = {
    "price": 5,
    "title": "</pre><script>window.hacked=1</script><img src=x onerror=window.hacked=1>",
    "<b onclick=window.hacked=1>": "${window.hacked=1}",
}
#: What is published while a test waits for matches.
OFFER = {"product": "tent 4", "brand": "Heron", "price": 30, "colour": "red", "stock": 3}


def report(batch: int, pipeline: str = "shop") -> dict[str, Any]:
    """What a pipeline reports of a micro-batch."""
    numbers = {"version": 3, "newest": 3 + batch // 9 % 3, "matches": 150, "rejects": batch % 2}
    events, latency = 2000 + batch * 37 % 500, 0.5 + batch * 7 % 10 / 20
    told = {"time": f"2026-03-01T12:00:{batch:02}Z", "pipeline": pipeline, "batch": batch}
    return told | numbers | {"events": events, "latency": latency, "replayed": batch == 20}


class Shop:
    """A running service: its address, and requests to it."""

    def __init__(self, process: subprocess.Popen[str], address: str, reports: Path) -> None:
        self.process = process
        self.address = address
        self.reports = reports

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request that succeeds."""
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE)
        try:
            kind = "application/x-ndjson" if isinstance(body, list) else "application/json"
            lines = body if isinstance(body, list) else [body]
            content = None if body is None else "\n".join(map(json.dumps, lines))
            connection.request(method, path, content, {"Content-Type": kind})
            answer = connection.getresponse()
            told = answer.read()
        finally:
            connection.close()
        assert 200 <= answer.status < 300, told
        return json.loads(told)

    def publish(self, *events: Any) -> None:
        self.call("POST", "/v1/events", list(events))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The demo that ``make console`` starts, with fewer wishes, and the tests' own events."""
    reason = why_no_browser()
    if reason is not None:
        pytest.skip(f"NO BROWSER: {reason}")
    folder = tmp_path_factory.mktemp("shop") / "data"
    command = [sys.executable, "examples/console.py", "--folder", str(folder), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--wishes", "300", "--rate", "0", "--first", "400"],
        cwd=ROOT,
        env=os.environ | {"PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "The console is at" in line:
                break
        address = line.split()[-1]
        reports = folder / "pipelines" / "default"
        own = Shop(process, address, reports)
        wait_until(lambda: own.call("GET", "/console/api/pulse")["logged"] >= 400)
        reports.mkdir(parents=True)
        lines = [report(n) for n in range(40)]
        (reports / "shop.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"cut')
        yield own
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert (process.returncode, "The console has ended." in rest) == (0, True)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def open_browser(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(shop.address, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(open_browser: Browser) -> Iterator[Browser]:
    """The browser; afterwards nothing was refused, and nothing hostile was executed."""
    yield open_browser
    assert open_browser.run("return window.hacked") is None
    open_browser.check()


def test_write_save_see_it_match_find_out_why_and_undo(shop: Shop, page: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("/console/playground")
    # What is typed is completed from what events have.
    page.one("#expression").click()
    page.press("bra")
    page.shows("#names [aria-selected=true]", "brand")
    page.press(Keys.ENTER)
    assert page.value("#expression") == "brand"
    page.press(" = 'Heron' AND price <")
    page.shows("#mistake", "^")
    assert not page.one("#save").is_enabled()
    page.press(" 40 AND NOT used")
    page.fill("#event", json.dumps(OFFER))
    page.shows("#verdict", "does not match")
    page.shows("#tree", "used is missing")
    assert page.text("#tree .true") == "true true"
    assert "unknown" in page.text("#tree .unknown")
    page.shows("#filing", "filed under brand")
    page.shows("#filing", "Of the last 400 events")
    page.fill("#event", json.dumps(OFFER | {"used": False}))
    page.shows("#verdict", "matches")
    # The backtest, by keyboard.
    page.one("#expression").click()
    page.hold(Keys.CONTROL, Keys.ENTER)
    page.shows("#found .big", "would have matched")
    page.shows("#found", "of the last 400")
    page.shows("#found", "rejects most")
    assert page.all("#found svg .bar")
    assert page.run("return document.querySelector('#found svg rect.bar').getBBox().height") > 0
    page.picture("console-playground")
    page.click("#theme")
    page.picture("console-playground-dark")
    page.click("#theme")
    page.fill("#id", "mine")
    page.fill("#subscriber", "ann")
    page.one("#expression").click()
    page.hold(Keys.CONTROL, "s")
    page.shows("#saved", "saved as version")
    assert shop.call("GET", "/v1/subscriptions/mine")["subscriber"] == "ann"

    page.click("#saved a")
    page.shows("#state", "live")
    assert page.value("#subscription") == "mine"
    shop.publish(OFFER | {"used": False}, OFFER)
    page.shows("#rows", "ann")
    assert page.text("#rows").count("mine") == 1
    page.click("#rows button")
    page.shows("#inspected", '"product": "tent 4"')
    page.shows("#state", "paused")
    page.click("#inspected button")
    page.shows("#inspected .tree", "brand is 'Heron'")

    page.open("/console/catalog/subscription?id=mine")
    page.fill("#expression", "brand = 'Heron' AND price <")
    page.click("#save")
    page.shows("#mistake", "^")
    page.fill("#expression", "brand = 'Heron' AND price < 90")
    page.click("#save")
    page.shows(".history .new", "90")
    page.picture("console-subscription")
    page.click("#undo")
    wait_until(lambda: "price < 40" in page.value("#expression"))
    page.click("#remove")
    page.shows("h1", "removed")
    page.click("button.back")
    wait_until(lambda: "removed" not in page.text("h1"))
    assert shop.call("GET", "/v1/subscriptions/mine")["expression"].endswith("NOT used")


def test_matches_arrive_are_filtered_and_paused(shop: Shop, page: Browser) -> None:
    for name, subscriber in (("cheap", "bob"), ("dear", "eve")):
        text = "price < 50 AND cents = 7" if name == "cheap" else "price >= 50 AND cents = 7"
        body = {"expression": text, "subscriber": subscriber}
        shop.call("PUT", f"/v1/subscriptions/{name}", body)
    page.open("/console/live?subscriber=bob")
    page.shows("#state", "live")
    page.one("main").click()
    shop.publish({"price": 5, "cents": 7}, {"price": 60, "cents": 7})
    page.shows("#rows", "cheap")
    assert "dear" not in page.text("#rows")
    page.press("p")
    page.shows("#state", "paused")
    shop.publish({"price": 6, "cents": 7})
    page.shows("#counted", "2 matches")
    assert page.text("#rows").count("cheap") == 1
    page.press("p")
    page.shows("#state", "live")
    wait_until(lambda: page.text("#candidates-now") not in ("", "0"))
    assert page.one("#rate-chart polyline").get_attribute("points")
    page.open("/console/live")
    page.shows("#state", "live")
    for number in range(60):
        shop.publish(OFFER | {"price": number, "used": False, "cents": 7})
        wait_until(lambda seen=number: len(page.all("#rows tr")) > seen)
    wait_until(lambda: page.text("#matches-now") not in ("", "0"))
    page.click("#rows button")
    page.shows("#inspected", "Event")
    page.click("#inspected button")
    page.shows("#inspected .tree", "true")
    page.picture("console-live")


def test_the_catalog_is_searched_compared_and_imported(shop: Shop, page: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open("/console/catalog")
    assert len(page.all("tbody tr")) == 50
    page.picture("console-catalog")
    page.click("a[rel=next]")
    wait_until(lambda: "after=" in page.driver.current_url)
    page.press("/")
    page.press("canoe", Keys.ENTER)
    wait_until(lambda: "text=canoe" in page.driver.current_url)
    assert page.all("tbody tr")
    assert all("canoe" in row.text.lower() for row in page.all("tbody tr"))
    page.open("/console/catalog?attribute=seller.country")
    assert all("seller.country" in row.text for row in page.all("tbody tr"))

    page.open("/console/catalog/import")
    page.fill("#text", "id,expression\nin-1,price < 10\nin-2,price <\n")
    page.click("#look")
    page.shows("#said", "1 good, 1 not")
    page.shows("#preview", "position 7")
    page.picture("console-import")
    page.click("#load")
    page.shows("#said", "1 added")
    page.fill("#format", "eventbridge")
    page.fill("#text", json.dumps({"colour": ["red", {"prefix": "bl"}]}))
    page.click("#look")
    page.shows("#preview", "LIKE 'bl%'")
    page.click("#load")
    page.shows("#said", "1 added")

    version = shop.call("GET", "/v1")["version"]
    page.open(f"/console/catalog/versions?since={version - 2}&until={version}")
    assert "in-1" in page.text("main")
    assert page.text("main").count("added") >= 2
    page.picture("console-versions")
    page.open("/console/catalog/extremes")
    page.shows("main", "never match")
    assert "mine" not in page.text("section:nth-of-type(2) a")


@pytest.mark.parametrize("name", ["index", "pipelines"])
def test_figures_are_drawn(page: Browser, name: str) -> None:
    page.open(f"/console/{name}")
    assert page.all("svg.picture")
    assert all(each.size["height"] > 10 for each in page.all("svg.picture"))
    words = {"index": "product", "pipelines": "shop.jsonl"}[name]
    assert words in page.text("main")
    page.picture(f"console-{name}")
    page.click("#theme")
    page.picture(f"console-{name}-dark")
    page.click("#theme")


def test_nothing_hostile_is_executed(shop: Shop, page: Browser) -> None:
    text = f"price < 10 AND title LIKE '%{HOSTILE[:20].replace(chr(39), '')}%' OR price = 5"
    body = {"expression": text, "subscriber": HOSTILE, "metadata": {"note": HOSTILE}}
    shop.call("PUT", f"/v1/subscriptions/{quote(HOSTILE, safe='')}", body)
    asked = urlencode({"id": HOSTILE})
    page.open(f"/console/live?{urlencode({'subscription': HOSTILE})}")
    page.shows("#state", "live")
    shop.publish(HOSTILE_EVENT)
    page.shows("#rows", "<script>")
    page.click("#rows button")
    page.shows("#inspected pre", "</script>")
    page.click("#inspected button")
    page.shows("#inspected .tree", "price")
    page.click("#inspected a")
    wait_until(lambda: page.value("#id") == HOSTILE)
    page.fill("#event", json.dumps(HOSTILE_EVENT))
    page.shows("#verdict", "matches")
    page.click("#backtest")
    page.shows("#found", "<script>")
    page.one("#expression").click()
    page.fill("#expression", "")
    page.press("<b on")
    page.shows("#mistake", "<b on")
    (shop.reports / "odd.jsonl").write_text(json.dumps(report(1, HOSTILE)))
    for path in (
        "/console/pipelines",
        f"/console/catalog/subscription?{asked}",
        f"/console/catalog?{urlencode({'text': HOSTILE[:30]})}",
        "/console/catalog/versions?since=0",
        "/console/catalog/extremes",
        f"/console/catalog/subscription?{urlencode({'id': HOSTILE + 'x'})}",
        "/console/index",
    ):
        page.open(path)
        assert page.run("return window.hacked") is None, path
        assert not page.all("main img, main script, main b[onclick]"), path
    page.open("/console/catalog/import")
    page.fill("#text", f"id,expression\n{HOSTILE[2:40]},<script>\n")
    page.click("#look")
    page.shows("#said", "not")


def test_every_page_can_be_used_by_keyboard_and_read_aloud(page: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    for path in ("playground", "live", "catalog", "catalog/import", "catalog/versions", "index"):
        page.open(f"/console/{path}")
        unnamed = page.run(
            """return [...document.querySelectorAll("input, textarea, select, button, svg[role]")]
            .filter((e) => !e.labels?.length && !e.getAttribute("aria-label"))
            .filter((e) => !e.textContent.trim()).map((e) => e.outerHTML)"""
        )
        assert unnamed == [], path
        assert len(page.all("h1")) == 1
        assert page.all("[aria-current=page]")
        page.run("document.body.tabIndex = -1; document.body.focus()")
        page.press(Keys.TAB)
        assert page.run("return document.activeElement.className") == "skip"
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.run(wide) <= 0, f"{path} is wider than the window"
