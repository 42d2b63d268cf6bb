"""The states of one series, and what moves it from one to the next. No numbers are made here.

calm → drifting when a look alarms; the check is run at once, and again at every further look that alarms, until the
series is confirmed. drifting or confirmed → recovered after CALM_LOOKS looks in a row that do not alarm and whose band
excludes the null's edge. Levels are not refunded. Confirmation: exact one-sided McNemar (1947). The j-th test of a
series gets weight 2^−j, so p̃ = min_j p_j · 2^j is valid however many tests follow (weights sum to 1; a step that a
resumed attempt repeats keeps its j). Holm (1979) over the measurable series, those not tested counting as p̃ = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from seesaw_runner.flags.defaults import CALM_LOOKS
from seesaw_runner.flags.panel import SeriesStart
from seesaw_runner.flags.verdict import OpenSeries, Verdict

WATCHED = ("drifting", "confirmed")


@dataclass
class Series:
    """reason: why it cannot be watched. raised: whether its flag is in the journal. places: step of a test → its j,
    spent for good. adjusted: step of a test that still counts → p · 2^j. facts: what the newest look said.
    """

    start: SeriesStart
    reason: str | None
    detector: OpenSeries | None
    state: str = "calm"
    raised: bool = False
    places: dict[int, int] = field(default_factory=dict)
    adjusted: dict[int, float] = field(default_factory=dict)
    calm_looks: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    def see(self, verdict: Verdict) -> str | None:
        """Takes a look's verdict; the state that it leads to, where that is another one."""
        if verdict.alarm:
            self.calm_looks = 0
            return None if self.state in WATCHED else "drifting"
        if self.state not in WATCHED:
            return None
        self.calm_looks = self.calm_looks + 1 if verdict.clear else 0
        return "recovered" if self.calm_looks >= CALM_LOOKS else None

    def enter(self, state: str) -> None:
        self.state, self.calm_looks = state, 0

    def place(self, step: int) -> int:
        """j of a test at this step."""
        return self.places.setdefault(step, len(self.places) + 1)

    def next_place(self, step: int) -> int:
        """j that a test at this step has or would get."""
        return self.places.get(step, len(self.places) + 1)

    @property
    def smallest_p(self) -> float:
        """p̃ of the tests that count; 1 before the first."""
        return min(self.adjusted.values(), default=1.0)
