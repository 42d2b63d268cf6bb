"""Proof that weights did not move: one digest over their bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch


def digest_of(parameters: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 over the bytes of all tensors, in the order given. Any changed bit changes it; −0.0 and 0.0 differ."""
    digest = hashlib.sha256()
    for tensor in parameters.values():
        digest.update(tensor.detach().to("cpu").contiguous().view(torch.uint8).reshape(-1).numpy().data)
    return digest.hexdigest()
