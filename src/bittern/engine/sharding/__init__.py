"""Cutting subscriptions into parts, so that an event visits few of them.

``cutting.py`` chooses the parts, ``regions.py`` says which values each part looks at, and
``chunks.py`` does both for one chunk of them at a time. ``merging.py`` puts together what several
parts found. Nothing here knows Spark; ``spark/sharded`` runs it in tasks.
"""
