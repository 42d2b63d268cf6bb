"""Whether two checkpoints speak the same tokens. Ids of one that mean something else to the other teach nonsense."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from seesaw_runner.run_folder import StageError


def must_share_vocabulary(ours: str | Path, theirs: str | Path, who: str) -> None:
    """StageError `bad-argument` when the tokenizers or the number of ids differ. who: subject of the sentence.

    Compared are the vocabulary, merges and added tokens of tokenizer.json, not its padding or truncation settings. A
    folder without tokenizer.json (an adapter beside its base) is compared by the size in config.json alone.
    """
    a, b = _vocabulary(ours), _vocabulary(theirs)
    if a is not None and b is not None and a[1] != b[1]:
        raise StageError(
            "bad-argument",
            f"{who} has another tokenizer than the model that is trained ({b[0]} and {a[0]} tokens): one's ids mean "
            f"something else to the other. Choose a checkpoint of the same base.",
            str(theirs),
        )
    sizes = _size(ours), _size(theirs)
    if None not in sizes and sizes[0] != sizes[1]:
        raise StageError(
            "bad-argument",
            f"{who} has a vocabulary of {sizes[1]} ids, the model that is trained has {sizes[0]}. Choose a checkpoint "
            f"of the same base.",
            str(theirs),
        )


def _vocabulary(folder: str | Path) -> tuple[int, str] | None:
    path = Path(folder) / "tokenizer.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        model = value["model"]
        said = [
            model.get("vocab"),
            model.get("merges"),
            [(t["id"], t["content"]) for t in value.get("added_tokens", [])],
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    text = json.dumps(said, sort_keys=True, ensure_ascii=False)
    return len(model.get("vocab") or ()), hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _size(folder: str | Path) -> int | None:
    try:
        value = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    size = value.get("vocab_size") or (value.get("text_config") or {}).get("vocab_size")
    return size if isinstance(size, int) else None
