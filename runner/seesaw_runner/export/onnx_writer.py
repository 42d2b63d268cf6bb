"""Writes ONNX graphs without the `onnx` package: the few messages of onnx.proto that a scoring graph needs.

torch's own exporter needs onnxscript and 35 s for the sample's model, it merges equal weights (so the graph would fit
one checkpoint only) and transposes others. A graph written by hand takes milliseconds and names every tensor as the
checkpoint does. Field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

FLOAT, INT32, INT64 = 1, 6, 7
_INTS, _INT, _FLOAT, _STRING = 7, 2, 1, 3
OPSET, IR_VERSION = 17, 8


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: int | float | str | Sequence[int]) -> bytes:
    head = _bytes(1, name)
    if isinstance(value, str):
        return head + _bytes(4, value) + _number(20, _STRING)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _INT)
    return head + b"".join(_number(8, item) for item in value) + _number(20, _INTS)


def _value_info(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = b"".join(_bytes(1, _bytes(2, d) if isinstance(d, str) else _number(1, d)) for d in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, dims)))


class Graph:
    """Nodes in the order of their calls; a value is named by the text that `node` returns."""

    def __init__(self, name: str):
        self.name = name
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._count = 0

    def input(self, name: str, kind: int, shape: Sequence[int | str]) -> str:
        self._inputs.append(_value_info(name, kind, shape))
        return name

    def output(self, name: str, value: str, kind: int, shape: Sequence[int | str]) -> None:
        self._add("Identity", [value], [name], {})
        self._outputs.append(_value_info(name, kind, shape))

    def node(self, kind: str, *inputs: str, **attributes: int | float | str | Sequence[int]) -> str:
        """One node with one result."""
        return self.nodes(kind, *inputs, results=1, **attributes)[0]

    def nodes(self, kind: str, *inputs: str, results: int, **attributes) -> list[str]:
        names = []
        for _ in range(results):
            self._count += 1
            names.append(f"{kind.lower()}_{self._count}")
        self._add(kind, list(inputs), names, attributes)
        return names

    def ints(self, *values: int) -> str:
        """A constant int64 vector."""
        return self._constant(INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))

    def integer(self, value: int) -> str:
        return self._constant(INT64, [], struct.pack("<q", value))

    def floats(self, values: Sequence[float]) -> str:
        """A constant float32 vector."""
        return self._constant(FLOAT, [len(values)], struct.pack(f"<{len(values)}f", *values))

    def scalar(self, value: float) -> str:
        return self._constant(FLOAT, [], struct.pack("<f", value))

    def _constant(self, kind: int, shape: list[int], raw: bytes) -> str:
        body = b"".join(_number(1, size) for size in shape) + _number(2, kind) + _bytes(9, raw)
        for name, known in self._constants.items():
            if known == body:
                return name
        name = f"constant_{len(self._constants)}"
        self._constants[name] = body
        return name

    def _add(self, kind: str, inputs: list[str], outputs: list[str], attributes: dict) -> None:
        self._nodes.append(
            b"".join(_bytes(1, name) for name in inputs)
            + b"".join(_bytes(2, name) for name in outputs)
            + _bytes(4, kind)
            + b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        )

    def to_bytes(self) -> bytes:
        """The whole ModelProto."""
        graph = (
            b"".join(_bytes(1, node) for node in self._nodes)
            + _bytes(2, self.name)
            + b"".join(_bytes(5, body + _bytes(8, name)) for name, body in self._constants.items())
            + b"".join(_bytes(11, value) for value in self._inputs)
            + b"".join(_bytes(12, value) for value in self._outputs)
        )
        return _number(1, IR_VERSION) + _bytes(2, "seesaw") + _bytes(7, graph) + _bytes(8, _number(2, OPSET))
