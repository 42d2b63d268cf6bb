"""`strict`: the boundary shift again, with a guarantee that needs no large sample.

z = w · d with weights from the start margins alone are independent, bounded, and have the shift as their mean. Each
look gives a betting e-value, the mean over a grid of bets of Π(1 − λ(z + delta)) (Waudby-Smith & Ramdas 2020); their
weighted running sum has expectation ≤ 1 and never falls, so that P(ever ≥ 1/alpha) ≤ alpha for any dependence between
looks and any stopping. It needs about four times the rows of `shift`.
"""

from __future__ import annotations

import math

import numpy as np

from seesaw_runner.flags.bootstrap import Bootstrap, series_seed
from seesaw_runner.flags.boundary_shift import BoundaryShift, Intercept, allowed_shift
from seesaw_runner.flags.defaults import BETS, CHANGE_CLIP
from seesaw_runner.flags.panel import SeriesStart, margin_change
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict

#: e^50 is beyond every level; larger values are not needed and overflow.
LARGEST = 50.0


class SumOfEValues:
    unit = "nats"

    def __init__(self, start: SeriesStart, setup: Setup):
        self.start, self.setup = start, setup
        self.threshold = allowed_shift(start, setup.tolerance)
        self._line = Intercept(start)
        self._weights = self._line.weights * start.n
        self._resampled = Bootstrap(series_seed(start.id, start.seed), start.n)  # only for the band that is shown
        bound = float(np.abs(self._weights).max()) * CHANGE_CLIP
        self._bets = np.geomspace(*BETS) / (bound + self.threshold)
        self._guard = self._line.noise_of(start)
        self._sum = self._progress = 0.0

    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        return BoundaryShift.limits(start, setup)

    def look(self, scores: LookScores) -> Verdict:
        d = margin_change(self.start, scores.margins)
        logs = np.log1p(-np.outer(self._bets, self._weights * d + self.threshold)).sum(1)
        top = float(logs.max())
        e_value = math.exp(min(top, LARGEST)) * float(np.exp(logs - top).mean())
        self._sum += max(0.0, scores.progress - self._progress) * e_value
        self.pass_over(scores.progress)
        values = self._line.pseudo_values(d)
        estimate, low, high = self._resampled.band(values, self._resampled.studentised(values))
        alarm = self._sum >= 1 / self.setup.level and estimate > max(self.threshold, self._guard)
        return Verdict(estimate, low, high, self.unit, self.threshold, alarm, self._progress / self.setup.series)

    def pass_over(self, progress: float) -> None:
        self._progress = max(self._progress, progress)
