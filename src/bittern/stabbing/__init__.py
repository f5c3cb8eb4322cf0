"""One-attribute indexes: which intervals contain this value?

``contract`` says what all of them promise and ``registry`` finds them by name. A structure is in
the module of its name, and shares with the others what stands behind it here::

    cei                                     id_lists, blocks
    dlist, ui                               id_lists
    sci*, lci*                              id_lists, constructs, covering, bitmaps
    is_list                                 is_list_*, skip_nodes, markers
    interval_index, segment_tree            slots, bit_vectors, elementary, segment_nodes
    cluster_index, hybrid_index             slots, bit_vectors, cluster_tree
    interval_tree                           interval_nodes
    pb_tree                                 predicates, sides, two_sided, pb/
    grouped_filter, red_black               the same, keyed_lists, red_black_nodes, key_table

Searching a batch writes ``runs`` (of ids) or ``bit_runs`` (of bits) down before it copies them.

What goes with them: ``cost`` has the papers' closed forms, ``predict`` (from a ``summary``, with
constants ``measured``) bytes and times, ``choose`` the best structure; ``profiles`` combines
attributes; ``intervals`` (``values``, ``axis``, ``guide``, ``layer``) takes values, not cells;
``pb/predicate_file`` is a predicate index by itself, on disk.
"""
