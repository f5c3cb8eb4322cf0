"""Sigma rules of YAML text: its documents, read within limits, and the rule of each.

YAML has more than rules need, and some of it can keep a reader busy for ever. So the text is gone
through twice: once event by event, which stops at what is too deep or too large, and then document
by document. Keys that come twice, merged mappings (``<<``) and numbers of more than 100 characters
are refused: which of two keys counts nobody can tell, and the others grow beyond all bounds.

pySigma makes a rule of each document by itself, so that a bad one does not stop the others. Where
documents belong together (``action``, correlations, filters), it gets all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import yaml
from sigma.collection import SigmaCollection
from sigma.exceptions import SigmaError
from sigma.rule import SigmaDetection, SigmaDetectionItem, SigmaRule
from sigma.rule.base import check_alias_expansion

from bittern.errors import RuleError, brief
from bittern.imports.formats import Wrapped
from bittern.imports.json_rules import MAX_DEPTH, MAX_TEXT, MAX_VALUES, place_of

#: What pySigma raises where it meets a form that it does not expect.
ODD_FORM = (TypeError, AttributeError, ValueError, KeyError, IndexError)
#: Characters of a number: YAML's with colons take the square of them.
_MAX_NUMBER = 100
_MERGE = "tag:yaml.org,2002:merge"
_NAME = re.compile(r"[\w-]+")
#: Characters of a condition, and values that all conditions of a rule name.
MAX_CONDITION = 16_384
MAX_NAMED = 16_384
#: Where conditions stand.
CONDITION = place_of(("detection", "condition"))
#: Documents with one of these keys are about others.
_ABOUT_OTHERS = ("action", "correlation", "filter")


def rules_in(document: Any) -> Iterator[Wrapped]:
    """The rules of YAML text with one document or several; a bad one is its ``RuleError``."""
    if isinstance(document, str):
        documents = _documents(document)
    elif isinstance(document, dict):
        documents = [(1, document)]
    else:
        raise RuleError(f"a rule is YAML text or a mapping, not {brief(document)}")
    if not documents:
        raise RuleError("it contains no rule")
    if any(key in each for _, each in documents for key in _ABOUT_OTHERS if isinstance(each, dict)):
        yield from _together(each for _, each in documents)
        return
    for number, (line, each) in enumerate(documents):
        yield _alone(each)._replace(path=(number,), line=line)


def refusal(wrong: Exception, place: str = "") -> RuleError:
    """What pySigma or YAML did not take."""
    if isinstance(wrong, RecursionError):
        return RuleError("the rule is nested too deeply", place)
    if isinstance(wrong, NotImplementedError):
        reason = "a correlation combines several events, but Bittern matches one at a time"
        return RuleError(reason, place)
    if isinstance(wrong, ODD_FORM) and not isinstance(wrong, SigmaError):
        return RuleError("this is not a Sigma rule: it does not have the form of one", place)
    return RuleError(str(wrong) or type(wrong).__name__, place)


# YAML


class _Loader(yaml.CSafeLoader):
    """Constructs what Sigma has of YAML."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 (YAML's)
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                raise _wrong("<< is not read: write the fields out", key_node)
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise _wrong("a key is a text", key_node)
            if key in seen:
                raise _wrong(f"the key {brief(key)} comes twice", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> Any:
        if node.tag.endswith((":int", ":float")) and len(node.value) > _MAX_NUMBER:
            raise _wrong(f"a number has at most {_MAX_NUMBER} characters", node)
        return super().construct_scalar(node)


def _wrong(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _documents(text: str) -> list[tuple[int, Any]]:
    """The documents that are not empty, with their first lines."""
    try:
        lines = list(_first_lines(text))
        found = list(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
        raise RuleError(f"this is not YAML: {wrong.problem or wrong.context}", place) from None
    except (yaml.YAMLError, RecursionError, *ODD_FORM) as wrong:
        raise RuleError(f"this is not YAML: {wrong}") from None
    return [(line, each) for line, each in zip(lines, found, strict=True) if each is not None]


def _first_lines(text: str) -> Iterator[int]:
    """The line in which each document starts, after it was found to be within limits."""
    depth = n_values = start = line = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        begin, end = event.start_mark, event.end_mark
        assert begin is not None
        assert end is not None
        if isinstance(event, yaml.DocumentStartEvent):
            depth = n_values = 0
            start, line = begin.index, begin.line + (2 if event.explicit else 1)
        elif isinstance(event, yaml.NodeEvent):
            n_values += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        place = f"line {begin.line + 1}"
        if depth > MAX_DEPTH:
            raise RuleError(f"a rule is nested too deeply: at most {MAX_DEPTH} levels", place)
        if n_values > MAX_VALUES:
            raise RuleError(f"a rule has at most {MAX_VALUES:,} values", place)
        if end.index - start > MAX_TEXT:
            raise RuleError(f"a rule has at most {MAX_TEXT:,} characters", place)
        if isinstance(event, yaml.DocumentEndEvent):
            yield line


# Rules


def _alone(document: Any) -> Wrapped:
    """The rule of one document."""
    if not isinstance(document, dict):
        return Wrapped(None, RuleError(f"a rule is a mapping, not {brief(document)}"))
    name = document.get("id") or document.get("title")  # also of a rule that is refused
    name = str(name) if isinstance(name, str | int) else None
    try:
        check_alias_expansion(document)
        rule = SigmaRule.from_dict(document, collect_errors=True)
    except (SigmaError, RecursionError, *ODD_FORM) as wrong:
        return Wrapped(name, refusal(wrong, _mistake_in(document)))
    if rule.errors:
        return Wrapped(name, refusal(rule.errors[0], _mistake_in(document)))
    return Wrapped(str(rule.id or rule.title) or None, rule)


def _mistake_in(document: dict[Any, Any]) -> str:
    """The place of the first item that pySigma does not take."""
    detections = document.get("detection")
    for name, own in detections.items() if isinstance(detections, dict) else ():
        for items in own if isinstance(own, list) else [own]:
            for key, value in items.items() if isinstance(items, dict) else ():
                try:
                    SigmaDetectionItem.from_mapping(key, value)
                except (SigmaError, *ODD_FORM):
                    return place_of(("detection", str(name), str(key)))
    return ""


def _together(documents: Iterable[Any]) -> Iterator[Wrapped]:
    """The rules of documents that are about each other."""
    try:
        found = SigmaCollection.from_dicts(list(documents), collect_errors=True)
    except (SigmaError, RecursionError, *ODD_FORM) as wrong:
        raise refusal(wrong) from None
    if not found.rules and not found.errors:
        raise RuleError("it contains no rule: a filter is read with the rules that it is about")
    known = {id(error) for rule in found.rules for error in rule.errors}
    for number, rule in enumerate(found.rules):
        name = getattr(rule, "id", None) or getattr(rule, "title", None)
        own = refusal(rule.errors[0]) if rule.errors else rule
        yield Wrapped(None if not name else str(name), own, (number,))
    for number, error in enumerate(found.errors):
        if id(error) not in known:
            yield Wrapped(None, refusal(error), ("errors", number))


def check_conditions(rule: SigmaRule) -> None:
    """Refuse conditions that name detections so often that their values are too many."""
    sizes = {name: _size(each) for name, each in rule.detection.detections.items()}
    count = 0
    for condition in rule.detection.condition:
        if not isinstance(condition, str):
            raise RuleError(f"a condition is text, not {brief(condition)}", CONDITION)
        if len(condition) > MAX_CONDITION:
            raise RuleError(f"a condition has at most {MAX_CONDITION:,} characters", CONDITION)
        for word in _NAME.findall(condition):
            count += sum(sizes.values()) if word == "of" else 1 + sizes.get(word, 0)
    if count > MAX_NAMED:
        said = f"conditions name at most {MAX_NAMED:,} values, each as often as they say it"
        raise RuleError(said, CONDITION)


def _size(detection: SigmaDetection) -> int:
    return sum(
        _size(each) if isinstance(each, SigmaDetection) else len(each.value)
        for each in detection.detection_items
    )
