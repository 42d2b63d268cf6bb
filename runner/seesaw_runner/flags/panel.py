"""What a series is at the stage's start: its rows, and what is made of their margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from seesaw_runner.flags.defaults import (
    CHANGE_CLIP,
    GOOD_ROWS,
    MARGIN_CLIP,
    MIN_DENSITY,
    NLL_CLIP,
    SCALE,
)


@dataclass
class Noise:
    """A/A of one series: the start scored twice. nll_q99: 99th percentile of a row's |ΔNLL|; margin_sd: root mean
    square of the change of a row's margin; nats.
    """

    nll_q99: float = 0.0
    margin_sd: float = 0.0


@dataclass
class SeriesStart:
    """One skill × split. margins, nll: of the panel's rows at the stage's start; margins None where a trace has no
    alternatives. correct: the check of these rows, and of all others that might be in the panel, at the start. seed:
    the run's. groups: number of each row's cluster, negative for a row of its own. rows, dropped: of the probe set, and
    those of them that are also trained on; they are not in the panel.
    """

    skill: str
    split: str
    nll: np.ndarray
    margins: np.ndarray | None
    correct: Sequence[bool]
    noise: Noise
    seed: int = 0
    groups: Sequence[int] | None = None
    rows: int | None = None
    dropped: int = 0
    clusters: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.clusters = clusters_of(len(self.nll), self.groups)

    @property
    def id(self) -> str:
        return f"{self.skill}.{self.split}"

    @property
    def n(self) -> int:
        """Independent pieces of evidence: rows, a group counting once."""
        return len(self.clusters)


def clusters_of(rows: int, groups: Sequence[int] | None) -> list[list[int]]:
    """Rows of each group, in the order of their first row."""
    found: dict[tuple[bool, int], list[int]] = {}
    for i in range(rows):
        alone = groups is None or groups[i] < 0
        found.setdefault((alone, i if alone else groups[i]), []).append(i)
    return list(found.values())


def averaged(values: np.ndarray, clusters: Sequence[Sequence[int]]) -> np.ndarray:
    """One number a cluster: the mean of its rows."""
    if len(clusters) == len(values):
        return values
    return np.array([values[list(rows)].mean() for rows in clusters])


def clipped(margins: np.ndarray) -> np.ndarray:
    return np.clip(margins, -MARGIN_CLIP, MARGIN_CLIP)


def margin_change(start: SeriesStart, margins: np.ndarray) -> np.ndarray:
    """d_i: change of a row's margin, cut so that no row outweighs the others; one number a cluster."""
    assert start.margins is not None
    change = np.clip(clipped(margins) - clipped(start.margins), -CHANGE_CLIP, CHANGE_CLIP)
    return averaged(change, start.clusters)


def nll_change(start: SeriesStart, nll: np.ndarray) -> np.ndarray:
    """ΔNLL, one number a cluster."""
    return averaged(np.clip(nll - start.nll, -NLL_CLIP, NLL_CLIP), start.clusters)


def expected_right(margins: np.ndarray, scale: float = SCALE) -> np.ndarray:
    """S(m / scale): how likely a row with this margin is answered right."""
    return 1 / (1 + np.exp(-clipped(margins) / scale))


def density_at_zero(margins: np.ndarray) -> float:
    """Of the start margins: how many rows sit on the edge, per nat. Gaussian kernel, Silverman's (1986) bandwidth
    0.9 · min(sd, IQR / 1.34) · n^(−1/5).
    """
    low, high = np.quantile(margins, [0.25, 0.75])
    spreads = [s for s in (float(margins.std(ddof=1)), float(high - low) / 1.34) if s > 0]
    if not spreads:
        return MIN_DENSITY
    h = 0.9 * min(spreads) * len(margins) ** -0.2
    return max(MIN_DENSITY, float(np.exp(-0.5 * (margins / h) ** 2).mean()) / (h * math.sqrt(2 * math.pi)))


def is_weak(n: int) -> bool:
    """A panel that may alarm, but sees only large losses."""
    return n < GOOD_ROWS
