"""The choice between pivots and bits, class by class.

A pivot that holds for a large share of events makes its class a candidate of all of those. In bits
(``matching/bits/index.py``) a class costs its share of a block, whatever its predicates, and then
what is left of it. For a conjunction whose tests hold for the shares p1 <= p2 <= ... of events, in
nanoseconds per event::

    pivot     p1 x 2.5 + p1 x p2 x 10             a look at the posting; what passes inline
    bits      (10 + channels) / 512               its share of a block's lines
              + product of (p + 1 / 32) x 20      what the lines leave, verified

    price in a tenth and size in a tenth          0.35 and 0.4     pivot
    ten ranges over 20 channels, 0.4 wide each    2.6 and 0.06     bits
    model = 'x', of 1,000 models                  0.0025           pivot

The constants were measured with ``benchmarks/strategies.py``. Whatever is not a plain conjunction
stays with pivots, which file it piece by piece, as does everything where there are more channels
than a block can have lines for. Bits are used where classes save some microseconds
for each event, and where they are many: an index with both has two of everything to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittern.arrays import Float64s, Mask
from bittern.jit import b1w, f8, f8r, i8, kernel
from bittern.matching.pivot.cover import UNCOVERABLE, test_cost
from bittern.model.classes.classes import CLASSES, Classes

#: Classes, and nanoseconds per event that they save, from which on bits are used by themselves.
LEAST_CLASSES = 4096
LEAST_SAVED = 4000.0
#: Nanoseconds: a posting, one that passes its inline test, a block, a line, a class that is left.
_POSTING, _PASSED, _BLOCK, _LINE, _LEFT = 2.5, 10.0, 10.0, 1.0, 20.0
#: Groups that the cells of a channel are taken to have.
_GROUPS = 32.0
#: Channels that a block can have lines for. Where there are more, events have few of them, and how
#: few is not known without a sample: pivots are better then.
_MOST_CHANNELS = 96


@kernel(f8, CLASSES, f8r, i8, b1w)
def _choose(classes: Any, mass: Any, n_channels: Any, chosen: Any) -> Any:
    """Mark the classes that cost less in bits; returns the nanoseconds that they save."""
    channels, lows, highs, starts, counts, structure_of, _ = classes
    tested = np.zeros(n_channels, dtype=np.bool_)
    saved, n_tested = 0.0, 0
    for turn in range(2):  # first without lines, to know how many channels there would be
        columns = n_tested if turn else 0
        saved = 0.0
        for c in range(len(counts)):
            if structure_of[c] != 0 or (turn and not chosen[c]):
                continue
            least, second, left = 1.0, 1.0, 1.0
            never = False
            for i in range(starts[c], starts[c] + counts[c]):
                never |= lows[i] > highs[i]
                share = test_cost(lows[i], highs[i], mass)
                if share >= UNCOVERABLE:
                    continue  # "missing": there is no saying how often
                left *= min(1.0, share + 1.0 / _GROUPS)
                second = min(second, max(share, least))
                least = min(least, share)
            pivot = least * _POSTING + least * second * _PASSED
            bits = (_BLOCK + columns * _LINE) / 512.0 + left * _LEFT
            chosen[c] = bits < pivot and not never
            if not chosen[c]:
                continue
            saved += pivot - bits
            for i in range(starts[c], starts[c] + counts[c]):
                if not tested[channels[i]]:
                    tested[channels[i]] = True
                    n_tested += 1
        if n_tested > _MOST_CHANNELS:
            chosen[:] = False
            return 0.0
    return saved


def cheaper_in_bits(classes: Classes, mass: Float64s, n_channels: int) -> tuple[Mask, float]:
    """The classes to keep in bits, and the nanoseconds per event that this saves. O(tests)."""
    chosen = np.zeros(len(classes), dtype=np.bool_)
    saved = _choose(classes.arrays, mass, n_channels, chosen)
    return chosen, float(saved)


def worth_bits(classes: Classes, mass: Float64s, n_channels: int) -> Mask | None:
    """The classes to keep in bits; None if having bits does not pay for them. O(tests)."""
    if len(classes) < LEAST_CLASSES:
        return None
    chosen, saved = cheaper_in_bits(classes, mass, n_channels)
    pays = int(np.count_nonzero(chosen)) >= LEAST_CLASSES and saved >= LEAST_SAVED
    return chosen if pays else None
