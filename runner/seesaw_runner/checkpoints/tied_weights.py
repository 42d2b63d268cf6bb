"""Does a checkpoint have an output head, or is it the input embedding? The config decides; contradictions are shown."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from seesaw_runner.checkpoints.safetensors_header import Tensor

if TYPE_CHECKING:
    from seesaw_runner.checkpoints.files import Checkpoint

_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_COMPARED = 1 << 20  # bytes: enough to see a difference, and quick for a large vocabulary


def check_tied(checkpoint: Checkpoint) -> None:
    """Adds a finding when head and config do not agree. Only for language models with the usual names."""
    architectures = checkpoint.config.get("architectures") or [""]
    embedding = next((name for name in checkpoint.tensors if name.endswith(_EMBEDDING)), None)
    if embedding is None or not str(architectures[0]).endswith("ForCausalLM"):
        return
    head = next((name for name in checkpoint.tensors if name.endswith(_HEAD)), None)
    tied = checkpoint.config.get("tie_word_embeddings")
    if head is None and tied is False:
        checkpoint.error(
            "lm_head.weight is missing, and config.json says that it is not tied to the embedding",
            "Get the weights again; a new head would be random",
        )
    elif head is None and tied is None:
        checkpoint.warn(
            "lm_head.weight is missing and config.json does not say tie_word_embeddings: the default of the "
            "model family decides",
            "Write tie_word_embeddings into config.json",
        )
    elif head is not None and tied is True:
        difference = _largest_difference(checkpoint, head, embedding)
        if difference:
            checkpoint.warn(
                "config.json ties lm_head.weight to the embedding, but the file holds another head (largest "
                f"difference {difference:.6g})",
                "Set tie_word_embeddings to false if the head was trained on its own; as it is, the file's "
                "head is not used",
            )


def _largest_difference(checkpoint: Checkpoint, a: str, b: str) -> float:
    first, second = checkpoint.tensors[a], checkpoint.tensors[b]
    if first.shape != second.shape or first.dtype != second.dtype:
        return float("inf")
    one, other = _start(checkpoint, a, first), _start(checkpoint, b, second)
    return (
        0.0
        if one == other
        else max(
            (abs(x - y) for x, y in zip(_numbers(one, first.dtype), _numbers(other, first.dtype), strict=True)),
            default=0.0,
        )
    )


def _start(checkpoint: Checkpoint, name: str, tensor: Tensor) -> bytes:
    with open(checkpoint.folder / checkpoint.files[name], "rb") as file:
        file.seek(tensor.begin)
        return file.read(min(tensor.end - tensor.begin, _COMPARED))


def _numbers(data: bytes, dtype: str) -> list[float]:
    if dtype == "BF16":
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        return list(
            struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves)))
        )
    code, size = {"F16": ("e", 2), "F64": ("d", 8)}.get(dtype, ("f", 4))
    return list(struct.unpack(f"<{len(data) // size}{code}", data))
