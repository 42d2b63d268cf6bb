"""Early warnings of a run: has a skill become less likely since the stage's start, by more than noise and tolerance?

Standard library only. One *series* per skill and split. What is tested, and why it holds its level:

* Statistic: per probe row the sequence ΔNLL = NLL now − NLL at the stage's start (nats); its mean over rows.
* Noise: the start checkpoint is scored twice (other batch size, other order); the 99th percentile of |ΔNLL| over rows
  is added to the tolerance. threshold = noise + tolerance.
* Watch: drifting when the one-sided lower bound of the mean exceeds the threshold, with level = alpha / (K · T):
  Bonferroni over K measurable series and T planned looks. The bound is Student's t, and where the rows are skewed to
  the left (most a little worse, a few much better) Hall's (1992) transformation of it: plain t then fires up to five
  times too often. Measured with the mean exactly at the threshold, n = 32 … 128, 40 independent looks, alpha = 0.1:
  normal 0.07–0.08, right-skewed 0.01, left-skewed (exponential, gamma, lognormal) 0.06–0.15; looks at the same rows
  depend on each other and give less (4 × 5 looks, n = 48: 0.02–0.06). No bound on a mean holds for every
  distribution (Bahadur & Savage 1956): when a few percent of rows would improve by very much and none of them is
  among the probes, a false alarm remains possible.
* Confirmation: the skill's check is run at once on the same split; exact one-sided McNemar (McNemar 1947): with b rows
  lost and c gained, p = P(X ≥ b), X ~ Binomial(b + c, ½). Tests of one series are repeated while it drifts; the j-th
  gets weight 2^−j, so p̃ = min_j p_j · 2^j is a valid p-value for the series however many tests follow (Bonferroni,
  weights sum to 1; a step that a resumed attempt repeats keeps its j). Holm (1979) over the K measurable series at
  0.05, series not tested counting as p̃ = 1. Since p̃ only falls, a confirmation stays right when more tests come.
* Recovered: the one-sided 90 % upper bound of the mean is below the threshold at two looks in a row. Levels are not
  refunded.
* Not measurable, with the reason: fewer than 32 scored rows; the skill was not there at the stage's start (lower end of
  the 95 % Wilson (1927) interval of its accuracy below 0.2: nothing to forget); noise above the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import Any

from seesaw_runner.journal import standing_events

MIN_ROWS = 32
MIN_ACCURACY = 0.2
CONFIRM_LEVEL = 0.05
#: A row whose answer became impossible counts as this many nats, so that means stay finite.
CLIP = 1000.0


# ---- distributions


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


# ---- series


@dataclass
class SeriesStart:
    """What is known of one skill × split at the stage's start. `noise`: q99 of |ΔNLL| over rows of the A/A rescoring,
    nats.
    """

    skill: str
    split: str
    rows: int
    correct: Sequence[bool]
    noise: float

    @property
    def id(self) -> str:
        return f"{self.skill}.{self.split}"


@dataclass
class _Series:
    start: SeriesStart
    reason: str | None
    state: str = "calm"
    raised: bool = False
    places: dict[int, int] = field(default_factory=dict)  # step of a test → its j; spent for good
    adjusted: dict[int, float] = field(default_factory=dict)  # step of a test that still counts → p · 2^j
    calm_looks: int = 0
    last: dict[str, Any] = field(default_factory=dict)


@dataclass
class Look:
    """One look at one series. `events`: (event type, body) to journal. `needs_check`: run the check, then call
    `Watch.test`.
    """

    events: list[tuple[str, dict[str, Any]]]
    needs_check: bool


class Watch:
    """All series of one run. looks: planned probe points after step 0."""

    def __init__(self, *, alpha: float, tolerance: float, looks: int, series: Sequence[SeriesStart]):
        self.tolerance = tolerance
        self._series = {s.id: _Series(s, _why_not(s, tolerance)) for s in series}
        self.measurable = [i for i, s in self._series.items() if s.reason is None]
        self.level = alpha / max(1, len(self.measurable) * looks)

    def not_measurable(self) -> list[tuple[str, dict[str, Any]]]:
        """The flags to raise at step 0 for series that cannot be watched; none that were raised before."""
        out = []
        for s in self._series.values():
            if s.reason is not None and not s.raised:
                out.append(self._event(s, 0, "not-measurable", math.nan, math.nan))
        return out

    def state(self, series: str) -> str:
        """calm, drifting, confirmed or recovered."""
        return self._series[series].state

    def look(self, step: int, series: str, deltas: Sequence[float]) -> Look:
        """Looks at the ΔNLL of every scored row. A series that is not measurable gives nothing."""
        s = self._series[series]
        usable = [max(-CLIP, min(d, CLIP)) for d in deltas if not math.isnan(d)]
        if s.reason is not None or len(usable) < MIN_ROWS:
            return Look([], False)
        mean, lower, upper = bounds(usable, self.level)
        s.last = {"value": mean, "lower": lower, "n": len(usable)}
        if lower > self._threshold(s):
            s.calm_looks = 0
            if s.state in ("calm", "recovered"):
                return Look([self._event(s, step, "drifting", mean, lower)], True)
            return Look([], s.state == "drifting")
        if s.state in ("drifting", "confirmed"):
            s.calm_looks = s.calm_looks + 1 if upper < self._threshold(s) else 0
            if s.calm_looks >= 2:
                return Look([self._event(s, step, "recovered", mean, lower)], False)
        return Look([], False)

    def test(self, step: int, series: str, before: Sequence[bool], now: Sequence[bool]) -> tuple[str, dict[str, Any]]:
        """The paired exact test after a `needs_check` look; the event says confirmed, or drifting still."""
        s = self._series[series]
        lost = sum(b and not n for b, n in zip(before, now, strict=True))
        gained = sum(n and not b for b, n in zip(before, now, strict=True))
        weight = 2 ** self._place(s, step)
        p = mcnemar_p(lost, gained)
        s.adjusted[step] = p * weight
        watched = [self._series[i] for i in self.measurable]
        level = holm_level([min(w.adjusted.values(), default=1.0) for w in watched], watched.index(s))
        test = {
            "lost": lost,
            "gained": gained,
            "n": len(now),
            "p": p,
            "level": level / weight,
            "accuracy_start": sum(before) / len(before),
            "accuracy_now": sum(now) / len(now),
        }
        # Its own p-value, not the series' smallest: what is called confirmed must be visible in the numbers beside it.
        state = "confirmed" if p * weight <= level else "drifting"
        return self._event(s, step, state, s.last["value"], s.last["lower"], test)

    @staticmethod
    def _place(s: _Series, step: int) -> int:
        return s.places.setdefault(step, len(s.places) + 1)

    def _is_flag(self, event: dict[str, Any]) -> bool:
        return event.get("type") in ("flag.raised", "flag.changed") and str(event.get("id")) in self._series

    def restore(self, events: Iterable[dict[str, Any]]) -> None:
        """Takes over what earlier attempts journalled; `events` end with this attempt's `run.started`.

        A resume voids everything after its step, as readers of the journal do: those states are forgotten and will be
        raised again, and those tests no longer count. Their places stay taken, so levels spent stay spent.
        """
        events = [e for e in events if e.get("type") == "run.started" or self._is_flag(e)]
        for body in events:
            if isinstance(body.get("test"), dict):
                self._place(self._series[str(body["id"])], body["step"])
        for body in filter(self._is_flag, standing_events(events)):
            s = self._series[str(body["id"])]
            s.raised = True
            s.state = body["state"] if body["state"] != "not-measurable" else s.state
            if isinstance(body.get("test"), dict):
                s.adjusted[body["step"]] = float(body["test"]["p"]) * 2 ** self._place(s, body["step"])

    def _threshold(self, s: _Series) -> float:
        return s.start.noise + self.tolerance

    def _event(
        self, s: _Series, step: int, state: str, value: float, lower: float, test: dict | None = None
    ) -> tuple[str, dict[str, Any]]:
        kind = "flag.changed" if s.raised else "flag.raised"
        s.raised = True
        if state != "not-measurable":
            s.state = state
            s.calm_looks = 0
        body: dict[str, Any] = {
            "id": s.start.id,
            "skill": s.start.skill,
            "split": s.start.split,
            "step": step,
            "state": state,
            "value": value,
            "lower": lower,
            "threshold": self._threshold(s),
            "noise": s.start.noise,
            "level": self.level,
            "n": s.last.get("n", s.start.rows),
        }
        if s.reason is not None:
            body["reason"] = s.reason
        if test is not None:
            body["test"] = test
        return kind, body


def bounds(values: Sequence[float], level: float, upper_level: float = 0.1) -> tuple[float, float, float]:
    """Mean, one-sided lower bound at `level`, one-sided upper bound at `upper_level`; see the module's head."""
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


def _why_not(s: SeriesStart, tolerance: float) -> str | None:
    if s.rows < MIN_ROWS:
        return f"Only {s.rows} probe rows could be scored; at least {MIN_ROWS} are needed. Add probes."
    n, right = len(s.correct), sum(map(bool, s.correct))
    if wilson_lower(right, n) < MIN_ACCURACY:
        return f"The skill was not there at the stage's start ({right} of {n} right), so there is nothing to forget."
    if s.noise > tolerance:
        return (
            f"Scoring noise of {s.noise:.3g} nats exceeds the tolerance of {tolerance:g}. Score in float32 or "
            "raise the tolerance."
        )
    return None
