"""Where a model that is never trained goes: whole on the stage's device, or in parts over all GPUs and the CPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from seesaw_runner.checkpoints.saving import weight_files
from seesaw_runner.run_folder import StageError

#: Share of a device's free memory that weights may take; activations and the key-value cache need the rest.
WEIGHTS_SHARE = 0.85
#: Share of the main memory, which the dataset and the process itself need too.
MAIN_SHARE = 0.7


@dataclass(frozen=True)
class Placement:
    """Bytes that the parts may take, by GPU index and `cpu`: accelerate's `max_memory`. GPUs fill up by their index."""

    max_memory: dict[int | str, int]


class TooLarge(ValueError):
    """A model that fits nowhere, as a sentence."""


def place(
    need: int, gpus: Sequence[tuple[int, int]], main: int | None, *, later: int = 0, name: str = "The model"
) -> Placement | None:
    """None where the model fits on the first GPU, else its parts. All figures are bytes.

    need: of the weights as loaded. gpus: (index, free), the stage's own first; none: there is only the main memory, and
    nothing to choose. main: free main memory, None where unknown. later: what the training will take on the first GPU
    after this (gradients, optimizer). Raises TooLarge when not even all of it together is enough.
    """
    if not gpus:
        return None
    room = [max(0, int(free * WEIGHTS_SHARE) - (later if k == 0 else 0)) for k, (_, free) in enumerate(gpus)]
    if need <= room[0]:
        return None
    left = None if main is None else int(main * MAIN_SHARE)
    total = sum(room) + (left or 0)
    if left is not None and need > total:
        free = " and ".join(
            (f"{_gib(sum(room))} on {len(gpus)} GPU{'s' * (len(gpus) > 1)}", f"{_gib(left)} of main memory")
        )
        raise TooLarge(
            f"{name} takes {_gib(need)}, but only {free} can be had. End other processes, use a larger machine or a "
            "smaller model, or let a server answer for it (an endpoint)."
        )
    parts: dict[int | str, int] = {index: size for (index, _), size in zip(gpus, room, strict=True) if size}
    return Placement({**parts, "cpu": need if left is None else left})


def frozen_placement(folder: str | Path, device, *, later: int = 0, alone: bool = True) -> Placement | None:
    """`place` for a checkpoint on this machine as it is now. StageError `out-of-memory` when it fits nowhere.

    device: training.device.Device. alone: this process has the machine's other GPUs to itself, which it has not when
    other processes train on them.
    """
    if device.kind != "cuda":
        return None
    others = [i for i in range(torch.cuda.device_count()) if i != device.index] if alone else []
    gpus = [(i, free_bytes(torch.device("cuda", i)) or 0) for i in (device.index, *others)]
    try:
        return place(
            loaded_bytes(folder, device.frozen_dtype.itemsize),
            gpus,
            free_bytes(torch.device("cpu")),
            later=later,
            name=f"The model in {folder}",
        )
    except TooLarge as error:
        raise StageError("out-of-memory", str(error), str(folder)) from error


def in_parts(model: torch.nn.Module) -> bool:
    """Whether a model lies on several devices, or waits in main memory or on disk: then its parameters are on `meta`
    and only its own forward pass puts them where they are needed.
    """
    devices = {parameter.device for parameter in model.parameters()}
    return len(devices) > 1 or any(device.type == "meta" for device in devices)


def input_device(model: torch.nn.Module) -> torch.device:
    """Where a model takes its ids: where its first numbers are that are anywhere."""
    found = next((p.device for p in model.parameters() if p.device.type != "meta"), None)
    return torch.device("cpu") if found is None else found


def told_parts(model: torch.nn.Module) -> tuple[str, bool]:
    """The devices of a model in parts for people, and whether some of it waits outside of the GPUs."""
    parts = {str(part) for part in (getattr(model, "hf_device_map", None) or {}).values()}
    names = {"cpu": "main memory", "disk": "disk"}
    words = [names.get(part) or f"GPU {part.removeprefix('cuda:')}" for part in sorted(parts)]
    return " and ".join(words), bool(parts & names.keys())


def loaded_bytes(folder: str | Path, item: int) -> int:
    """Bytes of a checkpoint's weights in a type of `item` bytes; an adapter is merged into its base, so that counts."""
    from seesaw_runner.checkpoints.files import inspect_checkpoint

    folder = Path(folder)
    about = folder / "adapter_config.json"
    if about.is_file():
        under = str(json.loads(about.read_text(encoding="utf-8")).get("base_model_name_or_path") or "")
        if Path(under).is_dir() and Path(under).resolve() != folder.resolve():
            return loaded_bytes(under, item)
    checkpoint = inspect_checkpoint(folder)
    size = sum(file.stat().st_size for file in weight_files(folder))
    return checkpoint.parameters * item if checkpoint.kind != "adapter" and checkpoint.parameters else size


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a GPU, with what this process's allocator keeps unused; else of the machine; None if unknown."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + max(0, kept)
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
