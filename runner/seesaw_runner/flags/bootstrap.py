"""The pairs bootstrap behind `soft` and `shift`: studentised resamples of a mean, and a test that spends its level over
the looks by their joint distribution.

Which rows a resample draws is counter-based (draw q is splitmix32 of the seed plus q), so both languages draw the same
ones. One-sided: it tells a mean that fell below −delta.
"""

from __future__ import annotations

import math

import numpy as np

from seesaw_runner.flags.defaults import RESAMPLES

#: Spread (variance) below which a look has no test: all rows moved alike.
NO_SPREAD = 1e-10
#: Counts that are worked on at once.
CHUNK = 1 << 19
#: Places of the 90 % band among the sorted studentised resamples: 5 % on either side.
BAND = (RESAMPLES // 20 - 1, RESAMPLES - RESAMPLES // 20)


def fnv1a(text: str) -> int:
    """FNV-1a, 32 bits, of the UTF-8 bytes."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def series_seed(series: str, seed: int) -> int:
    """What the draws of a series start from. seed: the run's; its lower 32 bits count."""
    return fnv1a(series) ^ (seed & 0xFFFFFFFF)


def draws(seed: int, first: int, count: int, n: int) -> np.ndarray:
    """Rows (0 … n − 1) drawn as numbers first … first + count − 1."""
    mask = np.uint64(0xFFFFFFFF)
    number = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z = (np.uint64(seed) + number * np.uint64(0x9E3779B9)) & mask
    z ^= z >> np.uint64(16)
    z = z * np.uint64(0x21F0AAAD) & mask
    z ^= z >> np.uint64(15)
    z = z * np.uint64(0x735A2D97) & mask
    z ^= z >> np.uint64(15)
    return (z * np.uint64(n) >> np.uint64(32)).astype(np.intp)


def resamples(seed: int, n: int) -> np.ndarray:
    """How often each resample draws each row, uint16 [RESAMPLES, n]."""
    out = np.empty((RESAMPLES, n), np.uint16)
    for cut in _parts(n):
        size = cut.stop - cut.start
        rows = draws(seed, cut.start * n, size * n, n) + np.repeat(np.arange(size) * n, n)
        out[cut] = np.bincount(rows, minlength=size * n).reshape(size, n)
    return out


def _parts(n: int) -> list[slice]:
    """The resamples, in parts that fit into a cache: probe sets can be large."""
    size = max(1, CHUNK // n)
    return [slice(a, min(RESAMPLES, a + size)) for a in range(0, RESAMPLES, size)]


class Bootstrap:
    """The resamples of one series. `studentised` is made once a look and used by the test and the band."""

    def __init__(self, seed: int, n: int):
        self.n, self._counts = n, resamples(seed, n)

    def studentised(self, x: np.ndarray) -> np.ndarray:
        """(resampled mean − mean) / its own standard error, [RESAMPLES]; x: one number a cluster."""
        centred = x - x.mean()
        both = np.stack([centred, centred * centred], axis=1)
        s, square = np.concatenate([self._counts[cut].astype(np.float64) @ both for cut in _parts(self.n)]).T / self.n
        return s / np.sqrt(np.maximum(square - s * s, NO_SPREAD) / (self.n - 1))

    def band(self, x: np.ndarray, z: np.ndarray) -> tuple[float, float, float]:
        """(estimate, low, high) of the loss, which is minus the mean: the 90 % band by percentile-t."""
        mean, error = float(x.mean()), standard_error(x)
        low, high = np.partition(z, BAND)[list(BAND)]
        return -mean, -mean + error * float(low), -mean + error * float(high)


def standard_error(x: np.ndarray) -> float:
    """Of the mean; the spread is divided by n, as in the resamples."""
    return math.sqrt(float(((x - x.mean()) ** 2).mean()) / (len(x) - 1))


class GroupSequential:
    """Null: the mean is ≥ −delta at every look. `alpha` is spent in proportion to progress: at each look so many of the
    paths (resamples) that have not alarmed yet do, and the observed statistic alarms when it is among them.
    """

    def __init__(self, delta: float, alpha: float):
        self.delta, self.alpha = delta, alpha
        self.killed = 0
        self._alive = np.ones(RESAMPLES, bool)

    @property
    def spent(self) -> float:
        """Level spent so far."""
        return self.killed / RESAMPLES

    def look(self, x: np.ndarray, z: np.ndarray, progress: float) -> bool:
        """Whether this look alarms. z: `Bootstrap.studentised(x)`."""
        mean = float(x.mean())
        variance = float(((x - mean) ** 2).mean())
        k, left = math.floor(self.alpha * progress * RESAMPLES) - self.killed, int(self._alive.sum())
        if k < 1 or left == 0:
            return False
        if variance <= NO_SPREAD:  # nothing is estimated, so nothing is paid for
            return mean + self.delta < 0
        cut = float(np.partition(z[self._alive], min(k, left) - 1)[min(k, left) - 1])
        dead = self._alive & (z <= cut)
        self._alive &= ~dead
        self.killed += int(dead.sum())
        return (mean + self.delta) / math.sqrt(variance / (len(x) - 1)) <= cut

    def pass_over(self, progress: float) -> None:
        """A look that was taken and does not count any more: its level stays spent."""
        self.killed = max(self.killed, math.floor(self.alpha * progress * RESAMPLES))
