"""Other systems' own matchers, asked by tests: one JVM for all of them, on loopback, through Py4J.

Their jars are those of ``make judge-jars``; without them the fixture ``judges`` skips, and says so.
The JVM ends when its standard input does: with this process at the latest.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steady import PATIENCE

ROOT = Path(__file__).parent.parent
JARS, WANTED = ROOT / ".judges", ROOT / "scripts" / "judge-jars.xml"

#: What every CloudEvent has.
REQUIRED = {"id": "1", "source": "/shop", "specversion": "1.0", "type": "com.shop.sold"}


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """Errors are Py4J's own. Once Spark is in this process, it looks all of them up in its JVM."""
    import py4j.protocol

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("py4j.java_gateway.get_return_value", py4j.protocol.get_return_value)
        yield


class Judges:
    """What the foreign systems answer."""

    def __init__(self, gateway: Any) -> None:
        self._jvm = gateway.jvm
        self.error = __import__("py4j.protocol").protocol.Py4JJavaError

    @own_errors()
    def event_ruler(self, pattern: Any, event: Any) -> bool:
        """Amazon's matcher of EventBridge."""
        ruler = self._jvm.software.amazon.event.ruler.Ruler
        return bool(ruler.matchesRule(json.dumps(event), json.dumps(pattern)))

    @own_errors()
    def accepts_pattern(self, pattern: Any) -> bool:
        """Whether Amazon's matcher takes the pattern at all."""
        try:
            self.event_ruler(pattern, {"a": 1})
        except self.error:
            return False
        return True

    @own_errors()
    def selector(self, text: str, properties: dict[str, Any]) -> bool:
        """ActiveMQ's selectors."""
        message = self._jvm.org.apache.activemq.command.ActiveMQMessage()
        for name, value in properties.items():
            if isinstance(value, int) and not isinstance(value, bool):
                message.setLongProperty(name, value)
            else:
                message.setObjectProperty(name, value)
        context = self._jvm.org.apache.activemq.filter.MessageEvaluationContext()
        context.setMessageReference(message)
        parsed = self._jvm.org.apache.activemq.selector.SelectorParser.parse(text)
        return bool(parsed.matches(context))

    @own_errors()
    def accepts_selector(self, text: str) -> bool:
        """Whether ActiveMQ takes the selector at all."""
        try:
            self._jvm.org.apache.activemq.selector.SelectorParser.parse(text)
        except self.error:
            return False
        return True

    @own_errors()
    def cloud_event(self, attributes: dict[str, Any]) -> Any:
        """An event of the CloudEvents SDK: its four required attributes, and these."""
        builder = self._jvm.io.cloudevents.core.builder.CloudEventBuilder.v1()
        for name, value in {**REQUIRED, **attributes}.items():
            if name == "source":
                builder.withSource(self._jvm.java.net.URI.create(value))
            elif name in ("id", "type", "subject"):
                getattr(builder, f"with{name.title()}")(value)
            elif name != "specversion":
                builder.withExtension(name, value)
        return builder.build()

    @own_errors()
    def passes(self, expression: str, event: Any) -> bool:
        """Whether the SDK says TRUE of an event of ``cloud_event``, and fails nowhere."""
        parsed = self._jvm.io.cloudevents.sql.Parser.parseDefault(expression)
        try:
            return parsed.tryEvaluate(event) is True
        except self.error as wrong:
            if "EvaluationException" not in str(wrong.java_exception.toString()):
                raise
            return False

    @own_errors()
    def accepts_expression(self, text: str) -> bool:
        """Whether the SDK takes the expression at all."""
        try:
            self._jvm.io.cloudevents.sql.Parser.parseDefault(text)
        except self.error:
            return False
        return True


def why_no_judges() -> str | None:
    """Say what is missing, or None when nothing is."""
    listed = JARS / WANTED.name
    if not listed.exists() or listed.read_bytes() != WANTED.read_bytes():
        return "their jars are missing or of other versions: run make judge-jars"
    try:
        import pyspark  # noqa: F401  has Py4J and its jar
    except ImportError:
        return "pyspark is not installed (pip install 'bittern[dev]')"
    return None


@pytest.fixture(scope="session")
def judges() -> Iterator[Judges]:
    if (reason := why_no_judges()) is not None:
        pytest.skip(f"no judges: {reason}")
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    home = subprocess.run(
        [ROOT / "scripts" / "java.sh"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, sorted(JARS.glob("*.jar")))),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC"],
        die_on_exit=True,
        java_path=f"{home}/bin/java",
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield Judges(gateway)
    finally:
        gateway.close()
        process.stdin.close()
        process.wait(PATIENCE)
