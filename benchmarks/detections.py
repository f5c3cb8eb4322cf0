"""Detection rules over log events: ``python -m benchmarks.detections [--small]``.

Two catalogs are generated from a seed. ``rules`` has 3,000 rules as Sigma has them: an image that
ends in one of a few names, a command line that contains up to three words, a parent, and a filter
of users or paths that must not hold; ``bittern.imports.sigma`` translates them. ``contains`` has
3,600 rules of one word each, in any case, over twelve fields. The events are those of process
creation, twenty fields each; one in fifty was made to match some rule. All times are CPU time of
one thread, and each rate is the best of five passes over 10,000 events as an Arrow table.
"""

from __future__ import annotations

import argparse
import json
import random
from time import process_time, thread_time
from typing import Any

import pyarrow as pa

import bittern
from bittern.imports import conditions as say
from bittern.imports import sigma

SEED = 23
PASSES = 5
FIELDS = (
    *("Image", "CommandLine", "ParentImage", "ParentCommandLine", "User", "CurrentDirectory"),
    *("OriginalFileName", "Company", "Description", "Product", "IntegrityLevel", "Hashes"),
)
MORE = tuple(f"Field{n}" for n in range(8))
HEAD = {"title": "generated", "logsource": {"category": "process_creation"}}


class World:
    """The words of a world, and what is made of them."""

    def __init__(self) -> None:
        self.random = random.Random(SEED)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = [
            "".join(self.random.choices(letters, k=self.random.randrange(4, 10)))
            for _ in range(4_000)
        ]
        self.programs = [f"{word}.exe" for word in self.words[:600]]
        self.paths = [f"C:\\{a}\\{b}" for a, b in zip(self.words, self.words[7:], strict=False)]
        self.users = [f"{word.upper()}\\svc" for word in self.words[:50]]

    def rule(self) -> dict[str, Any]:
        """One rule of Sigma."""
        draw = self.random
        selection: dict[str, Any] = {
            "Image|endswith": [
                f"\\{each}" for each in draw.sample(self.programs, draw.choice([1, 1, 2, 3]))
            ],
            "CommandLine|contains|all": draw.sample(self.words, draw.choice([1, 2, 2, 3])),
        }
        if draw.random() < 0.3:
            selection["ParentImage|endswith"] = f"\\{draw.choice(self.programs)}"
        if draw.random() < 0.1:
            del selection["Image|endswith"]
        detection: dict[str, Any] = {"selection": selection, "condition": "selection"}
        if draw.random() < 0.4:
            detection["filter"] = draw.choice(
                [
                    {"User": draw.sample(self.users, 2)},
                    {"CurrentDirectory|startswith": draw.choice(self.paths)},
                    {"ParentImage": None},
                ]
            )
            detection["condition"] = "selection and not filter"
        return {**HEAD, "detection": detection}

    def word_rule(self) -> str:
        """One word somewhere in one field, in any case."""
        name = say.path(self.random.choice(FIELDS))
        word = self.random.choice(self.words) + self.random.choice(self.words)[:3]
        return say.like(name, say.ANY_TEXT, word, say.ANY_TEXT, ignoring_case=True)

    def event(self, rules: list[dict[str, Any]]) -> dict[str, Any]:
        """One process that starts."""
        draw = self.random
        words = draw.choices(self.words, k=draw.randrange(2, 12))
        program = draw.choice(self.programs)
        if draw.random() < 0.02:
            selection = draw.choice(rules)["detection"]["selection"]
            words += selection["CommandLine|contains|all"]
            program = selection.get("Image|endswith", [program])[0].lstrip("\\")
        found = {
            "Image": f"{draw.choice(self.paths)}\\{program}",
            "CommandLine": f"{program} " + " ".join(f"/{each}" for each in words),
            "ParentImage": f"{draw.choice(self.paths)}\\{draw.choice(self.programs)}",
            "ParentCommandLine": " ".join(draw.choices(self.words, k=4)),
            "User": draw.choice(self.users),
            "CurrentDirectory": draw.choice(self.paths),
            "OriginalFileName": program.upper(),
            "Company": draw.choice(self.words),
            "Description": " ".join(draw.choices(self.words, k=3)),
            "Product": draw.choice(self.words),
            "IntegrityLevel": draw.choice(["Low", "Medium", "High", "System"]),
            "Hashes": f"SHA256={draw.getrandbits(256):064X}",
        }
        return {**found, **{name: draw.choice(self.words) for name in MORE}}


def measured(catalog: dict[str, str], events: pa.Table) -> dict[str, Any]:
    """Build an index and match: seconds, events per second, matches."""
    begin = process_time()
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    built = process_time() - begin
    rates, matches = [], 0
    for _ in range(PASSES):
        begin = thread_time()
        matches = int(matcher.match(events).counts.sum())
        rates.append(len(events) / (thread_time() - begin))
    return {
        "rules": len(catalog),
        "build s": round(built, 2),
        "events/s": round(max(rates)),
        "matches": matches,
    }


def main() -> None:
    """Measure both catalogs and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few rules and events: does it run?")
    small = parser.parse_args().small
    world = World()
    rules = [world.rule() for _ in range(100 if small else 3_000)]
    words = {f"w{n}": world.word_rule() for n in range(100 if small else 3_600)}
    events = pa.Table.from_pylist([world.event(rules) for _ in range(500 if small else 10_000)])
    begin = process_time()
    translated = {f"r{n}": sigma(rule) for n, rule in enumerate(rules)}
    taken = round(process_time() - begin, 2)
    measured({"warm": translated["r0"], "up": words["w0"]}, events.slice(0, 100))
    print(json.dumps({"catalog": "rules", "translate s": taken, **measured(translated, events)}))
    print(json.dumps({"catalog": "contains", **measured(words, events)}))


if __name__ == "__main__":
    main()
