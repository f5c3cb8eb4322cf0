"""Every error that Bittern raises on purpose: one root, and one subclass for each kind of mistake.

A message says what is wrong, where, and what to do. Input is checked at the entrance (parsing,
validating, building, opening), so kernels do not raise. There is one exception: a page of a file
may turn out to be damaged when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, Context, Decimal
from typing import Any

#: A message shows so many characters of a value.
_SHORT = 60
#: So many bits of a larger integer are enough for what is shown.
_BITS = 256
_ROUNDED = Context(prec=60, Emax=MAX_EMAX)


def brief(value: Any) -> str:
    """A value as messages show it, shortened."""
    if isinstance(value, int) and value.bit_length() > 64:
        # Python does not print integers of many digits, and converting all of them takes hours.
        more = max(0, value.bit_length() - _BITS)
        value = _ROUNDED.multiply(Decimal(value >> more), _ROUNDED.power(2, more))
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # nor what holds them
        return f"a value of type {type(value).__name__} that Python does not print"
    if len(text) <= _SHORT:
        return text
    return f"{value:.5e}" if isinstance(value, Decimal) else f"{text[:_SHORT]}..."


def did_you_mean(word: Any, words: Iterable[str]) -> str:
    """A hint at the name that was probably meant, for the end of a message; empty if none is."""
    import difflib  # noqa: PLC0415 (only mistakes need it)

    known = list(words)
    meant = str(word)[:_SHORT]
    found = [each for each in known if each.lower() == meant.lower()]
    found = found or difflib.get_close_matches(meant, known, 1)
    return f": did you mean {found[0]}?" if found else ""


class BitternError(Exception):
    """The root: catch this to catch everything Bittern raises on purpose."""


class ExpressionError(BitternError):
    """A text is not a valid expression.

    ``position`` is a 0-based offset into ``text``; printing shows the line with a caret.
    """

    def __init__(self, message: str, text: str, position: int) -> None:
        self.message = message
        self.text = text
        self.position = position
        super().__init__(message, text, position)

    def __reduce__(self) -> tuple[type, tuple[str, str, int]]:
        return type(self), (self.message, self.text, self.position)

    def __str__(self) -> str:
        window = 60
        start = max(0, min(self.position, len(self.text)) - window)
        shown = self.text[start : self.position + window].replace("\n", " ").replace("\t", " ")
        dots = "..." if start else ""
        tail = "..." if self.position + window < len(self.text) else ""
        caret = " " * (len(dots) + self.position - start) + "^"
        return f"{self.message} (at position {self.position})\n  {dots}{shown}{tail}\n  {caret}"


class LimitError(ExpressionError):
    """A valid expression that is larger than Bittern accepts (length, depth, predicates, regex)."""


@dataclass(frozen=True)
class BadSubscription:
    """One subscription that was refused: its id, the position of the mistake, and the reason."""

    id: str | int
    position: int
    message: str


class SubscriptionError(BitternError):
    """One or more subscriptions are wrong; ``bad`` lists all of them."""

    def __init__(self, bad: Sequence[BadSubscription]) -> None:
        self.bad = list(bad)
        super().__init__(self.bad)

    def __str__(self) -> str:
        shown = [f"  {brief(b.id)}, position {b.position}: {b.message}" for b in self.bad[:10]]
        more = len(self.bad) - len(shown)
        if more:
            shown.append(f"  ... and {more} more")
        noun = "subscription is" if len(self.bad) == 1 else "subscriptions are"
        return "\n".join([f"{len(self.bad)} {noun} not valid:", *shown])


class RuleError(BitternError):
    """A rule of another system is malformed, or says what Bittern cannot say.

    ``place`` is where in the rule: a path such as ``$.detail.price[0]``, or a line and a column.
    ``file`` is where the rule was read from.
    """

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place
        self.file = file
        super().__init__(reason, place, file)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.place, self.reason) if part)


class EventError(BitternError):
    """Events have a form that cannot be read at all (a single bad event is only rejected)."""


class UnknownSubscriptionError(BitternError, KeyError):
    """No subscription has this id."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnknownSetError(BitternError, KeyError):
    """No named set has this name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SnapshotError(BitternError):
    """A snapshot is missing, damaged, incomplete or of a version that this release cannot read."""


class CompactionError(BitternError):
    """The compacting process failed; nothing was lost, the changes are still in memory."""


class CatalogError(BitternError):
    """A catalog's database cannot be reached, is not a catalog, or is of another release."""


class PipelineError(BitternError):
    """A pipeline cannot start or continue; nothing that was committed is lost."""


class HistoryError(BitternError):
    """A history's documents are damaged, in use by another writer, or of another release."""


class PageError(BitternError):
    """A page file is damaged, in use by another writer, or of another release."""


class OptionError(BitternError, ValueError):
    """An argument or option has a value that makes no sense; the message lists what does."""
