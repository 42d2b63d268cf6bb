"""Is a checkpoint folder whole and safe to load? Judged by names, sizes and headers; no tensor is loaded and
nothing is unpickled.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seesaw_runner.checkpoints.safetensors_header import TRAINABLE, HeaderError, Tensor, lfs_size, read_header
from seesaw_runner.checkpoints.tied_weights import check_tied
from seesaw_runner.checkpoints.vocabulary import check_vocabulary
from seesaw_runner.checkpoints.wrappers import check_wrappers
from seesaw_runner.findings import Finding

_PICKLE = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_WAIT = "Wait until it is complete, or start from another checkpoint"
_CONVERT = (
    "Convert it in an environment you trust: load it there with transformers and save it with "
    "`model.save_pretrained(folder, safe_serialization=True)`"
)


@dataclass
class Checkpoint:
    """`kind` is "full", "adapter" or None (no weights). Usable if no finding is an error."""

    folder: Path
    kind: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        return self.kind is not None and not any(finding.severity == "error" for finding in self.findings)

    @property
    def bytes(self) -> int:
        return sum(tensor.end - tensor.begin for tensor in self.tensors.values())

    @property
    def parameters(self) -> int:
        return sum(tensor.count for tensor in self.tensors.values())

    def error(self, message: str, fix: str, where: str = "") -> None:
        self.findings.append(
            Finding("bad-checkpoint", "error", message, fix, str(self.folder / where) if where else str(self.folder))
        )

    def warn(self, message: str, fix: str) -> None:
        self.findings.append(Finding("bad-checkpoint", "warning", message, fix, str(self.folder)))

    def info(self, message: str, fix: str) -> None:
        self.findings.append(Finding("bad-checkpoint", "info", message, fix, str(self.folder)))


def inspect_checkpoint(folder: str | Path) -> Checkpoint:
    """Everything that can be said about a checkpoint folder without loading it."""
    checkpoint = Checkpoint(Path(folder))
    try:
        names = {path.name: path for path in checkpoint.folder.iterdir()}
    except OSError as error:
        checkpoint.error(f"the checkpoint folder cannot be read: {error.strerror or error}", "Check the path")
        return checkpoint
    index = next(
        (name for name in ("model.safetensors.index.json", "adapter_model.safetensors.index.json") if name in names),
        None,
    )
    single = next((name for name in ("model.safetensors", "adapter_model.safetensors") if name in names), None)
    if single:  # transformers prefers it too
        checkpoint.kind = "adapter" if single.startswith("adapter") else "full"
        _read_file(checkpoint, single)
    elif index:
        checkpoint.kind = "adapter" if index.startswith("adapter") else "full"
        _read_shards(checkpoint, index, names)
    else:
        _no_weights(checkpoint, names)
        return checkpoint
    _read_config(checkpoint, names)
    if not checkpoint.findings:
        _check_tensors(checkpoint)
    if re.fullmatch(r"checkpoint-\d+", checkpoint.folder.name) and "trainer_state.json" not in names:
        checkpoint.warn(
            "trainer_state.json is missing",
            "It was perhaps still being saved; a start from here needs only the weights",
        )
    return checkpoint


def _read_file(checkpoint: Checkpoint, name: str) -> dict[str, Tensor]:
    try:
        tensors = read_header(checkpoint.folder / name)
    except HeaderError as error:
        checkpoint.error(
            f"{'incomplete' if error.cut else 'damaged'}: {error}",
            _WAIT if error.cut else "Get the file again, or start from another checkpoint",
            name,
        )
        return {}
    except OSError as error:
        checkpoint.error(
            f"{name} cannot be read: {error.strerror or error}", "Check the file and its permissions", name
        )
        return {}
    checkpoint.tensors |= tensors
    checkpoint.files |= dict.fromkeys(tensors, name)
    return tensors


def _read_shards(checkpoint: Checkpoint, index: str, names: dict[str, Path]) -> None:
    """The index against the disk, both ways."""
    about = _json(checkpoint, index)
    weights = about.get("weight_map") if about is not None else None
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in weights.values()
    ):
        if about is not None:
            checkpoint.error(
                f"{index} has no usable weight_map", "Get the file again, or start from another checkpoint", index
            )
        return
    for shard in sorted(set(weights.values())):
        named = [tensor for tensor, file in weights.items() if file == shard]
        if not (checkpoint.folder / shard).is_file():
            more = f" and {len(named) - 1} more" if len(named) > 1 else ""
            checkpoint.error(
                f"incomplete: missing {shard} (holds {named[0]}{more})", "Copy the missing file into the folder", shard
            )
            continue
        found = _read_file(checkpoint, shard)
        absent = [tensor for tensor in named if tensor not in found]
        if found and absent:
            checkpoint.error(
                f"{shard} does not hold {absent[0]}, which {index} says it does",
                "Get the shards again, all from one save",
                shard,
            )
        extra = [tensor for tensor in found if weights.get(tensor) != shard]
        if extra:
            checkpoint.warn(
                f"{shard} holds {extra[0]}, which {index} does not place there",
                "Get the shards again, all from one save",
            )
    stray = sorted(
        name
        for name in names
        if re.fullmatch(r"(adapter_)?model-\d+-of-\d+\.safetensors", name) and name not in weights.values()
    )
    if stray:
        checkpoint.warn(f"{stray[0]} is not named in {index}", "Remove it if it belongs to another save")


def _no_weights(checkpoint: Checkpoint, names: dict[str, Path]) -> None:
    """Says what the folder is instead."""
    pickles = sorted(name for name in names if name.endswith(_PICKLE))
    weights = [name for name in pickles if re.match(r"(pytorch_model|adapter_model|model|consolidated)[-._\w]*$", name)]
    ranks = [name for name in names if re.fullmatch(r"model_world_size_\d+_rank_\d+\.pt", name)]
    shards = [folder for name, folder in names.items() if name.startswith("pytorch_model_fsdp") and folder.is_dir()]
    if "router.json" in names:
        checkpoint.error(
            "the folder is a router (a base and several experts), not one model",
            "Start from the base or from one expert, or merge the experts first",
        )
    elif not names:
        checkpoint.error("the checkpoint folder is empty; is it still being written?", _WAIT)
    elif any(re.search(r"\.tmp|\.part|\.incomplete|~$", name) for name in names):
        checkpoint.error(
            "incomplete: the weights have only a temporary name; they are perhaps still being written", _WAIT
        )
    elif shards:
        count = len(list(shards[0].glob("*.distcp")))
        lost = "" if (shards[0] / ".metadata").is_file() else "; .metadata is missing, so they cannot be merged"
        checkpoint.error(
            f"the weights are FSDP shards ({count} ranks), not a model{lost}",
            "Merge them with `accelerate merge-weights` first",
        )
    elif ranks:
        checkpoint.error(
            f"the weights are verl's FSDP shards ({len(ranks)} ranks), not a model",
            "Merge them with verl's model merger first",
        )
    elif weights:
        checkpoint.error(
            f"pickle weights ({weights[0]}) are not loaded: unpickling a file runs the code in it", _CONVERT, weights[0]
        )
    elif pickles:
        checkpoint.error(
            "the folder has files to resume from, but no weights", "Choose a folder with model.safetensors"
        )
    else:
        checkpoint.error(
            "the folder has no weights (model.safetensors or adapter_model.safetensors)",
            "Choose a Hugging Face folder with safetensors",
        )


def _json(checkpoint: Checkpoint, name: str) -> dict | None:
    path = checkpoint.folder / name
    try:
        data = path.read_bytes()
        if lfs_size(data[:400]) is not None:
            checkpoint.error(
                f"{name} is a Git LFS pointer, the real file is not downloaded", "Run `git lfs pull`", name
            )
            return None
        value = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        checkpoint.error(f"{name} cannot be read: {error}", "Get the file again", name)
        return None
    if not isinstance(value, dict):
        checkpoint.error(f"{name} is no JSON object", "Get the file again", name)
        return None
    return value


def _read_config(checkpoint: Checkpoint, names: dict[str, Path]) -> None:
    name = "adapter_config.json" if checkpoint.kind == "adapter" else "config.json"
    if name not in names:
        checkpoint.error(f"{name} is missing", "Copy it into the folder", name)
        return
    checkpoint.config = _json(checkpoint, name) or {}
    code = ["config.json"] if checkpoint.config.get("auto_map") else []
    if "tokenizer_config.json" in names and (_json(checkpoint, "tokenizer_config.json") or {}).get("auto_map"):
        code.append("tokenizer_config.json")
    if code:
        checkpoint.error(
            f"the model needs custom code (auto_map in {code[0]}); Seesaw never runs Python files of a checkpoint",
            "Use a model whose architecture is part of transformers, or remove auto_map if it is one",
            code[0],
        )
    if "tokenizer.json" in names:
        with open(names["tokenizer.json"], "rb") as file:
            if lfs_size(file.read(400)) is not None:
                checkpoint.error(
                    "tokenizer.json is a Git LFS pointer, the real file is not downloaded",
                    "Run `git lfs pull`",
                    "tokenizer.json",
                )


def _check_tensors(checkpoint: Checkpoint) -> None:
    if not checkpoint.tensors:
        checkpoint.error("the weight files hold no tensors", "Start from another checkpoint")
        return
    empty = [name for name, tensor in checkpoint.tensors.items() if tensor.count == 0]
    if empty:
        checkpoint.error(
            f"not consolidated: {len(empty)} tensor{'s' * (len(empty) > 1)} of size 0 (DeepSpeed ZeRO-3)",
            "Save with stage3_gather_16bit_weights_on_model_save, or consolidate with DeepSpeed's own "
            "zero_to_fp32 tool",
        )
    odd = [name for name, tensor in checkpoint.tensors.items() if tensor.dtype not in TRAINABLE]
    if odd:
        checkpoint.error(
            f"the tensor {odd[0]} has the type {checkpoint.tensors[odd[0]].dtype}, which cannot be read for "
            "training or scoring",
            "Use the weights in F32, BF16 or F16",
            checkpoint.files[odd[0]],
        )
    if checkpoint.kind == "full":
        check_tied(checkpoint)
        check_vocabulary(checkpoint)
        check_wrappers(checkpoint)
