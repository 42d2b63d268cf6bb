"""All series of one run under one budget of false alarms: looks go in, flags for the journal come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seesaw_runner.flags.defaults import MIN_ROWS, USUAL_CHURN
from seesaw_runner.flags.detectors import DETECTORS
from seesaw_runner.flags.expected_accuracy import ExpectedAccuracy
from seesaw_runner.flags.loss_limit import harmless_loss
from seesaw_runner.flags.measurable import why_not_measurable
from seesaw_runner.flags.panel import SeriesStart, is_weak
from seesaw_runner.flags.settings import FlagSettings
from seesaw_runner.flags.states import Series
from seesaw_runner.flags.statistics import CONFIRM_LEVEL, holm_level, mcnemar_p, smallest_drop
from seesaw_runner.flags.verdict import LookScores, OpenSeries, Setup, Verdict
from seesaw_runner.journal import standing_events


@dataclass
class Look:
    """One look at one series. `events`: (event type, body) to journal. `needs_check`: run the check, then call
    `Watch.test`. verdict: None where there was nothing to look at.
    """

    events: list[tuple[str, dict[str, Any]]]
    needs_check: bool
    verdict: Verdict | None = None


@dataclass
class PastLook:
    """A look of an earlier attempt. scores: by series; empty where its traces are gone or the look does not count any
    more: its level stays spent.
    """

    step: int
    progress: float
    scores: Mapping[str, LookScores]


class Watch:
    """looks: planned probe points after step 0; None where that is not known."""

    def __init__(self, settings: FlagSettings, looks: int | None, series: Sequence[SeriesStart]):
        self.settings = settings
        reasons = {s.id: why_not(settings, s) for s in series}
        self.measurable = [s.id for s in series if reasons[s.id] is None]
        self.setup = replace(setup_of(settings), series=max(1, len(self.measurable)), looks=looks)
        self._series = {
            s.id: Series(s, reasons[s.id], None if reasons[s.id] else self._detector(s, self.setup)) for s in series
        }
        self._points: dict[str, ExpectedAccuracy] = {}

    def not_measurable(self) -> list[tuple[str, dict[str, Any]]]:
        """The flags to raise at step 0 for series that cannot be watched; none that were raised before."""
        out = []
        for s in self._series.values():
            if s.reason is not None and not s.raised:
                out.append(self._event(s, 0, "not-measurable"))
        return out

    def state(self, series: str) -> str:
        """calm, drifting, confirmed or recovered."""
        return self._series[series].state

    @property
    def _detector(self) -> type[OpenSeries]:
        return DETECTORS[self.settings.detector]

    # ---- looks

    def look(self, series: str, scores: LookScores, moved: Callable[[], list[dict]] = list) -> Look:
        """Looks at the panel's scores. moved: the rows that moved most, asked for only when there is a flag to explain.
        A series that is not measurable gives nothing.
        """
        s = self._series[series]
        if s.detector is None:
            return Look([], False)
        verdict = s.detector.look(scores)
        entered = s.see(verdict)
        s.facts = self._told(verdict)
        wanted = entered is not None or (verdict.alarm and s.state == "drifting")
        if not wanted:
            return Look([], False, verdict)
        s.facts |= self._explained(s, scores, moved())
        events = [] if entered is None else [self._event(s, scores.step, entered)]
        return Look(events, verdict.alarm, verdict)

    def test(self, step: int, series: str, before: Sequence[bool], now: Sequence[bool]) -> tuple[str, dict[str, Any]]:
        """The paired exact test after a `needs_check` look, on the panel's rows; a group counts once. The event says
        confirmed, or drifting still.
        """
        s = self._series[series]
        lost, gained = _changes(s.start, before, now)
        weight = 2 ** s.place(step)
        p = mcnemar_p(lost, gained)
        s.adjusted[step] = p * weight
        watched = [self._series[i] for i in self.measurable]
        level = holm_level([w.smallest_p for w in watched], watched.index(s))
        test = {
            "lost": lost,
            "gained": gained,
            "n": s.start.n,
            "p": p,
            "level": level / weight,
            "accuracy_start": sum(before) / len(before),
            "accuracy_now": sum(now) / len(now),
        }
        # Its own p-value, not the series' smallest: what is called confirmed must be visible in the numbers beside it.
        return self._event(s, step, "confirmed" if p * weight <= level else "drifting", test)

    # ---- a later attempt

    def restore(self, events: Iterable[dict[str, Any]], past: Iterable[PastLook] = ()) -> None:
        """Takes over what earlier attempts journalled and saw; `events` end with this attempt's `run.started`.

        A resume voids everything after its step, as readers of the journal do: those states are forgotten and will be
        raised again, and those tests no longer count. Their places stay taken, so levels spent stay spent. past: the
        looks that stand, in order, so that detectors know again what they had spent and the states how long it is calm.
        """
        events = [e for e in events if e.get("type") == "run.started" or self._is_flag(e)]
        for body in events:
            if isinstance(body.get("test"), dict):
                self._series[str(body["id"])].place(body["step"])
        looks = list(past)
        for body in filter(self._is_flag, standing_events(events)):
            while looks and looks[0].step <= body["step"]:
                self._again(looks.pop(0))
            s = self._series[str(body["id"])]
            s.raised = True
            if body["state"] != "not-measurable":
                s.enter(body["state"])
            if isinstance(body.get("test"), dict):
                s.adjusted[body["step"]] = float(body["test"]["p"]) * 2 ** s.place(body["step"])
        for one in looks:
            self._again(one)

    def _again(self, look: PastLook) -> None:
        """Feeds a past look to the detectors. What it led to is in the journal; only the calm looks are counted."""
        for s in self._series.values():
            if s.detector is None:
                continue
            scores = look.scores.get(s.start.id)
            if scores is None:
                s.detector.pass_over(look.progress)
                continue
            verdict = s.detector.look(scores)
            s.see(verdict)
            s.facts = self._told(verdict)

    def _is_flag(self, event: dict[str, Any]) -> bool:
        return event.get("type") in ("flag.raised", "flag.changed") and str(event.get("id")) in self._series

    # ---- what is told

    def _told(self, v: Verdict) -> dict[str, Any]:
        return {
            "value": v.estimate,
            "lower": v.low,
            "high": v.high,
            "unit": v.unit,
            "threshold": v.threshold,
            "spent": v.spent,
        }

    def _explained(self, s: Series, scores: LookScores, moved: list[dict]) -> dict[str, Any]:
        """Expected loss in points of accuracy whatever the detector measures, and where it comes from."""
        out: dict[str, Any] = {"moved": moved}
        if scores.margins is not None and s.start.margins is not None:
            if s.start.id not in self._points:
                same = isinstance(s.detector, ExpectedAccuracy)
                self._points[s.start.id] = s.detector if same else ExpectedAccuracy(s.start, self.setup)
            names = ("estimate", "low", "high")
            told = self._points[s.start.id].points(scores.margins)
            out["points"] = dict(zip(names, told, strict=True))
        return out

    def _event(self, s: Series, step: int, state: str, test: dict | None = None) -> tuple[str, dict[str, Any]]:
        kind = "flag.changed" if s.raised else "flag.raised"
        s.raised = True
        if state != "not-measurable":
            s.enter(state)
        setup, start, nats = self.setup, s.start, self.settings.detector == "nll"
        level = setup.level / setup.looks if nats and setup.looks else setup.level
        noise = start.noise.nll_q99 if nats else start.noise.margin_sd
        nothing = {"value": math.nan, "lower": math.nan, "unit": self._detector.unit}
        nothing["threshold"] = self._threshold(start)
        body: dict[str, Any] = {
            "id": start.id,
            "skill": start.skill,
            "split": start.split,
            "step": step,
            "state": state,
            **{**nothing, **s.facts},
            "noise": noise,
            "level": level,
            "n": start.n,
            "detector": self.settings.detector,
        }
        if not nats:
            body["margin"] = self.settings.margin
        if s.reason is not None:
            return kind, body | {"reason": s.reason}
        body["weak"] = is_weak(start.n)
        seen = smallest_drop(start.n, CONFIRM_LEVEL / setup.series / 2 ** s.next_place(step), USUAL_CHURN)
        body["smallest_drop"] = None if seen is None else 100 * seen
        return kind, body if test is None else body | {"test": test}

    def _threshold(self, start: SeriesStart) -> float:
        """What a series that is not watched would be held against, where that can be told without watching it."""
        if self.settings.detector == "nll":
            return start.noise.nll_q99 + self.settings.tolerance_nats
        if self.settings.detector == "limit":
            return harmless_loss(self.settings.alpha, self.settings.tolerance)
        return self.settings.tolerance if self.settings.detector == "soft" else math.nan


def setup_of(settings: FlagSettings) -> Setup:
    """As far as it does not depend on the run."""
    return Setup(
        settings.alpha, tolerance=settings.tolerance, tolerance_nats=settings.tolerance_nats, scale=settings.scale
    )


def why_not(settings: FlagSettings, s: SeriesStart) -> str | None:
    """Why a series cannot be watched, or None."""
    detector = DETECTORS[settings.detector]
    known = settings.detector == "nll" or s.margins is not None
    noise, tolerance = detector.limits(s, setup_of(settings)) if known and s.n >= MIN_ROWS else (0.0, 0.0)
    return why_not_measurable(
        detector=settings.detector,
        rows=len(s.nll) + s.dropped if s.rows is None else s.rows,
        dropped=s.dropped,
        n=s.n,
        right=sum(map(bool, s.correct)),
        checked=len(s.correct),
        alternatives=0 if s.margins is None else 2,
        noise=noise,
        tolerance=tolerance,
        unit=detector.unit,
    )


def _changes(start: SeriesStart, before: Sequence[bool], now: Sequence[bool]) -> tuple[int, int]:
    """Clusters that have fewer right answers than at the start, and more."""
    if not len(before) == len(now) == len(start.nll):
        raise ValueError(f"{start.id} has {len(start.nll)} rows in its panel, not {len(before)} and {len(now)}.")
    turns = [sum(now[i] - before[i] for i in rows) for rows in start.clusters]
    return sum(t < 0 for t in turns), sum(t > 0 for t in turns)
