"""Detection rules over log events: ``python -m benchmarks.detections [--small]``.

Two catalogs are generated from a seed. ``rules`` has 3,000 rules as Sigma has them: an image that
ends in one of a few names, a command line that contains up to three words, a parent, and a filter
of users or paths that must not hold; ``bittern.imports.sigma`` translates them. ``contains`` has
3,600 rules of one word each, in any case, over twelve fields. The events are those of process
creation, twenty fields each. Each catalog is asked about them three times: as they are, when
hardly a rule matches, and with what 0.1, or 5, rules per event ask for put into them. (Of several
rules of Sigma put into one event the last decides its image, so not all of them match.) All times
are CPU time of one thread, and each rate is the best of five passes over 10,000 events as an Arrow
table.
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
#: Rules per event whose demands are put into the events.
SHARES = (0.1, 5)
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

    def word_rule(self) -> tuple[str, str]:
        """One word somewhere in one field, in any case: the field and the word."""
        word = self.random.choice(self.words) + self.random.choice(self.words)[:3]
        return self.random.choice(FIELDS), word

    def event(self) -> dict[str, Any]:
        """One process that starts."""
        draw = self.random
        words = draw.choices(self.words, k=draw.randrange(2, 12))
        program = draw.choice(self.programs)
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


def as_rule_asks(event: dict[str, Any], rule: dict[str, Any]) -> None:
    """Let an event have what a rule selects."""
    selection = rule["detection"]["selection"]
    event["CommandLine"] += " " + " ".join(selection["CommandLine|contains|all"])
    for name in ("Image", "ParentImage"):
        wanted = selection.get(f"{name}|endswith")
        if wanted is not None:
            event[name] = "C:" + (wanted if isinstance(wanted, str) else wanted[0])


def as_word_asks(event: dict[str, Any], rule: tuple[str, str]) -> None:
    """Let an event have a word in its field, in capitals."""
    name, word = rule
    event[name] += f" {word.upper()}"


def with_matches(
    world: World, events: list[dict[str, Any]], rules: list[Any], share: float, put: Any
) -> pa.Table:
    """The events, each with what ``share`` rules on average ask for."""
    found = [dict(event) for event in events]
    for _ in range(round(share * len(found))):
        put(world.random.choice(found), world.random.choice(rules))
    return pa.Table.from_pylist(found)


def measured(catalog: dict[str, str], tables: dict[str, pa.Table]) -> dict[str, Any]:
    """Build an index and match: seconds, and for each table events per second and matches."""
    begin = process_time()
    matcher = bittern.Matcher(bittern.Index.build(catalog))
    told: dict[str, Any] = {"rules": len(catalog), "build s": round(process_time() - begin, 2)}
    for name, events in tables.items():
        rates, matches = [], 0
        for _ in range(PASSES):
            begin = thread_time()
            matches = int(matcher.match(events).counts.sum())
            rates.append(len(events) / (thread_time() - begin))
        told[name] = {
            "events/s": round(max(rates)),
            "matches per event": round(matches / len(events), 3),
        }
    return told


def main() -> None:
    """Measure both catalogs and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few rules and events: does it run?")
    small = parser.parse_args().small
    world = World()
    rules = [world.rule() for _ in range(100 if small else 3_000)]
    words = [world.word_rule() for _ in range(100 if small else 3_600)]
    events = [world.event() for _ in range(500 if small else 10_000)]
    begin = process_time()
    translated = {f"r{n}": sigma(rule) for n, rule in enumerate(rules)}
    taken = round(process_time() - begin, 2)
    said = {f"w{n}": contains(*each) for n, each in enumerate(words)}

    def tables(own: list[Any], put: Any) -> dict[str, pa.Table]:
        plain = pa.Table.from_pylist(events)
        shares = {
            f"{share} put in": with_matches(world, events, own, share, put) for share in SHARES
        }
        return {"as they are": plain, **shares}

    warm = pa.Table.from_pylist(events[:100])
    measured({"warm": translated["r0"], "up": said["w0"]}, {"warm": warm})
    told = measured(translated, tables(rules, as_rule_asks))
    print(json.dumps({"catalog": "rules", "translate s": taken, **told}))
    print(json.dumps({"catalog": "contains", **measured(said, tables(words, as_word_asks))}))


def contains(field: str, word: str) -> str:
    """The condition of a word in a field."""
    name = say.path(field)
    return say.like(name, say.ANY_TEXT, word, say.ANY_TEXT, ignoring_case=True)


if __name__ == "__main__":
    main()
