"""DARE's drop masks: decided by the seed, the model's content and the tensor's name, on any machine the same.

Neither the order of the models nor that of the tensors changes a mask: each model and tensor have their own generator.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch

#: Written into the report, so that a mask can be made again.
MASK_METHOD = (
    "Philox4x64, key = SHA-256(seed, weights hash, tensor name)[:16]; kept where the upper 32 bits < density * 2^32"
)


class DropMask:
    """Draws the mask of one tensor of one model, rows in order."""

    def __init__(self, seed: int, model: str, name: str, density: float):
        key = hashlib.sha256(f"{seed}\n{model}\n{name}".encode()).digest()[:16]
        self.generator = np.random.Philox(key=int.from_bytes(key, "little"))
        self.limit = round(density * 2**32)

    def next(self, shape: torch.Size) -> torch.Tensor:
        """True where the change is kept."""
        drawn = self.generator.random_raw(shape.numel()) >> np.uint64(32)
        return torch.from_numpy(drawn < np.uint64(self.limit)).view(shape)
