"""``bittern spark-match`` as a command of its own: a session for each test, so they are few."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

#: One JVM that starts quickly, and nothing but loopback.
QUICK = (
    "--master", "local[2]",
    "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf", "spark.sql.shuffle.partitions=2",
)  # fmt: skip
EVENTS = [{"id": i, "price": i, "seller": {"country": "FI" if i % 2 else "SE"}} for i in range(20)]
WISHES = [("cheap", "price < 3"), ("finnish", "seller.country = 'FI' AND price >= 17")]
FOUND = {0: ["cheap"], 1: ["cheap"], 2: ["cheap"], 17: ["finnish"], 19: ["finnish"]}


@pytest.fixture
def files(tmp_path: Any) -> Any:
    pq.write_table(pa.Table.from_pylist(EVENTS), tmp_path / "events.parquet")
    lines = [json.dumps(event) for event in EVENTS] + ['{"price": '] + ['{"price": "cheap"}']
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    with (tmp_path / "wishes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "expression"), *WISHES])
    with (tmp_path / "mixed.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "expression"), *WISHES, ("bad", "price <")])
    return tmp_path


def spark_match(folder: Any, *arguments: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "bittern.service.cli", "spark-match", *map(str, arguments), *QUICK],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "BITTERN_CACHE_DIR": f"{folder}/cache"},
        timeout=240,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.spark
def test_parquet_to_parquet(spark: Any, files: Any) -> None:
    """The fixture is asked for so that the test is skipped where there is no Spark."""
    code, out, err = spark_match(
        files, "events.parquet", "wishes.csv", "out.parquet", "--event-id", "id"
    )
    assert code == 0, err
    assert "events" in out
    found = pq.read_table(files / "out.parquet").to_pylist()
    assert {row["id"]: sorted(row["subscriptions"]) for row in found if row["subscriptions"]} == (
        FOUND
    )
    assert len(found) == len(EVENTS)
    assert "matching" in err  # the progress


@pytest.mark.spark
def test_json_lines_with_rejects_and_bad_subscriptions(spark: Any, files: Any) -> None:
    code, _, err = spark_match(
        files, "events.jsonl", "mixed.csv", "out.parquet", "--event-id", "id", "--explode",
        "--on-error", "skip", "--rejects", "bad.parquet",
    )  # fmt: skip
    assert code == 0, err
    assert "'bad', position 7" in err
    found = pq.read_table(files / "out.parquet").to_pylist()
    pairs = sorted((int(row["id"]), row["subscription"]) for row in found)
    assert pairs == sorted((i, wish) for i, wishes in FOUND.items() for wish in wishes)
    reasons = pq.read_table(files / "bad.parquet").column("rejected").to_pylist()
    assert len(reasons) == 2


@pytest.mark.spark
def test_csv_output_from_a_snapshot(spark: Any, files: Any, bittern_command: Any) -> None:
    made = bittern_command("build", files / "wishes.csv", "--output", files / "shop.bittern")
    assert made[0] == 0
    code, _, err = spark_match(
        files, "events.parquet", "shop.bittern", "out.csv", "--event-id", "id", "--quiet"
    )
    assert code == 0, err
    parts = sorted((files / "out.csv").glob("part-*"))
    rows = [row for part in parts for row in csv.DictReader(part.open())]
    pairs = sorted((int(row["id"]), row["subscription"]) for row in rows)
    assert pairs == sorted((i, wish) for i, wishes in FOUND.items() for wish in wishes)
    assert "matching" not in err


# What is wrong with a command shows before Spark starts


@pytest.mark.parametrize(
    ("arguments", "said", "expected"),
    [
        (("nope.parquet", "wishes.csv", "out.parquet"), "no such file", 1),
        (("events.parquet", "nope.csv", "out.parquet"), "no such file", 1),
        (("events.parquet", "wishes.csv", "out.what"), "extension", 2),
        (("events.parquet", "wishes.csv", "wishes.csv"), "exists", 2),
        (("events.parquet", "wishes.csv", "out.parquet", "--conf", "x"), "NAME=VALUE", 2),
        (("events.jsonl", "wishes.csv", "out.csv", "--rejects", "r"), "--rejects needs Parquet", 2),
    ],
)
def test_mistakes(
    files: Any,
    bittern_command: Any,
    monkeypatch: Any,
    arguments: tuple[str, ...],
    said: str,
    expected: int,
) -> None:
    monkeypatch.chdir(files)
    from bittern.spark import session

    monkeypatch.setattr(session, "start", lambda *_: pytest.fail("Spark was started"))
    code, _, err = bittern_command("spark-match", *arguments)
    assert said in err
    assert code == expected
