"""`args` and `adapter` of a stage, as the objects of TRL and PEFT."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from seesaw_runner.run_folder import StageError

#: Accepted, and done by the batch plan instead.
PLANNED_ARGUMENTS = (
    "train_sampling_strategy",
    "group_by_length",
    "assistant_only_loss",
    "logging_steps",
    "max_steps",
    "num_train_epochs",
)


def trainer_arguments(
    arguments: dict, run: Path, steps: int, seed: int, device, recipe: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The stage's `args` with Seesaw's own; what the user set wins except where the run folder depends on it.

    recipe: what this recipe's trainer needs besides, such as rows that are encoded already.
    """
    given = {k: v for k, v in arguments.items() if k not in PLANNED_ARGUMENTS}
    mixed = any(given.get(k) is not None for k in ("bf16", "fp16"))
    usual = {
        "gradient_checkpointing": device.kind != "cpu",  # TRL's default; on a CPU it only costs time
        "dataloader_pin_memory": device.kind == "cuda",
        **({} if mixed else {"bf16": device.autocast_bf16, "fp16": False}),
    }
    own = {
        "output_dir": str(run / "checkpoints"),
        "max_steps": steps,
        "seed": seed,
        "report_to": [],
        "save_strategy": "no",
        "eval_strategy": "no",
        "logging_strategy": "steps",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "use_cpu": device.kind == "cpu",
        "push_to_hub": False,
        "ddp_find_unused_parameters": False,
    }
    return {**usual, **given, **own, **(recipe or {})}


def lora_config(adapter: dict):
    """`adapter:` of the stage → PEFT's LoraConfig. StageError `bad-argument` names an unknown key."""
    from peft import LoraConfig

    try:
        return LoraConfig(**{"task_type": "CAUSAL_LM", **adapter})
    except TypeError as error:
        raise StageError(
            "bad-argument", f"`adapter` of the stage has something that LoraConfig does not know: {error}", "adapter"
        ) from error


def trainable_parameters(model, adapter: dict | None) -> int:
    """For run.started, before PEFT has changed the model: the whole model, or what LoRA adds on linear layers."""
    if not adapter:
        return sum(p.numel() for p in model.parameters() if p.requires_grad)
    import copy

    from peft import get_peft_model
    from torch import device as torch_device

    with torch_device("meta"):
        ghost = type(model)(copy.deepcopy(model.config))  # not a copy of the model: that would double the memory
        return sum(p.numel() for p in get_peft_model(ghost, lora_config(adapter)).parameters() if p.requires_grad)


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    out = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "transformers", "trl", "peft", "accelerate", "datasets"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out
