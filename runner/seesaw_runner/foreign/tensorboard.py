"""Scalars of TensorBoard event files, without tensorflow: TFRecord framing with its checksums, and the few protobuf
fields that a scalar needs. Standard library only.

A record is `u64 length, u32 crc(length), bytes, u32 crc(bytes)`, little-endian, crc = masked CRC-32C (tensorflow
`core/lib/io/record_writer.cc`). Fields: Event {1 wall_time, 2 step, 5 summary}, Summary {1 value}, Value {1 tag,
2 simple_value, 8 tensor}, TensorProto {1 dtype, 4 content, 5 float_val, 6 double_val} (tensorboard's .proto files).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

#: A scalar event is small; what is larger (images, histograms, graphs) is stepped over, unread.
MAX_SCALAR = 1 << 16
MAX_RECORD = 1 << 31


@dataclass(frozen=True)
class Scalar:
    step: int
    tag: str
    value: float


class EventFeed:
    """Bytes of one event file in any portions → scalars. `problem`: a sentence once a record was damaged."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0
        self._stopped = False
        self.problem: str | None = None

    def feed(self, data: bytes) -> list[Scalar]:
        """Scalars of the records that are whole now; an unfinished one waits for more bytes."""
        if self._stopped:
            return []
        out: list[Scalar] = []
        data = self._rest + data
        at = min(self._skip, len(data))
        self._skip -= at
        while not self._skip and len(data) - at >= 12:
            head = data[at : at + 8]
            (length,) = struct.unpack("<Q", head)
            if length > MAX_RECORD or _masked(head) != struct.unpack_from("<I", data, at + 8)[0]:
                # Without a length there is no next record to go on with.
                self.problem = "a record's length is damaged; what follows it cannot be read"
                self._stopped, self._rest = True, b""
                return out
            whole = 12 + length + 4
            if length > MAX_SCALAR:
                here = min(whole, len(data) - at)
                self._skip, at = whole - here, at + here
                continue
            if len(data) - at < whole:
                break
            body = data[at + 12 : at + 12 + length]
            if _masked(body) == struct.unpack_from("<I", data, at + 12 + length)[0]:
                try:
                    out += _scalars(body)
                except (ValueError, IndexError, struct.error):
                    self.problem = "a record is no TensorBoard event and was left out"
            else:
                self.problem = "a damaged record (its checksum is wrong) was left out"
            at += whole
        self._rest = data[at:]
        return out


def _scalars(event: bytes) -> list[Scalar]:
    step, summary = 0, []
    for number, value in _fields(event):
        if number == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >> 63 else value
        elif number == 5 and isinstance(value, bytes):
            summary.append(value)
    out = []
    for body in summary:
        for number, value in _fields(body):
            if number == 1 and isinstance(value, bytes):
                tag, scalar = _value(value)
                if tag and scalar is not None and step >= 0:
                    out.append(Scalar(step, tag, scalar))
    return out


def _value(body: bytes) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, value in _fields(body):
        if number == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == 2 and isinstance(value, float):
            scalar = value
        elif number == 8 and isinstance(value, bytes):
            scalar = _tensor(value)
    return tag, scalar


def _tensor(body: bytes) -> float | None:
    """The one number of a scalar tensor (float or double), as newer writers store it."""
    dtype, content, numbers = 0, b"", []
    for number, value in _fields(body):
        if number == 1 and isinstance(value, int):
            dtype = value
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number in (5, 6):
            size, code = (4, "<f") if number == 5 else (8, "<d")
            if isinstance(value, float):
                numbers.append(value)
            elif isinstance(value, bytes) and len(value) == size:
                numbers.append(struct.unpack(code, value)[0])
    if dtype == 1 and len(content) == 4:
        return struct.unpack("<f", content)[0]
    if dtype == 2 and len(content) == 8:
        return struct.unpack("<d", content)[0]
    return numbers[0] if len(numbers) == 1 and dtype in (1, 2) else None


def _fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """(field number, value) of a protobuf message. ValueError, IndexError or struct.error for anything else."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 1:
            yield key >> 3, struct.unpack_from("<d", data, at)[0]
            at += 8
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is longer than its message")
            yield key >> 3, data[at : at + length]
            at += length
        elif kind == 5:
            yield key >> 3, struct.unpack_from("<f", data, at)[0]
            at += 4
        else:
            raise ValueError(f"wire type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def _table() -> list[int]:
    """CRC-32C, Castagnoli's polynomial reversed (RFC 3720, appendix B.4)."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
