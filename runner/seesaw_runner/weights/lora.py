"""A LoRA adapter read exactly: its scale by its own config, its matrices from its file, the rest refused by name."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import torch

from seesaw_runner.checkpoints.files import Checkpoint
from seesaw_runner.run_folder import StageError
from seesaw_runner.weights.blocks import grid, read_rows
from seesaw_runner.weights.names import unwrapped

#: Keys of adapter_config.json that do not change what is added to the weights.
_NEUTRAL = {
    *("task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision"),
    *("inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout", "fan_in_fan_out"),
    *("bias", "use_rslora", "modules_to_save", "init_lora_weights", "layers_to_transform", "layers_pattern"),
    *("rank_pattern", "alpha_pattern", "megatron_core", "loftq_config", "eva_config", "qalora_group_size"),
    *("runtime_config", "ensure_weight_tying", "corda_config", "lora_ga_config"),
}
#: Keys that do, in words. Any other key that is set stops too, under its own name.
_UNLIKE = {
    "use_dora": "DoRA (use_dora)",
    "lora_bias": "a trained bias beside the matrices (lora_bias)",
    "use_qalora": "QA-LoRA (use_qalora)",
    "trainable_token_indices": "trained token embeddings (trainable_token_indices)",
    "target_parameters": "adapters of bare parameters (target_parameters)",
    "layer_replication": "replicated layers (layer_replication)",
}
#: Beginnings that change the weights under the adapter, which the checkpoint does not hold.
_CHANGES_BASE = re.compile(r"pissa|corda|olora|mica|loftq|lora_ga", re.IGNORECASE)
_MATRIX = re.compile(r"^(?P<module>.+)\.lora_(?P<kind>embedding_)?(?P<side>[AB])(?:\.default)?(?:\.weight)?$")


@dataclass(frozen=True)
class Part:
    """What an adapter adds to one tensor: scale · B·A, turned over where `turned`."""

    a: str
    b: str
    rank: int
    scale: float
    turned: bool


class LoraAdapter:
    """`parts`: by the name of the tensor that it changes. `replaced`: tensors that it holds whole (modules_to_save),
    by name → name in the file.
    """

    def __init__(self, checkpoint: Checkpoint, label: str):
        self.checkpoint, self.label = checkpoint, label
        config = checkpoint.config
        self._refuse_unlike(config)
        self.ranks, self.alphas = (_pattern(config.get(k)) for k in ("rank_pattern", "alpha_pattern"))
        sides: dict[str, dict[str, tuple[str, bool]]] = {}
        self.replaced: dict[str, str] = {}
        for key in checkpoint.tensors:
            name = unwrapped(key.removeprefix("base_model.model."))
            match = _MATRIX.match(name)
            if match:
                sides.setdefault(match["module"], {})[match["side"]] = (key, match["kind"] is not None)
            elif ".lora_" in name or ".bias" in name:
                raise self._cannot(f"it holds {key}")
            else:
                plain = re.sub(r"\.(?:modules_to_save(?:\.default)?|base_layer)(?=\.)", "", name)
                self.replaced[plain] = key
        self.parts = {f"{module}.weight": self._part(module, found) for module, found in sides.items()}
        if not self.parts and not self.replaced:
            raise self._cannot("its file holds no LoRA matrices")

    def _refuse_unlike(self, config: dict[str, Any]) -> None:
        if config.get("peft_type") != "LORA":
            raise self._cannot(f"it is no LoRA adapter (peft_type {config.get('peft_type')!r})")
        for key, value in config.items():
            if key not in _NEUTRAL and value not in (None, False, 0, "", "none") and value != {} and value != []:
                raise self._cannot(f"it uses {_UNLIKE.get(key, key)}, whose merge is not plain B·A")
        if config.get("bias") not in (None, "none"):
            raise self._cannot(f"it trained biases (bias: {config['bias']})")
        begun = config.get("init_lora_weights")
        if isinstance(begun, str) and _CHANGES_BASE.match(begun):
            raise self._cannot(f"its weights began as {begun}, which also changes the weights under it")

    def _cannot(self, why: str) -> StageError:
        return StageError(
            "bad-checkpoint",
            f"The adapter {self.label} ({self.checkpoint.folder}) cannot be expanded exactly: {why}. Merge it with the "
            f"tool that trained it, save the full weights, and use those.",
            str(self.checkpoint.folder),
        )

    def _part(self, module: str, found: dict[str, tuple[str, bool]]) -> Part:
        if len(found) < 2:
            raise self._cannot(f"of {module} only one of the two matrices is there")
        (a, embedding), (b, _) = found["A"], found["B"]
        shapes = [self.checkpoint.tensors[n].shape for n in (a, b)]
        if any(len(shape) != 2 for shape in shapes):
            raise self._cannot(f"{module} is a convolution or another layer whose matrices have {len(shapes[0])} sides")
        rank, said = shapes[0][0], self._rank(module)
        if rank != shapes[1][1] or rank != said:
            raise self._cannot(
                f"the matrices of {module} have the ranks {rank} and {shapes[1][1]}, and adapter_config.json "
                f"says {said}"
            )
        config = self.checkpoint.config
        alpha = float(self.alphas(module, config.get("lora_alpha", 8)))
        scale = alpha / (math.sqrt(rank) if config.get("use_rslora") else rank)
        return Part(a, b, rank, scale, turned=embedding or bool(config.get("fan_in_fan_out")))

    def _rank(self, module: str) -> int:
        return int(self.ranks(module, self.checkpoint.config.get("r", 8)))

    def shape(self, name: str) -> tuple[int, int]:
        """Of the tensor that it changes."""
        part = self.parts[name]
        outputs, inputs = self.checkpoint.tensors[part.b].shape[0], self.checkpoint.tensors[part.a].shape[1]
        return (inputs, outputs) if part.turned else (outputs, inputs)

    def matrix(self, key: str) -> torch.Tensor:
        """A or B, whole: they are small."""
        return self.rows(key, 0, grid(self.checkpoint.tensors[key].shape)[0])

    def rows(self, key: str, begin: int, end: int) -> torch.Tensor:
        return read_rows(self.checkpoint.folder / self.checkpoint.files[key], self.checkpoint.tensors[key], begin, end)

    def delta(self, name: str, begin: int, end: int) -> torch.Tensor:
        """Rows of what it adds, in float32."""
        part = self.parts[name]
        if part.turned:
            product = self.matrix(part.a)[:, begin:end].T @ self.matrix(part.b).T
        else:
            product = self.rows(part.b, begin, end) @ self.matrix(part.a)
        return product * part.scale


def _pattern(given: object):
    """PEFT's rule: the first pattern that matches the whole name, or the part of it behind a dot."""
    patterns = list(given.items()) if isinstance(given, dict) else []

    def of(module: str, default: float) -> float:
        return next((value for key, value in patterns if re.match(rf"(.*\.)?({key})$", module)), default)

    return of
