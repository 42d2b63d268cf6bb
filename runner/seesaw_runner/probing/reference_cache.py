"""What a checkpoint said about the probes, kept for the next stage: `.seesaw/cache/scores-<key>.safetensors`.

A stage starts from the checkpoint the one before has just scored, and every stage compares with M0. Both need the same
final hidden states again. The key covers everything that decides the numbers (weights, probes, tokenizer, template,
library, dtype, device …), so an entry is either exactly right or not found. A cache: deleting it costs a scoring pass
and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from seesaw_runner.scoring.causal_lm import Head
from seesaw_runner.scoring.scorer import Reference, Scores

#: Larger entries (big models) are not kept; at most this many entries are.
MAX_BYTES = 64 * 1024**2
MAX_ENTRIES = 24


@dataclass
class Entry:
    """`scores` have no KL. `texts`: (generated text, finish) of every row, or None. `noise`: as in the traces' meta, by
    set.
    """

    reference: Reference
    scores: Scores
    texts: list[tuple[str, str]] | None
    noise: dict[str, dict[str, float]]


class ReferenceCache:
    """folder None: nothing is kept. identity: all that decides the numbers besides the weights. starts: where the
    tokens of every row begin (`row_starts`): an entry of another shape is none.
    """

    def __init__(self, folder: Path | None, identity: dict[str, Any], starts: list[int]):
        self.folder, self.starts = folder, starts
        self._identity = json.dumps(identity, sort_keys=True)

    def _path(self, weights_hash: str) -> Path:
        assert self.folder is not None
        key = hashlib.sha256(f"{weights_hash}\n{self._identity}".encode()).hexdigest()
        return self.folder / f"scores-{key[:32]}.safetensors"

    def load(self, weights_hash: str, device: torch.device) -> Entry | None:
        """The entry of these weights, or None; a damaged file counts as none."""
        if self.folder is None:
            return None
        try:
            with safe_open(self._path(weights_hash), framework="pt") as file:
                about = json.loads(file.metadata()["seesaw"])
                t = {name: file.get_tensor(name) for name in file.keys()}
            if about["identity"] != self._identity or about["weights_hash"] != weights_hash:
                return None
            if about["starts"] != self.starts or about["checksum"] != _checksum(t):
                return None
            bias = t.get("head.bias")
            head = torch.nn.Linear(
                t["head.weight"].shape[1], t["head.weight"].shape[0], bias=bias is not None, device="meta"
            )
            head.load_state_dict(
                {"weight": t["head.weight"], **({"bias": bias} if bias is not None else {})}, assign=True
            )
            head.requires_grad_(False).to(device)
            scores = Scores(
                about["starts"], t["logprob"], t["entropy"], t["rank"], t["topk_ids"], t["topk_logprob"], {}
            )
            texts = None if about["texts"] is None else [(text, finish) for text, finish in about["texts"]]
            return Entry(
                Reference(t["hidden"].to(device), Head(head, about["scale"], about["cap"])),
                scores,
                texts,
                about["noise"],
            )
        except Exception:  # not there, torn, of another version: scoring again is always right
            return None

    def save(self, weights_hash: str, entry: Entry) -> None:
        """Keeps an entry if it is small. A full disk or a read-only folder is no error here.

        weights_hash: `saving.identity` of the checkpoint.
        """
        module = getattr(entry.reference.head, "module", None)
        weight = getattr(module, "weight", None)
        if self.folder is None or not isinstance(module, torch.nn.Linear) or weight is None:
            return
        s = entry.scores
        tensors = {
            "hidden": entry.reference.hidden,
            "head.weight": weight.detach(),
            "logprob": s.logprob,
            "entropy": s.entropy,
            "rank": s.rank,
            "topk_ids": s.topk_ids,
            "topk_logprob": s.topk_logprob,
        }
        if module.bias is not None:
            tensors["head.bias"] = module.bias.detach()
        if sum(t.nbytes for t in tensors.values()) > MAX_BYTES:
            return
        tensors = {k: v.cpu().contiguous() for k, v in tensors.items()}
        about = {
            "checksum": _checksum(tensors),
            "identity": self._identity,
            "weights_hash": weights_hash,
            "starts": s.starts,
            "texts": entry.texts,
            "noise": entry.noise,
            "scale": entry.reference.head.scale,
            "cap": entry.reference.head.cap,
        }
        path = self._path(weights_hash)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_file(tensors, temporary, metadata={"seesaw": json.dumps(about)})
            os.replace(temporary, path)
            for old in sorted(self.folder.glob("scores-*.safetensors"), key=lambda p: p.stat().st_mtime)[:-MAX_ENTRIES]:
                old.unlink(missing_ok=True)
        except (OSError, SafetensorError):  # safetensors wraps the system's errors
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _checksum(tensors: dict[str, torch.Tensor]) -> int:
    """CRC-32 over the bytes of all tensors, by name: a torn or rotten file must not give numbers."""
    value = 0
    for name in sorted(tensors):
        value = zlib.crc32(tensors[name].detach().flatten().view(torch.uint8).numpy(), value)
    return value


def cache_folder(run: Path) -> Path | None:
    """`<root>/.seesaw/cache` of a run folder `<root>/.seesaw/runs/<id>`; None for a run folder that lies elsewhere."""
    return run.parent.parent / "cache" if run.parent.name == "runs" else None
