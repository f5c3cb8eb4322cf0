"""Reading subscriptions of any form: they are checked and put into columns.

``read_subscriptions`` reads them all in one process. If several processes share the work, each
reads a part with its own ``Shapes``, and ``join_subscriptions`` combines the parts as if one
process had read them in that order::

    part 0   ids 1 2    templates T U    shapes 0 1    parameters p 7 q 'x'   dictionary p 7 q 'x'
    part 1   ids 3 2    templates U T    shapes 1 0    parameters p 9 q 'x'   dictionary p 9 q 'x'
    joined   ids 1 2 3  templates T U    shapes 0 1 0  parameters p 7 q 'x' p 9
             bad 2, "this id was given before"         dictionary p 7 q 'x' 9

Cost: about 5 us to read a subscription, a fraction of one to join it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.errors import BadSubscription, ExpressionError, OptionError, SubscriptionError, brief
from bittern.language.shapes import Shapes
from bittern.language.templates import Template
from bittern.model.events.columns import from_frame, plain
from bittern.model.ids import Ids, id_problem, normal_id
from bittern.model.strings import arrow_of
from bittern.options import one_of
from bittern.terms.unknown import EMBEDDED, SPARK, any_function

if TYPE_CHECKING:
    from bittern.engine.known_schema import KnownSchema

#: Called with (stage, done, total); total is 0 where it is not known.
OnProgress = Callable[[str, int, int], None]
_CHUNK = 50_000
#: What is said of an id that stands there twice.
REPEATED = "this id was given before; ids are unique"


class Subscriptions(NamedTuple):
    """Good subscriptions in columns, and the bad ones."""

    ids: list[str | int]
    texts: pa.Array
    weights: npt.NDArray[np.float64] | None
    shape_ids: npt.NDArray[np.int32]
    parameters: pa.DictionaryArray
    bad: list[BadSubscription]

    def without(self, bad: list[BadSubscription], templates: list[Template]) -> Subscriptions:
        """The subscriptions without these, which are bad. O(parameters)."""
        left_out = {each.id for each in bad}
        kept = np.array([id_ not in left_out for id_ in self.ids], dtype=np.bool_)
        slots = np.array([len(template.kinds) for template in templates])[self.shape_ids]
        return Subscriptions(
            [id_ for id_ in self.ids if id_ not in left_out],
            self.texts.filter(pa.array(kept)),
            None if self.weights is None else self.weights[kept],
            self.shape_ids[kept],
            self.parameters.filter(pa.array(np.repeat(kept, slots))),
            self.bad + bad,
        )

    def refused(
        self, class_of: npt.NDArray[np.int32], reasons: Mapping[int, str]
    ) -> list[BadSubscription]:
        """The subscriptions of the classes that cannot be held, each with its reason. O(n)."""
        which = np.flatnonzero(np.isin(class_of, list(reasons)))
        return [BadSubscription(self.ids[i], 0, reasons[int(class_of[i])]) for i in which.tolist()]


GivenRows = Iterator[tuple[Any, Any, Any]]


def given_rows(source: Any) -> tuple[int, GivenRows]:
    """How many subscriptions there are (0: not known), and (id, expression, weight) of each."""
    if isinstance(source, Mapping):
        return len(source), ((k, v, None) for k, v in source.items())
    if hasattr(source, "__dataframe__") and not isinstance(source, pa.Table | pa.RecordBatch):
        try:
            source = from_frame(source)
        except ValueError as wrong:
            raise OptionError(str(wrong)) from None
    if isinstance(source, pa.Table | pa.RecordBatch):
        check_columns(source.schema.names, "table")
        return source.num_rows, _table_rows(source)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise OptionError(
            "subscriptions must be a mapping from id to expression, pairs (id, expression), or a "
            f"table with the columns id and expression, not {type(source).__name__}"
        )
    total = len(source) if isinstance(source, Sized) else 0
    return total, _pair_rows(source)


def check_columns(names: list[str], what: str) -> None:
    """Raise unless a table (or ``what`` it is) with these columns can hold subscriptions."""
    twins = [name for name in ("id", "expression", "weight") if names.count(name) > 1]
    if twins:
        raise OptionError(f"the {what} of subscriptions has two columns named {twins[0]!r}")
    missing = [name for name in ("id", "expression") if name not in names]
    if missing:
        raise OptionError(
            f"a {what} of subscriptions needs the columns id, expression and optionally weight; "
            f"{' and '.join(missing)} missing from {', '.join(names) or 'no columns'}"
        )


def _table_rows(table: pa.Table | pa.RecordBatch) -> GivenRows:
    weighted = "weight" in table.schema.names
    for start in range(0, table.num_rows, _CHUNK):
        part = table.slice(start, _CHUNK)
        weights = part["weight"].to_pylist() if weighted else [None] * part.num_rows
        yield from zip(_values(part["id"]), _values(part["expression"]), weights, strict=True)


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The column's values. Bytes that are not UTF-8 become half surrogates, which are refused."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        raws = plain(column).cast(pa.large_binary()).to_pylist()
        return [raw if raw is None else raw.decode(errors="surrogateescape") for raw in raws]


def given_ids(source: Any) -> list[Any]:
    """Ids from any iterable, or from an Arrow or pandas column."""
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return _values(source)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise OptionError(f"ids must be a list or a column, not {type(source).__name__}")
    return list(source)


def _pair_rows(pairs: Iterable[Any]) -> GivenRows:
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) not in (2, 3):
            raise OptionError(
                f"each subscription must be (id, expression) or (id, expression, weight), "
                f"not {brief(pair)}"
            )
        yield (*pair, None) if len(pair) == 2 else tuple(pair)


def read_subscriptions(
    source: Any,
    shapes: Shapes,
    *,
    on_error: str,
    progress: OnProgress | None,
    functions: str = EMBEDDED,
    known: KnownSchema | None = None,
) -> Subscriptions:
    """Read everything; all bad subscriptions are collected. O(total text).

    ``functions="spark"`` allows functions that only Spark knows. ``known`` converts texts to the
    types of the events.
    """
    one_of("on_error", on_error, ("raise", "skip"))
    total, rows = given_rows(source)
    reader = _Reader(shapes, known)
    with any_function(allowed=functions == SPARK):
        for n, (id_, text, weight) in enumerate(rows, start=1):
            reader.add(id_, text, weight)
            if n % _CHUNK == 0:
                reader.flush()
                if progress:
                    progress("read", n, total)
    reader.flush()
    if progress:
        progress("read", len(reader.ids) + len(reader.bad), total)
    if reader.bad and on_error == "raise":
        raise SubscriptionError(reader.bad)
    return reader.subscriptions()


class _Reader:
    def __init__(self, shapes: Shapes, known: KnownSchema | None) -> None:
        self._shapes = shapes
        self._known = known
        self.ids: list[str | int] = []
        self.bad: list[BadSubscription] = []
        self._seen: set[str | int] = set()
        self._chunk_texts: list[str] = []
        self._chunk_parameters: list[str] = []
        self._texts: list[pa.Array] = []
        self._parameters: list[pa.Array] = []
        self._shape_ids: list[int] = []
        self._weights: list[float] = []
        self._weighted = False

    def add(self, id_: Any, text: Any, weight: Any) -> None:
        id_ = normal_id(id_)
        problem = id_problem(id_)
        if problem is None and id_ in self._seen:
            problem = REPEATED
        if problem is None and not isinstance(text, str):
            problem = f"an expression must be text, not {type(text).__name__}"
        problem = problem or weight_problem(weight)
        if problem is not None:
            self.bad.append(BadSubscription(id_, 0, problem))
            return
        try:
            shape_id, parameters = self._shapes.read(text)
            if self._known is not None:
                template = self._shapes.templates[shape_id]
                text, given = self._known.converted(text, template, parameters), text
                if text is not given:
                    shape_id, parameters = self._shapes.read(text)
        except ExpressionError as wrong:
            self.bad.append(BadSubscription(id_, wrong.position, wrong.message))
            return
        self._seen.add(id_)
        self.ids.append(id_)
        self._chunk_texts.append(text)
        self._chunk_parameters += parameters
        self._shape_ids.append(shape_id)
        self._weights.append(1.0 if weight is None else float(weight))
        self._weighted |= weight is not None

    def flush(self) -> None:
        """Put the chunk into columns, so that the parameters' many strings can be freed."""
        self._texts.append(arrow_of(self._chunk_texts))
        self._parameters.append(arrow_of(self._chunk_parameters).dictionary_encode())
        self._chunk_texts, self._chunk_parameters = [], []

    def subscriptions(self) -> Subscriptions:
        return Subscriptions(
            self.ids,
            pa.concat_arrays(self._texts),
            np.array(self._weights) if self._weighted else None,
            np.array(self._shape_ids, dtype=np.int32),
            _unified(self._parameters),
            self.bad,
        )


def _unified(chunks: Sequence[pa.DictionaryArray]) -> pa.DictionaryArray:
    """The chunks one after the other, under one dictionary in the order of first use."""
    unified = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    return unified.chunk(0) if isinstance(unified, pa.ChunkedArray) else unified


def join_subscriptions(
    parts: Iterable[tuple[Subscriptions, Sequence[Template]]],
) -> tuple[Subscriptions, list[Template]]:
    """Combine parts that were read separately, each with its templates.

    Equal templates become one. Of subscriptions with the same id, the first good one stays; later
    ones are bad, and are listed after those that are bad in their own part.
    O(subscriptions + parameters), in whole columns.
    """
    parts = list(parts)
    if not parts:
        parts = [(read_subscriptions({}, Shapes(), on_error="skip", progress=None), [])]
    shapes, shape_ids = Shapes(), []
    for part, templates in parts:
        own = np.array([shapes.add(template) for template in templates], dtype=np.int32)
        shape_ids.append(own[part.shape_ids])
    columns = [part for part, _ in parts]
    joined = Subscriptions(
        [id_ for part in columns for id_ in part.ids],
        pa.concat_arrays([part.texts for part in columns]),
        _joined_weights(columns),
        np.concatenate(shape_ids),
        _unified([part.parameters for part in columns]),
        [],
    )
    ends = np.cumsum([len(part.ids) for part in columns])
    repeated = _repeated(joined.ids)
    bad = _joined_bad(columns, ends.tolist(), joined.ids, np.flatnonzero(repeated))
    if repeated.any():
        joined = select_rows(joined, shapes.templates, ~repeated)
    return joined._replace(bad=bad), shapes.templates


def select_rows(
    subscriptions: Subscriptions, templates: Sequence[Template], keep: npt.NDArray[np.bool_]
) -> Subscriptions:
    """The subscriptions that ``keep`` marks, in order. O(subscriptions + parameters)."""
    slots = np.array([len(template.kinds) for template in templates] or [0])
    parameters = np.repeat(keep, slots[subscriptions.shape_ids])
    return Subscriptions(
        [subscriptions.ids[row] for row in np.flatnonzero(keep).tolist()],
        subscriptions.texts.filter(pa.array(keep)),
        None if subscriptions.weights is None else subscriptions.weights[keep],
        subscriptions.shape_ids[keep],
        subscriptions.parameters.filter(pa.array(parameters)),
        subscriptions.bad,
    )


def _joined_weights(parts: list[Subscriptions]) -> npt.NDArray[np.float64] | None:
    if all(part.weights is None for part in parts):
        return None
    return np.concatenate(
        [np.ones(len(part.ids)) if part.weights is None else part.weights for part in parts]
    )


def _repeated(ids: list[str | int]) -> npt.NDArray[np.bool_]:
    """Mark each id that occurred before."""
    known = Ids.of(ids)
    codes = known.values.dictionary_encode().indices.to_numpy().astype(np.int64)
    codes = 2 * codes + known.marks()  # 1 and "1" differ
    rows = np.arange(len(ids))
    first = np.empty(codes.max(initial=-1) + 1, dtype=np.int64)
    first[codes[::-1]] = rows[::-1]  # of several values for one place, the last stays
    return np.asarray(first[codes] != rows)


def _joined_bad(
    parts: list[Subscriptions],
    ends: list[int],
    ids: list[str | int],
    repeated: npt.NDArray[np.int64],
) -> list[BadSubscription]:
    """The bad subscriptions of all parts, including those whose id an earlier part has taken."""
    named = {each.id for part in parts for each in part.bad if id_problem(each.id) is None}
    taken: dict[str | int, int] = {}  # the first row that has the id of a bad one
    if named:
        for row, id_ in enumerate(ids):
            if id_ in named:
                taken.setdefault(id_, row)
    out: list[BadSubscription] = []
    start = 0
    for part, end in zip(parts, ends, strict=True):
        for each in part.bad:
            before = id_problem(each.id) is None and taken.get(each.id, end) < start
            out.append(BadSubscription(each.id, 0, REPEATED) if before else each)
        own = repeated[np.searchsorted(repeated, start) : np.searchsorted(repeated, end)]
        out += [BadSubscription(ids[row], 0, REPEATED) for row in own.tolist()]
        start = end
    return out


def weight_problem(weight: Any) -> str | None:
    """What is wrong with a weight, if anything; None as a weight is fine."""
    good = weight is None
    if isinstance(weight, int | float) and not isinstance(weight, bool):
        with contextlib.suppress(OverflowError):  # an integer that no float can hold
            good = math.isfinite(weight)
    return None if good else f"a weight must be a finite number, not {brief(weight)}"
