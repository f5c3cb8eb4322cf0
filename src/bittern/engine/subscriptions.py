"""Reading subscriptions of any form: they are checked and put into columns.

``read_subscriptions`` reads them all in one process. If several processes share the work, each
reads a part with its own ``Shapes``, and ``join_subscriptions`` combines the parts as if one
process had read them in that order::

    part 0   ids 1 2    templates T U    shapes 0 1    parameters p 7 q 'x'   dictionary p 7 q 'x'
    part 1   ids 3 2    templates U T    shapes 1 0    parameters p 9 q 'x'   dictionary p 9 q 'x'
    joined   ids 1 2 3  templates T U    shapes 0 1 0  parameters p 7 q 'x' p 9
             bad 2, "this id was given before"         dictionary p 7 q 'x' 9

Cost: about 5 us to read a subscription, or half of one where ``texts/`` knows its shape; a fraction
of one to join it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bittern.engine.given import GivenChunk, given_chunks, rows_of
from bittern.errors import BadSubscription, ExpressionError, SubscriptionError, brief
from bittern.language.shapes import Shapes
from bittern.language.templates import Template
from bittern.model.distinct import distinct, encoded, unified
from bittern.model.ids import Ids, id_problem, normal_id
from bittern.model.numbers import INT64_MAX, INT64_MIN
from bittern.model.strings import arrow_of
from bittern.options import one_of
from bittern.terms.unknown import EMBEDDED, SPARK, any_function

if TYPE_CHECKING:
    from bittern.engine.known_schema import KnownSchema
    from bittern.engine.texts.columns import ColumnReader

#: Called with (stage, done, total); total is 0 where it is not known.
OnProgress = Callable[[str, int, int], None]
#: From so many on it pays to load what reads columns.
MANY = 2_000
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
    total, chunks = given_chunks(source)
    reader = _Reader(shapes, known)
    with any_function(allowed=functions == SPARK):
        for chunk in chunks:
            reader.add_chunk(chunk)
            if progress:
                progress("read", len(reader.ids) + len(reader.bad), total)
    if reader.bad and on_error == "raise":
        raise SubscriptionError(reader.bad)
    return reader.subscriptions()


class _Reader:
    """Reads rows one by one, and long columns of them by kernels (``texts/columns.py``)."""

    def __init__(self, shapes: Shapes, known: KnownSchema | None) -> None:
        self._shapes = shapes
        self._known = known
        self.ids: list[str | int] = []
        self.bad: list[BadSubscription] = []
        self._seen: set[str | int] = set()
        self._columns: ColumnReader | None = None
        # Of the rows that were read one by one since the last flush.
        self._row_texts: list[str] = []
        self._row_parameters: list[tuple[str, ...]] = []
        self._row_shape_ids: list[int] = []
        self._row_weights: list[float] = []
        # By chunk.
        self._texts: list[pa.Array] = []
        self._parameters: list[pa.DictionaryArray] = []
        self._shape_ids: list[npt.NDArray[np.int32]] = []
        self._weights: list[npt.NDArray[np.float64] | None] = []

    def add_chunk(self, chunk: GivenChunk) -> None:
        """Read some rows."""
        ids, texts, weights = chunk
        if self._columns is None and len(ids) >= MANY and not self._texts:
            from bittern.engine.texts.columns import ColumnReader  # noqa: PLC0415  only for many

            self._columns = ColumnReader(self._shapes)
        read = None
        if self._columns and self._are_plain(ids, weights) and are_texts(texts):
            column = texts if isinstance(texts, pa.Array) else arrow_of(texts)
            read = self._read_column(self._columns, column)
        if read is None:
            for row in rows_of(chunk):
                self._add(*row)
            self._flush()
            return
        column, shape_ids, wrong = read
        self._seen.update(ids)
        if wrong:
            self.bad += [BadSubscription(ids[i], own.position, own.message) for i, own in wrong]
            good = shape_ids >= 0
            self._seen.difference_update([ids[i] for i, _ in wrong])
            ids = list(compress(ids, good.tolist()))
            weights = weights and list(compress(weights, good.tolist()))
            column, shape_ids = column.filter(pa.array(good)), shape_ids[good]
        self.ids += ids
        self._texts.append(column)
        self._shape_ids.append(shape_ids)
        self._weights.append(None if weights is None else np.array(weights, dtype=np.float64))

    def _read_column(
        self, columns: ColumnReader, column: pa.Array
    ) -> tuple[pa.Array, npt.NDArray[np.int32], list[tuple[int, ExpressionError]]] | None:
        """Read texts: these, or with the casts that a schema asks for, their shapes, and the bad.

        None if they have to be read one by one.
        """
        mark = columns.mark()
        shape_ids, wrong = columns.read(column)
        if self._known is None:
            return column, shape_ids, wrong
        from bittern.engine.known_schema import ReadRows  # noqa: PLC0415  only for schemas

        rows = ReadRows(shape_ids, columns.codes_since(mark))
        changed = self._known.changed_rows(rows, self._shapes.templates, columns.word)
        if len(changed):
            columns.forget(mark)
            try:
                texts = column.to_pylist()
                for row in changed.tolist():
                    texts[row] = self._known.convert(texts[row])
            except (ExpressionError, UnicodeDecodeError):
                return None
            column = arrow_of(texts)
            shape_ids, wrong = columns.read(column)
        return column, shape_ids, wrong

    def _are_plain(self, ids: list[Any], weights: list[Any] | None) -> bool:
        """Whether nothing is to be said of any id and weight, or changed in it."""
        kinds = set(map(type, ids))
        if kinds == {int}:
            if not INT64_MIN <= min(ids) <= max(ids) <= INT64_MAX:
                return False
        elif kinds != {str} or not _is_unicode(ids):
            return False
        if weights is not None and (
            not set(map(type, weights)) <= {int, float} or any(map(weight_problem, weights))
        ):
            return False
        return len(set(ids)) == len(ids) and self._seen.isdisjoint(ids)

    def _add(self, id_: Any, text: Any, weight: Any) -> None:
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
        self._row_texts.append(text)
        self._row_parameters.append(parameters)
        self._row_shape_ids.append(shape_id)
        self._row_weights.append(math.nan if weight is None else float(weight))

    def _flush(self) -> None:
        """Put the rows into columns, so that the parameters' many strings can be freed."""
        self._texts.append(arrow_of(self._row_texts))
        if self._columns is not None:
            self._columns.take(self._row_parameters)
        else:
            each = [parameter for row in self._row_parameters for parameter in row]
            self._parameters.append(encoded(arrow_of(each)))
        self._shape_ids.append(np.array(self._row_shape_ids, dtype=np.int32))
        weights = np.array(self._row_weights)
        self._weights.append(None if np.isnan(weights).all() else np.nan_to_num(weights, nan=1.0))
        self._row_texts, self._row_parameters = [], []
        self._row_shape_ids, self._row_weights = [], []

    def subscriptions(self) -> Subscriptions:
        """Everything that was read."""
        if not self._texts:
            self._flush()
        columns = self._columns
        return Subscriptions(
            self.ids,
            pa.concat_arrays(self._texts),
            joined_weights(self._weights, list(map(len, self._shape_ids))),
            np.concatenate(self._shape_ids),
            unified(self._parameters) if columns is None else columns.parameters(),
            self.bad,
        )


def are_texts(texts: list[Any] | pa.Array) -> bool:
    """Whether all are plain strings that Arrow can hold."""
    return isinstance(texts, pa.Array) or (set(map(type, texts)) == {str} and _is_unicode(texts))


def _is_unicode(texts: list[str]) -> bool:
    """Whether no text has half a surrogate pair."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


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
        joined_weights([part.weights for part in columns], [len(part.ids) for part in columns]),
        np.concatenate(shape_ids),
        unified([part.parameters for part in columns]),
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


def joined_weights(
    parts: Sequence[npt.NDArray[np.float64] | None], counts: Sequence[int]
) -> npt.NDArray[np.float64] | None:
    """The weights of parts with so many subscriptions; None: all of a part are 1."""
    if all(part is None for part in parts):
        return None
    each = zip(parts, counts, strict=True)
    return np.concatenate([np.ones(count) if part is None else part for part, count in each])


def _repeated(ids: list[str | int]) -> npt.NDArray[np.bool_]:
    """Mark each id that occurred before."""
    known = Ids.of(ids)
    if known.is_int64:
        codes = known.values.dictionary_encode().indices.to_numpy().astype(np.int64)
    else:
        codes = distinct(known.values).codes.astype(np.int64)
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
