"""What a file would become, before it is loaded: subscriptions, or rules of another system.

The same text is read again when it is loaded, so that nothing has to be kept between the two. Rules
that are refused are listed with their places; the others can be loaded without them.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from bittern.catalog.catalog import Catalog, Loaded
from bittern.catalog.files import read_rows
from bittern.catalog.rows import Door
from bittern.errors import BadSubscription, OptionError
from bittern.imports.formats import FORMATS as RULES
from bittern.imports.rule_files import read_rules
from bittern.service.import_rules import subscription_of

#: Our own formats, by what a page calls them, and those of others.
OWN = {"csv": "CSV with the columns id and expression", "jsonl": "JSON lines"}
FORMATS = OWN | {name: form.title for name, form in RULES.items()}
#: Those of which one can say which attributes hold lists.
WITH_LISTS = ("eventbridge", "sns", "mongo", "elasticsearch")
#: Rows that a page shows of each kind.
SHOWN = 200


class PreviewRow(NamedTuple):
    """A subscription as it would be loaded, or what is wrong with it."""

    id: str
    expression: str | None
    problem: str | None
    position: int | None = None


class Preview(NamedTuple):
    """All of a file: how many are good, how many are not, and some of each."""

    good: int
    bad: int
    rows: list[PreviewRow]


def preview(catalog: Catalog, form: str, text: str, options: dict[str, Any]) -> Preview:
    """Read a text and check each subscription. O(text)."""
    door = Door(catalog.allows_quantifiers, catalog.functions, lambda: set(catalog.sets))
    good: list[PreviewRow] = []
    bad: list[PreviewRow] = []
    n_good = n_bad = 0
    for given in _read(form, text, options):
        found = given if isinstance(given, PreviewRow) else _checked(door, given)
        if found.problem is None:
            n_good += 1
            good += [found] if len(good) < SHOWN else []
        else:
            n_bad += 1
            bad += [found] if len(bad) < SHOWN else []
    return Preview(n_good, n_bad, bad + good)


def load(catalog: Catalog, form: str, text: str, options: dict[str, Any]) -> Loaded:
    """Load what is good as one version."""
    if form in RULES:
        rows = [each for each in _read(form, text, options) if isinstance(each, dict)]
        return catalog.load(rows, on_error="skip")
    _check(form)
    with tempfile.TemporaryDirectory(prefix="bittern-import-") as folder:
        file = Path(folder) / f"subscriptions.{form}"
        file.write_text(text, encoding="utf-8")
        return catalog.load(file, on_error="skip")


def _check(form: str) -> None:
    if form not in FORMATS:
        raise OptionError(f"format must be one of {', '.join(FORMATS)}")


def _read(form: str, text: str, options: dict[str, Any]) -> Any:
    """Rows: the values of a subscription, a subscription of a rule, or what is wrong."""
    _check(form)
    if form in OWN:
        return read_rows(io.BytesIO(text.encode()), form)
    return _rules(form, text, options)


def _rules(form: str, text: str, options: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="bittern-import-") as folder:
        file = Path(folder) / f"pasted{RULES[form].suffixes[0]}"
        file.write_text(text, encoding="utf-8")
        for each in read_rules(form, [str(file)], **options):
            if each.error is not None:
                place = f"{each.error.place}: " if each.error.place else ""
                yield PreviewRow(each.id, None, f"{place}{each.error.reason}")
            else:
                yield subscription_of(form, each._replace(source="service"))


def _checked(door: Door, given: Any) -> PreviewRow:
    if isinstance(given, BadSubscription):
        return PreviewRow(str(given.id), None, given.message, given.position)
    values = given
    if isinstance(given, dict):
        values = (given["id"], given["expression"], None, None, given["metadata"], True)
    expression = values[1] if isinstance(values[1], str) else None
    found = door.check(values)
    if isinstance(found, BadSubscription):
        return PreviewRow(str(found.id), expression, found.message, found.position)
    return PreviewRow(str(values[0]), expression, None)
