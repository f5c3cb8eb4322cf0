"""Casts: Spark's values, types and failures, between all types that it casts between."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from beside_spark import compare, frame_of, meaningless, table_of, values_of
from bittern.terms.types import TIMESTAMP, TIMESTAMP_NTZ

pytestmark = pytest.mark.spark

WHOLE = ("tinyint", "smallint", "int", "bigint")
DECIMALS = ("decimal(10, 0)", "decimal(3, 1)", "decimal(38, 0)", "decimal(38, 18)", "decimal(4, 4)")
NUMBERS = (*WHOLE, "float", "double", *DECIMALS)
NINES = "9" * 38
TABLE = table_of(
    {
        "t": values_of(pa.int8(), "0 1 -1 127 -128 ."),
        "i": values_of(pa.int32(), "0 128 -129 32768 2147483647 -2147483648 . 12345"),
        "l": values_of(
            pa.int64(),
            "0 2147483648 -2147483649 9223372036854775807 -9223372036854775808 . 9223372036854 "
            "9223372036855 -9223372036855 9007199254740993 16777217 1000000000000000000",
        ),
        # Without numbers that Java before 19 prints with more digits than later ones.
        "f": values_of(
            pa.float32(),
            "0.0 -0.0 1.5 nan inf -inf . 0.1 1e10 16777216 1e-45 3e-45 3.4028235e38 127.9 -128.9 "
            "3e9 0.001 0.0009 9999999 1e7 123456.79",
        ),
        "d": values_of(
            pa.float64(),
            "0.0 -0.0 1.5 -2.5 nan inf -inf . 0.1 1e10 1e7 9999999 0.001 0.00099 1e21 4.9e-324 "
            "1.7976931348623157e308 127.9 -128.9 128 2147483647.9 2147483648 -2147483648.9 9.2e18 "
            "9.223372036854776e18 1e19 -9.223372036854776e18 -1e19 0.25 99.95 99.94999 1.005 "
            "12345678.9 100 1e-300 123456789012345678 3.4028235677973366e38 1.1234567 -1.1234567 "
            "1e17",
        ),
        "c": values_of(
            pa.decimal128(10, 2),
            "1.25 -1.25 0 99999999.99 -99999999.99 . 127.99 128 -128.99 0.05 99.95 99.94 0.5",
        ),
        "w": values_of(
            pa.decimal128(38, 18),
            "1.1234567 -1.1234567 99999999999999999999.999999999999999999 . 0 0.000000000000000001 "
            "9223372036854775807.9 9223372036854775808 0.1 16777217.0000001 16777217 "
            "16777216.9999999 0.123456789012345678 -16777217.0000001",
        ),
        "z": values_of(
            pa.decimal128(38, 0),
            f"3 {NINES} -{NINES} . 100000000000000000000 9223372036854775808",
        ),
        "b": (pa.bool_(), [True, False, None]),
        "a": values_of(
            pa.int32(),
            "0 -1 11016 -719162 -719528 -719529 2932896 2932897 . 2147483647 -2147483648",
        ),
        "m": values_of(
            pa.int64(),
            "0 -1 1 500000 951782400000000 -62135596800000000 -62167219200000001 "
            "253402300799999999 253402300800000000 9223372036854775807 -9223372036854775808 . "
            "1577836800123456 127000000 128000000 -129000000 10000 -62167219200000000",
        ),
        "y": (pa.binary(), [b"", b"abc", "Ünï😀".encode(), None, b"12"]),
    },
    180,
)
TABLE = (
    TABLE.set_column(TABLE.column_names.index("a"), "a", [TABLE["a"].chunk(0).view(pa.date32())])
    .append_column("n", [TABLE["m"].chunk(0).view(TIMESTAMP_NTZ)])
    .set_column(TABLE.column_names.index("m"), "m", [TABLE["m"].chunk(0).view(TIMESTAMP)])
)


def check(spark: Any, table: pa.Table, texts: list[str], **options: Any) -> None:
    wrong = compare(spark, table, texts, **options)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:60])


def test_numbers(spark: Any) -> None:
    texts = [f"CAST({x} AS {to})" for x in "tilfdcwzbm" for to in NUMBERS]
    texts += [f"TRY_CAST({x} AS {to})" for x in "tilfdcwzbm" for to in NUMBERS]
    check(spark, TABLE, texts)
    texts = [f"CAST({x} AS boolean)" for x in "tilfdcwzb"]
    texts += [f"CAST({x} AS timestamp)" for x in "tilfdcwz"]
    texts += [f"TRY_CAST({x} AS timestamp)" for x in "tilcwz"]
    check(spark, TABLE, texts)


def test_times_and_texts(spark: Any) -> None:
    texts = [f"CAST({x} AS {to})" for x in "amn" for to in ("date", "timestamp", "timestamp_ntz")]
    texts += [f"CAST({x} AS string)" for x in "tilfdcwzbamny"]
    texts += [f"CAST(CAST({x} AS string) AS binary)" for x in "ty"]
    check(spark, TABLE, texts, n_failing=0)


def test_functions(spark: Any) -> None:
    texts = [
        "int(i)",
        "tinyint(t)",
        "smallint(t)",
        "bigint(i)",
        "double(f)",
        "float(i)",
        "string(l)",
    ]
    texts += ["boolean(i)", "date(m)", "timestamp(n)", "decimal(c)", "binary('a')", "int(NULL)"]
    texts += [f"CAST(NULL AS {to})" for to in (*NUMBERS, "string", "boolean", "date", "binary")]
    check(spark, TABLE, texts, n_failing=0)


def test_strings_beside_other_types(spark: Any) -> None:
    """A string is cast to what it is compared with, or stands beside in CASE and arrays."""
    table = table_of(
        {
            "s": (pa.string(), ["0", "1", " 1 ", "1.5", "x", "", None, "true", "2020-01-01"]),
            "i": values_of(pa.int32(), "0 1 2 ."),
            "d": values_of(pa.float64(), "0 1.5 nan . 1"),
            "c": values_of(pa.decimal128(4, 2), "1 1.5 ."),
            "b": (pa.bool_(), [True, False, None]),
            "a": (pa.date32(), [18262, 0, None]),
            "y": (pa.binary(), [b"1", b"x", None]),
        },
        90,
    ).append_column("t", [pa.array([0, 1577836800000000] * 45).view(TIMESTAMP)])
    texts = [f"s {operator} {x}" for x in "idcbayt" for operator in ("=", "<", "!=")]
    texts += ["'1' <=> i", "i <=> '1'", "s <=> y", "NULL <=> s", "' 1 ' IN ('1', i)", "i <=> NULL"]
    texts += [f"{x} >= s" for x in "idcbayt"] + [f"s IN ('1', {x})" for x in "idcb"]
    texts += [
        "i BETWEEN s AND 5",
        "s BETWEEN 0 AND i",
    ]
    texts += ["CASE WHEN b THEN s ELSE i END", "if(b, d, s)", "coalesce(s, i)", "coalesce(i, s)"]
    texts += ["nvl(c, s)", "CASE WHEN b THEN '7' ELSE i END"]
    check(spark, table, texts)


SPACES = "\u0000\u0001\t\n \u007f"
TEXTS = [
    *[
        "",
        " ",
        "0",
        "5",
        "-5",
        "+5",
        " 5 ",
        "5.0",
        ".5",
        "5.",
        ".",
        "-",
        "+",
        "--5",
        "5L",
        "1_0",
        "0x10",
    ],
    *["127", "128", "-128", "-129", "2147483647", "2147483648", "-2147483648", "-2147483649"],
    *["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"],
    *["00000000000000000000000000007", "-0", "+0", "9" * 38, "9" * 39, "-" + "9" * 38, "1" * 400],
    *["1e2", "1E+2", "1e-2", "1e400", "-1e400", "1e-400", "1e", "e1", "1.5e3x", "1e99999999999"],
    *["1e40", "1e-40", "0e50", "1e2147483647", "1e-2147483647", "1e-99999999999", "0e99999999999"],
    *[
        "inf",
        "+Inf",
        "-INFINITY",
        "Infinity",
        "nan",
        "NaN",
        "+NaN",
        "-NaN",
        "+nan",
        " nan ",
        "in f",
    ],
    *["1.5d", "1.5F", "1d", "0x1p3", "0X1.8P-1d", "-0x.8p0", "0x1p99999", "0x1", "1.5df", "infd"],
    *[
        "1.25",
        "9.95",
        "9.94",
        "99.95",
        "-99.95",
        "99.949999999999999999999",
        "0.00005",
        "0.00004999",
    ],
    *[
        "12345678.123456789",
        "123456789.1234567891",
        "99999999999999999.5",
        "0.1",
        "1.1",
        "16777217",
    ],
    *[
        "3.4028235677973366e38",
        "1e39",
        "4.9e-324",
        "2e-324",
        "1.17549435e-38",
        "0.30000000000000004",
    ],
    *[
        "t",
        "T",
        "true",
        "TRUE",
        " yes ",
        "y",
        "1",
        "f",
        "no",
        "N",
        "01",
        "on",
        "tru",
        "falsee",
        "ye\u017f",
    ],
    *[
        "٣",
        "٣.\u0665",
        "\uff15",
        "\U0001d7d8",
        "5\u00a0",
        "\u00a05",
        "5\u2003",
        "é",
        "😀",
        "Ⅷ",
        "½",
    ],
    *[SPACES + "7" + SPACES, "7\u007f", "\u00017", "\u001f7", "\u00807", "7\x00"],
    None,
]
DATES = [
    *[
        "2020",
        "2020-1",
        "2020-1-2",
        "2020-01-02",
        "2020-01-02T",
        "2020-01-02Tabc",
        "2020-01-02 xyz",
    ],
    *[
        "2020-13-01",
        "2020-02-30",
        "2020-02-29",
        "2019-02-29",
        "1900-02-29",
        "2000-02-29",
        "0000-02-29",
    ],
    *[
        "202-01-01",
        "12345678-01-01",
        "+2020-01-01",
        "-2020-01-01",
        "-0001-12-31",
        "2020-",
        "2020-01-",
    ],
    *[" 2020-01-01 ", "2020/01/01", "2020-01-01-", "20200101", "epoch", "today", "2020-001-01"],
    *["1234567-01-01", "2020-01T", "2020T", "5881580-07-11", "5881580-07-12", "-5877641-06-23"],
    *[
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "2020-01-02T1",
        "2020-01-02T1:2",
        "2020-01-02T1:2:3",
    ],
    *["2020-01-02T1:2:3.", "2020-01-02T1:2:3.1", "2020-01-02T1:2:3.1234567", "2020-01-02T1:2:3Z"],
    *["2020-01-02T01:02:03.5Z", "2020-01-02 01:02:03.123456Z", "2020-01-02 01:02:03.1234567Z"],
    *[
        "2020-01-02 01:02:03.",
        "2020-01-02 01:02:03.Z",
        "2020-01-02 01:02:03Z",
        "2020-01-02 01:02:03.",
    ],
    *[
        "2020-01-02 01:02:03.12x",
        "2020-01-02 01:02:03x",
        "2020-01-02 01:02:0x",
        "2020-01-02_01:02:03",
    ],
    *[
        f"2020-01-02T1:2:3{zone}"
        for zone in ("+1", "+01", "+1:30", "+01:3", "+0130", "-18:00", "+18:01")
    ],
    *[
        f"2020-01-02T1:2:3{zone}"
        for zone in (" UTC", " Europe/Berlin", "CST", "EST", " GMT+1", "UT", "z")
    ],
    *[
        f"2020-07-02T1:2:3.5{zone}"
        for zone in ("Europe/Berlin", "UTC+01:00", " +01:00:30", "+", "GMT0")
    ],
    *[
        f"2020-07-02T1:2:3{zone}"
        for zone in ("+013015", "+13015", "UTC+1", "UTC+0130", "+1:2:3", "GMT-0")
    ],
    *[
        f"2020-07-02T1:2:3{zone}"
        for zone in ("BST", "PST", "IST", "+25", "+01:60", "europe/berlin", " Z ")
    ],
    *[
        f"2020-07-02T1:2:3{zone}"
        for zone in (" abc", "\u00a0UTC", "Factory", "Asia/Kathmandu", "Z5", "UTCZ")
    ],
    *[
        "2020-01-02T1:2Z",
        "2020-01-02T1:2+01:00",
        "2020-01-02Z",
        "2020-01-02T1Z",
        "2020-01-02T24:00:00",
    ],
    *[
        "2020-01-02T23:59:60",
        "2020-01-02T23:60:00",
        "2020-01-02t1:2:3",
        "123456-01-01",
        "2020-01-02  1:2:3",
    ],
    *["2020-03-29T02:30:00 Europe/Berlin", "2020-10-25T02:30:00 Europe/Berlin", "2020-01-02T:2:3"],
    *[
        "1800-01-01T00:00:00 Europe/Berlin",
        "-0001-01-02T1:2:3",
        "+2020-01-02T1:2:3",
        "2020-01-02T001:2:3",
    ],
    *[
        "294247-01-10 04:00:54.775807",
        "294247-01-10 04:00:54.775808",
        "-290308-12-21 19:59:05.224192",
    ],
    *[
        "-290308-12-21 19:59:05.224191",
        "290000-07-01T00:00:00 Europe/Berlin",
        "",
        " ",
        "x",
        "é",
        None,
    ],
    *[
        "20200-07-01T00:00:00 America/New_York",
        "-0100-07-01T00:00:00 Asia/Tokyo",
        "9999-07-01 1:2:3 CET",
    ],
    *[SPACES + "2020-01-02" + SPACES, "2020-01-02\u00a0", "\uff12020-01-02", "2020-01-02 1:2:3.٣"],
]


def test_from_texts(spark: Any) -> None:
    table = table_of({"s": (pa.string(), TEXTS)}, len(TEXTS))
    kinds = (*NUMBERS, "decimal(38, 38)", "decimal(12, 9)", "boolean", "binary", "string")
    texts = [f"{name}(s AS {kind})" for name in ("CAST", "TRY_CAST") for kind in kinds]
    check(spark, table, texts, n_failing=2)


def test_times_from_texts(spark: Any) -> None:
    table = table_of({"s": (pa.string(), DATES)}, len(DATES))
    kinds = ("date", "timestamp", "timestamp_ntz")
    texts = [f"{name}(s AS {kind})" for name in ("CAST", "TRY_CAST") for kind in kinds]
    check(spark, table, texts, n_failing=2)


MEANINGLESS = [
    ("an", ("int", "double", "decimal(10, 2)", "boolean", "binary")),
    ("m", ("boolean", "binary")),
    ("y", ("int", "double", "boolean", "date", "timestamp")),
    ("b", ("date", "timestamp", "timestamp_ntz", "binary")),
    ("idc", ("date", "timestamp_ntz", "binary")),
]


@pytest.mark.parametrize(
    "text", [f"CAST({x} AS {to})" for names, kinds in MEANINGLESS for x in names for to in kinds]
)
def test_meaningless(spark: Any, text: str) -> None:
    assert meaningless(text, TABLE)
    with pytest.raises(Exception, match="MISMATCH"):
        frame_of(spark, TABLE).selectExpr(text).schema  # noqa: B018  it is computed
