"""How snapshots reach the processes that match with them: one copy per host, mapped by all.

::

    store.py         where the driver puts a snapshot      transport.py     links, copies, downloads
    node_cache.py    one copy per host, fetched once       cache_folder.py  the folder it is in
    bundles.py       compiled kernels that come with it
"""
