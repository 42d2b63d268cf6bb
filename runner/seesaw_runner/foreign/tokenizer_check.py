"""Does a checkpoint split text as the stage's start does? All are scored with the start's tokenizer, so that their
traces can be compared; where a checkpoint brings another one, that has to be said.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from seesaw_runner.foreign.view import TOKENIZER
from seesaw_runner.probing.probe_set import template_hash, tokenizer_hash
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.loading import load_tokenizer


class TokenizerCheck:
    """tokenizer: the start's."""

    def __init__(self, tokenizer) -> None:
        self._ours = (tokenizer_hash(tokenizer), template_hash(tokenizer))
        self._known: dict[str, str | None] = {}

    def difference(self, folder: Path) -> str | None:
        """What follows "it has": another tokenizer, another chat template or both; None where it is the same one, or
        none at all. Compared as loaded: a trainer may spell the same tokenizer differently.
        """
        files = [folder / name for name in TOKENIZER if (folder / name).is_file()]
        if not any(file.name in ("tokenizer.json", "tokenizer.model", "vocab.json") for file in files):
            return None
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.name.encode() + file.read_bytes())
        key = digest.hexdigest()
        if key not in self._known:
            self._known[key] = self._compare(folder)
        return self._known[key]

    def _compare(self, folder: Path) -> str | None:
        try:
            theirs = load_tokenizer(str(folder))
            found = (tokenizer_hash(theirs), template_hash(theirs))
        except StageError as error:
            return f"a tokenizer that cannot be loaded ({error})"
        names = [n for n, a, b in zip(("tokenizer", "chat template"), found, self._ours, strict=True) if a != b]
        return f"another {' and another '.join(names)}" if names else None
