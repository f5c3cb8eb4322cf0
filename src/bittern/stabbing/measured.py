"""The costs of the units of search work: measured once, and the same everywhere.

The choice of a structure must not depend on the machine that makes it, or on its load: a snapshot
built twice would differ. So these are constants. ``benchmarks/constants.py`` measured them: all
structures over eight sets of intervals, batches of 16,384 values in random order, one thread of a
server processor with 1 MiB of second-level cache per core; the prices are a least-squares fit of
the times to the work that is predicted. Predicted times are typically within a factor of 1.5 of
measured ones there, and other machines mostly move all of them together, which chooses the same.
"""

from __future__ import annotations

NANOSECONDS = {
    "values": 7.24,
    "headers": 0.49,
    "lists": 4.42,
    "ids": 0.16,
    "bits": 0.46,
    "steps": 3.26,
    "words": 3.09,
    "misses": 3.74,
    "waits": 40.42,
}
"""Price of each unit of ``stabbing/estimate.Work``."""

CACHE_BYTES = 2**22
"""Bytes of an array of which lines come without delay if many are asked for, as the fit sees it."""

NEAR_BYTES = 2**19
"""Bytes of a tree that are at hand when each step waits for the one before."""
