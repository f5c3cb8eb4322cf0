"""A server of S3's protocol for tests, on loopback only: moto's, a process of its own.

It and Spark's connector are those of ``make s3``; without them the fixture ``s3`` skips, and says
so. What a test looks at it reads through pyarrow, or in the server's log of requests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from spark_sessions import why_no_spark
from steady import PATIENCE, free_port, listens, wait_until

ROOT = Path(__file__).parent.parent
S3, LISTS = ROOT / ".s3", ("s3-jars.xml", "s3-server.txt")
BUCKET = "bucket"


def why_no_s3() -> str | None:
    """Say what is missing for a server and Spark's connector, or None when nothing is."""
    for name in LISTS:
        listed, wanted = S3 / name, ROOT / "scripts" / name
        if not listed.exists() or listed.read_bytes() != wanted.read_bytes():
            return "its server and jars are missing or of other versions: run make s3"
    return why_no_spark()


class ObjectStore:
    """The server, its one bucket, and how to reach it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._log = folder / "log"
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                env=os.environ | {"PYTHONPATH": str(S3 / "server"), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.files = fs.S3FileSystem(
            endpoint_override=self.endpoint,
            access_key="test",
            secret_key="test",
            region="us-east-1",
            allow_bucket_creation=True,
            connect_timeout=PATIENCE,
            request_timeout=PATIENCE,
        )
        try:
            wait_until(lambda: listens(port), self._look)
            self.files.create_dir(BUCKET)
        except BaseException:
            self.end()
            raise
        hadoop = {
            "endpoint": self.endpoint,
            "endpoint.region": "us-east-1",
            "access.key": "test",
            "secret.key": "test",
            "path.style.access": "true",
        }
        #: Settings of a session that reaches it.
        self.conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()}
        self.conf["spark.jars"] = ",".join(map(str, sorted((S3 / "connector").glob("*.jar"))))

    def _look(self) -> None:
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-4_000:]

    def names(self, folder: str) -> list[str]:
        """The objects whose names begin with a folder's, without it."""
        base = f"{BUCKET}/{folder}"
        found = self.files.get_file_info(
            fs.FileSelector(base, recursive=True, allow_not_found=True)
        )
        return sorted(
            each.path.removeprefix(f"{base}/") for each in found if each.type == fs.FileType.File
        )

    def read(self, name: str) -> bytes:
        """The content of an object."""
        with self.files.open_input_stream(f"{BUCKET}/{name}") as stream:
            return bytes(stream.read())

    def write(self, name: str, content: bytes) -> None:
        """Put an object there."""
        with self.files.open_output_stream(f"{BUCKET}/{name}") as stream:
            stream.write(content)

    def requests(self, text: str) -> list[str]:
        """The lines of the server's log with a text in them."""
        return [line for line in self._log.read_text(errors="replace").splitlines() if text in line]

    def end(self) -> None:
        """End the server; what it held is gone."""
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    reason = why_no_s3()
    if reason is not None:
        pytest.skip(f"NO S3: {reason}")
    server = ObjectStore(tmp_path_factory.mktemp("s3") / "server")
    yield server
    server.end()
