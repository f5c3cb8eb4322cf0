"""Subscriptions that the driver has in its memory, as a DataFrame: what ``Index.build`` takes.

::

    {"s1": "price < 10"}              id  expression  weight
    [("s1", "price < 10", 2.0)]   ->  s1  price < 10  2.0
    a table of Arrow or pandas

So they are read, judged and cut as those of a DataFrame are. Cost: O(total text), in the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bittern.engine.given import given_rows
from bittern.engine.subscriptions import weight_problem
from bittern.errors import BadSubscription, OptionError, SubscriptionError
from bittern.model.ids import id_problem, normal_id
from bittern.spark.arrow_tables import frame_of


def is_handed_over(subscriptions: Any) -> bool:
    """Whether it is of a form in which a driver holds subscriptions itself."""
    return isinstance(subscriptions, Mapping | list | tuple) or hasattr(
        subscriptions, "__dataframe__"
    )


def as_frame(spark: SparkSession, subscriptions: Any) -> DataFrame:
    """The subscriptions as a DataFrame; what no column can hold is a ``SubscriptionError``."""
    ids: list[Any] = []
    texts: list[str | None] = []
    weights: list[float | None] = []
    bad: list[BadSubscription] = []
    for given, text, weight in given_rows(subscriptions)[1]:
        id_ = normal_id(given)
        problem = id_problem(id_) or _problem(text, weight)
        if problem is not None:
            bad.append(BadSubscription(id_, 0, problem))
            continue
        ids.append(id_)
        texts.append(text)
        weights.append(weight)
    if bad:
        raise SubscriptionError(bad)
    kinds = {type(id_) for id_ in ids}
    if len(kinds) > 1:
        one, other = (next(id_ for id_ in ids if type(id_) is kind) for kind in (int, str))
        raise OptionError(
            f"on Spark, ids are all integers or all texts, not both {one!r} and {other!r}: write "
            f"the integers as texts"
        )
    columns = {
        "id": pa.array(ids, pa.int64() if kinds == {int} else pa.string()),
        "expression": pa.array(texts, pa.string()),
        "weight": pa.array(weights, pa.float64()),
    }
    return frame_of(spark, pa.table(columns))


def _problem(text: Any, weight: Any) -> str | None:
    if not isinstance(text, str):
        return f"an expression must be text, not {type(text).__name__}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "an expression cannot hold half a surrogate pair"
    return weight_problem(weight)
