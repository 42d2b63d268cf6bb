"""Who scores the student's answers: one local checkpoint per domain, in memory together or one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from seesaw_runner.training.placement import free_bytes, input_device, loaded_bytes

#: Share of the free memory that teachers may take before they are loaded one after another.
ROOM_SHARE = 0.5


@dataclass(frozen=True)
class Rolled:
    """One answer to score. `ids`: prompt and answer; the answer is `ids[start:]`."""

    ids: list[int]
    start: int


@dataclass(frozen=True)
class Target:
    """A teacher's log-probabilities before each token of one answer, [n, k].

    `ids` [n, k] says which tokens they are of, and they are renormalised over them; None: all of the vocabulary.
    """

    logprob: torch.Tensor
    ids: torch.Tensor | None


class Teacher(Protocol):
    def score(self, rows: Sequence[Rolled]) -> list[Target | None]:
        """Targets of answers, in order; None where one could not be had (the row is then dropped and counted)."""
        ...


class LocalTeachers:
    """Local checkpoints. `load(folder)` gives a model; `together`: all stay loaded, else one at a time is."""

    def __init__(self, folders: Mapping[str, Path], load, *, together: bool):
        self.folders, self.load, self.together = dict(folders), load, together
        self._loaded: dict[Path, torch.nn.Module] = {}

    @contextmanager
    def model(self, domain: str) -> Iterator[torch.nn.Module]:
        """The teacher of a domain, for the time of the block; domains that share a checkpoint share the model."""
        folder = self.folders[domain]
        found = self._loaded.get(folder)
        if found is None:
            found = self.load(folder).eval().requires_grad_(False)
            if self.together:
                self._loaded[folder] = found
        yield found

    @torch.no_grad()
    def score(self, domain: str, rows: Sequence[Rolled]) -> list[Target | None]:
        """Log-probabilities over the whole vocabulary."""
        with self.model(domain) as model:
            return score_rows(model, rows)


def score_rows(model: torch.nn.Module, rows: Sequence[Rolled]) -> list[Target | None]:
    """Targets of answers under a model, over its whole vocabulary."""
    ids, mask = padded([row.ids for row in rows], input_device(model))
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    return [
        Target(logits[k, row.start - 1 : len(row.ids) - 1].float().log_softmax(-1), None) for k, row in enumerate(rows)
    ]


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids and their mask, [rows, longest]."""
    width = max(map(len, rows))
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for k, row in enumerate(rows):
        ids[k, : len(row)] = torch.tensor(row)
        mask[k, : len(row)] = 1
    return ids.to(device), mask.to(device)


def fit_together(folders: Sequence[Path], device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[bool, str]:
    """Whether all teachers may stay loaded, and a sentence with the figures. dtype: what they are loaded in."""
    distinct = set(folders)
    need = sum(loaded_bytes(folder, dtype.itemsize) for folder in distinct)
    free = free_bytes(device)
    # A single one has to be loaded in any case; in parts, if it must be.
    fits = free is None or len(distinct) == 1 or need <= free * ROOM_SHARE
    known = "unknown" if free is None else f"{free / 2**30:.1f} GiB"
    how = "stay loaded together" if fits else "are loaded one after another"
    return fits, f"{len(distinct)} teachers of {need / 2**30:.2f} GiB {how}; {known} of memory is free."
