"""Event patterns of Amazon EventBridge, and filter policies of Amazon SNS.

::

    patterns.py      objects of fields, lists of objects, ``$or``: what must hold together
    field_tests.py   the tests of one field: an array of which one must hold, kind by kind
"""
