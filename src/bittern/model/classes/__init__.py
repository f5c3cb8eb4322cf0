"""Classes: what subscriptions are in rank space, each distinct expression once.

What ``model/events`` does for events, this does for subscriptions: out come integers that the rooms
to the right can match without knowing a type or a name. Texts of millions of subscriptions have few
shapes, so nothing here loops over subscriptions in Python::

    a template     price <= 7 AND brand = 'x'                     (language/templates.py)
    expand.py      tests of a shape, as formulas over ranks       price [start, 2i+1]
    compile.py     those of all subscriptions, with constants     price [0, 3], brand [6, 6]
    structure.py   the tree of AND and OR around them             all of them
    classes.py     canonical form, and one class for all that are equal

Subscription indexes (``matching``, ``literature``) file classes; which subscriptions stand behind a
class is looked up when it has matched.
"""
