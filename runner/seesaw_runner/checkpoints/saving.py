"""Checkpoints: written whole or not at all, in Hugging Face layout, and without pickle anywhere.

`checkpoints/step-000120/` holds the model (or the adapter), the tokenizer, `seesaw.json` and `trainer_state.json`; what
only a resume needs is in its `resume/` folder: optimizer tensors as safetensors, everything else as JSON. The last
checkpoint of a stage has no `resume/`: there is nothing to go on with.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from seesaw_runner.checkpoints.safetensors_header import HeaderError, read_header

#: A router's file names its experts by hash, so that their weights count as well.
WEIGHT_FILES = ("model*.safetensors", "adapter_model*.safetensors", "router.safetensors")


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used; the message names the folder and what to do."""


def weights_hash(folder: str | Path) -> str:
    """Hex SHA-256 over the bytes of the weight files in name order; of one file it is what `sha256sum` prints.

    CheckpointError when the folder has none: pickled weights are never read.
    """
    files = weight_files(folder)
    if not files:
        raise no_weights(folder)
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as handle:
            while block := handle.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def no_weights(folder: str | Path) -> CheckpointError:
    return CheckpointError(
        f"{folder} has no safetensors weights. Seesaw never unpickles: save the model with safetensors "
        f"(save_pretrained does)."
    )


def weight_files(folder: str | Path) -> list[Path]:
    folder = Path(folder)
    return sorted(p for pattern in WEIGHT_FILES for p in folder.glob(pattern))


def step_name(step: int) -> str:
    return f"step-{step:06d}"


def identity(folder: str | Path, digest: str | None = None, under: str | None = None) -> str:
    """What decides a checkpoint's outputs: its weights (`digest`, hashed if not given), its config, and for an adapter
    what it was trained on, all the way down. Two folders of one identity are one model.
    under: the identity of an adapter's base, where it is known."""
    folder = Path(folder)
    about = folder / "adapter_config.json"
    parts = [digest or weights_hash(folder)]
    for name in (about,) if about.is_file() else (folder / "config.json", folder / "generation_config.json"):
        parts.append(hashlib.sha256(name.read_bytes()).hexdigest() if name.is_file() else "")
    if about.is_file():
        base = Path(str(json.loads(about.read_text(encoding="utf-8")).get("base_model_name_or_path") or ""))
        parts.append(under or (identity(base) if base.is_dir() else str(base)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def complete_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of whole checkpoints below `checkpoints/`, oldest first. Temporary and torn folders are not among
    them.
    """
    found = []
    for path in folder.glob("step-*") if folder.is_dir() else []:
        try:
            about = json.loads((path / "seesaw.json").read_text(encoding="utf-8"))
            found.append((int(about["step"]), path))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found)


def newest_resumable(folder: Path) -> tuple[int, Path] | None:
    """The newest whole checkpoint that has resume state and weights with the recorded hash, or None."""
    for step, path in reversed(complete_checkpoints(folder)):
        resume = path / "resume"
        needed = (path / "trainer_state.json", *(resume / n for n in ("optimizer.json", "scheduler.json")))
        if all(p.is_file() for p in needed) and _readable(resume / "optimizer.safetensors") and intact(path):
            return step, path
    return None


def intact(path: Path) -> bool:
    """Whether a checkpoint's weights have the hash that its seesaw.json records."""
    try:
        about = json.loads((path / "seesaw.json").read_text(encoding="utf-8"))
        return weights_hash(path) == about["weights_hash"]
    except (OSError, ValueError, KeyError, TypeError, CheckpointError):
        return False


def _readable(path: Path) -> bool:
    try:
        read_header(path)
        return True
    except (OSError, HeaderError):
        return False


def remove_leftovers(run: Path) -> None:
    """What writers of dead attempts left under temporary names: half-written checkpoints and traces. Called at the
    start of an attempt, when no other process writes to the run folder.

    A checkpoint that was being replaced by a second save of its step is put back if its successor was never published.
    """
    for old in (run / "checkpoints").glob(".step-*.old"):
        final = old.with_name(old.name.split(".")[1])
        if not final.exists() and intact(old):
            os.rename(old, final)
    for doomed in (run / "checkpoints").glob(".step-*"):
        shutil.rmtree(doomed, ignore_errors=True)
    for doomed in [*run.glob("traces/*/.*.tmp"), *run.glob("buffer.json.*.tmp")]:
        doomed.unlink(missing_ok=True)


def begin(folder: Path, step: int) -> Path:
    """An empty temporary folder next to the checkpoint's final place; leftovers of dead attempts are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f".{step_name(step)}.*.tmp"):
        shutil.rmtree(old, ignore_errors=True)
    temporary = folder / f".{step_name(step)}.{os.getpid()}.tmp"
    (temporary / "resume").mkdir(parents=True)
    return temporary


def publish(temporary: Path, step: int) -> Path:
    """fsync of every file, then the rename that makes the checkpoint exist. Returns its path."""
    for root, _, names in os.walk(temporary):
        for name in names:
            _sync(os.path.join(root, name))
        _sync(root)
    final = temporary.parent / step_name(step)
    if final.exists():  # the same step again, after a resume from an earlier one
        doomed = temporary.with_suffix(".old")
        os.rename(final, doomed)
        os.rename(temporary, final)
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        os.rename(temporary, final)
    _sync(final.parent)
    return final


def _sync(path: str | Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # a folder on Windows
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def folder_bytes(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


# ---- optimizer, scheduler, random numbers


def save_optimizer(folder: Path, optimizer) -> None:
    """`optimizer.safetensors` (tensors of the state, named `<parameter index>.<key>`) and `optimizer.json` (the rest).

    CheckpointError when the optimizer keeps something that is neither a tensor nor JSON.
    """
    state = optimizer.state_dict()
    tensors, plain = {}, {}
    for index, values in state["state"].items():
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{index}.{key}"] = value.detach().cpu().contiguous()
            else:
                plain[f"{index}.{key}"] = value
    try:
        text = {"groups": _plain(state["param_groups"]), "state": _plain(plain)}
        write_json(folder / "optimizer.json", text)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"The optimizer's state cannot be saved without pickle ({error}). Use an optimizer of torch, e.g. "
            f"optim: adamw_torch."
        ) from error
    save_file(tensors, folder / "optimizer.safetensors")


def load_optimizer(folder: Path, optimizer) -> None:
    """Reads what `save_optimizer` wrote; tensors go where the optimizer's own parameters are."""
    text = json.loads((folder / "optimizer.json").read_text(encoding="utf-8"))
    state: dict[int, dict[str, Any]] = {}
    for name, value in [*load_file(folder / "optimizer.safetensors").items(), *text["state"].items()]:
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    groups = [{k: tuple(v) if k == "betas" else v for k, v in group.items()} for group in text["groups"]]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def save_scheduler(folder: Path, scheduler) -> None:
    write_json(folder / "scheduler.json", _plain(scheduler.state_dict()))


def load_scheduler(folder: Path, scheduler) -> None:
    scheduler.load_state_dict(json.loads((folder / "scheduler.json").read_text(encoding="utf-8")))


def save_random(folder: Path, rank: int) -> None:
    """State of Python's, numpy's and torch's generators of this process, as `random-<rank>.json`."""
    version, words, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state()
    value = {
        "python": [version, list(words), gauss],
        "numpy": [kind, keys.tolist(), int(position), int(has_gauss), float(cached)],
        "torch": torch.random.get_rng_state().numpy().tobytes().hex(),
        "cuda": torch.cuda.get_rng_state().numpy().tobytes().hex() if torch.cuda.is_available() else None,
    }
    write_json(folder / f"random-{rank}.json", value)


def load_random(folder: Path, rank: int) -> None:
    """Puts the generators back; a missing file (another number of processes) changes nothing."""
    path = folder / f"random-{rank}.json"
    if not path.is_file():
        return
    value = json.loads(path.read_text(encoding="utf-8"))
    version, words, gauss = value["python"]
    random.setstate((version, tuple(words), gauss))
    kind, keys, position, has_gauss, cached = value["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.random.set_rng_state(_bytes(value["torch"]))
    if value["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(_bytes(value["cuda"]))


def _bytes(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def _plain(value: Any) -> Any:
    """JSON-able copy: tuples become lists, tensors of one number become numbers. TypeError for anything else."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__}")
