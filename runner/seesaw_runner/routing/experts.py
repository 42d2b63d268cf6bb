"""Experts as a router takes them: plain LoRA adapters of this very base, checked before anything is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from seesaw_runner.checkpoints import saving
from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.adapters import recorded_base
from seesaw_runner.training.compatible import must_share_vocabulary
from seesaw_runner.weights.lora import LoraAdapter
from seesaw_runner.weights.source import WeightSource


@dataclass(frozen=True)
class Expert:
    """`rank`: of its largest matrices."""

    skill: str
    folder: Path
    label: str
    weights_hash: str
    rank: int


def read_experts(folders: Mapping[str, Path], labels: Mapping[str, str], base: str | Path) -> list[Expert]:
    """folders, labels: by skill. base: the checkpoint that the experts are to be put on.

    StageError for a full checkpoint, an adapter of another base, of another vocabulary, of shapes that do not fit or of
    a kind that cannot be switched by row, and for an expert that the base already contains.
    """
    base = Path(base)
    under = _chain(base)
    for skill, folder in folders.items():
        if folder.resolve() in under and (folder / "adapter_config.json").is_file():
            raise _unfit(
                folder,
                f"{_named(skill, labels[skill])} is already contained in the model that the stage starts from, and "
                "would count twice. Start the stage `from: base`",
            )
    shapes = WeightSource(base, "The base of the experts")
    return [_read(skill, folder, labels[skill], base, shapes) for skill, folder in folders.items()]


def _read(skill: str, folder: Path, label: str, base: Path, shapes: WeightSource) -> Expert:
    who = _named(skill, label)
    checkpoint = inspect_checkpoint(folder)
    if checkpoint.kind == "full":
        raise _unfit(
            folder,
            f"{who} is a full checkpoint, not an adapter. Train it with the recipe `experts`, or name an adapter",
        )
    errors = [finding for finding in checkpoint.findings if finding.severity == "error"]
    if errors:
        raise _unfit(folder, f"{who} cannot be read: {errors[0].message}. {errors[0].fix}")
    must_share_vocabulary(base, folder, who)
    said = str(checkpoint.config.get("base_model_name_or_path") or "")
    found = next((p for p in (folder / said, Path(said)) if said and p.is_dir()), None)
    if found is None:
        raise _unfit(
            folder,
            f"{who} was trained on {said or 'an unnamed model'}, which is no folder on this machine, so nothing says "
            f"whether it fits. Write the base's path into base_model_name_or_path of {folder / 'adapter_config.json'}",
        )
    if found.resolve() != base.resolve() and saving.identity(found) != saving.identity(base):
        raise _unfit(
            folder,
            f"{who} was trained on {found}, and the stage starts from {base}, which has other weights. Experts of one "
            "router stand on one base: start the stage there, or train the expert again",
        )
    recorded = recorded_base(folder)
    if recorded is not None and recorded != saving.identity(base):
        raise _unfit(
            folder,
            f"{who} was trained on other weights than {base} has now: its shapes fit, but its answers would be "
            "nonsense. Give it the base it was trained on, or train the expert again",
        )
    try:
        adapter = LoraAdapter(checkpoint, label)
    except StageError as error:
        raise _unfit(folder, f"{who} cannot be switched by prompt: {_reason(error)}. Train it as plain LoRA") from error
    outer = [n for n in [*adapter.replaced, *adapter.parts] if n in adapter.replaced or _outside(n)]
    if outer:
        raise _unfit(
            folder,
            f"{who} also changes {outer[0]}; a router only switches layers between the embedding and the output head. "
            "Train it without modules_to_save, on `target_modules: all-linear`",
        )
    for name in adapter.parts:
        if name not in shapes or shapes.shape(name) != adapter.shape(name):
            had = f"{shapes.shape(name)}" if name in shapes else "missing"
            raise _unfit(folder, f"{who} does not fit the base: its {name} is {adapter.shape(name)}, there it is {had}")
    if not all(_finite(adapter, key) for part in adapter.parts.values() for key in (part.a, part.b)):
        raise _unfit(
            folder, f"{who} holds NaN or infinite numbers: its training broke. Use an earlier checkpoint of it"
        )
    rank = max(part.rank for part in adapter.parts.values())
    return Expert(skill, folder, label, saving.weights_hash(folder), rank)


def _named(skill: str, label: str) -> str:
    return f"The expert of {skill} ({label})"


def _chain(folder: Path) -> list[Path]:
    """A checkpoint and every adapter and model that it rests on."""
    found: list[Path] = []
    while folder.resolve() not in found:
        found.append(folder.resolve())
        about = folder / "adapter_config.json"
        if not about.is_file():
            break
        folder = Path(str(json.loads(about.read_text(encoding="utf-8")).get("base_model_name_or_path") or ""))
    return found


def _outside(name: str) -> bool:
    return bool(re.search(r"(?:^|\.)(lm_head|embed_out|embed_tokens|wte|wpe|embed_in)\.weight$", name))


def _finite(adapter: LoraAdapter, key: str) -> bool:
    return bool(adapter.matrix(key).isfinite().all())


def _reason(error: StageError) -> str:
    return str(error).partition("cannot be expanded exactly: ")[2].partition(". Merge it")[0] or str(error)


def _unfit(folder: Path, message: str) -> StageError:
    return StageError("bad-checkpoint", f"{message}.", str(folder))
