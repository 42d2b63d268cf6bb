"""`soft`: how many points of accuracy do the margins cost?

A row with margin m is answered right with probability S(m / scale), S the logistic function; x = S(now) − S(start).
Null: the mean of x is ≥ −tolerance at every look, tested by `GroupSequential`.
"""

from __future__ import annotations

import math

import numpy as np

from seesaw_runner.flags.bootstrap import Bootstrap, GroupSequential, series_seed
from seesaw_runner.flags.defaults import NOISE_ERRORS
from seesaw_runner.flags.panel import SeriesStart, averaged, expected_right
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict


class ExpectedAccuracy:
    unit = "points"

    def __init__(self, start: SeriesStart, setup: Setup, resampled: Bootstrap | None = None):
        self.start, self.setup = start, setup
        self._resampled = resampled or Bootstrap(series_seed(start.id, start.seed), start.n)
        self._test = GroupSequential(setup.tolerance / 100, setup.level)
        self._guard, self.threshold = self.limits(start, setup)

    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        """The slope of the logistic function is 1 / (4 · scale) at most."""
        noise = NOISE_ERRORS * start.noise.margin_sd / (4 * setup.scale) / math.sqrt(start.n)
        return 100 * noise, setup.tolerance

    def change(self, margins: np.ndarray) -> np.ndarray:
        """x of every cluster, shares of 1."""
        scale = self.setup.scale
        now, before = expected_right(margins, scale), expected_right(self.start.margins, scale)
        return averaged(now - before, self.start.clusters)

    def points(self, margins: np.ndarray) -> tuple[float, float, float]:
        """(estimate, low, high) of the loss in points of accuracy, without a look: for telling, not for deciding."""
        x = self.change(margins)
        estimate, low, high = self._resampled.band(x, self._resampled.studentised(x))
        return 100 * estimate, 100 * low, 100 * high

    def look(self, scores: LookScores) -> Verdict:
        x = self.change(scores.margins)
        z = self._resampled.studentised(x)
        estimate, low, high = (100 * v for v in self._resampled.band(x, z))
        alarm = self._test.look(x, z, scores.progress) and estimate > self._guard
        spent = self.setup.of_budget(self._test.spent)
        return Verdict(estimate, low, high, self.unit, self.threshold, alarm, spent)

    def pass_over(self, progress: float) -> None:
        self._test.pass_over(progress)
