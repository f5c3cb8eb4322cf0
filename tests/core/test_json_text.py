"""The JSON scanner against ``json.loads`` and a plain flattener."""

from __future__ import annotations

import json
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bittern.model.events.json.lines import texts_of
from bittern.model.events.json.text import MAX_DEPTH, REJECT_REASONS, scan_json
from bittern.model.strings import StringTable, arrow_strings
from bittern.model.tagged import BOOLEAN, FLOAT, INTEGER, OTHER, STRING

OTHER_VALUE = "(an object or a list)"


class Pairs(list):
    """A JSON object with its repetitions."""


def scan(texts, names):
    """Per text its values by name, or the reason why it was rejected."""
    table = StringTable.build(*arrow_strings(pa.array(names, pa.large_string()))[:2], 0)
    encoded = [t.encode() if isinstance(t, str) else t for t in texts]
    values, rejected, reasons = scan_json(*arrow_strings(pa.array(encoded, pa.binary())), table)
    assert (np.diff(values.rows) >= 0).all()
    result = [{} for _ in texts]
    columns = (column.tolist() for column in values[:5])
    for row, attribute, tag, payload, length in zip(*columns, strict=True):
        name = names[attribute]
        assert name not in result[row], "an attribute has two entries in a row"
        assert length == 0 or tag == STRING
        result[row][name] = decoded(values.data, tag, payload, length)
    for row, reason in zip(rejected, reasons, strict=True):
        assert not result[row], "a rejected row has entries"
        result[row] = REJECT_REASONS[reason]
    return result


def decoded(data, tag, payload, length):
    return {
        INTEGER: lambda: payload,
        FLOAT: lambda: struct.unpack("d", struct.pack("q", payload))[0],
        STRING: lambda: bytes(data[payload : payload + length]).decode(),
        BOOLEAN: lambda: bool(payload),
        OTHER: lambda: OTHER_VALUE,
    }[tag]()


def flattened(pairs, prefix=""):
    """Every path with its last value; null is kept as None."""
    result = {}
    for key, value in pairs:
        quoted = "`" + key.replace("`", "``") + "`" if "." in key or "`" in key else key
        if isinstance(value, list):
            result[prefix + quoted] = OTHER_VALUE
            if isinstance(value, Pairs):
                result |= flattened(value, prefix + quoted + ".")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            result[prefix + quoted] = float(value)
        else:
            result[prefix + quoted] = value
    return result


def exact(values):
    """Tell 1 from 1.0 and True, and 0.0 from -0.0."""
    if not isinstance(values, dict):
        return values
    return {name: (type(value), repr(value)) for name, value in values.items()}


def expected(text, names):
    flat = flattened(json.loads(text, object_pairs_hook=Pairs))
    return {name: flat[name] for name in names if flat.get(name) is not None}


key = st.sampled_from(
    ["a", "b", "a.b", "we`ird", "", "é", "long_enough_for_words", "\n"]
) | st.text(max_size=10)
scalar = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(
        [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**53 + 1, -0.0, 1e22, 1e23, 5e-324]
    )
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-1000, 1000, places=2).map(float)
    | st.text(max_size=30)
)


def objects(values):
    return st.lists(st.tuples(key, values), max_size=6).map(Pairs)


value = st.recursive(
    scalar, lambda inner: objects(inner) | st.lists(inner, max_size=4), max_leaves=12
)


def written(node, space, ascii_only):
    """A JSON text with repetitions, which ``json.dumps`` cannot write."""
    if isinstance(node, Pairs):
        members = (
            f"{written(k, space, ascii_only)}{space}:{space}{written(v, space, ascii_only)}"
            for k, v in node
        )
        return "{" + space + f"{space},{space}".join(members) + space + "}"
    if isinstance(node, list):
        return (
            "[" + f"{space},{space}".join(written(v, space, ascii_only) for v in node) + space + "]"
        )
    return json.dumps(node, ensure_ascii=ascii_only)


texts = st.builds(written, objects(value), st.sampled_from(["", " ", "\n\t \r"]), st.booleans())


@given(st.lists(texts, max_size=5), st.sets(st.sampled_from(["a", "a.b", "`a.b`", "b.a", ""])))
@example(['{"a":{"b":1},"a":{"c":2},"a":null}'], {"a", "a.b", "a.c"})
@example(['{"a":1,"b":2,"a":null,"b":3}', '{"a":1,"b":2}'], {"a", "b"})
def test_values_are_those_of_json_loads(batch, some_names):
    names = set(some_names)
    for text in batch:
        names |= set(list(flattened(json.loads(text, object_pairs_hook=Pairs)))[:8])
    names = sorted(names)
    for text, actual in zip(batch, scan(batch, names), strict=True):
        assert exact(actual) == exact(expected(text, names))


#: Keys that wait to be looked up together, and some that do not, or have others settled first.
many_keys = st.sampled_from([f"k{i}" for i in range(70)] + ["k.1", "k\\2", "k`3", "k\n4"])


@given(
    st.lists(st.tuples(many_keys, scalar | objects(scalar)), min_size=20, max_size=140).map(Pairs),
    st.booleans(),
)
def test_objects_of_many_keys_are_those_of_json_loads(members, ascii_only):
    text = written(members, "", ascii_only)
    names = sorted(flattened(members))[::2]
    wanted = exact(expected(text, names))
    assert [exact(found) for found in scan([text, "{}", text], names)] == [wanted, {}, wanted]


def test_the_docstring_example():
    text = r'{"price": 9, "car": {"color": "r\u0065d", "doors": 3}, "a.b": null, "tags": [1, 2]}'
    assert scan([text], ["price", "car.color", "`a.b`"]) == [{"price": 9, "car.color": "red"}]


def test_names_are_paths_with_quoted_parts():
    text = '{"a.b": 1, "we`ird": 2, "x": {"y.z": 3, "": 4}, "": {"k": 5}, "a": {"b": 6}}'
    names = ["`a.b`", "`we``ird`", "x.`y.z`", "x.", ".k", "a.b", "x", "a", "x.y.z", "we`ird"]
    assert scan([text], names) == [
        {
            "`a.b`": 1,
            "`we``ird`": 2,
            "x.`y.z`": 3,
            "x.": 4,
            ".k": 5,
            "a.b": 6,
            "x": OTHER_VALUE,
            "a": OTHER_VALUE,
        }
    ]


def test_keys_are_matched_without_their_escapes():
    text = r'{"\u0061": 1, "\ud83d\ude00": 2, "b\"\\": {"c\u002ed": 3}}'
    names = ["a", "😀", 'b"\\.`c.d`']
    assert scan([text], names) == [dict(zip(names, [1, 2, 3], strict=True))]


def test_what_is_inside_a_list_has_no_path():
    assert scan(['{"a": [{"b": 1, "a": 2}, [3]], "b": 4}'], ["a", "b", "a.b"]) == [
        {"a": OTHER_VALUE, "b": 4}
    ]


def test_the_last_of_repeated_values_counts():
    names = ["a", "b"]
    assert scan(
        [
            '{"a": 1, "b": 2, "a": "x"}',
            '{"a": 1, "b": 2, "a": null}',
            '{"a": null, "b": 2, "a": 1}',
            '{"a": 1, "a": null, "a": 3, "b": null}',
        ],
        names,
    ) == [{"a": "x", "b": 2}, {"b": 2}, {"a": 1, "b": 2}, {"a": 3}]


NUMBERS = """
0 -0 -0.0 0.0 0e5 1E5 1e+5 1.5e-3 123456789.125 9007199254740993 9007199254740993.0
1e22 1e23 1e-22 1e-23 123456789012345678 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 18446744073709551616 99999999999999999999
1e999 -1e999 1e-999 5e-324
2.4703282292062327208e-324 2.4703282292062328e-324 1.7976931348623157e308 1.7976931348623159e308
0.1 0.30000000000000004 0.00000000000000000000000000001 100000000000000000000.5
1e99999999999999999999 1e-99999999999999999999 0e99999999999999999999 8.5e0000000000000000000001
4503599627370496.5 4503599627370497.5 7.2057594037927933e16
"""


@pytest.mark.parametrize("text", NUMBERS.split())
def test_numbers_are_rounded_correctly(text):
    names = ["n"]
    wanted = expected(f'{{"n":{text}}}', names)
    assert exact(scan([f'{{"n":{text}}}'], names)[0]) == exact(wanted)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_come_back_bit_for_bit(numbers):
    batch = [f'{{"n":{number!r}}}' for number in numbers]
    assert [exact(row) for row in scan(batch, ["n"])] == [exact({"n": n}) for n in numbers]


NOT_AN_OBJECT, NOT_JSON, ENDS_EARLY, TRAILING, TOO_DEEP = REJECT_REASONS[1:6]
BAD_ESCAPE, BAD_CONTROL, BAD_UTF8, BAD_NUMBER = REJECT_REASONS[6:10]

REJECTED = [
    ("", ENDS_EARLY),
    ("  ", ENDS_EARLY),
    ("[1]", NOT_AN_OBJECT),
    ("1", NOT_AN_OBJECT),
    ("null", NOT_AN_OBJECT),
    ("\ufeff{}", NOT_AN_OBJECT),
    ("{", ENDS_EARLY),
    ('{"a', ENDS_EARLY),
    ('{"a"', ENDS_EARLY),
    ('{"a":', ENDS_EARLY),
    ('{"a":1', ENDS_EARLY),
    ('{"a":1,', ENDS_EARLY),
    ('{"a":[1,', ENDS_EARLY),
    ('{"a":"x', ENDS_EARLY),
    ("{} {}", TRAILING),
    ("{}}", TRAILING),
    ("{}\0", TRAILING),
    ('{"a":1,}', NOT_JSON),
    ("{,}", NOT_JSON),
    ('{"a":[1,]}', NOT_JSON),
    ('{"a":[,1]}', NOT_JSON),
    ('{"a":[1 2]}', NOT_JSON),
    ('{"a":[1}', NOT_JSON),
    ('{"a":{"b":1]}', NOT_JSON),
    ('{"a" 1}', NOT_JSON),
    ('{"a":1 "b":2}', NOT_JSON),
    ("{a:1}", NOT_JSON),
    ("{'a':1}", NOT_JSON),
    ("{1:1}", NOT_JSON),
    ('{"a":}', NOT_JSON),
    ('{"a":tru}', NOT_JSON),
    ('{"a":True}', NOT_JSON),
    ('{"a":nul', NOT_JSON),
    ('{"a":truex}', NOT_JSON),
    ('{"a":NaN}', NOT_JSON),
    ('{"a":Infinity}', NOT_JSON),
    ('{"a":-Infinity}', BAD_NUMBER),
    ('{"a":+1}', NOT_JSON),
    ('{"a":.5}', NOT_JSON),
    ('{"a":-}', BAD_NUMBER),
    ('{"a":01}', BAD_NUMBER),
    ('{"a":-01}', BAD_NUMBER),
    ('{"a":1.}', BAD_NUMBER),
    ('{"a":1.e5}', BAD_NUMBER),
    ('{"a":1e}', BAD_NUMBER),
    ('{"a":1e+}', BAD_NUMBER),
    ('{"a":1e', BAD_NUMBER),
    ('{"a":0x10}', NOT_JSON),
    ('{"a":"\t"}', BAD_CONTROL),
    ('{"a":"12345678\n"}', BAD_CONTROL),
    ('{"a\0":1}', BAD_CONTROL),
    (r'{"a":"\x"}', BAD_ESCAPE),
    (r'{"a":"\u12"}', BAD_ESCAPE),
    (r'{"a":"\u12g4"}', BAD_ESCAPE),
    (r'{"a":"\ud800"}', BAD_ESCAPE),
    (r'{"a":"\ud800\u0041"}', BAD_ESCAPE),
    (r'{"a":"\ud800\ud800"}', BAD_ESCAPE),
    (r'{"a":"\udc00"}', BAD_ESCAPE),
    ('{"a":"\\', BAD_ESCAPE),
    ('{"a":"\\u00', BAD_ESCAPE),
    (b'{"a":"\xff"}', BAD_UTF8),
    (b'{"a":"\x80"}', BAD_UTF8),
    (b'{"a":"\xc0\x80"}', BAD_UTF8),
    (b'{"a":"\xc1\xbf"}', BAD_UTF8),
    (b'{"a":"\xe0\x9f\xbf"}', BAD_UTF8),
    (b'{"a":"\xed\xa0\x80"}', BAD_UTF8),
    (b'{"a":"\xf0\x8f\xbf\xbf"}', BAD_UTF8),
    (b'{"a":"\xf4\x90\x80\x80"}', BAD_UTF8),
    (b'{"a":"\xe2\x82"}', BAD_UTF8),
    (b'{"a":"\xe2\x82', BAD_UTF8),
    (b'{"a\xff":1}', BAD_UTF8),
    ('{"z":["\\x"]}', BAD_ESCAPE),
]


@pytest.mark.parametrize(("text", "reason"), REJECTED)
def test_a_bad_text_is_rejected_alone(text, reason):
    good = '{"a": 1.5, "b": "x\\n"}'
    values = {"a": 1.5, "b": "x\n"}
    assert scan([good, text, good, text, None, good], ["a", "b"]) == [
        values,
        reason,
        values,
        reason,
        {},
        values,
    ]


def test_every_reason_is_reached_but_the_text_of_two_gigabytes():
    reached = {reason for _, reason in REJECTED} | {TOO_DEEP}
    assert reached == set(REJECT_REASONS[1:-1])


def test_characters_at_the_borders_of_utf8_are_accepted():
    text = "\x7f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
    for ascii_only in (True, False):
        row = scan([json.dumps({"a": text, text: 1}, ensure_ascii=ascii_only)], ["a", text])
        assert row == [{"a": text, text: 1}]


@pytest.mark.parametrize("opening", ['{"a":', "["])
@pytest.mark.parametrize("beyond", [0, 1, 1000])
def test_depth_is_limited(opening, beyond):
    levels = MAX_DEPTH - 1 + beyond
    closing = "]" if opening == "[" else "}"
    text = '{"a":' + opening * levels + "1" + closing * levels + "}"
    assert scan([text, '{"a":2}'], ["a"]) == [TOO_DEEP if beyond else {"a": OTHER_VALUE}, {"a": 2}]


def test_a_path_longer_than_every_name_is_no_attribute():
    text = json.dumps({"a": {"b" * 50: {"c": 1}, "b": 2}, "`" * 9: {"c": 3}})
    assert scan([text], ["a.b", "a.bb.c"]) == [{"a.b": 2}]


def test_no_names_no_rows_and_slices():
    assert scan(['{"a": 1}', "x"], []) == [{}, NOT_AN_OBJECT]
    assert scan([], ["a"]) == []
    array = pa.array(['{"a": "\\t1"}', '{"a": "2"}', '{"a": "\\t3"}', None, '{"a": "5"}'])[1:4]
    table = StringTable.build(*arrow_strings(pa.array(["a"]))[:2], 0)
    values, rejected, _ = scan_json(*arrow_strings(array), table)
    strings = [
        bytes(values.data[p : p + n]) for p, n in zip(values.payloads, values.lengths, strict=True)
    ]
    assert (values.rows.tolist(), strings, rejected.tolist()) == ([0, 1], [b"2", b"\t3"], [])


def test_strings_without_escapes_stay_in_the_input():
    data, offsets, valid = arrow_strings(pa.array(['{"a": "plain", "b": "not\\nused"}']))
    table = StringTable.build(*arrow_strings(pa.array(["a"]))[:2], 0)
    values, _, _ = scan_json(data, offsets, valid, table)
    assert values.data.ctypes.data == data.ctypes.data


def is_acceptable(text):
    """The verdict of ``json.loads``, made as strict as the module's docstring says."""

    def refuse(word):
        raise ValueError(word)

    try:
        top = json.loads(text.decode(), object_pairs_hook=Pairs, parse_constant=refuse)
        json.dumps(top, ensure_ascii=False).encode()
    except ValueError:  # JSON, UTF-8 or lone surrogates
        return False
    return isinstance(top, Pairs)


@st.composite
def damaged(draw):
    """A text that lost its end, or in which a few bytes changed, were lost or were doubled."""
    text = bytearray(draw(texts).encode())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            del text[at:]
        elif kind == 1:
            del text[at : at + 1]
        elif kind == 2:
            text[at:at] = text[at : at + 3]
        else:
            text[at : at + 1] = draw(
                st.binary(max_size=1) | st.sampled_from([b'"', b"\\", b"}", b"0"])
            )
    return bytes(text)


@given(st.lists(damaged(), min_size=1, max_size=4))
def test_damaged_texts_are_judged_as_json_loads_does(batch):
    good = '{"b": "\\u00e9", "a": {"b": [1]}}'
    names = ["a", "a.b", "b"]
    rows = scan([row for text in batch for row in (text, good)], names)
    for text, actual, neighbour in zip(batch, rows[::2], rows[1::2], strict=True):
        assert neighbour == {"b": "é", "a": OTHER_VALUE, "a.b": OTHER_VALUE}
        if is_acceptable(text):
            assert exact(actual) == exact(expected(text, names))
        else:
            assert actual in REJECT_REASONS[1:]


@given(
    st.lists(st.sampled_from(['{"a": 1}', "{", "é", "", " ", "\t \r", "\u00a0"]), max_size=6),
    st.sampled_from(["", "\n", "\r\n"]),
    st.booleans(),
)
@example([], "", False)
@example([""], "\n", True)
def test_lines_of_a_text_are_its_lines_that_are_not_blank(lines, end, marked):
    body = "\n".join(lines).encode() + end.encode()
    found = texts_of(b"\xef\xbb\xbf" * marked + body)
    found.validate(full=True)
    # A line of a space that is not JSON's is no blank line, but a mistake to be told.
    right = [line for line in body.split(b"\n") if line.strip()]
    assert [text.as_py().encode().removesuffix(b"\n") for text in found] == right
