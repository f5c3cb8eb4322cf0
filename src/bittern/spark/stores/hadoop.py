"""Small objects of an object store, for the driver: created once, read, listed and removed.

The driver asks Hadoop's file system in Spark's JVM, which has the credentials that Spark has.
``create`` sends the object in one request, under the condition that there is none of its name
(``If-None-Match: *``), so that of two drivers one gets True. Hadoop's usual ``create`` without
overwriting would not do: it looks first and writes then.

An answer may be lost, and the request sent again by the library: then it is refused, because of
what it did itself. So after any error the object is read. What is there decides, and contents that
could be two drivers' have a token that is one's.

Cost: a request each, 10 to 50 ms in a store of the same region.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bittern.errors import OptionError
from bittern.spark.session import reason

#: Hadoop's name for the condition; from 3.4.2 on. Older ones refuse what they do not know.
_ONLY_NEW = "fs.option.create.conditional.overwrite"


class HadoopStore:
    """The objects whose names begin with a URI."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root
        self._spark = spark
        jvm: Any = spark._jvm  # noqa: SLF001
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = self._reached()

    def _reached(self) -> Any:
        conf: Any = self._spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
        try:
            return self._path(self.root).getFileSystem(conf)
        except (Py4JError, PySparkException) as error:
            raise OptionError(f"Spark cannot reach {self.root}: {reason(error)}") from error

    def place(self, name: str) -> str:
        """The URI of an object."""
        return f"{self.root}/{name}"

    def read(self, name: str) -> bytes:
        """The content of an object; FileNotFoundError if there is none."""
        with _told(self.place(name)):
            stream = self._files.open(self._path(self.place(name)))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def create(self, name: str, told: dict[str, Any]) -> bool:
        """Create a small JSON object for good; False if there is one of that name already."""
        place, content = self.place(name), json.dumps(told).encode()
        try:
            with _told(place):
                maker = self._files.createFile(self._path(place)).create().overwrite(False)
                self._write(maker.must(_ONLY_NEW, True).build(), content)
        except OSError as error:
            if _ONLY_NEW in str(error):
                raise OptionError(
                    f"this Hadoop cannot create objects of {self.root} under a condition, which "
                    f"keeps two drivers apart: use hadoop-aws 3.4.2 or later"
                ) from error
            try:
                return self.read(name) == content
            except FileNotFoundError:
                raise error from None
        return True

    def replace(self, name: str, content: bytes) -> None:
        """Write an object, in place of an older one if there is one."""
        with _told(self.place(name)):
            self._write(self._files.create(self._path(self.place(name)), True), content)

    def _write(self, stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def has(self, name: str) -> bool:
        """Whether there is an object, or a folder with something in it."""
        try:
            with _told(self.place(name)):
                found = self._files.getFileStatus(self._path(self.place(name)))
                return not found.isDirectory() or bool(self.sizes(name))
        except FileNotFoundError:
            return False

    def remove(self, name: str) -> None:
        """Remove an object, or a folder with all that is in it; there may be none."""
        with _told(self.place(name)):
            self._files.delete(self._path(self.place(name)), True)

    def sizes(self, folder: str = "") -> dict[str, int]:
        """The names of the objects and folders right in a folder, and how many bytes they have."""
        place = self.place(folder) if folder else self.root
        try:
            with _told(place):
                found = self._files.listStatus(self._path(place))
                return {each.getPath().getName(): each.getLen() for each in found}
        except FileNotFoundError:
            return {}


@contextlib.contextmanager
def _told(place: str) -> Iterator[None]:
    """Errors of the JVM as Python's."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if "java.io.FileNotFoundException" in str(error):
            raise FileNotFoundError(f"{place} is not there") from error
        raise OSError(f"{place}: {reason(error)}") from error
