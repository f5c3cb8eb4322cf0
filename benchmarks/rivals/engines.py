"""Programs of other engines that hold the same subscriptions; what they are asked is told above."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.generators import Conjunctions

BUILT = Path(".rivals")


class Engine(NamedTuple):
    """How an engine is started, and which workloads it can hold."""

    name: str
    command: list[str]
    workloads: tuple[str, ...]
    place: Path  # is there if it was built


ENGINES = (
    Engine(
        "event-ruler",
        ["java", "-Xmx16g", "-XX:+UseSerialGC", "-cp", f"{BUILT}/ruler:{BUILT}/ruler/*", "Ruler"],
        workloads=("equality", "shop"),
        place=BUILT / "ruler",
    ),
    Engine("quamina", [str(BUILT / "quamina")], workloads=("equality",), place=BUILT / "quamina"),
)


def patterns_of(made: Conjunctions) -> list[str]:
    """Subscriptions as the patterns that both engines read. O(predicates)."""
    names, low, high = made.vocabulary.attributes, made.vocabulary.low, made.vocabulary.high
    alone = [
        (names[attribute], [first] if first == last else [{"numeric": [">=", first, "<=", last]}])
        for attribute, first, last in zip(
            made.vocabulary.attribute.tolist(), _plain(low), _plain(high), strict=True
        )
    ]
    codes, offsets = made.codes.tolist(), made.offsets.tolist()
    return [
        json.dumps(dict(alone[code] for code in codes[begin:end]))
        for begin, end in itertools.pairwise(offsets)
    ]


def _plain(values: Any) -> list[Any]:
    return values if isinstance(values, list) else list(np.asarray(values).tolist())


class Running:
    """An engine that holds the subscriptions, and their answers to all events."""

    def __init__(
        self, engine: Engine, patterns: Sequence[str], texts: Sequence[str], folder: Path
    ) -> None:
        """Start it and wait until it has answered. O(patterns + answers)."""
        files = [folder / name for name in ("patterns", "events", f"{engine.name}.answers")]
        for file, lines in zip(files, (patterns, texts), strict=False):
            file.write_text("".join(f"{line}\n" for line in lines))
        self.name = engine.name
        self._n_events = len(texts)
        self._program = subprocess.Popen(
            [*engine.command, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.load_seconds = int(self._line()) / 1e9
        self.found = self.match()[1]
        #: The numbers of the patterns that each event matches.
        self.answers = [
            sorted(map(int, line.split())) for line in files[2].read_text().splitlines()
        ]

    def _line(self) -> str:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with status {self._program.wait()}")
        return line

    def match(self) -> tuple[float, int]:
        """Match all events once: microseconds of CPU time for each, and how much was found."""
        assert self._program.stdin is not None
        print(file=self._program.stdin, flush=True)
        taken, found = self._line().split()
        return int(taken) / 1e3 / self._n_events, int(found)

    def close(self) -> None:
        """End it."""
        for end in (self._program.stdin, self._program.stdout):
            assert end is not None
            end.close()
        self._program.wait()
