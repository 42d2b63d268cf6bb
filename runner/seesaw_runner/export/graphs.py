"""Graph files of a pipeline: `.seesaw/cache/graphs/<architecture>.onnx` with a JSON of the same name beside it.

`<architecture>` is a hash of what in config.json decides the computation (the editor computes the same), so that all
checkpoints of a chain share one file. A model without a graph gets the JSON alone, with the sentence that says why.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seesaw_runner.data.canonical import canonical
from seesaw_runner.data.row_parse import parse_json
from seesaw_runner.export.llama_graph import EMBEDDING, HEAD, UnsupportedArchitecture, build_graph

#: Grows when graphs are built otherwise; older files are then left alone and new ones made.
VERSION = 1
#: What may differ between checkpoints of one architecture (`src/inference/architecture.ts` has the same list).
IGNORED = (
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "pad_token_id",
    "torch_dtype",
    "transformers_version",
    "use_cache",
)


def architecture_hash(folder: Path) -> str:
    """Of the config.json in a folder."""
    config, problem, _ = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    if problem is not None or not isinstance(config, dict):
        raise ValueError(f"{folder / 'config.json'} is no JSON object")
    kept = {key: value for key, value in config.items() if key not in IGNORED}
    return hashlib.sha256(f"{VERSION} {canonical(kept)}".encode()).hexdigest()[:32]


def export_graph(folder: str | Path, out: str | Path) -> Path:
    """Writes graph and JSON for the model in `folder` unless they are there; returns the JSON's path.

    UnsupportedArchitecture says why there is none (and the JSON says it to the editor); OSError where nothing can be
    written.
    """
    folder, out = Path(folder), Path(out)
    about = out / f"{architecture_hash(folder)}.json"
    if about.is_file():
        unsupported = json.loads(about.read_text(encoding="utf-8")).get("unsupported")
        if unsupported:
            raise UnsupportedArchitecture(unsupported)
        if about.with_suffix(".onnx").is_file():
            return about
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    out.mkdir(parents=True, exist_ok=True)
    try:
        graph = build_graph(config)
    except UnsupportedArchitecture as error:
        _write(about, json.dumps({"v": VERSION, "model_type": config.model_type, "unsupported": str(error)}).encode())
        raise
    _write(about.with_suffix(".onnx"), graph.data)
    facts: dict[str, Any] = {
        "v": VERSION,
        "model_type": config.model_type,
        "dtype": "float32",
        "inputs": ["input_ids", "positions", "targets", "vocabulary", "top_k"],
        "outputs": ["logprob", "entropy", "rank", "topk_ids", "topk_logprob"],
        "tensors": graph.tensors,
        "tied": {HEAD: EMBEDDING} if graph.tied else {},
        "max_positions": graph.positions,
        "vocabulary": graph.vocabulary,
    }
    _write(about, json.dumps(facts, indent=1).encode())
    return about


def leave_graphs(run: Path, folders: Iterable[str | Path], journal) -> None:
    """Leaves the graphs of these checkpoints where the editor looks for them. A run never fails over it: what goes
    wrong becomes a `warning` event.
    """
    if run.parent.name != "runs":
        return
    for folder in map(Path, folders):
        if not (folder / "config.json").is_file():  # an adapter: the graph is its base's
            continue
        try:
            export_graph(folder, run.parent.parent / "cache" / "graphs")
        except UnsupportedArchitecture as error:
            journal.append("warning", code="live-scoring", severity="info", where=str(folder), message=str(error))
            return
        except Exception as error:
            journal.append(
                "warning",
                code="live-scoring",
                severity="warning",
                where=str(folder),
                message=f"The graph for live scoring in the editor could not be written: {error}",
                fix="Everything else works. To try again: python -m seesaw_runner.export --checkpoint "
                f"'{folder}' --out '{run.parent.parent / 'cache' / 'graphs'}'",
            )
            return


def _write(path: Path, data: bytes) -> None:
    """Two runs may write the same file: each under its own name, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)
