"""`nll`: has the reference answer as a whole become less likely, by more than noise and tolerance?

Mean over rows of the sequence ΔNLL; its one-sided lower bound at level alpha / (series · looks) (Bonferroni) against
noise + tolerance. The bound is Student's t, and where rows are skewed to the left (most a little worse, a few much
better) Hall's (1992) transformation of it: plain t then fires up to five times too often. Measured with the mean
exactly at the threshold, n = 32 … 128, 40 independent looks, alpha = 0.1: normal 0.07–0.08, right-skewed 0.01,
left-skewed 0.06–0.15; looks at the same rows depend on each other and give less. No bound on a mean holds for every
distribution (Bahadur & Savage 1956).
"""

from __future__ import annotations

from seesaw_runner.flags.panel import SeriesStart, nll_change
from seesaw_runner.flags.statistics import bounds
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict


class SequenceNll:
    unit = "nats"

    def __init__(self, start: SeriesStart, setup: Setup):
        self.start, self.setup = start, setup
        self.threshold = sum(self.limits(start, setup))
        self._looks = 0

    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        return start.noise.nll_q99, setup.tolerance_nats

    def look(self, scores: LookScores) -> Verdict:
        self._looks += 1
        # How many looks a command will have is not known: Σ 1/j(j+1) = 1.
        j = round(1 / (1 - scores.progress)) - 1 if self.setup.looks is None else self._looks
        share = 1 / self.setup.looks if self.setup.looks else 1 / (j * (j + 1))
        spent = j / self.setup.looks if self.setup.looks else scores.progress
        mean, lower, upper = bounds(nll_change(self.start, scores.nll).tolist(), self.setup.level * share)
        return Verdict(
            mean, lower, upper, self.unit, self.threshold, lower > self.threshold, min(1.0, spent) / self.setup.series
        )

    def pass_over(self, progress: float) -> None:
        self._looks += 1
