"""Pattern sets of snapshots of format 2, which had no programs and no places: they are built again.

There the text of a contains was in its automaton only; LIKE programs and regular expressions were
as they are now. Opening such a snapshot takes as long as building its patterns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bittern.model.patterns import CONTAINS, LIKE, REGEX
from bittern.model.patterns.filing import ACCEPT, RUN
from bittern.model.patterns.likes import ANY_ONE, ANY_RUN
from bittern.model.patterns.sets import PatternSet


def set_of_older(arrays: Mapping[str, np.ndarray]) -> PatternSet:
    """Build a set of format 2 again. O(total text)."""
    offsets, texts = arrays["text_offsets"].tolist(), arrays["texts"].tobytes()
    contained = _contained(arrays)
    patterns = []
    for pattern, action in enumerate(arrays["actions"].tolist()):
        own = texts[offsets[pattern] : offsets[pattern + 1]]
        if action == ACCEPT:
            patterns.append((CONTAINS, contained[pattern]))
        elif action == RUN:
            patterns.append((LIKE, _like_text(own)))
        else:
            patterns.append((REGEX, own.decode()))
    return PatternSet.build([kind for kind, _ in patterns], [text for _, text in patterns])


def _contained(arrays: Mapping[str, np.ndarray]) -> dict[int, str]:
    """The literal that each pattern of the first automaton is filed under, by pattern."""
    children, labels = arrays["plain_children"].tolist(), arrays["plain_labels"].tolist()
    byte_of = {number: byte for byte, number in enumerate(arrays["plain_classes"].tolist())}
    prefixes = [b""]
    # A literal belongs to the first state that ends with it: states come by their length.
    states: dict[int, int] = {}
    for state, hit in enumerate(arrays["plain_hits"].tolist()):
        states.setdefault(hit, state)
        for child in range(children[state], children[state + 1]):
            prefixes.append(prefixes[state] + bytes([byte_of[labels[child]]]))
    filed, starts = arrays["plain_filed"].tolist(), arrays["plain_filed_offsets"].tolist()
    return {
        pattern: prefixes[states[literal]].decode(errors="replace")
        for literal in range(len(starts) - 1)
        for pattern in filed[starts[literal] : starts[literal + 1]]
    }


def _like_text(program: bytes) -> str:
    """The LIKE pattern of a program."""
    text = program.replace(b"\\", b"\\\\").replace(b"%", b"\\%").replace(b"_", b"\\_")
    return text.replace(bytes([ANY_RUN]), b"%").replace(bytes([ANY_ONE]), b"_").decode()
