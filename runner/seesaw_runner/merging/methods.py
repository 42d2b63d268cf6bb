"""The arithmetic of every method, on rows of one tensor in float32: what the result should be, and its change.

average, linear   Σ wᵢ·θᵢ, the weights adding up to 1
slerp             along the arc between two tensors (the straight line where they are almost parallel)
task-arithmetic   θ₀ + λ·Σ wᵢ·Δᵢ, with Δᵢ = θᵢ − θ₀
ties              Δᵢ cut to the largest `density` of each tensor; per entry the sign of Σ wᵢ·Δᵢ wins; the mean of the
                  changes with that sign, weighted, times λ (arXiv 2306.01708)
dare-linear       each entry of Δᵢ kept with probability `density` and divided by it; then task-arithmetic (2311.03099)
dare-ties         dropped and divided the same way; then sign and mean as in ties

Every method goes by row blocks. What a whole tensor decides is found in passes before: the angle of slerp in one, the
exact threshold of ties in two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from seesaw_runner.merging.magnitudes import kth_magnitude
from seesaw_runner.merging.masks import MASK_METHOD, DropMask
from seesaw_runner.merging.options import DELTA_METHODS, MergeOptions
from seesaw_runner.weights.blocks import grid, row_blocks
from seesaw_runner.weights.source import WeightSource, same_root
from seesaw_runner.weights.sums import dot_product, squares

#: Cosine beyond which an arc is as good as a straight line, and its sine too small to divide by.
_PARALLEL = 0.9995


@dataclass
class Rows:
    """`value`: what the rows should become. `delta`: their change against `reference`, not yet rounded to any type."""

    value: torch.Tensor
    delta: torch.Tensor
    reference: torch.Tensor


class Merger:
    """`reference`: the base, or what stands in for it in the report. `keys`: per model, what its drop masks follow."""

    def __init__(
        self, options: MergeOptions, models: list[WeightSource], reference: WeightSource, keys: list[str], seed: int
    ):
        self.options, self.models, self.reference, self.keys, self.seed = options, models, reference, keys, seed
        self.weights = [weight for _, weight in options.models]
        self.by_delta = options.method in DELTA_METHODS
        self.stands_on = [bool(m.adapters) and same_root(m, reference) for m in models]

    @property
    def about(self) -> dict[str, str]:
        """How the result came about, for the metadata of its files: enough to make it again."""
        options, drops = self.options, self.options.method.startswith("dare")
        recipe = {
            "method": options.method,
            "models": [[key, weight] for key, weight in zip(self.keys, self.weights, strict=True)],
            "weight": options.weight,
            "density": options.density,
            **({"seed": self.seed, "mask": MASK_METHOD} if drops else {}),
        }
        return {"seesaw_merge": json.dumps(recipe, sort_keys=True)}

    def rows(self, name: str) -> Iterator[tuple[int, int, Rows]]:
        """All rows of the merged tensor, in order."""
        shape = self.reference.shape(name)
        if self.by_delta:
            combine = self._combiner(name, shape)
            for begin, end in row_blocks(shape):
                base = self.reference.read(name, begin, end)
                delta = combine([self.update(i, name, begin, end, base) for i in range(len(self.models))])
                delta = torch.zeros_like(base) if delta is None else delta.mul_(self.options.weight)
                yield begin, end, Rows(base.double().add_(delta).float(), delta, base)
            return
        shares = self._slerp_shares(name, shape) if self.options.method == "slerp" else self.weights
        for begin, end in row_blocks(shape):
            value = None
            for model, share in zip(self.models, shares, strict=True):
                part = model.read(name, begin, end).mul_(share)
                value = part if value is None else value.add_(part)
            base = self.reference.read(name, begin, end)
            yield begin, end, Rows(value, value - base, base)

    def update(
        self, index: int, name: str, begin: int, end: int, base: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """What a model changed against the base; None for nothing. Adapters on the base give it exactly."""
        model = self.models[index]
        if self.stands_on[index] and not model.replaced(name) and not self.reference.touched(name):
            return model.added(name, begin, end)
        base = self.reference.read(name, begin, end) if base is None else base
        return model.read(name, begin, end) - base

    # ---- delta methods

    def _combiner(self, name: str, shape: tuple[int, ...]):
        method, density = self.options.method, self.options.density
        keep = None
        if method == "ties":
            limits = [self._threshold(i, name, shape, density) for i in range(len(self.models))]

            def keep(i: int, delta: torch.Tensor) -> torch.Tensor:
                return torch.where(delta.abs() >= limits[i], delta, 0.0)

        elif method.startswith("dare"):
            masks = [DropMask(self.seed, key, name, density) for key in self.keys]

            def keep(i: int, delta: torch.Tensor) -> torch.Tensor:
                return torch.where(masks[i].next(delta.shape), delta / density, 0.0)

        elect = method.endswith("ties")

        def combine(deltas: list[torch.Tensor | None]) -> torch.Tensor | None:
            kept = [
                ((keep(i, delta) if keep else delta) * self.weights[i], abs(self.weights[i]))
                for i, delta in enumerate(deltas)
                if delta is not None
            ]
            if not kept:
                return None
            return elected_mean(kept) if elect else torch.stack([delta for delta, _ in kept]).sum(0)

        return combine

    def _threshold(self, index: int, name: str, shape: tuple[int, ...], density: float) -> float:
        """The smallest magnitude among the largest `density` of a tensor's changes. Equal ones are all kept."""
        rows, columns = grid(shape)

        def blocks() -> Iterator[torch.Tensor]:
            for begin, end in row_blocks(shape):
                delta = self.update(index, name, begin, end)
                if delta is not None:
                    yield delta

        if density >= 1 or next(iter(blocks()), None) is None:
            return 0.0
        return kth_magnitude(blocks, max(1, int(density * rows * columns)))

    # ---- slerp

    def _slerp_shares(self, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
        one, other = self.models
        dot = first = second = 0.0
        for begin, end in row_blocks(shape):
            a, b = one.read(name, begin, end), other.read(name, begin, end)
            dot, first, second = dot + dot_product(a, b), first + squares(a), second + squares(b)
        return arc_shares(dot, first, second, self.options.weight)


def arc_shares(dot: float, first: float, second: float, t: float) -> tuple[float, float]:
    """Coefficients of two vectors at t along the arc between them, by their dot product and squared norms."""
    size = math.sqrt(first * second)
    cosine = dot / size if size else 1.0
    if abs(cosine) > _PARALLEL:
        return 1.0 - t, t
    angle = math.acos(cosine)
    return math.sin((1.0 - t) * angle) / math.sin(angle), math.sin(t * angle) / math.sin(angle)


def elected_mean(parts: list[tuple[torch.Tensor, float]]) -> torch.Tensor:
    """TIES: (weighted change, weight) of every model → per entry the mean of those with the sign of the sum."""
    positive = torch.stack([delta for delta, _ in parts]).sum(0) >= 0
    total, divisor = torch.zeros_like(parts[0][0]), torch.zeros_like(parts[0][0])
    for delta, weight in parts:
        agrees = torch.where(positive, delta > 0, delta < 0)
        total += torch.where(agrees, delta, 0.0)
        divisor += agrees * weight
    return torch.where(divisor > 0, total / divisor.clamp_min(1e-30), 0.0)
