"""Functions of strings without Spark: against plain Python, constants, failures, limits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bittern.terms.limits import MAX_COLUMN_BYTES, MAX_REGEX_LENGTH, MAX_VALUE_BYTES
from bittern.terms.nodes import Attribute, Call, Constant, Term, attributes_of
from bittern.terms.scope import MeaninglessError, evaluate, folded
from bittern.terms.strings import texts as texts_module
from bittern.terms.strings.texts import Characters

ALPHABET = ["a", "b", "A", " ", ".", "é", "ß", "Σ", "😀", "\u0301", "%", "_", "\\", "0", "\n"]


def term(name: str, *arguments: Any) -> Term:
    """A call; a string that begins with @ is an attribute, Arrow values are constants of theirs."""
    return Call(name, tuple(map(argument, arguments)))


def argument(value: Any) -> Term:
    if isinstance(value, str) and value.startswith("@"):
        return Attribute(value[1:])
    if isinstance(value, Call):
        return value
    kind = pa.int32() if type(value) is int else None
    return Constant(value if isinstance(value, pa.Scalar) else pa.scalar(value, kind))


def named(call: Any) -> str | None:
    return call.function if isinstance(call, Call) else None


def values(call: Term, **columns: Any) -> list[Any]:
    arrays = {name: pa.array(column) for name, column in columns.items()}
    found, failures = evaluate(call, arrays, len(next(iter(arrays.values()))))
    found.validate(full=True)
    assert not failures
    result: list[Any] = found.to_pylist()
    return result


def substring(value: str, position: int, length: int) -> str:
    start = position - 1 if position > 0 else len(value) + position if position else 0
    return value[max(start, 0) : max(start + length, 0)]


def padded(value: str, length: int, padding: str) -> str:
    missing = max(length - len(value), 0) if padding else 0
    return (padding * missing)[:missing] + value[: max(length, 0)]


#: Calls of the columns s, t and n, and what they are in Python.
PLAIN = {
    term("substr", "@s", "@n", 3): lambda s, _, n: substring(s, n, 3),
    term("substr", "@s", -3, "@n"): lambda s, _, n: substring(s, -3, n),
    term("left", "@s", "@n"): lambda s, _, n: s[: max(n, 0)],
    term("right", "@s", "@n"): lambda s, _, n: s[-n:] if n > 0 else "",
    term("lpad", "@s", "@n", "@t"): lambda s, t, n: padded(s, n, t),
    term("repeat", "@s", "@n"): lambda s, _, n: s * n,
    term("instr", "@s", "@t"): lambda s, t, _: s.find(t) + 1,
    term("instr", "@s", "é"): lambda s, _, __: s.find("é") + 1,
    term("startswith", "@s", "@t"): lambda s, t, _: s.startswith(t),
    term("endswith", "@s", "@t"): lambda s, t, _: s.endswith(t),
    term("contains", "@s", "@t"): lambda s, t, _: t in s,
    term("concat", "@s", "@t", "@s"): lambda s, t, _: s + t + s,
    term("replace", "@s", "@t", "xé"): lambda s, t, _: s.replace(t, "xé") if t else s,
    term("replace", "@s", "a", "@t"): lambda s, t, _: s.replace("a", t),
    term("replace", "@s", "a", "éé"): lambda s, _, __: s.replace("a", "éé"),
    term("reverse", "@s"): lambda s, _, __: s[::-1],
    term("lower", "@s"): lambda s, _, __: s.lower(),
    term("upper", "@s"): lambda s, _, __: s.upper(),
    term("length", "@s"): lambda s, _, __: len(s),
    term("hex", "@s"): lambda s, _, __: s.encode().hex().upper(),
    term("unbase64", Call("base64", (Attribute("s"),))): lambda s, _, __: s.encode(),
    term("trim", "@t", "@s"): lambda s, t, _: s.strip(t) if t else s,
    term("ltrim", "a é", "@s"): lambda s, _, __: s.lstrip("a é"),
}


@pytest.mark.parametrize("call", PLAIN, ids=named)
def test_random_columns_against_python(call: Call) -> None:
    rng = random.Random(7)

    def some(longest: int) -> str | None:
        if rng.random() < 0.1:
            return None
        return "".join(rng.choices(ALPHABET, k=rng.randint(0, longest)))

    rows = [(some(9), some(2), rng.choice([None, -4, -1, 0, 1, 2, 5])) for _ in range(400)]
    kinds = (pa.string(), pa.string(), pa.int32())
    # Arrays that begin somewhere in their buffers.
    columns = {
        name: pa.array(column, kind).slice(3)
        for name, column, kind in zip("stn", zip(*rows, strict=True), kinds, strict=True)
    }
    places = ["stn".index(name) for name in attributes_of(call)]
    expected = [
        None if any(row[place] is None for place in places) else PLAIN[call](*row)
        for row in rows[3:]
    ]
    found, failures = evaluate(call, columns, len(expected))
    found.validate(full=True)
    assert not failures
    assert found.to_pylist() == expected


def test_like_with_a_column_of_patterns_is_like_with_each_of_them() -> None:
    rng = random.Random(8)
    strings = ["".join(rng.choices(ALPHABET[:12], k=rng.randint(0, 4))) for _ in range(300)]
    patterns = [rng.choice(["a%", "%b", "_", "%a_", "a\\%", "", None, "%é%"]) for _ in strings]
    together = values(term("like", "@s", "@p"), s=strings, p=patterns)
    alone = [
        None if pattern is None else folded(term("like", string, pattern)).as_py()
        for string, pattern in zip(strings, patterns, strict=True)
    ]
    assert together == alone
    assert {True, False, None} <= set(together)


def test_a_bad_pattern_fails_its_rows_alone() -> None:
    columns = {"s": pa.array(["ab", "ab", None]), "p": pa.array(["a%", "a\\b", "a\\b"])}
    found, failures = evaluate(term("like", "@s", "@p"), columns, 3)
    assert found.to_pylist() == [True, None, None]
    assert [failure.rows.tolist() for failure in failures] == [[1]]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (term("upper", "straße"), "STRASSE"),
        (term("initcap", "ΑΣ ab-cd  ß"), "Ας Ab-cd  Ss"),
        (term("concat"), ""),
        (term("concat_ws", "-", "a", None, "b"), "a-b"),
        (term("concat_ws", "-", None), ""),
        (term("concat", "a", None), None),
        (term("substr", b"abc", -2), b"bc"),
        (term("chr", 321), "A"),
        (term("hex", -1), "F" * 16),
        (term("levenshtein", "kitten", "sitting"), 3),
        (term("levenshtein", "kitten", "sitting", 2), -1),
        (term("locate", None, "a", None), 0),
        (term("regexp_replace", "baac", "a*", "-"), "-b--c-"),
        (term("regexp_count", "baac", "a*"), 4),
        (term("regexp_instr", "a😀b", "b"), 3),
        (term("regexp_substr", "abc", "x*"), None),
        (term("regexp_extract", "a", "(a)|(b)", 2), ""),
        (term("ilike", "STRASSE", "str_sse"), True),
        (term("like", "a%c", "a/%c", "/"), True),
        (term("is_valid_utf8", b"\xff"), False),
        (term("split_part", "a.b", ".", -1), "b"),
        (term("find_in_set", "", "a,,b"), 2),
        (term("soundex", "Tymczak"), "T522"),
        (term("base64", b"a" * 58), "YWFh" * 19 + "\r\nYQ=="),
        (term("translate", "abc", "ab", "1"), "1c"),
        (term("overlay", "Spark SQL", "_", 6), "Spark_SQL"),
    ],
    ids=named,
)
def test_constants_fold(call: Call, expected: Any) -> None:
    assert folded(call).as_py() == expected


def test_constants_stay_constants() -> None:
    found, failures = evaluate(term("split_part", "a", ".", 0), {}, 3)
    assert found.to_pylist() == [None] * 3
    assert [failure.rows.tolist() for failure in failures] == [[0, 1, 2]]


@pytest.mark.parametrize(
    "call",
    [
        term("regexp_like", "a", "@s"),
        term("regexp_like", "a", "(?=a)"),
        term("regexp_like", "a", "a" * (MAX_REGEX_LENGTH + 1)),
        term("regexp_replace", "a", "a", "b", 0),
        term("regexp_replace", "a", "a", "b", "@n"),
        term("like", "a", "a", ""),
        term("like", "a", "a", "ab"),
        term("like", "a", "a", "@s"),
        term("base64", 5),
        term("soundex", True),
        term("overlay", b"a", "b", 1),
        term("repeat", "a", True),
        term("lower", pa.scalar(["a"])),
        term("concat", pa.scalar(["a"]), pa.scalar(["b"])),
    ],
    ids=named,
)
def test_what_has_no_meaning(call: Call) -> None:
    columns = {"s": pa.array(["a"]), "n": pa.array([1], pa.int32())}
    with pytest.raises(MeaninglessError):
        evaluate(call, columns, 1)


@pytest.mark.parametrize(
    "call",
    [
        term("repeat", "@s", 2**31 - 1),
        term("space", "@n"),
        term("lpad", "@s", "@n"),
        term("rpad", "@s", 2**30, "ab"),
        term("replace", "@l", "a", "@l"),
        term("replace", "@l", "a", "b" * 2000),
        term("replace", "@l", "@s", "b" * 2000),
        term("concat", "@m", "@m"),
        term("concat_ws", ",", "@m", "@m"),
        term("overlay", "@m", "@m", 5),
        term("regexp_replace", "@l", "", "b" * 2000),
        term("hex", "@m"),
        term("base64", "@m"),
        term("levenshtein", "@m", "@m"),
        term("like", "@s", "_%a" * 400),
    ],
    ids=named,
)
def test_results_have_limits(call: Call) -> None:
    columns = {
        "s": pa.array(["a", None]),
        "n": pa.array([2**31 - 1, None], pa.int32()),
        "l": pa.array(["a" * 2000, None]),
        "m": pa.array(["a" * MAX_VALUE_BYTES, None]),
    }
    found, failures = evaluate(call, columns, 2)
    assert found.to_pylist()[0] is None
    assert 0 in np.concatenate([failure.rows for failure in failures])


@pytest.mark.parametrize(
    "call",
    [
        term("repeat", "@s", MAX_VALUE_BYTES),
        term("replace", "@s", "@s", "b" * MAX_VALUE_BYTES),
        term("lpad", "@s", MAX_VALUE_BYTES),
    ],
    ids=named,
)
def test_columns_have_limits(call: Call) -> None:
    fit, count = MAX_COLUMN_BYTES // MAX_VALUE_BYTES, 80
    found, failures = evaluate(call, {"s": pa.array(["a"] * count)}, count)
    assert found.is_valid().to_pylist() == [True] * fit + [False] * (count - fit)
    assert [failure.rows.tolist() for failure in failures] == [list(range(fit, count))]


def test_many_distinct_large_results_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts_module, "MAX_COLUMN_BYTES", 1000)
    calls = []

    def to_base64(own: bytes) -> str:
        calls.append(own)
        return "x" * 300

    monkeypatch.setattr("bittern.terms.strings.encodings._to_base64", to_base64)
    column = pa.array([str(number) for number in range(100)])
    found, failures = evaluate(term("base64", "@s"), {"s": column}, 100)
    assert found.is_valid().to_pylist() == [True] * 3 + [False] * 97
    assert len(calls) == 4
    assert {row for failure in failures for row in failure.rows.tolist()} == set(range(3, 100))


def test_no_rows_and_only_nulls() -> None:
    others = [term("initcap", "@s"), term("regexp_count", "@s", "a"), term("like", "@s", "@t")]
    for call in [*PLAIN, *others]:
        for count in (0, 2):
            columns = {name: pa.nulls(count) for name in "stn"}
            found, failures = evaluate(call, columns, count)
            assert found.to_pylist() == [None] * count
            assert not failures


def test_characters_of_arrays_that_begin_late() -> None:
    array = pa.array(["😀", "aé", "", None, "bcd"]).slice(1)
    characters = Characters(array)
    assert characters.counts.tolist() == [2, 0, 0, 3]
    zero, one = np.zeros(4, dtype=np.int64), np.ones(4, dtype=np.int64)
    assert characters.cut(one, 9 * one).to_pylist() == ["é", "", None, "cd"]
    assert characters.cut(zero - 5, one).to_pylist() == ["a", "", None, "b"]
