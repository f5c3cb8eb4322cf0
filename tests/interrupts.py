"""An exception at the n-th call, for every n: what is left of a change that was not finished?

SQLite and Lucene are tested like this. A *moment* is a point where Python may raise what no line of
the code asks for: where a function of Bittern's begins, and just before and just after each call
that such a function makes into C. There a signal handler runs (``KeyboardInterrupt``), memory runs
out (``MemoryError``), and a disk is full or breaks (``OSError``). So "after" is the moment in which
``COMMIT`` has happened and its caller does not know yet::

    self._db.execute("COMMIT")        before: nothing is committed      after: everything is
    self._state = state               and this line has not run in either case

``each_fault`` makes an object, raises at one moment of a change of it, and hands the object over to
be judged; then the same again at the next moment, until the change comes to its end undisturbed::

    for fault in each_fault(make, lambda made: made.append(...)):
        assert fault.subject ...   # all of the change or nothing, and the next call works

Moments are counted in the calling thread only. Not counted are the beginnings of ``__enter__``,
``__exit__`` and ``__del__``, of a lock's too, and of resumed generators: Python itself can promise
nothing there.

By default ``DEFAULT_MOMENTS`` moments of each change are tried, spread evenly, other ones in each
run, with one fault each; ``BITTERN_EVERY_MOMENT=1`` tries every fault at every moment.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar

import bittern

#: What is raised; an error of the system's carries its number.
FAULTS: tuple[Callable[[], BaseException], ...] = (
    KeyboardInterrupt,
    MemoryError,
    lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
)
#: So many moments of a change are tried, unless all are asked for.
DEFAULT_MOMENTS = 60

_PACKAGE = str(Path(bittern.__file__).parent) + os.sep
#: Whether they have been called when an exception arrives is a question that Python leaves open.
_UNCOUNTED = frozenset({"__enter__", "__exit__", "__del__"})

Subject = TypeVar("Subject")


@dataclass
class _Moments:
    """Counts moments, and raises at one of them."""

    last: int = -1
    raises: Callable[[], BaseException] = KeyboardInterrupt
    count: int = 0
    place: str = ""
    undelivered: list[Any] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) or code.co_name in _UNCOUNTED:
            return
        if event == "call":
            if frame.f_lasti > 0 and frame.f_code.co_flags & 0x20:  # a generator goes on
                return
            what = f"at the beginning of {code.co_qualname}"
        elif event == "c_call":
            if getattr(argument, "__name__", None) in _UNCOUNTED:  # no signal comes before them
                return
            what = f"before {getattr(argument, '__qualname__', argument)} in {code.co_qualname}"
        elif event == "c_return":
            what = f"after {getattr(argument, '__qualname__', argument)} in {code.co_qualname}"
        else:
            return
        if self.count == self.last:
            self.place = f"{what}, {Path(code.co_filename).name}:{frame.f_lineno}"
            self.count += 1
            raise self.raises()
        self.count += 1


@contextmanager
def _watched(moments: _Moments) -> Iterator[None]:
    hook, sys.unraisablehook = sys.unraisablehook, moments.undelivered.append
    sys.setprofile(moments)
    try:
        yield
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook


def moments_of(change: Callable[[], Any]) -> int:
    """How many moments a change has."""
    moments = _Moments()
    with _watched(moments):
        change()
    return moments.count


@dataclass
class Fault(Generic[Subject]):
    """One disturbed change: its object, what was raised and where, and what the caller got."""

    subject: Subject
    moment: int
    place: str
    raised: BaseException
    caught: BaseException | None
    result: Any = None

    def __str__(self) -> str:
        return f"{self.raised!r} at moment {self.moment}, {self.place}"


def each_fault(
    make: Callable[[], Subject],
    change: Callable[[Subject], Any],
    *,
    faults: Sequence[Callable[[], BaseException]] = FAULTS,
    moments: int = DEFAULT_MOMENTS,
    unmake: Callable[[Subject], Any] = lambda _: None,
) -> Iterator[Fault[Subject]]:
    """Disturb a change at one moment after another, a new object each time, and have it judged.

    ``unmake`` lets go of an object after it was judged. That a fault was swallowed by the change is
    no failure in itself: ``caught`` is None then.
    """
    counted = make()
    total = moments_of(lambda: change(counted))
    unmake(counted)
    assert total, "the change has no moments: it calls nothing of Bittern's"
    for moment, raises in _chosen(total, moments, faults):
        fault = _disturbed(make(), change, _Moments(moment, raises))
        if fault.place:  # else this run has had fewer moments than the first
            yield fault
        unmake(fault.subject)


def _disturbed(
    subject: Subject, change: Callable[[Subject], Any], watch: _Moments
) -> Fault[Subject]:
    """What became of the change; ``caught`` alone holds the exception, and its frames."""
    fault = Fault(subject, watch.last, "", watch.raises(), None)
    with _watched(watch):
        try:
            fault.result = change(subject)
        except BaseException as error:  # noqa: BLE001  whatever it is, the judge wants it
            fault.caught = error
    fault.place = watch.place
    return fault


def _chosen(
    total: int, wanted: int, faults: Sequence[Callable[[], BaseException]]
) -> Iterator[tuple[int, Callable[[], BaseException]]]:
    if os.environ.get("BITTERN_EVERY_MOMENT"):
        yield from itertools.product(range(total), faults)
        return
    wanted = min(wanted, total)
    draw = random.Random(0 if os.environ.get("CI") else None)
    for i in range(wanted):  # one of each stretch, so that no part of the change goes untested
        moment = draw.randrange(total * i // wanted, total * (i + 1) // wanted)
        yield moment, draw.choice(faults)
