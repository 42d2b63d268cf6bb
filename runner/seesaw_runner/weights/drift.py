"""How far two checkpoints are apart in weight space: per tensor, module, layer and in all, read a few rows at a time.

This describes; it does not alarm. Weight drift is a poor predictor of forgetting, and the numbers have a floor: where
one of the two was rounded to another type in between, the rounding alone moves every entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from seesaw_runner.weights.blocks import row_blocks
from seesaw_runner.weights.names import place
from seesaw_runner.weights.ranks import UpdateGram
from seesaw_runner.weights.source import WeightSource, same_root
from seesaw_runner.weights.sums import Sums, dot_product, squares

#: Relative change that rounding to a type alone makes: half its step, spread evenly.
_FLOOR = {"BF16": 1.1e-3, "F16": 1.4e-4}


def measure(
    a: WeightSource,
    b: WeightSource,
    earlier: WeightSource | None = None,
    *,
    rank: bool = False,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """The change from a to b. `earlier`: the checkpoint before a, for the cosine of the two updates a−earlier and b−a.

    tell(tensors done, tensors in all) is told between tensors.
    """
    began = time.perf_counter()
    pair = _Pair(a, b, earlier)
    tensors, notes = [], [*a.notes, *b.notes, *(earlier.notes if earlier else [])]
    modules: dict[tuple[int | None, str], Sums] = {}
    common = [name for name in a.names if name in b]
    for done, name in enumerate(common):
        tell(done, len(common))
        sums, ranks, note = pair.compare(name, rank)
        if note:
            notes.append(note)
        if sums is None:
            continue
        layer, module = place(name)
        modules.setdefault((layer, module), Sums()).add(sums)
        tensors.append(
            {"name": name, "layer": layer, "module": module, "shape": list(a.shape(name)), **sums.numbers(), **ranks}
        )
    tell(len(common), len(common))
    layers: dict[int | None, Sums] = {}
    total = Sums()
    for (layer, _), sums in modules.items():
        layers.setdefault(layer, Sums()).add(sums)
        total.add(sums)
    return {
        "v": 1,
        "a": _about(a),
        "b": _about(b),
        "with": _about(earlier) if earlier else None,
        "total": total.numbers(),
        "layers": [{"layer": layer, **sums.numbers()} for layer, sums in layers.items()],
        "modules": [{"layer": layer, "module": module, **sums.numbers()} for (layer, module), sums in modules.items()],
        "tensors": tensors,
        "only_a": [name for name in a.names if name not in b],
        "only_b": [name for name in b.names if name not in a],
        "notes": notes + _tied_note(a, b) + _floor_note(a, b, common),
        "seconds": round(time.perf_counter() - began, 3),
    }


class _Pair:
    """Two checkpoints, tensor by tensor. Where both stand on the same base, their difference is that of their
    adapters: exact, and nothing large is read twice.
    """

    def __init__(self, a: WeightSource, b: WeightSource, earlier: WeightSource | None):
        self.a, self.b, self.earlier = a, b, earlier
        self.shared = bool(a.adapters or b.adapters) and same_root(a, b)

    def compare(self, name: str, rank: bool) -> tuple[Sums | None, dict[str, Any], str | None]:
        a, b = self.a, self.b
        ranks = {"effective_rank": None, "stable_rank": None} if rank else {}
        shape, note = a.shape(name), None
        if shape != b.shape(name):
            one, two = (list(s.shape(name)) for s in (a, b))
            note = f"{name} is {one} in {a.label} and {two} in {b.label}"
            if len(shape) != 2 or one[1:] != two[1:]:
                return None, ranks, f"{note}: not compared."
            shape = (min(one[0], two[0]), one[1])
            note += f": its first {shape[0]} rows are compared."
        earlier = self.earlier
        if earlier is not None and (name not in earlier or earlier.shape(name) != a.shape(name)):
            earlier = None
        sums, gram = Sums(), UpdateGram(shape) if rank else None
        for begin, end in row_blocks(shape):
            before = a.read(name, begin, end)
            delta = self._delta(name, begin, end, before)
            sums.count += before.numel()
            sums.before += squares(before)
            if earlier is not None:
                update = before - earlier.read(name, begin, end)
                sums.earlier = (sums.earlier or 0.0) + squares(update)
                sums.dot = (sums.dot or 0.0) + (dot_product(update, delta) if delta is not None else 0.0)
            if delta is not None:
                sums.changed += int(torch.count_nonzero(delta))
                sums.delta += squares(delta)
                if gram is not None:
                    gram.add(delta)
        if gram is not None and sums.changed:
            ranks = dict(zip(ranks, gram.ranks(), strict=True))
        return sums, ranks, note

    def _delta(self, name: str, begin: int, end: int, before: torch.Tensor) -> torch.Tensor | None:
        if not self.shared or self.a.replaced(name) or self.b.replaced(name):
            return self.b.read(name, begin, end) - before
        one, two = self.a.added(name, begin, end), self.b.added(name, begin, end)
        if one is None or two is None:
            return two if one is None else -one
        return two - one


def _about(source: WeightSource) -> dict[str, Any]:
    kinds = sorted({source.dtype(name) for name in source.names})
    return {"path": str(source.folder), "kind": source.kind, "dtypes": kinds, "tied": source.tied}


def _tied_note(a: WeightSource, b: WeightSource) -> list[str]:
    if a.tied and b.tied:
        return ["The output head is tied to the embedding: one tensor, counted once."]
    if a.tied != b.tied:
        tied, other = (a, b) if a.tied else (b, a)
        return [f"{tied.label} ties the output head to the embedding, {other.label} has a head of its own."]
    return []


def _floor_note(a: WeightSource, b: WeightSource, names: list[str]) -> list[str]:
    for name in names:
        kinds = {a.dtype(name), b.dtype(name)}
        rounded = next((k for k in ("BF16", "F16") if k in kinds), None)
        if len(kinds) > 1 and rounded and not (a.adapters or b.adapters):
            return [
                f"One side is stored as {rounded}, the other as {(kinds - {rounded}).pop()}: rounding alone gives a "
                f"relative change of about {_FLOOR[rounded]:.2%}."
            ]
    return []
