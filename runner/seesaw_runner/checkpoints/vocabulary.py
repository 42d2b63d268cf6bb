"""Config, weights and tokenizer of a checkpoint each say how many tokens there are. Do they agree?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seesaw_runner.checkpoints.files import Checkpoint

#: How the tensors with one row for each token are called.
_TABLES = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "lm_head.weight", "embed_out.weight")


def check_vocabulary(checkpoint: Checkpoint) -> None:
    """Adds a finding where they do not. A tokenizer with fewer tokens than rows is usual: rows are padded."""
    rows = {name: t.shape[0] for name, t in checkpoint.tensors.items() if name.endswith(_TABLES) and len(t.shape) == 2}
    config = checkpoint.config
    said = config.get("vocab_size") or (config.get("text_config") or {}).get("vocab_size")
    wrong = next((name for name, count in rows.items() if isinstance(said, int) and count != said), None)
    if wrong is not None:
        checkpoint.error(
            f"config.json says that there are {said} tokens, and {wrong} has {rows[wrong]} rows",
            "Get config.json and the weights from one save; after adding tokens, resize the embedding before saving",
            checkpoint.files[wrong],
        )
        return
    if not rows:
        return
    absent = beyond(token_ids(checkpoint.folder), min(rows.values()))
    if absent:
        checkpoint.warn(told_absent(absent, min(rows.values())), "Resize the embedding, or take the tokenizer it had")


def beyond(tokens: dict[str, int], rows: int) -> dict[str, int]:
    """Tokens whose id has no row in the embedding."""
    return {text: number for text, number in tokens.items() if number >= rows}


def told_absent(absent: dict[str, int], rows: int) -> str:
    first = min(absent, key=lambda text: absent[text])
    are = "token ids have" if len(absent) > 1 else "token id has"
    return (
        f"{len(absent)} {are} no embedding ({json.dumps(first, ensure_ascii=False)} is {absent[first]}, and there are "
        f"{rows} rows): texts with {'them' if len(absent) > 1 else 'it'} are not scored or learned"
    )


def token_ids(folder: Path) -> dict[str, int]:
    """Text → id of what the tokenizer's files name; empty where there are none that can be read."""
    found: dict[str, int] = {}
    about = _json(folder / "tokenizer.json")
    if isinstance(about, dict):
        vocab = (about.get("model") or {}).get("vocab")
        if isinstance(vocab, dict):
            found |= {text: number for text, number in vocab.items() if isinstance(number, int)}
        elif isinstance(vocab, list):
            found |= {str(row[0]): k for k, row in enumerate(vocab) if isinstance(row, list) and row}
        found |= {
            str(t.get("content")): t["id"] for t in about.get("added_tokens") or [] if isinstance(t.get("id"), int)
        }
    added = _json(folder / "added_tokens.json")
    if isinstance(added, dict):
        found |= {text: number for text, number in added.items() if isinstance(number, int)}
    return found


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
