"""Intervals and tests of shares and of paired answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

RESAMPLES = 10_000


def share(count: int, n: int, confidence: float = 0.95) -> dict[str, Any]:
    """A share with Wilson's interval; null where there is nothing to divide by."""
    if n == 0:
        return {"n": 0, "count": 0, "estimate": None, "low": None, "high": None}
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = count / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)
    return {"n": n, "count": count, "estimate": p, "low": max(0.0, low), "high": min(1.0, high)}


def paired_difference(before: Sequence[bool], after: Sequence[bool], seed: int) -> dict[str, Any]:
    """Points (hundredths) that `after` is right more often than `before` on the same rows: 95 % interval by bootstrap
    over the rows, and McNemar's exact two-sided p.
    """
    n = len(before)
    gained = sum(b and not a for a, b in zip(before, after, strict=True))
    lost = sum(a and not b for a, b in zip(before, after, strict=True))
    out = {"n": n, "gained": gained, "lost": lost, "p": mcnemar(gained, lost)}
    if n == 0:
        return {**out, "estimate": None, "low": None, "high": None}
    # A row is a gain, a loss or neither: drawing rows anew is drawing these three counts.
    drawn = np.random.default_rng(seed).multinomial(n, [gained / n, lost / n, (n - gained - lost) / n], RESAMPLES)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / n, [0.025, 0.975]) * 100
    return {**out, "estimate": 100 * (gained - lost) / n, "low": float(low), "high": float(high)}


def mcnemar(gained: int, lost: int) -> float:
    """Exact, two-sided; 1 where nothing changed."""
    n = gained + lost
    tail = sum(math.comb(n, k) for k in range(max(gained, lost), n + 1)) / 2**n
    return min(1.0, 2 * tail) if n else 1.0
