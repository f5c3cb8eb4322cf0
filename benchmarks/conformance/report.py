"""The page of conformance, from what ``run.py`` has measured.

``python -m benchmarks.conformance.report [RESULT]`` writes ``docs/benchmarks/conformance.md`` and
prints every refusal and difference.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.conformance import reasons
from benchmarks.conformance.run import OUTPUT

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "conformance.md"
PLACES = {"on_spark": "on Spark", "embedded": "embedded"}
_EXAMPLES = 2
_SHOWN = 90


def outcomes(records: list[dict[str, Any]], where: str) -> tuple[list[Any], list[Any], list[Any]]:
    """The expressions that are alike, that differ, and that are refused."""
    refused = [record for record in records if record[where]["refused"] is not None]
    taken = [record for record in records if record[where]["refused"] is None]
    alike = [record for record in taken if reasons.is_alike(record, where)]
    return alike, [record for record in taken if not reasons.is_alike(record, where)], refused


def page(result: dict[str, Any]) -> str:
    """The page as Markdown."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: dict[str, Any]) -> Iterator[str]:
    records = result["expressions"]
    yield _HEAD.format(artifact=result["artifact"], files=result["files"], n=len(records))
    yield "| | accepted | | alike | |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for where, name in PLACES.items():
        alike, different, _ = outcomes(records, where)
        taken = len(alike) + len(different)
        yield (
            f"| {name} | {taken} | {taken / len(records):.1%} "
            f"| {len(alike)} | {len(alike) / len(records):.1%} |"
        )
    failing = sum(bool(record["spark"]["listed"]) for record in records)
    yield f"\nSpark itself fails on some row of {failing} of them."
    never = [record for record in records if 0 < record["rows"] == len(record["spark"]["listed"])]
    for where, name in PLACES.items():
        own = sum(record[where]["refused"] is not None for record in never)
        yield (
            f"Of those that Bittern refuses {name}, {own} fail on every row in Spark: "
            f"a constant that cannot be cast."
        )
    yield ""
    yield "## What is not counted\n"
    yield "| reason | items |"
    yield "| --- | ---: |"
    for why, count in sorted(result["left_out"].items(), key=lambda each: -each[1]):
        yield f"| {why} | {count} |"
    for where, name in PLACES.items():
        _, different, refused = outcomes(records, where)
        yield from _grouped(
            f"Refused {name}",
            [(reasons.refusal(record[where]["refused"]), record["text"]) for record in refused],
        )
        yield from _grouped(
            f"Answered in another way {name}",
            [(reasons.difference(record, where), record["text"]) for record in different],
            every=True,
        )


def _grouped(title: str, found: list[tuple[str, str]], *, every: bool = False) -> Iterator[str]:
    yield f"\n## {title}\n"
    if not found:
        yield "None."
        return
    groups: dict[str, list[str]] = defaultdict(list)
    for why, text in found:
        groups[why].append(text)
    yield "| reason | expressions | for example |"
    yield "| --- | ---: | --- |"
    for why, texts in sorted(groups.items(), key=lambda each: -len(each[1])):
        yield f"| {why} | {len(texts)} | {', '.join(map(_quoted, texts[:_EXAMPLES]))} |"
    if every:
        yield "\nOne by one:\n"
        for why, texts in sorted(groups.items(), key=lambda each: -len(each[1])):
            yield f"- {why}: {', '.join(map(_quoted, texts))}"


def _quoted(text: str) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    line = line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
    return f"`` {line} ``" if "`" in line else f"`{line}`"


_HEAD = """# Conformance: Spark's own SQL tests

Written by `python -m benchmarks.conformance.report` from what `python -m
benchmarks.conformance.run` has measured; `make conformance` runs both. The inputs are the {files}
files of `sql-tests` in `{artifact}`, which Maven fetches; none of them is part of this
repository.

Counted is every Boolean expression in them about one row of one relation: conditions of WHERE,
and items of SELECT lists whose type is BOOLEAN, each once for a relation of its columns. {n}
there are. Each is asked of Spark (`filter`, in ANSI mode), of Bittern in a process
(`Index.build`, the rows as an Arrow table), and of Bittern on Spark (`bittern.spark.match`,
`functions="spark"`), over the first rows of its relation. *Alike* means that the same rows are
kept. Where Spark fails for a row, Bittern's term is NULL and the event is listed: such a row
counts as alike if it is listed.
"""


def main() -> None:
    """Write the page, and print all refusals and differences."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    result = json.loads(source.read_text("utf-8"))
    PAGE.write_text(page(result), encoding="utf-8")
    for where, name in PLACES.items():
        alike, different, refused = outcomes(result["expressions"], where)
        print(f"{name}: {len(alike)} alike, {len(different)} differ, {len(refused)} refused")
        for record in different:
            print(f"  {reasons.difference(record, where)}: {record['text']}")
        why = Counter(reasons.refusal(record[where]["refused"]) for record in refused)
        for words, count in why.most_common():
            print(f"  {count} refused: {words}")


if __name__ == "__main__":
    main()
