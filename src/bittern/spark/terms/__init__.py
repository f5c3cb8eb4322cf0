r"""Terms as columns: the JVM computes them, so that they mean what they mean in ``events.filter``.

For subscriptions over ``lower(brand)`` and ``price / quantity``, with ``id`` as the key::

    events     id  brand  price  quantity
    projected  id  \1lower(brand)  \1price / quantity  \1
    row        7   acme            NULL                price / quantity has no value: ...

Workers take these columns as the values of derived attributes
(``model/events/derived/derived.py``), and what only terms read stays behind. A term that reads
something that no path of columns, fields and entries leads to (a key of a map, a field of a
document) is evaluated by the workers, as it is without Spark.

::

    columns.py    the SQL, in which no row fails a job
    planning.py   which terms Spark can compute for events of some schema, and why not the others
"""
