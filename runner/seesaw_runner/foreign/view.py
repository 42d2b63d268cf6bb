"""A foreign checkpoint as a folder that later stages can start from: usually the very folder, where something lies.

Trainers often save weights without their tokenizer, and adapters name their base relative to somewhere. Then the run
folder gets `checkpoints/step-000020/`: links to the weights (nothing large is copied), the small files, and what is
missing. The folder of the command itself is never changed.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from seesaw_runner.checkpoints import saving
from seesaw_runner.foreign.adapters import adapter_base

TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
)
_ENOUGH = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
#: Larger files that are no weights are linked too.
_SMALL = 16 << 20


def source_of(folder: Path) -> Path:
    """The command's own folder behind a checkpoint of the run."""
    try:
        about = json.loads((folder / "seesaw.json").read_text(encoding="utf-8"))
        return Path(about["source"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder


def usable_folder(path: Path, step: int, run: Path, start: str, cwd: Path, about: dict[str, Any]) -> Path:
    """`path`, or a folder of links to it with the tokenizer of `start` and an absolute base. about: for seesaw.json.
    OSError where links cannot be made.
    """
    bare = not any((path / name).is_file() for name in _ENOUGH)
    base = adapter_base(path, cwd).resolve() if (path / "adapter_config.json").is_file() else None
    config = json.loads((path / "adapter_config.json").read_text(encoding="utf-8")) if base else {}
    if not bare and (base is None or config.get("base_model_name_or_path") == str(base)):
        return path
    temporary = saving.begin(run / "checkpoints", step)
    try:
        (temporary / "resume").rmdir()  # there is nothing here to go on with
        for file in path.iterdir():
            weights = file.name.endswith(".safetensors")
            if weights or (file.is_file() and file.name.endswith((".json", ".jinja", ".txt", ".model"))):
                if weights or file.stat().st_size > _SMALL:
                    os.symlink(os.path.realpath(file), temporary / file.name)
                elif file.name != "trainer_state.json":
                    shutil.copyfile(file, temporary / file.name)
        for name in TOKENIZER if bare else ():
            if (Path(start) / name).is_file():
                shutil.copyfile(Path(start) / name, temporary / name)
        if base is not None:
            saving.write_json(temporary / "adapter_config.json", {**config, "base_model_name_or_path": str(base)})
        saving.write_json(temporary / "seesaw.json", {"v": 1, "step": step, **about, "source": str(path)})
        return saving.publish(temporary, step)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
