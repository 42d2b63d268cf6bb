"""Checkpoints that other tools write: Hugging Face folders, adapters, Megatron's `iter_*`. Which are whole, which are
still being written, and why the others cannot be scored. Judged by names, sizes and headers; nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from seesaw_runner.checkpoints.files import inspect_checkpoint

FORMATS = ("auto", "hf", "slime", "adapter")
TRACKER = "latest_checkpointed_iteration.txt"
_MEGATRON = re.compile(r"(?:iter_(\d+)|release)\Z")
#: Words of `inspect_checkpoint` for what may only be unfinished.
_UNFINISHED = re.compile(r"incomplete|is empty|is missing|being written|no weights|cannot be read|does not hold")


@dataclass(frozen=True)
class Found:
    """One folder. `state`: ready (whole and readable), waiting (perhaps unfinished) or refused, with `why` as the rest
    of a sentence that begins with the folder's name. step None: its name has none.
    """

    path: Path
    step: int | None
    state: str
    kind: str = ""
    why: str = ""
    fix: str = ""


def look_at(path: Path, step: int | None, form: str = "auto") -> Found:
    """What a folder is now. form: one of FORMATS; `auto` tells by what is in it."""
    megatron = _MEGATRON.match(path.name)
    if form in ("auto", "slime") and (megatron or _is_megatron(path)):
        copy = _hf_copy(path, step)
        if copy is None:
            return Found(path, step, *_megatron_state(path, step))
        path = copy  # judged like any other folder
    about = inspect_checkpoint(path)
    step = step if step is not None else state_step(path)
    if not about.usable:
        errors = [f for f in about.findings if f.severity == "error"]
        why, fix = errors[0].message, errors[0].fix
        state = "waiting" if _UNFINISHED.search(why) else "refused"
        return Found(path, step, state, about.kind or "", why, fix)
    if form == "adapter" and about.kind != "adapter":
        return Found(path, step, "refused", about.kind or "", "is a full model, and `format` is adapter", _FORMAT)
    if form == "hf" and about.kind != "full":
        return Found(path, step, "refused", about.kind or "", "is an adapter, and `format` is hf", _FORMAT)
    if form == "slime" and not (megatron or path.name.startswith("hf_")):
        return Found(path, step, "refused", about.kind or "", "is no iter_* or hf_iter_* folder", _FORMAT)
    return Found(path, step, "ready", about.kind or "full")


_FORMAT = "Set `format: auto`, or narrow `checkpoints`"


def is_checkpoint(path: Path) -> bool:
    """Whether a folder looks like a checkpoint at all, finished or not."""
    if _STEPS.search(path.name) or _MEGATRON.match(path.name):
        return True
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(re.search(r"\.safetensors(\.index\.json)?\Z|\.distcp\Z|^(adapter_)?config\.json\Z", n) for n in names)


_STEPS = re.compile(r"(?:^|[-_.])(?:checkpoint|ckpt|iter|step)s?[-_]?\d+", re.IGNORECASE)


def signature(path: Path) -> str:
    """Changes whenever what makes the model does (weights, their index, JSON): names, sizes, times. Optimizer files
    come later and do not count. Empty when the folder is gone.
    """
    lines = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if _MODEL_FILES.search(entry.name) and entry.name not in ("trainer_state.json", "seesaw.json"):
                    about = entry.stat()
                    lines.append(f"{entry.name} {about.st_size} {about.st_mtime_ns}")
    except FileNotFoundError:
        return "" if not path.is_dir() else "a link in it leads nowhere"
    except OSError:
        return ""
    return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()


_MODEL_FILES = re.compile(r"\.safetensors|\.json\Z|\.distcp\Z|\.bin\Z|\.tmp|\.part|\.incomplete")


def state_step(path: Path) -> int | None:
    """`global_step` of its trainer_state.json."""
    try:
        step = json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))["global_step"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return step if isinstance(step, int) and not isinstance(step, bool) and step >= 0 else None


def resumable(path: Path) -> bool:
    """Whether a trainer has finished the folder: Hugging Face's writes trainer_state.json last."""
    return not re.fullmatch(r"checkpoint-\d+", path.name) or (path / "trainer_state.json").is_file()


def tracked(folder: Path) -> int | str | None:
    """What Megatron's tracker file in `folder` says: the newest whole iteration, "release", or None without it."""
    try:
        text = (folder / TRACKER).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() and len(text) <= 15 else "release" if text == "release" else None


def _is_megatron(path: Path) -> bool:
    try:
        return any(n.endswith(".distcp") or n in ("common.pt", ".metadata") for n in os.listdir(path))
    except OSError:
        return False


def _hf_copy(path: Path, step: int | None) -> Path | None:
    """The Hugging Face copy of an iteration: `hf_iter_0000020` beside it, however the number is padded."""
    if step is None:
        return None
    try:
        beside = sorted(path.parent.glob("hf_iter_*"))
    except OSError:
        return None
    numbers = ((p, re.fullmatch(r"hf_iter_(\d+)", p.name)) for p in beside if p.is_dir())
    return next((p for p, m in numbers if m and int(m.group(1)) == step), None)


def _megatron_state(path: Path, step: int | None) -> tuple[str, str, str, str]:
    if path.name == "release":
        return (
            "refused",
            "megatron",
            "holds the weights it began with, in Megatron's format",
            "That is as it should be",
        )
    newest = tracked(path.parent)
    if isinstance(newest, int) and step is not None and step > newest:
        return "waiting", "megatron", f"is still being written: {TRACKER} names iteration {newest}", _WAIT
    what = "has Megatron's distributed shards (.distcp)" if _is_megatron(path) else "has no weights that can be read"
    return (
        "waiting",  # a copy may come
        "megatron",
        f"{what}, which need Megatron to be read and hold pickled data",
        f"Convert it beside as hf_{path.name} (slime: tools/convert_torch_dist_to_hf.py); it is scored then",
    )


_WAIT = "Wait until it is complete"
