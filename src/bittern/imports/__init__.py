"""Rules of other systems, given back as expressions of our language.

A rule comes in as text or as the object that its JSON or YAML stands for, and goes out as one
expression, which matches an event exactly when the foreign system would match it::

    bittern.imports.eventbridge('{"price": [{"numeric": ["<", 10]}], "color": ["red", null]}')

Where the foreign meaning is not SQL's, the expression carries it: what is missing under a negation,
any element of a list, kinds that are not compared. What cannot be said is refused with its place,
in a ``RuleError``; nothing is left out in silence. ``docs/imports.md`` has a table for each format.

A foreign rule is two-valued: it matches or it does not. So is every *condition* that a format
builds where NOT can reach it: a comparison is unknown where its attribute is missing or of another
kind, and its negation has to say so (``conditions.is_not``).

::

    formats.py      which formats there are, and how their files look
    rule_files.py   files, folders, lines and standard input to expressions with ids

    eventbridge_patterns/    event patterns of EventBridge, filter policies of SNS
    jms_selectors/           selectors of JMS
    cesql_expressions/       filters of CloudEvents SQL
    json_logic_rules/        rules of JSON Logic
    sigma_rules.py           detections of Sigma, through pySigma
    sigma_documents.py       the YAML that they are read from, within limits
    mongo_filters.py         filters of MongoDB
    elasticsearch_queries.py queries of Elasticsearch and OpenSearch

What formats share::

    conditions.py   pieces of expressions: quoted names, constants, comparisons, lists, kinds
    answers.py      conditions with their opposites: AND, OR and NOT of them, values of lists
    words.py        rules that are text: words, and the reader of a grammar
    constructs.py   what each predicate came from, for explanations
    addresses.py    ranges of IP addresses
    regexes.py      regular expressions of Lucene and PCRE in RE2's syntax
    json_rules.py   JSON with the places of mistakes, and limits

Each format is one function of this package, loaded when it is first named. Modules have other names
than the functions, so that loading one never hides the other.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bittern.errors import OptionError
from bittern.imports.formats import FORMATS

#: What is installed with pySigma.
_PYSIGMA = ("sigma", "yaml")


def __getattr__(name: str) -> Any:
    if name not in FORMATS:
        raise AttributeError(f"module 'bittern.imports' has no attribute {name!r}")
    try:
        module = import_module(f"bittern.imports.{FORMATS[name].module}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in _PYSIGMA:
            raise
        raise OptionError("rules of Sigma need pySigma: pip install 'bittern[sigma]'") from None
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(FORMATS)
