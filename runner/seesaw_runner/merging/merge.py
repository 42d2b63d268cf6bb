"""Merges checkpoints into a folder: checked before a number is read, streamed by rows, measured after rounding.

At any time a few million numbers of each model are in memory, so a model larger than the machine's memory merges.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from seesaw_runner.merging.adapters import EXACT, merge_adapters, stays_adapter
from seesaw_runner.merging.compatible import check_models, storage_types
from seesaw_runner.merging.masks import MASK_METHOD
from seesaw_runner.merging.methods import Merger
from seesaw_runner.merging.options import DELTA_METHODS, DTYPES, MergeOptions
from seesaw_runner.merging.rounding import LOST_ERROR, RoundingTable
from seesaw_runner.merging.writer import SHARD_BYTES, ShardWriter
from seesaw_runner.run_folder import StageError
from seesaw_runner.weights.source import WeightSource

#: Files of a checkpoint that are neither weights nor what Seesaw wrote about them.
_COPIED = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "chat_template*",
    "*.model",
)


def merge(
    options: MergeOptions,
    models: list[WeightSource],
    base: WeightSource,
    folder: Path,
    *,
    hashes: list[str],
    seed: int,
    shard_bytes: int = SHARD_BYTES,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Writes weights, config and tokenizer into an empty folder; gives the report. models: in the order of
    `options.models`; hashes: of their weights, for the drop masks. tell(tensors done, in all) may raise to stop.
    """
    began = time.perf_counter()
    by_delta = options.method in DELTA_METHODS
    reference, notes = check_models(models, base, uses_base=by_delta)
    merger = Merger(options, models, reference, hashes, seed)
    for source in dict.fromkeys([*models, base]):
        notes += source.notes
    rounding = RoundingTable()
    if stays_adapter(options, models, base):
        told = {
            "output": "adapter",
            "exact": EXACT,
            "measured": _AS_IF,
            **merge_adapters(merger, folder, rounding, tell),
        }
        _copy_files(models[0], folder, with_config=False)
    else:
        types = storage_types(models, options.dtype)
        told = {"output": "full", "dtypes": sorted(set(types.values()))}
        told["bytes"] = _merge_full(merger, folder, types, rounding, tell, shard_bytes)
        _copy_files(models[0], folder, with_config=True, dtypes=set(types.values()))
    drops = options.method.startswith("dare")
    return {
        "v": 1,
        "method": options.method,
        "models": [
            {
                "reference": ref,
                "label": m.label,
                "checkpoint": str(m.folder),
                "kind": m.kind,
                "weights_hash": h,
                "weight": w,
            }
            for (ref, w), m, h in zip(options.models, models, hashes, strict=True)
        ],
        "base": {"reference": options.base, "label": base.label, "checkpoint": str(base.folder)},
        "compared_with": reference.label,
        "weight": options.weight if by_delta or options.method == "slerp" else None,
        "density": options.density,
        "seed": seed if drops else None,
        "mask": MASK_METHOD if drops else None,
        "tied": models[0].tied,
        **told,
        **rounding.report(),
        "notes": list(dict.fromkeys(notes)),
        "warnings": _lost(rounding, told),
        "seconds": round(time.perf_counter() - began, 3),
    }


_AS_IF = (
    "what merging the adapter into its base, in the base's own type, would leave of it; the adapter itself is exact"
)


def _merge_full(
    merger: Merger, folder: Path, types: dict[str, str], rounding: RoundingTable, tell, shard_bytes: int
) -> int:
    names = list(types)
    plan = [(name, merger.reference.shape(name), types[name]) for name in names]
    with ShardWriter(folder, plan, limit=shard_bytes, about=merger.about) as writer:
        for done, name in enumerate(names):
            tell(done, len(names))
            for _, _, rows in merger.rows(name):
                stored = writer.write(name, rows.value)
                if not bool(torch.isfinite(stored.float().sum(dtype=torch.float64))):
                    largest = float(rows.value.abs().max())
                    raise StageError(
                        "bad-checkpoint",
                        f"{name} overflows {types[name]} after merging (largest {largest:.3g}). Write options.dtype: "
                        f"bfloat16 or float32, or smaller weights.",
                        "options.dtype",
                    )
                rounding.of(name).see(rows.reference, rows.delta, stored)
        tell(len(names), len(names))
    return writer.bytes


def _copy_files(model: WeightSource, folder: Path, *, with_config: bool, dtypes: set[str] = frozenset()) -> None:
    """Tokenizer and template of the first model (an adapter without them has its base's), and its config."""
    own = [model.folder, model.root.folder]
    source = next(
        (f for f in own if (f / "tokenizer_config.json").is_file() or (f / "tokenizer.json").is_file()), own[-1]
    )
    for pattern in _COPIED:
        for path in source.glob(pattern):
            if path.is_file():
                shutil.copyfile(path, folder / path.name)
    if not with_config:
        return
    config = dict(model.config)
    if len(dtypes) == 1:
        said = next(name for name, code in {**DTYPES, "float64": "F64"}.items() if code in dtypes)
        config |= {key: said for key in ("dtype", "torch_dtype") if key in config or key == "dtype"}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if (generation := model.root.folder / "generation_config.json").is_file():
        shutil.copyfile(generation, folder / generation.name)


def _lost(rounding: RoundingTable, told: dict[str, Any]) -> list[str]:
    """Sentences about a change that rounding swallowed, or that never was."""
    total = rounding.total()
    if total.wanted == 0:
        return ["The merge changes nothing: every merged tensor equals the one it is compared with."]
    error = total.numbers()["error"]
    if error <= LOST_ERROR:
        return []
    share = 1 - total.changed / max(1, total.count)
    if told["output"] == "adapter":
        how, fix = (
            "Merging this adapter into its base's own type would lose",
            "Keep the adapter separate, or merge it in float32",
        )
    else:
        how, fix = "Rounding to the storage type lost", "Write options.dtype: float32, or keep adapters separate"
    return [
        f"{how} much of the change: {share:.1%} of the entries stay exactly as they were, and the stored change "
        f"differs from the wanted one by {error:.2f} of its size. {fix}."
    ]
