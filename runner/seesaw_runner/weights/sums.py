"""What is known of the change of a tensor, a module or a layer: sums that add up, and the numbers made of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch


@dataclass
class Sums:
    """`count` entries, `changed` of them unlike; `before`, `delta`: sums of squares; `earlier`, `dot`: the square of
    the update before this one and the product of the two, None where there is none to compare with.
    """

    count: int = 0
    changed: int = 0
    before: float = 0.0
    delta: float = 0.0
    earlier: float | None = None
    dot: float | None = None

    def add(self, other: Sums) -> None:
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, one if two is None else two if one is None else one + two)

    def numbers(self) -> dict[str, float | int | None]:
        """`relative` is ‖Δ‖/‖W‖, `cosine` that of this update and the one before; None where a norm is zero."""
        return {
            "count": self.count,
            "changed": self.changed / self.count if self.count else 0.0,
            "norm": math.sqrt(self.before),
            "delta_norm": math.sqrt(self.delta),
            "relative": math.sqrt(self.delta / self.before) if self.before > 0 else None,
            "cosine": cosine(self.dot, self.delta, self.earlier),
        }


def cosine(dot: float | None, one: float, other: float | None) -> float | None:
    """None where one of the two is zero or unknown."""
    if dot is None or not other or not one:
        return None
    return max(-1.0, min(1.0, dot / math.sqrt(one) / math.sqrt(other)))


def squares(values: torch.Tensor) -> float:
    """Sum of squares, in double precision."""
    return dot_product(values, values)


def dot_product(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.dot(one.reshape(-1).double(), other.reshape(-1).double()))
