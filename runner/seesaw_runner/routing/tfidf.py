"""TF-IDF of word and character n-grams, as plain numbers: what scikit-learn's TfidfVectorizer gives (a test compares
them), but without it, so that a router runs where only numpy is and needs no pickle.

Words: one and two, of at least two letters. Characters: two to four, within words and their edges. Both sublinear,
smoothed, and each of length 1, so that a long prompt weighs no more than a short one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

#: Terms of each kind; the ones that most prompts have are kept.
MOST_TERMS = 8192
_WORD = re.compile(r"\b\w\w+\b")
_SPACE = re.compile(r"\s\s+")

#: Which features a prompt has, and how much of each.
Row = tuple[np.ndarray, np.ndarray]


def words(text: str) -> Iterator[str]:
    found = _WORD.findall(text.lower())
    yield from found
    yield from (f"{a} {b}" for a, b in zip(found, found[1:], strict=False))


def characters(text: str) -> Iterator[str]:
    for word in _SPACE.sub(" ", text.lower()).split():
        padded = f" {word} "
        for size in (2, 3, 4):
            yield padded[:size]
            yield from (padded[k : k + size] for k in range(1, len(padded) - size + 1))
            if size >= len(padded):
                break


class Tfidf:
    """`terms`: of each kind in the order of its columns, the words' first. `idf`: one number a column."""

    kind = "tfidf"

    def __init__(self, terms: tuple[list[str], list[str]], idf: np.ndarray):
        self.terms, self.idf = terms, idf
        self._columns = [dict(zip(kind, range(len(kind)), strict=True)) for kind in terms]

    @property
    def width(self) -> int:
        return len(self.idf)

    @classmethod
    def fit(cls, texts: Sequence[str]) -> Tfidf:
        terms: list[list[str]] = []
        idf: list[float] = []
        for split in (words, characters):
            seen = Counter(term for text in texts for term in set(split(text)))
            kept = sorted(sorted(seen, key=lambda term: (-seen[term], term))[:MOST_TERMS])
            terms.append(kept)
            idf += [math.log((1 + len(texts)) / (1 + seen[term])) + 1 for term in kept]
        return cls((terms[0], terms[1]), np.array(idf))

    def row(self, text: str) -> Row:
        index: list[int] = []
        value: list[float] = []
        first = 0
        for split, columns in zip((words, characters), self._columns, strict=True):
            counts = Counter(columns[term] for term in split(text) if term in columns)
            numbers = [(1 + math.log(n)) * self.idf[first + column] for column, n in counts.items()]
            length = math.sqrt(sum(number * number for number in numbers))
            index += [first + column for column in counts]
            value += [number / length for number in numbers]
            first += len(columns)
        return np.array(index, dtype=np.int64), np.array(value)

    def rows(self, asked: Sequence) -> list[Row]:
        return [self.row(one.text) for one in asked]
