"""When to probe: the trainer callback around `Prober`, and the spacing of probe points."""

from __future__ import annotations

import os
import time
from typing import Any

from transformers import TrainerCallback

from seesaw_runner.probing.prober import Prober
from seesaw_runner.run_folder import say

#: A stage that says nothing is looked at so often, but not more often than every so many steps.
DEFAULT_LOOKS, LEAST_SPACING = 20, 20
#: The first early point; the next ones are twice as far each. Losses of alignment come in the first steps of a stage.
FIRST_EARLY = 10


def probe_steps(every: int | list[int] | str | None, total: int) -> list[int]:
    """Steps after 0 at which all probes are scored, ascending; the last step always. As `lookSteps` in
    src/domain/run/lookSteps.ts.

    every: each n-th step and early points (10, 20, 40 … below n: from there on the regular ones are at least as dense);
    or these steps; or "log": 1, 2, 3, 6, 12, 24, … (dense where a stage changes fastest); None: about 20 times and
    early points.
    """
    if every is None:
        every = default_spacing(total)
    early = _doubling([], FIRST_EARLY, min(every, total)) if isinstance(every, int) else []
    return sorted({*early, *_spaced(every, total)})


def _spaced(every: int | list[int] | str, total: int) -> list[int]:
    if every == "log":
        steps = _doubling([1, 2], 3, total)
    elif isinstance(every, int):
        steps = list(range(every, total, every)) if every > 0 else []
    else:
        steps = [int(s) for s in every]
    return sorted({s for s in steps if 0 < s < total} | {total})


def _doubling(steps: list[int], start: int, below: int) -> list[int]:
    while start < below:
        steps.append(start)
        start *= 2
    return steps


def eval_steps(every: int | list[int] | str | None, total: int) -> list[int]:
    """Steps after 0 at which every check runs, read like `every` but without early points; None: only the last step.

    Of regular steps one that lies closer to the end than half its spacing is left out: generating every answer twice in
    a row would cost more than it tells.
    """
    if every is None:
        return [total]
    steps = _spaced(every, total)
    return [s for s in steps if s == total or not isinstance(every, int) or total - s >= every / 2]


def planned_points(options: dict[str, Any], total: int) -> set[int]:
    """All probe points after step 0 of `probe` in run.json."""
    return {*probe_steps(options.get("every"), total), *eval_steps(options.get("eval_every"), total)}


def lean_steps(options: dict[str, Any], total: int) -> set[int]:
    """Probe points at which only the series that are watched are scored: those that are there only because a stage's
    first steps are looked at more closely and, in a stage that says nothing of how often, three of four regular ones.
    """
    every = options.get("every")
    regular = _spaced(default_spacing(total) if every is None else every, total)
    whole = regular[3::4] if every is None else regular
    return planned_points(options, total) - {*whole, total, *eval_steps(options.get("eval_every"), total)}


def default_spacing(total: int) -> int:
    """Of a stage that says nothing."""
    return max(LEAST_SPACING, -(-total // DEFAULT_LOOKS))


class ProbeCallback(TrainerCallback):
    """Probes at its steps: after the checkpoint was saved where both fall on one step, so that a probe never costs
    weights.

    `missed`: the step that the stage resumes from, where its probe point did not come about (killed in between).

    `clock` is when the stage's own work began (perf_counter); `probe.cost` is journalled at every probe point. `short`:
    points before the last take only the short selection of rows.
    """

    def __init__(self, prober: Prober, journal, *, total: int, clock: float, short: bool, stopping):
        options = prober.options
        self.prober, self.journal, self.total, self.clock, self.short, self.stopping = (
            prober,
            journal,
            total,
            clock,
            short,
            stopping,
        )
        self.steps = set(probe_steps(options.get("every"), total))
        self.eval_steps = set(eval_steps(options.get("eval_every"), total))
        self.saved: tuple[int, str, str] | None = None  # step, weights hash and identity of the newest checkpoint
        self.missed: int | None = None
        self._done = -1

    def on_step_end(self, args, state, control, model=None, **_: Any) -> None:
        if not control.should_save:
            self._maybe(model, state.global_step)

    def on_save(self, args, state, control, model=None, **_: Any) -> None:
        self._maybe(model, state.global_step)

    def on_train_begin(self, args, state, control, model=None, **_: Any) -> None:
        if self.missed is not None and self.missed == state.global_step:
            self._maybe(model, state.global_step)

    def _maybe(self, model, step: int) -> None:
        if step == self._done or self.stopping() or (step not in self.steps and step not in self.eval_steps):
            return
        if not self._full(step) and not self.prober.between(step).rows:
            return  # a lean point of a stage in which nothing can be watched
        self._done = step
        self.probe(model, step)

    def probe(self, model, step: int, look: bool = True) -> None:
        """Probes now, whatever the plan says, and reports the cost so far. look: as `Prober.probe`."""
        self.journal.append("stage.progress", phase="probe", step=step, total=self.total)
        full = self._full(step)
        digest, identity = self.saved[1:] if self.saved and self.saved[0] == step else (None, None)
        evaluate = step in self.eval_steps
        self.prober.probe(model, step, evaluate=evaluate, full=full, weights_hash=digest, identity=identity, look=look)
        say(self.prober.told)
        self._cost()

    def _full(self, step: int) -> bool:
        return step >= self.total or not self.short

    def _cost(self) -> None:
        """Journals what probing has cost so far: seconds, and their share of the stage's time as a person waits for
        it.
        """
        after_loading = time.perf_counter() - self.clock
        stage = max(process_seconds(), after_loading)
        self.journal.append(
            "probe.cost",
            probe_s=round(self.prober.seconds, 3),
            stage_s=round(stage, 3),
            after_loading_s=round(after_loading, 3),
            share=round(self.prober.seconds / stage if stage > 0 else 0.0, 4),
        )


def process_seconds() -> float:
    """Wall-clock seconds since this process started, imports included; 0 where the system does not say."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as handle:
            ticks = float(handle.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as handle:
            return float(handle.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
