"""Safetensors written row by row: the header first, since every shape is known, then the numbers in its order.

Files are split like those of Hugging Face (`model-00001-of-00003.safetensors` with an index), so what reads
theirs reads these.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path

import torch

from seesaw_runner.checkpoints.safetensors_header import SIZES
from seesaw_runner.weights.blocks import TORCH

#: Bytes of one file, as in transformers. A larger tensor gets a file of its own.
SHARD_BYTES = 5 * 10**9


class ShardWriter:
    """tensors: (name, shape, type) in the order in which their rows are given to `write`. stem: `model` or
    `adapter_model`. about: texts for the files' metadata.
    """

    def __init__(
        self,
        folder: Path,
        tensors: Iterable[tuple[str, tuple[int, ...], str]],
        stem: str = "model",
        limit: int = SHARD_BYTES,
        about: dict[str, str] | None = None,
    ):
        self.folder, self.about = folder, about or {}
        shards: list[list[tuple[str, tuple[int, ...], str]]] = []
        room = -1
        for name, shape, dtype in tensors:
            size = _bytes(shape, dtype)
            if size > room:
                shards.append([])
                room = limit
            shards[-1].append((name, shape, dtype))
            room -= size
        count = len(shards)
        names = (
            [f"{stem}.safetensors"]
            if count == 1
            else [f"{stem}-{k + 1:05d}-of-{count:05d}.safetensors" for k in range(count)]
        )
        self.bytes = sum(_bytes(s, d) for shard in shards for _, s, d in shard)
        self._files = list(zip(names, shards, strict=True))
        self._plan = [
            (file, name, dtype, _bytes(shape, dtype)) for file, shard in self._files for name, shape, dtype in shard
        ]
        self._at, self._left, self._handle, self._open = -1, 0, None, ""
        if count > 1:
            parameters = sum(_bytes(s, d) // SIZES[d] for shard in shards for _, s, d in shard)
            index = {
                "metadata": {"total_parameters": parameters, "total_size": self.bytes},
                "weight_map": {name: file for file, name, _, _ in self._plan},
            }
            (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind, *_) -> None:
        if self._handle is not None:
            self._handle.close()
        if kind is None and (self._left or self._at + 1 < len(self._plan)):
            raise AssertionError("not every tensor was written")

    def write(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        """The next rows of a tensor, rounded to its type; gives them as they are stored."""
        if self._left == 0:
            self._next()
        file, expected, dtype, _ = self._plan[self._at]
        if name != expected:
            raise AssertionError(f"{name} was written where {expected} belongs")
        stored = rows.to(TORCH[dtype]).contiguous()
        data = stored.view(torch.uint8).numpy().data if stored.numel() else b""
        self._handle.write(data)
        self._left -= len(data) if isinstance(data, bytes) else data.nbytes
        if self._left < 0:
            raise AssertionError(f"{name} got more rows than it has")
        return stored

    def _next(self) -> None:
        self._at += 1
        file, _, _, self._left = self._plan[self._at]
        if file == self._open:
            return
        if self._handle is not None:
            self._handle.close()
        self._handle, self._open = open(self.folder / file, "wb"), file
        header, at = {"__metadata__": {"format": "pt", **self.about}}, 0
        for name, shape, dtype in next(shard for other, shard in self._files if other == file):
            size = _bytes(shape, dtype)
            header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        self._handle.write(struct.pack("<Q", len(text)) + text)


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    size = SIZES[dtype]
    for side in shape:
        size *= side
    return size
