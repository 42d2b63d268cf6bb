"""Which rows of a source stand for all of them: greedy k-center, or equal shares of k-means clusters.

Both are held against the choice by chance that the same seed would have made: how far a row that is left out is from
the nearest one that is kept.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Numbers of one table of distances (32 MiB of float32).
CHUNK = 8 << 20
#: Rows that clusters are looked for in; the others join the nearest one.
FIT_ROWS = 20_000


def k_center(features: Any, quota: int, source: random.Random, first: Sequence[int] = ()) -> list[int]:
    """Starts anywhere, or with the rows `first`, then always takes the row that is farthest from all taken ones: from
    anywhere, at most twice the least possible greatest distance (Gonzalez 1985). Ascending indexes."""
    if quota <= 0:
        return []
    chosen = [*first] or [source.randrange(features.shape[0])]
    nearest = _distances(features, chosen[0])
    for row in chosen[1:]:
        np.minimum(nearest, _distances(features, row), out=nearest)
    nearest[chosen] = -np.inf
    while len(chosen) < quota:
        nearest[chosen[-1]] = -np.inf
        chosen.append(int(np.argmax(nearest)))
        np.minimum(nearest, _distances(features, chosen[-1]), out=nearest)
    return sorted(chosen)


def by_clusters(features: Any, quota: int, clusters: int, source: random.Random) -> tuple[list[int], int]:
    """The same number of rows from each cluster, by chance within it; what one cannot fill and what does not divide
    goes to the larger ones. Ascending indexes, and how many clusters there are."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    rows = features.shape[0]
    fit = features
    if rows > FIT_ROWS:
        fit = features[sorted(source.sample(range(rows), FIT_ROWS))]
    with threadpool_limits(1):  # threads add up in any order, and the last digits decide
        means = KMeans(min(clusters, fit.shape[0]), n_init=4, random_state=source.getrandbits(31)).fit(fit)
        labels = means.labels_ if rows <= FIT_ROWS else means.predict(features)
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    members.sort(key=lambda one: (-len(one), int(one[0])))
    chosen: list[int] = []
    for one, share in zip(members, share_out(quota, [len(one) for one in members]), strict=True):
        chosen += [int(one[k]) for k in source.sample(range(len(one)), share)]
    return sorted(chosen), len(members)


def left_out(features: Any, chosen: Sequence[int]) -> dict[str, float]:
    """Mean and greatest distance of the rows that are not chosen to the nearest one that is; 0 where all are."""
    rows = features.shape[0]
    others = np.setdiff1d(np.arange(rows), np.asarray(chosen, dtype=np.int64))
    if not len(others) or not len(chosen):
        return {"mean": 0.0, "max": 0.0}
    kept = features[sorted(chosen)].T
    total, most = 0.0, 0.0
    step = max(1, CHUNK // len(chosen))
    for first in range(0, len(others), step):
        near = features[others[first : first + step]] @ kept
        near = near.toarray() if hasattr(near, "toarray") else near
        away = np.clip(1 - near.max(axis=1), 0.0, None)
        total += float(away.sum())
        most = max(most, float(away.max()))
    return {"mean": round(total / len(others), 6), "max": round(most, 6)}


def share_out(total: int, available: list[int]) -> list[int]:
    """Even shares; what one source cannot fill goes to the others, the first ones first."""
    shares = [0] * len(available)
    while total > 0:
        open_sources = [i for i, size in enumerate(available) if shares[i] < size]
        if not open_sources:
            break
        even, rest = divmod(total, len(open_sources))
        for place, i in enumerate(open_sources):
            share = min(even + (place < rest), available[i] - shares[i], total)
            shares[i] += share
            total -= share
    return shares


def _distances(features: Any, row: int) -> np.ndarray:
    one = features[row]
    one = one.toarray().ravel() if hasattr(one, "toarray") else one
    return 1 - np.asarray(features @ one).ravel()
