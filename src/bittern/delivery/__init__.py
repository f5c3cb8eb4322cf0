"""Delivering matches over HTTP: which addresses are allowed, one request, many at once.

::

    addresses.py  checks the URLs of subscribers: the public internet, and networks that are allowed
    posting.py    one POST to an address that was checked, with one deadline
    lanes.py      many requests to many endpoints, each in order, slow ones beside quick ones
    dead_letters.py   what could not be delivered, sent again

Nothing here knows Spark; ``spark/streaming/webhook.py`` delivers a pipeline's matches with it.
"""
