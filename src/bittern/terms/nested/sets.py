"""Arrays as sets: whether an element is there, and where; what two arrays share; each value once.

::

    array_contains([a, NULL], 'a')        TRUE
    array_contains([a, NULL], 'b')        NULL: the element that is missing might be it
    arrays_overlap([a, b], [b, c])        TRUE
    array_position([a, b], 'b')           2
    array_distinct([a, b, NULL, a])       [a, b, NULL]

Values are compared by the numbers that stand for them (``ranks.py``), so that nothing is
repeated for each element. O(rows + elements x log elements).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bittern.arrays import Mask
from bittern.terms.logic.comparisons import in_common
from bittern.terms.nested.nested import Lists, Offsets, list_parts
from bittern.terms.nested.ranks import ranks
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, Scope, Value

TABLE = FunctionTable()


def ranked_beside(values: pa.Array, others: Value) -> tuple[Offsets, Offsets]:
    """The ranks of some values, and of others among them; one of a scalar."""
    values, others = in_common(values, others)
    if isinstance(others, pa.Scalar):
        others = Scope({}, 1).array(others)
    codes = ranks(pa.concat_arrays([values, others]))
    return codes[: len(values)], codes[len(values) :]


def found_in(lists: Lists, value: Value) -> tuple[Mask, Mask]:
    """Which elements equal the value of their row, and in which rows there is a value."""
    codes, wanted = ranked_beside(lists.values, value)
    own = wanted[lists.parents] if len(wanted) != 1 or len(lists.valid) == 1 else wanted
    there = np.broadcast_to(wanted >= 0, lists.valid.shape)
    return (codes == own) & (codes >= 0), there


@TABLE.add("array_contains", least=2)
def _array_contains(scope: Scope, _call: Call, array: Value, value: Value) -> Value:
    if isinstance(array, pa.Array) or not isinstance(value, pa.Array):
        return contains(list_parts(scope, array, "array_contains"), value)
    one = list_parts(Scope({}, 1), array, "array_contains")
    codes, wanted = ranked_beside(one.values, value)
    found = np.isin(wanted, codes[codes >= 0])
    unknown = (wanted < 0) | (~found & (codes < 0).any()) | ~one.valid
    return pa.array(found, mask=unknown)


def contains(lists: Lists, value: Value) -> pa.Array:
    """Whether the value is an element; unknown if it is not, but some element is NULL."""
    same, there = found_in(lists, value)
    found = lists.any(same)
    unknown = ~found & lists.any(_nulls(lists.values))
    return pa.array(found, mask=~lists.valid | ~there | unknown)


@TABLE.add("array_position", least=2)
def _array_position(scope: Scope, _call: Call, array: Value, value: Value) -> Value:
    lists = list_parts(scope, array, "array_position")
    same, there = found_in(lists, value)
    first = lists.first(same)
    place = np.where(first < len(lists.values), first - lists.offsets[:-1] + 1, 0)
    return pa.array(place, pa.int64(), mask=~lists.valid | ~there)


@TABLE.add("arrays_overlap", least=2)
def _arrays_overlap(scope: Scope, _call: Call, left: Value, right: Value) -> Value:
    if isinstance(left, pa.Scalar):
        left, right = right, left
    one = list_parts(scope, left, "arrays_overlap")
    # A constant is not repeated for each row.
    is_constant = isinstance(right, pa.Scalar)
    other = list_parts(Scope({}, 1) if is_constant else scope, right, "arrays_overlap")
    codes, others = ranked_beside(one.values, other.values)
    there = others >= 0
    if is_constant:
        shared = np.isin(codes, others[there])
    else:
        width = max(codes.max(initial=0), others.max(initial=0)) + 1
        shared = np.isin(codes + one.parents * width, (others + other.parents * width)[there])
    found = one.any(shared & (codes >= 0))
    nulls = one.any(codes < 0) | other.any(~there)
    unknown = ~found & nulls & (one.lengths > 0) & (other.lengths > 0)
    return pa.array(found, mask=~(one.valid & other.valid) | unknown)


@TABLE.add("array_distinct", least=1)
def _array_distinct(scope: Scope, _call: Call, array: Value) -> Value:
    lists = list_parts(scope, array, "array_distinct")
    if pa.types.is_floating(lists.values.type):  # of 0.0 and -0.0, Spark keeps 0.0
        lists = lists._replace(values=pc.add(lists.values, pa.scalar(0.0, lists.values.type)))
    codes = ranks(lists.values)
    _, first = np.unique(codes + 1 + lists.parents * (codes.max(initial=0) + 2), return_index=True)
    kept = np.zeros(len(codes), dtype=np.bool_)
    kept[first] = True
    return lists.kept(kept).array()


def _nulls(values: pa.Array) -> Mask:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
