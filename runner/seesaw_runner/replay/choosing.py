"""Takes a source's share of a buffer from its candidates: by chance, or so that what is taken stands for the rest."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from seesaw_runner.data.canonical import row_hashes
from seesaw_runner.data.rows import read_rows
from seesaw_runner.replay import coverage, features
from seesaw_runner.replay.quality import ReplayError


def by_chance(size: int, quota: int, seed: str) -> list[int]:
    """What a source's share is where nothing else decides."""
    return sorted(random.Random(seed).sample(range(size), quota))


def choose(
    hashes: Sequence[str],
    lines: Sequence[int],
    quota: int,
    *,
    path: str,
    seed: str,
    diversity: dict | None,
    first: Collection[int] = (),
    states: features.States | None = None,
    width: int = 0,
) -> tuple[list[int], dict[str, Any] | None]:
    """Which `quota` of the candidates are taken (ascending indexes), and what that bought, for buffer.json.

    hashes, lines: of each candidate, in the order of the file `path`. seed: a text. first: those of the quota that are
    taken already. states: gives hidden states, of `width` numbers each.
    """
    method = next((name for name in ("k_center", "clusters") if (diversity or {}).get(name)), None)
    if method is None or not hashes:
        open_rows = [i for i in range(len(hashes)) if i not in first]
        left = by_chance(len(open_rows), quota - len(first), seed)
        return sorted([*first, *(open_rows[k] for k in left)]), None
    how, source = diversity[method], random.Random(f"{seed}/{method}")
    kind = how["features"]
    at = list(range(len(hashes)))
    most = features.most_rows(kind, width)
    if len(at) > most:
        at = sorted(source.sample(at, most))
    values = values_of(path, [hashes[i] for i in at], {lines[i] for i in at})
    if kind == "tfidf":
        table = features.tfidf(values)
    elif states is None:
        raise ReplayError("features: hidden needs the stage's start model, which this recipe does not load")
    else:
        found, readable = states(values)
        at = [i for i, good in zip(at, readable, strict=True) if good]
        if not at:
            raise ReplayError(f"no row of {path} can be read by the start model, so its hidden states cannot be used")
        table = features.hidden(found)
    taken_first = [k for k, i in enumerate(at) if i in first]
    share = min(quota - len(first) + len(taken_first), len(at))
    if method == "k_center":
        picked, extra = coverage.k_center(table, share, source, taken_first), {}
    else:
        picked, number = _from_clusters(table, share, how["count"], source, taken_first)
        extra = {"clusters": number}
    # Not the very draw where fewer could be compared: as many of the rows that were.
    chance = by_chance(len(at), quota if len(at) == len(hashes) else share, seed)
    told = {"method": method, "features": kind, **extra, "compared": len(at), **coverage.left_out(table, picked)}
    told["random"] = coverage.left_out(table, chance)
    taken = {at[k] for k in picked} | set(first)
    rest = [i for i in range(len(hashes)) if i not in taken]
    taken |= set(source.sample(rest, quota - len(taken)))  # where fewer could be compared than are wanted
    return sorted(taken), told


def _from_clusters(
    table: Any, quota: int, clusters: int, source: random.Random, first: list[int]
) -> tuple[list[int], int]:
    """Equal shares of the clusters of the rows that are not taken yet, and the taken ones."""
    if not first:
        return coverage.by_clusters(table, quota, clusters, source)
    left = sorted(set(range(table.shape[0])) - set(first))
    if not left:
        return first, 0
    picked, number = coverage.by_clusters(table[left], quota - len(first), clusters, source)
    return sorted([*first, *(left[k] for k in picked)]), number


def values_of(path: str, hashes: Sequence[str], lines: set[int]) -> Iterator[dict]:
    """The rows with these hashes, in their order, which is the file's; one at a time, so that a large file need not be
    in memory."""
    left = set(hashes)
    for row in read_rows(path):
        if row.line in lines and row.error is None:
            key = row_hashes(row.value).full
            if key in left:
                left.discard(key)
                yield row.value
    if left:
        raise ReplayError(f"{path} changed while the buffer was being built; run the stage again")
