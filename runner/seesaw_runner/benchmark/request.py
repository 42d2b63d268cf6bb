"""What is to be measured on which checkpoint: request.json, written by whoever starts a benchmark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seesaw_runner.run_folder import StageError

NAME = "request.json"
BATCH = 8


@dataclass(frozen=True)
class Request:
    """folder: where results go. about: run, stage, step and label of the checkpoint, copied into every result."""

    folder: Path
    checkpoint: Path
    about: dict[str, Any]
    tasks: tuple[str, ...]
    include_path: Path | None
    limit: int | None
    batch_size: int | str
    num_fewshot: int | None
    chat_template: bool
    trusted: bool
    use_cpu: bool

    @cached_property
    def weights_hash(self) -> str:
        return known_hash(self.checkpoint)


def read_request(folder: Path) -> Request:
    """StageError `bad-argument` where request.json is missing or says nothing usable."""
    path = folder / NAME
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        asked = value["benchmark"]
        return Request(
            folder=folder,
            checkpoint=Path(value["checkpoint"]),
            about={name: value.get(name) for name in ("run", "stage", "step", "label")},
            tasks=tuple(map(str, asked["lm_eval"])),
            include_path=Path(asked["include_path"]) if asked.get("include_path") else None,
            limit=asked.get("limit"),
            batch_size=asked.get("batch_size") or BATCH,
            num_fewshot=asked.get("num_fewshot"),
            chat_template=bool(asked.get("chat_template")),
            trusted=value.get("trusted") is True,
            use_cpu=value.get("use_cpu") is True,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StageError("bad-argument", f"{path} is no benchmark request ({error}). Start it from Seesaw.") from error


def known_hash(checkpoint: Path) -> str:
    """The weights' hash as seesaw.json says it, else of the weights themselves (minutes for a large model)."""
    try:
        return str(json.loads((checkpoint / "seesaw.json").read_text(encoding="utf-8"))["weights_hash"])
    except (OSError, ValueError, KeyError, TypeError):
        from seesaw_runner.checkpoints.saving import CheckpointError, weights_hash

        try:
            return weights_hash(checkpoint)
        except (CheckpointError, OSError) as error:
            raise StageError("bad-checkpoint", str(error), str(checkpoint)) from error


def make_request(spec: dict, *, checkpoint: Path, step: int) -> dict[str, Any]:
    """request.json for the last checkpoint of the stage in run.json."""
    return {
        "v": 1,
        "checkpoint": str(checkpoint),
        "run": spec["id"],
        "stage": spec["stage"],
        "step": step,
        "label": f"M{spec['index']}",
        "benchmark": spec["benchmark"],
        "trusted": spec["trusted"] is True,
        "use_cpu": bool(spec["args"].get("use_cpu")),
    }
