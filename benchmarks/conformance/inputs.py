"""Spark's SQL tests: the files, by the name of Spark's artifact, and the statements in them.

The artifact is that of the newest release whose tests Maven Central has; they run on the installed
Spark. A folder with the same files does as well.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ARTIFACT = "org.apache.spark:spark-sql_2.13:4.2.0:jar:tests"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_INPUTS = "sql-tests/inputs/"
#: A string, a quoted name, a comment, or the end of a statement.
_PIECES = re.compile(
    r"""r'[^']*'|r"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*|;""",
    re.DOTALL | re.IGNORECASE,
)
_IMPORT = re.compile(r"^--IMPORT\s+(\S+)", re.MULTILINE)


class File(NamedTuple):
    """A file of statements, by its path below the folder of inputs."""

    name: str
    statements: list[str]


def fetch(folder: Path) -> Path:
    """Get the archive with the files through Maven; what is there already is kept."""
    _, artifact, version, _, classifier = ARTIFACT.split(":")
    jar = folder / f"{artifact}-{version}-{classifier}.jar"
    if not jar.exists():
        command = ["mvn", "--batch-mode", "--quiet", "--strict-checksums", f"{_PLUGIN}:copy"]
        options = [f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder.resolve()}"]
        subprocess.run([*command, *options], check=True, stdin=subprocess.DEVNULL)
    return jar


def files(source: Path) -> list[File]:
    """All files of an archive or a folder, each with the statements of those that it imports."""
    texts = dict(sorted(_texts(source)))
    found = []
    for name, text in texts.items():
        imported = [texts.get(each, "") for each in _IMPORT.findall(text)]
        found.append(File(name, [one for each in (*imported, text) for one in statements(each)]))
    return found


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    if source.is_dir():
        for path in source.rglob("*.sql"):
            yield path.relative_to(source).as_posix(), path.read_text("utf-8")
        return
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            if name.startswith(_INPUTS) and name.endswith(".sql"):
                yield name.removeprefix(_INPUTS), archive.read(name).decode()


def statements(text: str) -> Iterator[str]:
    """The statements of a text without comments between them. O(length)."""
    pieces: list[str] = []
    at = 0
    while (found := _PIECES.search(text, at)) is not None:
        pieces.append(text[at : found.start()])
        at = found.end()
        if found.group().startswith("--"):
            continue
        if found.group() == "/*":
            at = _end_of_comment(text, at)
        elif found.group() == ";":
            yield from filter(None, ["".join(pieces).strip()])
            pieces = []
        else:
            pieces.append(found.group())
    yield from filter(None, ["".join([*pieces, text[at:]]).strip()])


def _end_of_comment(text: str, at: int) -> int:
    """Where a comment that may have others inside ends."""
    depth = 1
    while depth and (found := re.compile(r"/\*|\*/").search(text, at)):
        depth += 1 if found.group() == "/*" else -1
        at = found.end()
    return at if depth == 0 else len(text)
