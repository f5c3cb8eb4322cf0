"""Named sets: ``user_id IN SET vips``, where the members are no part of the index.

::

    content.py   members of any form, each in its one form: what is built from, added and removed
    members.py   an immutable set that values are looked up in
    named.py     sets by name: what matchers are given, and which names subscriptions use

A matcher has sets by name and hands them to the encoder of each index. There,
``terms/logic/members.py`` looks the values of a batch up, once for each attribute and set, and the
answer is the value of a derived attribute (``language/derived.py``). So a set changes without
compiling any subscription. docs/decisions/0020-named-sets.md has the reasons.
"""
