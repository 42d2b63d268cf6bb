"""What a person should know of the models that a stage has loaded, as events of its journal."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from seesaw_runner.checkpoints.saving import identity
from seesaw_runner.checkpoints.vocabulary import beyond, told_absent
from seesaw_runner.training.adapters import base_doubt
from seesaw_runner.training.arguments import trainable_parameters
from seesaw_runner.training.placement import told_parts


def base_of_start(stage, start: str) -> str | None:
    """The identity of what an adapter checkpoint rests on, None for a full one; doubts about it are told."""
    about = Path(start) / "adapter_config.json"
    if not about.is_file():
        return None
    base = str(json.loads(about.read_text(encoding="utf-8")).get("base_model_name_or_path") or "")
    found = identity(base)
    if doubt := base_doubt(start, base, found):
        text, grave = doubt
        fix = "Give the adapter the base it was trained on, or train it again." if grave else ""
        stage.warn("adapter-base", text, where=start, fix=fix, severity="warning" if grave else "info")
    return found


def tell_vocabulary(stage, start: str) -> None:
    """Token ids without an embedding: rows with them are left out, since looking one up reads beyond the table."""
    rows = int(stage.model.get_input_embeddings().weight.shape[0])
    absent = beyond(stage.tokenizer.get_vocab(), rows)
    stage.tokenizer.without_embedding = frozenset(absent.values())
    if absent:
        stage.warn(
            "token-without-embedding",
            f"In {start} {told_absent(absent, rows)}.",
            where=start,
            fix="Resize the model's embedding, or use the tokenizer that it was trained with.",
        )


def tell_parts(stage, model: torch.nn.Module, folder: str) -> None:
    """A warning for a frozen model that lies in parts; once for each."""
    where, slow = told_parts(model)
    if folder in stage.in_parts or not where:
        return
    stage.in_parts.add(folder)
    cost = " Every forward pass copies the rest to the GPU, so it will be slow." if slow else ""
    stage.warn(
        "model-in-parts",
        f"The model in {folder} does not fit on {stage.device.name} and lies in parts on {where}.{cost}",
        where=folder,
        fix="Use a GPU with more memory, a smaller model, or (a teacher) an endpoint." if slow else "",
        severity="warning" if slow else "info",
    )


def training_bytes(stage) -> int:
    """What gradients and the optimizer's states will take, which are not there yet when a frozen model is loaded.

    4 bytes a trained parameter, and 8 more under AdamW in full precision.
    """
    name = str(stage.arguments.get("optim") or "adamw_torch")
    states = 8 if name.startswith("adamw") and "bit" not in name else 0
    return (4 + states) * trainable_parameters(stage.model, stage.adapter)
