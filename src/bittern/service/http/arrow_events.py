"""Events as an Arrow IPC stream, from strangers.

What Arrow reads it trusts in places: so each message is looked at before it is read, and all values
are checked before they are matched. Compressed buffers are refused, since a few bytes of them may
become any number; so is any number of rows that take no bytes.

A message's metadata is a flatbuffer. Of it only this is read here::

    Message      field 1: the kind of header (3: a record batch)     field 2: the header
    RecordBatch  field 0: length                                     field 3: compression
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.ipc

from bittern.errors import EventError

_RECORD_BATCH = 3
_MOST_ROWS = 2_000_000


def read_arrow(body: bytes) -> pa.Table:
    """The events of a stream; ``EventError`` says what is wrong with it."""
    try:
        _check_messages(body)
        with pa.ipc.open_stream(pa.BufferReader(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, IndexError, struct.error) as wrong:
        raise EventError(f"this is not a stream of Arrow record batches: {wrong!s:.300}") from None
    if table.num_rows > _MOST_ROWS:
        raise EventError(f"send at most {_MOST_ROWS:,} events at a time")
    return table


def _check_messages(body: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    rows = 0
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        metadata = message.metadata.to_pybytes()
        kind, header = _header(metadata)
        if kind != _RECORD_BATCH:
            continue
        if _field(metadata, header, 3) is not None:
            raise EventError("send the stream without compression of its buffers")
        length = _field(metadata, header, 0)
        rows += 0 if length is None else struct.unpack_from("<q", metadata, length)[0]
        if not 0 <= rows <= _MOST_ROWS:
            raise EventError(f"send at most {_MOST_ROWS:,} events at a time")


def _header(metadata: bytes) -> tuple[int, int]:
    """The kind of a message's header, and where it begins."""
    root = struct.unpack_from("<I", metadata, 0)[0]
    kind, header = _field(metadata, root, 1), _field(metadata, root, 2)
    if kind is None or header is None:
        return 0, 0
    return metadata[kind], header + struct.unpack_from("<I", metadata, header)[0]


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table is; None if the table does not have it."""
    entries = table - struct.unpack_from("<i", metadata, table)[0]
    if entries < 0:
        raise ValueError("its metadata is damaged")
    if 4 + 2 * number >= struct.unpack_from("<H", metadata, entries)[0]:
        return None
    place: int = struct.unpack_from("<H", metadata, entries + 4 + 2 * number)[0]
    return table + place if place else None
