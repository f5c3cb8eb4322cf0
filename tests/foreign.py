"""Rules of other systems: a translation answers as the foreign system does.

``agree(translate, judge, rules, events)`` makes one index of all rules and asks it about all
events, as mappings and as JSON text; ``judge(rule, event)`` says what the foreign system (or a
plain evaluator of its meaning) answers. What is printed reads back as the same expression.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import bittern
from bittern.language.parser import parse
from bittern.language.printer import print_expression


def agree(
    translate: Callable[[Any], str],
    judge: Callable[[Any, Any], bool],
    rules: Sequence[Any],
    events: Sequence[dict[str, Any]],
) -> int:
    """Compare every answer; returns how many were compared."""
    texts = [translate(rule) for rule in rules]
    for text in texts:
        assert print_expression(parse(text)) == text
    matcher = bittern.Matcher(bittern.Index.build(list(enumerate(texts))))
    found = matcher.match(list(events)).to_pylist()
    read = matcher.match([json.dumps(event) for event in events]).to_pylist()
    for place, event in enumerate(events):
        for number, rule in enumerate(rules):
            expected = judge(rule, event)
            for form, ids in (("mapping", found[place]), ("JSON", read[place])):
                assert (number in ids) == expected, (form, rule, texts[number], event, expected)
    return len(rules) * len(events)
