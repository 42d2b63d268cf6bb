"""Tokens as raw bytes: what text a token stands for, also when it is only a part of a character.

Byte-level vocabularies (GPT-2 style) spell each byte as one printable letter, e.g. a blank as `Ġ`; sentencepiece ones
use `▁` for a blank and `<0xE2>` for lone bytes. Decoding such tokens one by one with `tokenizer.decode` shows U+FFFD.
"""

from __future__ import annotations

import re

_HEX = re.compile(r"^<0x([0-9A-Fa-f]{2})>$")


def _byte_letters() -> dict[str, int]:
    """GPT-2's table from letter to byte (bytes_to_unicode in openai/gpt-2 src/encoder.py, inverted)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {chr(b): b for b in plain}, 0
    for b in range(256):
        if b not in plain:
            table[chr(256 + extra)] = b
            extra += 1
    return table


class TokenBytes:
    """Bytes of vocabulary ids. `special` ids are template marks and ends: they stand for no text of the answer."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._letters = _byte_letters()
        self._cache: dict[int, bytes] = {}
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self._added = {int(i): str(t.content) for i, t in added.items()}
        self.special = {int(i) for i, t in added.items() if t.special} | set(tokenizer.all_special_ids)
        self.byte_level = self._is_byte_level()

    def _is_byte_level(self) -> bool:
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            return False
        return "ByteLevel" in repr(backend.decoder) or "ByteLevel" in repr(backend.pre_tokenizer)

    def __call__(self, token_id: int) -> bytes:
        """Bytes of one id; special tokens give their name, e.g. b'<|end|>'. Ids beyond the vocabulary give b''."""
        found = self._cache.get(token_id)
        if found is None:
            found = self._cache[token_id] = self._spell(token_id)
        return found

    def _spell(self, token_id: int) -> bytes:
        if token_id in self._added:
            return self._added[token_id].encode("utf-8", "surrogatepass")
        name = self._tokenizer.convert_ids_to_tokens(token_id) if token_id < len(self._tokenizer) else None
        if name is None:  # a padded row of the embedding table
            return b""
        if self.byte_level and all(c in self._letters for c in name):
            return bytes(self._letters[c] for c in name)
        lone = _HEX.match(name)
        if lone:
            return bytes([int(lone[1], 16)])
        return name.replace("▁", " ").encode("utf-8", "replace")
