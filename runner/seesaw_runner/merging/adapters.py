"""Adapters of one base merged into one adapter, exactly: their matrices side by side.

Σ cᵢ·sᵢ·Bᵢ·Aᵢ = [c₁s₁B₁ … cₙsₙBₙ]·[A₁; …; Aₙ]: the ranks add up, the scale is 1 and lives in B. Adding A to A and B to B
instead (PEFT's `linear`) multiplies every model's B with every other's A, and is another model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from seesaw_runner.merging.methods import Merger
from seesaw_runner.merging.options import MergeOptions
from seesaw_runner.merging.rounding import RoundingTable
from seesaw_runner.merging.writer import ShardWriter
from seesaw_runner.weights.blocks import TORCH, row_blocks
from seesaw_runner.weights.lora import Part
from seesaw_runner.weights.source import WeightSource, same_root

#: Methods that only add scaled changes up. The others look at single entries, so their result has no low rank.
ADDING = ("average", "linear", "task-arithmetic")
EXACT = "exact weighted deltas: the adapters' matrices side by side, ranks added up"


def stays_adapter(options: MergeOptions, models: list[WeightSource], base: WeightSource) -> bool:
    """Whether the result can be an adapter on the models' own base, and nobody asked for stored weights of a type."""
    if options.method not in ADDING or options.dtype is not None:
        return False
    if any(len(m.adapters) != 1 or m.adapters[0].replaced for m in models):
        return False
    if options.method == "task-arithmetic" and (base.adapters or not same_root(models[0], base)):
        return False
    turned: dict[str, bool] = {}
    for model in models:
        for name, part in model.adapters[0].parts.items():
            if turned.setdefault(name, part.turned) != part.turned:
                return False
    return all(same_root(models[0], m) for m in models[1:])


def merge_adapters(merger: Merger, folder: Path, rounding: RoundingTable, tell) -> dict[str, Any]:
    """Writes adapter_model.safetensors and adapter_config.json. `rounding` sees what merging the result into its base,
    in the base's own type, would leave of it.
    """
    options, models = merger.options, merger.models
    scale = options.weight if options.method == "task-arithmetic" else 1.0
    plan = _plan(models)
    shapes = {name: _shapes(models, name, holders) for name, holders in plan.items()}
    listed = [(key, shape, "F32") for name in plan for key, shape in shapes[name]]
    root = models[0].root
    with ShardWriter(folder, listed, stem="adapter_model", limit=2**62, about=merger.about) as writer:
        for done, (name, holders) in enumerate(plan.items()):
            tell(done, len(plan))
            (a_key, _), (b_key, _) = shapes[name]
            coefficients = [merger.weights[i] * scale * part.scale for i, part in holders]
            a = torch.cat([models[i].adapters[0].matrix(part.a) for i, part in holders])
            b = torch.cat(
                [models[i].adapters[0].matrix(p.b) * c for (i, p), c in zip(holders, coefficients, strict=True)], 1
            )
            writer.write(a_key, a)
            writer.write(b_key, b)
            dtype, turned = models[0].dtype(name), holders[0][1].turned
            for begin, end in row_blocks(models[0].shape(name)):
                base = models[0].read_root(name, begin, end)
                delta = (a[:, begin:end].T @ b.T) if turned else b[begin:end] @ a
                rounding.of(name).see(base, delta, base.double().add_(delta).float().to(TORCH[dtype]))
    ranks = {name.removesuffix(".weight"): sum(p.rank for _, p in holders) for name, holders in plan.items()}
    config = _config(models[0].adapters[0].checkpoint.config, ranks, root.folder)
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return {"ranks": sorted(set(ranks.values())), "bytes": writer.bytes}


def _plan(models: list[WeightSource]) -> dict[str, list[tuple[int, Part]]]:
    """Tensor → (model, part) of all that change it, in the models' order."""
    plan: dict[str, list[tuple[int, Part]]] = {}
    for index, model in enumerate(models):
        for name, part in model.adapters[0].parts.items():
            plan.setdefault(name, []).append((index, part))
    return plan


def _shapes(
    models: list[WeightSource], name: str, holders: list[tuple[int, Part]]
) -> list[tuple[str, tuple[int, int]]]:
    """Keys, as PEFT writes them, and shapes of the two merged matrices."""
    (first, part), rank = holders[0], sum(p.rank for _, p in holders)
    tensors = models[first].adapters[0].checkpoint.tensors
    return [(part.a, (rank, tensors[part.a].shape[1])), (part.b, (tensors[part.b].shape[0], rank))]


def _config(given: dict[str, Any], ranks: dict[str, int], base: Path) -> dict[str, Any]:
    """The first adapter's config with the merged ranks; alpha equals the rank everywhere, so the scale is 1."""
    most = max(ranks.values())
    others = {module.replace(".", r"\."): rank for module, rank in ranks.items() if rank != most}
    return {
        **given,
        "base_model_name_or_path": str(base.resolve()),
        "r": most,
        "lora_alpha": most,
        "rank_pattern": others,
        "alpha_pattern": dict(others),
        "use_rslora": False,
        "target_modules": sorted(ranks),
        "exclude_modules": None,
        "layers_to_transform": None,
        "layers_pattern": None,
        "init_lora_weights": True,
        "inference_mode": True,
    }
