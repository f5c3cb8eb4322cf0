#!/usr/bin/env python3
"""Say which test files take how long, and keep the order in which they are started.

    make test-all TEST_ARGS=--junit-xml=/tmp/times.xml
    scripts/test_times.py /tmp/times.xml          # prints the files and the longest tests
    scripts/test_times.py /tmp/times.xml --keep   # and writes tests/longest.txt

Seconds are those of a clock, with what a test and its module set up: nothing else should run then.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

LONGEST = Path(__file__).parents[1] / "tests" / "longest.txt"
#: Shorter files come last, in any order.
SHORT = 5.0


def main() -> None:
    """Print the times of a report, and keep the order if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, help="what pytest --junit-xml has written")
    parser.add_argument("--keep", action="store_true", help=f"write {LONGEST.name}")
    options = parser.parse_args()
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for case in ET.parse(options.report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        name = file_of(case.get("classname", ""))
        files[name] += float(case.get("time", 0))
        tests[f"{name}::{case.get('name')}"] += float(case.get("time", 0))
    print(f"{sum(files.values()):.0f} s in {len(files)} files, {len(tests)} tests")
    for each in (files, tests):
        print()
        for name, seconds in each.most_common(40):
            print(f"{seconds:7.1f}  {name}")
    if options.keep:
        kept = [name for name, seconds in files.most_common() if seconds > SHORT]
        LONGEST.write_text("\n".join([*kept, ""]))


def file_of(classname: str) -> str:
    """The test file of a dotted name of classes."""
    return next(part for part in classname.split(".") if part.startswith("test_"))


if __name__ == "__main__":
    main()
