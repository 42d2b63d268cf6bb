"""Near-duplicate rows: shingles of 5 words, MinHash with 128 hashes, LSH with 16 bands of 8, candidates
verified exactly.

The bands find 95 % of the pairs at a Jaccard similarity of 0.8 and some far below; only the exact similarity decides.
"""

from __future__ import annotations

import random
import re
from hashlib import blake2b
from typing import Any

from seesaw_runner.data.row_shapes import to_turns

HASHES, BANDS, SHINGLE = 128, 16, 5
# Chinese, Japanese and Korean have no spaces: each of their characters counts as a word.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")


def shingles(text: str) -> frozenset[int]:
    """64-bit hashes of all runs of 5 words, lower case; of the whole text if it is shorter."""
    words = _WORD.findall(text.lower())
    runs = range(max(1, len(words) - SHINGLE + 1)) if words else ()
    return frozenset(
        int.from_bytes(
            blake2b(" ".join(words[i : i + SHINGLE]).encode("utf-8", "replace"), digest_size=8).digest(), "little"
        )
        for i in runs
    )


def row_shingles(value: Any) -> frozenset[int]:
    """Shingles over all turns of a row, prompt and answer."""
    return shingles("\n".join(turn.text for turn in to_turns(value) if isinstance(turn.text, str)))


def jaccard(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


class NearDuplicates:
    """Keeps what was added and says whether a further row is nearly one of them. Deterministic: no seed, no
    order of sets.
    """

    def __init__(self, threshold: float) -> None:
        import numpy

        self._numpy, self._threshold = numpy, threshold
        source = random.Random("seesaw minhash")
        self._factors = numpy.array([source.getrandbits(64) | 1 for _ in range(HASHES)], dtype=numpy.uint64)[:, None]
        self._terms = numpy.array([source.getrandbits(64) for _ in range(HASHES)], dtype=numpy.uint64)[:, None]
        self._buckets: dict[tuple[int, bytes], list[int]] = {}
        self._kept: list[frozenset[int]] = []

    def add(self, row: frozenset[int]) -> bool:
        """True and kept if the row is new; False if a kept one is at least as similar as the threshold. Rows
        without words are always new.
        """
        if not row:
            return True
        bands = self._bands(row)
        candidates = {index for band in bands for index in self._buckets.get(band, ())}
        if any(jaccard(row, self._kept[index]) >= self._threshold for index in candidates):
            return False
        for band in bands:
            self._buckets.setdefault(band, []).append(len(self._kept))
        self._kept.append(row)
        return True

    def _bands(self, row: frozenset[int]) -> list[tuple[int, bytes]]:
        numpy, smallest = self._numpy, None
        values = numpy.fromiter(row, dtype=numpy.uint64, count=len(row))
        for start in range(0, len(values), 4096):  # a huge row must not need 128 times its size
            hashed = (self._factors * values[None, start : start + 4096] + self._terms) >> numpy.uint64(32)
            least = hashed.min(axis=1)
            smallest = least if smallest is None else numpy.minimum(smallest, least)
        parts = smallest.astype(numpy.uint32).reshape(BANDS, -1)
        return [(i, parts[i].tobytes()) for i in range(BANDS)]
