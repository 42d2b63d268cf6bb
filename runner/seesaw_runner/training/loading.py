"""Models and tokenizers from local folders: safetensors only, no remote code, adapters merged in chain order."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.checkpoints.saving import no_weights, weight_files
from seesaw_runner.checkpoints.wrappers import prefixes
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.adapters import Misfit, put_adapter
from seesaw_runner.training.placement import Placement
from seesaw_runner.weights.names import WRAPPERS


def refuse_router(folder: str) -> None:
    """StageError for a router's checkpoint: it is a base and several experts, not one model."""
    if (Path(folder) / "router.json").is_file():
        raise StageError(
            "bad-checkpoint",
            f"{folder} is a router: a base and several experts, not one model that a stage could start from. Start "
            "from the base (`from: base`) or from one expert, or merge the experts first.",
            folder,
        )


def load_tokenizer(folder: str):
    """The tokenizer of a checkpoint, with a pad token. StageError `bad-checkpoint` when it has none."""
    refuse_router(folder)
    try:
        if (Path(folder) / "config.json").is_file():
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        else:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise StageError(
            "bad-checkpoint", f"The tokenizer in {folder} cannot be loaded: {_first_line(error)}", folder
        ) from error
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise StageError(
                "bad-checkpoint",
                f"The tokenizer in {folder} has neither a pad nor an end token. Set eos_token in "
                f"tokenizer_config.json.",
                folder,
            )
        tokenizer.pad_token = tokenizer.eos_token  # masks follow positions, not ids, so the end token is still trained
    return tokenizer


def load_model(
    folder: str,
    dtype: torch.dtype,
    device: torch.device,
    attention: str | None = None,
    *,
    placement: Placement | None = None,
    scratch: str | Path | None = None,
) -> torch.nn.Module:
    """A checkpoint as one plain model on `device`. An adapter checkpoint is merged into what it was trained on,
    recursively.

    placement: the parts of a frozen model that does not fit on `device`; accelerate then moves what a forward pass
    needs. scratch: where an adapter's merged model is written for that time (a folder on a disk with room).
    StageError `bad-checkpoint` for pickled weights, missing shards or tensors that do not fit, and for a router.
    """
    refuse_router(folder)
    about = Path(folder) / "adapter_config.json"
    if about.is_file() and placement is not None:
        with tempfile.TemporaryDirectory(prefix=".merged-", dir=scratch) as merged:
            save_merged(folder, merged, dtype)
            return load_model(merged, dtype, device, attention, placement=placement)
    if about.is_file():
        config = json.loads(about.read_text(encoding="utf-8"))
        under = str(config.get("base_model_name_or_path") or "")
        if not Path(under).is_dir():
            raise StageError(
                "bad-checkpoint",
                f"The adapter in {folder} was trained on {under or 'an unnamed model'}, which is not a folder on "
                f"this machine.",
                folder,
            )
        base = load_model(under, dtype, device, attention)
        try:
            merged = put_adapter(base, folder).merge_and_unload().requires_grad_(True)
            merged.name_or_path = str(folder)  # what an adapter trained on it will name as its base
            return merged
        except Misfit as error:
            raise StageError(
                "bad-checkpoint",
                f"The adapter in {folder} does not fit {under}: {error}. Give it the base it was trained on.",
                folder,
            ) from error
        except Exception as error:
            raise StageError(
                "bad-checkpoint", f"The adapter in {folder} cannot be applied: {_first_line(error)}", folder
            ) from error
    if not weight_files(folder):
        raise StageError("bad-checkpoint", str(no_weights(folder)), folder)
    options: dict[str, Any] = {"attn_implementation": attention} if attention else {}
    if placement is not None:
        options |= {"device_map": "auto", "max_memory": dict(placement.max_memory)}
    wrapped = bool(prefixes(inspect_checkpoint(folder).tensors))
    if wrapped:
        options["key_mapping"] = {WRAPPERS.pattern: ""}
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            **options,
        )
    except Exception as error:
        raise StageError(
            "bad-checkpoint",
            f"The model in {folder} cannot be loaded: {_first_line(error)} Copy the checkpoint again, or choose "
            f"an earlier one.",
            folder,
        ) from error
    if wrapped:
        _forget_prefixes(model)
    missing = sorted(info.get("missing_keys") or [])
    if missing:
        raise StageError(
            "bad-checkpoint",
            f"The model in {folder} lacks {len(missing)} tensors, the first is {missing[0]}. Copy the checkpoint "
            f"again, or choose an earlier one.",
            folder,
        )
    return model if placement is not None else model.to(device)


def _forget_prefixes(model: torch.nn.Module) -> None:
    """Transformers would put a prefix that was taken off back when the model is saved."""
    done = getattr(model, "_weight_conversions", None) or []
    model._weight_conversions = [one for one in done if WRAPPERS.pattern not in one.source_patterns] or None


def save_merged(folder: str | Path, out: str | Path, dtype: torch.dtype) -> None:
    """An adapter and what it was trained on as one full model without a tokenizer, merged in main memory."""
    load_model(str(folder), dtype, torch.device("cpu")).save_pretrained(out)


def model_shapes(folder: str) -> torch.nn.Module:
    """A checkpoint's model without its numbers; under an adapter that of its base."""
    about = Path(folder) / "adapter_config.json"
    if about.is_file():
        return model_shapes(json.loads(about.read_text(encoding="utf-8")).get("base_model_name_or_path") or "")
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def context_length(model: torch.nn.Module) -> int | None:
    """How many positions the model has, or None where its config does not say."""
    found = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    return line if line.endswith(".") else line + "."
