"""One checkpoint as named float32 tensors, read a few rows at a time, whatever it is on disk: one file, shards, an
adapter on a base, an adapter on an adapter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from seesaw_runner.checkpoints.files import Checkpoint, inspect_checkpoint
from seesaw_runner.run_folder import StageError
from seesaw_runner.weights.blocks import grid, read_rows
from seesaw_runner.weights.lora import LoraAdapter
from seesaw_runner.weights.names import WRAPPERS, unwrapped

_LONGEST_CHAIN = 16
_HEAD = "lm_head.weight"


class WeightSource:
    """`label`: what sentences call it. `names`: its tensors in file order. `tied`: the output head is the embedding.
    `adapters`: outermost last. `notes`: what a person should know about how it was read.
    """

    def __init__(self, folder: str | Path, label: str | None = None):
        self.folder, self.label = Path(folder), label or str(folder)
        self.notes: list[str] = []
        self.adapters: list[LoraAdapter] = []
        self.root = self._open(self.folder)
        self.config: dict[str, Any] = self.root.config
        self._keys = self._canonical()
        self.tied = self._tie()
        self._shapes = {name: self.root.tensors[key].shape for name, key in self._keys.items()}
        for adapter in self.adapters:
            self._apply(adapter)

    # ---- opening

    def _open(self, folder: Path) -> Checkpoint:
        if len(self.adapters) > _LONGEST_CHAIN:
            raise StageError(
                "bad-checkpoint", f"{self.label} rests on more than {_LONGEST_CHAIN} adapters, or on itself."
            )
        checkpoint = inspect_checkpoint(folder)
        errors = [f for f in checkpoint.findings if f.severity == "error"]
        if errors:
            raise StageError(
                "bad-checkpoint", f"{self.label} cannot be read: {errors[0].message}. {errors[0].fix}.", str(folder)
            )
        self.notes += [f"{self.label}: {f.message}." for f in checkpoint.findings]
        if checkpoint.kind == "full":
            return checkpoint
        self.adapters.insert(0, LoraAdapter(checkpoint, self.label))
        under = str(checkpoint.config.get("base_model_name_or_path") or "")
        found = next((p for p in (folder / under, Path(under)) if under and p.is_dir()), None)
        if found is None:
            raise StageError(
                "bad-checkpoint",
                f"The adapter {self.label} was trained on {under or 'an unnamed model'}, which is not a folder on this "
                f"machine. Put the folder there, or write its path into base_model_name_or_path of "
                f"{folder / 'adapter_config.json'}.",
                str(folder),
            )
        return self._open(found)

    def _canonical(self) -> dict[str, str]:
        """Name without wrappers → name in the file."""
        keys = {unwrapped(key): key for key in self.root.tensors}
        wrapped = sorted({m.group() for key in self.root.tensors if (m := WRAPPERS.match(key))})
        if wrapped:
            self.notes.append(f"{self.label}: its tensors are named with {', '.join(wrapped)}; this is taken off.")
        if len(keys) < len(self.root.tensors):
            raise StageError(
                "bad-checkpoint",
                f"{self.label} holds tensors twice, with and without {wrapped[0]}. Save the model again.",
                str(self.folder),
            )
        return keys

    def _tie(self) -> bool:
        """The config decides; a head that it ties is no tensor of its own even where the file repeats it."""
        said = self.config.get("tie_word_embeddings")
        tied = said is True or (said is None and _HEAD not in self._keys and self._embedding is not None)
        if tied:
            self._keys.pop(_HEAD, None)
        return tied

    @property
    def _embedding(self) -> str | None:
        return next(
            (n for n in self._keys if n.endswith(("embed_tokens.weight", "wte.weight", "embed_in.weight"))), None
        )

    def _apply(self, adapter: LoraAdapter) -> None:
        """Checks that an adapter fits what is under it, and takes over what it replaces whole."""
        for name, key in adapter.replaced.items():
            shape, had = adapter.checkpoint.tensors[key].shape, self._shapes.get(name)
            if name == _HEAD and self.tied:
                raise self._misfit(
                    adapter, "it brings an lm_head of its own, and its base ties the head to the embedding"
                )
            if had is None:
                raise self._misfit(adapter, f"it replaces {name}, which its base does not have")
            if shape != had:
                more = shape[0] - had[0]
                grown = (
                    f"; the base must be enlarged to {shape[0]} rows first ({more} added tokens)" if more > 0 else ""
                )
                raise self._misfit(adapter, f"its {name} is {_by(shape)} and that of its base {_by(had)}{grown}")
        for name in adapter.parts:
            had = self._shapes.get(name)
            if had is None and name == _HEAD and self.tied:
                raise self._misfit(adapter, "it changes lm_head, which its base ties to the embedding")
            if had is None:
                absent = sum(n not in self._shapes for n in adapter.parts)
                raise self._misfit(
                    adapter, f"{absent} of its {len(adapter.parts)} layers are not in its base, first {name}"
                )
            if adapter.shape(name) != had:
                raise self._misfit(adapter, f"its {name} is {_by(adapter.shape(name))} and that of its base {_by(had)}")

    def _misfit(self, adapter: LoraAdapter, why: str) -> StageError:
        return StageError(
            "bad-checkpoint",
            f"The adapter {adapter.label} does not fit the model it names: {why}. Give it the base it was trained on.",
            str(adapter.checkpoint.folder),
        )

    # ---- what it holds

    @property
    def names(self) -> list[str]:
        return list(self._keys)

    @property
    def kind(self) -> str:
        return "adapter" if self.adapters else "full"

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def dtype(self, name: str) -> str:
        """As stored (F32, BF16 …); under an adapter it is the base's."""
        return self.root.tensors[self._keys[name]].dtype

    def touched(self, name: str) -> bool:
        """Whether an adapter changes the tensor."""
        return any(name in a.parts or name in a.replaced for a in self.adapters)

    def replaced(self, name: str) -> bool:
        return any(name in a.replaced for a in self.adapters)

    # ---- numbers

    def read(self, name: str, begin: int = 0, end: int | None = None) -> torch.Tensor:
        """Rows of a tensor in float32, with every adapter's part added. StageError when one is no number."""
        end = grid(self._shapes[name])[0] if end is None else end
        rows = self.read_root(name, begin, end)
        for adapter in self.adapters:
            if name in adapter.replaced:
                rows = adapter.rows(adapter.replaced[name], begin, end)
            if name in adapter.parts:
                rows = rows.double().add_(adapter.delta(name, begin, end)).float()
        return self._finite(name, rows)

    def read_root(self, name: str, begin: int, end: int) -> torch.Tensor:
        """Rows of the full weights under the adapters, as they are stored."""
        key = self._keys[name]
        return read_rows(self.root.folder / self.root.files[key], self.root.tensors[key], begin, end)

    def added(self, name: str, begin: int, end: int) -> torch.Tensor | None:
        """Rows of what its adapters add to the root's tensor; None for nothing. Not for replaced tensors."""
        total = None
        for adapter in self.adapters:
            if name in adapter.parts:
                delta = adapter.delta(name, begin, end)
                total = delta if total is None else total.add_(delta)
        return None if total is None else self._finite(name, total)

    def _finite(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        if not bool(torch.isfinite(rows.sum(dtype=torch.float64))):
            raise StageError(
                "bad-checkpoint",
                f"{name} of {self.label} holds NaN or infinite numbers. Its training broke before it was saved; use "
                f"an earlier checkpoint.",
                str(self.folder),
            )
        return rows


def _by(shape: tuple[int, ...]) -> str:
    """A shape in words: 10×4."""
    return "×".join(map(str, shape)) or "a single number"


def same_root(one: WeightSource, other: WeightSource) -> bool:
    """Whether two sources stand on the same files: the same folder, or files of equal content."""
    if one.root.folder.resolve() == other.root.folder.resolve():
        return True
    if one.root.tensors.keys() != other.root.tensors.keys() or one.root.bytes != other.root.bytes:
        return False
    from seesaw_runner.checkpoints.saving import weights_hash

    return json.dumps(one.config, sort_keys=True) == json.dumps(other.config, sort_keys=True) and weights_hash(
        one.root.folder
    ) == weights_hash(other.root.folder)
