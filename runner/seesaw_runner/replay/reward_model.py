"""A sequence-classification model that scores rows, as the quality gate `{ reward_model: …, min: … }` asks.

Every score is written to reward-scores.jsonl of the run folder as soon as it is known, under the row's hash: an attempt
that was stopped while it scored goes on with the rows that are left.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from seesaw_runner.data.canonical import row_hashes
from seesaw_runner.replay.quality import ReplayError
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.training.loading import context_length, load_tokenizer
from seesaw_runner.training.placement import Placement

FILE = "reward-scores.jsonl"
#: Rows of one forward pass; they are sorted by length first.
BATCH = 16


class RewardModel:
    """Loads the model when the first row is not scored yet. Call `close` to give its memory back."""

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str,
        identity: str,
        scores: str | Path,
        device: torch.device,
        dtype: torch.dtype,
        told: Callable[[str], None] = lambda text: None,
        stopping: Callable[[], bool] = lambda: False,
        place: Callable[[], Placement | None] = lambda: None,
        placed: Callable[[torch.nn.Module], None] = lambda model: None,
    ):
        """identity: the hash of its weights; scores of another model do not count. told: says what takes time. place:
        its parts where it does not fit on the device; placed: told of the model that then lies in parts.
        """
        self.folder, self.name, self.identity, self.path = Path(folder), name, identity, Path(scores)
        self.device, self.dtype, self.told, self.stopping = device, dtype, told, stopping
        self.place, self.placed = place, placed
        self.unread: str | None = None
        self.cut = 0
        self._model: torch.nn.Module | None = None
        self._encoder: Encoder | None = None
        self._known = self._read()

    def __call__(self, rows: Sequence[dict], places: Sequence[str]) -> list[float | None]:
        hashes = [row_hashes(row).full for row in rows]
        left = {key: k for k, key in enumerate(hashes) if key not in self._known}
        encoded = []
        for key, k in left.items():
            row = self._encode(rows[k])
            if row.reason is not None:
                self.unread = f"{places[k]}: {row.reason}"
                continue
            self.cut += row.cut
            encoded.append((key, k, row.ids))
        encoded.sort(key=lambda item: len(item[2]))
        size = BATCH if encoded and self._pad() is not None else 1
        for first in range(0, len(encoded), size):
            if self.stopping():
                raise StageError("cancelled", "Stopped while rows were being scored; nothing was learned yet.")
            part = encoded[first : first + size]
            found = self._score([ids for _, _, ids in part])
            for (_, k, _), score in zip(part, found, strict=True):
                if not math.isfinite(score):
                    raise ReplayError(
                        f"the reward model {self.name} gives {score} for {places[k]}, which is no score; look at the "
                        "row, or use another reward model"
                    )
            self._add([(key, score) for (key, _, _), score in zip(part, found, strict=True)])
        return [self._known.get(key) for key in hashes]

    def close(self) -> None:
        self._model = self._encoder = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    # ---- the model

    def _encode(self, row: dict):
        if self._encoder is None:
            self._load()
        assert self._encoder is not None
        return self._encoder.encode(row, last_only=False)

    def _pad(self) -> int | None:
        """Without it the model cannot tell where a padded row ends; it then takes one row at a time."""
        return getattr(self._model.config.get_text_config(), "pad_token_id", None)

    @torch.no_grad()
    def _score(self, rows: Sequence[Sequence[int]]) -> list[float]:
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), self._pad() or 0, dtype=torch.long)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for k, row in enumerate(rows):
            ids[k, : len(row)] = torch.tensor(row)
            mask[k, : len(row)] = 1
        logits = self._model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device)).logits
        return logits.float()[:, 0].tolist()

    def _load(self) -> None:
        from transformers import AutoModelForSequenceClassification

        if (self.folder / "adapter_config.json").is_file():
            raise self._unusable("is an adapter. Merge it into its base first (`merge_and_unload`), then save it")
        self.told(f"loading the reward model {self.name}")
        tokenizer = load_tokenizer(str(self.folder))
        placement = self.place()
        parts = {} if placement is None else {"device_map": "auto", "max_memory": dict(placement.max_memory)}
        try:
            model, info = AutoModelForSequenceClassification.from_pretrained(
                self.folder,
                dtype=self.dtype,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                **parts,
            )
        except Exception as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise self._unusable(f"cannot be loaded: {first.rstrip('.')}. Copy it again, or choose another") from error
        missing = sorted(info.get("missing_keys") or [])
        if missing:
            raise self._unusable(
                f"has no {missing[0]}: it is no reward model. Name a sequence-classification checkpoint"
            )
        if int(model.config.num_labels) != 1:
            raise self._unusable(
                f"gives {model.config.num_labels} numbers for a row and not one. Name a model that was trained with "
                "num_labels = 1"
            )
        if placement is None:
            model = model.to(self.device)
        else:
            self.placed(model)
        self._model = model.eval().requires_grad_(False)
        self._encoder = Encoder(tokenizer, context_length(model))

    def _unusable(self, why: str) -> StageError:
        return StageError("bad-checkpoint", f"The reward model {self.name} ({self.folder}) {why}.", str(self.folder))

    # ---- scores on disk

    def _read(self) -> dict[str, float]:
        found: dict[str, float] = {}
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return found
        for text in data.split(b"\n"):  # a torn line was being written when the process was killed
            try:
                line = json.loads(text)
                if line["model"] == self.identity and math.isfinite(line["score"]):
                    found[line["row"]] = float(line["score"])
            except (ValueError, KeyError, TypeError):
                continue
        return found

    def _add(self, scores: Sequence[tuple[str, float]]) -> None:
        lines = [json.dumps({"v": 1, "model": self.identity, "row": row, "score": score}) for row, score in scores]
        torn = self.path.exists() and self.path.stat().st_size and not _ends_whole(self.path)
        with open(self.path, "ab") as file:
            file.write((b"\n" if torn else b"") + "".join(f"{line}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self._known.update(scores)


def _ends_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
