"""What a service writes down beside the subscriptions of a catalog, in the catalog's own database.

::

    tables.py     the tables: events, their matches, letters to webhooks, tokens, the audit log
    journal.py    ``catalog.journal``: events are logged with what they matched; who has seen what
    letters.py    what is still to be posted to webhooks, and what could not be delivered
    tokens.py     who may use the service: hashes of secrets, roles and limits
    audit.py      who changed what, written before the change is made
    places.py     where the catalog of each tenant is

An event is logged in one transaction with its matches and letters, so that none of these can be
there without the others, whatever is killed. Writers take turns, so numbers have no gaps and become
visible in order: a reader that has seen number n has seen all before it.
"""
