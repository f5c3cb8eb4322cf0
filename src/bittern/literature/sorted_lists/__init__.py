"""Numbered lists of sorted pairs, which counting, k-index and OpIndex keep their predicates in.

``lists.py`` is the structure, ``blocks.py`` its kernels, ``checking.py`` its invariants.
"""
