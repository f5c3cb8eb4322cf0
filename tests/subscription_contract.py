"""What every subscription index must do, whatever its strategy.

Everything starts from one compiled catalog: classes of one rank space, of which an index is given
some (``part``), and batches of events in that space (``encoded``). ``scan`` of the same classes
is right by definition, and the oracle says so elsewhere.

    held      Build an index, and leave out the classes that its strategy refuses
    pairs     (event, class) pairs that an index finds, each of which must come once
    History   any sequence of changes of a ``ChangingIndex``, against what scan finds
    damaged   the arrays of an index with one of them spoiled
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import strategies
from bittern.engine.expected import expected_events
from bittern.engine.subscriptions import read_subscriptions
from bittern.errors import OptionError
from bittern.language.printer import print_expression
from bittern.language.shapes import Shapes
from bittern.language.syntax import Between, Compare, Expression, In, IsNull, Literal
from bittern.matching.contract import ChangingIndex, Refused, SubscriptionIndex
from bittern.matching.scan import Scan
from bittern.model.classes.classes import Classes
from bittern.model.classes.compile import Compiled, compile_subscriptions
from bittern.model.events.encoder import Encoder
from bittern.model.rank import encoded as encoded_module
from bittern.model.rank.encoded import EncodedEvents

Pairs = list[tuple[int, int]]
Arrays = dict[str, npt.NDArray[Any]]

#: The example of seed 003.
TABLE_1 = {
    "S1": "A = 2 AND B IN (3, 6, 9)",
    "S2": "A <= 8 AND C >= 2",
    "S3": "C = 6 AND B <= 4 AND E BETWEEN 3 AND 12",
    "S4": "A = 2",
    "S5": "D >= 12 AND E <= 9",
    "S6": "B IN (3, 6) AND C <= 4 AND D >= 10 AND E <= 7",
}


# ------------------------------------------------------------------ catalogs in rank space


def compiled(texts: Sequence[str]) -> Compiled:
    """The classes of these expressions, as an index gets them, and ``class_of`` each."""
    shapes = Shapes()
    catalog = read_subscriptions(dict(enumerate(texts)), shapes, on_error="raise", progress=None)
    return compile_subscriptions(shapes.templates, catalog.shape_ids, catalog.parameters)


@contextlib.contextmanager
def sparse_view() -> Iterator[None]:
    """Have batches encoded as where there are thousands of channels: entries and signatures."""
    with (
        mock.patch.object(encoded_module, "SMALL_MATRIX", 0),
        mock.patch.object(encoded_module, "LARGE_MATRIX", 0),
    ):
        yield


def encoded(catalog: Compiled, events: Sequence[Any], *, sparse: bool = False) -> EncodedEvents:
    """A batch of events in the catalog's rank space."""
    with sparse_view() if sparse else contextlib.nullcontext():
        return Encoder(catalog.rank, catalog.patterns).encode(list(events)).events


def part(classes: Classes, which: Sequence[int] | npt.NDArray[Any]) -> Classes:
    """Some classes of the same rank space, in this order."""
    return classes.take(np.asarray(which, dtype=np.int64))


# ------------------------------------------------------------------ indexes


def held(
    cls: type[SubscriptionIndex],
    catalog: Compiled,
    which: Sequence[int],
    *,
    sample: Any = None,
    **parameters: Any,
) -> tuple[SubscriptionIndex, dict[int, int]]:
    """An index of these classes, as far as it takes them, and the class of each number."""
    mass = expected_events(catalog, sample)

    def build(chosen: Sequence[int]) -> Any:
        return cls.build(part(catalog.classes, chosen), mass, catalog.rank, **parameters)

    try:
        index, numbers = build(which)
    except Refused as refused:
        check_reasons(refused, len(which))
        which = [c for place, c in enumerate(which) if place not in refused.reasons]
        index, numbers = build(which)
    assert numbers.dtype == np.int32
    assert sorted(numbers.tolist()) == list(range(len(which)))
    return index, dict(zip(numbers.tolist(), which, strict=True))


def check_reasons(refused: Refused, n_classes: int) -> None:
    """A refusal names classes that were given, and says why in words."""
    assert refused.reasons
    for number, reason in refused.reasons.items():
        assert 0 <= number < n_classes
        assert len(reason.split()) > 3


def pairs(index: SubscriptionIndex, events: EncodedEvents) -> Pairs:
    """What an index finds, in order; no pair twice, and candidates of every event."""
    found = index.match(events)
    assert found.rows.dtype == found.classes.dtype == np.int32
    assert found.candidates.dtype == np.int64
    assert found.candidates.shape == (events.n_events,)
    assert (found.candidates >= 0).all()
    out = sorted(zip(found.rows.tolist(), found.classes.tolist(), strict=True))
    assert len(set(out)) == len(out), "a pair is found twice"
    return out


def truth(catalog: Compiled, events: EncodedEvents) -> list[set[int]]:
    """Which classes of the whole catalog each event satisfies."""
    scan, _ = Scan.build(catalog.classes, np.empty(0), catalog.rank)
    found: list[set[int]] = [set() for _ in range(events.n_events)]
    for row, c in pairs(scan, events):
        found[row].add(c)
    return found


def expected_pairs(right: list[set[int]], live: Mapping[int, int]) -> Pairs:
    """The pairs to find where the numbers ``live`` stand for these classes."""
    numbers: dict[int, list[int]] = {}
    for number, c in live.items():
        numbers.setdefault(c, []).append(number)
    return sorted(
        (row, number)
        for row, satisfied in enumerate(right)
        for c in satisfied & numbers.keys()
        for number in numbers[c]
    )


def read_only_copies(arrays: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """As if they were mapped."""
    copies = {name: array.copy() for name, array in arrays.items()}
    for array in copies.values():
        array.flags.writeable = False
    return copies


# ------------------------------------------------------------------ expressions to draw

#: The whole numbers that the values of the integer world are from.
DOMAIN = (0, 9)
_NAMES = ("i", "j", "k", "l")


def integer_expressions() -> st.SearchStrategy[Expression]:
    """Bounded ranges, sets and equalities of small whole numbers: what every strategy can hold."""
    name = st.sampled_from(_NAMES)
    number = st.builds(Literal, st.integers(*DOMAIN))
    predicate: st.SearchStrategy[Expression] = st.one_of(
        st.builds(Compare, name, st.sampled_from(strategies.OPERATORS), number),
        st.builds(Compare, name, st.just("="), number),
        st.builds(Between, name, number, number),
        st.builds(In, name, st.lists(number, min_size=1, max_size=4).map(tuple)),
        st.builds(IsNull, name),
        name.map(strategies.is_missing),
    )
    return strategies.expressions(predicate, depth=3)


def integer_events() -> st.SearchStrategy[dict[str, Any]]:
    value = st.one_of(st.none(), st.integers(*DOMAIN), st.integers(*DOMAIN))
    return st.fixed_dictionaries({}, optional=dict.fromkeys(_NAMES, value))


@st.composite
def integer_cases(draw: st.DrawFn, most: int) -> tuple[Compiled, EncodedEvents]:
    """A catalog of up to so many expressions, and a batch of events."""
    trees = draw(st.lists(integer_expressions(), min_size=1, max_size=most))
    catalog = compiled([print_expression(tree) for tree in trees])
    return catalog, encoded(catalog, draw(strategies.batches(integer_events(), max_size=8)))


#: Expressions and events by the name of their world.
WORLDS: dict[str, tuple[st.SearchStrategy[Expression], st.SearchStrategy[dict[str, Any]]]] = {
    "free": (strategies.free_expressions(depth=3), strategies.free_events()),
    "integers": (integer_expressions(), integer_events()),
}


def worlds_of(cls: type[SubscriptionIndex]) -> list[str]:
    """Where an index can live: one that takes ranges for sets of whole numbers needs small ones."""
    return ["integers"] if "domain" in cls.takes() else sorted(WORLDS)


def parameters_for(cls: type[SubscriptionIndex], world: str) -> dict[str, Any]:
    """What an index has to be told to hold as much of a world as it can."""
    return {"domain": DOMAIN} if world == "integers" and "domain" in cls.takes() else {}


# ------------------------------------------------------------------ any history of changes


class History(RuleBasedStateMachine):
    """Any sequence of changes of one index, against scan; subclass with a strategy's class."""

    cls: ClassVar[type[ChangingIndex]]
    index: ChangingIndex

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        world = data.draw(st.sampled_from(worlds_of(self.cls)))
        expression, event = WORLDS[world]
        trees = data.draw(st.lists(expression, min_size=1, max_size=10))
        self.catalog = compiled([print_expression(tree) for tree in trees])
        events = data.draw(strategies.batches(event, max_size=6))
        self.batches = [encoded(self.catalog, events, sparse=sparse) for sparse in (False, True)]
        self.right = truth(self.catalog, self.batches[0])
        self.handed_out: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []
        self.gone: dict[int, int] = {}
        chosen = data.draw(self.some_classes())
        parameters = parameters_for(self.cls, world)
        index, self.live = held(self.cls, self.catalog, chosen, **parameters)
        assert isinstance(index, ChangingIndex)
        self.index = index
        self.given_out = len(self.live)

    def some_classes(self) -> st.SearchStrategy[list[int]]:
        """A class may come more than once: an index knows classes by their numbers."""
        return st.lists(st.integers(0, len(self.catalog.classes) - 1), max_size=8)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        which = data.draw(self.some_classes())
        try:
            numbers = self.index.insert(part(self.catalog.classes, which))
        except Refused as refused:
            check_reasons(refused, len(which))
            return
        assert numbers.dtype == np.int32
        assert numbers.tolist() == list(range(self.given_out, self.given_out + len(which)))
        self.live |= dict(zip(numbers.tolist(), which, strict=True))
        self.given_out += len(which)

    def try_to_delete(self, numbers: Sequence[int], which: Sequence[int]) -> None:
        classes = part(self.catalog.classes, which)
        self.index.delete(classes, np.array(numbers, dtype=np.int32))

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        chosen = st.lists(st.sampled_from(sorted(self.live)), unique=True, max_size=6)
        numbers = data.draw(chosen)
        self.try_to_delete(numbers, [self.live[number] for number in numbers])
        self.gone |= {number: self.live.pop(number) for number in numbers}

    @rule(data=st.data())
    def refuse_to_delete(self, data: st.DataObject) -> None:
        """One of several is not there: none goes."""
        live = sorted(self.live)
        known = data.draw(
            st.lists(st.sampled_from(live), unique=True, max_size=3) if live else st.just([])
        )
        wrong: list[st.SearchStrategy[tuple[int, int]]] = []
        if self.gone:
            wrong.append(st.sampled_from(sorted(self.gone.items())))
        a_class = st.integers(0, len(self.catalog.classes) - 1)
        wrong.append(st.tuples(st.just(self.given_out), a_class))
        wrong.append(st.tuples(st.just(-1), a_class))
        if known:
            wrong.append(st.sampled_from(known).map(lambda number: (number, self.live[number])))
        number, c = data.draw(st.one_of(*wrong))
        if c in self.refused_classes():
            return
        numbers, which = [*known, number], [*(self.live[k] for k in known), c]
        at = data.draw(st.integers(0, len(known)))
        numbers.insert(at, numbers.pop())
        which.insert(at, which.pop())
        with pytest.raises(OptionError):
            self.try_to_delete(numbers, which)

    def refused_classes(self) -> set[int]:
        """Classes that this strategy cannot hold, and so may not be asked to take out."""
        known = set(self.live.values()) | set(self.gone.values())
        return set(range(len(self.catalog.classes))) - known

    @rule()
    def save_and_open(self) -> None:
        arrays = self.hand_out()
        parameters = dict(self.index.parameters)
        opened = self.cls.from_arrays(read_only_copies(arrays), parameters)
        assert isinstance(opened, ChangingIndex)
        assert opened.parameters == parameters
        assert opened.options == self.index.options
        self.index = opened

    @rule()
    def save_and_go_on(self) -> None:
        self.hand_out()

    def hand_out(self) -> Arrays:
        arrays = self.index.arrays()
        self.handed_out += [(array, array.copy()) for array in arrays.values()]
        return arrays

    @invariant()
    def agrees(self) -> None:
        rank = self.catalog.rank
        self.index.check(rank.n_channels, rank.n_cells)
        right = expected_pairs(self.right, self.live)
        for batch in self.batches:
            assert pairs(self.index, batch) == right
        assert self.index.statistics()["classes"] == self.given_out
        assert self.index.nbytes >= 0

    def teardown(self) -> None:
        for array, before in getattr(self, "handed_out", []):
            assert np.array_equal(array, before), "an array that was handed out has changed"


# ------------------------------------------------------------------ damage


def damaged(arrays: Mapping[str, npt.NDArray[Any]], rng: np.random.Generator) -> Arrays:
    """The arrays with one of them spoiled: items changed, a part cut off, or another type."""
    out = {name: array.copy() for name, array in arrays.items()}
    names = [name for name, array in out.items() if array.size]
    name = names[rng.integers(len(names))]
    array = out[name]
    kind = rng.integers(8)
    if kind == 0:
        out[name] = array[: rng.integers(len(array))].copy()
    elif kind == 1:
        out[name] = np.concatenate((array, array[-1:]))
    else:
        flat = array.reshape(-1)
        for _ in range(int(rng.integers(1, 4))):
            at = rng.integers(len(flat))
            if array.dtype.kind == "f":
                flat[at] = rng.choice([np.nan, np.inf, -1.0, 1e9])
                continue
            limits = np.iinfo(array.dtype)
            near = int(flat[at]) + int(rng.integers(-3, 4))
            wild = int(rng.choice([limits.min, limits.max, 0, -1, 1, 1 << 20, len(array)]))
            value = near if rng.integers(2) else wild
            flat[at] = min(max(value, int(limits.min)), int(limits.max))
    return out
