"""One-attribute indexes: they find the intervals that contain a value.

``contract`` says what all of them promise, and ``registry`` finds them by name. Here are the
structures that the product uses by itself; those of the papers are in ``literature/``::

    cei              id_lists, blocks       containment-encoded intervals, the default (cei_single)
    dlist            id_lists               a list per cell
    interval_tree    interval_nodes         the smallest

Searching a batch notes ``runs`` of ids before it copies them; ``areas`` lets lists grow.

``stabbing="auto"`` is ``choose``: the best structure by what is predicted (``predict``) from a
``summary``, an ``estimate`` priced with constants that were ``measured``. A ``layer`` (``values``,
``axis``, ``guide``, ``single``) takes values, not cells: ``bittern.Intervals`` is made of these.
"""
