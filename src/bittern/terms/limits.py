"""How large what a term computes may become. Rows beyond fail, with a reason.

Each limit bounds the memory or the time that one batch can be made to take by a short text.
"""

from __future__ import annotations

#: Bytes of one value that a function builds, and of all values of one column of them.
MAX_VALUE_BYTES = 1 << 20
MAX_COLUMN_BYTES = 64 << 20

#: Bytes of computed columns that are held at a time to evaluate one term, and of columns that are
#: kept because several terms share them.
MAX_HELD_BYTES = 256 << 20
MAX_KEPT_BYTES = 256 << 20

#: Bytes that functions build in all to evaluate one term, and more for each row.
MAX_BUILT_BYTES = 1 << 30
MAX_BUILT_BYTES_PER_ROW = 1 << 16

#: Elements that a function is applied to for one row; and in all to evaluate one term, with more
#: for each row: a function inside another goes through its array for each element of the other's.
MAX_ELEMENTS = 10_000_000
MAX_TERM_ELEMENTS = 1 << 24
MAX_TERM_ELEMENTS_PER_ROW = 10_000

#: Characters of a regular expression, or of a LIKE pattern with wildcards inside.
MAX_REGEX_LENGTH = 1_000

#: Bytes that one compiled regular expression may take.
MAX_REGEX_BYTES = 1 << 20

#: Pairs of characters that levenshtein compares for one row, and for all rows of a column.
MAX_ROW_PAIRS = 1 << 24
MAX_COLUMN_PAIRS = 1 << 30
