"""What every detector takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seesaw_runner.flags.defaults import ALPHA, SCALE, TOLERANCE, TOLERANCE_NATS
from seesaw_runner.flags.panel import SeriesStart


@dataclass
class LookScores:
    """The panel's rows at one look. progress: share of the run's looks, 0 … 1. margins None where there are none."""

    step: int
    progress: float
    nll: np.ndarray
    margins: np.ndarray | None


@dataclass
class Verdict:
    """One look at one series. estimate > 0 is a loss, in `unit` (nats or points of accuracy); low … high its 90 % band
    (of `nll`: lower bound at its level, upper 90 % bound). clear: the band excludes the null's edge, `threshold`.
    spent: share of the run's budget of false alarms that this series has used.
    """

    estimate: float
    low: float
    high: float
    unit: str
    threshold: float
    alarm: bool
    spent: float

    @property
    def clear(self) -> bool:
        return self.high < self.threshold


@dataclass
class Setup:
    """alpha: of the run; series: how many share it. looks: planned looks, None where that is not known. tolerance:
    points of accuracy; tolerance_nats: for `nll`.
    """

    alpha: float = ALPHA
    series: int = 1
    looks: int | None = None
    tolerance: float = TOLERANCE
    tolerance_nats: float = TOLERANCE_NATS
    scale: float = SCALE

    @property
    def level(self) -> float:
        """Of one series."""
        return self.alpha / self.series

    def of_budget(self, level: float) -> float:
        """A level that one series has spent, as a share of the run's."""
        return level / self.alpha if self.alpha else 0.0


class OpenSeries(Protocol):
    """A detector at work on one series; looks come in order. Its class is made from (SeriesStart, Setup)."""

    unit: str

    @staticmethod
    def limits(start: SeriesStart, setup: Setup) -> tuple[float, float]:
        """What scoring noise alone can look like, and the loss that is harmless, in `unit`; before it is opened."""

    def look(self, scores: LookScores) -> Verdict: ...

    def pass_over(self, progress: float) -> None:
        """A look that was taken but does not count any more (a resume made it void): its level stays spent."""
