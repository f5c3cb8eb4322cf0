"""Reading what is subscribed: texts become rows, which can be indexed at any later time.

A text is read once, by the thread that subscribes it. Its template is expanded once for all texts
that have it (``model/classes/expand.py``). Thousands of texts at once are read by kernels
(``engine/texts/``).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from bittern.engine.live.delta import Row
from bittern.engine.subscriptions import MANY, REPEATED, are_texts, weight_problem
from bittern.engine.unanswered import needs_history, refused
from bittern.errors import BadSubscription, ExpressionError, SubscriptionError
from bittern.language.shapes import Shapes
from bittern.model.classes.expand import ShapePlan
from bittern.model.ids import id_problem, normal_id
from bittern.model.strings import arrow_of
from bittern.terms.unknown import any_function

if TYPE_CHECKING:
    from bittern.engine.known_schema import KnownSchema

#: A shape and parameters, or a mistake.
_Read: TypeAlias = tuple[int, tuple[str, ...]] | ExpressionError


class RowReader:
    """Reads subscriptions, one thread at a time."""

    def __init__(
        self,
        typed_by: KnownSchema | None,
        unknown: str,
        without_history: str,
        *,
        any_function: bool,
    ) -> None:
        """``Layers`` tells what these mean; ``any_function`` is its ``functions="spark"``."""
        self._typed_by = typed_by
        self._unknown = unknown
        self._without_history = without_history
        self._any_function = any_function
        self.shapes = Shapes()
        #: By the number of a template object: its plan, and whether it needs a history.
        self._plans: dict[int, tuple[ShapePlan, bool]] = {}

    def forget(self) -> None:
        """Start anew: what is known is mostly of expressions that are gone."""
        self.shapes = Shapes()
        self._plans = {}

    def read(self, id_: Any, expression: Any, weight: Any, read: _Read | None = None) -> Row:
        """Read one; ``SubscriptionError`` if it is bad. O(length).

        ``read`` is what the text was read as, if it has been already.
        """
        problem = id_problem(id_)
        if problem is None and weight is not None:
            problem = weight_problem(weight)
        if problem is not None:
            raise SubscriptionError([BadSubscription(id_, 0, problem)])
        try:
            if isinstance(read, ExpressionError):
                raise read
            if read is not None:
                shape, parameters = read
            elif self._any_function:
                with any_function():
                    shape, expression, parameters = self._shape(id_, expression)
            else:
                shape, expression, parameters = self._shape(id_, expression)
        except ExpressionError as wrong:
            bad = BadSubscription(id_, wrong.position, wrong.message)
            raise SubscriptionError([bad]) from None
        template = self.shapes.templates[shape]
        known = self._plans.get(id(template))
        if known is None:  # the plan keeps the template: no other has this id
            known = self._plans[id(template)] = ShapePlan.of(template), needs_history(template)
        plan, asks_history = known
        if asks_history and self._without_history:
            raise SubscriptionError([refused(id_, expression, self._without_history)])
        return Row(id_, expression, weight, plan, parameters)

    def _shape(self, id_: Any, expression: Any) -> tuple[int, str, tuple[str, ...]]:
        """The shape of a text, the text itself or as it is converted, and its parameters."""
        if self._typed_by is None:
            shape, parameters = self.shapes.read(expression)
        else:
            expression, shape, parameters = self._typed_by.read(
                id_, expression, self.shapes, self._unknown
            )
        return shape, expression, parameters

    def _read_texts(self, texts: list[Any]) -> Iterable[_Read | None]:
        """What texts are read as, by columns where there are many; None: they are not read yet."""
        if self._typed_by is not None or len(texts) < MANY or not are_texts(texts):
            return itertools.repeat(None)
        from bittern.engine.texts.columns import ColumnReader  # noqa: PLC0415  only for many

        reader = ColumnReader(self.shapes)
        with any_function() if self._any_function else contextlib.nullcontext():
            shape_ids, bad = reader.read(arrow_of(texts))
        wrong = dict(bad)
        parameters = reader.parameters()
        words = parameters.dictionary.to_pylist()
        raws = [words[code] for code in parameters.indices.to_numpy().tolist()]
        read: list[_Read] = []
        at = 0
        for n, shape in enumerate(shape_ids.tolist()):
            if shape < 0:
                read.append(wrong[n])
                continue
            end = at + len(self.shapes.templates[shape].kinds)
            read.append((shape, tuple(raws[at:end])))
            at = end
        return read

    def read_many(
        self, given: Iterable[tuple[Any, Any, Any]], between: Callable[[], None]
    ) -> tuple[list[tuple[int, Row]], list[tuple[int, BadSubscription]]]:
        """Read all, good and bad, each with its place; ``between`` is called after each."""
        rows: list[tuple[int, Row]] = []
        bad: list[tuple[int, BadSubscription]] = []
        seen: set[str | int] = set()
        given = list(given)
        texts = self._read_texts([expression for _, expression, _ in given])
        for n, ((each, expression, weight), text) in enumerate(zip(given, texts, strict=False)):
            id_ = normal_id(each)
            try:
                row = self.read(id_, expression, weight, text)
            except SubscriptionError as wrong:
                bad += [(n, mistake) for mistake in wrong.bad]
                continue
            if id_ in seen:
                bad.append((n, BadSubscription(id_, 0, REPEATED)))
            seen.add(id_)
            rows.append((n, row))
            between()
        return rows, bad
