"""The `args` of a stage, checked against the trainer's configuration before anything is loaded."""

from __future__ import annotations

import difflib
import re
from typing import Any

from seesaw_runner.findings import Finding
from seesaw_runner.preflight.dataclass_fields import dataclass_fields

#: Recipes without a trainer, and the only argument that they have.
UNTRAINED = ("merge", "router", "command")
_UNTRAINED_ARGUMENTS = ("use_cpu",)

#: Recipe → where the class of its trainer's configuration is.
_SFT = ("trl.trainer.sft_config", "SFTConfig")
CONFIGS = {
    "sft": _SFT,
    "experts": _SFT,
    "replay": _SFT,
    "self-distill": _SFT,
    "oracle-sft": _SFT,
    "distill": ("transformers.training_args", "TrainingArguments"),
    "dpo": ("trl.trainer.dpo_config", "DPOConfig"),
    "grpo": ("trl.trainer.grpo_config", "GRPOConfig"),
}

_OURS = "Seesaw sets it itself"
_SAVING = "Seesaw saves on its own: set `save_every` of the stage"
_PROBING = "Seesaw probes and evaluates on its own: set `probe_every` and `eval_every` of the stage"
_LOCAL = "Seesaw never uploads anything; upload the checkpoint folder yourself"

#: Arguments that exist, but whose work Seesaw does, and what to set instead.
RESERVED: dict[str, str] = {
    "output_dir": f"{_OURS}: a run has its own folder",
    "report_to": f"{_OURS}: metrics go to the run's journal",
    "run_name": f"{_OURS}: a run has its own name",
    "logging_dir": f"{_OURS}: metrics go to the run's journal",
    "seed": "set `seed` of the pipeline",
    "data_seed": "set `seed` of the pipeline",
    "resume_from_checkpoint": f"{_OURS}: a new attempt resumes from the run's last checkpoint",
    "ignore_data_skip": f"{_OURS}: a new attempt resumes with the next batch of its plan",
    "remove_unused_columns": f"{_OURS}: rows are encoded before the trainer sees them",
    "dataset_text_field": f"{_OURS}: rows are encoded before the trainer sees them",
    "dataset_kwargs": f"{_OURS}: rows are encoded before the trainer sees them",
    "chat_template_path": "put the template into the base model's folder",
    "disable_tqdm": f"{_OURS}: progress goes to the run's journal",
    **dict.fromkeys(
        (
            "save_strategy",
            "save_steps",
            "save_total_limit",
            "save_only_model",
            "load_best_model_at_end",
            "save_safetensors",
        ),
        _SAVING,
    ),
    **dict.fromkeys(("eval_strategy", "evaluation_strategy", "eval_steps", "eval_on_start", "do_eval"), _PROBING),
    **dict.fromkeys(("push_to_hub", "hub_model_id", "hub_strategy", "hub_token", "hub_private_repo"), _LOCAL),
}

#: Names that people know from other tools.
_SYNONYMS = {
    "lr": "learning_rate",
    "batch_size": "per_device_train_batch_size",
    "micro_batch_size": "per_device_train_batch_size",
    "train_batch_size": "per_device_train_batch_size",
    "epochs": "num_train_epochs",
    "num_epochs": "num_train_epochs",
    "steps": "max_steps",
    "grad_accum": "gradient_accumulation_steps",
    "accumulation": "gradient_accumulation_steps",
    "max_seq_length": "max_length",
    "max_seq_len": "max_length",
    "cutoff_len": "max_length",
    "warmup": "warmup_steps",
    "wd": "weight_decay",
    "grad_clip": "max_grad_norm",
    "scheduler": "lr_scheduler_type",
    "optimizer": "optim",
}

#: Whole numbers from 1 on; the batch plan divides by them.
_COUNTS = ("per_device_train_batch_size", "gradient_accumulation_steps")

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def trainer_fields(recipe: str) -> set[str]:
    """Names that the recipe's trainer accepts. LookupError when trl is not installed or the recipe has no trainer."""
    return set(_annotations(recipe))


def _annotations(recipe: str) -> dict[str, str]:
    if recipe not in CONFIGS:
        raise LookupError(f"the recipe {recipe} has no trainer configuration")
    return dataclass_fields(*CONFIGS[recipe])


def check_arguments(recipe: str, args: dict[str, Any]) -> list[Finding]:
    """Unknown arguments with the nearest valid one, those that Seesaw sets itself, and texts where a number belongs."""
    if recipe in UNTRAINED:
        fix = "Remove it; the settings of this recipe stand under `options`"
        return [
            Finding("bad-argument", "error", f"the recipe {recipe} has no argument {name}", fix, f"args.{name}")
            for name in args
            if name not in _UNTRAINED_ARGUMENTS
        ]
    if recipe not in CONFIGS or not args:
        return []
    try:
        known = _annotations(recipe)
    except LookupError:
        return []  # a missing package is a finding of its own
    findings = []
    for name, value in args.items():
        message, fix = _problem(name, value, recipe, known)
        if message:
            findings.append(Finding("bad-argument", "error", message, fix, f"args.{name}"))
    return findings


def _problem(name: str, value: Any, recipe: str, known: dict[str, str]) -> tuple[str, str]:
    if name in RESERVED:
        return f"the argument {name} cannot be set for a stage", f"Remove it; {RESERVED[name]}"
    if name not in known:
        offered = sorted(known.keys() - RESERVED.keys())
        synonym = _SYNONYMS.get(name)
        near = (
            [synonym]
            if synonym in known
            else difflib.get_close_matches(name, offered, 1, 0.6)
            or [item for item in offered if name.lower() in item][:1]
        )
        fix = f"Did you mean {near[0]}?" if near else "Remove it; the trl documentation of SFTConfig lists the names"
        return f"the recipe {recipe} has no argument {name}", fix.replace("SFTConfig", CONFIGS[recipe][1])
    annotation = known[name]
    accepts_text = re.search(r"str|Any|dict|Literal|Enum|Strategy|Type|Path", annotation) is not None
    if isinstance(value, str) and not accepts_text and re.search(r"\b(int|float|bool)\b", annotation):
        kind = "true or false" if re.search(r"\bbool\b", annotation) else "a number"
        hint = (
            f"Write {value} without quotes"
            if kind == "a number" and _NUMBER.fullmatch(value.strip())
            else f"Give {kind}"
        )
        return f"the argument {name} must be {kind}, not the text {value!r}", hint
    if isinstance(value, bool) and re.fullmatch(r"(int|float)( \| None)?|Optional\[(int|float)\]", annotation):
        return f"the argument {name} must be a number, not {str(value).lower()}", "Give a number"
    if name in _COUNTS and not isinstance(value, str) and (value is None or value < 1 or value != int(value)):
        return f"the argument {name} must be a whole number from 1 on, not {value}", "Give at least 1"
    return "", ""
