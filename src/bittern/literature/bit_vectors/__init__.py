"""The indexes of seed 004 that answer with bit vectors: Cluster, Interval and Hybrid, segment tree.

Each interval has a slot, a bit in every vector. A value is led to one row (Interval Index, Cluster
Index), or to a row on each level of a tree (segment tree), and the bits set there are its answer::

    cluster_index.py  hybrid_index.py    over cluster_tree.py: keys that part clusters
    interval_index.py                    over elementary.py: the pieces between all ends
    segment_tree.py                      over segment_nodes.py
    slots.py vectors.py words.py bulk.py bitmaps.py    intervals by slot, rows of nonzero words
    bit_runs.py descents.py              searching a batch
"""
