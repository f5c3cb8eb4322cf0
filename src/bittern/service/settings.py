"""Turns tables of a TOML file into dataclasses, and reports everything that is wrong at once.

A section is a dataclass whose fields say what their keys may hold and what they are for::

    @dataclass(frozen=True)
    class Metrics:
        json_lines: str | None = path("a file for one line per batch", default=None)
        prometheus_port: int | None = whole("a port of this machine", 1, 65_535, default=None)

    [metrics]                            metrics.json_line is not a key here: did you mean
    json_line = "m.jsonl"                  json_lines?
    prometheus_port = "9400"             metrics.prometheus_port must be a whole number from 1
                                           to 65,535, not '9400'

In strings, ``${NAME}`` stands for an environment variable, so that the file need not hold secrets,
and ``$${`` stands for ``${``. Messages show what the file says, never the secret. Relative paths
start at the file's folder, also after ``sqlite:///``.

Cost: O(size of the file).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeVar

from bittern.errors import OptionError, did_you_mean

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SQLITE = "sqlite:///"  # a URL that holds a path
_SHOWN = 60  # characters of a value in a message

T = TypeVar("T")
_Check = Callable[["Settings", Any], Any]


class _WrongError(Exception):
    """A key does not accept its value; the message continues a sentence that names the key."""


class Settings:
    """Reads the tables of one file and collects mistakes; ``finish`` raises them all together."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment
        self._problems: list[str] = []

    def section(self, kind: type[T], table: Any, place: str) -> T | None:
        """A table as a dataclass; None if something is wrong with it (which is noted)."""
        if not isinstance(table, dict):
            self.wrong(f"{place} must be a table of keys, not {_shown(table)}")
            return None
        fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        before = len(self._problems)
        self.known(table, fields, place)
        values = {}
        for name, field in fields.items():
            where = f"{place}.{name}"
            if name in table:
                try:
                    values[name] = field.metadata["check"](self, table[name])
                except _WrongError as wrong:
                    self.wrong(f"{where} {wrong}")
            elif field.default is MISSING and field.default_factory is MISSING:
                self.wrong(f"{where} is missing: {field.metadata['what']}")
        return kind(**values) if len(self._problems) == before else None

    def choice(self, kinds: Mapping[str, type], table: Any, place: str) -> Any:
        """A table as the dataclass that its key ``kind`` names."""
        names = ", ".join(kinds)
        if not isinstance(table, dict):
            self.wrong(f"{place} must be a table of keys, not {_shown(table)}")
            return None
        kind = table.get("kind")
        if isinstance(kind, str) and kind in kinds:
            rest = {name: value for name, value in table.items() if name != "kind"}
            return self.section(kinds[kind], rest, place)
        if kind is None:
            self.wrong(f"{place}.kind is missing: choose one of {names}")
        else:
            near = did_you_mean(kind, kinds)
            self.wrong(f"{place}.kind must be one of {names}, not {_shown(kind)}{near}")
        return None

    def known(self, table: Mapping[str, Any], names: Iterable[str], place: str = "") -> None:
        """Note every key of a table that is not one of these."""
        names = list(names)
        for key in table:
            if key not in names:
                where = f"{place}.{_key(key)}" if place else f"[{_key(key)}]"
                free = [name for name in names if name not in table]
                hint = did_you_mean(key, free) or f"; the keys are {', '.join(names)}"
                self.wrong(f"{where} is not a key here{hint}")

    def wrong(self, problem: str) -> None:
        """Note a mistake."""
        self._problems.append(problem)

    def finish(self) -> None:
        """Raise if any mistake was noted."""
        if self._problems:
            number = len(self._problems)
            many = "one thing is" if number == 1 else f"{number} things are"
            lines = "".join(f"\n  {problem}" for problem in self._problems)
            raise OptionError(f"{self._file}: {many} wrong with it:{lines}")

    def expanded(self, text: str) -> str:
        """The text with environment variables filled in."""

        def value(found: re.Match[str]) -> str:
            if found[0] == "$${":
                return "${"
            name = found[1]
            if not found[2] or not _NAME.fullmatch(name):
                raise _WrongError(
                    f"holds {_shown(found[0])}, which is not a variable: write ${{NAME}}, or $${{ "
                    f"for the characters ${{ themselves"
                )
            if name not in self._environment:
                raise _WrongError(f"needs the environment variable {name}, which is not set")
            return self._environment[name]

        return _VARIABLE.sub(value, text)

    def resolved(self, text: str) -> str:
        """The path relative to the file's folder; URLs stay as they are."""
        inner = text.removeprefix(_SQLITE)
        if inner != text and inner not in ("", ":memory:"):  # which a catalog refuses
            return f"{_SQLITE}{self.resolved(inner)}"
        if _SCHEME.match(text):
            return text
        try:
            return str(self._file.parent.absolute() / Path(text).expanduser())
        except RuntimeError as error:  # ~somebody
            raise _WrongError(f"is not a path: {error}") from error


# What a key may hold


def text(what: str, **default: Any) -> Any:
    """Any string that is not empty."""
    return _field(_text, what, default)


def path(what: str, **default: Any) -> Any:
    """A path from the file's folder, or a URL."""
    return _field(lambda settings, value: settings.resolved(_text(settings, value)), what, default)


def one_of(what: str, *words: str, **default: Any) -> Any:
    """One of some words."""

    def check(settings: Settings, value: Any) -> str:
        chosen = settings.expanded(value) if isinstance(value, str) else None
        if chosen not in words:
            near = did_you_mean(value, words)
            raise _WrongError(f"must be one of {', '.join(words)}, not {_shown(value)}{near}")
        return chosen

    return _field(check, what, default)


def like(what: str, form: str, pattern: str, **default: Any) -> Any:
    """A string that matches a pattern; ``form`` describes it in words."""

    def check(settings: Settings, value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, settings.expanded(value)):
            raise _WrongError(f"must be {form}, not {_shown(value)}")
        return settings.expanded(value)

    return _field(check, what, default)


def whole(what: str, least: int, most: int, **default: Any) -> Any:
    """A whole number within bounds."""

    def check(_: Settings, value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            bounds = f"from {least:,} to {most:,}"
            raise _WrongError(f"must be a whole number {bounds}, not {_shown(value)}")
        return value

    return _field(check, what, default)


def number(what: str, least: float, most: float, **default: Any) -> Any:
    """A number within bounds, whole or not."""

    def check(_: Settings, value: Any) -> float:
        if type(value) not in {int, float} or not least <= value <= most:
            raise _WrongError(f"must be a number from {least:,} to {most:,}, not {_shown(value)}")
        return float(value)

    return _field(check, what, default)


def texts(what: str, **default: Any) -> Any:
    """A list of strings, or a single string."""

    def check(settings: Settings, value: Any) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, str) for each in values):
            raise _WrongError(f"must be a string or a list of strings, not {_shown(value)}")
        return tuple(_text(settings, each) for each in values)

    return _field(check, what, default)


def table(what: str, *, needed: bool = False, paths: Collection[str] = ()) -> Any:
    """A table of strings, some of them paths; numbers and Booleans are read as strings."""

    def check(settings: Settings, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise _WrongError(f"must be a table of keys, not {_shown(value)}")
        pairs = dict(_pairs(settings, value, ""))
        resolved = {key: settings.resolved(pairs[key]) for key in pairs if key.lower() in paths}
        return pairs | resolved

    return _field(check, what, {} if needed else {"default_factory": dict})


def _pairs(settings: Settings, value: dict[str, Any], before: str) -> Iterable[tuple[str, str]]:
    """Keys and strings; ``a.b = 1``, which TOML reads as a nested table, is the key a.b."""
    for key, each in value.items():
        if isinstance(each, dict):
            yield from _pairs(settings, each, f"{before}{key}.")
        elif isinstance(each, bool):
            yield f"{before}{key}", str(each).lower()
        elif isinstance(each, int | float):
            yield f"{before}{key}", str(each)
        elif isinstance(each, str):
            yield f"{before}{key}", settings.expanded(each)
        else:
            raise _WrongError(f"has {_key(key)}, which must be a string, not {_shown(each)}")


def _field(check: _Check, what: str, default: dict[str, Any]) -> Any:
    return dataclasses.field(metadata={"check": check, "what": what}, **default)


def _text(settings: Settings, value: Any) -> str:
    if not isinstance(value, str):
        raise _WrongError(f"must be a string, not {_shown(value)}")
    expanded = settings.expanded(value)
    if not expanded.strip():
        raise _WrongError(
            "is empty" if not value.strip() else f"is empty: {value} is set to nothing"
        )
    if "\0" in expanded:
        raise _WrongError("holds the character U+0000")
    return expanded


# What a message shows


def _key(key: str) -> str:
    return _cut(key if _BARE.fullmatch(key) else json.dumps(key))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return _cut(repr(value) if isinstance(value, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
