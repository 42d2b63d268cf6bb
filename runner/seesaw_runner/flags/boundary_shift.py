"""`shift`: has the margin fallen for rows that were undecided at the start?

The change d of a row's margin is regressed on its start margin a; the intercept b is the shift at a = 0, so that a mere
change of temperature (margins shrink in proportion) has b = 0. Pseudo-values of b (HC3) carry the uncertainty of the
slope. Null: b ≥ −delta, delta = tolerance / density of the start margins at zero.
"""

from __future__ import annotations

import numpy as np

from seesaw_runner.flags.bootstrap import Bootstrap, GroupSequential, series_seed
from seesaw_runner.flags.defaults import NOISE_ERRORS
from seesaw_runner.flags.panel import SeriesStart, averaged, clipped, density_at_zero, margin_change
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict

#: Start margins with less spread than this have no slope: the mean change is the shift.
NO_SLOPE = 1e-6


def allowed_shift(start: SeriesStart, tolerance: float) -> float:
    """delta in nats: the shift that costs `tolerance` points of accuracy."""
    return tolerance / 100 / density_at_zero(clipped(start.margins)) if tolerance > 0 else 0.0


class Intercept:
    """The regression on one series' start margins. `weights` · d is the intercept."""

    def __init__(self, start: SeriesStart):
        self.a = averaged(clipped(start.margins), start.clusters)
        n, centre = len(self.a), float(self.a.mean())
        self._about = self.a - centre
        self._squares = float((self._about**2).sum())
        self._sloped = float(self.a.std()) > NO_SLOPE
        ones = np.full(n, 1 / n)
        self.weights = ones - centre * self._about / self._squares if self._sloped else ones
        self._leverage = ones + self._about**2 / self._squares if self._sloped else ones

    def noise_of(self, start: SeriesStart) -> float:
        """What scoring noise can make of the intercept."""
        return NOISE_ERRORS * start.noise.margin_sd * float(np.sqrt((self.weights**2).sum()))

    def pseudo_values(self, d: np.ndarray) -> np.ndarray:
        """One number a cluster; their mean is the intercept."""
        slope = float(self._about @ d) / self._squares if self._sloped else 0.0
        intercept = float(d.mean()) - slope * float(self.a.mean())
        residual = d - intercept - slope * self.a
        value = self.weights * len(d) * residual / np.maximum(1 - self._leverage, 1e-6)
        return intercept + value - value.mean()


class BoundaryShift:
    unit = "nats"

    def __init__(self, start: SeriesStart, setup: Setup):
        self.start, self.setup = start, setup
        self.threshold = allowed_shift(start, setup.tolerance)
        self._line = Intercept(start)
        self._resampled = Bootstrap(series_seed(start.id, start.seed), start.n)
        self._test = GroupSequential(self.threshold, setup.level)
        self._guard = self._line.noise_of(start)

    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        return Intercept(start).noise_of(start), allowed_shift(start, setup.tolerance)

    def look(self, scores: LookScores) -> Verdict:
        values = self._line.pseudo_values(margin_change(self.start, scores.margins))
        z = self._resampled.studentised(values)
        estimate, low, high = self._resampled.band(values, z)
        alarm = self._test.look(values, z, scores.progress) and estimate > self._guard
        return Verdict(estimate, low, high, self.unit, self.threshold, alarm, self.setup.of_budget(self._test.spent))

    def pass_over(self, progress: float) -> None:
        self._test.pass_over(progress)
