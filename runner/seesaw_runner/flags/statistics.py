"""The distributions and small tests behind the flags. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev

#: Level of the confirmations of a run, over all its series.
CONFIRM_LEVEL = 0.05


def t_cdf(t: float, df: float) -> float:
    """Student's t distribution function, by the regularised incomplete beta function."""
    if t == 0:
        return 0.5
    tail = 0.5 * _beta_inc(df / 2, 0.5, df / (df + t * t))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=256)  # a run asks for the same few again and again
def t_quantile(p: float, df: float) -> float:
    """The t with t_cdf(t, df) = p, to about 1e-10; bisection on the exact function. 0 < p < 1."""
    if not 0 < p < 1:
        raise ValueError(f"A quantile needs 0 < p < 1, not {p}.")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    low, high = 0.0, max(4.0, 2 * NormalDist().inv_cdf(p))
    while t_cdf(high, df) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
        if high - low < 1e-11 * max(1.0, high):
            break
    return (low + high) / 2


def _beta_inc(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta I_x(a, b), continued fraction (Abramowitz & Stegun 26.5.8, evaluated by Lentz's
    method).
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_inc(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 1000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + step * d, tiny)
            c = _away(1 + step / c, tiny)
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * value


def _away(x: float, tiny: float) -> float:
    return x if abs(x) > tiny else tiny


def wilson_lower(successes: int, n: int, confidence: float = 0.95) -> float:
    """Lower end of the two-sided Wilson score interval of a proportion; 0 when n = 0."""
    if n == 0:
        return 0.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / (1 + z * z / n))


def mcnemar_p(lost: int, gained: int) -> float:
    """Exact one-sided McNemar: P(X ≥ lost), X ~ Binomial(lost + gained, ½). 1 when nothing changed."""
    n = lost + gained
    return sum(math.comb(n, k) for k in range(lost, n + 1)) / 2**n if n else 1.0


def holm_level(adjusted: Sequence[float], mine: int, level: float = CONFIRM_LEVEL) -> float:
    """The level at which hypothesis `mine` is held in Holm's procedure, or 0 when a smaller p-value was not
    rejected.
    """
    order = sorted(range(len(adjusted)), key=lambda i: (adjusted[i], i != mine))
    for place, i in enumerate(order):
        bound = level / (len(adjusted) - place)
        if i == mine:
            return bound
        if adjusted[i] > bound:
            return 0.0
    raise IndexError(mine)


def quantile(values: Iterable[float], q: float) -> float:
    """Linear-interpolation quantile (Hyndman & Fan type 7); 0 for no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def bounds(values: Sequence[float], level: float, upper_level: float = 0.1) -> tuple[float, float, float]:
    """Mean, one-sided lower bound at `level`, one-sided upper bound at `upper_level`; see sequence_nll.py."""
    n, mean = len(values), fmean(values)
    spread = stdev(values)
    error = spread / math.sqrt(n)
    if error == 0:
        return mean, mean, mean
    below = error * t_quantile(1 - level, n - 1)
    skew = skewness(values)
    if skew < 0:
        # Hall's inverse transformation. In small skewed samples the skewness is underestimated, by about a third.
        skew *= 1.5
        x = below / spread - skew / (6 * n)
        below = max(below, spread * 3 / skew * (_cube_root(1 + skew * x) - 1))
    return mean, mean - below, mean + error * t_quantile(1 - upper_level, n - 1)


def skewness(values: Sequence[float]) -> float:
    """Sample skewness G1 (adjusted Fisher–Pearson); 0 for values without spread. Needs three values."""
    n, mean = len(values), fmean(values)
    second, third = (math.fsum((v - mean) ** k for v in values) / n for k in (2, 3))
    return third / second**1.5 * math.sqrt(n * (n - 1)) / (n - 2) if second > 0 else 0.0


def _cube_root(x: float) -> float:
    return math.copysign(abs(x) ** (1 / 3), x)


def smallest_drop(n: int, level: float, churn: float, power: float = 0.8) -> float | None:
    """The smallest drop of an accuracy (0 … 1) that an exact one-sided paired test of n rows at `level` can be expected
    to show; None where no drop can. churn: share of rows that change either way without a drop.

    As `smallestVisibleDrop` in src/domain/statistics/power.ts: Δ = z·σ_d/√n with σ_d² = churn + Δ − Δ², and k losses
    without a gain have p = ½^k.
    """
    if n <= 0:
        return None
    fewest = math.ceil(math.log2(1 / level) - 1e-9) / n
    r = (NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(power)) ** 2 / n
    drop = max((r + math.sqrt(r * r + 4 * (1 + r) * churn * r)) / (2 * (1 + r)), fewest)
    return None if drop > 1 else drop
