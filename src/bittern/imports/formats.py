"""The formats by name: the module of each, and how its files are read.

``content`` is ``json`` (a document is one rule, an array of rules, or lines of JSON), ``yaml``, or
``lines`` (one rule in each line, ``#`` starts a comment). Nothing is loaded here.

The module of a format has one function of the format's name: ``name(rule, **options) -> str``, the
rule being text or the object that it stands for. It raises ``RuleError``. If documents of a format
wrap their rules, its module has ``rules_in(document)`` too, which yields ``Wrapped`` ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class RuleFormat(NamedTuple):
    """One format: its module in this package, what a file holds, and extensions in a folder."""

    module: str
    content: str
    suffixes: tuple[str, ...]
    title: str


class Wrapped(NamedTuple):
    """A rule inside a document: its name there (or None), its path from the top, and its line."""

    name: str | None
    rule: Any
    path: tuple[str | int, ...] = ()
    line: int | None = None


_JSON = (".json", ".ndjson", ".jsonl")

#: The function of a format has its name here: ``bittern.imports.eventbridge``.
FORMATS = {
    "eventbridge": RuleFormat(
        "eventbridge_patterns.patterns", "json", _JSON, "event patterns of Amazon EventBridge"
    ),
    "sns": RuleFormat(
        "eventbridge_patterns.patterns", "json", _JSON, "filter policies of Amazon SNS"
    ),
    "jms": RuleFormat(
        "jms_selectors.selectors", "lines", (".txt", ".sel", ".ndjson", ".jsonl"), "JMS selectors"
    ),
    "cesql": RuleFormat(
        "cesql_expressions.expressions",
        "lines",
        (".txt", ".cesql", ".ndjson", ".jsonl"),
        "CloudEvents SQL",
    ),
    "sigma": RuleFormat("sigma_rules", "yaml", (".yml", ".yaml"), "Sigma rules"),
    "json_logic": RuleFormat("json_logic_rules.rules", "json", _JSON, "JSON Logic"),
    "mongo": RuleFormat("mongo_filters", "json", _JSON, "filters as MongoDB has them"),
    "elasticsearch": RuleFormat(
        "elasticsearch_queries", "json", _JSON, "queries of Elasticsearch and OpenSearch"
    ),
}
