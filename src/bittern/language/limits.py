"""How large an expression may be. Reading raises ``LimitError`` beyond these limits.

Each limit bounds something for every input: the time to read one subscription (length), the stack
of code that walks the tree recursively (depth), the size of one compiled program (predicates), how
deep an event is searched (parts), and the memory of one compiled pattern (regex).
"""

from __future__ import annotations

#: Characters of an expression's text.
MAX_LENGTH = 65_536

#: Levels of AND, OR, NOT and parentheses inside each other.
MAX_DEPTH = 200

#: Predicates and constants; every value of an IN list counts.
MAX_PREDICATES = 4_096

#: Parts of an attribute's path. As deep as JSON text and variants are read.
MAX_PARTS = 64

#: Digits of a decimal literal, so that its unscaled value is an int64.
MAX_DECIMAL_DIGITS = 18

#: Documents that the window of a quantifier may count.
MAX_WINDOW_COUNT = 1_000_000_000

#: Days that the window of a quantifier may last, so that microseconds of it never overflow.
MAX_WINDOW_DAYS = 1_000_000

#: Levels of calls and parentheses inside each other in a term.
MAX_TERM_DEPTH = 50

#: Constants, attributes and calls without arguments in an expression with terms.
MAX_OPERANDS = 4 * MAX_PREDICATES

#: Bytes of a text that is computed when it is read, and of an array. A larger one is computed for
#: each batch: it would be part of the term's name.
MAX_FOLDED_BYTES = 8_192
MAX_FOLDED_ARRAY_BYTES = 65_536

#: Characters of a term with the constants that were computed.
MAX_TERM_LENGTH = 4 * MAX_LENGTH

#: Distinct terms of one expression: each takes time and memory of its own for every batch.
MAX_TERMS = 256

#: Levels of calls and operators: ``a + b + c`` has two.
MAX_TERM_HEIGHT = 100

#: Calls, attributes and constants that are repeated because one operand stands for several.
MAX_TERM_COPIES = 16_384
