"""Demands: what must hold of the documents for a subscription to match any event.

``EXISTS d (d.isbn = isbn AND d.price < 10)`` cannot match before some document has a price below
10. Such a demand is an ordinary expression over the attributes of one document, so an ordinary
index tells which demands a new document meets, and subscriptions whose demands are not met are left
out of all that follows::

    implied.py     the demand of a subscription, from its normal form
    prefilter.py   which of many demands are met, updated as documents arrive
    demands.py     those of all subscriptions, in pre-filters that are merged as they become many
"""
