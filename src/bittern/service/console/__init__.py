"""The console: pages of the service, for people.

Pages are drawn on the server (``templates/``, where every value is escaped), and what moves on them
is done by modules of our own (``static/``), which are loaded as they are. Nothing is loaded from
elsewhere, and the content policy of the service forbids scripts and styles inside of pages. What a
page asks for later is JSON, and is put into it as text::

    pages.py        every page and its address; who may see it       drawing.py  templates
    asked.py        what pages ask for later, as JSON
    filing.py       how a draft would be indexed, and how often it would be looked at
    figures.py      what an index is made of       pictures.py  figures as bars and curves, in SVG
    cells.py        what a cell of an index stands for, in words
    recent.py       the last events: samples, attributes, which subscriptions never match
    pipelines.py    what pipelines report in their files of metrics

``mount`` puts them into an application (``service/http/app.py``). All of it works with a million
subscriptions: pages read what they show, and no more.
"""
