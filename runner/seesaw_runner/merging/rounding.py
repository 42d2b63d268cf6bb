"""What rounding to the storage type left of a change: bf16 swallows what is smaller than half its step."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import torch

from seesaw_runner.weights.names import place
from seesaw_runner.weights.sums import cosine, dot_product, squares

#: A result that keeps less of the wanted change than this, or points elsewhere, is warned about.
LOST_ERROR = 0.5


@dataclass
class Rounding:
    """Sums of squares of the reference, the wanted and the stored change, their product and their difference."""

    count: int = 0
    changed: int = 0
    reference: float = 0.0
    wanted: float = 0.0
    stored: float = 0.0
    dot: float = 0.0
    error: float = 0.0

    def see(self, reference: torch.Tensor, wanted: torch.Tensor, stored: torch.Tensor) -> None:
        """`stored`: the values as stored; `wanted`: the change as computed."""
        change = stored.float() - reference
        self.count += change.numel()
        self.changed += int(torch.count_nonzero(change))
        self.reference += squares(reference)
        self.wanted += squares(wanted)
        self.stored += squares(change)
        self.dot += dot_product(wanted, change)
        self.error += squares(change.sub_(wanted))

    def add(self, other: Rounding) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def numbers(self) -> dict[str, Any]:
        """`changed`: share of entries unlike the reference's. `wanted`, `stored`: ‖Δ‖/‖W‖ before and after rounding.
        `kept`: ‖Δ stored‖/‖Δ wanted‖, `error`: ‖Δ stored − Δ wanted‖/‖Δ wanted‖. None where a norm is zero.
        """

        def ratio(one: float, other: float) -> float | None:
            return math.sqrt(one / other) if other > 0 else None

        return {
            "count": self.count,
            "changed": self.changed / self.count if self.count else 0.0,
            "cosine": cosine(self.dot, self.wanted, self.stored),
            "wanted": ratio(self.wanted, self.reference),
            "stored": ratio(self.stored, self.reference),
            "kept": ratio(self.stored, self.wanted),
            "error": ratio(self.error, self.wanted),
        }


class RoundingTable:
    """Per module, layer and in all."""

    def __init__(self) -> None:
        self.modules: dict[tuple[int | None, str], Rounding] = {}

    def of(self, name: str) -> Rounding:
        return self.modules.setdefault(place(name), Rounding())

    def total(self) -> Rounding:
        total = Rounding()
        for part in self.modules.values():
            total.add(part)
        return total

    def report(self) -> dict[str, Any]:
        return {
            "total": self.total().numbers(),
            "modules": [
                {"layer": layer, "module": module, **part.numbers()} for (layer, module), part in self.modules.items()
            ],
        }
