"""The papers' structures: every index of five papers, and three more, each in a folder of its own.

Bittern is built on five papers and implements what each of them describes, and the rivals that
they compare themselves with. All of it works on the product's contracts (``stabbing/contract.py``,
``matching/contract.py``), is saved in snapshots, checked, compared with the same oracles, and
chosen by name. None of it is on the product's path: the registries (``stabbing/registry.py``,
``matching/registry.py``) load a folder when its structure is named, or when ``bittern advise``
compares them.

The papers, by the numbers that code and docs call them::

    seed 000   Wu, Chen, Yu and Mei, "Efficient Interval Indexing for Content-Based Subscription
               E-Commerce and Services"
    seed 001   Wu, Chen and Yu, "Query Indexing with Containment-Encoded Intervals for Efficient
               Stream Processing"
    seed 002   Wang, Zhang and Kitsuregawa, "Design of B+tree-Based Predicate Index for Efficient
               Event Matching"
    seed 003   Zhang, Chan and Tan, "An Efficient Publish/Subscribe Index for E-Commerce Databases"
    seed 004   Tatbul, "Index Structures and Algorithms for Efficient Profile Matching"

Indexes that find the intervals that contain a value, ``stabbing="..."``::

    seed  what it describes                             name                    folder
    000   virtual construct intervals, found by full,   sci, sci-bc, sci-bv,    constructs
          clipped and virtual bitmaps, distance tables  sci-dt, lci, lci-bc, …
    000   interval skip list, the dynamic baseline      is-list                 is_list
    001   unit intervals (CEI is in ``stabbing``)       ui                      constructs
    002   PB+tree on pages, in memory and on disk       pb-tree, PredicateFile  pb_tree
    002   its rivals: Grouped Filter, red-black tree    grouped-filter,         predicates
                                                        red-black
    004   Cluster, Interval and Hybrid Index, segment   cluster, interval,      bit_vectors
          tree (interval trees are in ``stabbing``)     hybrid, segment-tree

Indexes that find the subscriptions that an event satisfies, ``strategy="..."``::

    003   OpIndex, by pivot attribute and operator      opindex, opindex-bs     opindex
    003   its rivals: k-index, BE-Tree                  kindex, betree          kindex, betree
    000   the two-phase counting that 000 to 002        counting                counting
          assume above their one-attribute indexes
    none  REIN, HEM and TAMA, for many wide ranges      rein, hem, tama         rectangles

Shared by several: ``clauses`` (expressions in normal form), ``sorted_lists`` (the lists that
counting, k-index and OpIndex search), ``predictions`` (bytes and times, for ``advise``).

Start with the ``__init__`` of a folder, then its ``index.py``, whose docstring draws the layout.
docs/stabbing.md and docs/strategies.md say what each is good for and how it compares.
"""
