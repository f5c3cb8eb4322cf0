"""Worked examples of the papers that several structures are held to."""

from __future__ import annotations

EXAMPLE_4 = [
    *[(18, 25, 0), (10, 40, 1), (15, 60, 2), (60, 80, 3)],
    *[(5, 50, 4), (75, 90, 5), (8, 45, 6), (30, 70, 7)],
]
"""Profiles on x that agree with all that the text of seed 004 says; their figure is lost."""
#: The same where figure 6 needs another end.
TREE_EXAMPLE_4 = [
    (18, 25, 0),
    (10, 35, 1),
    (15, 60, 2),
    (60, 80, 3),
    (5, 50, 4),
    (75, 90, 5),
    (8, 45, 6),
    (30, 70, 7),
]
#: Profiles with the end points and counts of the paper's example in 4.1.1.
FIVE = [(2, 6, 0), (6, 21, 1), (19, 23, 2), (21, 48, 3), (23, 50, 4)]
