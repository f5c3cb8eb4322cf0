"""One-attribute indexes: which intervals contain this value?

``contract`` says what all of them promise and ``registry`` finds them by name. Here are those that
the product takes by itself; those of the papers are in ``literature/``::

    cei              id_lists, blocks       containment-encoded intervals, the default
    dlist            id_lists               a list per cell
    interval_tree    interval_nodes         the smallest

Searching a batch writes ``runs`` of ids down before it copies them; ``areas`` lets them grow.

``stabbing="auto"`` is ``choose``: the best structure by what is predicted (``predict``) from a
``summary``, an ``estimate`` priced with constants that were ``measured``. ``intervals``
(``values``, ``axis``, ``guide``, ``layer``) takes values, not cells: it is ``bittern.Intervals``.
"""
