"""The model under an adapter that another tool has saved: found only where its config says, never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.run_folder import StageError


def adapter_base(folder: Path, cwd: Path) -> Path:
    """The folder that `base_model_name_or_path` names: absolute, or relative to the adapter or to where the command
    runs. StageError `bad-checkpoint` when it names none on this machine.
    """
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    name = str(config.get("base_model_name_or_path") or "")
    for place in (folder / name, cwd / name) if name else ():
        if place.is_dir():
            return place
    what = f"it was trained on {name}, which is no folder here" if name else "it does not name the model it belongs to"
    raise StageError("bad-checkpoint", f"The adapter {folder.name} cannot be scored: {what}", str(folder))


def fits(folder: Path, model: Path) -> bool:
    """Whether every LoRA pair of an adapter has a matrix of its shape in a model's files."""
    weights = inspect_checkpoint(model).tensors
    adapter = inspect_checkpoint(folder).tensors
    shapes: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, tensor in adapter.items():
        for part in ("lora_A", "lora_B"):
            if f".{part}." in name:
                module = name.removeprefix("base_model.model.").split(f".{part}.")[0]
                shapes.setdefault(module, {})[part] = tensor.shape
    return bool(shapes) and all(
        {"lora_A", "lora_B"} <= pair.keys()
        and f"{module}.weight" in weights
        and weights[f"{module}.weight"].shape == (pair["lora_B"][0], pair["lora_A"][-1])
        for module, pair in shapes.items()
    )


def load_foreign(folder: Path, cwd: Path, load) -> Any:
    """A checkpoint as one plain model. load: folder → model, of checkpoints whose base needs no search."""
    if not (folder / "adapter_config.json").is_file():
        return load(folder)
    base = adapter_base(folder, cwd)
    if base.resolve() == folder.resolve():
        raise StageError("bad-checkpoint", f"The adapter {folder.name} names itself as its base", str(folder))
    from seesaw_runner.training.adapters import put_adapter

    model = load(base)
    try:
        return put_adapter(model, folder).merge_and_unload()
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StageError(
            "bad-checkpoint", f"The adapter {folder.name} cannot be applied: {first}", str(folder)
        ) from error
