"""Numbers of a tensor as float32, some rows at a time, by seek and read: a file is never mapped or loaded whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from seesaw_runner.checkpoints.safetensors_header import SIZES, Tensor

#: Elements that are read of one tensor at once: 2 MiB as float32, small enough to stay near the processor.
BLOCK = 512 * 1024
TORCH = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def grid(shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) that a tensor is read as: its last dimension across; a vector stands upright."""
    if len(shape) < 2:
        return (shape[0] if shape else 1), 1
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows, shape[-1]


def row_blocks(shape: tuple[int, ...], elements: int | None = None) -> Iterator[tuple[int, int]]:
    """Row ranges of at most so many elements (default BLOCK), one row at least."""
    rows, columns = grid(shape)
    step = max(1, (elements or BLOCK) // max(1, columns))
    for begin in range(0, rows, step):
        yield begin, min(rows, begin + step)


def read_rows(path: Path, tensor: Tensor, begin: int, end: int) -> torch.Tensor:
    """Rows begin … end of a tensor as a new float32 matrix."""
    _, columns = grid(tensor.shape)
    size = SIZES[tensor.dtype] * columns
    data = bytearray((end - begin) * size)
    with open(path, "rb", buffering=0) as file:
        file.seek(tensor.begin + begin * size)
        view, got = memoryview(data), 0
        while got < len(data):
            count = file.readinto(view[got:])
            if not count:
                raise OSError(f"{path} ended in the middle of a tensor; is it still being written?")
            got += count
    if not data:
        return torch.zeros(end - begin, columns)
    return torch.frombuffer(data, dtype=TORCH[tensor.dtype]).view(end - begin, columns).float()
