"""Digests and check digits of strings and bytes: md5, sha1, sha2, crc32, luhn_check.

::

    md5('a')         '0cc175b9c0f1b6a831c399e269772661'
    sha2('a', 256)   'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'
    crc32('a')       3904355907
    luhn_check('79927398713')   TRUE: the last digit checks the others

O(bytes) of each distinct value.
"""

from __future__ import annotations

import hashlib
import zlib
from functools import partial

import pyarrow as pa

from bittern.terms.columns import meaningless
from bittern.terms.nodes import Call
from bittern.terms.scope import FunctionTable, Scope, Value
from bittern.terms.strings.texts import constants_once, each, number, text

TABLE = FunctionTable()
_ALGORITHMS = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}


def _bytes(scope: Scope, call: Call, value: Value) -> Value:
    """A string or BINARY as bytes."""
    types = pa.types
    if types.is_binary(value.type):
        return value
    if not (types.is_string(value.type) or types.is_null(value.type)):
        raise meaningless(call.function, value.type)
    return text(scope, value).cast(pa.binary())


def _digest(algorithm: str, value: bytes) -> str:
    return hashlib.new(algorithm, value, usedforsecurity=False).hexdigest()


@constants_once
def _hash(scope: Scope, call: Call, value: Value) -> Value:
    algorithm = "md5" if call.function == "md5" else "sha1"
    return each(scope, pa.string(), partial(_digest, algorithm), _bytes(scope, call, value))


TABLE.add("md5", "sha", "sha1", least=1)(_hash)


@TABLE.add("sha2", least=2)
@constants_once
def _sha2(scope: Scope, call: Call, value: Value, bits: Value) -> Value:
    """NULL for any other number of bits."""
    return each(scope, pa.string(), _sha2_of, _bytes(scope, call, value), number(scope, bits))


def _sha2_of(value: bytes, bits: int) -> str | None:
    return _digest(_ALGORITHMS[bits], value) if bits in _ALGORITHMS else None


@TABLE.add("crc32", least=1)
@constants_once
def _crc32(scope: Scope, call: Call, value: Value) -> Value:
    return each(scope, pa.int64(), zlib.crc32, _bytes(scope, call, value))


@TABLE.add("luhn_check", least=1)
@constants_once
def _luhn_check(scope: Scope, _call: Call, value: Value) -> Value:
    return each(scope, pa.bool_(), _is_luhn, text(scope, value))


def _is_luhn(value: str) -> bool:
    """Every second digit from the end is doubled, and the digits of all have to end in 0."""
    if not value.isdecimal() or max(value) > "\uffff":  # digits beyond are none to Spark
        return False
    digits = [int(own) for own in reversed(value)]
    doubled = (2 * own for own in digits[1::2])
    return (sum(digits[::2]) + sum(own // 10 + own % 10 for own in doubled)) % 10 == 0
