"""Subscriptions that compare events with documents, when there is no history.

They must not stop the matches of other subscriptions. A matcher without a history refuses new
ones, and leaves out those of an index that it is given: they match nothing, and one warning says
so. That includes NOT EXISTS: without a history it is not known that there are no earlier documents.

Cost: nothing for an index without quantifiers; else its texts with quantifiers are read once more.
"""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import numpy.typing as npt

from bittern.engine.index import Index
from bittern.engine.live.delta import ALL_ALIVE
from bittern.errors import BadSubscription
from bittern.language.lexer import QUANTIFIERS, tokens
from bittern.language.shapes import Shapes
from bittern.language.syntax import IsNull
from bittern.language.templates import Slot, Template
from bittern.language.trees import flat

logger = logging.getLogger("bittern")

#: Every text with a quantifier has one of these somewhere; reading it tells whether it means one.
SUSPECT = "(?i)exists|forall|∃|∀"
_REASON = "EXISTS and FORALL compare events with earlier documents, and there is no history"
#: What to do where ``LiveMatcher`` has no history.
REMEDY = "match it with LiveMatcher(..., history=...)"

_answered: WeakKeyDictionary[Index, npt.NDArray[np.uint8]] = WeakKeyDictionary()
_told: WeakSet[Index] = WeakSet()


def needs_history(template: Template) -> bool:
    """Whether a text of this template depends on documents."""
    return "join" in template.kinds and any(
        isinstance(node, IsNull)
        and isinstance(node.attribute, Slot)
        and node.attribute.kind == "join"
        for node in flat(template.tree)
    )


def first_quantifier(text: str) -> int:
    """The position of the first EXISTS or FORALL of a text that has one."""
    return next(token.position for token in tokens(text) if token.kind in QUANTIFIERS)


def refused(id_: str | int, text: str, remedy: str) -> BadSubscription:
    """The refusal of a subscription that needs a history when there is none."""
    return BadSubscription(id_, first_quantifier(text), f"{_REASON}: {remedy}")


def answered(index: Index) -> npt.NDArray[np.uint8]:
    """Marks of the subscriptions that can be matched without a history; empty: all."""
    if index.encoder.hidden is None:
        return ALL_ALIVE
    if index not in _answered:
        import pyarrow.compute as pc  # noqa: PLC0415  half of what all imports take

        marks, shapes = np.ones(len(index), dtype=np.uint8), Shapes()
        suspects = pc.match_substring_regex(index.texts, SUSPECT).to_numpy(zero_copy_only=False)
        for position in np.flatnonzero(suspects).tolist():
            shape, _ = shapes.read(index.texts[position].as_py())
            marks[position] = not needs_history(shapes.templates[shape])
        _answered[index] = marks
    return _answered[index]


def alive_and_answered(index: Index, alive: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Marks of those that are alive and can be matched without a history; empty: all."""
    marks = answered(index)
    if not len(marks):
        return alive
    return marks & alive if len(alive) else marks


def tell_unanswered(index: Index) -> None:
    """Warn once if some subscriptions are left out."""
    n = int(np.count_nonzero(answered(index) == 0))
    if n and index not in _told:
        _told.add(index)
        logger.warning(
            "bittern: %d subscription(s) are left out: %s: use LiveMatcher(index, history=...)",
            n,
            _REASON,
        )
