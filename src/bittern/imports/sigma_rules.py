r"""Sigma rules: a backend on pySigma's interfaces, as its ecosystem has them.

pySigma reads a rule, applies its modifiers and the processing pipelines, and walks what is left;
``BitternBackend`` makes a condition of each leaf. What the leaves mean is in ``docs/imports.md``;
in short, a value is compared as text without regard to case, and what is missing does not match, so
that NOT of it does::

    Image|endswith: '\cmd.exe'      lower(Image) LIKE '%\\\\cmd.exe'
    not that                        NOT of it, or Image is NULL, or it is a list or an object

The backend can be used like any other of pySigma's: ``BitternBackend(pipeline).convert(rules)``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn

import yaml
from sigma.collection import SigmaCollection
from sigma.conditions import ConditionValueExpression
from sigma.conversion.base import Backend
from sigma.conversion.state import ConversionState
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaConditionError, SigmaError
from sigma.modifiers import modifier_mapping
from sigma.processing.pipeline import ProcessingPipeline
from sigma.rule import SigmaDetection, SigmaRule
from sigma.types import (
    SigmaCasedString,
    SigmaCompareExpression,
    SigmaExpansion,
    SigmaNull,
    SigmaString,
    SigmaTimestampPart,
    SpecialChars,
)

from bittern.errors import RuleError, brief
from bittern.imports import conditions as say
from bittern.imports.addresses import ipv4_patterns, ipv6_patterns
from bittern.imports.answers import ALWAYS, Answer, both, either, negated, told, written
from bittern.imports.json_rules import place_of
from bittern.imports.sigma_documents import (
    CONDITION,
    ODD_FORM,
    check_conditions,
    refusal,
    rules_in,
)

_WILD = {
    SpecialChars.WILDCARD_MULTI: say.ANY_TEXT,
    SpecialChars.WILDCARD_SINGLE: say.ANY_CHARACTER,
}
_OPERATORS = {"LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NEQ": "!="}
_PLACEHOLDER = "the placeholder {} has no value: give a pipeline that replaces it"


def sigma(
    rule: Any,
    *,
    pipeline: ProcessingPipeline | str | Path | None = None,
    fields: Collection[str] = (),
) -> str:
    """The expression of a rule, given as YAML text, as its mapping, or as pySigma's ``SigmaRule``.

    ``pipeline`` is one of pySigma's processing pipelines, or the path of one in YAML. Keywords are
    searched in the attributes that ``fields`` names.
    """
    if not isinstance(rule, SigmaRule | SigmaCorrelationRule):
        rules = list(rules_in(rule))
        if len(rules) != 1:
            raise RuleError(f"the text has {len(rules)} rules: give them one by one")
        rule = rules[0].rule
    if isinstance(rule, RuleError):
        raise rule
    if isinstance(pipeline, str | Path):
        pipeline = _read_pipeline(Path(pipeline))
    if isinstance(rule, SigmaRule):
        check_conditions(rule)
    try:
        found: list[str] = BitternBackend(pipeline, fields=tuple(fields)).convert(
            SigmaCollection([rule])
        )
    except (SigmaError, NotImplementedError, RecursionError, *ODD_FORM) as wrong:
        place = CONDITION if isinstance(wrong, SigmaConditionError) else ""
        raise refusal(wrong, place) from None
    if not found:
        raise RuleError("the rule has no condition of its own")
    return say.printed(say.any_of(f"({each})" for each in found))


def _read_pipeline(path: Path) -> ProcessingPipeline:
    try:
        return ProcessingPipeline.from_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError) as wrong:
        raise RuleError(f"this is not a Sigma pipeline: {wrong}", file=str(path)) from None


def _no_correlation(self: Any, *_: Any, **__: Any) -> NoReturn:
    """Refuse a correlation."""
    raise NotImplementedError


class BitternBackend(Backend):
    """Converts rules to expressions, one for each condition of a rule."""

    name: ClassVar[str] = "Bittern"
    formats: ClassVar[dict[str, str]] = {"default": "Expressions of Bittern"}
    convert_or_as_in: ClassVar[bool] = True
    explicit_not_exists_expression: ClassVar[bool] = False

    def __init__(
        self,
        processing_pipeline: ProcessingPipeline | None = None,
        collect_errors: bool = False,  # noqa: FBT001, FBT002 (pySigma's)
        *,
        fields: Collection[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(processing_pipeline, collect_errors, **options)
        self.fields = tuple(fields)
        #: The items of the rule by their values.
        self._items: dict[int, _Item] = {}

    # Conditions

    def convert_condition(self, cond: Any, state: ConversionState) -> Any:
        """Convert any condition; one of a field is told with its item of the rule."""
        if not hasattr(cond, "value"):
            return super().convert_condition(cond, state)
        item = self._item(cond)
        try:
            return told(super().convert_condition(cond, state), item.shown)
        except RuleError as wrong:
            raise RuleError(wrong.reason, wrong.place or item.place) from None

    def _item(self, cond: Any) -> _Item:
        return self._items.get(id(cond.value)) or _item(cond)

    def convert_rule(self, rule: Any, *arguments: Any, **options: Any) -> Any:
        """Convert a rule."""
        self._items = {}
        if isinstance(rule, SigmaRule):
            for name, detection in rule.detection.detections.items():
                self._items |= _items(name, detection)
        return super().convert_rule(rule, *arguments, **options)

    def convert_condition_and(self, cond: Any, state: ConversionState) -> Answer:
        """Convert AND."""
        return both(self.convert_condition(each, state) for each in cond.args)

    def convert_condition_or(self, cond: Any, state: ConversionState) -> Answer:
        """Convert OR."""
        return either(self.convert_condition(each, state) for each in cond.args)

    def convert_condition_not(self, cond: Any, state: ConversionState) -> Answer:
        """Convert NOT; of nothing, it is nothing."""
        inner = self.convert_condition(cond.args[0], state)
        return ALWAYS if inner is None else negated(inner)

    def decide_convert_condition_as_in_expression(self, cond: Any, state: ConversionState) -> bool:
        """Plain strings of one field that do not regard case are one list."""
        return super().decide_convert_condition_as_in_expression(cond, state) and all(
            isinstance(each.value, SigmaString) and not isinstance(each.value, SigmaCasedString)
            for each in cond.args
        )

    def convert_condition_as_in_expression(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a list of strings."""
        del state
        first: Any = cond.args[0]
        name = _field(first.field)
        values = ", ".join(dict.fromkeys(_lowered(_text(each.value)) for each in cond.args))
        return told(_leaf(f"lower({name}) IN ({values})", name), self._item(first).shown)

    # Fields

    def convert_condition_field_eq_val_str(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a string without case; numbers and Booleans are compared as their text."""
        del state
        return _like(_field(cond.field), cond.value)

    def convert_condition_field_eq_val_str_case_sensitive(
        self, cond: Any, state: ConversionState
    ) -> Answer:
        """Convert a string with case; only strings match."""
        del state
        name = _field(cond.field)
        pieces = _pieces(cond.value)
        if say.ANY_TEXT in pieces or say.ANY_CHARACTER in pieces:
            found = say.like(name, *pieces)
        else:
            found = say.compare(name, "=", "".join(pieces))
        return _of_string(found, name)

    def convert_condition_field_eq_val_num(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a number: it, or its text."""
        del state
        name, number = _field(cond.field), cond.value.number
        same, text = say.compare(name, "=", number), say.compare(name, "=", str(number))
        fails = say.any_of(
            [
                f"NOT ({same})",
                f"NOT ({text})",
                say.is_null(name),
                say.is_kind(name, "boolean"),
                say.is_kind(name, "container"),
            ]
        )
        return Answer(say.any_of([same, text]), fails)

    def convert_condition_field_eq_val_bool(self, cond: Any, state: ConversionState) -> Answer:
        """Convert TRUE or FALSE: it, or its text."""
        del state
        name = _field(cond.field)
        value = "true" if cond.value.boolean else "false"
        return _leaf(say.compare(f"lower({name})", "=", value), name)

    def convert_condition_field_eq_val_re(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a regular expression, found anywhere in a string."""
        del state
        name = _field(cond.field)
        return _of_string(say.matches(name, cond.value.escape(escape_escape_char=False)), name)

    def convert_condition_field_eq_val_cidr(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a range of IP addresses, in all their spellings."""
        del state
        name, network = _field(cond.field), cond.value.network
        if isinstance(network, ipaddress.IPv4Network):
            patterns = ipv4_patterns(network, zeros=False)
        else:
            patterns = ipv6_patterns(network, dotted=True, zeros=False)
        return _of_string(say.any_of(say.matches(name, each) for each in patterns), name)

    def convert_condition_field_compare_op_val(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a comparison with a number, of numbers."""
        name, value = _field(cond.field), cond.value
        assert isinstance(value, SigmaCompareExpression)
        if isinstance(value.number, SigmaTimestampPart):
            self.convert_condition_field_eq_val_timestamp_part(cond, state)
        found = say.compare(name, _OPERATORS[value.op.name], value.number.number)
        return Answer(found, say.is_not(found, name, "number"))

    def convert_condition_field_eq_field(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a reference to another field: both as text without case."""
        del state
        reference: Any = cond.value
        one, other = _field(cond.field), _field(reference.field)
        left, right = f"lower({one})", f"lower({other})"
        if reference.starts_with and reference.ends_with:
            found = f"contains({left}, {right})"
        elif reference.starts_with:
            found = f"startswith({left}, {right})"
        elif reference.ends_with:
            found = f"endswith({left}, {right})"
        else:
            found = f"({left} = {right})"
        return Answer(found, say.any_of([f"NOT {found}", *_no_text(one), *_no_text(other)]))

    def convert_condition_field_eq_val_null(self, cond: Any, state: ConversionState) -> Answer:
        """Convert null: it is NULL or missing."""
        del state
        name = _field(cond.field)
        return Answer(say.is_null(name), f"{name} IS NOT NULL")

    def convert_condition_field_exists(self, cond: Any, state: ConversionState) -> Answer:
        """Convert existence: the event has the field, if only as NULL."""
        del state
        name = _field(cond.field)
        return Answer(f"{name} IS NOT MISSING", say.is_missing(name))

    def convert_condition_field_not_exists(self, cond: Any, state: ConversionState) -> Answer:
        """Convert absence."""
        return negated(self.convert_condition_field_exists(cond, state))

    def convert_condition_field_eq_val_timestamp_part(
        self, cond: Any, state: ConversionState
    ) -> NoReturn:
        """Refuse a part of a time."""
        del state
        raise RuleError(
            f"a part of the time {cond.field} cannot be said: events write times as text"
        )

    def convert_condition_field_eq_query_expr(self, cond: Any, state: ConversionState) -> NoReturn:
        """Refuse a query in another system's language."""
        del state
        raise RuleError(f"a query of another language about {cond.field} cannot be said")

    # Keywords

    def convert_condition_val(self, cond: Any, state: ConversionState) -> Any:
        """Convert a keyword of any type; of several forms one must do."""
        if isinstance(cond.value, SigmaExpansion):
            forms = map(ConditionValueExpression, cond.value.values)
            return either(self.convert_condition_val(each, state) for each in forms)
        if isinstance(cond.value, SigmaNull):
            raise RuleError("null is no keyword: name the field that is to be null")
        return super().convert_condition_val(cond, state)

    def convert_condition_val_str(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a keyword: it is somewhere in one of the fields; with case, in a string."""
        del state
        pieces = [say.ANY_TEXT, *_pieces(cond.value), say.ANY_TEXT]
        if not isinstance(cond.value, SigmaCasedString):
            return self._anywhere(
                lambda name: _leaf(say.like(name, *pieces, ignoring_case=True), name)
            )
        return self._anywhere(lambda name: _of_string(say.like(name, *pieces), name))

    def convert_condition_val_num(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a number as a keyword."""
        del state
        pieces = [say.ANY_TEXT, str(cond.value), say.ANY_TEXT]
        return self._anywhere(lambda name: _leaf(say.like(name, *pieces, ignoring_case=True), name))

    def convert_condition_val_re(self, cond: Any, state: ConversionState) -> Answer:
        """Convert a regular expression as a keyword."""
        del state
        pattern = cond.value.escape(escape_escape_char=False)
        return self._anywhere(lambda name: _of_string(say.matches(name, pattern), name))

    def convert_condition_query_expr(self, cond: Any, state: ConversionState) -> NoReturn:
        """Refuse a query in another system's language."""
        del cond, state
        raise RuleError("a query of another language cannot be said")

    def _anywhere(self, condition: Any) -> Answer:
        if not self.fields:
            raise RuleError("a keyword is searched in all fields: name them with fields=")
        return either(condition(_field(each)) for each in self.fields)

    # What is about several events

    convert_correlation_event_count_rule = _no_correlation
    convert_correlation_value_count_rule = _no_correlation
    convert_correlation_value_sum_rule = _no_correlation
    convert_correlation_value_avg_rule = _no_correlation
    convert_correlation_value_percentile_rule = _no_correlation
    convert_correlation_value_median_rule = _no_correlation
    convert_correlation_temporal_rule = _no_correlation
    convert_correlation_temporal_ordered_rule = _no_correlation
    convert_correlation_extended_temporal_rule = _no_correlation
    convert_correlation_extended_temporal_ordered_rule = _no_correlation

    # Queries

    def finalize_query_default(
        self, rule: SigmaRule, query: Any, index: int, state: ConversionState
    ) -> str:
        """Write the condition as an expression."""
        del rule, index, state
        return written(query)


class _Item(NamedTuple):
    """An item of a rule, as the rule has it: ``selection: Image|endswith: cmd.exe``."""

    shown: str
    place: str


def _items(name: str, detection: SigmaDetection) -> dict[int, _Item]:
    """The items of a detection by the identity of their values."""
    found: dict[int, _Item] = {}
    for each in detection.detection_items:
        if isinstance(each, SigmaDetection):
            found |= _items(name, each)
            continue
        words = [_MODIFIERS.get(modifier, modifier.__name__) for modifier in each.modifiers]
        shown = "|".join([each.field or "", *words])
        given = ", ".join(map(str, each.original_value or ()))
        item = _Item(
            f"{name}: {shown}: {given}" if shown else f"{name}: {given}",
            place_of(("detection", name, shown) if shown else ("detection", name)),
        )
        found |= {id(value): item for value in each.value}
    return found


_MODIFIERS = {modifier: name for name, modifier in modifier_mapping.items()}


def _item(cond: Any) -> _Item:
    """A condition on a field, where its item cannot be told."""
    field = getattr(cond, "field", None)
    return _Item(f"{field}: {cond.value}" if field else str(cond.value), "")


def _field(name: str) -> str:
    """A field's name is a path."""
    return say.path(*say.parts_of(name))


def _no_text(name: str) -> list[str]:
    return [say.is_null(name), say.is_kind(name, "container")]


def _leaf(condition: str, name: str) -> Answer:
    """A condition on the text of a field, which all values have but lists and objects."""
    return Answer(condition, say.any_of([f"NOT ({condition})", *_no_text(name)]))


def _of_string(condition: str, name: str) -> Answer:
    """A condition on a field that only strings fulfil."""
    return Answer(condition, say.is_not(condition, name, "string"))


def _pieces(value: Any) -> list[Any]:
    """A string of Sigma as pieces of a pattern."""
    found: list[Any] = []
    for part in value.s:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, SpecialChars):
            found.append(_WILD[part])
        else:
            raise RuleError(_PLACEHOLDER.format(brief(getattr(part, "name", part))))
    return found


def _text(value: Any) -> str:
    return "".join(_pieces(value))


def _like(name: str, value: Any) -> Answer:
    pieces = _pieces(value)
    if say.ANY_TEXT in pieces or say.ANY_CHARACTER in pieces:
        return _leaf(say.like(name, *pieces, ignoring_case=True), name)
    return _leaf(f"lower({name}) = {_lowered(''.join(pieces))}", name)


def _lowered(text: str) -> str:
    """A constant in lower case; beyond ASCII the engine says what that is."""
    return say.constant(text.lower()) if text.isascii() else f"lower({say.constant(text)})"
