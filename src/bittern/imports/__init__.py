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

    conditions.py   pieces of expressions: quoted names, constants, comparisons, lists, kinds
    truths.py       conditions of three values, or two: AND, OR, and NOT that reaches the leaves
    addresses.py    ranges of IP addresses
    answers.py      conditions of two-valued systems, each with its opposite: of MongoDB, of
                    Elasticsearch and of JSON Logic
    constructs.py   what each predicate came from, for explanations
    regexes.py      regular expressions of Lucene and PCRE in RE2's syntax
    javascript.py   how JavaScript compares constants
    json_rules.py   JSON with the places of mistakes, and limits
    formats.py      which formats there are, and how their files look
    rule_files.py   files, folders, lines and standard input to expressions with ids

    eventbridge_patterns.py           event patterns of EventBridge, filter policies of SNS
    eventbridge_tests.py              what the tests of one field say, kind by kind
    jms_selectors.py                  selectors of JMS; jms_conditions.py is their tree
    cesql_expressions.py              filters of CloudEvents SQL: the reader
    cesql_values.py                   what an expression is worth, case by case of its type
    cesql_operators.py                comparisons, IN, LIKE and logic
    cesql_functions.py                functions and arithmetic
    sigma_rules.py                    detections of Sigma, through pySigma
    json_logic_rules.py               rules of JSON Logic
    json_logic_operands.py            what their variables lead to, and constants
    json_logic_numbers.py             arithmetic, case by case
    json_logic_tests.py               what a test says of a value, kind by kind
    mongo_filters.py                  filters of MongoDB
    elasticsearch_queries.py          queries of Elasticsearch and OpenSearch

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
