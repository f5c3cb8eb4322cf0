"""How large what a term computes may become. Rows beyond fail, with a reason.

Each limit bounds the memory or the time that one batch can be made to take by a short text.
"""

from __future__ import annotations

#: Bytes of one value that a function builds, and of all values of one column of them.
MAX_VALUE_BYTES = 1 << 20
MAX_COLUMN_BYTES = 64 << 20

#: Characters of a regular expression, or of a LIKE pattern with wildcards inside.
MAX_REGEX_LENGTH = 1_000

#: Bytes that one compiled regular expression may take.
MAX_REGEX_BYTES = 1 << 20

#: Pairs of characters that levenshtein compares for one row, and for all rows of a column.
MAX_ROW_PAIRS = 1 << 24
MAX_COLUMN_PAIRS = 1 << 30
