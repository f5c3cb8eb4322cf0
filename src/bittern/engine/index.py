"""The index: compiled subscriptions. It is built once, immutable, and shared by matchers.

``Index.build`` reads texts (``engine/subscriptions.py``), compiles them into rank space and classes
(``model/classes/compile.py``) and files the classes in a subscription index
(``matching/pivot/index.py``). ``save`` writes its arrays as a snapshot
(``engine/snapshot/folder.py``) and ``open`` maps them: every process of a host shares one copy.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.arrays import prefixed, under
from bittern.engine.asked import known_schema, read_sets
from bittern.engine.expected import expected_events
from bittern.engine.snapshot.folder import read_snapshot, write_snapshot
from bittern.engine.subscriptions import OnProgress, Subscriptions, read_subscriptions
from bittern.errors import (
    BadSubscription,
    SnapshotError,
    SubscriptionError,
    UnknownSubscriptionError,
    brief,
)
from bittern.language.literals import TERM
from bittern.language.shapes import Shapes
from bittern.language.templates import Template
from bittern.matching import registry
from bittern.matching.contract import Refused, SubscriptionIndex
from bittern.model.classes.compile import compile_subscriptions
from bittern.model.classes.expand import ShapePlan
from bittern.model.events.encoder import Encoder
from bittern.model.ids import Ids
from bittern.model.matches import Subscribers
from bittern.model.patterns.packed import check_sets, pack_sets, unpack_sets
from bittern.model.rank.space import COUNT, PATTERN, RankSpace
from bittern.model.strings import arrow_strings, arrow_text
from bittern.options import one_of
from bittern.terms.unknown import EMBEDDED, SPARK

if TYPE_CHECKING:
    from bittern.engine.given import GivenSubscriptions
    from bittern.engine.known_schema import Unknown
    from bittern.engine.sets.members import Members
    from bittern.model.event_schema import EventSchema
    from bittern.model.patterns.sets import PatternSet

_NO_SETS: Mapping[str, Any] = {}


class Index:
    """Compiled subscriptions. Immutable and safe to share between threads.

    Build one with ``Index.build`` or map a saved one with ``Index.open``; match with ``Matcher``.
    """

    def __init__(
        self,
        *,
        ids: Ids,
        texts: pa.Array,
        weights: npt.NDArray[np.float64] | None,
        rank: RankSpace,
        patterns: Mapping[int, PatternSet],
        subscriptions: SubscriptionIndex,
        subscribers: Subscribers,
        operators: Mapping[str, int],
    ) -> None:
        #: The subscription ids, by position, and the expressions as they were given.
        self.all_ids, self.texts = ids, texts
        self.weights = weights
        self.rank = rank
        self._patterns = patterns
        self._encoder: Encoder | None = None
        #: "spark" if some functions are only known to Spark, else "embedded".
        self.functions = EMBEDDED
        self.subscriptions = subscriptions
        self.subscribers = subscribers
        self._operators = dict(operators)
        #: The sets that were given to ``build``, by name: matchers take them unless told otherwise.
        self.sets: Mapping[str, Members] = _NO_SETS
        #: Subscriptions that ``build(..., on_error="skip")`` left out.
        self.bad: list[BadSubscription] = []
        #: What ``build(..., schema=...)`` found that the events do not have: id, attribute, reason.
        self.unknown: list[Unknown] = []
        #: Seconds that ``build`` spent to read the texts ("read") and to compile them ("build").
        self.timings: Mapping[str, float] = _NO_SETS
        #: The snapshot's folder and id, once saved or opened.
        self.path: Path | None = None
        self.id: str | None = None

    @classmethod
    def build(
        cls,
        subscriptions: GivenSubscriptions,
        *,
        sample: Any = None,
        strategy: str = "pivot",
        stabbing: str | None = None,
        stabbing_memory: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        on_error: str = "raise",
        progress: OnProgress | None = None,
        functions: str = EMBEDDED,
        schema: pa.Schema | EventSchema | None = None,
        unknown: str = "warn",
        sets: Mapping[str, Any] | None = None,
    ) -> Index:
        """Compile subscriptions.

        ``subscriptions`` is a mapping from id to expression, an iterable of (id, expression), or
        an Arrow or pandas table with the columns ``id``, ``expression`` and optionally ``weight``.
        ``sample`` is a batch of typical events: it tells which attributes are frequent and how
        their values are distributed, and so under which predicates to file subscriptions.

        ``strategy`` names the subscription index, and ``parameters`` are its parameters
        (``docs/strategies.md``). ``stabbing`` and ``stabbing_memory`` are short for two of them.
        ``stabbing`` is the structure that finds the filed predicates of a value
        (``docs/stabbing.md``; default "cei"), or "auto": the best structure that is predicted to
        take at most ``stabbing_memory`` bytes (default: 16 MiB plus 64 for each predicate).

        ``functions="spark"`` allows any function of Spark, user functions included. An index that
        has some can only be matched on Spark (``bittern.spark``).

        ``schema`` is that of the events, if it is known: a ``pyarrow.Schema``, or an
        ``EventSchema`` (``model/event_schema.py``) if some columns are JSON text or case does not
        count. Then constants are converted to the types of attributes as Spark does it, and the
        converted text is what the index keeps: ``price > '98'`` on a DOUBLE is ``price > 98.0e0``.
        Subscriptions that ask for what the events do not have are listed in ``index.unknown``, with
        a warning in the log; ``unknown="raise"`` makes them bad, ``unknown="ignore"`` looks for
        none.

        ``sets`` are the sets that subscriptions name (``user_id IN SET vips``), from name to
        members: a list, a set or an array. A subscription that names another set is bad then. The
        index keeps and saves them. Without ``sets``, the matcher must be given all.

        All subscriptions that are bad, or that the strategy cannot hold, are raised as one
        ``SubscriptionError``. With ``on_error="skip"`` they are left out and listed in
        ``index.bad``. O(total text), half a microsecond to some for each subscription.

        >>> index = Index.build({"cheap": "price < 10", "red": "color = 'red'"})
        >>> len(index)
        2
        """
        given = registry.given_parameters(
            strategy, parameters, stabbing=stabbing, stabbing_memory=stabbing_memory
        )
        one_of("functions", functions, (EMBEDDED, SPARK))
        one_of("unknown", unknown, ("warn", "raise", "ignore"))
        known = None if schema is None else known_schema(schema, functions)
        named = None if sets is None else read_sets(sets)
        started = time.perf_counter()
        shapes = Shapes()
        held = read_subscriptions(
            subscriptions,
            shapes,
            on_error=on_error,
            progress=progress,
            functions=functions,
            known=known,
        )
        mistakes: list[Unknown] = []
        if known is not None and unknown != "ignore":
            held, mistakes = known.judge(held, shapes.templates, refuse=unknown == "raise")
            if held.bad and on_error == "raise":
                raise SubscriptionError(held.bad)
        read = time.perf_counter()
        if progress:
            progress("build", 0, 1)
        compiled = partial(
            cls.of_subscriptions,
            templates=shapes.templates,
            sample=sample,
            strategy=strategy,
            parameters=given,
            sets=named,
        )
        try:
            index = compiled(held)
        except SubscriptionError as refused:
            if on_error == "raise":
                raise
            index = compiled(held.without(refused.bad, shapes.templates))
        index.timings = {"read": read - started, "build": time.perf_counter() - read}
        index.unknown = mistakes
        if known is not None and unknown == "warn":
            from bittern.engine.known_schema import tell_unknown  # noqa: PLC0415  only then

            tell_unknown(mistakes)
        if progress:
            progress("build", 1, 1)
        return index

    @classmethod
    def of_subscriptions(
        cls,
        held: Subscriptions,
        templates: Sequence[Template | ShapePlan],
        *,
        sample: Any = None,
        strategy: str = "pivot",
        parameters: Mapping[str, Any] | None = None,
        text_ids: bool = False,
        sets: Mapping[str, Members] | None = None,
    ) -> Index:
        """Compile subscriptions that have been read already. O(parameters).

        ``text_ids`` says that ids are strings, which cannot be told from an empty list of ids.
        ``SubscriptionError`` lists all subscriptions that the strategy cannot hold, or that name a
        set which is not in ``sets`` (None: they may name any).
        """
        compiled = compile_subscriptions(templates, held.shape_ids, held.parameters)
        if sets is not None:
            from bittern.engine.sets.named import check_subscriptions  # noqa: PLC0415  only for sets

            check_subscriptions(compiled.rank.attribute_names(), held, sets)
        mass = expected_events(compiled, sample, sets or _NO_SETS)
        try:
            subscriptions, numbers = registry.strategy(strategy).build(
                compiled.classes, mass, compiled.rank, **(parameters or {})
            )
        except Refused as refused:
            raise SubscriptionError(held.refused(compiled.class_of, refused.reasons)) from None
        index = cls(
            ids=Ids.of(held.ids, text=text_ids),
            texts=held.texts,
            weights=held.weights,
            rank=compiled.rank,
            patterns=compiled.patterns,
            subscriptions=subscriptions,
            subscribers=Subscribers.of(numbers[compiled.class_of], len(compiled.classes)),
            operators=compiled.operators,
        )
        index.bad = held.bad
        index.sets = sets or _NO_SETS
        terms = compiled.rank.names_with(TERM)
        if terms:
            from bittern.language.derived import has_unknown_functions  # noqa: PLC0415  only then

            index.functions = SPARK if has_unknown_functions(terms) else EMBEDDED
        return index

    def __len__(self) -> int:
        return len(self.all_ids)

    def __repr__(self) -> str:
        return f"<bittern.Index of {len(self):,} subscriptions>"

    def _repr_html_(self) -> str:
        """What it consists of, for notebooks."""
        from bittern.notebooks import facts  # noqa: PLC0415  only there

        return facts(repr(self).strip("<>"), self.statistics())

    def __copy__(self) -> Index:
        """Another index of the same parts."""
        same = object.__new__(type(self))
        vars(same).update(vars(self))
        return same

    def __reduce__(self) -> tuple[Any, ...]:
        """An index in another process is put together anew, as one that is opened."""
        told = {"bad": self.bad, "unknown": self.unknown, "timings": self.timings}
        return _put_together, (*self.parts(), told | {"path": self.path, "id": self.id})

    @property
    def ids(self) -> pa.Array:
        """The subscription ids, in order, as an Arrow array."""
        return self.all_ids.values

    @property
    def encoder(self) -> Encoder:
        """The encoder that turns events into this index's rank space."""
        # Not a cached_property, whose lock another thread may hold when the process is forked.
        if self._encoder is None:
            self._encoder = Encoder(self.rank, self._patterns)
        return self._encoder

    def for_sample(self) -> Index:
        """The same index for typical events: terms that only Spark can evaluate have no values."""
        same = copy.copy(self)
        same._encoder = Encoder(self.rank, self._patterns, for_sample=True)  # noqa: SLF001
        return same

    @property
    def set_names(self) -> Sequence[str]:
        """The sets that subscriptions name, each once."""
        derived = self.encoder.derived
        return () if derived is None else derived.set_names

    def with_sets(self, sets: Mapping[str, Any]) -> Index:
        """The same index with these sets, in place of those of the same names that it has."""
        same = copy.copy(self)
        same.sets = {**self.sets, **read_sets(sets)}
        return same

    def expression(self, id_: str | int) -> str:
        """The text of a subscription."""
        position = self.all_ids.find(id_)
        if position < 0:
            raise UnknownSubscriptionError(f"no subscription has the id {brief(id_)}")
        return str(self.texts[position].as_py())

    # -- snapshots -----------------------------------------------------------------------------

    def _matching_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that matching touches."""
        out = prefixed("rank.", self.rank.to_arrays())
        out |= prefixed("patterns.", pack_sets(self._patterns))
        out |= prefixed("index.", self.subscriptions.arrays())
        out["class_starts"] = self.subscribers.starts
        out["subscribers"] = self.subscribers.subscribers
        for number, members in enumerate(self.sets.values()):
            out |= prefixed(f"sets.{number}.", members.arrays())
        return out

    def _other_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Ids, texts and weights: needed to show results, explain and rebuild."""
        data, offsets, _ = arrow_strings(self.texts)
        start, end = int(offsets[0]), int(offsets[-1])
        out = prefixed("ids.", self.all_ids.arrays())
        out["texts.data"], out["texts.offsets"] = data[start:end], offsets - start
        if self.weights is not None:
            out["weights"] = self.weights
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that matching touches (ids, texts and weights not included)."""
        return sum(array.nbytes for array in self._matching_arrays().values())

    def save(self, path: str | Path) -> str:
        """Write a snapshot, crash-safely; returns its id, which is a hash of its content."""
        place, identity = Path(path), self.write(path)
        self.path, self.id = place, identity
        return identity

    def write(self, path: str | Path) -> str:
        """Write a snapshot as ``save`` does, but keep using the arrays where they are now."""
        return write_snapshot(path, *self.parts())

    def parts(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
        """Everything that the index consists of: arrays by name, and a few plain values."""
        meta = {
            "kind": "index",
            "subscriptions": len(self),
            "strategy": self.subscriptions.name,
            "parameters": self.subscriptions.parameters,
            "operators": self._operators,
        }
        if self.functions != EMBEDDED:
            meta["functions"] = self.functions
        if self.sets:
            meta["sets"] = list(self.sets)
        return self._matching_arrays() | self._other_arrays(), meta

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Index:
        """Map a saved index, in milliseconds whatever its size; ``verify`` also checks digests."""
        snapshot = read_snapshot(path, verify=verify)
        try:
            index = cls.of_parts(snapshot.arrays, snapshot.meta)
        except (KeyError, ValueError, TypeError, AssertionError, IndexError) as wrong:
            raise SnapshotError(
                f"{path} is a snapshot, but not an index that this release can read: {wrong!r}"
            ) from wrong
        index.path, index.id = Path(path), snapshot.id
        return index

    @classmethod
    def of_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> Index:
        """The index that has these parts; nothing is copied."""
        index = cls(
            ids=Ids.from_arrays(under(arrays, "ids.")),
            texts=arrow_text(arrays["texts.data"], arrays["texts.offsets"]),
            weights=arrays.get("weights"),
            rank=RankSpace.from_arrays(under(arrays, "rank.")),
            patterns=unpack_sets(under(arrays, "patterns.")),
            subscriptions=registry.strategy(meta["strategy"]).from_arrays(
                under(arrays, "index."), meta["parameters"]
            ),
            subscribers=Subscribers(arrays["class_starts"], arrays["subscribers"]),
            operators=meta["operators"],
        )
        index.functions = meta.get("functions", EMBEDDED)
        if "sets" in meta:
            from bittern.engine.sets.members import Members  # noqa: PLC0415  only for sets

            index.sets = {
                str(name): Members.from_arrays(under(arrays, f"sets.{number}."))
                for number, name in enumerate(meta["sets"])
            }
        return index

    # -- looking inside ------------------------------------------------------------------------

    def statistics(self) -> dict[str, Any]:
        """What the index consists of, as nested dictionaries of plain values."""
        arrays = self._matching_arrays()
        inner = self.subscriptions.statistics()
        return {
            "subscriptions": len(self),
            "classes": inner["classes"],
            "strategy": self.subscriptions.name,
            "attributes": len(self.rank.names),
            "channels": self.rank.n_channels,
            "patterns": int(np.count_nonzero(self.rank.channel_kinds == PATTERN)),
            "cells": self.rank.n_cells,
            "constants": int(self.rank.arrays.heads[:, COUNT].sum()),
            "bytes": self.nbytes,
            "bytes_per_subscription": round(self.nbytes / max(1, len(self)), 1),
            "predicates": dict(sorted(self._operators.items())),
            self.subscriptions.name: inner,
            "sets": {name: len(members) for name, members in self.sets.items()},
            "arrays": {name: array.nbytes for name, array in sorted(arrays.items())},
        }

    def check(self) -> None:
        """Verify the invariants of every structure; AssertionError says what is broken."""
        assert len(self.texts) == len(self), "there is not one text per subscription"
        assert self.weights is None or len(self.weights) == len(self), "weights are missing"
        self.subscribers.check(len(self), self.subscriptions.statistics()["classes"])
        self.rank.check()
        check_sets(self._patterns, self.rank.pattern_channels()[1])
        for members in self.sets.values():
            members.check()
        self.subscriptions.check(self.rank.n_channels, self.rank.n_cells)


def _put_together(
    arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any], told: Mapping[str, Any]
) -> Index:
    """The index of parts that were copied: kernels take arrays that cannot be written."""
    for array in arrays.values():
        array.flags.writeable = False
    index = Index.of_parts(arrays, meta)
    vars(index).update(told)
    return index
