"""Puts an adapter on a model so that nothing of it is left over, and says of which model it was."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.checkpoints.saving import identity
from seesaw_runner.weights.names import unwrapped


class Misfit(ValueError):
    """An adapter that is not of this model, as the end of a sentence about it."""


def put_adapter(model: torch.nn.Module, folder: str | Path) -> torch.nn.Module:
    """PEFT's model with the adapter of a folder. Misfit where shapes differ, or where some of its matrices have no
    place in the model or some of the model's find none: PEFT passes over both.
    """
    from peft import PeftModel, get_peft_model_state_dict

    held = inspect_checkpoint(folder).tensors
    if misfit := _shapes(model, held):
        raise Misfit(misfit)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = PeftModel.from_pretrained(model, str(folder))
    lacking = any("missing adapter keys" in str(one.message) for one in told)
    expected = {key for key in get_peft_model_state_dict(found, save_embedding_layers=False) if ".lora_" in key}
    names = {key for key in held if ".lora_" in key}
    missing, unexpected = sorted(expected - names), sorted(names - expected)
    if missing and lacking:
        raise Misfit(f"{len(missing)} of the {len(expected)} matrices it should have are not in it, first {missing[0]}")
    if unexpected and not missing:
        raise Misfit(
            f"{len(unexpected)} of its {len(names)} matrices have no place in the model, first {unexpected[0]}"
        )
    return found


def _shapes(model: torch.nn.Module, held: dict) -> str | None:
    """The first pair of plain matrices that cannot be added to the model's. Turned over (Conv1D) is as good."""
    own = {unwrapped(name): tuple(parameter.shape) for name, parameter in model.named_parameters()}
    for name, tensor in held.items():
        if not name.endswith(".lora_A.weight") or len(tensor.shape) != 2:
            continue
        other = held.get(name.replace(".lora_A.", ".lora_B."))
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        had = own.get(f"{module}.weight")
        if other is None or had is None or len(had) != 2 or len(other.shape) != 2:
            continue
        wanted = (other.shape[0], tensor.shape[1])
        if had not in (wanted, wanted[::-1]):
            return f"its {module} is {wanted[0]}×{wanted[1]}, and the model's is {had[0]}×{had[1]}"
    return None


def base_doubt(folder: str | Path, base: str | Path, found: str | None = None) -> tuple[str, bool] | None:
    """What is to be said about an adapter's base besides its shapes, and whether it is a warning: it was trained on
    other weights than are there now, or nothing says on which. None where it is the same.

    found: the identity of the base, where it is known already.
    """
    recorded = recorded_base(folder)
    if recorded is None:
        return (f"Nothing in {folder} says of which weights its base had, so {base} is not verified.", False)
    if recorded == (found or identity(base)):
        return None
    return (
        f"The adapter in {folder} was trained on other weights than {base} has now. Its shapes fit, so it is used, but "
        "its answers may be nonsense.",
        True,
    )


def recorded_base(folder: str | Path) -> str | None:
    """The identity of what an adapter was trained on, as Seesaw wrote it beside it; None for other tools' adapters."""
    try:
        said = json.loads((Path(folder) / "seesaw.json").read_text(encoding="utf-8")).get("base")
    except (OSError, ValueError, AttributeError):
        return None
    return said if isinstance(said, str) else None
