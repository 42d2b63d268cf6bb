"""The header of a safetensors file, every field checked before it is used. Nothing but the header is read."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import NamedTuple

MAX_HEADER = 100_000_000  # the limit of the safetensors library
SIZES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
    "C64": 8,
}
TRAINABLE = ("F64", "F32", "F16", "BF16")
_LFS = re.compile(rb"version https://git-lfs[^\n]*\n(?:[^\n]*\n)*?size (\d+)")


class Tensor(NamedTuple):
    """`begin` and `end` are offsets in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def count(self) -> int:
        product = 1
        for size in self.shape:
            product *= size
        return product


class HeaderError(ValueError):
    """The file is not a whole safetensors file; the text says why and begins with the file's name. `cut`: it
    may still be being written.
    """

    def __init__(self, message: str, cut: bool = False) -> None:
        super().__init__(message)
        self.cut = cut


def lfs_size(start: bytes) -> int | None:
    """The size of the real file if these first bytes are a Git LFS pointer."""
    match = _LFS.match(start)
    return int(match.group(1)) if match else None


def read_header(path: Path) -> dict[str, Tensor]:
    """All tensors of a file. HeaderError says what is wrong with it."""
    name, size = path.name, os.stat(path).st_size
    with open(path, "rb") as file:
        start = file.read(8)
        pointer = lfs_size(start + file.read(300)) if start.startswith(b"version ") else None
        if pointer is not None:
            raise HeaderError(
                f"{name} is a Git LFS pointer, the real file ({pointer} bytes) is not downloaded; run `git lfs pull`"
            )
        if len(start) < 8:
            raise HeaderError(
                f"{name} is shorter ({len(start)} bytes) than the 8-byte length field of a safetensors file", cut=True
            )
        (length,) = struct.unpack("<Q", start)
        if length > MAX_HEADER:
            what = (
                " (it looks like a pickle file under another name)"
                if start[:1] == b"\x80" or start[:2] == b"PK"
                else ""
            )
            raise HeaderError(f"{name} is no safetensors file: it claims a header of {length} bytes{what}")
        if 8 + length > size:
            raise HeaderError(f"{name} has {size} bytes, fewer than its header needs ({8 + length})", cut=True)
        file.seek(8)
        return _tensors(name, file.read(length), 8 + length, size)


def _tensors(name: str, header: bytes, base: int, size: int) -> dict[str, Tensor]:
    try:
        entries = json.loads(header.decode())
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise HeaderError(f"{name} has a header that is no JSON object")
    entries.pop("__metadata__", None)
    tensors = {key: _tensor(name, key, entry, base) for key, entry in entries.items()}
    end, last = base, ""
    for key, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin < end:
            raise HeaderError(f"{name}: the tensors {last} and {key} overlap")
        if tensor.begin > end:
            raise HeaderError(
                f"{name}: there are {tensor.begin - end} bytes before the tensor {key} that belong to no tensor"
            )
        end, last = tensor.end, key
    if size < end:
        raise HeaderError(f"{name} has {size} of {end} bytes", cut=True)
    if size > end:
        raise HeaderError(f"{name} has {size} bytes, {size - end} more than its header describes")
    return tensors


def _tensor(name: str, key: str, entry: object, base: int) -> Tensor:
    if not isinstance(entry, dict):
        raise HeaderError(f"{name}: the entry of the tensor {key} is no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if dtype not in SIZES:
        raise HeaderError(f"{name}: the tensor {key} has the unknown type {dtype!r}")
    if not _sizes(shape) or not _sizes(offsets) or len(offsets) != 2:
        raise HeaderError(f"{name}: the shape or the offsets of the tensor {key} are not lists of whole numbers ≥ 0")
    begin, end = offsets
    tensor = Tensor(dtype, tuple(shape), base + begin, base + end)
    if tensor.count * SIZES[dtype] != end - begin:
        raise HeaderError(
            f"{name}: the tensor {key} of shape {list(shape)} needs {tensor.count * SIZES[dtype]} bytes and has "
            f"{end - begin}"
        )
    return tensor


def _sizes(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
    )
