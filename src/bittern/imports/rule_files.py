"""Files of foreign rules to expressions with ids: files, folders, lines, standard input.

``read_rules("eventbridge", ["rules/"])`` yields one ``TranslatedRule`` per rule: its id, and the
expression that it became or the ``RuleError`` that says why not. A rule that is refused does not
stop the others; a file that cannot be opened is the caller's mistake, and raises ``OSError``.

The id of a rule is its name in the document, else its file's path without the extension, with the
line or the path inside the document where a file has several. If two rules have one id, the second
is refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bittern.errors import OptionError, RuleError, brief
from bittern.imports.constructs import with_constructs
from bittern.imports.formats import FORMATS, RuleFormat, Wrapped
from bittern.imports.json_rules import MAX_TEXT, object_of, place_of

#: Bytes of one file.
MAX_FILE = 1 << 30


class TranslatedRule(NamedTuple):
    """What one rule became: an expression, or an error. ``source`` is its file and line.

    ``rule`` is the rule as the file has it, of a Sigma rule its title; ``constructs`` are the
    predicates of the expression with what they came from (constructs.py).
    """

    id: str
    source: str
    expression: str | None
    error: RuleError | None
    rule: Any = None
    constructs: Mapping[str, str] = {}


class _Found(NamedTuple):
    """A rule as a file has it."""

    id: str
    source: str
    rule: Any  # text, an object, or the error that reading it met
    path: tuple[str | int, ...] = ()


def read_rules(
    form: str,
    names: Iterable[str],
    *,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Iterator[TranslatedRule]:
    """Translate the rules of files and folders; ``-`` is standard input.

    ``options`` are those of the format's function. ``progress`` is told how many rules are done.
    """
    yield from _translated(form, _in_files(_format(form), names), progress, options)


def _format(form: str) -> RuleFormat:
    if form not in FORMATS:
        raise OptionError(f"there is no format {brief(form)}: one of {', '.join(FORMATS)}")
    return FORMATS[form]


def _translated(
    form: str,
    rules: Iterator[_Found],
    progress: Callable[[int], None] | None,
    options: dict[str, Any],
) -> Iterator[TranslatedRule]:
    translate = getattr(import_module("bittern.imports"), form)
    seen: set[str] = set()
    for number, found in enumerate(rules, 1):
        outcome = _outcome(found, translate, options)
        if outcome.error is None and outcome.id in seen:
            reason = f"another rule has the id {brief(outcome.id)}: rename one of them"
            outcome = outcome._replace(
                expression=None, error=RuleError(reason, file=outcome.source)
            )
        seen.add(outcome.id)
        yield outcome
        if progress is not None:
            progress(number)


def _outcome(
    found: _Found, translate: Callable[..., str], options: dict[str, Any]
) -> TranslatedRule:
    try:
        if isinstance(found.rule, RuleError):
            raise found.rule
        expression, constructs = with_constructs(translate, found.rule, **options)
        rule = found.rule if isinstance(found.rule, str | dict | list) else found.rule.title
        return TranslatedRule(found.id, found.source, expression, None, rule, constructs)
    except RuleError as wrong:
        place = wrong.place
        if found.path:  # the rule's own path starts where the document's path ends
            place = place_of(found.path) + place.removeprefix("$")
        error = RuleError(wrong.reason, place, found.source)
        return TranslatedRule(found.id, found.source, None, error)


def _in_files(form: RuleFormat, names: Iterable[str]) -> Iterator[_Found]:
    for name in names:
        for file, stem in _files(form, name):
            try:
                text = _text(file)
            except RuleError as wrong:
                yield _Found(stem, wrong.file, RuleError(wrong.reason))
                continue
            source = "standard input" if file is None else str(file)
            if form.content == "lines" and _is_json_lines(file):
                yield from _json(text, stem, source, form)
            else:
                yield from _in_text(form, text, stem, source)


def _in_text(form: RuleFormat, text: str, stem: str, source: str) -> Iterator[_Found]:
    read = {"yaml": _yaml, "lines": _lines, "json": _json}[form.content]
    yield from read(text, stem, source, form)


def _files(form: RuleFormat, name: str) -> Iterator[tuple[Path | None, str]]:
    """Files with the beginnings of their rules' ids; of a folder, all below with its extensions."""
    if name == "-":
        yield None, "stdin"
        return
    path = Path(name)
    if not path.is_dir():
        yield path, path.stem
        return
    found = sorted(each for each in path.rglob("*") if each.suffix.lower() in form.suffixes)
    files = [each for each in found if each.is_file()]
    if not files:
        raise OptionError(f"{name} has no files that end in {', '.join(form.suffixes)}")
    for each in files:
        yield each, each.relative_to(path).with_suffix("").as_posix()


def _text(file: Path | None) -> str:
    if file is None:
        content = sys.stdin.buffer.read(MAX_FILE + 1)
    else:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE + 1)
    source = "standard input" if file is None else str(file)
    if len(content) > MAX_FILE:
        raise RuleError(f"a file has at most {MAX_FILE:,} bytes", file=source)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise RuleError(f"the file is not UTF-8: {wrong}", file=source) from None


def _is_json_lines(file: Path | None) -> bool:
    return file is not None and file.suffix.lower() in (".ndjson", ".jsonl")


def _lines(text: str, stem: str, source: str, form: RuleFormat) -> Iterator[_Found]:
    """One rule in each line that is neither empty nor a comment; no rule starts with a brace."""
    for number, line in enumerate(text.splitlines(), 1):
        rule, own, place = line.strip(), f"{stem}:{number}", f"{source}, line {number}"
        if rule.startswith("{"):
            yield from _document(rule, own, place, form)
        elif rule and not rule.startswith("#"):
            yield _Found(own, place, rule)


def _json(text: str, stem: str, source: str, form: RuleFormat) -> Iterator[_Found]:
    """One document: a rule or an array of rules; or a document in each line."""
    document: Any
    try:
        document = json.loads(text, object_pairs_hook=object_of)
    except (ValueError, RecursionError):
        rows = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(rows) > 1 and all(line.lstrip()[0] in "{[" for _, line in rows):
            for number, line in rows:
                yield from _document(line, f"{stem}:{number}", f"{source}, line {number}", form)
            return
        yield _Found(stem, source, text)  # the format says what is wrong with it
        return
    if isinstance(document, list):
        for place, each in enumerate(document):
            yield from _document(each, f"{stem}:{place}", source, form, (place,))
    else:
        yield from _document(text, stem, source, form)


def _document(
    rule: Any, stem: str, source: str, form: RuleFormat, path: tuple[str | int, ...] = ()
) -> Iterator[_Found]:
    """The rules of one document, which may wrap them."""
    wraps = getattr(import_module(f"bittern.imports.{form.module}"), "rules_in", None)
    document = rule
    if isinstance(rule, str):
        try:
            document = json.loads(rule, object_pairs_hook=object_of)
        except (ValueError, RecursionError):
            yield _Found(stem, source, rule)
            return
    found = [Wrapped(None, document)] if wraps is None else list(wraps(document))
    if form.content == "lines":
        found = [_of_json_line(document)]
    for name, own, inner, _ in found:
        place = stem if len(found) == 1 else f"{stem}:{place_of(inner).removeprefix('$.')}"
        # Of a whole text, the text: its numbers are read, and its mistakes told, by the format.
        whole = own is document and isinstance(rule, str) and len(rule) <= MAX_TEXT
        yield _Found(name or place, source, rule if whole else own, (*path, *inner))


def _of_json_line(document: Any) -> Wrapped:
    """JSON in place of a line of text: the text, or ``{"id": ..., "expression": ...}``."""
    if isinstance(document, dict) and isinstance(document.get("expression"), str):
        name = document.get("id")
        return Wrapped(None if name is None else str(name), document["expression"])
    return Wrapped(None, document)


def _yaml(text: str, stem: str, source: str, form: RuleFormat) -> Iterator[_Found]:
    """What a format whose rules are YAML finds in one file."""
    module = import_module(f"bittern.imports.{form.module}")
    try:
        found: list[Wrapped] = list(module.rules_in(text))
    except RuleError as wrong:
        yield _Found(stem, source, wrong)
        return
    for name, rule, path, line in found:
        place = stem if len(found) == 1 else f"{stem}:{'.'.join(map(str, path))}"
        yield _Found(name or place, _line_of(source, line if len(found) > 1 else None), rule)


def _line_of(source: str, line: int | None) -> str:
    return source if line is None else f"{source}, line {line}"
