"""`limit`: the expected accuracy (see `ExpectedAccuracy`) against a limit that healthy runs of the battery keep to.

No test, so nothing is spent: the limit is what a budget of false alarms buys, found on real trainings.
"""

from __future__ import annotations

from seesaw_runner.flags.defaults import LOSS_LIMITS
from seesaw_runner.flags.expected_accuracy import ExpectedAccuracy
from seesaw_runner.flags.panel import SeriesStart
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict


class LossLimit(ExpectedAccuracy):
    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        noise, _ = ExpectedAccuracy.limits(start, setup)
        return noise, harmless_loss(setup.alpha, setup.tolerance)

    def look(self, scores: LookScores) -> Verdict:
        estimate, low, high = self.points(scores.margins)
        alarm = estimate > self.threshold and estimate > self._guard
        return Verdict(estimate, low, high, self.unit, self.threshold, alarm, scores.progress / self.setup.series)

    def pass_over(self, progress: float) -> None:
        """A look leaves no trace."""


def harmless_loss(alpha: float, tolerance: float) -> float:
    """Points up to which nothing is said at a budget of alpha a run; never less than the tolerance."""
    limit = LOSS_LIMITS[0][1]
    for budget, points in LOSS_LIMITS[1:]:
        if budget <= alpha + 1e-9:
            limit = points
    return max(limit, tolerance)
